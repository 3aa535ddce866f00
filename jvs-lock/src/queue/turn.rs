//! Whose turn it is. Pure: tickets, clock readings and what is known of
//! processes in, answer out.

use std::collections::HashMap;

use jvs_repo::clock::{BootId, BootMs, Clock, WallMs};
use jvs_repo::id::OpNonce;

use super::Lookup;
use super::waiter::{Fingerprint, Waiter};
use crate::liveness;
use crate::session::Session;

/// How often a waiter gives a sign of life.
pub const BEAT_MS: u64 = 5_000;
/// A waiter without a new sign for this long is passed over.
pub const SILENT_AFTER_MS: u64 = 3 * BEAT_MS;
/// How much longer each place further back waits between two looks.
const STEP_MS: u64 = 250;
/// Longest time between two looks of the first in line.
const FIRST_LOOKS_EVERY_MS: u64 = 500;
/// The shortest pause of one who saw what makes no sense.
const IN_DOUBT_MS: u64 = 20;
/// For how long the first in line only looks. The kernel takes its time to let go of a
/// watch (more than ten milliseconds in a line where everybody has one), and whoever has
/// got the lock would have to wait for that: so only those listen who wait for longer.
const LISTENS_AFTER_MS: u64 = 64;
/// How long its looks may take until it listens all the same: what takes its time is done
/// seldom, and a lock that was released meanwhile is then had later than a watch costs.
const LOOKS_MAY_TAKE_MS: u64 = 2;

/// Where the question is asked from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vantage {
    boot: Fingerprint,
    pid_namespace: Option<u64>,
}

impl Vantage {
    pub(super) fn of(session: &Session, clock: &dyn Clock) -> Self {
        let identity = session.identity();
        let boot = Fingerprint::of_clock(&identity.boot_id, clock.time_namespace());
        Vantage { boot, pid_namespace: identity.pid_namespace }
    }

    pub(super) fn at(here: liveness::Observer<'_>) -> Self {
        let boot = Fingerprint::of_clock(&here.clock.boot_id, here.clock.time_namespace);
        Vantage { boot, pid_namespace: here.pid_namespace }
    }

    /// Is the waiter's process there? `None` if that cannot be known from here.
    pub(super) fn sees(&self, waiter: &Waiter, lookup: Lookup<'_>) -> Option<bool> {
        self.shows(waiter).then(|| {
            lookup(waiter.pid)
                .is_some_and(|stat| stat.start_ticks == waiter.start_time && !stat.zombie)
        })
    }

    /// Can the waiter's process be seen from here?
    pub(super) fn shows(&self, waiter: &Waiter) -> bool {
        waiter.boot == self.boot
            && self.boot != Fingerprint::of_clock(&BootId(String::new()), None)
            && waiter.pid_namespace.is_some()
            && waiter.pid_namespace == self.pid_namespace
    }
}

/// Does the last sign of life look recent by wall clocks? A hint for those who
/// take one look only; a waiter in line watches instead.
pub(super) fn seems_fresh(waiter: &Waiter, now: WallMs) -> bool {
    now.since(waiter.beat).max(waiter.beat.since(now)) <= SILENT_AFTER_MS
}

/// What a waiter remembers of the others: when each last changed, on its own
/// boot-time clock. The same rule as for leases: a sign changes the name.
#[derive(Debug, Default)]
pub(super) struct Memory {
    seen: HashMap<OpNonce, (WallMs, BootMs)>,
}

impl Memory {
    /// Takes in a look at the line; forgets those who left.
    pub(super) fn look(&mut self, line: &[Waiter], now: BootMs) {
        self.seen.retain(|op, _| line.iter().any(|waiter| waiter.op == *op));
        for waiter in line {
            let known = self.seen.entry(waiter.op).or_insert((waiter.beat, now));
            if known.0 != waiter.beat {
                *known = (waiter.beat, now);
            }
        }
    }

    /// Has the waiter been silent for so long that it is passed over?
    pub(super) fn is_silent(&self, waiter: &Waiter, now: BootMs) -> bool {
        self.seen.get(&waiter.op).is_some_and(|(_, since)| now.since(*since) >= SILENT_AFTER_MS)
    }
}

/// How long to pause before the next look with `ahead` others in front. `since_ms` is for
/// how long the first in line has been the first; `jitter` is any number: it spreads those
/// who came at once.
///
/// The first looks after half of what it has waited for: a lock that is held for a moment
/// is had in another, and one that is held for long costs few looks. The others look the
/// less often the longer their wait will be, however fast the line moves: they are woken
/// when the one in front of them goes, and look only in case that they were not. 100
/// waiters together take about 40 looks and 20 signs of life a second.
pub fn pause_ms(ahead: usize, since_ms: u64, jitter: u8) -> u64 {
    if ahead == 0 {
        return (since_ms / 2).clamp(1, FIRST_LOOKS_EVERY_MS);
    }
    spread(STEP_MS.saturating_mul(ahead as u64).min(BEAT_MS), jitter)
}

/// Does the first in line listen, who has been the first for `since_ms` and spent `spent_ms`
/// of that looking?
pub(super) fn listens(since_ms: u64, spent_ms: u64) -> bool {
    since_ms >= LISTENS_AFTER_MS || spent_ms >= LOOKS_MAY_TAKE_MS
}

/// How long to pause after `looks` looks in a row that made no sense: once hardly, for what
/// was seen is gone by now, and then each time twice as long.
pub(super) fn doubtful_pause_ms(looks: u32, jitter: u8) -> u64 {
    if looks == 0 {
        return 1;
    }
    spread(IN_DOUBT_MS.saturating_mul(1 << looks.min(12)).min(FIRST_LOOKS_EVERY_MS), jitter)
}

/// Three quarters of it, and a random part of the rest.
fn spread(pause: u64, jitter: u8) -> u64 {
    pause - pause / 4 + pause / 4 * u64::from(jitter) / 255
}
