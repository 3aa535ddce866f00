//! Is a lock expired, and may it be stolen? Pure: every clock reading and every
//! piece of evidence is handed in.

use std::fmt;

use jvs_repo::clock::{BootClock, BootMs, Discipline, Reading, WallMs};
use jvs_repo::config::LockPolicy;
use jvs_repo::sabotage;
use serde::Serialize;

use crate::mutation::Rule;
use crate::record::{Meaning, Record};
use crate::span::Span;
use crate::state::{Claim, Hold, State};

/// How a claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Its lease runs.
    Live,
    /// Its lease is over, but the margin for clocks and grace is not.
    Expired,
    /// Anyone may take it.
    Stealable,
}

/// By which clock that was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The holder's boot-time clock seems to be ours, but its wall clock was not:
    /// ours was set since, or the holder runs on a copy of this machine.
    ClocksParted {
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
            | Evidence::HolderClockSet { by_ms }
            | Evidence::ClocksParted { by_ms } => *by_ms,
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
            Evidence::ClocksParted { by_ms } => write!(
                f,
                "this host's wall clock was set by {} since the holder renewed, or the holder \
                 runs on a copy of this machine",
                Span(*by_ms)
            ),
            Evidence::Unsynchronised => {
                write!(f, "according to the kernel, nothing synchronises this host's clock")
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
    /// Until it may be taken, if nothing changes and somebody watches.
    pub stealable_in_ms: u64,
    /// For how much longer the register must be seen unchanged before the wall
    /// clocks' word counts. Zero if they are not asked, or do not say that it is
    /// over.
    pub watch_ms: u64,
    /// Nobody renews it, by its holder's own word: watching it proves nothing.
    pub nobody_renews: bool,
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
    /// Which boot-time clock ours is.
    pub clock: &'f BootClock,
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
    let steered = steered(&facts, method);
    let skew = allowed_skew_ms(facts.policy).max(steered.unwrap_or(0));
    let margin = i128::from(skew) + i128::from(grace);
    let until_end = u64::try_from(-since_end_ms).unwrap_or(0);
    let needed_ms = watch_needed_ms(&facts, claim, record);
    let watched_ms = facts.watch.and_then(|watch| watch.unchanged_for(facts.state, facts.now.boot));
    let judged = |standing, method, stealable_in_ms, watch_ms| Judgement {
        standing,
        method,
        remaining_ms: until_end,
        stealable_in_ms,
        watch_ms,
        nobody_renews: needed_ms.is_none() && matches!(facts.state.hold, Hold::Held(_)),
        observed_skew_ms,
        evidence: evidence.clone(),
    };
    // Watching proves idleness without any wall clock: a holder that believes
    // has renewed, and a renewal changes the name.
    if watched_ms.is_some_and(|ms| ms >= claim.lease_ms.saturating_add(grace)) {
        return Some(judged(Standing::Stealable, Method::Observed, 0, 0));
    }
    let standing = if since_end_ms <= 0 {
        Standing::Live
    } else if since_end_ms <= margin || steered.is_none() {
        Standing::Expired
    } else {
        Standing::Stealable
    };
    let over_in_ms = match standing {
        Standing::Stealable => 0,
        _ if steered.is_none() => {
            claim.lease_ms.saturating_add(grace).saturating_sub(watched_ms.unwrap_or(0))
        }
        _ => u64::try_from(margin - since_end_ms + 1).unwrap_or(0),
    };
    let unseen_ms = match (method, needed_ms) {
        (Method::WallClock, Some(needed)) => needed.saturating_sub(watched_ms.unwrap_or(0)),
        _ => 0,
    };
    let watch_ms = if standing == Standing::Stealable { unseen_ms } else { 0 };
    Some(judged(standing, method, over_in_ms.max(watch_ms), watch_ms))
}

/// By how much two wall clocks may differ: nobody steals before that is over, too.
fn allowed_skew_ms(policy: &LockPolicy) -> u64 {
    sabotage!(Rule::SkewInStealMargin => 0);
    policy.max_clock_skew_ms
}

/// By how much our wall clock may be wrong, by the kernel's word, where that is asked:
/// of a freeze that is judged by wall clocks. `None` if nothing vouches for our clock.
///
/// A freeze is renewed by nobody, so no watching shows that a clock which is fast calls
/// it over too early. But a clock that somebody sets is one that the kernel says nothing
/// steers, until something steers it again, and right.
fn steered(facts: &Facts<'_>, method: Method) -> Option<u64> {
    sabotage!(Rule::FreezeEndsBySteeredClock => Some(0));
    let asked = matches!(facts.state.hold, Hold::Frozen(_)) && method == Method::WallClock;
    match facts.discipline {
        _ if !asked => Some(0),
        Discipline::Synchronised { max_error_ms } => Some(max_error_ms),
        Discipline::Unsynchronised | Discipline::Unknown => None,
    }
}

/// Milliseconds since the lease ended; negative while it runs.
fn time_since_end(facts: &Facts<'_>, claim: &Claim, record: Option<&Record>) -> (Method, i128) {
    let by_wall = i128::from(facts.now.wall.0) - i128::from(claim.expires.0);
    let Some(record) = record
        .filter(|record| record.is_current(facts.state) && is_our_clock(facts, record))
        .filter(|record| record.renewed_boot_ms <= facts.now.boot)
    else {
        return (Method::WallClock, by_wall);
    };
    // The length is the record's, too, or it would not be current.
    let end = record.renewed_boot_ms.plus(claim.lease_ms);
    let by_boot = i128::from(facts.now.boot.0) - i128::from(end.0);
    match parted_ms(facts, record) {
        None => (Method::SameBoot, by_boot),
        // One of the two is wrong: whichever says that it runs is believed.
        Some(_) => (Method::WallClock, by_wall.min(by_boot)),
    }
}

/// Are the record's boot-time readings of our clock, as far as ids tell?
fn is_our_clock(facts: &Facts<'_>, record: &Record) -> bool {
    sabotage!(Rule::OneBootTimeClock => facts.clock.boot_id == record.boot_id);
    facts.clock.is(&record.boot_id, record.time_namespace)
}

/// By how much the two clocks of the record went another way than ours, if that
/// is more than clocks may differ: then the ids lie, or a wall clock was set.
fn parted_ms(facts: &Facts<'_>, record: &Record) -> Option<u64> {
    sabotage!(Rule::ClocksGoTogether => None);
    facts.now.parted_ms(&record.renewed_at()?, facts.policy.max_clock_skew_ms)
}

/// For how long the register must be seen unchanged before a wall clock may say
/// that it is abandoned: its holder, if there is one, renews within that time.
/// `None` if nobody does, by the word of a record that is current: then only a
/// whole lease proves anything.
fn watch_needed_ms(facts: &Facts<'_>, claim: &Claim, record: Option<&Record>) -> Option<u64> {
    sabotage!(Rule::WatchedBeforeSteal => None);
    if !matches!(facts.state.hold, Hold::Held(_)) {
        return None;
    }
    let current = record.filter(|record| record.is_current(facts.state));
    let interval = match current.and_then(|record| Some((record, record.renews?))) {
        Some((_, false)) => return None,
        Some((record, true)) => record.renew_interval_ms.min(claim.lease_ms),
        // Nobody waits longer than that to renew.
        None => claim.lease_ms / 2,
    };
    Some(interval.saturating_add(facts.policy.steal_grace_ms))
}

fn evidence(facts: &Facts<'_>, record: Option<&Record>) -> Vec<Evidence> {
    let mut found = Vec::new();
    let ours = record.filter(|record| is_our_clock(facts, record));
    if let Some(by_ms) = ours.and_then(|record| parted_ms(facts, record)) {
        found.push(Evidence::ClocksParted { by_ms });
    }
    if let Some(record) = record.filter(|_| ours.is_none()) {
        if let Some(renewed) = record.last_renewed()
            && renewed > facts.now.wall
        {
            found.push(Evidence::RenewedInTheFuture { by_ms: renewed.since(facts.now.wall) });
        }
        if let (Some(created), Some(renewed)) = (record.created_reading(), record.renewed_at()) {
            let by_ms = renewed.drift_ms(&created);
            // Readings are cut to whole milliseconds, so one or two prove nothing.
            // A reading of zero stands for a boot before the present one.
            if by_ms > 2 && created.boot.0 > 0 {
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

/// A renewal's time is read before its rename is asked for, and a mount may take its
/// time: so much earlier than a look that it followed proves nothing.
const ISSUED_WITHIN_MS: u64 = 1_000;

/// What a waiter learns by looking at the register again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// Goes on with what an earlier process of this host saw: `state`, first at
    /// `since` and last at `last`, on clocks that are still ours.
    pub fn resumed(state: State, since: BootMs, last: Reading) -> Self {
        Watch { state, since, last_look: last, outside_bracket_ms: 0 }
    }

    /// What was last seen.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Since when it was seen so.
    pub fn since(&self) -> BootMs {
        self.since
    }

    /// A reading taken before the last look.
    pub fn last_look(&self) -> Reading {
        self.last_look
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
                let early = self.last_look.wall.since(renewed).saturating_sub(ISSUED_WITHIN_MS);
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
