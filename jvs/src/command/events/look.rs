//! One look at all registers, and what became of them since the last.

use std::collections::BTreeMap;

use jvs_lock::history::{LockChangeKind, RegisterChange, ToldStates, changes_between, renamed_to};
use jvs_lock::register::{ReadError, Register};
use jvs_lock::state::{Hold, State};
use jvs_repo::clock::{BootMs, Clock, WallMs};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::Store;
use jvs_repo::term::Term;

use crate::answer::events::{LockChange, LockStands};
use crate::fail::{Failure, Stuck};

/// For so long a step of which no log tells is kept back: another host's log may be seen later
/// than its register.
const FILLED_WITHIN_MS: u64 = 3_000;

/// Somebody who looks at all registers again and again.
pub(super) struct RegisterWatcher<'r> {
    store: &'r dyn Store,
    clock: &'r dyn Clock,
    only: Option<WorktreeName>,
    renewals: bool,
    seen: BTreeMap<WorktreeName, Seen<'r>>,
}

/// What is known of one register.
struct Seen<'r> {
    register: Register<'r>,
    /// What the last look saw; `None` if that was told.
    shown: Option<Result<State, ReadError>>,
    /// The state up to which all was told; `None` if nothing was.
    told: Option<State>,
    /// It has moved on since then, and how is not told completely yet.
    since: Option<BootMs>,
    /// Whose the term is.
    holder: Option<(Term, String)>,
    /// It was told that the time of this state is over.
    expired: Option<State>,
    unreadable: bool,
}

impl<'r> RegisterWatcher<'r> {
    pub(super) fn new(
        store: &'r dyn Store,
        clock: &'r dyn Clock,
        only: Option<WorktreeName>,
        renewals: bool,
    ) -> Self {
        RegisterWatcher { store, clock, only, renewals, seen: BTreeMap::new() }
    }

    /// The worktrees whose registers are known.
    pub(super) fn worktrees(&self) -> impl Iterator<Item = &WorktreeName> {
        self.seen.keys()
    }

    /// Takes all registers as they are for told.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        self.look()?;
        for seen in self.seen.values_mut() {
            seen.told = seen.shown.as_ref().and_then(|shown| shown.as_ref().ok()).copied();
        }
        Ok(())
    }

    /// Looks at all registers. Is there anything to tell of them? The logs are read after this,
    /// and before [`RegisterWatcher::tell`]: what leads to a state is in a log before the state is in
    /// its register.
    pub(super) fn look(&mut self) -> Result<bool, Failure> {
        self.find()?;
        let now = self.clock.now().wall;
        let mut news = false;
        for seen in self.seen.values_mut() {
            let shown = seen.register.read();
            news |= match &shown {
                Ok(state) => {
                    Some(*state) != seen.told || seen.is_over(state, now) || seen.unreadable
                }
                Err(_) => !seen.unreadable,
            };
            seen.shown = Some(shown);
        }
        Ok(news)
    }

    /// What became of all registers until the last look, in the order of the times that are
    /// told; of each register in its own order. `last` is who will not look again.
    pub(super) fn tell(
        &mut self,
        logs: &mut ToldStates,
        last: bool,
    ) -> Vec<(Option<WallMs>, LockChange)> {
        let now = self.clock.now();
        let mut all: Vec<(WallMs, Option<WallMs>, LockChange)> = Vec::new();
        for (worktree, seen) in &mut self.seen {
            let changes = match seen.shown.take() {
                Some(Ok(state)) => seen.became(worktree, &state, logs, now.boot, last),
                Some(Err(error)) => seen.cannot_be_read(worktree, &error).into_iter().collect(),
                None => Vec::new(),
            };
            // Clocks of several hosts may disagree: none makes a register go back.
            let mut latest = WallMs(0);
            for (at, change) in changes {
                latest = latest.max(at.unwrap_or(WallMs(0)));
                all.push((latest, at, change));
            }
            if let Some(state) = seen.told.filter(|state| seen.is_over(state, now.wall)) {
                seen.expired = Some(state);
                let at = state.hold.claim().map(|claim| claim.expires);
                let change = LockChange {
                    at: at.map(WallMs::rfc3339),
                    ..plain(LockChangeKind::Expired, worktree, Some(&state))
                };
                all.push((latest.max(at.unwrap_or(WallMs(0))), at, change));
            }
        }
        all.sort_by_key(|(latest, _, _)| *latest);
        let shown = |change: &LockChange| self.renewals || change.kind != LockChangeKind::Renewed;
        let all = all.into_iter().filter(|(_, _, change)| shown(change));
        all.map(|(_, at, change)| (at, change)).collect()
    }

    /// Registers that were not known.
    fn find(&mut self) -> Result<(), Failure> {
        let there = self.store.list(&layout::locks());
        let there = there.map_err(|error| Stuck::new("list the locks", error))?;
        for entry in there {
            let Some(worktree) = entry.name.to_str().and_then(layout::worktree_of_register) else {
                continue;
            };
            let wanted = self.only.as_ref().is_none_or(|only| *only == worktree);
            if wanted && !self.seen.contains_key(&worktree) {
                let register = Register::new(self.store, self.clock, worktree.clone());
                let (shown, told, since, holder, expired) = (None, None, None, None, None);
                let seen =
                    Seen { register, shown, told, since, holder, expired, unreadable: false };
                self.seen.insert(worktree, seen);
            }
        }
        Ok(())
    }
}

