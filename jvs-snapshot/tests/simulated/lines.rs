//! The line of a worktree, and what is committed beside it.

use jvs_lock::Lease;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_snapshot::descriptor::LineStanding;
use jvs_snapshot::gc::{self, Keep, Uncalled};
use jvs_snapshot::line::LineClaim;
use jvs_snapshot::lineage::Lineage;
use jvs_snapshot::select::select;
use jvs_snapshot::{PublishError, Ready, SnapshotError, Snapshots, line};
use jvs_world::repository::main;
use jvs_world::sim::actors::keep;
use jvs_world::sim::{World, snapshot, snapshot_on, stage_on};

fn placed(world: &World, lease: &mut Lease<'_>, aside: bool, follows: &Ready) -> Ready {
    let line = LineStanding { aside, follows: Some(follows.id()) };
    snapshot_on(&world.solo, lease, "text", Some(line))
}

fn line_of(world: &World) -> Vec<SnapshotId> {
    let line = Lineage::line(world.catalog(), world.head()).expect("a line");
    line.map(|step| step.expect("unbroken").id()).collect()
}

/// Two steps, one of them undone and done again, something kept beside them, and a third.
fn history(world: &World, lease: &mut Lease<'_>) -> [Ready; 6] {
    let one = snapshot(&world.solo, lease, "one");
    let two = snapshot(&world.solo, lease, "two");
    let undone = placed(world, lease, true, &one);
    let redone = placed(world, lease, true, &two);
    let kept = placed(world, lease, true, &two);
    let three = placed(world, lease, false, &two);
    [one, two, undone, redone, kept, three]
}

#[test]
fn a_line_passes_over_what_is_beside_it_and_a_lineage_does_not() {
    let world = World::new();
    let mut lease = world.lease("s");
    let one = snapshot(&world.solo, &mut lease, "one");
    let two = snapshot(&world.solo, &mut lease, "two");
    let ends = |id: &Ready| {
        assert_eq!(line::end(world.catalog(), world.head()).expect("read"), Some(id.id()));
        let found = select(world.solo.store(), world.head(), "@").expect("found");
        assert_eq!(found.id(), id.id());
    };
    ends(&two);
    placed(&world, &mut lease, true, &one);
    ends(&one);
    assert_eq!(line_of(&world), [one.id()], "two is undone");
    placed(&world, &mut lease, true, &two);
    ends(&two);
    placed(&world, &mut lease, true, &two);
    let three = placed(&world, &mut lease, false, &two);
    ends(&three);
    assert_eq!(line_of(&world), [three.id(), two.id(), one.id()]);
    assert_eq!(world.history().len(), 6, "all of it was committed");
    let found = select(world.solo.store(), world.head(), "@-").expect("found");
    assert_eq!(found.id(), two.id());
}

#[test]
fn what_a_line_ends_with_is_kept_as_its_head_is_and_what_is_beside_it_only_while_it_is_young() {
    let world = World::new();
    let mut lease = world.lease("s");
    let [one, two, undone, redone, kept, three] = history(&world, &mut lease);
    let back = placed(&world, &mut lease, true, &two);
    lease.release().expect("released");
    world.solo.pass_ms(1_000);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    assert!(gc::plan(&at, keep(0, 1_000_000)).expect("planned").collect.is_empty());
    let plan = gc::plan(&at, keep(0, 0)).expect("planned");
    let heads = [(two.id(), Keep::Head(main())), (back.id(), Keep::LastCommit(main()))];
    assert_eq!(plan.keep, heads);
    let going: Vec<_> = plan.collect.iter().map(|one| (one.snapshot_id, one.why)).collect();
    let expected = [
        (one.id(), Uncalled::Outnumbered),
        (undone.id(), Uncalled::Beside),
        (redone.id(), Uncalled::Beside),
        (kept.id(), Uncalled::Beside),
        (three.id(), Uncalled::Outnumbered),
    ];
    assert_eq!(going, expected);
    gc::run(&at, &world.locks("collector"), &plan, &mut |_, _| {}).expect("collected");
    assert_eq!(line_of(&world), [two.id(), one.id()], "and what was collected before it");
}

