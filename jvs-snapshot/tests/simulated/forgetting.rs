//! What is forgotten is what nobody needs, or what somebody says may go, and nothing else.

use jvs_kit::sim::Way;
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::Retention;
use jvs_repo::duration::Period;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::TagName;
use jvs_snapshot::gc::{self, Forgotten, Keep};
use jvs_snapshot::lineage::Lineage;
use jvs_snapshot::{SnapshotError, Snapshots, tags};
use jvs_world::repository::main;
use jvs_world::sim::{LONG_MS, World, snapshot};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn tag(name: &str) -> TagName {
    name.parse().expect("valid")
}

/// Three snapshots, oldest first; the second has two tags.
fn three(world: &World) -> Vec<SnapshotId> {
    let mut lease = world.lease("s");
    let mut ids = Vec::new();
    for n in 0..3 {
        let ready = snapshot(&world.solo, &mut lease, &format!("text {n}"));
        if n == 1 {
            for name in ["v1", "v2"] {
                tags::create(world.seams(), &tag(name), &ready, "s").expect("tagged");
            }
        }
        ids.push(ready.id());
    }
    lease.release().expect("released");
    world.solo.pass_ms(1_000);
    ids
}

fn forget(world: &World, id: SnapshotId, force: bool) -> Result<Forgotten, SnapshotError> {
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let ready = world.catalog().open(id)?;
    gc::forget(&at, &world.locks("s"), &ready, force, Some("why"), false)
}

