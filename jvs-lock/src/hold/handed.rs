//! A lock that is handed to a session at the very moment at which it stops waiting.
//!
//! A process that hands over has seen a ticket, moves the register, and then looks for the
//! ticket again. A process that stops waiting takes its ticket away, and then looks at the
//! register. So at least one of the two sees that nobody is there to receive it, and
//! nobody has to wait for a lease that is nobody's.

use jvs_repo::sabotage;

use super::enter::Ask;
use super::files::Holds;
use super::refusal::EnterError;
use super::rule::HoldRule;
use super::stake::StakeKind;
use crate::error::{AcquireError, RegisterError, TakeOverError};
use crate::locks::{Locks, Want};
use crate::queue::Waiter;
use crate::state::{Hold, State};

impl<'r> Locks<'r> {
    /// Gives back what this session was handed although it does not wait any more: a
    /// term that is its own and in which nobody of it has a hold. It is entered as
    /// anything else is, and left at once, so a process of the session that comes meanwhile
    /// keeps it. Best effort: false if that failed, and then it runs out.
    pub fn decline(&self, holds: &Holds<'_>) -> bool {
        sabotage!(HoldRule::LeaverGivesBack => true);
        match self.is_handed(holds) {
            Some(true) => {}
            handed => return handed.is_some(),
        }
        // Whatever was lost before is still to be told: nobody is answered here.
        let ask = Ask { acknowledges_loss: true, ..Ask::plain(StakeKind::Work) };
        let is_anothers =
            |error: AcquireError| matches!(error, AcquireError::Take(TakeOverError::Conflict(_)));
        let mut take = |want: Want<'_>| match self.is_handed(holds) {
            Some(true) => self.acquire(holds.worktree(), want).map_err(is_anothers),
            handed => Err(handed.is_some()),
        };
        match self.enter(holds, &ask, Want::lease(self.policy.lease_duration_ms), &mut take) {
            Ok(entered) => self.leave(holds, &entered.stake).is_ok(),
            // Somebody else of the session, or of another, may have it by now.
            Err(EnterError::Take(has_it)) => has_it,
            Err(_) => false,
        }
    }

    /// `None` if that cannot be seen.
    fn is_handed(&self, holds: &Holds<'_>) -> Option<bool> {
        let state = self.register(holds.worktree()).read().ok()?;
        let mine = matches!(state.hold, Hold::Held(claim) if claim.holder == self.session.nonce());
        let hold = holds.peek().ok()?;
        Some(mine && !hold.is_some_and(|hold| hold.is_open() && hold.term == state.term()))
    }

    /// Takes a waiter that was handed the lock out of the line, which wakes it. False:
    /// it had left, and as nobody has received what it was handed in `state`, that is
    /// free.
    pub fn deliver(
        &self,
        to: &Waiter,
        holds: &Holds<'_>,
        state: &State,
    ) -> Result<bool, RegisterError> {
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
