//! Finding snapshots by what people call them.

use jvs_repo::code::{Code, Coded};
use jvs_repo::id::{Generation, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::TagName;
use jvs_repo::record::ready;
use jvs_repo::store::Store;
use jvs_snapshot::lineage::Lineage;
use jvs_snapshot::select::select;
use jvs_snapshot::{Ready, SnapshotError, tags};
use jvs_world::sim::{World, snapshot};

fn three(world: &World) -> Vec<Ready> {
    let mut lease = world.lease("s");
    let made = (0..3).map(|n| snapshot(&world.solo, &mut lease, &format!("{n}"))).collect();
    lease.release().expect("released");
    made
}

fn found(world: &World, name: &str) -> Result<SnapshotId, SnapshotError> {
    select(world.solo.store(), world.head(), name).map(|ready| ready.id())
}

fn tag(name: &str) -> TagName {
    name.parse().expect("valid")
}

#[test]
fn a_snapshot_is_found_by_id_by_a_unique_prefix_by_tag_and_from_the_head_backwards() {
    let world = World::new();
    let made = three(&world);
    tags::create(world.seams(), &tag("v1"), &made[0], "s").expect("tagged");
    let id = made[1].id();
    let random = format!("{:08x}", id.random);
    for (name, expected) in [
        ("@", made[2].id()),
        ("@-", id),
        ("@--", made[0].id()),
        ("v1", made[0].id()),
        (&id.to_string(), id),
        (&random, id),
        (&random[..6], id),
        (&id.to_string()[..20], id),
    ] {
        assert_eq!(found(&world, name).expect(name), expected, "{name}");
    }
}

#[test]
fn what_is_not_there_or_not_unique_or_not_visible_is_told_apart() {
    let world = World::new();
    let made = three(&world);
    for name in ["@---", "nothing", "", "ffffffffffff", "@x", "1-00000000"] {
        assert_eq!(found(&world, name).expect_err(name).code(), Code::NotFound, "{name}");
    }
    let shared = &made[0].id().created_ms.to_string()[..8];
    let error = found(&world, shared).expect_err("all three begin with it");
    assert_eq!(error.code(), Code::Usage);
    assert_eq!(error.details().expect("details")["candidates"].as_array().map(Vec::len), Some(3));

    let dir = made[1].dir();
    let store = world.solo.store();
    store.rename(&layout::ready(&dir), &layout::ready_staged(&dir)).expect("hidden");
    let hidden = found(&world, &made[1].id().to_string()).expect_err("hidden");
    assert!(matches!(hidden, SnapshotError::Hidden { .. }), "{hidden}");
    let broken = found(&world, "@-").expect_err("an ancestor without READY");
    assert_eq!(broken.code(), Code::LineageBroken);
    assert_eq!(found(&World::new(), "@").expect_err("no head").code(), Code::NotFound);
}

#[test]
fn a_lineage_whose_parent_is_missing_or_whose_count_does_not_fall_is_broken() {
    let world = World::new();
    let made = three(&world);
    let store = world.solo.store();
    let away = layout::staged("away").expect("plain");
    store.rename(&made[0].dir(), &away).expect("moved");
    let steps: Vec<_> = Lineage::from_head(world.catalog(), world.head()).expect("begun").collect();
    assert_eq!(steps.len(), 3);
    let error = steps[2].as_ref().expect_err("missing");
    assert_eq!(error.code(), Code::LineageBroken);
    assert!(error.to_string().contains(&made[0].id().to_string()), "{error}");

    // Of three commits the second counts as the third, or the first as the second.
    for (at, counts_as) in [(1, 3), (1, 4), (0, 2), (0, 3)] {
        let world = World::new();
        let made = three(&world);
        count(&world, &made[at], Generation(counts_as));
        assert!(world.catalog().open(made[at].id()).is_ok(), "it is what was written");
        let lineage = Lineage::from_head(world.catalog(), world.head()).expect("begun");
        let steps: Vec<_> = lineage.collect();
        let error = steps[2 - at].as_ref().expect_err("its count does not fall");
        assert_eq!(error.code(), Code::LineageBroken);
        assert_eq!(steps.len(), 3 - at, "nothing is believed from there on");
    }
}

/// Has `snapshot` count as commit `commit_seq`, as if it had been written so.
fn count(world: &World, snapshot: &Ready, commit_seq: Generation) {
    let mut descriptor = snapshot.descriptor().clone();
    descriptor.commit_seq = commit_seq;
    let (bytes, checksum) = descriptor.seal();
    let store = world.solo.store();
    let dir = snapshot.dir();
    for (path, bytes) in [
        (layout::descriptor(&dir), bytes),
        (layout::ready(&dir), ready::bytes(snapshot.id(), checksum)),
    ] {
        store.unlink(&path).expect("unlinked");
        store.write_tmp(&path, &bytes).expect("written");
    }
}

#[test]
fn a_descriptor_that_was_changed_is_named_and_nothing_is_opened_by_it() {
    let world = World::new();
    let made = three(&world);
    let path = layout::descriptor(&made[1].dir());
    let file = world.solo.store().open_writable(&path).expect("opened");
    file.write_at(40, b"X").expect("written");
    let error = world.catalog().open(made[1].id()).expect_err("tampered");
    assert_eq!(error.code(), Code::DescriptorCorrupt);
    assert!(error.to_string().contains(path.as_str()), "{error}");
    let copied = layout::descriptor(&made[2].dir());
    world.solo.store().unlink(&path).expect("unlinked");
    world.solo.store().rename(&copied, &path).expect("moved");
    let error = world.catalog().open(made[1].id()).expect_err("another's descriptor");
    assert!(error.to_string().contains("it describes"), "{error}");
}

#[test]
fn a_tag_stays_what_it_is_until_it_is_deleted() {
    let world = World::new();
    let made = three(&world);
    let store = world.solo.store();
    let made_tag = tags::create(world.seams(), &tag("v1"), &made[0], "s").expect("tagged");
    let again = tags::create(world.seams(), &tag("v1"), &made[1], "s").expect_err("is there");
    assert_eq!(again.code(), Code::Exists);
    assert_eq!(tags::read(store, &tag("v1")).expect("read"), Some(made_tag.clone()));
    assert_eq!(tags::list(store).expect("listed").of(made[0].id()), [&tag("v1")]);
    assert_eq!(tags::delete(world.seams(), &tag("v1")).expect("deleted"), Some(made_tag));
    assert_eq!(tags::delete(world.seams(), &tag("v1")).expect("nothing to delete"), None);
    let id = tag(&made[0].id().to_string());
    let error = tags::create(world.seams(), &id, &made[0], "s").expect_err("an id");
    assert_eq!(error.code(), Code::Usage);
}

#[test]
fn a_change_of_any_byte_of_a_tag_is_noticed() {
    let world = World::new();
    let made = three(&world);
    let store = world.solo.store();
    tags::create(world.seams(), &tag("v1"), &made[0], "s").expect("tagged");
    let path = layout::tag(&tag("v1"));
    let bytes = store.read(&path, 10_000).expect("read");
    let file = store.open_writable(&path).expect("opened");
    for (at, byte) in bytes.iter().enumerate() {
        file.write_at(at as u64, &[byte ^ 1]).expect("written");
        let error = tags::read(store, &tag("v1")).expect_err("tampered");
        assert_eq!(error.code(), Code::RecordInvalid, "byte {at}");
        file.write_at(at as u64, &[*byte]).expect("written");
    }
    assert!(tags::read(store, &tag("v1")).expect("as it was").is_some());
}

#[test]
fn a_look_at_the_newest_costs_the_same_however_many_there_are() {
    let cost = |snapshots: u32| {
        let world = World::new();
        let mut lease = world.lease("s");
        for n in 0..snapshots {
            snapshot(&world.solo, &mut lease, &n.to_string());
        }
        let head = world.head();
        world.solo.forget_calls();
        let lineage = Lineage::from_head(world.catalog(), head).expect("begun");
        assert_eq!(lineage.take(5).filter(Result::is_ok).count(), 5);
        world.solo.call_count()
    };
    assert_eq!(cost(6), cost(40));
}
