//! How a lock is given back: by the last who leaves, by whoever keeps it, or
//! because somebody says so.

use super::admit::relying;
use super::end::Ending;
use super::files::Holds;
use super::name::{HoldState, Term};
use super::refusal::{HoldRefusal, Refused};
use super::rule::Rule;
use super::stake::{Kind, Stake};
use crate::error::LockError;
use crate::lease::{Lease, Ticket};
use crate::locks::Locks;
use crate::queue::Waiter;
use crate::retry;
use crate::state::State;

/// What became of a hold that somebody left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// It was given back.
    Back,
    /// Others of the session still need it.
    Kept(Vec<Stake>),
    /// It was over already.
    Over,
}

impl<'r> Locks<'r> {
    /// Leaves a hold: takes the stake back, and gives the lock back if it was the
    /// last one.
    pub fn leave(&self, holds: &Holds<'_>, stake: &Stake) -> Result<Given, LockError> {
        holds.remove(stake);
        match stake.term {
            Some(term) => self.give_back_unneeded(holds, term),
            None => Ok(Given::Over),
        }
    }

    /// Gives the hold `term` back if no live stake carries its token. What a keeper
    /// does when it thinks that its time has come.
    pub fn give_back_unneeded(&self, holds: &Holds<'_>, term: Term) -> Result<Given, LockError> {
        match holds.end(term)? {
            Ending::Needed(by) => Ok(Given::Kept(by)),
            Ending::Over => Ok(Given::Over),
            Ending::Ends => {
                self.release_ending(holds, term)?;
                holds.sweep(term);
                Ok(Given::Back)
            }
        }
    }

    /// Releases by CAS until READ no longer shows the hold; then it is *released*, if
    /// the register confirmed that.
    fn release_ending(&self, holds: &Holds<'_>, term: Term) -> Result<(), LockError> {
        if !Rule::OnlyConfirmedIsReleased.holds() {
            holds.settle(term, HoldState::Released)?;
        }
        let worktree = holds.worktree();
        let ticket = Ticket { worktree: worktree.clone(), epoch: term.epoch, token: term.token };
        let seen = match self.resume(worktree, Some(&ticket)) {
            Ok(lease) => retry::release(self.seams, lease).map_err(|failed| failed.error)?,
            // Somebody else's doing, or another process of the session was first.
            Err(LockError::NotHeld { view }) => view.state,
            Err(LockError::Fenced { .. } | LockError::Retired { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        holds.released(term, &seen)
    }

    /// Ends the session's hold because somebody says so. Refused while commands rely
    /// on it; answers the hold and its lease, with which the register is then moved.
    fn end_as_told(&self, holds: &Holds<'_>) -> Result<(Term, Lease<'r>), LockError> {
        let mut rounds = 0;
        loop {
            holds.again(&mut rounds)?;
            let lease = self.resume(holds.worktree(), None)?;
            let term = Term { epoch: lease.ticket().epoch, token: lease.token() };
            let hold = holds.look()?;
            let scan = holds.scan()?;
            let alive = holds.alive(&scan);
            let relying = relying(term, &alive);
            if !relying.is_empty() && Rule::ReleaseAsksTheOthers.holds() {
                return Err(HoldRefusal::Relied {
                    worktree: holds.worktree().clone(),
                    refused: Refused::GiveBack,
                    by: holds.told(&relying),
                }
                .into());
            }
            let open = hold.term == term && hold.state == HoldState::Open;
            // A term that is not open is nobody's: whoever took it and lives was seen.
            if open && !holds.swap(&hold, &hold.then(HoldState::Ending))? {
                continue;
            }
            for stake in &scan.stakes {
                if stake.kind == Kind::Acquire && stake.term == Some(term) {
                    holds.remove(stake);
                }
            }
            return Ok((term, lease));
        }
    }

    /// `lock release`. Answers the register as it was left.
    pub fn release_as_told(&self, holds: &Holds<'_>) -> Result<State, LockError> {
        let (term, lease) = self.end_as_told(holds)?;
        let seen = retry::release(self.seams, lease).map_err(|failed| failed.error)?;
        holds.released(term, &seen)?;
        Ok(seen)
    }

    /// `lock transfer`. Answers the register as it was left.
    pub fn transfer_as_told(
        &self,
        holds: &Holds<'_>,
        to: &Waiter,
        lease_ms: u64,
        reason: &str,
    ) -> Result<State, LockError> {
        let (term, lease) = self.end_as_told(holds)?;
        let moved = lease.transfer(to, lease_ms, reason).map_err(|failed| failed.error)?;
        // It answers only when the register showed the transfer itself.
        holds.settle(term, HoldState::Released)?;
        Ok(moved)
    }
}
