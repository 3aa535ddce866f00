//! Every clock reading goes through here.
//!
//! Two clocks, because they answer two questions. *Boot time* counts suspend
//! and is never set: it times one's own lease. *Wall time* is shared between
//! hosts but may be wrong: it is only ever believed with evidence.

mod shown;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::shown::{ShownTime, show_times_at, shown_as_written};
use crate::mutation::Rule;
use crate::sabotage;

/// Unix time in milliseconds, on someone's wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct WallMs(pub u64);

/// Milliseconds since this host booted, suspend included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct BootMs(pub u64);

impl WallMs {
    /// This moment plus `ms`.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        WallMs(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` until this moment; zero if it is not earlier.
    pub const fn since(self, earlier: WallMs) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// RFC 3339 in UTC with milliseconds, as files and programs have it.
    pub fn rfc3339(self) -> String {
        let nanos = i128::from(self.0) * 1_000_000;
        match time::OffsetDateTime::from_unix_timestamp_nanos(nanos) {
            Ok(t) => format!(
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                t.year(),
                u8::from(t.month()),
                t.day(),
                t.hour(),
                t.minute(),
                t.second(),
                t.millisecond()
            ),
            // Beyond the year 9999 the calendar ends; the number does not.
            Err(_) => format!("@{}ms", self.0),
        }
    }

    /// Reads what [`WallMs::rfc3339`] wrote, and any other RFC 3339 time.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        if let Some(ms) = text.strip_prefix('@').and_then(|t| t.strip_suffix("ms")) {
            return crate::id::strict_decimal(ms).map(WallMs);
        }
        let parsed =
            time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339);
        let nanos = parsed.ok()?.unix_timestamp_nanos();
        u64::try_from(nanos.div_euclid(1_000_000)).ok().map(WallMs)
    }
}

impl BootMs {
    /// This moment plus `ms`.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        BootMs(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` until this moment; zero if it is not earlier.
    pub const fn since(self, earlier: BootMs) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Which boot of which kernel a boot-time reading belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct BootId(pub String);

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which boot-time clock a reading is of. Readings can be compared only if they
/// are of one clock: the boot id does not name it, because each time namespace
/// of a kernel has a clock of its own.
#[derive(Debug, Clone)]
pub struct BootClock {
    /// Which boot; empty where that cannot be known.
    pub boot_id: BootId,
    /// Which time namespace of that kernel; `None` where there are none.
    pub time_namespace: Option<u64>,
}

impl BootClock {
    /// Are readings of `boot_id` in `time_namespace` of this very clock? What is
    /// not known is never the same: two hosts without `/proc` both know nothing.
    pub fn is(&self, boot_id: &BootId, time_namespace: Option<u64>) -> bool {
        !self.boot_id.0.is_empty()
            && self.boot_id == *boot_id
            && self.time_namespace == time_namespace
    }
}

/// Both clocks, the boot-time clock first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Wall clock.
    pub wall: WallMs,
    /// Boot-time clock.
    pub boot: BootMs,
}

impl Reading {
    /// Reads both. A process may be stopped between the two, for any time: then
    /// a lease that begins with this reading is believed in for less than the
    /// wall clock says, never for more.
    pub fn taken(boot: impl FnOnce() -> BootMs, wall: impl FnOnce() -> WallMs) -> Self {
        sabotage!(Rule::BootBeforeWall => Reading { wall: wall(), boot: boot() });
        let boot = boot();
        Reading { wall: wall(), boot }
    }

    /// By how much the wall clock went another way than the boot-time clock
    /// since `earlier`, which is of the same clocks.
    pub fn drift_ms(&self, earlier: &Reading) -> u64 {
        let wall = i128::from(self.wall.0) - i128::from(earlier.wall.0);
        let boot = i128::from(self.boot.0) - i128::from(earlier.boot.0);
        u64::try_from((wall - boot).abs()).unwrap_or(u64::MAX)
    }

    /// [`Reading::drift_ms`], if it is more than clocks may differ by: then the two are
    /// not of the same clocks, or a wall clock was set in between.
    pub fn parted_ms(&self, earlier: &Reading, allowed_ms: u64) -> Option<u64> {
        let by_ms = self.drift_ms(earlier);
        (by_ms > allowed_ms.saturating_add(PAIRED_WITHIN_MS)).then_some(by_ms)
    }
}

/// How far apart two honest readings of one pair of clocks may be: each is cut to whole
/// milliseconds and was taken one after the other.
const PAIRED_WITHIN_MS: u64 = 20;

/// What the kernel says of its own wall clock (`adjtimex`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// Something keeps it synchronised; the estimate of its error, in ms.
    Synchronised {
        /// Largest error the kernel thinks possible.
        max_error_ms: u64,
    },
    /// The kernel says nothing steers this clock.
    Unsynchronised,
    /// The kernel does not say.
    Unknown,
}

/// The clocks of one host.
pub trait Clock: Send + Sync {
    /// Both clocks, by [`Reading::taken`].
    fn now(&self) -> Reading;

    /// Which boot [`Clock::now`]'s boot time belongs to.
    fn boot_id(&self) -> BootId;

    /// Which time namespace of that kernel; `None` where there are none.
    fn time_namespace(&self) -> Option<u64> {
        None
    }

