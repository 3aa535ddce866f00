//! A register that was lost, emptied, doubled or rolled back gets a new epoch:
//! a higher epoch, a token above all that were ever seen, nobody holding.
//!
//! The caller, which saw the evidence, decides which state that is. Here is only how it
//! gets in place, by calls that say by name what they replace: two who rebuild
//! at once, or one who comes late, change nothing that is whole.

use std::io;

use jvs_repo::audit::EventKind;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use crate::birth;
use crate::error::{BirthError, RegisterError};
use crate::locks::Locks;
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
    birth::install(locks.seams, &mut journal, worktree, state, EventKind::Rebuild, Some(reason))
}

/// Moves a register on to its next epoch from the entry `from`, whatever else is
/// in it. Applied only if that very entry is there.
pub fn replace(
    locks: &Locks<'_>,
    worktree: &WorktreeName,
    from: &State,
    state: State,
    reason: &str,
) -> Result<State, RegisterError> {
    let register = locks.register(worktree);
    locks.driver(&register, Some(reason)).replace(from, state)
}
