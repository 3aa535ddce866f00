//! Every interleaving of the real code, within the budgets that each test names.
//! Each prints how many states it visited.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_kit::sim::{Explorer, Report};
use jvs_protocol_tests::actor::{LEASE_AND_MARGIN_MS, LEASE_MS};
use jvs_protocol_tests::{Actor, Stage, Step};

const WORK: &[Step] = &[Step::Acquire, Step::Commit, Step::Release];
const KEEP: &[Step] = &[Step::Acquire, Step::Renew, Step::Release];
const TAKE: &[Step] = &[Step::Acquire];
const GO_ON: &[Step] = &[Step::Resume, Step::Commit];
const FREEZE: &[Step] = &[Step::Freeze];

#[track_caller]
fn all_of(what: &str, world: Explorer<'_>) -> Report {
    let report = world.run();
    eprintln!("{what}: {report}");
    report.holds()
}

/// Time may pass a lease's end once, anywhere; back-off sleeps end early at
/// most once while others work.
fn with_expiry(world: Explorer<'static>) -> Explorer<'static> {
    world.time_jumps(1, [LEASE_AND_MARGIN_MS]).early_wakes(1)
}

#[test]
fn two_writers_and_a_crash_anywhere() {
    let actors = [Actor::new("a", WORK), Actor::new("b", WORK), Actor::lone_survivor()];
    all_of("two writers, a crash", with_expiry(Stage::fine(&actors, None)).crashes(1));
}

#[test]
fn two_writers_and_a_rename_applied_without_saying_so() {
    let actors = [Actor::new("a", WORK), Actor::new("b", WORK)];
    let world = with_expiry(Stage::fine(&actors, None)).ambiguous_renames(1);
    all_of("two writers, an ambiguous rename", world);
}

#[test]
fn two_writers_and_a_rename_that_lands_late() {
    let actors = [Actor::new("a", WORK), Actor::new("b", WORK)];
    let world = with_expiry(Stage::coarse(&actors, None)).late_renames(1);
    all_of("two writers, a late rename", world);
}

#[test]
fn two_publishers_and_two_renames_that_land_late() {
    const PUBLISH: &[Step] = &[Step::Acquire, Step::Commit];
    let actors = [Actor::new("a", PUBLISH), Actor::new("b", PUBLISH)];
    let world = with_expiry(Stage::coarse(&actors, None)).late_renames(2).preemptions(2);
    all_of("two publishers, two late renames", world);
}

#[test]
fn a_keeper_and_a_thief_with_every_fault_at_once() {
    let actors = [Actor::new("a", KEEP), Actor::new("b", TAKE), Actor::lone_survivor()];
    let world =
        with_expiry(Stage::coarse(&actors, None)).crashes(1).ambiguous_renames(1).late_renames(1);
    all_of("a keeper and a thief, all faults", world);
}

#[test]
fn a_publisher_and_a_thief_with_every_fault_at_once() {
    const PUBLISH: &[Step] = &[Step::Acquire, Step::Commit];
    let actors = [Actor::new("a", PUBLISH), Actor::new("b", PUBLISH)];
    let world =
        with_expiry(Stage::coarse(&actors, None)).crashes(1).ambiguous_renames(1).late_renames(1);
    all_of("two publishers, all faults", world);
}

#[test]
fn two_processes_of_one_session_and_a_rival() {
    // No release: the command would tell its keeper first, by a signal.
    const HOLD: &[Step] = &[Step::Acquire, Step::Renew];
    let actors = [
        Actor::new("a", HOLD).on_host(0),
        Actor::new("a", GO_ON).on_host(0),
        Actor::new("b", TAKE).on_host(1),
    ];
    let world = with_expiry(Stage::coarse(&actors, None)).preemptions(3).ambiguous_renames(1);
    all_of("keeper, command and rival", world);
}

#[test]
fn three_writers_with_bounded_preemption() {
    let actors = [Actor::new("a", WORK), Actor::new("b", WORK), Actor::new("c", WORK)];
    let world = with_expiry(Stage::coarse(&actors, None)).preemptions(3).crashes(1);
    all_of("three writers", world);
}

#[test]
fn hosts_whose_clocks_are_as_far_apart_as_allowed() {
    for offset in [-2_000, 2_000] {
        let actors = [Actor::new("a", KEEP).on_host(0), Actor::new("b", TAKE).on_host(1)];
        let world = Stage::coarse(&actors, None)
            .wall_offset_ms(1, offset)
            .time_jumps(2, [LEASE_MS - 500, 3_001])
            .early_wakes(1);
        all_of("clocks two seconds apart", world);
    }
}

#[test]
fn a_suspended_holder_does_not_believe_when_it_wakes() {
    let actors = [Actor::new("a", KEEP).on_host(0), Actor::new("b", TAKE).on_host(0)];
    let world = Stage::coarse(&actors, None)
        .clock_is_a_step()
        .time_jumps(1, [LEASE_AND_MARGIN_MS, LEASE_MS - 1])
        .early_wakes(0);
    all_of("a suspended holder on the same host", world);
}

#[test]
fn a_freeze_among_writers() {
    let actors = [Actor::new("a", WORK), Actor::new("admin", FREEZE), Actor::lone_survivor()];
    let world =
        with_expiry(Stage::coarse(&actors, None)).ambiguous_renames(1).late_renames(1).crashes(1);
    all_of("a freeze", world);
}

#[test]
fn a_power_cut_never_brings_a_token_back() {
    const TWICE: &[Step] = &[Step::Acquire, Step::Release, Step::Acquire];
    let actors = [Actor::new("a", TWICE), Actor::after_the_power_cut("b")];
    all_of("a power cut", Stage::with_power_cut(&actors, None));
}
