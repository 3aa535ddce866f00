//! From a snapshot back to files.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use jvs_kit::live::loopfs::SmallFs;
use jvs_kit::live::writer::{Way, Writer};
use jvs_repo::code::{Code, Coded};
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{PosixStore, RepoPath, Store, TreeListing};
use jvs_snapshot::chosen::ChosenPaths;
use jvs_snapshot::compare::Trust;
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::progress::{Progress, Silent};
use jvs_snapshot::restore::leftover::{self, Worth};
use jvs_snapshot::restore::{Restore, RestoreRequest};
use jvs_snapshot::staging_name::StagingName;
use jvs_snapshot::trees::Trees;
use jvs_snapshot::{Ready, SnapshotError, Snapshots, diff};
use jvs_world::live::{World, read};
use jvs_world::repository::main;

fn path(text: &str) -> TreePath {
    TreePath::new(text.as_bytes().to_vec()).expect("plain")
}

fn chosen(paths: &[&str]) -> ChosenPaths {
    ChosenPaths::new(paths.iter().map(|text| path(text))).expect("some")
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
        let inode = |path: &std::path::Path| fs_err::metadata(path).expect("stat").ino();
        assert_ne!(inode(&root.join(file)), inode(&world.kept(&first, file)), "{file}");
    }
    let head = locks.inspect(&name).expect("seen").state.head;
    assert_eq!(head, Some(first.id()));
    let changes =
        diff::since(&world.store, &first, &root, Trust::Hints, &Silent).expect("compared");
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
    fs_err::write(world.kept(&first, "a.txt"), "tampered").expect("written");
    let name: WorktreeName = "copy".parse().expect("valid");
    let locks = world.locks("s");
    let make =
        || world.restore().to_new_worktree(&locks, &first, &name, Isolation::Exclusive, &Silent);
    let error = make().expect_err("tampered");
    assert_eq!(error.code(), Code::PayloadHashMismatch, "{error}");
    assert!(!world.store.absolute(&layout::payload(&name)).exists());
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    let left = locks.inspect(&name).expect("its tokens stay used").state;
    assert_eq!(left.hold, jvs_lock::Hold::Retired);
    assert_eq!(world.names(&layout::worktree_records()), ["main.json"], "no note is left");
}

#[test]
fn in_place_all_files_are_swapped_at_once_and_the_head_stays() {
    let world = World::new();
    world.write("a.txt", "old");
    world.write("only-old", "x");
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    world.write("a.txt", "new");
    fs_err::remove_file(world.file("only-old")).expect("removed");
    let new = world.snapshot(&mut lease);
    let wish =
        RestoreRequest { source: &old, kept: Some(&new), chosen: None, reason: Some("a test") };
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
        logged.event.kind == jvs_repo::audit::EventKind::Restore
            && logged.event.reason.as_deref() == Some("a test")
    });
    assert_eq!(told.count(), 2, "what was about to be done, and that it was done");
}

/// Plans and restores, path by path.
fn restore_in_parts(
    world: &World,
    lease: &mut jvs_lock::Lease<'_>,
    source: &Ready,
    kept: Option<&Ready>,
) -> jvs_snapshot::restore::InPlace {
    let (restore, root) = (world.restore(), world.file(""));
    let plan = restore.plan(source, &main(), &root, &Silent).expect("compared");
    let wish = RestoreRequest { source, kept, chosen: None, reason: Some("a test") };
    let (plan, _) = plan.expect("every path may be moved");
    restore.in_parts(&world.locks("s"), lease, &wish, &plan, &Silent).expect("restored")
}

