//! What would be done without a rule, where that is more than an expression: see
//! [`jvs_repo::mutation`].

use jvs_repo::record::keeper::Keeper;
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;

use super::end::Cause;
use super::enter::{Ask, Coming, Joined, Stop};
use super::files::Holds;
use super::name::{HoldName, HoldState};
use super::refusal::{GiveBackError, HoldRefusal};
use super::rule::HoldRule;
use super::stake::Stake;
use super::whom::Sources;
use crate::lease::Lease;
use crate::locks::Locks;

/// What was seen of a hold before the register was READ.
pub(super) struct Before {
    pub(super) hold: HoldName,
    pub(super) lost: Vec<Term>,
}

impl Before {
    /// Looks only where that is believed later: other worlds are not to have more steps.
    pub(super) fn read(holds: &Holds<'_>) -> Self {
        let hold = match HoldRule::LookAfterRead.holds() {
            true => HoldName::NEVER,
            false => holds.look().unwrap_or(HoldName::NEVER),
        };
        let lost = match HoldRule::MemoryAfterRead.holds() {
            true => Vec::new(),
            false => holds.scan().map(|scan| scan.lost).unwrap_or_default(),
        };
        Before { hold, lost }
    }
}

/// A lock of the session's own, as one would have at first.
struct Mutex<'h> {
    holds: &'h Holds<'h>,
    path: RepoPath,
}

impl Drop for Mutex<'_> {
    fn drop(&mut self) {
        let _ = self.holds.seams.store.unlink(&self.path);
    }
}

fn is_taken(holds: &Holds<'_>) -> HoldRefusal {
    HoldRefusal::IsOpen { worktree: holds.worktree.clone() }
}

/// Keeps all others of the session out.
pub(super) fn join_under_a_mutex(
    holds: &Holds<'_>,
    ask: &Ask,
) -> Result<Option<Joined>, HoldRefusal> {
    let path = holds.place.child("mutex").expect("a plain name");
    holds.seams.store.create_new(&path).map_err(|_| is_taken(holds))?;
    let _alone = Mutex { holds, path };
    holds.join_as_it_is(ask)
}

/// Refuses while the hold is ending.
pub(super) fn join_once_it_ended(
    holds: &Holds<'_>,
    ask: &Ask,
) -> Result<Option<Joined>, HoldRefusal> {
    match holds.look()?.state {
        HoldState::Ending => Err(is_taken(holds)),
        _ => holds.join_as_it_is(ask),
    }
}

/// Touches the register without a stake, and has one only at the end.
pub(super) fn enter_then_stake<'r, E>(
    locks: &Locks<'r>,
    coming: &mut Coming<'_, 'r, E>,
    stake: &mut Stake,
) -> Result<Option<(Lease<'r>, bool)>, Stop<E>> {
    let holds = coming.holds;
    holds.remove(stake);
    let scan = holds.scan()?;
    let entered = locks.enter_staked(coming, stake, &scan)?;
    if let Some((lease, _)) = &entered {
        stake.term = Some(lease.term());
        holds.place(stake)?;
    }
    Ok(entered)
}

/// Remembers a release before the register has confirmed it.
pub(super) fn remember_then_release(
    locks: &Locks<'_>,
    holds: &Holds<'_>,
    term: Term,
    cause: Cause,
) -> Result<bool, GiveBackError> {
    holds.settle(term, HoldState::Ending, HoldState::Released)?;
    match locks.release_until_unseen(holds, term)? {
        Some(seen) => Ok(holds.released(term, &seen, cause)?),
        None => Ok(false),
    }
}

/// Whom the record names.
pub(super) fn recorded(sources: &Sources<'_>) -> Option<Keeper> {
    let found = crate::record::read(sources.repository, sources.worktree).ok()?;
    found.record()?.keeper.clone()
}
