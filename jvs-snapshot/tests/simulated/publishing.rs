//! A snapshot is visible or it is not, whatever happens to its publisher.

use std::error::Error;
use std::io;

use jvs_kit::sim::{Errno, Way};
use jvs_lock::Want;
use jvs_repo::code::{Code, Coded as _};
use jvs_repo::layout;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::Store;
use jvs_snapshot::gc;
use jvs_snapshot::take::TakeError;
use jvs_snapshot::{PublishError, Snapshots};
use jvs_world::repository::main;
use jvs_world::session::forcing;
use jvs_world::sim::actors::keep;
use jvs_world::sim::{LEASE_MS, LONG_MS, World, about, fill, snapshot, stage};

/// How many calls one snapshot by a fresh process of the session makes.
fn calls_of_a_snapshot() -> usize {
    let world = World::new();
    let mut lease = world.lease("s");
    snapshot(&world.solo, &mut lease, "first");
    world.solo.forget_calls();
    snapshot(&world.solo, &mut lease, "second");
    world.solo.call_count()
}

/// Whatever was left: the next session gets the lock, sees the old history or
/// the old and exactly one new snapshot, adds its own, and a collection then
/// leaves nothing behind.
fn assert_recovers(world: &World, before: &[jvs_repo::id::SnapshotId], what: &str) {
    world.assert_all_visible_are_whole();
    let seen = world.history();
    let added = seen.len() - before.len();
    assert!(added <= 1 && seen[added..] == *before, "{what}: {before:?} became {seen:?}");

    world.solo.pass_ms(LONG_MS);
    let mut lease = world.lease("next");
    let third = snapshot(&world.solo, &mut lease, "third");
    world.assert_all_visible_are_whole();
    let now = world.history();
    assert_eq!(now[0], third.id(), "{what}");
    // A committed head that nobody had shown is shown by the next publisher.
    let added = now.len() - 1 - before.len();
    assert!(added <= 1 && now[1 + added..] == *before, "{what}: {now:?}");
    assert_eq!(now.len(), world.visible().len(), "{what}: READY outside of the lineage");

    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let plan = gc::plan(&at, keep(100, 0)).expect("planned");
    gc::run(&at, &world.locks("next"), &plan, &mut |_, _| {}).expect("collected");
    assert_eq!(world.history(), now, "{what}: a collection took something visible");
    assert_eq!(world.names(&layout::staging()), [""; 0], "{what}: something is left");
    assert_eq!(world.names(&layout::snapshots()).len(), now.len(), "{what}: something is left");
}

#[test]
fn a_kill_at_any_call_of_a_snapshot_leaves_the_old_history_or_exactly_the_new_one() {
    let calls = calls_of_a_snapshot();
    for n in 0..calls {
        for way in [Way::DiesFirst, Way::ThenDies] {
            let world = World::new();
            let mut lease = world.lease("s");
            let first = snapshot(&world.solo, &mut lease, "first");
            world.solo.inject(n, way);
            let ended = world.solo.run(|| snapshot(&world.solo, &mut lease, "second"));
            assert!(ended.is_none(), "call {n} is the last");
            assert_recovers(&world, &[first.id()], &format!("{way:?} at call {n}"));
        }
    }
}

#[test]
fn a_power_cut_at_any_call_of_a_snapshot_never_leaves_ready_without_what_it_promises() {
    let calls = calls_of_a_snapshot();
    for n in 0..=calls {
        let world = World::new();
        let mut lease = world.lease("s");
        let first = snapshot(&world.solo, &mut lease, "first");
        // The first one was reported, so nothing of it may be lost.
        if n < calls {
            world.solo.inject(n, Way::DiesFirst);
        }
        let ended = world.solo.run(|| snapshot(&world.solo, &mut lease, "second"));
        let images = world.solo.crash_images();
        for image in [0, images / 2, images - 1] {
            let left = World::on(world.solo.crash_image(image));
            let what = format!("power cut at call {n}, image {image} of {images}");
            assert_recovers(&left, &[first.id()], &what);
            if let Some(second) = &ended {
                assert!(left.history().contains(&second.id()), "{what}: reported and lost");
            }
        }
    }
}