#[test]
fn in_place_only_what_differs_is_touched_and_the_directory_stays() {
    let world = World::new();
    for (name, text) in [("same", "x"), ("d/changed", "old"), ("d/lost", "old"), ("e/f/g", "old")] {
        world.write(name, text);
    }
    fs_err::hard_link(world.file("d/changed"), world.file("linked")).expect("linked");
    fs_err::os::unix::fs::symlink("one", world.file("link")).expect("a symlink");
    set_mode(&world.file("d"), 0o750);
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    let stat = |name: &str| fs_err::symlink_metadata(world.file(name)).expect("there");
    let (times, inodes) = (["", "d", "e"].map(|name| stat(name).mtime()), stat("").ino());
    fs_err::remove_file(world.file("d/changed")).expect("removed");
    world.write("d/changed", "new");
    fs_err::remove_file(world.file("d/lost")).expect("removed");
    fs_err::remove_dir_all(world.file("e/f")).expect("removed");
    world.write("e/f", "a file where a directory was");
    world.write("more/x", "new");
    fs_err::remove_file(world.file("link")).expect("removed");
    fs_err::os::unix::fs::symlink("two", world.file("link")).expect("a symlink");
    set_mode(&world.file("d"), 0o700);
    let new = world.snapshot(&mut lease);
    let same = stat("same").ino();

    let done = restore_in_parts(&world, &mut lease, &old, Some(&new));
    assert!(done.left.is_none() && done.unplaced.is_empty(), "{done:?}");
    let differences = diff::since(&world.store, &old, &world.file(""), Trust::Nothing, &Silent);
    assert_eq!(differences.expect("compared"), [], "attributes, times and links included");
    assert_eq!((stat("").ino(), stat("same").ino()), (inodes, same), "what is the same stays");
    assert_eq!(["", "d", "e"].map(|name| stat(name).mtime()), times);
    assert_eq!(stat("d/changed").ino(), stat("linked").ino(), "one file with two names");
    let of_snapshot = fs_err::metadata(world.kept(&old, "linked")).expect("there").ino();
    assert_ne!(stat("linked").ino(), of_snapshot, "a file of its own");
    assert_eq!(world.names(&layout::staging()), [""; 0]);

    // And back, where nothing comes from the snapshot but what was removed goes again.
    let done = restore_in_parts(&world, &mut lease, &new, Some(&old));
    assert!(done.left.is_none(), "{done:?}");
    let differences = diff::since(&world.store, &new, &world.file(""), Trust::Nothing, &Silent);
    assert_eq!(differences.expect("compared"), []);
    assert_eq!(stat("").ino(), inodes);
}

#[test]
fn what_somebody_wrote_before_its_place_was_taken_is_not_thrown_away() {
    let world = World::new();
    for name in ["a", "b", "d/c"] {
        world.write(name, "old");
    }
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    world.write("a", "unsaved");
    world.write("more", "unsaved, too");
    let inode = |name: &str| fs_err::metadata(world.file(name)).expect("there").ino();
    let same = inode("d/c");
    let done = restore_in_parts(&world, &mut lease, &old, Some(&old));
    let left = done.left.expect("kept");
    assert_eq!(left.why.expect("compared"), [path("a"), path("more")]);
    for (name, text) in [("a", "unsaved"), ("more", "unsaved, too")] {
        assert_eq!(read(&world.store.absolute(&left.path).join(name)), text);
    }
    assert_eq!((read(&world.file("a")), inode("d/c")), ("old".into(), same));
    assert!(!world.file("more").exists());
    assert_eq!(world.names(&layout::staging()), [""; 0], "where no collection looks");
}

#[test]
fn old_files_that_somebody_wrote_to_after_they_were_captured_are_not_thrown_away() {
    let world = World::new();
    world.write("a.txt", "old");
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    world.write("a.txt", "unsaved");
    let wish =
        RestoreRequest { source: &old, kept: Some(&old), chosen: None, reason: Some("a test") };
    let locks = world.locks("s");
    let done = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect("restored");
    let left = done.left.expect("kept");
    assert_eq!(left.why.expect("compared"), [path("a.txt")]);
    assert_eq!(read(&world.store.absolute(&left.path).join("a.txt")), "unsaved");
    assert_eq!(world.names(&layout::staging()), [""; 0], "where no collection looks");
    assert_eq!(read(&world.file("a.txt")), "old");
}

/// The trees of a store, with somebody who works in the old one: what it does comes
/// right after the old files were compared.
struct Meanwhile<'w> {
    store: &'w PosixStore,
    does: &'w (dyn Fn(&Path) + Sync),
}

impl Trees for Meanwhile<'_> {
    fn absolute(&self, tree: &RepoPath) -> PathBuf {
        self.store.absolute(tree)
    }

    fn remove(&self, tree: &RepoPath) -> io::Result<()> {
        Trees::remove(self.store, tree)
    }

    fn listing(&self, tree: &RepoPath) -> io::Result<TreeListing> {
        self.store.listing(tree)
    }

    fn remove_listed(&self, tree: &RepoPath, listing: &TreeListing) -> io::Result<()> {
        self.store.remove_listed(tree, listing)
    }

    fn strays(
        &self,
        tree: &RepoPath,
        chosen: Option<&ChosenPaths>,
        snapshots: &[Ready],
    ) -> Result<Vec<TreePath>, SnapshotError> {
        let strays = self.store.strays(tree, chosen, snapshots);
        // Longer than a tick of the clock that files are stamped with.
        std::thread::sleep(std::time::Duration::from_millis(20));
        (self.does)(&self.store.absolute(tree));
        strays
    }
}

