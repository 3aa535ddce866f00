//! Restored files take their places one by one, and the next holder finds all of them
//! there, or none.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use std::collections::BTreeSet;

use jvs_kit::sim::{Ctx, Errno, PowerCuts, Process, Solo, Way};
use jvs_lock::Lease;
use jvs_repo::layout;
use jvs_snapshot::restore::RestoreError;
use jvs_snapshot::{Snapshots, gc};
use jvs_world::repository::main;
use jvs_world::sim::World;
use jvs_world::sim::actors::{collect, keep};
use jvs_world::sim::restoring::{
    Two, files, finished, furnished, new_files, nobody_sees_a_mixture, old_files, onlooker,
    restore, restorer, successor, world,
};

fn restore_in(world: &World, two: Two) -> Result<(), RestoreError> {
    restore_under(world, &mut world.lease("s"), two)
}

fn restore_under(world: &World, lease: &mut Lease<'_>, two: Two) -> Result<(), RestoreError> {
    let (seams, locks) = (world.seams(), world.locks("s"));
    restore(seams, world.solo.store(), &locks, lease, two).map(drop)
}

fn furnished_world() -> (World, Two) {
    let world = World::new();
    let two = furnished(&world.solo);
    (world, two)
}

fn calls() -> usize {
    let (world, two) = furnished_world();
    world.solo.forget_calls();
    restore_in(&world, two).expect("restored");
    assert_eq!(files(world.solo.store()), new_files());
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    assert_eq!(world.names(&layout::register(&main())).len(), 1, "no mark is left");
    world.solo.call_count()
}

/// Nothing is left in `staging/` or set aside, and no mark.
fn nothing_is_left(world: &World, n: usize) {
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let plan = gc::plan(&at, keep(100, 0)).expect("planned");
    let freed = gc::run(&at, &world.locks("gc"), &plan, &mut |_, _| {});
    assert_eq!(freed.expect("collected").set_aside, [], "call {n}: snapshots have all of it");
    assert_eq!(world.names(&layout::staging()), [""; 0], "call {n}");
    assert_eq!(world.names(&layout::register(&main())).len(), 1, "call {n}: no mark is left");
    world.assert_all_visible_are_whole();
}

fn left_by(solo: &Solo) -> Vec<World> {
    let images = solo.crash_images();
    let some = [0, images / 3, images / 2, images.saturating_sub(1)];
    let cuts = some.into_iter().map(|cut| solo.crash_image(cut));
    [solo.image()].into_iter().chain(cuts).map(World::on).collect()
}

#[test]
fn a_kill_or_a_power_cut_at_any_call_of_a_restore_path_by_path_ends_all_old_or_all_new() {
    let mut seen = BTreeSet::new();
    for n in 0..=calls() {
        for way in [Way::DiesFirst, Way::ThenDies] {
            let (world, two) = furnished_world();
            world.solo.inject(n, way);
            let done = world.solo.run(|| restore_in(&world, two).expect("restored")).is_some();
            for left in left_by(&world.solo) {
                finished(&left).expect("the next command finishes it");
                let now = files(left.solo.store());
                assert!(now == old_files() || now == new_files(), "{way:?} at {n}: {now:?}");
                assert!(now == new_files() || !done, "told at call {n}, so it lasts");
                nothing_is_left(&left, n);
                seen.insert(now);
            }
        }
    }
    assert_eq!(seen.len(), 2, "both ends were met");
}

#[test]
fn a_death_while_finishing_a_restore_at_any_call_ends_all_new() {
    // Right after the second path was exchanged.
    let interrupted = || {
        let (world, two) = furnished_world();
        world.solo.forget_calls();
        restore_in(&world, two).expect("restored");
        let calls = world.solo.calls();
        let at = calls.iter().enumerate().filter(|(_, call)| call.contains("exchange"));
        let second = at.map(|(at, _)| at).nth(1).expect("two are exchanged");
        let (world, two) = furnished_world();
        world.solo.inject(second, Way::ThenDies);
        assert!(world.solo.run(|| restore_in(&world, two)).is_none());
        World::on(world.solo.image())
    };
    let calls = {
        let world = interrupted();
        let now = files(world.solo.store());
        assert!(now != old_files() && now != new_files(), "half of it: {now:?}");
        world.solo.forget_calls();
        finished(&world).expect("finished");
        world.solo.call_count()
    };
    for n in 0..=calls {
        for way in [Way::DiesFirst, Way::ThenDies] {
            let world = interrupted();
            world.solo.inject(n, way);
            let _ = world.solo.run(|| finished(&world));
            for left in left_by(&world.solo) {
                finished(&left).expect("the next command finishes it");
                assert_eq!(files(left.solo.store()), new_files(), "{way:?} at {n}");
                nothing_is_left(&left, n);
            }
        }
    }
}

#[test]
fn a_restore_path_by_path_whose_answers_are_lost_tells_the_truth() {
    let calls = calls();
    for way in [Way::AppliedBut(Errno::IO), Way::Fails(Errno::IO), Way::Late] {
        for n in 0..calls {
            let (world, two) = furnished_world();
            let mut lease = world.lease("s");
            world.solo.inject(n, way);
            let told = restore_under(&world, &mut lease, two);
            world.solo.clear_injected();
            world.solo.land_late_renames();
            let before = files(world.solo.store());
            match &told {
                Ok(()) => assert_eq!(before, new_files(), "{way:?} at call {n}"),
                Err(RestoreError::Unfinished(_)) => {}
                Err(error) => assert_eq!(before, old_files(), "{way:?} at call {n}: {error}"),
            }
            finished(&world).expect("the next command finishes it");
            let now = files(world.solo.store());
            assert!(now == old_files() || now == new_files(), "{way:?} at call {n}: {now:?}");
            let certain =
                told.is_ok() || matches!(told, Err(RestoreError::Unfinished(ref u)) if u.certain);
            assert!(!certain || now == new_files(), "{way:?} at call {n}: {told:?}");
        }
    }
}

fn explored(name: &str, also: Option<Process>, preemptions: u32) {
    let (world, two) = world();
    let world = world
        .process(Process::new("restorer", move |ctx: &Ctx| {
            let _ = restorer(ctx, two);
        }))
        .process(Process::new("successor", |ctx: &Ctx| {
            let _ = successor(ctx);
        }));
    let world = also.into_iter().fold(world, jvs_kit::sim::Explorer::process);
    let report = world.preemptions(preemptions).at_end(nobody_sees_a_mixture).run();
    eprintln!("{name}: {report}");
    report.holds();
}

#[test]
fn a_restore_path_by_path_and_a_successor_at_any_two_points_of_each_other() {
    explored("a restore and a successor", None, 2);
}

#[test]
fn a_restore_path_by_path_a_successor_and_a_collector() {
    let gc = Process::new("gc", |ctx: &Ctx| {
        let _ = collect(ctx, keep(100, 0));
    });
    explored("a restore, a successor, a collector", Some(gc), 1);
}

#[test]
fn a_restore_path_by_path_a_successor_and_a_power_cut() {
    let (world, two) = world();
    let report = world
        .process(Process::new("restorer", move |ctx: &Ctx| {
            let _ = restorer(ctx, two);
        }))
        .process(Process::new("successor", |ctx: &Ctx| drop(onlooker(ctx, "successor"))))
        .preemptions(1)
        .power_cuts(1, PowerCuts::Extremes)
        .at_end(nobody_sees_a_mixture)
        .run();
    eprintln!("a restore, a successor, a power cut: {report}");
    report.holds();
}
