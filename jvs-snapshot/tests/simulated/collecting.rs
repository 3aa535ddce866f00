//! A collection removes what nobody needs, and nothing else, wherever it stops.

use jvs_kit::sim::Way;
use jvs_lock::worktrees;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::TagName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::Store;
use jvs_snapshot::catalog::Presence;
use jvs_snapshot::gc::{self, Keep};
use jvs_snapshot::lineage::Lineage;
use jvs_snapshot::{Snapshots, tags};
use jvs_world::repository::main;
use jvs_world::sim::actors::keep;
use jvs_world::sim::{LEASE_MS, LONG_MS, World, fill, snapshot, stage};

fn tag(name: &str) -> TagName {
    name.parse().expect("valid")
}

/// Five snapshots, oldest first; the second has a tag. Keeping the last two lets
/// the first and the third go.
fn five(world: &World) -> Vec<SnapshotId> {
    let mut lease = world.lease("s");
    let mut ids = Vec::new();
    for n in 0..5 {
        let ready = snapshot(&world.solo, &mut lease, &format!("text {n}"));
        if n == 1 {
            tags::create(world.seams(), &tag("kept"), &ready, "s").expect("tagged");
        }
        ids.push(ready.id());
    }
    lease.release().expect("released");
    world.solo.pass_ms(1_000);
    ids
}

fn collect(world: &World) -> gc::Freed {
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let plan = gc::plan(&at, keep(2, 10)).expect("planned");
    gc::run(&at, &world.locks("collector"), &plan, &mut |_, _| {}).expect("collected")
}

#[test]
fn heads_their_newest_ancestors_tags_and_the_young_are_kept_and_each_says_why() {
    let world = World::new();
    let ids = five(&world);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let plan = gc::plan(&at, keep(2, 10)).expect("planned");
    let going: Vec<_> = plan.collect.iter().map(|unneeded| unneeded.snapshot_id).collect();
    assert_eq!(going, [ids[0], ids[2]]);
    let kept = [
        (ids[1], Keep::Tagged(tag("kept"))),
        (ids[3], Keep::Recent(main())),
        (ids[4], Keep::Head(main())),
    ];
    assert_eq!(plan.keep, kept);
    assert_eq!(world.visible(), ids, "a plan changes nothing");
    let young = gc::plan(&at, keep(0, 1_000_000)).expect("planned");
    assert!(young.collect.is_empty(), "{young:?}");
    let strict = gc::plan(&at, keep(0, 0)).expect("planned");
    assert_eq!(strict.keep.len(), 2, "whatever the policy: the head and the tag: {strict:?}");
}

#[test]
fn a_lineage_goes_on_over_what_was_collected() {
    let world = World::new();
    let ids = five(&world);
    let freed = collect(&world);
    assert_eq!(freed.snapshots, [ids[0], ids[2]]);
    assert_eq!(freed.bytes, 12);
    assert_eq!(world.history(), [ids[4], ids[3], ids[1]]);
    let lineage = Lineage::from_head(world.catalog(), world.head()).expect("a lineage");
    let all: Vec<_> = lineage.map(|step| step.expect("unbroken").id()).collect();
    assert_eq!(all, [ids[4], ids[3], ids[2], ids[1], ids[0]]);
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    assert_eq!(collect(&world), gc::Freed::default(), "once is enough");
}

/// Another mount may remember READY for as long as its entry cache says.
#[test]
fn a_collected_snapshot_whose_ready_is_remembered_is_not_taken_for_a_broken_one() {
    let world = World::new();
    let ids = five(&world);
    collect(&world);
    let store = world.solo.store();
    let dir = layout::snapshot(ids[0]);
    store.make_dir(&dir).expect("it was removed");
    drop(store.create_new(&layout::ready(&dir)).expect("an empty directory"));
    assert!(matches!(world.catalog().look(ids[0]), Ok(Presence::Collected(_))));
    assert_eq!(world.history(), [ids[4], ids[3], ids[1]]);
}

