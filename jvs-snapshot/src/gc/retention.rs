//! Which snapshots of a worktree's history the policy keeps by their number and by the
//! calendar. Pure: times in, answers out.
//!
//! A history is in the order of commits, newest first, which no clock decides. A clock only
//! says in which hour or day a snapshot was taken, in UTC, so that the answer is the same on
//! every host. Nothing here asks what time it is now: a snapshot is never let go because
//! time has passed, only because newer ones have taken its places.

use std::collections::BTreeSet;

use jvs_repo::clock::WallMs;
use jvs_repo::config::Retention;

/// A part of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Season {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Season {
    const ALL: [Season; 5] = [Season::Hour, Season::Day, Season::Week, Season::Month, Season::Year];

    /// In a word.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Season::Hour => "hour",
            Season::Day => "day",
            Season::Week => "week",
            Season::Month => "month",
            Season::Year => "year",
        }
    }

    /// Which hour, day, and so on `at` is in, counted in UTC. Weeks begin on Mondays.
    fn count(self, at: WallMs) -> u64 {
        let days = at.0 / DAY_MS;
        match self {
            Season::Hour => at.0 / HOUR_MS,
            Season::Day => days,
            // 1970 began on a Thursday.
            Season::Week => (days + 3) / 7,
            Season::Month => {
                let (year, month) = year_and_month(days);
                year * 12 + month
            }
            Season::Year => year_and_month(days).0,
        }
    }
}

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// The year, and the month from 0, of a day counted from 1970-01-01, in the Gregorian
/// calendar. Counted in years that begin in March, whose leap day comes last.
fn year_and_month(days: u64) -> (u64, u64) {
    // From 0000-03-01; 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // March, April, …: 153 days in five months.
    let month = (5 * day + 2) / 153;
    let year = year + 400 * era;
    if month < 10 { (year, month + 2) } else { (year + 1, month - 10) }
}

/// Which rule keeps a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptBy {
    /// It is one of the newest.
    Last,
    /// It is the newest of its hour, day, and so on.
    Newest(Season),
    /// It is the oldest, and there are fewer hours, days, and so on than are to be kept.
    Oldest(Season),
}

/// What the policy keeps of a history, newest first, and by which rule. Reads it only as
/// far as there are rules that could keep more.
pub(super) fn kept<T: Copy, E>(
    policy: &Retention,
    history: impl IntoIterator<Item = Result<(T, WallMs), E>>,
) -> Result<Vec<(T, KeptBy)>, E> {
    let (mut quota, mut history) = (Quota::new(policy), history.into_iter());
    let (mut kept, mut oldest) = (Vec::new(), None);
    // Asked before the next one is read.
    while !quota.is_used_up() {
        let Some(step) = history.next() else {
            kept.extend(oldest.and_then(|one| Some((one, quota.oldest()?))));
            break;
        };
        let (one, at) = step?;
        let by = quota.take(at);
        kept.extend(by.map(|by| (one, by)));
        oldest = by.is_none().then_some(one);
    }
    Ok(kept)
}

/// The rules of one history, as far as they are used up.
#[derive(Debug)]
struct Quota {
    last: u64,
    seasons: [SeasonQuota; 5],
}

#[derive(Debug)]
struct SeasonQuota {
    season: Season,
    left: u64,
    /// Those that have their newest. Not only the last one: clocks of several hosts may
    /// put commits in another order.
    taken: BTreeSet<u64>,
}

impl Quota {
    /// Nothing was kept yet.
    fn new(policy: &Retention) -> Self {
        let left = |season| match season {
            Season::Hour => policy.keep_hourly,
            Season::Day => policy.keep_daily,
            Season::Week => policy.keep_weekly,
            Season::Month => policy.keep_monthly,
            Season::Year => policy.keep_yearly,
        };
        let seasons = Season::ALL.map(|season| SeasonQuota {
            season,
            left: left(season),
            taken: BTreeSet::new(),
        });
        Quota { last: policy.keep_last, seasons }
    }

