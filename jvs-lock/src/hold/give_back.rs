//! How a lock is released: by the last who leaves, by the process that keeps it, or
//! because somebody says so.

use super::admit::relying;
use super::end::{Cause, Ending};
use super::files::{Holds, Scan};
use super::name::HoldState;
use super::refusal::{GiveBackError, Refused, Relied};
use super::rule::HoldRule;
use super::stake::{Stake, StakeKind};
use crate::error::LeaseError;
use crate::lease::{Lease, Ticket};
use crate::locks::Locks;
use crate::queue::Waiter;
use crate::retry;
use crate::state::State;
use jvs_repo::sabotage;
use jvs_repo::term::Term;

/// What became of a hold that somebody left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaveOutcome {
    /// It was released.
    Back(Cause),
    /// Others of the session still need it.
    Kept(Vec<Stake>),
    /// It was over already.
    Over,
}

/// Refuses, naming them, if commands of the session rely on the hold `term`.
pub(super) fn nobody_relies(holds: &Holds<'_>, term: Term, scan: &Scan) -> Result<(), Relied> {
    sabotage!(HoldRule::ReleaseAsksTheOthers => Ok(()));
    let alive = holds.alive(scan);
    let relying = relying(term, &alive);
    if relying.is_empty() {
        return Ok(());
    }
    let (worktree, by) = (holds.worktree().clone(), holds.told(&relying));
    Err(Relied { worktree, refused: Refused::GiveBack, by })
}

impl<'r> Locks<'r> {
    /// Leaves a hold: takes the stake back, and releases the lock if it was the
    /// last one.
    pub fn leave(&self, holds: &Holds<'_>, stake: &Stake) -> Result<LeaveOutcome, GiveBackError> {
        holds.remove(stake);
        match stake.term {
            Some(term) => self.give_back_unneeded(holds, term),
            None => Ok(LeaveOutcome::Over),
        }
    }

    /// Gives the hold `term` back if no live stake carries its token. What a keeper
    /// does when it thinks that its time has come.
    pub fn give_back_unneeded(
        &self,
        holds: &Holds<'_>,
        term: Term,
    ) -> Result<LeaveOutcome, GiveBackError> {
        match holds.end(term)? {
            Ending::Needed(by) => Ok(LeaveOutcome::Kept(by)),
            Ending::Over => Ok(LeaveOutcome::Over),
            Ending::Ends(cause) => {
                let scan = holds.scan()?;
                let confirmed = self.release_ending(holds, term, cause)?;
                holds.sweep(&scan, term, confirmed);
                Ok(LeaveOutcome::Back(cause))
            }
        }
    }

    /// Releases the hold `term`, which is *released* then, if the register confirmed that.
    /// Answers whether it did.
    fn release_ending(
        &self,
        holds: &Holds<'_>,
        term: Term,
        cause: Cause,
    ) -> Result<bool, GiveBackError> {
        sabotage!(HoldRule::OnlyConfirmedIsReleased => {
            super::sabotage::remember_then_release(self, holds, term, cause)
        });
        match self.release_until_unseen(holds, term)? {
            Some(seen) => Ok(holds.released(term, &seen, cause)?),
            None => Ok(false),
        }
    }

