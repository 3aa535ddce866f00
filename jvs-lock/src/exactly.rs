//! Releasing one very state of the register, and no other: for the process that cannot
//! know which processes of its session have joined a hold since.
//!
//! To join a hold is to refresh it, and every refresh changes the register's name. So a
//! release that starts from the name that was seen takes nothing from anybody: the process
//! that joined before it has changed that name, a process that joins after it finds the
//! lock free.

use jvs_repo::audit::EventKind;
use jvs_repo::name::WorktreeName;

use crate::decide::LostTerm;
use crate::drive::{Applied, Move};
use crate::error::{LeaseError, RegisterError};
use crate::lease::Lease;
use crate::locks::Locks;
use crate::record::OwnRecord;
use crate::register::Register;
use crate::state::State;
use crate::view::{StatusWord, View};

impl<'r> Locks<'r> {
    /// Gives back a hold of this session whose lease is over for long enough, if
    /// the register is exactly as `seen`. Nobody believes in it: belief ends with
    /// the lease, and a renewal that lands late finds no name to rename.
    pub fn release_abandoned(&self, seen: &View) -> Result<(), LeaseError> {
        let register = self.register(&seen.worktree);
        let abandoned = seen.mine && seen.word() == StatusWord::Stealable;
        let reason = Some("its lease was over for long enough");
        if !abandoned || !self.release_exactly(&register, &seen.state, reason)? {
            let state = register.read()?;
            return Err(self.lost(&seen.worktree, &state, LostTerm::NotHeld, state.token));
        }
        OwnRecord::forget(self.seams.store, &seen.worktree, &seen.state);
        Ok(())
    }

    /// Frees a lock that nobody received whom it was handed to, if the register is
    /// exactly as `seen`: a process that goes on with a hold has changed its name.
    pub(crate) fn free_exactly(
        &self,
        worktree: &WorktreeName,
        seen: &State,
        reason: &str,
    ) -> Result<bool, RegisterError> {
        self.release_exactly(&self.register(worktree), seen, Some(reason))
    }

    /// Frees the lock if its state is `seen`; false if it is another by now, also
    /// if it was freed and then taken.
    fn release_exactly(
        &self,
        register: &Register<'r>,
        seen: &State,
        reason: Option<&str>,
    ) -> Result<bool, RegisterError> {
        let op = self.fresh_op();
        let released = |state: &State| match *state == *seen {
            true => Move::Try(EventKind::Release, state.released(op)),
            false => Move::Applied,
        };
        let driver = self.driver(register, reason);
        let Applied { state, .. } = driver
            .run_durably("was released", |state, _, _| Ok::<_, RegisterError>(released(state)))?;
        Ok(state.op == op || state == seen.released_untold())
    }
}

impl Lease<'_> {
    /// Gives the lock back if no other process of this session has joined the hold
    /// since it was granted here. Who has relies on it, and keeps it.
    pub fn release_if_alone(mut self) -> Result<(), RegisterError> {
        self.belief().end();
        let seen = *self.began_as();
        if self.locks.release_exactly(&self.register, &seen, None)? {
            self.forget_record();
        }
        Ok(())
    }
}