    /// Is there no rule that could keep anything older?
    fn is_used_up(&self) -> bool {
        self.last == 0 && self.seasons.iter().all(|quota| quota.left == 0)
    }

    /// The next older snapshot, taken at `at`. Every rule that keeps it is used up by one;
    /// the first of them is the answer.
    fn take(&mut self, at: WallMs) -> Option<KeptBy> {
        let last = (self.last > 0).then_some(KeptBy::Last);
        self.last = self.last.saturating_sub(1);
        let mut kept = last;
        for quota in &mut self.seasons {
            let count = quota.season.count(at);
            if quota.left > 0 && quota.taken.insert(count) {
                quota.left -= 1;
                kept = kept.or(Some(KeptBy::Newest(quota.season)));
            }
        }
        kept
    }

    /// Of the oldest of all: it stands for what is not there to be kept.
    fn oldest(&self) -> Option<KeptBy> {
        let unused = self.seasons.iter().find(|quota| quota.left > 0);
        unused.map(|quota| KeptBy::Oldest(quota.season))
    }
}

#[cfg(test)]
mod tests {
    use jvs_repo::duration::Period;

    use super::*;

    const NOTHING: fn() -> Retention =
        || Retention { keep_last: 0, keep_within: Period::seconds(0), ..Retention::default() };

    fn at(text: &str) -> WallMs {
        WallMs::parse_rfc3339(text).expect("a time")
    }

    /// What is kept of a history, as places in it.
    fn places(policy: &Retention, history: &[WallMs]) -> Vec<(usize, KeptBy)> {
        let history = history.iter().enumerate().map(|(place, at)| Ok::<_, ()>((place, *at)));
        kept(policy, history).expect("nothing fails")
    }

    /// Two a day for so many days, newest first.
    fn twice_a_day(days: u64) -> Vec<WallMs> {
        let newest = at("2026-11-19T18:00:00Z").0;
        (0..2 * days).map(|n| WallMs(newest - n * 12 * HOUR_MS)).collect()
    }

    /// Against a calendar that is counted day by day.
    #[test]
    fn every_day_of_six_centuries_is_in_its_month_and_year() {
        let leap = |year: u64| {
            year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
        };
        let mut day = 0;
        for year in 1970..2570 {
            let february = if leap(year) { 29 } else { 28 };
            let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in months.into_iter().enumerate() {
                for _ in 0..length {
                    assert_eq!(year_and_month(day), (year, month as u64), "day {day}");
                    day += 1;
                }
            }
        }
    }

    #[test]
    fn hours_days_weeks_months_and_years_begin_in_utc() {
        for (season, before, first) in [
            (Season::Hour, "2026-11-19T04:59:59.999Z", "2026-11-19T05:00:00Z"),
            (Season::Day, "2026-11-18T23:59:59.999Z", "2026-11-19T00:00:00Z"),
            (Season::Week, "2026-11-15T23:59:59.999Z", "2026-11-16T00:00:00Z"),
            (Season::Month, "2028-02-29T23:59:59.999Z", "2028-03-01T00:00:00Z"),
            (Season::Year, "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z"),
        ] {
            let (before, first) = (at(before), at(first));
            assert_eq!(season.count(before) + 1, season.count(first), "{season:?}");
            assert_eq!(season.count(first), season.count(WallMs(first.0 + 1)), "{season:?}");
        }
        let local = at("2026-11-19T01:00:00+05:00");
        assert_eq!(Season::Day.count(local), Season::Day.count(at("2026-11-18T12:00:00Z")));
    }

    #[test]
    fn the_newest_of_each_day_is_kept_for_as_many_days_as_there_is_one() {
        let policy = Retention { keep_daily: 3, ..NOTHING() };
        let by_day = |place| (place, KeptBy::Newest(Season::Day));
        assert_eq!(places(&policy, &twice_a_day(10)), [by_day(0), by_day(2), by_day(4)]);
        // Days without a snapshot do not count.
        let seldom: Vec<WallMs> = twice_a_day(100).into_iter().step_by(20).collect();
        assert_eq!(places(&policy, &seldom), [by_day(0), by_day(1), by_day(2)]);
    }