#[test]
fn what_is_written_into_old_files_after_they_were_compared_is_not_thrown_away() {
    let put = |path: &Path, text: &str| fs_err::write(path, text).expect("written");
    let new = |tree: &Path| put(&tree.join("d/new"), "late");
    let changed = |tree: &Path| put(&tree.join("d/b"), "late");
    let above = |tree: &Path| put(&tree.join("../out"), "late");
    type Does<'d> = &'d (dyn Fn(&Path) + Sync);
    for (does, file, some) in [
        (&new as Does<'_>, "d/new", None),
        (&changed, "d/b", None),
        (&above, "out", None),
        (&new, "d/new", Some(chosen(&["d"]))),
        (&changed, "d/b", Some(chosen(&["d"]))),
    ] {
        let world = World::new();
        world.write("a", "old");
        world.write("d/b", "old");
        let mut lease = world.lease();
        let old = world.snapshot(&mut lease);
        let trees = Meanwhile { store: &world.store, does };
        let at = Snapshots::new(world.seams(), &trees);
        let wish = RestoreRequest {
            source: &old,
            kept: Some(&old),
            chosen: some.as_ref(),
            reason: Some("a test"),
        };
        let locks = world.locks("s");
        let restore = Restore { at, ..world.restore() };
        let done = restore.in_place(&locks, &mut lease, &wish, &Silent).expect("restored");
        let left = done.left.expect("kept");
        assert_eq!(read(&world.store.absolute(&left.path).join(file)), "late");
        assert!(left.why.is_err(), "{:?}", left.why);
        assert_eq!(world.names(&layout::staging()), [""; 0], "where no collection looks");
        assert_eq!(read(&world.file("d/b")), "old");
    }
}

/// In memory nothing tells of a store into a mapped file but its content.
#[test]
fn old_files_that_were_changed_without_a_trace_are_not_thrown_away() {
    let Some(small) = SmallFs::tmpfs(64 << 20) else { return };
    let world = World::below(small.path());
    world.write("array", "0000");
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    let Some(mut writer) = Writer::open(&world.file("array"), Way::Mapped) else { return };
    writer.overwrite(b'A');
    let saved = world.snapshot(&mut lease);
    writer.overwrite(b'B');
    let wish =
        RestoreRequest { source: &old, kept: Some(&saved), chosen: None, reason: Some("a test") };
    let locks = world.locks("s");
    let done = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect("restored");
    let left = done.left.expect("kept");
    assert_eq!(left.why.expect("compared"), [path("array")]);
    assert_eq!(read(&world.store.absolute(&left.path).join("array")), "BBBB");
    assert_eq!(read(&world.file("array")), "0000");
}

#[test]
fn single_paths_are_restored_and_the_others_stay() {
    let world = World::new();
    for (path, text) in [("a", "old"), ("b", "old"), ("d/c", "old"), ("e/f/g", "old")] {
        world.write(path, text);
    }
    set_mode(&world.file("e/f"), 0o710);
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    for path in ["a", "b", "d/c"] {
        world.write(path, "new");
    }
    fs_err::remove_dir_all(world.file("e")).expect("removed");
    let new = world.snapshot(&mut lease);
    let locks = world.locks("s");
    let paths = chosen(&["a", "d", "e/f/g"]);
    let wish = RestoreRequest {
        source: &old,
        kept: Some(&new),
        chosen: Some(&paths),
        reason: Some("a test"),
    };
    let done = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect("restored");
    assert!(done.left.is_none(), "{:?}", done.left);
    assert_eq!((read(&world.file("a")), read(&world.file("b"))), ("old".into(), "new".into()));
    assert_eq!(
        (read(&world.file("d/c")), read(&world.file("e/f/g"))),
        ("old".into(), "old".into())
    );
    let made = fs_err::metadata(world.file("e/f")).expect("made").mode();
    assert_eq!(made & 0o7777, 0o710, "a directory that had to be made is as it was");

    let paths = chosen(&["b", "nowhere"]);
    let wish = RestoreRequest {
        source: &old,
        kept: Some(&new),
        chosen: Some(&paths),
        reason: Some("a test"),
    };
    let error = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect_err("no such");
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(read(&world.file("b")), "new", "all of them or none");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}

fn set_mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
}