#[test]
fn a_failing_call_of_a_snapshot_is_an_error_that_tells_the_truth() {
    let calls = calls_of_a_snapshot();
    for n in 0..calls {
        for way in [
            Way::Fails(Errno::IO),
            Way::Fails(Errno::NOSPC),
            Way::Fails(Errno::ACCESS),
            Way::AppliedBut(Errno::IO),
            Way::AppliedBut(Errno::NOENT),
            Way::Late,
        ] {
            let world = World::new();
            let mut lease = world.lease("s");
            let first = snapshot(&world.solo, &mut lease, "first");
            let trees = world.trees();
            let at = Snapshots::new(world.seams(), &trees);
            world.solo.pass_ms(1);
            world.solo.inject(n, way);
            let what = format!("{way:?} at call {n}");
            let published = match stage(world.seams(), &at, &mut lease, "second") {
                Err(_) => None,
                Ok(staged) => match lease.fence() {
                    Ok(fence) => Some(staged.publish(fence)),
                    Err(_) => None,
                },
            };
            world.solo.clear_injected();
            let told = match published {
                Some(Ok(ready)) => Some(ready.id()),
                // Certain: the snapshot is handed back and can be thrown away,
                // also if the rename that failed lands later.
                Some(Err(
                    PublishError::Fenced { staged, .. }
                    | PublishError::NotPublished { staged, .. }
                    | PublishError::HeadMoved { staged, .. },
                )) => {
                    staged.discard().expect("discarded");
                    world.solo.land_late_renames();
                    assert_eq!(world.history(), [first.id()], "{what}: told not published");
                    None
                }
                Some(Err(
                    PublishError::OutcomeUnknown { .. } | PublishError::NotYetVisible { .. },
                ))
                | None => None,
            };
            world.solo.land_late_renames();
            if let Some(second) = told {
                assert_eq!(world.history(), [second, first.id()], "{what}: told published");
            }
            assert_recovers(&world, &[first.id()], &what);
        }
    }
}

#[test]
fn a_steal_at_any_point_of_a_snapshot_fences_it_and_nothing_of_it_is_seen() {
    let calls = calls_of_a_snapshot();
    let mut fenced = 0;
    for n in 0..calls {
        // The thief needs the world to itself: the victim stops at call n, as a
        // process does that is paused, and goes on with what it has.
        let world = World::new();
        let mut lease = world.lease("victim");
        let first = snapshot(&world.solo, &mut lease, "first");
        let trees = world.trees();
        let at = Snapshots::new(world.seams(), &trees);
        world.solo.pass_ms(1);
        // Reaches call n of staging, or stages completely.
        world.solo.inject(n, Way::DiesFirst);
        let staged =
            world.solo.run(|| stage(world.seams(), &at, &mut lease, "second").expect("staged"));
        world.solo.clear_injected();
        let Some(staged) = staged else {
            let mut thief = steal(&world);
            let theirs = snapshot(&world.solo, &mut thief, "theirs");
            assert_eq!(world.history(), [theirs.id(), first.id()], "call {n}");
            continue;
        };
        let fence = lease.fence().expect("its own clock has not run out");
        let mut thief = steal(&world);
        let theirs = snapshot(&world.solo, &mut thief, "theirs");
        let error = staged.publish(fence).expect_err("the token is another");
        assert_eq!(error.code(), Code::FencingMismatch);
        let PublishError::Fenced { staged, .. } = error else { panic!("handed back: {error}") };
        let id = staged.id();
        staged.discard().expect("discarded");
        assert!(!world.visible().contains(&id));
        assert_eq!(world.history(), [theirs.id(), first.id()]);
        assert_eq!(world.names(&layout::staging()), [""; 0], "nothing is left behind");
        fenced += 1;
    }
    assert!(fenced > 0, "some steals fall between staging and the commit");
}

/// Takes the lock by force of an operator's freeze, which needs no expiry, and
/// then for itself.
fn steal(world: &World) -> jvs_lock::Lease<'_> {
    let thief = forcing(world.locks("thief"));
    thief.freeze(&main(), 1_000, "for a test", true).expect("forced");
    thief.unfreeze(&main(), "for a test").expect("lifted");
    thief.acquire(&main(), Want::lease(LEASE_MS)).expect("free")
}

#[test]
fn two_snapshots_of_one_hold_both_become_visible_one_on_top_of_the_other() {
    let world = World::new();
    let mut lease = world.lease("s");
    let first = snapshot(&world.solo, &mut lease, "first");
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let slow = stage(world.seams(), &at, &mut lease, "slow").expect("staged");
    let (slow_id, slow_parent) = (slow.id(), slow.bound().parent);
    let quick = snapshot(&world.solo, &mut lease, "quick");
    assert_eq!(slow_parent, Some(first.id()));

    let error = slow.publish(lease.fence().expect("live")).expect_err("the head moved");
    let PublishError::HeadMoved { staged, current } = error else { panic!("{error}") };
    assert_eq!(current, Some(quick.id()));
    let staged = staged.rebase(&lease.fence().expect("live")).expect("rebased");
    assert_ne!(staged.id(), slow_id, "an id is never used again");
    assert_eq!(staged.bound().parent, Some(quick.id()));
    let slow = staged.publish(lease.fence().expect("live")).expect("published");
    assert_eq!(world.history(), [slow.id(), quick.id(), first.id()]);
    world.assert_all_visible_are_whole();
    assert!(!world.names(&layout::snapshots()).contains(&slow_id.to_string()));
}

