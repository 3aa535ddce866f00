//! What did not change is not done again, and what changed always is.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::support::{World, attributes, zoo};

fn inode(path: &Path) -> u64 {
    path.symlink_metadata().expect("a file").ino()
}

fn reads(world: &World, captured: &jvs_snapshot::stage::Captured) -> u64 {
    assert_eq!(captured.parent_ignored, None);
    let files = captured.content.files;
    assert!(captured.reused <= files, "{}", world.source.display());
    files - captured.reused
}

#[test]
fn unchanged_files_are_not_read_and_share_the_parent_s_inode() {
    let world = World::new();
    zoo(&world);
    attributes(&world);
    let first = world.capture("1", None);
    let second = world.capture("2", Some(("1", &first)));
    assert_eq!(reads(&world, &second), 0);
    assert_eq!(second.content.payload_root_hash, first.content.payload_root_hash);
    for name in ["a/deep/file", "plain", "a/plain-again"] {
        assert_eq!(inode(&world.payload("1").join(name)), inode(&world.payload("2").join(name)));
        assert_ne!(inode(&world.path(name)), inode(&world.payload("2").join(name)));
    }
    let third = world.capture("3", Some(("2", &second)));
    assert_eq!(reads(&world, &third), 0, "hints survive from snapshot to snapshot");
}

#[test]
fn changes_that_keep_size_and_time_are_seen() {
    let world = World::new();
    for name in ["same", "rewritten", "replaced", "chmod"] {
        world.write(name, "12345");
    }
    let first = world.capture("1", None);
    let time = world.path("rewritten").metadata().and_then(|m| m.modified()).expect("a time");
    world.write("rewritten", "54321");
    let file = fs_err::File::options().write(true).open(world.path("rewritten")).expect("open");
    file.set_modified(time).expect("the time of before");
    world.write("new", "abcde");
    fs_err::rename(world.path("new"), world.path("replaced")).expect("renamed over");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs_err::set_permissions(world.path("chmod"), mode).expect("a mode");
    let second = world.capture("2", Some(("1", &first)));
    assert_eq!(reads(&world, &second), 3);
    assert_ne!(second.content.payload_root_hash, first.content.payload_root_hash);
    let old = fs_err::read(world.payload("1").join("rewritten")).expect("the old copy");
    assert_eq!(old, b"12345", "the parent keeps what it had");
}

#[test]
fn a_file_written_in_the_same_tick_as_its_capture_is_read_again() {
    let world = World::new();
    // Rewritten at once, as long as before: if the capture trusted a time within
    // the clock's tick, one of these rounds would keep an old hash.
    let mut parent = None;
    for round in 0..30 {
        world.write("file", format!("{round:05}"));
        let name = format!("{round}");
        let captured = match &parent {
            None => world.capture(&name, None),
            Some((name_before, before)) => {
                world.capture(&name, Some((String::as_str(name_before), before)))
            }
        };
        parent = Some((name, captured));
    }
}

#[test]
fn full_reads_everything_and_shares_nothing() {
    let mut world = World::new();
    zoo(&world);
    let first = world.capture("1", None);
    world.options.full = true;
    let second = world.capture("2", Some(("1", &first)));
    assert_eq!(second.reused, 0);
    assert_ne!(inode(&world.payload("1").join("plain")), inode(&world.payload("2").join("plain")));
}

#[test]
fn a_parent_that_was_tampered_with_does_not_spread() {
    let world = World::new();
    for name in ["touched", "gone", "kept"] {
        world.write(name, "as it is in the worktree");
    }
    let first = world.capture("1", None);
    fs_err::write(world.payload("1").join("touched"), "forged").expect("forged");
    fs_err::remove_file(world.payload("1").join("gone")).expect("removed");
    world.capture("2", Some(("1", &first)));

    let manifest = world.snapshot("2").join("manifest");
    let mut bytes = fs_err::read(&manifest).expect("the manifest");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs_err::write(&manifest, &bytes).expect("forged");
    let captured = world
        .try_capture("3", Some(("2", &first)), &jvs_snapshot::progress::Silent)
        .expect("a bad parent makes a capture slower, not impossible");
    assert!(captured.parent_ignored.is_some());
    assert_eq!(captured.reused, 0);
    world.check_manifest("3", &captured);
}

#[test]
fn removed_added_and_moved_paths_come_out_right() {
    let world = World::new();
    zoo(&world);
    let first = world.capture("1", None);
    fs_err::rename(world.path("a/deep"), world.path("moved")).expect("moved");
    fs_err::remove_file(world.path("empty")).expect("removed");
    fs_err::remove_file(world.path("a/plain-again")).expect("one name less");
    world.write("a/new", "new");
    world.make_dir("empty");
    world.capture("2", Some(("1", &first)));
}