#[derive(Default)]
struct Counted {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Progress for Counted {
    fn advance(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[test]
fn of_single_paths_nothing_else_is_copied_however_large_the_snapshot_is() {
    let mut costs = Vec::new();
    for others in [3, 400] {
        let world = World::new();
        for n in 0..others {
            world.write(&format!("big/d{}/f{n}", n % 20), "of no interest");
        }
        world.write("some/where/a", "one");
        world.write("some/where/b", "two");
        world.write("some/else", "three");
        let mut lease = world.lease();
        let source = world.snapshot(&mut lease);
        let counted = Counted::default();
        let state = lease.fence().expect("live").read().expect("read");
        let paths = chosen(&["some/where"]);
        let copied =
            world.restore().copy(&source, Some(&paths), &main(), &state, &counted).expect("copied");
        let tree = world.store.absolute(&copied.tree());
        assert_eq!(read(&tree.join("some/where/a")), "one");
        let names = |dir: &str| fs_err::read_dir(tree.join(dir)).expect("listed").count();
        assert_eq!((names(""), names("some"), names("some/where")), (1, 1, 2));
        costs.push((counted.files.into_inner(), counted.bytes.into_inner()));
    }
    assert_eq!(costs[0], costs[1], "files and bytes, whatever else there is");
    assert_eq!(costs[0], (2, 6));
}

#[test]
fn chosen_paths_keep_links_among_each_other_attributes_and_what_they_are() {
    let world = World::new();
    world.write("d/one", "linked");
    let link = |from: &str, to: &str| {
        fs_err::hard_link(world.file(from), world.file(to)).expect("linked");
    };
    world.write("other/x", "");
    link("d/one", "d/two");
    link("d/one", "other/three");
    fs_err::os::unix::fs::symlink("/nowhere", world.file("d/dangling")).expect("a symlink");
    set_mode(&world.file("d/one"), 0o4751);
    let mut lease = world.lease();
    let source = world.snapshot(&mut lease);
    fs_err::remove_dir_all(world.file("d")).expect("removed");
    world.write("d", "a file where a directory was");
    fs_err::remove_file(world.file("other/x")).expect("removed");
    fs_err::create_dir(world.file("other/x")).expect("a directory where a file was");
    let kept = world.snapshot(&mut lease);
    let paths = chosen(&["d", "other/x"]);
    let wish = RestoreRequest {
        source: &source,
        kept: Some(&kept),
        chosen: Some(&paths),
        reason: Some("a test"),
    };
    let locks = world.locks("s");
    let done = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect("restored");
    assert!(done.left.is_none(), "{:?}", done.left);
    assert!(done.degraded.is_empty());
    let stat = |path: &str| fs_err::symlink_metadata(world.file(path)).expect("there");
    assert_eq!(stat("d/one").ino(), stat("d/two").ino(), "one file with two names");
    assert_ne!(stat("d/one").ino(), stat("other/three").ino(), "which was not asked for");
    let in_snapshot = fs_err::metadata(world.kept(&source, "d/one")).expect("there").ino();
    assert_ne!(stat("d/one").ino(), in_snapshot, "a file of its own");
    assert_eq!(stat("d/one").mode() & 0o7777, 0o4751);
    assert!(stat("d/dangling").is_symlink());
    assert!(stat("other/x").is_file());
}

#[test]
fn a_chosen_path_that_was_tampered_with_is_not_restored_and_the_others_are_none_of_its_business() {
    let world = World::new();
    world.write("good", "good");
    world.write("bad", "fine");
    let mut lease = world.lease();
    let source = world.snapshot(&mut lease);
    fs_err::write(world.kept(&source, "bad"), "evil").expect("written");
    world.write("good", "changed");
    world.write("bad", "changed");
    let kept = world.snapshot(&mut lease);
    let locks = world.locks("s");
    let mut restore = |paths: &[&str]| {
        let paths = chosen(paths);
        let wish = RestoreRequest {
            source: &source,
            kept: Some(&kept),
            chosen: Some(&paths),
            reason: Some("a test"),
        };
        world.restore().in_place(&locks, &mut lease, &wish, &Silent)
    };
    let error = restore(&["good", "bad"]).expect_err("tampered");
    assert_eq!(error.code(), Code::PayloadHashMismatch, "{error}");
    assert!(error.to_string().contains("bad (content"), "{error}");
    assert_eq!(read(&world.file("good")), "changed", "all of them or none");
    let _ = restore(&["good"]).expect("restored");
    assert_eq!(read(&world.file("good")), "good");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}

#[test]
fn single_paths_that_somebody_wrote_to_are_not_thrown_away() {
    let world = World::new();
    for name in ["d/a", "d/b", "e"] {
        world.write(name, "old");
    }
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    world.write("d/b", "unsaved");
    let paths = chosen(&["d", "e"]);
    let wish = RestoreRequest {
        source: &old,
        kept: Some(&old),
        chosen: Some(&paths),
        reason: Some("a test"),
    };
    let locks = world.locks("s");
    let done = world.restore().in_place(&locks, &mut lease, &wish, &Silent).expect("restored");
    let left = done.left.expect("kept");
    assert_eq!(left.why.expect("compared"), [path("d/b")]);
    assert_eq!(read(&world.store.absolute(&left.path).join("d/b")), "unsaved");
    assert_eq!(read(&world.file("d/b")), "old");
}

#[test]
fn what_is_in_the_way_of_a_path_is_named_and_nothing_is_restored_through_it() {
    let world = World::new();
    let outside = tempfile::tempdir().expect("a directory");
    fs_err::write(outside.path().join("x"), "theirs").expect("written");
    for name in ["link/x", "file/x"] {
        world.write(name, "ours");
    }
    let mut lease = world.lease();
    let source = world.snapshot(&mut lease);
    for name in ["link", "file"] {
        fs_err::remove_dir_all(world.file(name)).expect("removed");
    }
    fs_err::os::unix::fs::symlink(outside.path(), world.file("link")).expect("a symlink");
    world.write("file", "a file");
    let kept = world.snapshot(&mut lease);
    let locks = world.locks("s");
    let mut restore = |name: &str| {
        let paths = chosen(&[name]);
        let wish = RestoreRequest {
            source: &source,
            kept: Some(&kept),
            chosen: Some(&paths),
            reason: Some("a test"),
        };
        world.restore().in_place(&locks, &mut lease, &wish, &Silent)
    };
    for (name, code) in [("link/x", Code::PathEscape), ("file/x", Code::Exists)] {
        let error = restore(name).expect_err("in the way");
        assert_eq!(error.code(), code, "{error}");
    }
    assert_eq!(read(&outside.path().join("x")), "theirs");
    assert_eq!(outside.path().read_dir().expect("listed").count(), 1);
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    let _ = restore("link").expect("the symlink itself is replaced");
    assert_eq!(read(&world.file("link/x")), "ours");
    assert_eq!(read(&outside.path().join("x")), "theirs");
}

#[test]
fn a_leftover_is_worth_nothing_only_if_snapshots_have_every_path_of_it() {
    let world = World::new();
    world.write("a", "old");
    world.write("d/b", "old");
    let mut lease = world.lease();
    let source = world.snapshot(&mut lease);
    world.write("a", "new");
    let kept = world.snapshot(&mut lease);
    let state = lease.fence().expect("live").read().expect("read");
    let worth_with = |change: &dyn Fn(&std::path::Path)| {
        let copied = world.restore().copy(&source, None, &main(), &state, &Silent).expect("copied");
        let op = jvs_repo::id::OpNonce::random(&SystemEntropy);
        let name = StagingName::Swap {
            worktree: main(),
            term: state.term(),
            source: source.id(),
            kept: Some(kept.id()),
            op,
        };
        world.store.rename(&copied.dir(), &name.path()).expect("offered");
        change(&world.store.absolute(&layout::snapshot_payload(&name.path())));
        leftover::worth_of(&world.at(), &name)
    };
    assert_eq!(worth_with(&|_| {}), Worth::Nothing, "the source has all of it");
    let write = |tree: &std::path::Path, name: &str, text: &str| {
        fs_err::write(tree.join(name), text).expect("written");
    };
    assert_eq!(worth_with(&|tree| write(tree, "a", "new")), Worth::Nothing, "one has each");
    let removed = |tree: &std::path::Path| fs_err::remove_dir_all(tree.join("d")).expect("gone");
    assert_eq!(worth_with(&removed), Worth::Nothing, "what is missing is not lost with it");
    for (name, text) in [("a", "other"), ("d/b", "new"), ("d/c", "")] {
        let worth = worth_with(&|tree| write(tree, name, text));
        assert_eq!(worth, Worth::Something(vec![path(name)]), "{name}");
    }
    let mode = worth_with(&|tree| set_mode(&tree.join("a"), 0o600));
    assert_eq!(mode, Worth::Something(vec![path("a")]));
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
    fs_err::rename(world.store.absolute(&draft.dir()), world.store.absolute(&layout::snapshot(id)))
        .expect("moved");
    assert!(matches!(catalog.open(id), Err(SnapshotError::Hidden { .. })));
    assert_eq!(lease.worktree(), &main());
}
