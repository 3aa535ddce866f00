//! What becomes of a session's hold when one of its own commands renames or removes
//! the worktree: with success it is over, and a failure must not cost it.

use super::files::Holds;
use super::give_back::nobody_relies;
use super::name::HoldState;
use super::refusal::{GiveBackError, HoldError};
use super::stake::{Stake, StakeKind};
use crate::error::RegisterError;
use crate::locks::Locks;
use crate::register::ReadError;
use crate::state::State;
use jvs_repo::id::OpNonce;
use jvs_repo::term::Term;

/// What a session held of a worktree before one of its commands retired it.
#[derive(Debug, Clone)]
pub struct HeldBefore {
    /// The hold.
    pub term: Term,
    /// The length of its lease.
    pub lease_ms: u64,
    /// For whom: every `lock acquire` that was answered and lives.
    pub stakes: Vec<Stake>,
}

impl Locks<'_> {
    /// What the session holds of a worktree that is to be retired; `None` if nothing.
    /// Refused while commands rely on it: they would write into files that go away.
    pub fn held_before_retiring(
        &self,
        holds: &Holds<'_>,
    ) -> Result<Option<HeldBefore>, GiveBackError> {
        let state = match self.register(holds.worktree()).read() {
            Ok(state) => state,
            // There is nothing to be held; a process that retires it says what is wrong.
            Err(ReadError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(RegisterError::from(error).into()),
        };
        let Some(claim) = self.claim_of_mine(&state) else { return Ok(None) };
        let (term, scan) = (state.term(), holds.scan()?);
        nobody_relies(holds, term, &scan)?;
        let alive = holds.alive(&scan);
        let explicit =
            |stake: &&&Stake| stake.kind == StakeKind::Acquire && stake.term == Some(term);
        let stakes = alive.iter().filter(explicit).map(|stake| **stake).collect();
        Ok(Some(HeldBefore { term, lease_ms: claim.lease_ms, stakes }))
    }

    /// Does the session hold it still, after that failed? If not, its hold is over by
    /// its own doing: nobody took it.
    pub fn holds_after_failing(
        &self,
        holds: &Holds<'_>,
        before: &HeldBefore,
    ) -> Result<bool, GiveBackError> {
        let state = self.register(holds.worktree()).read().map_err(RegisterError::from)?;
        if state.term() == before.term && self.claim_of_mine(&state).is_some() {
            return Ok(true);
        }
        holds.ended_by_us(before.term)?;
        Ok(false)
    }

    fn claim_of_mine(&self, state: &State) -> Option<crate::state::Claim> {
        let me = self.session.nonce();
        let claim = *state.hold.claim()?;
        state.is_held_by(state.term(), me).then_some(claim)
    }
}

impl Holds<'_> {
    fn ended_by_us(&self, term: Term) -> Result<(), HoldError> {
        let mut rounds = 0;
        while let Some(hold) = self.peek()? {
            self.again(&mut rounds)?;
            let is_over = hold.term != term || hold.state == HoldState::Released;
            if is_over || self.swap(&hold, &hold.then(HoldState::Released))? {
                break;
            }
        }
        Ok(())
    }

    /// Puts the stakes of a hold that is over into `term`, which was taken in its place.
    pub fn carry_over(&self, before: &HeldBefore, term: Term) -> Result<(), HoldError> {
        for old in &before.stakes {
            let id = OpNonce::random(self.seams.entropy);
            let mut new = Stake { id, term: Some(term), ..*old };
            self.place(&new)?;
            self.answered(&mut new)?;
            self.remove(old);
        }
        Ok(())
    }
}
