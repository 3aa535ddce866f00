//! How a hold ends: when no live stake carries its token, and not before.

use super::files::Holds;
use super::name::{HoldState, Term};
use super::rule::Rule;
use super::stake::{Kind, Stake};
use crate::error::LockError;
use crate::state::{Hold, State};

/// What came of trying to end a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It is ending: whoever sees this gives the lock back.
    Ends,
    /// These still need it.
    Needed(Vec<Stake>),
    /// It is another hold by now, or it is over already.
    Over,
}

impl Holds<'_> {
    /// Ends the hold `term` unless a live stake carries its token.
    pub fn end(&self, term: Term) -> Result<Ending, LockError> {
        let mut rounds = 0;
        loop {
            self.again(&mut rounds)?;
            let hold = self.look()?;
            if hold.term != term {
                return Ok(Ending::Over);
            }
            match hold.state {
                HoldState::Ending => return Ok(Ending::Ends),
                HoldState::Released | HoldState::Lost => return Ok(Ending::Over),
                HoldState::Open => {}
            }
            let scan = self.scan()?;
            let needed: Vec<Stake> = self
                .alive(&scan)
                .into_iter()
                .filter(|stake| stake.term == Some(term))
                .copied()
                .collect();
            if !needed.is_empty() && Rule::StakesKeepAHold.holds() {
                return Ok(Ending::Needed(needed));
            }
            // Whoever joined since has moved the name, and this fails.
            if self.swap(&hold, &hold.then(HoldState::Ending))? {
                return Ok(Ending::Ends);
            }
        }
    }

    /// Does another live stake carry the token that `stake` had?
    pub fn is_needed(&self, stake: &Stake) -> Result<bool, LockError> {
        let scan = self.scan()?;
        let alive = self.alive(&scan);
        let needs = |it: &&&Stake| it.term == stake.term && it.id != stake.id;
        Ok(alive.iter().filter(needs).any(|it| it.kind != Kind::Guard))
    }

    /// The register confirmed that the hold `term` was given back: it shows *free*
    /// under the same token. Anything else says nothing of who ended it.
    pub fn released(&self, term: Term, seen: &State) -> Result<(), LockError> {
        let confirmed = Term::of(seen) == term && seen.hold == Hold::Free;
        if confirmed || !Rule::OnlyConfirmedIsReleased.holds() {
            self.settle(term, HoldState::Released)?;
        }
        Ok(())
    }

    /// The register showed another term than the open hold `term`: nobody may join
    /// it any more.
    pub fn lost(&self, term: Term) -> Result<(), LockError> {
        if Rule::FinderMarksTheLoss.holds() {
            self.settle(term, HoldState::Lost)?;
        }
        Ok(())
    }

    /// Moves the hold `term` from the state that comes before `to`, if it is there.
    pub(super) fn settle(&self, term: Term, to: HoldState) -> Result<(), LockError> {
        let from = match to {
            HoldState::Released => HoldState::Ending,
            _ => HoldState::Open,
        };
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
