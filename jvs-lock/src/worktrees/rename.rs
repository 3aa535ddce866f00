//! How a worktree gets another name.
//!
//! The target is reserved first; the retirement of the source, which decides, is of
//! the same operation, whose note says what is renamed to what. So the process that finds a
//! rename that died can finish it, or take it back.

use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree as record;
use jvs_repo::sabotage;

use super::create::{make_parent, make_payload, refuse_directory};
use super::error::{RetireError, WorktreeError, exists, io_at, unknown};
use super::note::{self, Discarded, NotMoved};
use super::remove::{bring_back, forget, retire};
use super::reserve::{self, Origin};
use super::unfinished::{self, Doing};
use crate::locks::Locks;
use crate::mutation::Rule;
use crate::register::is_transient;
use crate::retry;
use crate::state::{Hold, State};

/// How often a source that is committed to meanwhile is looked at again.
const TRIES: u32 = 8;

/// Gives a worktree another name. Its history goes on under the new one.
pub fn rename(
    locks: &Locks<'_>,
    old: &WorktreeName,
    new: &WorktreeName,
) -> Result<(), WorktreeError> {
    if old.is_main() || new.is_main() {
        return Err(WorktreeError::IsMain);
    }
    let store = locks.seams.store;
    let not_found = || WorktreeError::NotFound { name: old.clone() };
    let mut kept = record::read(store, old)?.ok_or_else(not_found)?;
    match unfinished::of_retired(locks, old)? {
        None => {}
        // What was interrupted goes on.
        Some(Doing::Renaming { to }) if to == *new => {
            let last = locks.register(old).read()?;
            return finish(locks, old, new, &last);
        }
        Some(doing) => return Err(WorktreeError::Underway { name: old.clone(), doing }),
    }
    new.check_for_new()?;
    if record::read(store, new)?.is_some() {
        return Err(exists(new, "there is one of that name"));
    }
    refuse_directory(locks, new)?;
    let op = locks.fresh_op();
    kept.renamed_from = Some(old.clone());
    note::write(locks, new, kept, op)?;
    match hand_over(locks, old, new, op) {
        Ok(last) => finish(locks, old, new, &last),
        Err(error) => {
            if !is_unknown(&error) {
                let _ = note::discard(store, new, op);
            }
            Err(error)
        }
    }
}

fn is_unknown(error: &WorktreeError) -> bool {
    use jvs_repo::code::{Code, Coded};
    error.code() == Code::OutcomeUnknown
}

/// Reserves the target and retires the source, so that the one begins with all that
/// was ever committed to and granted of the other.
fn hand_over(
    locks: &Locks<'_>,
    old: &WorktreeName,
    new: &WorktreeName,
    op: OpNonce,
) -> Result<State, WorktreeError> {
    sabotage!(Rule::TargetReservedFirst => super::sabotage::retire_first(locks, old, new, op));
    let reason = format!("renamed to {new}");
    let mut reserved: Option<State> = None;
    for _ in 0..TRIES {
        let now = locks.register(old).read()?;
        let origin = Origin { token: now.token.next(), generation: now.generation, head: now.head };
        let held = match reserved {
            None => reserve::reserve(locks, new, origin, op)?,
            Some(held) => reserve::reserve_again(locks, new, &held, origin)?,
        };
        reserved = Some(held);
        match retire(locks, old, op, &reason, Some(&held)) {
            Err(RetireError::MovedOn { .. }) => {}
            Err(error) if !error.is_unknown() => {
                reserve::give_up(locks, new, &held);
                return Err(error.into());
            }
            retired => return Ok(retired?),
        }
    }
    if let Some(held) = reserved {
        reserve::give_up(locks, new, &held);
    }
    let doing = Doing::Changing;
    Err(WorktreeError::Underway { name: old.clone(), doing })
}

/// Finishes a rename whose source was retired as `last`, or takes it back and says
/// why. Anybody may, at the same time as others: every step is done once.
pub(super) fn finish(
    locks: &Locks<'_>,
    old: &WorktreeName,
    new: &WorktreeName,
    last: &State,
) -> Result<(), WorktreeError> {
    match carry_over(locks, old, new, last.op) {
        Ok(()) => forget_source(locks, old, last),
        Err(error) if is_unknown(&error) => Err(error),
        Err(error) => take_back(locks, old, new, last, error),
    }
}