#[test]
fn a_kill_at_any_call_of_a_collection_loses_nothing_that_is_kept_and_the_next_one_finishes_it() {
    let calls = {
        let world = World::new();
        five(&world);
        world.solo.forget_calls();
        collect(&world);
        world.solo.call_count()
    };
    assert!(calls > 30, "{calls}");
    for n in 0..calls {
        let world = World::new();
        let ids = five(&world);
        world.solo.inject(n, Way::ThenDies);
        assert!(world.solo.run(|| collect(&world)).is_none(), "call {n} is the last");
        let images = world.solo.crash_images();
        let after_kill = World::on(world.solo.image());
        let after_power_cut = World::on(world.solo.crash_image(0));
        let somewhere = World::on(world.solo.crash_image(images / 2));
        for world in [after_kill, after_power_cut, somewhere] {
            world.assert_all_visible_are_whole();
            let kept = [ids[4], ids[3], ids[1]];
            let seen = world.history();
            assert!(kept.iter().all(|id| seen.contains(id)), "call {n}: {seen:?}");
            world.solo.pass_ms(LONG_MS);
            collect(&world);
            assert_eq!(world.history(), kept, "call {n}");
            world.assert_all_visible_are_whole();
            assert_eq!(world.names(&layout::staging()), [""; 0], "call {n}");
        }
    }
}

#[test]
fn what_somebody_came_to_need_while_it_was_being_collected_is_put_back_whole() {
    for interrupted_at in 0.. {
        let world = World::new();
        let ids = five(&world);
        let needed = world.catalog().open(ids[0]).expect("visible");
        let trees = world.trees();
        let at = Snapshots::new(world.seams(), &trees);
        let plan = gc::plan(&at, keep(2, 10)).expect("planned");
        world.solo.inject(interrupted_at, Way::ThenDies);
        let ended = world.solo.run(|| {
            gc::run(&at, &world.locks("collector"), &plan, &mut |_, _| {}).expect("collected")
        });
        world.solo.clear_injected();
        // The tagger saw the snapshot before; what it is told now is the truth,
        // and stays so.
        let tagged = tags::create(world.seams(), &tag("wanted"), &needed, "s").is_ok();
        world.solo.pass_ms(1);
        collect(&world);
        assert_eq!(world.visible().contains(&ids[0]), tagged, "after call {interrupted_at}");
        world.assert_all_visible_are_whole();
        if ended.is_some() {
            assert!(!tagged, "a whole collection had removed it");
            break;
        }
    }
}

#[test]
fn a_snapshot_set_aside_whole_comes_back_if_a_tag_stands_for_it() {
    let world = World::new();
    let ids = five(&world);
    let needed = world.catalog().open(ids[0]).expect("visible");
    // A collector that died right after it had set the snapshot aside, and a
    // tagger whose tag was written just before.
    tags::create(world.seams(), &tag("wanted"), &needed, "s").expect("tagged");
    let store = world.solo.store();
    let aside = layout::staged(&format!("condemned.{}.0707070707070707", ids[0])).expect("plain");
    store.rename(&layout::snapshot(ids[0]), &aside).expect("aside");
    let freed = collect(&world);
    assert_eq!(freed.put_back, [ids[0]]);
    assert!(world.visible().contains(&ids[0]));
    world.assert_all_visible_are_whole();
}

#[test]
fn what_is_being_built_is_left_alone_until_its_token_is_over_and_then_removed() {
    let world = World::new();
    let ids = five(&world);
    let mut lease = world.lease("slow");
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let draft = at.begin(&lease.fence().expect("live")).expect("begun");
    fill(world.solo.store(), &draft, "draft").expect("filled");
    let staged = stage(world.seams(), &at, &mut lease, "staged").expect("staged");
    let hidden = staged.id();
    let freed = collect(&world);
    assert_eq!(freed.dead, 0, "somebody's work");
    assert!(world.names(&layout::snapshots()).contains(&hidden.to_string()));

    world.solo.pass_ms(LONG_MS);
    world.lease("next").release().expect("released");
    let freed = collect(&world);
    assert_eq!(freed.dead, 2);
    assert!(!world.names(&layout::snapshots()).contains(&hidden.to_string()));
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    assert_eq!(world.history(), [ids[4], ids[3], ids[1]]);
}