impl Seen<'_> {
    /// Is the time of that state over, and nobody was told?
    fn is_over(&self, state: &State, now: WallMs) -> bool {
        let over = state.hold.claim().is_some_and(|claim| claim.expires <= now);
        over && self.expired != Some(*state)
    }

    fn became(
        &mut self,
        worktree: &WorktreeName,
        state: &State,
        logs: &mut ToldStates,
        now: BootMs,
        last: bool,
    ) -> Vec<(Option<WallMs>, LockChange)> {
        self.unreadable = false;
        let steps = changes_between(worktree, self.told.as_ref(), state, logs);
        let since = *self.since.get_or_insert(now);
        let half_known = |step: &RegisterChange| {
            step.event.is_none() && !matches!(step.kind, None | Some(LockChangeKind::Renewed))
        };
        if !last && steps.iter().any(half_known) && now.since(since) < FILLED_WITHIN_MS {
            return Vec::new();
        }
        self.since = None;
        self.told = Some(*state);
        logs.forget_before(worktree, state);
        steps.iter().filter_map(|step| self.told_of(worktree, step)).collect()
    }

    fn told_of(
        &mut self,
        worktree: &WorktreeName,
        step: &RegisterChange,
    ) -> Option<(Option<WallMs>, LockChange)> {
        let event = step.event.as_ref();
        let before = step.from.and_then(|from| {
            let (term, session) = self.holder.as_ref()?;
            (*term == from.term()).then(|| session.clone())
        });
        let ended = step.from.is_some_and(|from| from.term() != step.to.term());
        let freed = step.from.is_some_and(|from| from.holder() != step.to.holder());
        let said = event.and_then(|event| event.details.as_ref()?["old_session"].as_str());
        let had = step.from.is_some_and(|from| from.holder().is_some()) && (ended || freed);
        let previous_session = said.map(str::to_owned).or(before).filter(|_| had);
        let kind = step.kind?;
        if matches!(step.to.hold, Hold::Held(_) | Hold::Frozen(_)) && (ended || freed) {
            // Whom a lock was handed to only its register knows.
            let whose = event.filter(|_| kind != LockChangeKind::Transferred);
            self.holder = whose.map(|event| (step.to.term(), event.session_id.clone()));
        }
        let at = event.and_then(|event| event.at_ms());
        let counts = matches!(kind, LockChangeKind::Gap | LockChangeKind::Renewed);
        let change = LockChange {
            at: event.map(|event| event.at.clone()),
            session_id: event.map(|event| event.session_id.clone()),
            holder_id: event.map(|event| event.holder_id.clone()),
            reason: event.and_then(|event| event.reason.clone()),
            renamed_to: event.and_then(renamed_to),
            missed: counts.then_some(step.missed),
            previous_session,
            ..plain(kind, worktree, Some(&step.to))
        };
        Some((at, change))
    }

    /// What cannot be read is told once, until it can.
    fn cannot_be_read(
        &mut self,
        worktree: &WorktreeName,
        error: &ReadError,
    ) -> Option<(Option<WallMs>, LockChange)> {
        let told = std::mem::replace(&mut self.unreadable, true);
        let reason = Some(error.to_string());
        let change = LockChange { reason, ..plain(LockChangeKind::Unreadable, worktree, None) };
        (!told).then_some((None, change))
    }
}

/// A change of which nothing else is known.
fn plain(kind: LockChangeKind, worktree: &WorktreeName, state: Option<&State>) -> LockChange {
    let stands = state.map(|state| LockStands {
        state: match state.hold {
            Hold::Free => "free",
            Hold::Held(_) => "held",
            Hold::Frozen(_) => "frozen",
            Hold::Retired => "retired",
        },
        fencing_token: state.token,
        epoch: state.epoch,
        seq: state.seq,
        expires_at: state.hold.claim().map(|claim| claim.expires.into()),
        head: state.head,
        op: state.op,
    });
    LockChange {
        kind,
        worktree: worktree.clone(),
        at: None,
        stands,
        session_id: None,
        holder_id: None,
        previous_session: None,
        reason: None,
        renamed_to: None,
        missed: None,
    }
}