/// The new one is whole. A process that is told so finds nothing left of the old one; what
/// cannot be forgotten now, the same command again forgets, and so does doctor.
fn forget_source(locks: &Locks<'_>, old: &WorktreeName, last: &State) -> Result<(), WorktreeError> {
    let passes = |error: &WorktreeError| match error {
        WorktreeError::Io { source, .. } => is_transient(source),
        error => retry::passes(error),
    };
    retry::while_it(locks.seams, passes, || forget(locks, old, last)).map_err(unknown(old))
}

fn carry_over(
    locks: &Locks<'_>,
    old: &WorktreeName,
    new: &WorktreeName,
    op: OpNonce,
) -> Result<(), WorktreeError> {
    let seams = locks.seams;
    let seen = locks.register(new).read()?;
    if !is_ours(&seen, op) {
        let made = record::read(seams.store, new)?.is_some_and(|made| made.op == Some(op));
        return if made { Ok(()) } else { Err(exists(new, "somebody else took the name")) };
    }
    if seen.is_birth() {
        reserve::confirm(locks, new, &seen)?;
    }
    let (from, to) = (layout::payload(old), layout::payload(new));
    make_parent(locks, &to.parent())?;
    match note::move_new(seams, &from, &to) {
        Ok(()) => still_ours(locks, old, new, op)?,
        // It never had any.
        Err(NotMoved::Gone) => drop(make_payload(locks, new, &to)?),
        Err(stuck) => return Err(stuck.at(new, &to)),
    }
    seams.store.sync_dir(&to.parent()).map_err(io_at(&to))?;
    note::place(seams, new, op)
}

/// Looks again once the files were moved. A process that was paused before that may have moved
/// another's: the rename was taken back meanwhile, and nobody looks for files where
/// they are now. They go back to the worktree that they are of.
fn still_ours(
    locks: &Locks<'_>,
    old: &WorktreeName,
    new: &WorktreeName,
    op: OpNonce,
) -> Result<(), WorktreeError> {
    sabotage!(Rule::MovedThenLooked => Ok(()));
    let source = locks.register(old).read()?;
    // As long as the source is retired by this operation, its files are this one's.
    if source.op == op && source.hold == Hold::Retired {
        return Ok(());
    }
    let made = record::read(locks.seams.store, new)?.is_some_and(|made| made.op == Some(op));
    if made {
        return Ok(());
    }
    let target = locks.register(new).read()?;
    let nobodys = target.hold == Hold::Retired || is_ours(&target, op);
    let (from, to) = (layout::payload(old), layout::payload(new));
    if source.hold == Hold::Retired || !nobodys {
        return Err(exists(new, "somebody else took the name"));
    }
    match note::move_new(locks.seams, &to, &from) {
        Ok(()) | Err(NotMoved::Gone) => Err(exists(new, "somebody else took the name")),
        Err(_) => Err(exists(new, &format!("the files of '{old}' are in {to}"))),
    }
}

/// Is the target at this operation's reservation, confirmed or not?
fn is_ours(state: &State, op: OpNonce) -> bool {
    state.op == op && state.hold == Hold::Free
}

/// Leaves the world as it was because of `error`, unless somebody finished the
/// rename meanwhile.
fn take_back(
    locks: &Locks<'_>,
    old: &WorktreeName,
    new: &WorktreeName,
    last: &State,
    error: WorktreeError,
) -> Result<(), WorktreeError> {
    sabotage!(Rule::RenameTakenBack => Err(error));
    let seams = locks.seams;
    match note::withdraw(seams, new, last.op) {
        Ok(Discarded::Placed) => return forget_source(locks, old, last),
        Ok(Discarded::Gone) => {}
        Err(_) => return Err(unknown(old)(error)),
    }
    let (from, to) = (layout::payload(old), layout::payload(new));
    // Where the files are is told by the target alone.
    let seen = locks.register(new).read().map_err(|error| unknown(old)(error.into()))?;
    if is_ours(&seen, last.op) {
        // The target is this operation's, and so is what is there if it is no longer
        // here.
        if seams.store.stat(&from).is_err() {
            match note::move_new(seams, &to, &from) {
                // It never had any.
                Ok(()) | Err(NotMoved::Gone) => {}
                Err(stuck) => return Err(unknown(old)(stuck.at(old, &from))),
            }
        }
        reserve::give_up(locks, new, &seen);
    }
    bring_back(locks, old, last, &format!("it could not be renamed to {new}"))
        .map_err(unknown(old))?;
    note::dismiss(seams.store, new, last.op);
    Err(error)
}
