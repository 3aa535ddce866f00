//! A register that was lost, emptied, doubled or rolled back gets a new life:
//! a higher epoch, a token above all that were ever seen, nobody holding.
//!
//! Which state that is, whoever saw the evidence decides. Here is only how it
//! gets in place, by calls that say by name what they replace: two who rebuild
//! at once, or one who comes late, change nothing that is whole.

use std::io;

use jvs_repo::audit::{Kind, Phase};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use crate::birth;
use crate::error::{BirthError, LockError};
use crate::locks::Locks;
use crate::register::Answer;
use crate::state::State;

/// Puts a register where there is none, or an empty directory.
pub fn install(
    locks: &Locks<'_>,
    worktree: &WorktreeName,
    state: State,
    reason: &str,
) -> Result<State, BirthError> {
    let store = locks.seams.store;
    // Fails if it has an entry: then it is nobody's to replace.
    match store.remove_dir(&layout::register(worktree)) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
            ) => {}
        Err(source) => return Err(BirthError::Io { worktree: worktree.clone(), source }),
        Ok(()) => {}
    }
    let mut journal = locks.journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    birth::install(locks.seams, &mut journal, worktree, state, Kind::Rebuild, Some(reason))
}

/// Moves a register on to its next life from the entry `from`, whatever else is
/// in it. Applied only if that very entry is there.
pub fn replace(
    locks: &Locks<'_>,
    worktree: &WorktreeName,
    from: &State,
    state: State,
    reason: &str,
) -> Result<State, LockError> {
    let io = |doing| move |source| LockError::Io { worktree: worktree.clone(), doing, source };
    let dir = layout::register(worktree);
    let path = |state: &State| dir.child(&state.to_string());
    let (old, new) = (path(from), path(&state));
    let (old, new) = match (old, new) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(error), _) | (_, Err(error)) => return Err(io("cannot name a state")(error)),
    };
    let mut journal = locks.journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    journal
        .intend(Kind::Rebuild, worktree, None, &state, Some(reason))
        .map_err(io("cannot write the audit log"))?;
    let store = locks.seams.store;
    match Answer::of(store.rename(&old, &new)) {
        Answer::Applied => {}
        Answer::Refused(error) => {
            journal.settle(Kind::Rebuild, worktree, None, &state, Phase::NotApplied);
            return Err(io("cannot move the fence register")(error));
        }
        Answer::Unknown(error) => {
            let there = |path| store.stat(path).is_ok();
            if !there(&new) {
                journal.settle(Kind::Rebuild, worktree, None, &state, Phase::Unknown);
                return Err(LockError::OutcomeUnknown {
                    worktree: worktree.clone(),
                    source: error,
                });
            }
        }
    }
    store.sync_dir(&dir).map_err(io("cannot sync the fence register"))?;
    journal.settle(Kind::Rebuild, worktree, None, &state, Phase::Done);
    Ok(state)
}
