//! How old a snapshot is, and whether a clock may be believed that says so. Pure:
//! clock readings in, an answer out.
//!
//! A wall clock that was set wrong makes everything old in a moment, and what is
//! collected does not come back. So no clock is believed alone. What the repository
//! has seen lately must lie near it, the kernel must not say that nobody steers it,
//! and a time in which nothing at all was seen to happen counts as a week at most:
//! that is all that a clock which jumps, then or now, can add to an age.

use std::collections::BTreeMap;
use std::fmt;

use jvs_repo::clock::{Discipline, WallMs};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// The longest silence that counts in full.
const SILENCE_MS: u64 = 7 * DAY_MS;

/// Why the wall clock is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockDoubt {
    /// The kernel says that nothing keeps it right.
    Unsynchronised,
    /// It is that far beyond everything that the repository has seen.
    Ahead {
        /// In milliseconds.
        ms: u64,
    },
    /// The repository has seen a time that lies that far in its future.
    Behind {
        /// In milliseconds.
        ms: u64,
    },
}

impl fmt::Display for ClockDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockDoubt::Unsynchronised => {
                f.write_str("according to the kernel, nothing synchronises this host's clock")
            }
            ClockDoubt::Ahead { ms } => write!(
                f,
                "this host's clock is {} days ahead of the last event in this repository",
                ms / DAY_MS
            ),
            ClockDoubt::Behind { ms } => write!(
                f,
                "the last event in this repository is {} days ahead of this host's clock",
                ms / DAY_MS
            ),
        }
    }
}

/// Is there a reason not to believe `now`? `newest` is the latest time that the
/// repository has seen, on whatever clock.
pub(super) fn doubt(
    now: WallMs,
    newest: Option<WallMs>,
    discipline: Discipline,
) -> Option<ClockDoubt> {
    if let Some(newest) = newest {
        let (ahead, behind) = (now.0.saturating_sub(newest.0), newest.0.saturating_sub(now.0));
        if ahead > SILENCE_MS {
            return Some(ClockDoubt::Ahead { ms: ahead });
        }
        if behind > SILENCE_MS {
            return Some(ClockDoubt::Behind { ms: behind });
        }
    }
    (discipline == Discipline::Unsynchronised).then_some(ClockDoubt::Unsynchronised)
}

/// For how long each of `created` has certainly been there.
pub(super) fn ages(now: WallMs, created: impl IntoIterator<Item = u64>) -> BTreeMap<u64, u64> {
    let mut ages: BTreeMap<u64, u64> = created.into_iter().map(|ms| (ms, 0)).collect();
    let (mut later, mut age) = (now.0, 0_u64);
    for (ms, of) in ages.iter_mut().rev().skip_while(|(ms, _)| **ms > now.0) {
        age = age.saturating_add((later - ms).min(SILENCE_MS));
        (later, *of) = (*ms, age);
    }
    ages
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: Discipline = Discipline::Synchronised { max_error_ms: 1 };
    const NOW: WallMs = WallMs(1_763_283_600_000);

    fn days_ago(days: u64) -> u64 {
        NOW.0 - days * DAY_MS
    }

    #[test]
    fn a_clock_near_what_was_seen_is_believed() {
        for newest in [NOW.0, days_ago(1), days_ago(7), NOW.0 + DAY_MS] {
            assert_eq!(doubt(NOW, Some(WallMs(newest)), SOUND), None);
        }
        assert_eq!(doubt(NOW, None, SOUND), None, "nothing can be old");
        assert_eq!(doubt(NOW, Some(NOW), Discipline::Unknown), None);
    }

    #[test]
    fn a_clock_far_from_what_was_seen_or_that_nobody_steers_is_not() {
        let ahead = doubt(WallMs(NOW.0 + 400 * DAY_MS), Some(NOW), SOUND);
        assert_eq!(ahead, Some(ClockDoubt::Ahead { ms: 400 * DAY_MS }));
        assert_eq!(
            doubt(WallMs(0), Some(NOW), SOUND),
            Some(ClockDoubt::Behind { ms: NOW.0 }),
            "1970"
        );
        let year_2106 = WallMs(4_294_967_296_000);
        assert!(matches!(doubt(year_2106, Some(NOW), SOUND), Some(ClockDoubt::Ahead { .. })));
        assert!(matches!(doubt(NOW, Some(year_2106), SOUND), Some(ClockDoubt::Behind { .. })));
        let unsteered = doubt(NOW, Some(NOW), Discipline::Unsynchronised);
        assert_eq!(unsteered, Some(ClockDoubt::Unsynchronised));
    }

    #[test]
    fn time_in_which_something_happened_counts_in_full() {
        let weekly = ages(NOW, (0..10).map(|n| days_ago(7 * n)));
        assert_eq!(weekly[&days_ago(63)], 63 * DAY_MS);
        assert_eq!(weekly[&NOW.0], 0);
    }

    #[test]
    fn silence_counts_as_a_week_at_most_wherever_it_lies() {
        let jumped = ages(NOW, [days_ago(400), days_ago(401)]);
        assert_eq!(jumped[&days_ago(401)], SILENCE_MS + DAY_MS);
        let epoch = ages(NOW, [1, days_ago(3)]);
        assert_eq!(epoch[&1], SILENCE_MS + 3 * DAY_MS, "taken on a clock in 1970");
        let future = ages(NOW, [NOW.0 + DAY_MS, days_ago(2)]);
        assert_eq!((future[&(NOW.0 + DAY_MS)], future[&days_ago(2)]), (0, 2 * DAY_MS));
    }
}
