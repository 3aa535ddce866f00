//! A lock that is handed to a session at the very moment at which it stops waiting.
//!
//! A process that hands over has seen a ticket, moves the register, and then looks for the
//! ticket again. A process that stops waiting takes its ticket away, and then looks at the
//! register. So at least one of the two sees that nobody is there to receive it, and
//! nobody has to wait for a lease that is nobody's.

use jvs_repo::sabotage;

use super::enter::Ask;
use super::files::Holds;
use super::rule::HoldRule;
use super::stake::StakeKind;
use crate::error::LockError;
use crate::locks::{Locks, Want};
use crate::queue::Waiter;
use crate::state::{Hold, State};

impl<'r> Locks<'r> {
    /// Gives back what this session was handed although it does not wait any more: a
    /// term that is its own and in which nobody of it has a hold. It is entered as
    /// anything else is, and left at once, so a process of the session that comes meanwhile
    /// keeps it.
    pub fn decline(&self, holds: &Holds<'_>) -> Result<(), LockError> {
        sabotage!(HoldRule::LeaverGivesBack => Ok(()));
        if !self.is_handed(holds)? {
            return Ok(());
        }
        // Whatever was lost before is still to be told: nobody is answered here.
        let ask = Ask { acknowledges_loss: true, ..Ask::plain(StakeKind::Work) };
        let worktree = holds.worktree();
        let mut take = |want: Want<'_>| match self.is_handed(holds)? {
            true => self.acquire(worktree, want),
            false => Err(LockError::NotHeld { view: Box::new(self.inspect(worktree)?) }),
        };
        match self.enter(holds, &ask, Want::lease(self.policy.lease_duration_ms), &mut take) {
            Ok(entered) => self.leave(holds, &entered.stake).map(drop),
            // Somebody else of the session, or of another, has it by now.
            Err(LockError::NotHeld { .. } | LockError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn is_handed(&self, holds: &Holds<'_>) -> Result<bool, LockError> {
        let state = self.register(holds.worktree()).read()?;
        let mine = matches!(state.hold, Hold::Held(claim) if claim.holder == self.session.nonce());
        let hold = holds.peek()?;
        Ok(mine && !hold.is_some_and(|hold| hold.is_open() && hold.term == state.term()))
    }

    /// Takes a waiter that was handed the lock out of the line, which wakes it. False:
    /// it had left, and as nobody has received what it was handed in `state`, that is
    /// free.
    pub fn deliver(
        &self,
        to: &Waiter,
        holds: &Holds<'_>,
        state: &State,
    ) -> Result<bool, LockError> {
        sabotage!(HoldRule::GiverLooksForTheHeir => {
            self.wake(holds.worktree(), to);
            Ok(true)
        });
        let worktree = holds.worktree();
        if self.wake(worktree, to) {
            return Ok(true);
        }
        Ok(!self.free_exactly(worktree, state, "who it was handed to had left the line")?)
    }
}