    /// Releases by CAS until READ no longer shows the hold `term`. Answers what it shows;
    /// `None` if that is another's.
    pub(super) fn release_until_unseen(
        &self,
        holds: &Holds<'_>,
        term: Term,
    ) -> Result<Option<State>, GiveBackError> {
        let worktree = holds.worktree();
        let ticket = Ticket { worktree: worktree.clone(), term };
        match self.resume(worktree, Some(&ticket)) {
            Ok(lease) => {
                let seen = retry::release(self.seams, lease).map_err(|failed| failed.error)?;
                Ok(Some(seen))
            }
            // Somebody else's doing, or another process of the session was first.
            Err(LeaseError::NotHeld { view }) => Ok(Some(view.state)),
            Err(LeaseError::Fenced { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The session is done with its hold: what it asked for beforehand keeps that no more, and
    /// the last command that relies on it releases the lock.
    pub fn let_go(&self, holds: &Holds<'_>) -> Result<LeaveOutcome, GiveBackError> {
        let term = self.resume(holds.worktree(), None)?.term();
        for stake in &holds.scan()?.stakes {
            let promised = stake.kind == StakeKind::Acquire && stake.answered;
            if promised && stake.term == Some(term) {
                holds.remove(stake);
            }
        }
        // They may have ended meanwhile.
        self.give_back_unneeded(holds, term)
    }

    /// Would [`Locks::release_as_told`] be refused now, because commands rely on it?
    /// Changes nothing, and promises nothing.
    pub fn may_release(&self, holds: &Holds<'_>) -> Result<(), GiveBackError> {
        let lease = self.resume(holds.worktree(), None)?;
        let term = lease.term();
        Ok(nobody_relies(holds, term, &holds.scan()?)?)
    }

    /// Ends the hold `meant` because somebody says so: that one and no later one, which
    /// the session may have by now. Refused while commands rely on it; answers the hold
    /// and its lease, with which the register is then moved. `resumed` is that of a READ just
    /// made, if there was one: the hold is looked at after it, as after any other.
    fn end_as_told(
        &self,
        holds: &Holds<'_>,
        meant: &Ticket,
        mut resumed: Option<Lease<'r>>,
    ) -> Result<(Term, Lease<'r>), GiveBackError> {
        let mut rounds = 0;
        loop {
            holds.again(&mut rounds)?;
            let lease = match resumed.take() {
                Some(lease) => lease,
                None => self.resume_meant(holds, meant)?,
            };
            let term = lease.term();
            let hold = holds.look()?;
            let scan = holds.scan()?;
            nobody_relies(holds, term, &scan)?;
            let open = hold.term == term && hold.state == HoldState::Open;
            // A term that is not open is nobody's: a process that took it and lives was seen.
            if open && !holds.swap(&hold, &hold.then(HoldState::Ending))? {
                continue;
            }
            for stake in &scan.stakes {
                if stake.kind == StakeKind::Acquire && stake.term == Some(term) {
                    holds.remove(stake);
                }
            }
            return Ok((term, lease));
        }
    }

    /// The hold `meant`, and no other that the session may have by now.
    fn resume_meant(&self, holds: &Holds<'_>, meant: &Ticket) -> Result<Lease<'r>, LeaseError> {
        sabotage!(HoldRule::BoundToItsHold => self.resume(holds.worktree(), None));
        self.resume(holds.worktree(), Some(meant))
    }

    /// `lock release` of the hold `meant`. Answers the register as it was left.
    pub fn release_as_told(
        &self,
        holds: &Holds<'_>,
        meant: &Ticket,
    ) -> Result<State, GiveBackError> {
        self.end_and_release(holds, meant, None)
    }

    /// The same of the hold that was just resumed, with that very lease.
    pub fn release_resumed(
        &self,
        holds: &Holds<'_>,
        lease: Lease<'r>,
    ) -> Result<State, GiveBackError> {
        self.end_and_release(holds, &lease.ticket(), Some(lease))
    }

    fn end_and_release(
        &self,
        holds: &Holds<'_>,
        meant: &Ticket,
        resumed: Option<Lease<'r>>,
    ) -> Result<State, GiveBackError> {
        let (term, lease) = self.end_as_told(holds, meant, resumed)?;
        let seen = retry::release(self.seams, lease).map_err(|failed| failed.error)?;
        holds.released(term, &seen, Cause::Unneeded)?;
        Ok(seen)
    }

    /// `lock transfer` of the hold `meant`. Answers the register as it was left.
    pub fn transfer_as_told(
        &self,
        holds: &Holds<'_>,
        meant: &Ticket,
        to: &Waiter,
        lease_ms: u64,
        reason: &str,
    ) -> Result<State, GiveBackError> {
        let (term, lease) = self.end_as_told(holds, meant, None)?;
        let moved = lease.transfer(to, lease_ms, reason).map_err(|failed| failed.error)?;
        // It answers only when the register showed the transfer itself.
        holds.settle(term, HoldState::Ending, HoldState::Released)?;
        Ok(moved)
    }
}