#[test]
fn a_kill_at_any_call_of_a_rebase_leaves_both_or_only_the_one_that_came_first() {
    for n in 0.. {
        let world = World::new();
        let mut lease = world.lease("s");
        let trees = world.trees();
        let at = Snapshots::new(world.seams(), &trees);
        let slow = stage(world.seams(), &at, &mut lease, "slow").expect("staged");
        let quick = snapshot(&world.solo, &mut lease, "quick");
        world.solo.inject(n, Way::ThenDies);
        let ended = world.solo.run(|| {
            let error = slow.publish(lease.fence().expect("live")).expect_err("the head moved");
            let PublishError::HeadMoved { staged, .. } = error else { panic!("{error}") };
            let staged = staged.rebase(&lease.fence().expect("live")).expect("rebased");
            staged.publish(lease.fence().expect("live")).expect("published")
        });
        world.solo.clear_injected();
        assert_recovers(&world, &[quick.id()], &format!("killed after call {n}"));
        if ended.is_some() {
            assert!(n > 10, "the loop has reached the end");
            break;
        }
    }
}

#[test]
fn a_hold_of_the_same_session_under_another_token_cannot_publish_what_the_first_began() {
    let world = World::new();
    let mut lease = world.lease("s");
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let staged = stage(world.seams(), &at, &mut lease, "old").expect("staged");
    lease.release().expect("released");
    let mut again = world.lease("s");
    let error = staged.publish(again.fence().expect("live")).expect_err("another token");
    assert_eq!(error.code(), Code::FencingMismatch);
    assert_eq!(world.head(), None);
}

#[test]
fn a_head_whose_publisher_died_is_made_visible_before_the_next_snapshot_is_begun() {
    let world = World::new();
    let mut lease = world.lease("s");
    let first = snapshot(&world.solo, &mut lease, "first");
    // As if its publisher had died between commit and READY.
    let dir = first.dir();
    let store = world.solo.store();
    store.rename(&layout::ready(&dir), &layout::ready_staged(&dir)).expect("hidden again");
    assert_eq!(world.history(), []);
    let trees = world.trees();
    let draft = Snapshots::new(world.seams(), &trees).begin(&lease.fence().expect("live"));
    let draft = draft.expect("begun");
    assert_eq!(draft.bound().parent, Some(first.id()));
    assert_eq!(world.history(), [first.id()], "helped before the new one was begun");
    draft.discard().expect("discarded");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}

#[test]
fn where_many_write_a_snapshot_needs_no_lease_but_a_token_that_stays() {
    let world = World::with(Isolation::Shared);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let publish = |take_over: bool| {
        world.solo.pass_ms(1);
        let mut shared = world.locks("s").share(&main()).expect("free");
        let draft = at.begin(&shared.fence()).expect("begun");
        let content = fill(world.solo.store(), &draft, "text").expect("filled");
        let now = jvs_repo::clock::Clock::now(world.solo.clock()).wall;
        let staged = draft.seal(about(now), content).expect("sealed");
        if take_over {
            steal(&world).release().expect("released");
        }
        staged.publish(shared.fence())
    };
    let one = publish(false).expect("published");
    let two = publish(false).expect("published");
    assert_eq!(world.history(), [two.id(), one.id()]);
    let error = publish(true).expect_err("the token moved");
    assert_eq!(error.code(), Code::FencingMismatch);
    assert_eq!(world.history(), [two.id(), one.id()]);
}

#[test]
fn what_the_filesystem_said_is_at_the_end_of_the_sources_of_a_failed_publication() {
    let (mut certain, mut open) = (0, 0);
    for n in 0..20 {
        let world = World::new();
        let mut lease = world.lease("s");
        let trees = world.trees();
        let at = Snapshots::new(world.seams(), &trees);
        let staged = stage(world.seams(), &at, &mut lease, "text").expect("staged");
        let fence = lease.fence().expect("live");
        world.solo.inject(n, Way::Fails(Errno::IO));
        let published = staged.publish(fence);
        world.solo.clear_injected();
        let Err(error) = published else { continue };
        let (staged, error) = error.hand_back();
        match staged {
            Some(_) => certain += 1,
            None => open += 1,
        }
        let error = TakeError::NotPublished(Box::new(error));
        let mut at: &(dyn Error + 'static) = &error;
        while let Some(source) = at.source() {
            at = source;
        }
        let said = at.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        assert_eq!(said, Some(Errno::IO.raw_os_error()), "call {n}: {error:?}");
    }
    assert!(certain > 0 && open > 0, "{certain} were certain and {open} were not");
}
