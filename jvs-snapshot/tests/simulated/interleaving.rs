//! Publishers, thieves and collectors at once: every interleaving with so many
//! preemptions of the real code, with a lease that ends and a process that dies
//! anywhere.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_kit::sim::{PowerCuts, Process, Start};
use jvs_world::sim::actors::{collect, keep, publish, world};
use jvs_world::sim::with_history;

fn publisher(id: &'static str) -> Process {
    Process::new(id, move |ctx| {
        let _ = publish(ctx, id);
    })
}

fn collector() -> Process {
    Process::new("gc", |ctx| {
        let _ = collect(ctx, keep(100, 0));
    })
}

#[test]
fn a_publisher_and_a_thief_at_any_two_points_of_each_other() {
    let report = world().process(publisher("a")).process(publisher("b")).preemptions(2).run();
    eprintln!("a publisher and a thief: {report}");
    report.holds();
}

#[test]
fn a_publisher_a_thief_and_a_death_anywhere() {
    let world = world().process(publisher("a")).process(publisher("b")).preemptions(1).crashes(1);
    let report = world.run();
    eprintln!("a publisher, a thief, a death: {report}");
    report.holds();
}

#[test]
fn a_publisher_a_thief_and_a_collector() {
    let world = world().process(publisher("a")).process(publisher("b")).process(collector());
    let report = world.preemptions(2).run();
    eprintln!("a publisher, a thief, a collector: {report}");
    report.holds();
}

#[test]
fn two_publishers_and_renames_that_lie_or_land_late() {
    let world = world().process(publisher("a")).process(publisher("b")).preemptions(1);
    let report = world.ambiguous_renames(1).late_renames(1).run();
    eprintln!("two publishers, renames that lie: {report}");
    report.holds();
}

/// Keeps the heads, and says how many snapshots are left of three.
fn strict_collector() -> Process {
    Process::new("gc", |ctx| {
        let _ = collect(ctx, keep(1, 0));
    })
}

#[test]
fn a_collection_and_a_power_cut_anywhere_and_the_next_collection() {
    let world = world()
        .setup(with_history)
        .process(strict_collector())
        .process(strict_collector().starts(Start::AfterPowerCut))
        .time_jumps(0, [])
        .power_cuts(1, PowerCuts::EveryPrefix);
    let report = world.run();
    eprintln!("a collection, a power cut: {report}");
    report.holds();
}

#[test]
fn a_publisher_a_collection_and_a_power_cut_anywhere() {
    let world = world()
        .setup(with_history)
        .process(publisher("a"))
        .process(strict_collector())
        .time_jumps(0, [])
        .preemptions(1)
        .power_cuts(1, PowerCuts::Extremes);
    let report = world.run();
    eprintln!("a publisher, a collection, a power cut: {report}");
    report.holds();
}

#[test]
fn two_publishers_and_two_renames_that_land_late() {
    let world = world().process(publisher("a")).process(publisher("b")).preemptions(1);
    let report = world.late_renames(2).run();
    eprintln!("two publishers, two late renames: {report}");
    report.holds();
}

#[test]
fn a_publisher_and_a_collector_whose_calls_are_denied() {
    let world = world().setup(with_history).process(publisher("a")).process(strict_collector());
    let report = world
        .time_jumps(0, [])
        .preemptions(1)
        .ambiguous_makes(1)
        .ambiguous_removals(1)
        .ambiguous_syncs(1)
        .run();
    eprintln!("a publisher and a collector, denied: {report}");
    report.holds();
}
