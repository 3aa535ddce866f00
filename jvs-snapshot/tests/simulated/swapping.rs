//! Restored files take the place of others in one step, or not at all.

use jvs_kit::sim::{Errno, Way};
use jvs_repo::code::{Code, Coded};
use jvs_repo::layout;
use jvs_repo::store::{RepoPath, Store};
use jvs_snapshot::restore::{swap_paths, swap_whole};

use crate::world::*;

fn put(world: &World, dir: &RepoPath, text: &str) {
    let store = world.solo.store();
    if store.stat(dir).is_err() {
        store.make_dir(dir).expect("made");
    }
    let file = store.create_new(&dir.child("file").expect("plain")).expect("created");
    file.write_at(0, text.as_bytes()).expect("written");
    file.sync().expect("synced");
    store.sync_dir(dir).expect("synced");
    store.sync_dir(&dir.parent()).expect("synced");
}

fn text(world: &World, dir: &RepoPath) -> Option<String> {
    let bytes = world.solo.store().read(&dir.child("file").expect("plain"), 100).ok()?;
    Some(String::from_utf8(bytes).expect("text"))
}

/// The worktree has `old`, a restored tree has `new`.
fn prepared() -> (World, RepoPath) {
    let world = World::new();
    put(&world, &layout::payload(&main()), "old");
    let dir = layout::staged("restore").expect("plain");
    world.solo.store().make_dir(&dir).expect("made");
    let tree = layout::snapshot_payload(&dir);
    put(&world, &tree, "new");
    world.solo.store().sync_dir(&layout::staging()).expect("synced");
    (world, tree)
}

#[test]
fn a_kill_or_a_power_cut_at_any_call_of_a_swap_leaves_all_old_or_all_new_files() {
    let calls = {
        let (world, tree) = prepared();
        let mut lease = world.lease("s");
        world.solo.forget_calls();
        swap_whole(world.seams(), &mut lease, &tree).expect("swapped");
        world.solo.call_count()
    };
    let mut seen = std::collections::BTreeSet::new();
    for n in 0..=calls {
        for way in [Way::DiesFirst, Way::ThenDies] {
            let (world, tree) = prepared();
            let mut lease = world.lease("s");
            let head = world.head();
            world.solo.inject(n, way);
            let ended = world.solo.run(|| swap_whole(world.seams(), &mut lease, &tree));
            let images = world.solo.crash_images();
            let after =
                [world.solo.image(), world.solo.crash_image(0), world.solo.crash_image(images / 2)];
            for image in after {
                let left = World::on(image);
                let now = text(&left, &layout::payload(&main())).expect("one of the two, whole");
                let other = text(&left, &tree).expect("and the other is not lost");
                assert_ne!(now, other, "{way:?} at call {n}");
                assert_eq!(left.head(), head, "the history stays");
                if ended.is_some() {
                    assert_eq!(now, "new", "reported, so it lasts");
                }
                seen.insert(now);
            }
        }
    }
    assert_eq!(seen.len(), 2, "both outcomes were met");
}

#[test]
fn an_exchange_whose_answer_was_lost_is_settled_by_looking() {
    for n in 0..40 {
        let (world, tree) = prepared();
        let mut lease = world.lease("s");
        world.solo.inject(n, Way::AppliedBut(Errno::IO));
        let told = swap_whole(world.seams(), &mut lease, &tree).is_ok();
        world.solo.clear_injected();
        let now = text(&world, &layout::payload(&main())).expect("whole");
        if told {
            assert_eq!(now, "new", "call {n}");
        }
    }
}

#[test]
fn a_lock_that_was_lost_swaps_nothing() {
    let (world, tree) = prepared();
    let mut lease = world.lease("s");
    let thief = world.locks("thief");
    thief.freeze(&main(), 1_000, "a test", true).expect("forced");
    let error = swap_whole(world.seams(), &mut lease, &tree).expect_err("fenced");
    assert_eq!(error.code(), Code::FencingMismatch);
    let path = RepoPath::root().child("file").expect("plain");
    let id = jvs_repo::id::SnapshotId { created_ms: 1, random: 1 };
    let error = swap_paths(world.seams(), &mut lease, &tree, &[path], id).expect_err("fenced");
    assert_eq!(error.code(), Code::FencingMismatch);
    assert_eq!(text(&world, &layout::payload(&main())).as_deref(), Some("old"));
}
