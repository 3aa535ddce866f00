//! How a worktree is removed.

use std::io;

use jvs_repo::audit::EventKind;
use jvs_repo::code::{Code, Coded};
use jvs_repo::id::OpNonce;
use jvs_repo::json::Limits;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree as record;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

use super::error::{RetireError, WorktreeError, io_at, unknown};
use super::head;
use super::note::{self, NotMoved};
use super::reserve;
use super::unfinished;
use crate::decide::{self, Own};
use crate::drive::{Applied, Move};
use crate::error::{RegisterError, TakeOverError};
use crate::locks::Locks;
use crate::mutation::Rule;
use crate::record::OwnRecord;
use crate::register::{ReadError, Register};
use crate::state::{Hold, State};

/// What a removal leaves for the caller to delete.
#[derive(Debug)]
#[must_use = "the removed files still take up space"]
pub struct Removed {
    /// Where the worktree's files are now, out of everybody's way.
    pub files: Option<RepoPath>,
}

/// Removes a worktree. With `force` also one that has files: they are moved out
/// of the way in one step, and the caller deletes them.
pub fn remove(
    locks: &Locks<'_>,
    name: &WorktreeName,
    force: bool,
) -> Result<Removed, WorktreeError> {
    if name.is_main() {
        return Err(WorktreeError::IsMain);
    }
    let store = locks.seams.store;
    let Some(kept) = record::read(store, name)? else {
        return give_up_half_made(locks, name);
    };
    if let Some(doing) = unfinished::of_retired(locks, name)? {
        return Err(WorktreeError::Underway { name: name.clone(), doing });
    }
    let payload = layout::payload(name);
    let has_files = match store.list(&payload) {
        Ok(entries) => !entries.is_empty(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(io_at(&payload)(error)),
    };
    if has_files && !force {
        return Err(WorktreeError::NotEmpty { name: name.clone() });
    }
    let op = locks.fresh_op();
    note::write(locks, name, kept, op)?;
    let reason = if has_files { "removed with its files" } else { "removed" };
    let last = match retire(locks, name, op, reason, None) {
        Ok(last) => last,
        Err(error) => {
            if !error.is_unknown() {
                let _ = note::discard(store, name, op);
            }
            return Err(error.into());
        }
    };
    let files = match clear(locks, name, &payload, &last, force) {
        Ok(files) => files,
        Err(error) if error.code() == Code::OutcomeUnknown => return Err(error),
        // Its files stay, and so does it: perhaps somebody put one there meanwhile, and
        // nobody said that it may go.
        Err(error) => {
            bring_back(locks, name, &last, "its files could not be moved away")
                .map_err(unknown(name))?;
            let _ = note::discard(store, name, op);
            return Err(error);
        }
    };
    // Before the record, whose removal is made durable.
    let _ = note::discard(store, name, op);
    // There is no way back: its files are gone.
    forget(locks, name, &last).map_err(unknown(name))?;
    Ok(Removed { files })
}

/// A name that was reserved, and no more: a process that reserved it is told so when it
/// goes on.
fn give_up_half_made(locks: &Locks<'_>, name: &WorktreeName) -> Result<Removed, WorktreeError> {
    let not_found = || WorktreeError::NotFound { name: name.clone() };
    let seen = match locks.register(name).read() {
        Ok(seen) => seen,
        Err(ReadError::Missing { .. }) => return Err(not_found()),
        Err(error) => return Err(error.into()),
    };
    if seen.hold != Hold::Free {
        return Err(not_found());
    }
    if !seen.is_birth() && !reserve::is_nobodys(locks.seams, name, &seen)? {
        return Err(match unfinished::look(locks.seams, name)? {
            Some(found) => WorktreeError::Underway { name: name.clone(), doing: found.doing },
            None => not_found(),
        });
    }
    reserve::retire_exactly(locks, name, &seen, "removed before it was made")?;
    let _ = note::discard(locks.seams.store, name, seen.op);
    note::dismiss(locks.seams.store, name, seen.op);
    Ok(Removed { files: None })
}

/// Takes the files of a retired worktree out of the way: with `force` whatever
/// there is, otherwise only an empty directory.
///
/// A process that is paused before this may take what is somebody else's: its removal was
/// ended and the worktree brought back. So what was taken is put back unless the
/// register, READ after it, is at this removal still; and until then it has a name
/// that nobody collects.
fn clear(
    locks: &Locks<'_>,
    name: &WorktreeName,
    payload: &RepoPath,
    last: &State,
    force: bool,
) -> Result<Option<RepoPath>, WorktreeError> {
    if !force {
        let was_there = remove_empty(locks, name, payload)?;
        return still_removed(locks, name, last).map(|()| None).inspect_err(|_| {
            if was_there {
                let _ = locks.seams.store.make_dir(payload);
            }
        });
    }
    let aside = undecided(name, last);
    match note::move_new(locks.seams, payload, &aside) {
        Ok(()) => {}
        Err(NotMoved::Gone) => return still_removed(locks, name, last).map(|()| None),
        Err(stuck) => return Err(stuck.at(name, payload)),
    }
    let error = match still_removed(locks, name, last).and_then(|()| decided(locks, name, last)) {
        Ok(files) => return Ok(Some(files)),
        Err(error @ WorktreeError::OutcomeUnknown { .. }) => return Err(error),
        Err(error) => error,
    };
    Err(match note::move_new(locks.seams, &aside, payload) {
        // Somebody else put them back.
        Ok(()) | Err(NotMoved::Gone) => error,
        Err(_) => WorktreeError::BroughtBack { name: name.clone(), files: Some(aside) },
    })
}

/// Removes a directory that must be empty; true if it was there.
fn remove_empty(
    locks: &Locks<'_>,
    name: &WorktreeName,
    payload: &RepoPath,
) -> Result<bool, WorktreeError> {
    match locks.seams.store.remove_dir(payload) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            Err(WorktreeError::NotEmpty { name: name.clone() })
        }
        // Its answer may have been lost.
        Err(error) => match locks.seams.store.is_there(payload) {
            Ok(false) => Ok(true),
            Ok(true) => Err(io_at(payload)(error)),
            Err(_) => Err(unknown(name)(io_at(payload)(error))),
        },
    }
}

