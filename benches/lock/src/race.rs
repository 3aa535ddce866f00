//! Races: several ways to do one thing, measured against each other in one run.
//!
//! Every round runs every lane once, in an order that turns from round to round,
//! so that whatever else the machine does meets all lanes alike. What counts is
//! the ratio to the first lane, not the time. Nothing is asserted.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// One way to do the thing.
pub(crate) struct Lane<'l> {
    name: String,
    target: Option<f64>,
    run: Box<dyn FnMut() + 'l>,
    undo: Box<dyn FnMut() + 'l>,
}

impl<'l> Lane<'l> {
    /// A lane that does its work once each time `run` is called.
    pub(crate) fn new(name: impl Into<String>, run: impl FnMut() + 'l) -> Self {
        Lane { name: name.into(), target: None, run: Box::new(run), undo: Box::new(|| ()) }
    }

    /// What makes the next run possible; not counted.
    #[must_use]
    pub(crate) fn undone_by(mut self, undo: impl FnMut() + 'l) -> Self {
        self.undo = Box::new(undo);
        self
    }

    /// The ratio to the first lane that is aimed at.
    #[must_use]
    pub(crate) fn at_most(mut self, target: f64) -> Self {
        self.target = Some(target);
        self
    }
}

/// Runs all lanes `rounds` times, a few more to warm up, and prints the table.
pub(crate) fn race(title: &str, rounds: usize, mut lanes: Vec<Lane<'_>>) {
    let times = measured(rounds, &mut lanes);
    show(title, rounds, &lanes, times);
}

/// The same of two, and what the second took longer than the first of its round: what
/// else the machine does is in both.
pub(crate) fn paired(title: &str, rounds: usize, first: Lane<'_>, second: Lane<'_>) {
    let mut lanes = [first, second];
    let times = measured(rounds, &mut lanes);
    let mut longer = longer(&times[0], &times[1]);
    show(title, rounds, &lanes, times);
    longer.sort_unstable();
    let [low, middle, high] = [25, 50, 75].map(|p| percentile(&longer, p));
    say(&format!("  longer within a round: median {middle} us, quartiles {low} and {high} us"));
}

/// Runs all lanes as [`race`] does, and prints how long the slow ones of each took: what
/// somebody who waits for every one of them notices.
pub(crate) fn tails(title: &str, rounds: usize, mut lanes: Vec<Lane<'_>>) {
    let times = measured(rounds, &mut lanes);
    say(&format!("\n{title}  ({rounds} rounds)"));
    let width = lanes.iter().map(|lane| lane.name.len()).max().unwrap_or(0);
    say(&format!("  {:width$}  {:>11}  {:>11}  {:>11}", "", "p10", "median", "p95"));
    for (lane, mut times) in lanes.iter().zip(times) {
        times.sort_unstable();
        let [early, middle, late] = [10, 50, 95].map(|p| shown(percentile(&times, p)));
        say(&format!("  {:width$}  {early:>11}  {middle:>11}  {late:>11}", lane.name));
    }
}

/// By how many microseconds each of `second` is longer.
fn longer(first: &[Duration], second: &[Duration]) -> Vec<i128> {
    let us = |time: &Duration| i128::try_from(time.as_micros()).unwrap_or(i128::MAX);
    first.iter().zip(second).map(|(first, second)| us(second) - us(first)).collect()
}

/// The times of each lane, round by round.
fn measured(rounds: usize, lanes: &mut [Lane<'_>]) -> Vec<Vec<Duration>> {
    let mut times = vec![Vec::with_capacity(rounds); lanes.len()];
    let warm_up = rounds / 20 + 3;
    for round in 0..warm_up + rounds {
        for turn in 0..lanes.len() {
            let lane = (round + turn) % lanes.len();
            let took = timed(&mut lanes[lane].run);
            (lanes[lane].undo)();
            if round >= warm_up {
                times[lane].push(took);
            }
        }
    }
    times
}

fn show(title: &str, rounds: usize, lanes: &[Lane<'_>], mut times: Vec<Vec<Duration>>) {
    times.iter_mut().for_each(|times| times.sort_unstable());
    say(&format!("\n{title}  ({rounds} rounds)"));
    say(&table(lanes, &times));
}

/// One line for whoever reads the figures.
pub(crate) fn say(line: &str) {
    // A reader that went away is no reason to stop cleaning up.
    let _ = writeln!(io::stdout(), "{line}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures time, it does not decide by it"
)]
fn timed(run: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn table(lanes: &[Lane<'_>], times: &[Vec<Duration>]) -> String {
    let width = lanes.iter().map(|lane| lane.name.len()).max().unwrap_or(0);
    let head = format!(
        "  {:width$}  {:>9}  {:>9}  {:>7}  {:>7}  target",
        "", "p10", "median", "x p10", "x med"
    );
    let rows = lanes.iter().zip(times).map(|(lane, sorted)| {
        let [low, middle] = [10, 50].map(|p| (percentile(sorted, p), percentile(&times[0], p)));
        let ratio = |(own, first): (Duration, Duration)| own.as_secs_f64() / first.as_secs_f64();
        let target = lane.target.map_or_else(String::new, |target| format!("<= {target}"));
        let row = format!(
            "  {:width$}  {:>9}  {:>9}  {:>7.2}  {:>7.2}  {target}",
            lane.name,
            shown(low.0),
            shown(middle.0),
            ratio(low),
            ratio(middle),
        );
        row.trim_end().to_owned()
    });
    std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n")
}

fn percentile<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or_default()
}

fn shown(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let sorted: Vec<_> = (1..=11).map(Duration::from_micros).collect();
        assert_eq!(percentile(&sorted, 10), Duration::from_micros(2));
        assert_eq!(percentile(&sorted, 50), Duration::from_micros(6));
        assert_eq!(percentile::<Duration>(&[], 50), Duration::ZERO);
    }

    #[test]
    fn what_is_longer_is_told_round_by_round() {
        let [first, second] = [[5, 9], [7, 8]].map(|times| times.map(Duration::from_micros));
        assert_eq!(longer(&first, &second), [2, -1]);
    }

    #[test]
    fn ratios_are_to_the_first_lane() {
        let lanes = [Lane::new("one", || ()), Lane::new("other", || ()).at_most(4.0)];
        let times = [1, 3].map(|ms| vec![Duration::from_millis(ms); 5]);
        let table = table(&lanes, &times);
        let last = table.lines().last().expect("a row");
        assert_eq!(
            last.split_whitespace().collect::<Vec<_>>(),
            ["other", "3000.0", "us", "3000.0", "us", "3.00", "3.00", "<=", "4"]
        );
    }
}