#[test]
fn what_cannot_be_understood_is_never_removed() {
    let world = World::new();
    five(&world);
    let store = world.solo.store();
    let odd = [
        layout::staged("snapshot.of.something.else").expect("plain"),
        layout::snapshot(SnapshotId { created_ms: 1, random: 1 }),
        layout::snapshots().child("notes").expect("plain"),
    ];
    for dir in &odd {
        store.make_dir(dir).expect("made");
    }
    let torn = layout::snapshot(SnapshotId { created_ms: 2, random: 2 });
    store.make_dir(&torn).expect("made");
    let file = store.create_new(&layout::descriptor(&torn)).expect("created");
    file.write_at(0, b"{\"snapshot_id\":").expect("written");
    world.solo.pass_ms(LONG_MS);
    world.lease("next").release().expect("released");
    let trees = world.trees();
    let plan = gc::plan(&Snapshots::new(world.seams(), &trees), keep(2, 10)).expect("planned");
    assert_eq!(plan.left_alone.len(), 4, "{:?}", plan.left_alone);
    collect(&world);
    for dir in odd.iter().chain([&torn]) {
        assert!(store.stat(dir).is_ok(), "{dir} was removed");
    }
}

#[test]
fn a_register_or_a_tag_that_cannot_be_read_stops_every_collection() {
    let world = World::new();
    five(&world);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let store = world.solo.store();
    let other = layout::register(&"other".parse().expect("valid"));
    store.make_dir(&other).expect("made");
    gc::plan(&at, keep(0, 0)).expect_err("a register without its entry");
    store.remove_dir(&other).expect("removed");
    let bad = store.create_new(&layout::tag(&tag("torn"))).expect("created");
    bad.write_at(0, b"{").expect("written");
    gc::plan(&at, keep(0, 0)).expect_err("a tag that may stand for anything");
}

#[test]
fn the_head_of_a_worktree_that_was_renamed_is_kept_and_of_a_removed_one_only_while_it_is_young() {
    let world = World::new();
    let other: jvs_repo::name::WorktreeName = "other".parse().expect("valid");
    let renamed: jvs_repo::name::WorktreeName = "renamed".parse().expect("valid");
    let locks = world.locks("s");
    worktrees::create(&locks, &other, Isolation::Exclusive).expect("made");
    let mut lease = locks.acquire(&other, jvs_lock::Want::lease(LEASE_MS)).expect("free");
    let head = snapshot(&world.solo, &mut lease, "of the other");
    lease.release().expect("released");
    worktrees::rename(&locks, &other, &renamed).expect("renamed");
    world.solo.pass_ms(1_000);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let plan = gc::plan(&at, keep(0, 0)).expect("planned");
    assert_eq!(plan.keep, [(head.id(), Keep::Head(renamed.clone()))]);

    let _ = worktrees::remove(&locks, &renamed, true).expect("removed");
    let young = gc::plan(&at, keep(0, 1_000_000)).expect("planned");
    assert_eq!(young.keep, [(head.id(), Keep::Young)]);
    let old = gc::plan(&at, keep(0, 0)).expect("planned");
    assert_eq!(old.collect.len(), 1);
}

/// Puts what was collected into ledgers, however little it is.
fn compact(world: &World) {
    let trees = world.trees();
    let left = gc::compact(&Snapshots::new(world.seams(), &trees)).expect("compacted");
    assert_eq!(left, [], "everything could be removed");
}

/// The names in the directory of snapshots that are tombstones, loose ones and ledgers.
fn files_of_tombstones(world: &World) -> [usize; 2] {
    let names = world.names(&layout::snapshots());
    let loose = names.iter().filter(|name| layout::id_of_tombstone(name).is_some());
    let ledgers = names.iter().filter(|name| layout::op_of_ledger(name).is_some());
    [loose.count(), ledgers.count()]
}