/// Is the register at this removal, exactly?
fn still_removed(
    locks: &Locks<'_>,
    name: &WorktreeName,
    last: &State,
) -> Result<(), WorktreeError> {
    sabotage!(Rule::TakenThenLooked => Ok(()));
    match locks.register(name).read()? == *last {
        true => Ok(()),
        false => Err(WorktreeError::BroughtBack { name: name.clone(), files: None }),
    }
}

fn undecided(name: &WorktreeName, last: &State) -> RepoPath {
    layout::removing_payload(name, last.term(), last.op)
}

/// Gives files that were taken away their last name. This decides between the removal
/// and the process that brings the worktree back: only one of them moves the files.
fn decided(
    locks: &Locks<'_>,
    name: &WorktreeName,
    last: &State,
) -> Result<RepoPath, WorktreeError> {
    let (aside, removed) =
        (undecided(name, last), layout::removed_payload(name, last.term(), last.op));
    match note::move_new(locks.seams, &aside, &removed) {
        Ok(()) => {
            // Before the record goes: of a name that a power cut brought back without one
            // nobody could tell whether its files are needed. Best effort: they are told of.
            let _ = locks.seams.store.sync_dir(&removed.parent());
            Ok(removed)
        }
        // Deleted by the process that ended this, or back where they were.
        Err(NotMoved::Gone) => match locks.register(name).read() {
            Ok(state) if state == *last => Ok(removed),
            Ok(_) => Err(WorktreeError::BroughtBack { name: name.clone(), files: None }),
            Err(error) => Err(unknown(name)(error.into())),
        },
        Err(stuck) => Err(stuck.at(name, &aside)),
    }
}