    /// Which clock [`Clock::now`]'s boot time is of.
    fn boot_clock(&self) -> BootClock {
        BootClock { boot_id: self.boot_id(), time_namespace: self.time_namespace() }
    }

    /// Is the wall clock steered?
    fn discipline(&self) -> Discipline;

    /// Waits on the boot-time clock.
    fn sleep_ms(&self, ms: u64);
}

/// How often both clocks are read again until nothing came in between.
const PAIRING_TRIES: u32 = 8;

/// The host's own clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// Through the C library, so that `faketime` can lie to the whole command.
#[expect(clippy::disallowed_methods, reason = "the one place that asks for the wall clock")]
fn wall() -> WallMs {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = since_1970.map_or(0, |since| since.as_millis());
    WallMs(u64::try_from(ms).unwrap_or(u64::MAX))
}

fn boot() -> BootMs {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    let millis = u64::try_from(t.tv_nsec).unwrap_or(0) / 1_000_000;
    BootMs(seconds.saturating_mul(1000).saturating_add(millis))
}

impl Clock for SystemClock {
    fn now(&self) -> Reading {
        // Somebody who was stopped between the two would tell of a clock that was set.
        let at_once = |reading: &Reading| boot().since(reading.boot) <= 1;
        let mut tries = (0..PAIRING_TRIES).map(|_| Reading::taken(boot, wall));
        tries.find(at_once).unwrap_or_else(|| Reading::taken(boot, wall))
    }

    fn boot_id(&self) -> BootId {
        BootId(crate::proc::boot_id().unwrap_or_default())
    }

    fn time_namespace(&self) -> Option<u64> {
        crate::proc::time_namespace()
    }

    fn discipline(&self) -> Discipline {
        match jvs_kernel::clock::steered() {
            Some(steered) if steered.synchronised => {
                Discipline::Synchronised { max_error_ms: steered.max_error_us / 1000 }
            }
            Some(_) => Discipline::Unsynchronised,
            None => Discipline::Unknown,
        }
    }

    fn sleep_ms(&self, ms: u64) {
        std::thread::sleep(std::time::Duration::from_millis(ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_that_were_taken_in_turn_do_not_tell_of_a_clock_that_was_set() {
        let then = Reading { wall: WallMs(1_000_000), boot: BootMs(5_000) };
        let later =
            |wall_ms: u64| Reading { wall: WallMs(1_000_000 + wall_ms), boot: BootMs(6_000) };
        assert_eq!(later(1_000).parted_ms(&then, 0), None);
        assert_eq!(later(1_002).parted_ms(&then, 0), None);
        assert_eq!(later(1_500).parted_ms(&then, 0), Some(500));
        assert_eq!(later(500).parted_ms(&then, 400), Some(500));
        assert_eq!(later(1_500).parted_ms(&then, 500), None);
    }

    #[test]
    fn times_are_printed_in_utc_with_milliseconds_and_read_back() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_763_283_600_123, "2025-11-16T09:00:00.123Z"),
            (4_294_967_296_000, "2106-02-07T06:28:16.000Z"),
        ] {
            assert_eq!(WallMs(ms).rfc3339(), text);
            assert_eq!(WallMs::parse_rfc3339(text), Some(WallMs(ms)));
        }
        assert_eq!(
            WallMs::parse_rfc3339("2025-11-16T10:00:00.123+01:00"),
            Some(WallMs(1_763_283_600_123))
        );
        assert_eq!(WallMs::parse_rfc3339("yesterday"), None);
        let far = WallMs(u64::MAX);
        assert_eq!(WallMs::parse_rfc3339(&far.rfc3339()), Some(far));
    }

    #[test]
    fn the_system_clock_moves_forward_and_knows_its_boot() {
        let (a, b) = (SystemClock.now(), SystemClock.now());
        assert!(b.boot >= a.boot);
        assert!(!SystemClock.boot_id().0.is_empty());
    }

    #[test]
    fn the_boot_time_clock_is_read_first() {
        let order = std::cell::RefCell::new(Vec::new());
        let boot = || {
            order.borrow_mut().push("boot");
            BootMs(1)
        };
        let wall = || {
            order.borrow_mut().push("wall");
            WallMs(2)
        };
        assert_eq!(Reading::taken(boot, wall), Reading { wall: WallMs(2), boot: BootMs(1) });
        assert_eq!(*order.borrow(), ["boot", "wall"]);
    }

    #[test]
    fn a_clock_is_one_boot_and_one_time_namespace_and_what_is_unknown_is_none() {
        let id = |text: &str| BootId(text.into());
        let here = BootClock { boot_id: id("a"), time_namespace: Some(7) };
        assert!(here.is(&id("a"), Some(7)));
        assert!(!here.is(&id("b"), Some(7)), "another boot");
        assert!(!here.is(&id("a"), Some(8)), "another time namespace");
        assert!(!here.is(&id("a"), None), "a record that does not say");
        let unknown = BootClock { boot_id: id(""), time_namespace: None };
        assert!(!unknown.is(&id(""), None), "two hosts without /proc");
        assert!(SystemClock.boot_clock().is(&SystemClock.boot_id(), SystemClock.time_namespace()));
    }
}
