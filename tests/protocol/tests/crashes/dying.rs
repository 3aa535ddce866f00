//! The points at which a command is struck, and that somebody recovers after each.

use std::fmt;

use jvs_kit::sim::{Errno, Way};
use jvs_repo::code::Code;
use jvs_world::sim::ward::Ward;

use crate::next::{Order, all_recover};
use crate::rows::Row;
use crate::standing::{Standing, rebooted};

/// About how many points of a row a sample has.
const SAMPLE: usize = 40;

fn long() -> bool {
    std::env::var_os("JVS_LONG").is_some()
}

/// Where a command is struck, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    DeadBefore(usize),
    DeadAfter(usize),
    /// The call is answered with EIO.
    Denied(usize),
    /// Dead after that call, or at the end, and the power goes: this one of what may be left.
    PowerCut(Option<usize>, usize),
}

/// How many points of each kind were tried.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    calls: usize,
    kills: usize,
    failures: usize,
    cuts: usize,
    /// How many there are of which these are a sample.
    of: usize,
}

impl Tried {
    fn count(&mut self, point: Point) {
        match point {
            Point::DeadBefore(_) | Point::DeadAfter(_) => self.kills += 1,
            Point::Denied(_) => self.failures += 1,
            Point::PowerCut(..) => self.cuts += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &Tried) {
        self.calls += other.calls;
        self.kills += other.kills;
        self.failures += other.failures;
        self.cuts += other.cuts;
        self.of += other.of;
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tried { calls, kills, failures, cuts, of } = self;
        let all = kills + failures + cuts;
        write!(f, "{calls} calls, {all} of {of} points: {kills} kills, {failures} failures, ")?;
        write!(f, "{cuts} power cuts")
    }
}

/// A prepared world in which everything is durable.
fn prepared(row: &Row) -> (Ward<'static>, Standing) {
    let ward = Ward::new();
    (row.prepare)(&ward);
    ward.settle();
    // So that a renewal shows in the end of the lease.
    ward.solo.pass_ms(1_000);
    let standing = Standing::of(&ward);
    ward.solo.forget_calls();
    (ward, standing)
}

fn calls_of(row: &Row) -> Vec<String> {
    let (ward, standing) = prepared(row);
    let told = (row.act)(&ward, "dead");
    told.unwrap_or_else(|error| panic!("{}{}: {error}", row.command, row.with));
    let calls = ward.solo.calls();
    assert!((row.done)(&ward, "dead", &standing), "{}{}: not done", row.command, row.with);
    calls
}

fn changes(call: &str) -> bool {
    const CHANGING: &[&str] = &[
        "create_new",
        "rename",
        "rename_new",
        "exchange",
        "unlink",
        "make_dir",
        "remove_dir",
        "write_at",
        "sync",
        "sync_dir",
    ];
    CHANGING.contains(&call.split('(').next().unwrap_or_default())
}

/// Every point of a row, in the order of its calls.
fn points_of(row: &Row, calls: &[String]) -> Vec<Point> {
    let mut points = Vec::new();
    let cuts = |points: &mut Vec<Point>, n| {
        let images = struck(row, n).0.solo.crash_images();
        points.extend((0..images).map(|image| Point::PowerCut(n, image)));
    };
    for (n, call) in calls.iter().enumerate() {
        points.extend([Point::DeadBefore(n), Point::DeadAfter(n), Point::Denied(n)]);
        if changes(call) {
            cuts(&mut points, Some(n));
        }
    }
    cuts(&mut points, None);
    points
}

/// How many points of so many a sample passes over: no multiple of two or of three, so
/// that it meets every kind of point, of which each call has three and more.
fn step_through(points: usize) -> usize {
    match (points / SAMPLE) | 1 {
        step if step.is_multiple_of(3) => step + 2,
        step => step,
    }
}

/// Tries the points of a row, or a sample of them; how many they were.
pub(crate) fn every_point_of(row: &Row) -> Tried {
    let calls = calls_of(row);
    let points = points_of(row, &calls);
    let mut tried = Tried { calls: calls.len(), of: points.len(), ..Tried::default() };
    let step = if long() { 1 } else { step_through(points.len()) };
    for point in points.into_iter().step_by(step) {
        strike(row, point, &calls);
        tried.count(point);
    }
    tried
}

/// Tries all points of a row of which `wanted` is true.
#[track_caller]
pub(crate) fn these_points_of(row: &Row, wanted: impl Fn(&Point) -> bool) {
    let calls = calls_of(row);
    let mut points = points_of(row, &calls);
    points.retain(wanted);
    assert!(!points.is_empty(), "there is nothing to try");
    points.into_iter().for_each(|point| strike(row, point, &calls));
}

fn strike(row: &Row, point: Point, calls: &[String]) {
    let at = |n: usize| format!("{n} {}", calls[n]);
    let place = match point {
        Point::DeadBefore(n) | Point::DeadAfter(n) | Point::Denied(n) => at(n),
        Point::PowerCut(n, _) => n.map_or("the end".to_owned(), at),
    };
    let case = format!("{}{}, {point:?}: {place}", row.command, row.with);
    match point {
        Point::DeadBefore(n) => is_killed(row, n, Way::DiesFirst, &case),
        Point::DeadAfter(n) => is_killed(row, n, Way::ThenDies, &case),
        Point::Denied(n) => is_denied(row, n, &case),
        Point::PowerCut(n, image) => loses_power(row, n, image, &case),
    }
}

/// A world in which the command has died after call `n`, or has come to its end.
fn struck(row: &Row, n: Option<usize>) -> (Ward<'static>, Standing) {
    let (ward, standing) = prepared(row);
    if let Some(n) = n {
        ward.solo.inject(n, Way::ThenDies);
    }
    let lived = ward.solo.run(|| (row.act)(&ward, "dead"));
    assert_eq!(lived.is_some(), n.is_none(), "{}{}, {n:?}", row.command, row.with);
    (ward, standing)
}

fn order(n: usize) -> Order {
    if n.is_multiple_of(2) { Order::SurvivorFirst } else { Order::DoctorFirst }
}

fn is_killed(row: &Row, n: usize, way: Way, case: &str) {
    let orders = match long() {
        true => vec![Order::SurvivorFirst, Order::DoctorFirst],
        false => vec![order(n)],
    };
    for order in orders {
        let (ward, standing) = prepared(row);
        ward.solo.inject(n, way);
        let lived = ward.solo.run(|| (row.act)(&ward, "dead"));
        assert!(lived.is_none(), "{case}: it lived");
        all_recover(&ward, row, &standing, order)
            .unwrap_or_else(|why| panic!("{case}, {order:?}: {why}"));
    }
}

/// The call fails: whoever is told that all of it failed finds nothing done, and whoever
/// is told that it is done finds it.
fn is_denied(row: &Row, n: usize, case: &str) {
    let (ward, standing) = prepared(row);
    ward.solo.fail_call(n, Errno::IO);
    let told = (row.act)(&ward, "dead");
    ward.solo.clear_injected();
    let done = (row.done)(&ward, "dead", &standing);
    match told {
        Ok(()) => assert!(done, "{case}: told done, and it is not"),
        Err(error) if error.code() == Code::OutcomeUnknown => {}
        Err(error) => assert!(!done || row.in_steps, "{case}: told {error}, and it is done"),
    }
    all_recover(&ward, row, &standing, order(n)).unwrap_or_else(|why| panic!("{case}: {why}"));
}

/// The power goes, and whoever was told done finds it when it is back.
fn loses_power(row: &Row, n: Option<usize>, image: usize, case: &str) {
    let (before, standing) = struck(row, n);
    let ward = rebooted(&before, before.solo.crash_image(image));
    if n.is_none() && row.is_durable {
        let lasts = (row.done)(&ward, "dead", &standing);
        assert!(lasts, "{case}: it was told done, and is not there");
    }
    let orders = match long() {
        true => vec![Order::SurvivorFirst, Order::DoctorFirst],
        false => vec![order(n.unwrap_or_default() + image)],
    };
    let last = orders.len() - 1;
    for (at, order) in orders.into_iter().enumerate() {
        let ward =
            if at == last { &ward } else { &rebooted(&before, before.solo.crash_image(image)) };
        all_recover(ward, row, &standing, order)
            .unwrap_or_else(|why| panic!("{case}, {order:?}: {why}"));
    }
}
