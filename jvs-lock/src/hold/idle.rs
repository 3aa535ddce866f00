//! When a session without a terminal lets go of what it was promised by default: once
//! it has run no command for long enough. Pure.
//!
//! An agent that has crashed leaves a keeper that renews for as long as was asked for,
//! a day perhaps. Nothing ends with an agent as a terminal's lock ends with its
//! terminal; only its silence tells.

use jvs_repo::clock::BootMs;
use jvs_repo::term::Term;

use super::files::Scan;
use super::stake::{Stake, StakeKind};

/// Since when the session has been silent, as one keeper has seen it. On its own
/// boot-time clock: signs are only told from one another, whatever clock made them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence<S> {
    last: Option<S>,
    since: BootMs,
}

impl<S: PartialEq> Silence<S> {
    /// Beginning now: a process that started the keeper has just given a sign.
    pub fn begin(last: Option<S>, now: BootMs) -> Self {
        Silence { last, since: now }
    }

    /// One look: the last sign that there is, and the live stakes. A command that runs
    /// is a sign for as long as it does.
    pub fn look(&mut self, sign: Option<S>, alive: &[&Stake], now: BootMs) {
        let runs = alive.iter().any(|stake| stake.kind != StakeKind::Acquire || !stake.answered);
        if runs || sign != self.last {
            self.since = now;
        }
        self.last = sign;
    }

    /// When it has lasted for `ms`.
    pub fn lasts_until(&self, ms: u64) -> BootMs {
        self.since.plus(ms)
    }

    /// Has it lasted for `ms`?
    pub fn lasted(&self, ms: u64, now: BootMs) -> bool {
        now >= self.lasts_until(ms)
    }
}

/// Those of the live stakes in `term` that are over because the session is silent.
pub fn over<'s>(scan: &Scan, alive: &[&'s Stake], term: Term) -> Vec<&'s Stake> {
    let yields = |stake: &&&Stake| {
        let promised = stake.kind == StakeKind::Acquire && stake.answered;
        stake.term == Some(term) && promised && scan.yields(stake)
    };
    alive.iter().filter(yields).copied().collect()
}

#[cfg(test)]
mod tests {
    use jvs_repo::id::{FencingToken, OpNonce};

    use super::super::stake::{StakeEnd, Who};
    use super::*;

    fn term() -> Term {
        Term { epoch: "1-a3f0".parse().expect("an epoch"), token: FencingToken(7) }
    }

    fn stake(id: u8, kind: StakeKind) -> Stake {
        Stake {
            id: OpNonce([id; 8]),
            term: Some(term()),
            kind,
            exclusive: false,
            maker: Who { pid: 1, start: 1 },
            pid_namespace: None,
            time_namespace: None,
            over: StakeEnd::default(),
            answered: true,
        }
    }

    #[test]
    fn a_silence_ends_with_every_sign_and_with_a_command_that_runs() {
        let (lock, run) = (stake(1, StakeKind::Acquire), stake(2, StakeKind::Run));
        let mut silence = Silence::begin(Some(1), BootMs(0));
        silence.look(Some(1), &[&lock], BootMs(90));
        assert!(!silence.lasted(100, BootMs(99)) && silence.lasted(100, BootMs(100)));
        silence.look(Some(2), &[&lock], BootMs(100));
        assert!(!silence.lasted(100, BootMs(199)), "a command");
        silence.look(Some(2), &[&lock, &run], BootMs(190));
        assert!(!silence.lasted(100, BootMs(289)), "one that runs");
        silence.look(None, &[&lock], BootMs(280));
        assert!(!silence.lasted(100, BootMs(379)), "what cannot be seen is no silence");
        silence.look(None, &[&lock], BootMs(380));
        assert!(silence.lasted(100, BootMs(380)));
    }

    #[test]
    fn a_time_that_somebody_asked_for_is_not_cut_short() {
        let (by_default, asked_for) = (stake(1, StakeKind::Acquire), stake(2, StakeKind::Acquire));
        let asking = Stake { answered: false, ..stake(1, StakeKind::Acquire) };
        let elsewhere = Stake { term: None, ..by_default };
        let scan = Scan { yielding: vec![by_default.id], ..Scan::default() };
        let alive = [&by_default, &asked_for, &asking, &elsewhere];
        assert_eq!(over(&scan, &alive, term()), [&by_default]);
    }
}
