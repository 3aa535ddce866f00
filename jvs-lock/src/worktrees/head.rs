//! A head is visible before its register forgets it.
//!
//! What is committed and not visible yet is known to be committed by the register that
//! has it as its head, and by nothing else: to the process that reads a later epoch of that
//! register it is a draft of a hold that is over.

use crate::error::RegisterError;
use crate::locks::Locks;
use crate::register::Register;
use crate::state::State;

/// Makes the head of `state`, which was READ from `register`, visible if it is not.
pub(super) fn show(
    locks: &Locks<'_>,
    register: &Register<'_>,
    state: &State,
) -> Result<(), RegisterError> {
    let (Some(show), Some(head)) = (locks.show_head, state.head) else { return Ok(()) };
    let stuck = |doing| {
        let worktree = register.worktree().clone();
        move |source| RegisterError::Io { worktree, doing, source }
    };
    // What is visible must not survive a power cut that its commit does not.
    register.sync().map_err(stuck("cannot sync the fence register"))?;
    show(locks.seams, head).map_err(stuck("cannot make the last snapshot visible"))
}
