//! How a register comes into the world.

use std::io;

use jvs_repo::audit;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;

use crate::error::BirthError;
use crate::journal::Journal;
use crate::mutation::Rule;
use crate::register::{Answer, ReadError, Register};
use crate::seams::Seams;
use crate::state::State;

/// Puts a register with the single entry `state` where there is none.
pub(crate) fn install(
    seams: Seams<'_>,
    journal: &mut Journal<'_>,
    worktree: &WorktreeName,
    state: State,
    kind: audit::EventKind,
    reason: Option<&str>,
) -> Result<State, BirthError> {
    let io = |source| BirthError::Io { worktree: worktree.clone(), source };
    let place = layout::register(worktree);
    match seams.store.stat(&place) {
        Ok(_) => return Err(BirthError::Exists { worktree: worktree.clone() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io(error)),
    }
    journal.intend(kind, worktree, None, &state, reason).map_err(io)?;
    bear(seams, worktree, &state)?;
    seams.store.sync_dir(&layout::locks()).map_err(io)?;
    journal.settle(kind, worktree, None, &state, audit::EventPhase::Done);
    Ok(state)
}

/// A private directory is filled first and then renamed into place, so the register has
/// exactly one entry from its first moment. Made the other way round (directory, then
/// file) two creators leave two entries, and two holders.
fn bear(seams: Seams<'_>, worktree: &WorktreeName, state: &State) -> Result<(), BirthError> {
    sabotage!(Rule::BornByRename => crate::sabotage::make_in_place(seams, worktree, state));
    let io = |source| BirthError::Io { worktree: worktree.clone(), source };
    let place = layout::register(worktree);
    let private = layout::register_birth(worktree, state.op);
    let entry = private.child(&state.to_string()).map_err(io)?;
    let build = || {
        seams.store.ensure_dir(&private)?;
        drop(seams.store.create_own(&entry)?);
        seams.store.sync_dir(&private)
    };
    if let Err(error) = build() {
        // Nothing was renamed yet, so nothing can land later: safe to clear up.
        let _ = seams.store.unlink(&entry);
        let _ = seams.store.remove_dir(&private);
        return Err(io(error));
    }
    match Answer::of(seams.store.rename_new(&private, &place)) {
        Answer::Applied => Ok(()),
        Answer::Refused(error) => {
            let _ = seams.store.unlink(&entry);
            let _ = seams.store.remove_dir(&private);
            Err(io(error))
        }
        Answer::Unknown(error) => {
            // The rename may land later; to empty the private directory now
            // would then leave a register without an entry. So it stays, and
            // doctor removes it once the register has another birth in it.
            match Register::new(seams.store, seams.clock, worktree.clone()).read() {
                Ok(seen) if seen.op == state.op => Ok(()),
                Ok(_) => Err(BirthError::Exists { worktree: worktree.clone() }),
                Err(ReadError::Missing { .. }) => {
                    Err(BirthError::OutcomeUnknown { worktree: worktree.clone(), source: error })
                }
                Err(read) => Err(BirthError::Read(read)),
            }
        }
    }
}
