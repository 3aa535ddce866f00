//! Each rule by which an undo loses nothing, switched off: what it goes back to, or what
//! it does not mean, is then lost.

use jvs_lock::Lease;
use jvs_protocol_tests::necessity::{needed_for, where_off};
use jvs_repo::id::SnapshotId;
use jvs_snapshot::Snapshots;
use jvs_snapshot::descriptor::LineStanding;
use jvs_snapshot::gc;
use jvs_snapshot::line::{LineClaim, LinePlace};
use jvs_snapshot::mutation::Rule;
use jvs_snapshot::progress::Silent;
use jvs_snapshot::take::{Request, SnapshotHold, TakeError, take};
use jvs_world::live;
use jvs_world::repository::main;
use jvs_world::sim::actors::keep;
use jvs_world::sim::{World, snapshot, snapshot_on};

/// What a policy that keeps nothing by itself would collect.
fn going(world: &World, off: Option<Rule>) -> Vec<SnapshotId> {
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let plan = where_off(off, || gc::plan(&at, keep(0, 0)).expect("planned"));
    plan.collect.iter().map(|one| one.snapshot_id).collect()
}

#[test]
fn what_an_undo_went_back_to_is_kept_as_a_head_is() {
    needed_for(Rule::LineEndIsKept, |off| {
        let world = World::new();
        let mut lease = world.lease("s");
        let one = snapshot(&world.solo, &mut lease, "one");
        let two = snapshot(&world.solo, &mut lease, "two");
        let undone = LineStanding { aside: true, follows: Some(one.id()) };
        snapshot_on(&world.solo, &mut lease, "two", Some(undone));
        world.solo.pass_ms(1_000);
        let going = going(&world, off);
        assert!(going.contains(&two.id()), "{off:?}: {going:?}");
        !going.contains(&one.id())
    });
}

#[test]
fn what_an_undo_is_about_to_go_back_to_is_kept() {
    needed_for(Rule::ClaimedIsKept, |off| {
        let world = World::new();
        let mut lease = world.lease("s");
        let one = snapshot(&world.solo, &mut lease, "one");
        snapshot(&world.solo, &mut lease, "two");
        world.solo.pass_ms(1_000);
        let trees = world.trees();
        let at = Snapshots::new(world.seams(), &trees);
        let state = lease.fence().expect("live").read().expect("read");
        let claim = where_off(off, || LineClaim::new(&at, &main(), &state, one.id()));
        let claim = claim.expect("it is there");
        let is_kept = !going(&world, None).contains(&one.id());
        claim.give_up(&at);
        is_kept
    });
}

/// Does an undo that saw two snapshots end in nothing, as a third was taken since?
fn nothing_is_moved(off: Option<Rule>) -> bool {
    let world = live::World::new();
    let mut lease = world.lease();
    let source = world.file("");
    let step = |lease: &mut Lease<'_>, text: &str| {
        world.write("file", text);
        world.snapshot(lease).id()
    };
    let (one, two) = (step(&mut lease, "one"), step(&mut lease, "two"));
    step(&mut lease, "three");
    let place = LinePlace::Move { from: Some(two), to: Some(one) };
    let request = Request { place, ..world.request(&source) };
    let mut hold = SnapshotHold::Lease(&mut lease);
    match where_off(off, || take(&world.at(), &mut hold, request, &Silent)) {
        Ok(taken) => taken.ready.descriptor().line_head() != Some(one),
        Err(error) => matches!(error, TakeError::Overtaken),
    }
}

#[test]
fn an_undo_takes_back_what_it_saw_and_no_later_snapshot() {
    needed_for(Rule::LineMovesAreBound, nothing_is_moved);
}
