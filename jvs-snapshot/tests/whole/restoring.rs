//! From a snapshot back to files.

use std::os::unix::fs::MetadataExt;

use jvs_repo::code::{Code, Coded};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::RepoPath;
use jvs_snapshot::progress::Silent;
use jvs_snapshot::restore::Wish;
use jvs_snapshot::{SnapshotError, diff};

use crate::world::{World, main, read};

fn path(text: &str) -> RepoPath {
    text.split('/').fold(RepoPath::root(), |at, name| at.child(name).expect("plain"))
}

#[test]
fn a_new_worktree_has_the_files_of_a_snapshot_as_files_of_its_own_and_it_as_its_head() {
    let world = World::new();
    world.write("a.txt", "one");
    world.write("dir/b.txt", "two");
    let mut lease = world.lease();
    let first = world.snapshot(&mut lease);
    world.write("a.txt", "changed");
    world.snapshot(&mut lease);

    let name: WorktreeName = "copy".parse().expect("valid");
    let locks = world.locks("s");
    let restored = world
        .restore()
        .to_new_worktree(&locks, &first, &name, Isolation::Exclusive, &Silent)
        .expect("restored");
    assert_eq!(restored.record.base, Some(first.id()));
    let root = world.store.absolute(&layout::payload(&name));
    assert_eq!(read(&root.join("a.txt")), "one");
    for file in ["a.txt", "dir/b.txt"] {
        let inode = |path: &std::path::Path| std::fs::metadata(path).expect("stat").ino();
        assert_ne!(inode(&root.join(file)), inode(&world.kept(&first, file)), "{file}");
    }
    let head = locks.inspect(&name).expect("seen").state.head;
    assert_eq!(head, Some(first.id()));
    let changes = diff::since(&world.store, &first, &root, &Silent).expect("compared");
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    // Its history goes on where the snapshot's ended.
    let mut other = locks.acquire(&name, jvs_lock::Want::lease(30_000)).expect("free");
    let bound = world.at().begin(&other.fence().expect("live")).expect("begun");
    assert_eq!(bound.bound().parent, Some(first.id()));
    bound.discard().expect("discarded");
}

#[test]
fn a_worktree_that_cannot_be_made_leaves_nothing_behind() {
    let world = World::new();
    world.write("a.txt", "one");
    let first = world.snapshot(&mut world.lease());
    std::fs::write(world.kept(&first, "a.txt"), "tampered").expect("written");
    let name: WorktreeName = "copy".parse().expect("valid");
    let locks = world.locks("s");
    let make =
        || world.restore().to_new_worktree(&locks, &first, &name, Isolation::Exclusive, &Silent);
    let error = make().expect_err("tampered");
    assert_eq!(error.code(), Code::PayloadHashMismatch, "{error}");
    assert!(!world.store.absolute(&layout::payload(&name)).exists());
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    assert!(!world.names(&layout::locks()).contains(&"copy.fence".to_owned()));
}

#[test]
fn in_place_all_files_are_swapped_at_once_and_the_head_stays() {
    let world = World::new();
    world.write("a.txt", "old");
    world.write("only-old", "x");
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    world.write("a.txt", "new");
    std::fs::remove_file(world.file("only-old")).expect("removed");
    let new = world.snapshot(&mut lease);
    let wish = Wish { source: &old, kept: Some(&new), paths: &[], reason: "a test" };
    let locks = world.locks("s");
    let done = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect("restored");
    assert!(done.left.is_none());
    assert_eq!(read(&world.file("a.txt")), "old");
    assert_eq!(read(&world.file("only-old")), "x");
    let head = lease.fence().expect("live").read().expect("read").head;
    assert_eq!(head, Some(new.id()), "what was replaced is the head, and one `diff` away");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    let logs = jvs_lock::history::read_logs(&world.store).expect("read");
    let told = logs.events.iter().filter(|logged| {
        logged.event.kind == jvs_repo::audit::Kind::Restore
            && logged.event.reason.as_deref() == Some("a test")
    });
    assert_eq!(told.count(), 2, "what was about to be done, and that it was done");
}

#[test]
fn old_files_that_somebody_wrote_to_after_they_were_captured_are_not_thrown_away() {
    let world = World::new();
    world.write("a.txt", "old");
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    world.write("a.txt", "unsaved");
    let wish = Wish { source: &old, kept: Some(&old), paths: &[], reason: "a test" };
    let locks = world.locks("s");
    let done = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect("restored");
    let (left, changed) = done.left.expect("kept");
    assert_eq!(changed[0].path.to_string(), "a.txt");
    assert_eq!(read(&world.store.absolute(&left).join("a.txt")), "unsaved");
    assert_eq!(read(&world.file("a.txt")), "old");
}

#[test]
fn single_paths_are_restored_and_the_others_stay() {
    let world = World::new();
    for (path, text) in [("a", "old"), ("b", "old"), ("d/c", "old"), ("e/f/g", "old")] {
        world.write(path, text);
    }
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    for path in ["a", "b", "d/c"] {
        world.write(path, "new");
    }
    std::fs::remove_dir_all(world.file("e")).expect("removed");
    let new = world.snapshot(&mut lease);
    let locks = world.locks("s");
    let paths = [path("a"), path("d"), path("e/f/g")];
    let wish = Wish { source: &old, kept: Some(&new), paths: &paths, reason: "a test" };
    let _ = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect("restored");
    assert_eq!((read(&world.file("a")), read(&world.file("b"))), ("old".into(), "new".into()));
    assert_eq!(
        (read(&world.file("d/c")), read(&world.file("e/f/g"))),
        ("old".into(), "old".into())
    );

    let paths = [path("b"), path("nowhere")];
    let wish = Wish { source: &old, kept: Some(&new), paths: &paths, reason: "a test" };
    let error = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect_err("no such");
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(read(&world.file("b")), "new", "all of them or none");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}

#[test]
fn a_hidden_or_missing_snapshot_cannot_be_restored() {
    let world = World::new();
    let catalog = world.at().catalog();
    let id = SnapshotId { created_ms: 1, random: 1 };
    assert!(matches!(catalog.open(id), Err(SnapshotError::NotFound { .. })));
    let mut lease = world.lease();
    let draft = world.at().begin(&lease.fence().expect("live")).expect("begun");
    let id = draft.bound().id;
    std::fs::rename(
        world.store.absolute(&draft.dir()),
        world.store.absolute(&layout::snapshot(id)),
    )
    .expect("moved");
    assert!(matches!(catalog.open(id), Err(SnapshotError::Hidden { .. })));
    assert_eq!(lease.worktree(), &main());
}
