//! How a hold ends: when no live stake carries its token, and not before.

use super::files::{Holds, Scan};
use super::name::HoldState;
use super::refusal::HoldError;
use super::rule::HoldRule;
use super::stake::{Stake, StakeKind};
use crate::state::{Hold, State};
use jvs_repo::sabotage;
use jvs_repo::term::Term;

/// What came of trying to end a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It is ending: a process that sees this releases the lock.
    Ends(Cause),
    /// These still need it.
    Needed(Vec<Stake>),
    /// It is another hold by now, or it is over already.
    Over,
}

/// Why a hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Those who needed it have left.
    Unneeded,
    /// Somebody asked for it for a time, which is over. Nobody of the session said
    /// that it is done, so whatever others do from now on happens behind its back.
    RanOut,
}

impl Holds<'_> {
    /// Ends the hold `term` unless a live stake carries its token.
    pub fn end(&self, term: Term) -> Result<Ending, HoldError> {
        let mut rounds = 0;
        loop {
            self.again(&mut rounds)?;
            let hold = self.look()?;
            if hold.term != term {
                return Ok(Ending::Over);
            }
            if matches!(hold.state, HoldState::Released | HoldState::Lost) {
                return Ok(Ending::Over);
            }
            let scan = self.scan()?;
            let cause = self.cause(term, &scan);
            if hold.state == HoldState::Ending {
                return Ok(Ending::Ends(cause));
            }
            let needed = self.needing(term, &scan);
            if !needed.is_empty() {
                return Ok(Ending::Needed(needed));
            }
            // A process that joined since has moved the name, and this fails.
            if self.swap(&hold, &hold.then(HoldState::Ending))? {
                return Ok(Ending::Ends(cause));
            }
        }
    }

    /// The live stakes that carry the token of the hold `term`.
    fn needing(&self, term: Term, scan: &Scan) -> Vec<Stake> {
        sabotage!(HoldRule::StakesKeepAHold => Vec::new());
        let alive = self.alive(scan).into_iter();
        alive.filter(|stake| stake.term == Some(term)).copied().collect()
    }

    /// Why the hold `term` ends, seeing its stakes.
    fn cause(&self, term: Term, scan: &Scan) -> Cause {
        sabotage!(HoldRule::TimeIsNoWord => Cause::Unneeded);
        let here = self.here();
        let ran_out = |stake: &Stake| stake.term == Some(term) && stake.has_run_out(here);
        match scan.stakes.iter().any(ran_out) {
            true => Cause::RanOut,
            false => Cause::Unneeded,
        }
    }

    /// Does another live stake carry the token that `stake` had?
    pub fn is_needed(&self, stake: &Stake) -> Result<bool, HoldError> {
        let scan = self.scan()?;
        let alive = self.alive(&scan);
        let needs = |it: &&&Stake| it.term == stake.term && it.id != stake.id;
        Ok(alive.iter().filter(needs).any(|it| it.kind != StakeKind::Guard))
    }

    /// Does anything rest on this holder's hold in `state`? `None` if it has no files
    /// here: what cannot be seen is not dead.
    pub fn is_relied_on(&self, state: &State) -> Option<bool> {
        self.peek().ok()??;
        let scan = self.scan().ok()?;
        let rests = |stake: &&&Stake| stake.term.is_none_or(|term| term == state.term());
        Some(self.alive(&scan).iter().any(|stake| rests(&stake)))
    }

    /// Remembers that the hold `term` was released, if the register confirmed it.
    /// Answers whether it did.
    pub fn released(&self, term: Term, seen: &State, cause: Cause) -> Result<bool, HoldError> {
        let confirmed = is_confirmed(term, seen);
        if confirmed {
            let state = match cause {
                Cause::Unneeded => HoldState::Released,
                // As one that was taken: the session is asked once others had it.
                Cause::RanOut => HoldState::Lost,
            };
            self.settle(term, HoldState::Ending, state)?;
        }
        Ok(confirmed)
    }

    /// The register showed another term than the open hold `term`: nobody may join
    /// it any more.
    pub fn lost(&self, term: Term) -> Result<(), HoldError> {
        sabotage!(HoldRule::FinderMarksTheLoss => Ok(()));
        self.settle(term, HoldState::Open, HoldState::Lost)
    }

    /// Moves the hold `term` from one state to another, if it is there.
    pub(super) fn settle(
        &self,
        term: Term,
        from: HoldState,
        to: HoldState,
    ) -> Result<(), HoldError> {
        let mut rounds = 0;
        loop {
            self.again(&mut rounds)?;
            let hold = self.look()?;
            if hold.term != term || hold.state != from || self.swap(&hold, &hold.then(to))? {
                return Ok(());
            }
        }
    }
}

/// Did the register confirm that the hold `term` was released? It shows *free* under the
/// same token; anything else says nothing of who ended it.
fn is_confirmed(term: Term, seen: &State) -> bool {
    sabotage!(HoldRule::OnlyConfirmedIsReleased => true);
    seen.term() == term && seen.hold == Hold::Free
}