    #[test]
    fn every_rule_counts_by_itself_and_the_first_is_told() {
        let policy = Retention { keep_last: 1, keep_daily: 2, keep_yearly: 1, ..NOTHING() };
        let found = places(&policy, &twice_a_day(5));
        assert_eq!(found, [(0, KeptBy::Last), (2, KeptBy::Newest(Season::Day))]);
    }

    #[test]
    fn no_more_of_a_history_is_read_than_could_be_kept() {
        let policy = Retention { keep_last: 2, keep_daily: 1, ..NOTHING() };
        let history = twice_a_day(5).into_iter().enumerate();
        let broken = history.map(|(n, at)| if n < 2 { Ok((n, at)) } else { Err(n) });
        assert_eq!(kept(&policy, broken).map(|kept| kept.len()), Ok(2));
    }

    #[test]
    fn while_a_rule_has_places_left_the_oldest_is_kept() {
        let policy = Retention { keep_monthly: 3, ..NOTHING() };
        let month = twice_a_day(10);
        let expected = [(0, KeptBy::Newest(Season::Month)), (19, KeptBy::Oldest(Season::Month))];
        assert_eq!(places(&policy, &month), expected);
        assert_eq!(places(&policy, &[]), []);
        assert_eq!(places(&policy, &month[..1]), [expected[0]]);
    }

    #[test]
    fn a_clock_that_was_wrong_takes_one_place_for_each_snapshot_and_no_more() {
        // Commits in order; the second was taken on a host in 1970, the fourth in 2106.
        let mut history = twice_a_day(4);
        history[1] = WallMs(1);
        history[3] = at("2106-01-01T00:00:00Z");
        let policy = Retention { keep_daily: 4, ..NOTHING() };
        let found: Vec<usize> = places(&policy, &history).into_iter().map(|(at, _)| at).collect();
        assert_eq!(found, [0, 1, 2, 3]);
    }

    /// All histories of up to six snapshots on three days, under all small policies.
    #[test]
    fn what_more_is_kept_never_costs_what_was_kept_and_the_newest_of_each_day_comes_first() {
        let days =
            [at("2026-11-19T00:00:00Z"), at("2026-11-18T00:00:00Z"), at("2026-11-01T00:00:00Z")];
        for length in 0..=6_u32 {
            for code in 0..3_usize.pow(length) {
                let history: Vec<WallMs> =
                    (0..length).map(|n| days[code / 3_usize.pow(n) % 3]).collect();
                for (last, daily) in [(0, 0), (0, 1), (0, 2), (1, 1), (2, 0), (2, 3)] {
                    let policy = Retention { keep_last: last, keep_daily: daily, ..NOTHING() };
                    let more =
                        Retention { keep_daily: daily + 1, keep_weekly: 1, ..policy.clone() };
                    let alone = |policy: &Retention| {
                        let kept = places(policy, &history);
                        kept.into_iter().map(|(place, _)| place).collect::<Vec<_>>()
                    };
                    let (some, all) = (alone(&policy), alone(&more));
                    let is_oldest = |place: &usize| place + 1 == history.len();
                    assert!(
                        some.iter().all(|place| all.contains(place) || is_oldest(place)),
                        "{history:?} {policy:?}: {some:?}, then {all:?}"
                    );
                    assert!(some.len() as u64 <= last + daily + 1, "{history:?} {policy:?}");
                    assert!((0..last as usize).all(|n| n >= history.len() || some.contains(&n)));
                    let is_newest = |place: usize| !history[..place].contains(&history[place]);
                    let newest = (0..history.len()).filter(|place| is_newest(*place));
                    assert!(newest.take(daily as usize).all(|place| some.contains(&place)));
                }
            }
        }
    }
}
