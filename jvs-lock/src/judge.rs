//! Is a lock expired, and may it be stolen? Pure: every clock reading and every
//! piece of evidence is handed in.

use std::fmt;

use jvs_repo::clock::{BootId, BootMs, Discipline, Reading, WallMs};
use jvs_repo::config::LockPolicy;
use serde::Serialize;

use crate::mutation::Rule;
use crate::record::Record;
use crate::span::Span;
use crate::state::{Claim, State};

/// How a claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Its lease runs.
    Live,
    /// Its lease is over, but the margin for clocks and grace is not.
    Expired,
    /// Whoever comes may take it.
    Stealable,
}

/// By which clock that was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The holder runs on this boot of this host: its boot-time clock is ours.
    SameBoot,
    /// The wall clocks of two hosts.
    WallClock,
    /// The register's name did not change for a whole lease on our own clock.
    Observed,
}

/// A reason to doubt that two wall clocks agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Evidence {
    /// The record says it was renewed in our future.
    RenewedInTheFuture {
        /// By how much.
        by_ms: u64,
    },
    /// A renewal that we watched happen carries a time outside our two reads.
    OutsideBracket {
        /// By how much.
        by_ms: u64,
    },
    /// Between two renewals the holder's wall clock and boot-time clock went
    /// different ways: its wall clock was set.
    HolderClockSet {
        /// By how much.
        by_ms: u64,
    },
    /// The kernel says that nothing steers our own wall clock. Not a measure.
    Unsynchronised,
}

impl Evidence {
    /// The skew that this proves, at least.
    pub const fn lower_bound_ms(&self) -> u64 {
        match self {
            Evidence::RenewedInTheFuture { by_ms }
            | Evidence::OutsideBracket { by_ms }
            | Evidence::HolderClockSet { by_ms } => *by_ms,
            Evidence::Unsynchronised => 0,
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::RenewedInTheFuture { by_ms } => {
                write!(f, "the holder renewed {} in this host's future", Span(*by_ms))
            }
            Evidence::OutsideBracket { by_ms } => {
                write!(f, "a renewal seen from here carries a time that is off by {}", Span(*by_ms))
            }
            Evidence::HolderClockSet { by_ms } => write!(
                f,
                "the holder's wall clock was set by {} since it acquired the lock",
                Span(*by_ms)
            ),
            Evidence::Unsynchronised => {
                write!(f, "the kernel says that nothing steers this host's clock")
            }
        }
    }
}

/// What was found out about a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// How it stands.
    pub standing: Standing,
    /// By which clock.
    pub method: Method,
    /// Until the lease ends.
    pub remaining_ms: u64,
    /// Until it becomes stealable, if nothing changes.
    pub stealable_in_ms: u64,
    /// The largest skew that the evidence proves.
    pub observed_skew_ms: u64,
    /// The evidence.
    pub evidence: Vec<Evidence>,
}

/// Everything a judgement rests on.
#[derive(Clone, Copy)]
pub struct Facts<'f> {
    /// The register.
    pub state: &'f State,
    /// The record, if one could be read.
    pub record: Option<&'f Record>,
    /// Our clocks.
    pub now: Reading,
    /// Our boot.
    pub boot_id: &'f BootId,
    /// What the kernel says of our wall clock.
    pub discipline: Discipline,
    /// What we saw while watching, if we watched.
    pub watch: Option<&'f Watch>,
    /// The repository's policy.
    pub policy: &'f LockPolicy,
}

/// Judges the claim of the register's state; `None` if it has none.
pub fn judge(facts: Facts<'_>) -> Option<Judgement> {
    let claim = facts.state.hold.claim()?;
    let record = facts.record.filter(|record| record.is_of(facts.state));
    let evidence = evidence(&facts, record);
    let observed_skew_ms = evidence.iter().map(Evidence::lower_bound_ms).max().unwrap_or(0);
    let (method, since_end_ms) = time_since_end(&facts, claim, record);
    let grace = facts.policy.steal_grace_ms;
    let skew = if Rule::SkewInStealMargin.holds() { facts.policy.max_clock_skew_ms } else { 0 };
    let margin = i128::from(skew) + i128::from(grace);
    let until_end = u64::try_from(-since_end_ms).unwrap_or(0);
    // Watching proves idleness without any wall clock: a holder that believes
    // has renewed, and a renewal changes the name.
    let watched_ms = facts.watch.and_then(|watch| watch.unchanged_for(facts.state, facts.now.boot));
    if watched_ms.is_some_and(|ms| ms >= claim.lease_ms.saturating_add(grace)) {
        return Some(Judgement {
            standing: Standing::Stealable,
            method: Method::Observed,
            remaining_ms: until_end,
            stealable_in_ms: 0,
            observed_skew_ms,
            evidence,
        });
    }
    let standing = if since_end_ms <= 0 {
        Standing::Live
    } else if since_end_ms <= margin {
        Standing::Expired
    } else {
        Standing::Stealable
    };
    let stealable_in_ms = match standing {
        Standing::Stealable => 0,
        _ => u64::try_from(margin - since_end_ms + 1).unwrap_or(0),
    };
    Some(Judgement {
        standing,
        method,
        remaining_ms: until_end,
        stealable_in_ms,
        observed_skew_ms,
        evidence,
    })
}