#[test]
fn a_lineage_goes_on_over_what_is_in_a_ledger() {
    let world = World::new();
    let ids = five(&world);
    collect(&world);
    assert_eq!(files_of_tombstones(&world), [2, 0], "so few are left alone");
    compact(&world);
    assert_eq!(files_of_tombstones(&world), [0, 1]);
    let lineage = Lineage::from_head(world.catalog(), world.head()).expect("a lineage");
    let all: Vec<_> = lineage.map(|step| step.expect("unbroken").id()).collect();
    assert_eq!(all, [ids[4], ids[3], ids[2], ids[1], ids[0]]);
    assert!(matches!(world.catalog().look(ids[0]), Ok(Presence::Collected(_))));
    assert!(world.catalog().was_ready(ids[0]).expect("read"));
    let before = world.names(&layout::snapshots());
    compact(&world);
    assert_eq!(world.names(&layout::snapshots()), before, "there is nothing to put together");
}

#[test]
fn a_collection_of_many_leaves_one_ledger() {
    let world = World::new();
    let mut lease = world.lease("s");
    for n in 0..20 {
        snapshot(&world.solo, &mut lease, &format!("text {n}"));
    }
    lease.release().expect("released");
    world.solo.pass_ms(1_000);
    collect(&world);
    assert_eq!(files_of_tombstones(&world), [0, 1]);
    let lineage = Lineage::from_head(world.catalog(), world.head()).expect("a lineage");
    assert_eq!(lineage.filter(Result::is_ok).count(), 20);
}

#[test]
fn a_ledger_that_is_not_what_was_written_stays_and_denies_nothing() {
    let world = World::new();
    let ids = five(&world);
    collect(&world);
    compact(&world);
    let names = world.names(&layout::snapshots());
    let ledger = names.iter().find(|name| layout::op_of_ledger(name).is_some()).expect("one");
    let path = layout::snapshots().child(ledger).expect("plain");
    let file = world.solo.store().open_writable(&path).expect("there");
    file.write_at(20, b"\xff").expect("written");
    let error = world.catalog().look(ids[0]).expect_err("it may have been collected");
    assert!(error.to_string().contains("digest"), "{error}");
    assert!(world.catalog().open(ids[4]).is_ok(), "what is there needs no ledger");
    compact(&world);
    assert!(world.names(&layout::snapshots()).contains(ledger), "somebody has to look at it");
}

#[test]
fn a_death_or_a_power_cut_at_any_call_of_putting_tombstones_together_loses_none() {
    let begun = |world: &World| {
        let ids = five(world);
        collect(world);
        compact(world);
        // A ledger that the next one takes in, and a loose one.
        let mut lease = world.lease("s");
        snapshot(&world.solo, &mut lease, "sixth");
        lease.release().expect("released");
        world.solo.pass_ms(1_000);
        collect(world);
        assert_eq!(files_of_tombstones(world), [1, 1]);
        ids
    };
    let calls = {
        let world = World::new();
        begun(&world);
        world.solo.forget_calls();
        compact(&world);
        world.solo.call_count()
    };
    assert!(calls > 10, "{calls}");
    for n in 0..calls {
        let world = World::new();
        let ids = begun(&world);
        world.solo.inject(n, Way::ThenDies);
        assert!(world.solo.run(|| compact(&world)).is_none(), "call {n} is the last");
        let images = world.solo.crash_images();
        let some = [0, images / 3, images / 2, images.saturating_sub(1)];
        let cut = some.map(|image| World::on(world.solo.crash_image(image)));
        for world in std::iter::once(World::on(world.solo.image())).chain(cut) {
            let steps = Lineage::from_head(world.catalog(), world.head()).expect("a lineage");
            let steps: Result<Vec<_>, _> = steps.map(|step| step.map(|step| step.id())).collect();
            let steps = steps.unwrap_or_else(|error| panic!("call {n}: {error}"));
            assert!(ids.iter().all(|id| steps.contains(id)), "call {n}: {steps:?}");
            world.solo.pass_ms(LONG_MS);
            compact(&world);
            assert_eq!(files_of_tombstones(&world), [0, 1], "call {n}");
        }
    }
}