/// Ends a removal that was interrupted, whose last state is `last`.
pub(super) fn end(
    locks: &Locks<'_>,
    name: &WorktreeName,
    last: &State,
) -> Result<(), WorktreeError> {
    let (store, payload) = (locks.seams.store, layout::payload(name));
    // As long as its files are there, nothing is lost by having it back.
    if store.stat(&payload).is_err() {
        // Looked at before the register: what is taken later may be another's.
        if store.stat(&undecided(name, last)).is_ok() {
            match still_removed(locks, name, last) {
                Ok(()) => drop(decided(locks, name, last)?),
                // The process that took them puts them back.
                Err(WorktreeError::BroughtBack { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        return forget(locks, name, last);
    }
    let Some(next) = bring_back(locks, name, last, "its removal was interrupted")? else {
        return Ok(());
    };
    if store.stat(&payload).is_ok() {
        return Ok(());
    }
    // They were taken away meanwhile, by the process that is at it still.
    match note::move_new(locks.seams, &undecided(name, last), &payload) {
        Err(NotMoved::Gone) if store.stat(&payload).is_err() => {
            let last = reserve::retire_exactly(locks, name, &next, "it was removed meanwhile")?;
            forget(locks, name, &last)
        }
        Ok(()) | Err(NotMoved::Gone | NotMoved::Exists) => Ok(()),
        Err(stuck) => Err(stuck.at(name, &payload)),
    }
}

/// Moves the register to its final state, as the operation `op`. `reserved` is the
/// state under which it is to go on elsewhere, if it is: with what was committed by
/// then, and above its token.
pub(super) fn retire(
    locks: &Locks<'_>,
    name: &WorktreeName,
    op: OpNonce,
    reason: &str,
    reserved: Option<&State>,
) -> Result<State, RetireError> {
    let register = locks.register(name);
    let me = locks.session.nonce();
    let driver = locks.driver(&register, Some(reason));
    let began = locks.seams.clock.now();
    let retired = || {
        driver.run_durably("was retired", |state, _, _| {
            let seen = locks.examine(&register, state, began)?;
            match decide::retire(state, seen.judgement.as_ref(), me, op, &locks.policy) {
                Ok(Own::Try) if seen.foreign.is_some() => {
                    Err(RetireError::from(TakeOverError::of_other_tool(&seen)))
                }
                Ok(Own::Try) if reserved.is_some_and(|to| !goes_on_in(state, to)) => {
                    Err(RetireError::MovedOn { name: name.clone() })
                }
                Ok(Own::Try) => {
                    show_before_retired(locks, &register, state)?;
                    Ok(Move::Try(EventKind::Retire, state.retired(op)))
                }
                Ok(Own::Done) => Ok(Move::Applied),
                Err(refusal) => Err(locks.refused(refusal, &seen).into()),
            }
        })
    };
    let Applied { state, .. } = locks.patiently(retired)?;
    Ok(state)
}

/// A process that retires a register makes its head visible first.
fn show_before_retired<'r>(
    locks: &Locks<'r>,
    register: &Register<'r>,
    state: &State,
) -> Result<(), RegisterError> {
    sabotage!(Rule::ShownBeforeRetired => Ok(()));
    head::show(locks, register, state)
}

/// Would nothing that was committed or granted in `state` be missed in `reserved`?
fn goes_on_in(state: &State, reserved: &State) -> bool {
    (state.head, state.generation) == (reserved.head, reserved.generation)
        && state.token < reserved.token
}

/// Gives a worktree that was retired its next epoch: its removal or renaming did not
/// take place. Nobody holds it. `None`: somebody else was faster.
pub(super) fn bring_back(
    locks: &Locks<'_>,
    name: &WorktreeName,
    last: &State,
    reason: &str,
) -> Result<Option<State>, WorktreeError> {
    let origin =
        reserve::Origin { token: last.token, generation: last.generation, head: last.head };
    let register = locks.register(name);
    let next = origin.life_after(locks, Some(last), last.op);
    let begun =
        reserve::begin_life(locks, &register, last, next, EventKind::Rebuild, Some(reason))?;
    Ok(begun.then_some(next))
}

/// Takes a retired worktree off the lists. Its register stays, retired.
pub(super) fn forget(
    locks: &Locks<'_>,
    name: &WorktreeName,
    last: &State,
) -> Result<(), WorktreeError> {
    let store = locks.seams.store;
    let path = layout::worktree_record(name);
    // Looked at before the register: as long as that is at `last`, it is this worktree's.
    let record = match store.read(&path, Limits::RECORD.size) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(io_at(&path)(error)),
    };
    // A process that ended this before made way for the next of that name.
    if locks.register(name).read()? != *last {
        return Ok(());
    }
    OwnRecord::forget(store, name, last);
    match record {
        Some(record) => take_off_the_list(locks, name, &record),
        None => Ok(()),
    }
}

/// Removes the record of `name`, if it is still `record`: a process that was paused before this
/// may find that of the next of the name.
fn take_off_the_list(
    locks: &Locks<'_>,
    name: &WorktreeName,
    record: &[u8],
) -> Result<(), WorktreeError> {
    sabotage!(Rule::ForgottenThenLooked => super::sabotage::remove_record(locks, name));
    let (store, path) = (locks.seams.store, layout::worktree_record(name));
    let aside = layout::worktree_record_tmp(name, locks.fresh_op());
    store
        .remove_meant(&path, &aside, Limits::RECORD.size, &|bytes| bytes == record)
        .and_then(|_| store.sync_dir(&path.parent()))
        .map_err(io_at(&path))
}