#[track_caller]
fn needed(answer: Result<Forgotten, SnapshotError>) -> Vec<Keep> {
    let error = answer.expect_err("it is needed");
    assert_eq!(error.code(), Code::SnapshotNeeded);
    assert!(error.next().is_some(), "{error}");
    match error {
        SnapshotError::Needed { why, .. } => why,
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_forgotten_is_gone_and_its_descendants_stay() {
    let world = World::new();
    let ids = three(&world);
    assert_eq!(forget(&world, ids[0], false).expect("nobody needs it"), Forgotten::default());
    assert_eq!(world.visible(), ids[1..]);
    let lineage = Lineage::from_head(world.catalog(), world.head()).expect("a lineage");
    assert_eq!(lineage.filter(Result::is_ok).count(), 3, "it goes on over what was forgotten");
    world.assert_all_visible_are_whole();
    let again = forget(&world, ids[0], true).expect_err("it is gone");
    assert!(matches!(again, SnapshotError::Collected { .. }), "{again}");
}

#[test]
fn heads_and_what_work_stands_on_are_never_forgotten_and_tags_only_by_force() {
    let world = World::new();
    let ids = three(&world);
    for force in [false, true] {
        assert_eq!(needed(forget(&world, ids[2], force)), [Keep::Head(main())]);
    }
    let tagged = [Keep::Tagged(tag("v1")), Keep::Tagged(tag("v2"))];
    assert_eq!(needed(forget(&world, ids[1], false)), tagged);
    assert_eq!(world.visible(), ids, "a refusal changes nothing");
    let forgotten = forget(&world, ids[1], true).expect("tags may go");
    assert_eq!(forgotten.tags, [tag("v1"), tag("v2")]);
    assert!(tags::list(world.solo.store()).expect("read").tags.is_empty());

    // Somebody builds on the head while another one commits: the head that was is in use.
    let mut lease = world.lease("s");
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let draft = at.begin(&lease.fence().expect("live")).expect("begun");
    let next = snapshot(&world.solo, &mut lease, "next");
    assert_eq!(needed(forget(&world, next.id(), true)), [Keep::Head(main())]);
    drop(draft);
    lease.release().expect("released");
    assert!(world.visible().contains(&ids[2]));
}

#[test]
fn a_kill_at_any_call_of_a_forgetting_leaves_the_snapshot_whole_or_gone_and_loses_no_other() {
    let calls = {
        let world = World::new();
        let ids = three(&world);
        world.solo.forget_calls();
        forget(&world, ids[1], true).expect("forgotten");
        world.solo.call_count()
    };
    assert!(calls > 20, "{calls}");
    for n in 0..calls {
        let world = World::new();
        let ids = three(&world);
        world.solo.inject(n, Way::ThenDies);
        assert!(world.solo.run(|| forget(&world, ids[1], true).is_ok()).is_none(), "call {n}");
        for world in [World::on(world.solo.image()), World::on(world.solo.crash_image(0))] {
            world.assert_all_visible_are_whole();
            let seen = world.visible();
            assert!([ids[0], ids[2]].iter().all(|id| seen.contains(id)), "call {n}: {seen:?}");
            // The next collection ends what was begun.
            world.solo.pass_ms(LONG_MS);
            let trees = world.trees();
            let at = Snapshots::new(world.seams(), &trees);
            let policy = Retention { keep_within: Period::days(300), ..Retention::default() };
            let plan = gc::plan(&at, policy).expect("planned");
            gc::run(&at, &world.locks("gc"), &plan, &mut |_, _| {}).expect("collected");
            world.assert_all_visible_are_whole();
            assert_eq!(world.names(&layout::staging()), [""; 0], "call {n}");
        }
    }
}

#[test]
fn what_somebody_came_to_need_while_it_was_being_forgotten_stays() {
    for interrupted_at in 0.. {
        let world = World::new();
        let ids = three(&world);
        let needed = world.catalog().open(ids[0]).expect("visible");
        world.solo.inject(interrupted_at, Way::ThenDies);
        let ended = world.solo.run(|| forget(&world, ids[0], false).is_ok());
        world.solo.clear_injected();
        let tagged = tags::create(world.seams(), &tag("wanted"), &needed, "s").is_ok();
        world.solo.pass_ms(1);
        let trees = world.trees();
        let at = Snapshots::new(world.seams(), &trees);
        let plan = gc::plan(&at, Retention::default()).expect("planned");
        gc::run(&at, &world.locks("gc"), &plan, &mut |_, _| {}).expect("collected");
        let is_there = world.visible().contains(&ids[0]);
        assert!(is_there || !tagged, "after call {interrupted_at}");
        world.assert_all_visible_are_whole();
        if ended.is_some() {
            assert!(!tagged, "it was forgotten");
            break;
        }
    }
}

/// A snapshot every twelve hours for ten days.
fn ten_days(world: &World) -> Vec<SnapshotId> {
    let ids = (0..20).map(|n| {
        let mut lease = world.lease("s");
        let id = snapshot(&world.solo, &mut lease, &format!("text {n}")).id();
        lease.release().expect("released");
        world.solo.pass_ms(DAY_MS / 2);
        id
    });
    ids.collect()
}

#[test]
fn the_newest_of_each_day_is_kept_and_says_so() {
    let world = World::new();
    let ids = ten_days(&world);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let policy = Retention {
        keep_last: 0,
        keep_daily: 3,
        keep_within: Period::seconds(0),
        ..Retention::default()
    };
    let plan = gc::plan(&at, policy.clone()).expect("planned");
    let days = |ids: &mut dyn Iterator<Item = &SnapshotId>| {
        ids.map(|id| id.created_ms / DAY_MS).collect::<Vec<_>>()
    };
    let newest = ids.last().copied().expect("some");
    assert_eq!(plan.keep.last(), Some(&(newest, Keep::Head(main()))));
    let kept = days(&mut plan.keep.iter().map(|(id, _)| id));
    let last = newest.created_ms / DAY_MS;
    assert_eq!(kept, [last - 2, last - 1, last]);
    for (id, why) in &plan.keep[..2] {
        assert_eq!(*why, Keep::Daily(main()));
        let same_day = ids.iter().filter(|it| it.created_ms / DAY_MS == id.created_ms / DAY_MS);
        assert_eq!(same_day.max(), Some(id), "the newest of its day");
    }
    assert_eq!(plan.collect.len(), ids.len() - 3);
    gc::run(&at, &world.locks("gc"), &plan, &mut |_, _| {}).expect("collected");
    assert!(gc::plan(&at, policy).expect("planned").collect.is_empty(), "once is enough");
}

#[test]
fn without_a_tag_that_has_to_be_there_nothing_is_collected() {
    let world = World::new();
    three(&world);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let policy = |tags: &str| Retention {
        keep_last: 0,
        keep_within: Period::seconds(0),
        keep_tag: tags.parse().expect("a list"),
        ..Retention::default()
    };
    let error = gc::plan(&at, policy("v1,v9")).expect_err("there is no v9");
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(gc::plan(&at, policy("v1,v2")).expect("planned").collect.len(), 1);
}
