//! The CAS from one epoch of a register to the next.

use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::id::Epoch;

use super::{Driver, TRIES_AT_ONE_STATE};
use crate::backoff::Backoff;
use crate::error::{BirthError, RegisterError};
use crate::register::{Answer, ReadError};
use crate::state::State;

impl Driver<'_, '_> {
    /// Begins the next epoch of the register from exactly `from`. False: the register is
    /// elsewhere, and the attempt can never land any more.
    pub(crate) fn begin_life(
        &self,
        from: &State,
        next: State,
        kind: EventKind,
    ) -> Result<bool, BirthError> {
        debug_assert!(next.is_birth() && next.epoch > from.epoch, "{from} -> {next}");
        let worktree = self.register.worktree();
        let io = |source| BirthError::Io { worktree: worktree.clone(), source };
        if from.is_at_an_end() || from.epoch.counter >= Epoch::END {
            let found = format!("a counter of its entry {from} is exhausted");
            return Err(BirthError::Read(ReadError::Corrupt { worktree: worktree.clone(), found }));
        }
        self.journal().intend(kind, worktree, None, &next, self.reason).map_err(io)?;
        let settle = |phase| self.journal().settle(kind, worktree, None, &next, phase);
        let mut backoff = Backoff::new();
        let mut in_doubt = false;
        for attempt in 1.. {
            let error = match self.move_entry(from, &next) {
                Answer::Applied => break,
                Answer::Refused(error) if !in_doubt => {
                    settle(EventPhase::NotApplied);
                    return Err(io(error));
                }
                Answer::Refused(error) | Answer::Unknown(error) => error,
            };
            in_doubt = true;
            match self.register.read() {
                Ok(seen) if seen == next => break,
                Ok(seen) if seen != *from => {
                    settle(EventPhase::Unknown);
                    return Ok(false);
                }
                Ok(_) if attempt < TRIES_AT_ONE_STATE => {
                    self.seams.clock.sleep_ms(backoff.next_ms());
                }
                _ => {
                    let worktree = worktree.clone();
                    return Err(BirthError::OutcomeUnknown { worktree, source: error });
                }
            }
        }
        self.register.sync().map_err(io)?;
        settle(EventPhase::Done);
        Ok(true)
    }

    /// Moves a register that cannot be READ on to its next epoch from the entry `from`,
    /// whatever else is in it. Applied only if that very entry is there.
    pub(crate) fn replace(&self, from: &State, next: State) -> Result<State, RegisterError> {
        let worktree = self.register.worktree();
        self.journal()
            .intend(EventKind::Rebuild, worktree, None, &next, self.reason)
            .map_err(|error| self.io("cannot write the audit log", error))?;
        let settle =
            |phase| self.journal().settle(EventKind::Rebuild, worktree, None, &next, phase);
        match self.move_entry(from, &next) {
            Answer::Applied => {}
            Answer::Refused(error) => {
                settle(EventPhase::NotApplied);
                return Err(self.io("cannot update the fence register", error));
            }
            Answer::Unknown(error) => {
                if self.seams.store.stat(&self.register.entry_of(&next)).is_err() {
                    settle(EventPhase::Unknown);
                    return Err(self.unknown(error));
                }
            }
        }
        let synced = self.register.sync();
        synced.map_err(|error| self.io("cannot sync the fence register", error))?;
        settle(EventPhase::Done);
        Ok(next)
    }
}