/// Milliseconds since the lease ended; negative while it runs.
fn time_since_end(facts: &Facts<'_>, claim: &Claim, record: Option<&Record>) -> (Method, i128) {
    if let Some(record) = record
        && record.is_current(facts.state)
        && record.boot_id == *facts.boot_id
        && record.renewed_boot_ms <= facts.now.boot
    {
        let end = record.renewed_boot_ms.plus(claim.lease_ms);
        return (Method::SameBoot, i128::from(facts.now.boot.0) - i128::from(end.0));
    }
    (Method::WallClock, i128::from(facts.now.wall.0) - i128::from(claim.expires.0))
}

fn evidence(facts: &Facts<'_>, record: Option<&Record>) -> Vec<Evidence> {
    let mut found = Vec::new();
    let same_boot = record.is_some_and(|record| record.boot_id == *facts.boot_id);
    if let Some(record) = record {
        if !same_boot
            && let Some(renewed) = record.last_renewed()
            && renewed > facts.now.wall
        {
            found.push(Evidence::RenewedInTheFuture { by_ms: renewed.since(facts.now.wall) });
        }
        if let (Some(created), Some(renewed)) = (record.created(), record.last_renewed()) {
            let wall = i128::from(renewed.0) - i128::from(created.0);
            let boot = i128::from(record.renewed_boot_ms.0) - i128::from(record.created_boot_ms.0);
            let by_ms = u64::try_from((wall - boot).abs()).unwrap_or(u64::MAX);
            // Readings are cut to whole milliseconds, so one or two prove nothing.
            // A reading of zero stands for a boot before the present one.
            if by_ms > 2 && !same_boot && record.created_boot_ms.0 > 0 {
                found.push(Evidence::HolderClockSet { by_ms });
            }
        }
    }
    if let Some(by_ms) = facts.watch.map(|watch| watch.outside_bracket_ms).filter(|ms| *ms > 0) {
        found.push(Evidence::OutsideBracket { by_ms });
    }
    if facts.discipline == Discipline::Unsynchronised {
        found.push(Evidence::Unsynchronised);
    }
    found
}

/// What a waiter learns by looking at the register again and again.
#[derive(Debug, Clone)]
pub struct Watch {
    state: State,
    since: BootMs,
    last_look: Reading,
    outside_bracket_ms: u64,
}

impl Watch {
    /// Starts watching at `state`, read at or after `before`, and surely by `after`.
    ///
    /// The watch counts from `after`: the name was there when READ answered,
    /// not when it was asked.
    pub fn start(state: State, before: Reading, after: Reading) -> Self {
        Watch { state, since: after.boot, last_look: before, outside_bracket_ms: 0 }
    }

    /// Takes in another READ, made between `before` and `after`.
    pub fn look(&mut self, state: State, before: Reading, after: Reading) {
        if state != self.state {
            let same_holder = state.token == self.state.token
                && state.epoch == self.state.epoch
                && state.holder().is_some();
            if let (true, Some(claim), Some(old)) =
                (same_holder, state.hold.claim(), self.state.hold.claim())
                && claim.expires > old.expires
            {
                let renewed = WallMs(claim.expires.0.saturating_sub(claim.lease_ms));
                let early = self.last_look.wall.since(renewed);
                let late = renewed.since(after.wall);
                self.outside_bracket_ms = self.outside_bracket_ms.max(early).max(late);
            }
            self.state = state;
            self.since = after.boot;
        }
        self.last_look = before;
    }

    /// How long `state` has been seen unchanged; `None` if it is not what was seen.
    pub fn unchanged_for(&self, state: &State, now: BootMs) -> Option<u64> {
        (self.state == *state).then(|| now.since(self.since))
    }
}

#[cfg(test)]
mod tests;