#[test]
fn a_step_knows_what_it_follows_though_all_beside_it_was_collected() {
    let world = World::new();
    let mut lease = world.lease("s");
    let [one, two, undone, redone, kept, three] = history(&world, &mut lease);
    lease.release().expect("released");
    world.solo.pass_ms(1_000);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let plan = gc::plan(&at, keep(3, 0)).expect("planned");
    let going: Vec<_> = plan.collect.iter().map(|one| one.snapshot_id).collect();
    assert_eq!(going, [undone.id(), redone.id(), kept.id()], "the policy counts steps");
    gc::run(&at, &world.locks("collector"), &plan, &mut |_, _| {}).expect("collected");
    assert_eq!(line_of(&world), [three.id(), two.id(), one.id()]);
}

#[test]
fn what_is_put_on_top_of_another_head_stands_beside_the_line_of_that() {
    for aside in [true, false] {
        let world = World::new();
        let mut lease = world.lease("s");
        let one = snapshot(&world.solo, &mut lease, "one");
        let trees = world.trees();
        let at = Snapshots::new(world.seams(), &trees);
        let line = aside.then(|| LineStanding { aside, follows: Some(one.id()) });
        world.solo.pass_ms(1);
        let slow = stage_on(world.seams(), &at, &mut lease, "text", line).expect("staged");
        let two = snapshot(&world.solo, &mut lease, "two");
        let quick = placed(&world, &mut lease, true, &two);
        let error = slow.publish(lease.fence().expect("live")).expect_err("the head moved");
        let PublishError::HeadMoved { staged, .. } = error else { panic!("{error}") };
        let slow = staged.rebase(&lease.fence().expect("live")).expect("rebased");
        let slow = slow.publish(lease.fence().expect("live")).expect("published");
        assert_eq!(slow.descriptor().parent, Some(quick.id()));
        assert_eq!(slow.descriptor().line, Some(LineStanding { aside, follows: Some(two.id()) }));
        assert_eq!(world.names(&layout::staging()), [""; 0]);
    }
}

#[test]
fn a_claim_keeps_what_a_line_is_about_to_end_with() {
    let world = World::new();
    let mut lease = world.lease("s");
    let one = snapshot(&world.solo, &mut lease, "one");
    let two = snapshot(&world.solo, &mut lease, "two");
    let three = snapshot(&world.solo, &mut lease, "three");
    world.solo.pass_ms(1_000);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let going = || {
        let plan = gc::plan(&at, keep(0, 0)).expect("planned");
        plan.collect.iter().map(|one| one.snapshot_id).collect::<Vec<_>>()
    };
    assert_eq!(going(), [one.id(), two.id()]);
    let state = lease.fence().expect("live").read().expect("read");
    let claim = LineClaim::new(&at, &main(), &state, two.id()).expect("it is there");
    assert_eq!(going(), [one.id()]);
    claim.give_up(&at);
    assert_eq!(going(), [one.id(), two.id()]);
    // Of somebody who died: over with its term.
    drop(LineClaim::new(&at, &main(), &state, one.id()).expect("it is there"));
    assert_eq!(going(), [two.id()]);
    lease.release().expect("released");
    let lease = world.lease("t");
    assert_eq!(going(), [one.id(), two.id()]);
    lease.release().expect("released");
    let plan = gc::plan(&at, keep(0, 0)).expect("planned");
    gc::run(&at, &world.locks("collector"), &plan, &mut |_, _| {}).expect("collected");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    let gone = LineClaim::new(&at, &main(), &state, two.id()).err().expect("it was collected");
    assert!(matches!(gone, SnapshotError::Collected { .. }), "{gone}");
    assert_eq!(world.names(&layout::staging()), [""; 0], "nothing is claimed");
    assert_eq!(line_of(&world)[0], three.id());
}
