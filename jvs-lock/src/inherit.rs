//! Going on with what another process of the session was told: a keeper with what its
//! starter was.
//!
//! A process counts its belief from a reading of the boot-time clock before its own CAS. One
//! that goes on without a CAS believes no longer than the process whose CAS it was, and
//! only as long as the register is where that CAS left it.

use std::fmt;
use std::str::FromStr;

use jvs_repo::clock::{BootClock, BootMs};
use jvs_repo::id::strict_decimal;
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;

use crate::decide::{self, Bound};
use crate::error::LeaseError;
use crate::hold::rule::HoldRule;
use crate::lease::{Lease, Ticket};
use crate::locks::Locks;
use crate::state::State;

/// What a process was told of its hold by its own CAS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed {
    /// The register as the CAS left it.
    pub state: State,
    /// How long that may be believed.
    pub until: BootMs,
    /// The time namespace of the clock on which that is.
    pub time_namespace: Option<u64>,
}

impl Confirmed {
    /// May a process that has just READ `state` go on with it at `now`, on `clock`, without a
    /// CAS of its own? Only where nothing has happened since and the renewal that its
    /// starter owes, `every_ms` after the last, is not due yet. Pure.
    pub fn may_be_inherited(
        &self,
        state: &State,
        now: BootMs,
        clock: &BootClock,
        every_ms: u64,
    ) -> bool {
        let Some(claim) = self.state.hold.claim() else { return false };
        let began = BootMs(self.until.0.saturating_sub(claim.lease_ms));
        let same_clock = self.time_namespace == clock.time_namespace;
        same_clock && *state == self.state && began <= now && now < began.plus(every_ms)
    }

    /// How long who inherits it at `now` believes.
    fn believed_until(&self, now: BootMs) -> BootMs {
        sabotage!(HoldRule::InheritedAsConfirmed => {
            now.plus(self.state.hold.claim().map_or(0, |claim| claim.lease_ms))
        });
        let _ = now;
        self.until
    }
}

/// One word of a command line.
impl fmt::Display for Confirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.state, self.until.0)?;
        match self.time_namespace {
            Some(namespace) => write!(f, "{namespace}"),
            None => f.write_str("-"),
        }
    }
}

impl FromStr for Confirmed {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let [state, until, namespace] = word.split(':').collect::<Vec<_>>()[..] else {
                return None;
            };
            let time_namespace = match namespace {
                "-" => None,
                namespace => Some(strict_decimal(namespace)?),
            };
            let (state, until) = (state.parse().ok()?, BootMs(strict_decimal(until)?));
            Some(Confirmed { state, until, time_namespace })
        };
        parse().ok_or("expected STATE:UNTIL:CLOCK")
    }
}

impl<'r> Locks<'r> {
    /// Goes on with the hold of `ticket` as another process of the session was told of it:
    /// believing that for as long as that one may. `None` if it cannot be gone on with
    /// without a CAS; whoever then resumes it has the register confirm it.
    pub fn inherit(
        &self,
        worktree: &WorktreeName,
        ticket: &Ticket,
        confirmed: &Confirmed,
        every_ms: u64,
    ) -> Result<Option<Lease<'r>>, LeaseError> {
        let register = self.register(worktree);
        let state = register.read()?;
        let bound = Bound { term: ticket.term, holder: self.session.nonce() };
        if let Err(lost) = decide::renew(&state, bound, self.fresh_op()) {
            return Err(self.lost(worktree, &state, lost, bound.term.token));
        }
        let clock = self.seams.clock;
        let now = clock.now().boot;
        if !confirmed.may_be_inherited(&state, now, &clock.boot_clock(), every_ms) {
            return Ok(None);
        }
        let until = confirmed.believed_until(now);
        Ok(Some(Lease::inherited(self.clone(), register, state, until)?))
    }
}

#[cfg(test)]
mod tests {
    use jvs_repo::clock::BootId;

    use super::*;
    use crate::record::tests::granted;

    fn confirmed() -> Confirmed {
        let (state, _) = granted();
        Confirmed { state, until: BootMs(40_000), time_namespace: Some(7) }
    }

    #[test]
    fn only_what_is_as_it_was_confirmed_is_gone_on_with() {
        let it = confirmed();
        let clock = |time_namespace| BootClock { boot_id: BootId("boot".into()), time_namespace };
        let may = |state: &State, now, namespace| {
            it.may_be_inherited(state, BootMs(now), &clock(namespace), 10_000)
        };
        assert!(may(&it.state, 10_000, Some(7)) && may(&it.state, 19_999, Some(7)));
        assert!(!may(&it.state, 20_000, Some(7)), "a renewal is due");
        assert!(!may(&it.state, 9_999, Some(7)), "confirmed in the future");
        assert!(!may(&it.state, 10_000, Some(8)) && !may(&it.state, 10_000, None), "another clock");
        let moved = it.state.released(it.state.op);
        assert!(!may(&moved, 10_000, Some(7)), "another state");
        let free = Confirmed { state: moved, ..it };
        assert!(!free.may_be_inherited(&moved, BootMs(10_000), &clock(Some(7)), 10_000));
    }

    #[test]
    fn what_was_confirmed_is_one_word_with_one_spelling() {
        for it in [confirmed(), Confirmed { time_namespace: None, ..confirmed() }] {
            assert_eq!(it.to_string().parse(), Ok(it));
        }
        let word = confirmed().to_string();
        for wrong in ["", "x:1:2", &word[1..], &format!("{word}:"), &word.replace(":7", ":07")] {
            assert!(wrong.parse::<Confirmed>().is_err(), "{wrong}");
        }
    }
}
