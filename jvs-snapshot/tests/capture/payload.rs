//! Trees of every shape come out as they went in.

use super::support::{World, attributes, names_of_any_bytes, zoo};
use jvs_kit::live::loopfs::{Kind, SmallFs};

#[test]
fn an_empty_tree_is_a_snapshot_of_its_root() {
    let world = World::new();
    let captured = world.capture("1", None);
    assert_eq!((captured.content.files, captured.content.bytes), (0, 0));
    assert_eq!(world.entries("1").len(), 1);
}

#[test]
fn one_of_everything_is_kept_and_equal_trees_have_equal_hashes() {
    let world = World::new();
    zoo(&world);
    names_of_any_bytes(&world);
    assert!(attributes(&world), "a temporary directory keeps attributes");
    let first = world.capture("1", None);
    let again = world.capture("2", None);
    assert_eq!(first.content.payload_root_hash, again.content.payload_root_hash);
    // Of an original and of its copy: the capture of a capture.
    let mut copy = World::at(&world.snapshot("1"), &world.snapshot("2"));
    copy.source = world.payload("1");
    assert_eq!(copy.capture("3", None).content.payload_root_hash, first.content.payload_root_hash);
}

#[test]
fn a_sparse_file_stays_sparse() {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};
    let world = World::new();
    let size = 1 << 30;
    let file = fs_err::File::create(world.path("sparse")).expect("a file");
    file.set_len(size).expect("a hole");
    file.file().write_all_at(b"in the middle", size / 2).expect("written");
    drop(file);
    let captured = world.try_capture("1", None, &jvs_snapshot::progress::Silent).expect("captured");
    let copy = world.payload("1").join("sparse").metadata().expect("the copy");
    assert_eq!((copy.size(), captured.content.bytes), (size, size));
    assert!(copy.blocks() * 512 < 1 << 20, "{} blocks", copy.blocks());
    let hash = jvs_snapshot::hash::of_file(
        fs_err::File::open(world.path("sparse")).expect("open"),
        size,
        2,
    );
    let said = world.entries("1").into_iter().find_map(|entry| match entry.kind {
        jvs_snapshot::manifest::EntryKind::File { hash, .. } => Some(hash),
        _ => None,
    });
    assert_eq!(said, hash.ok());
}

#[test]
fn two_hundred_levels_are_kept() {
    let world = World::new();
    let mut at = world.source.clone();
    for level in 0..200 {
        at.push(format!("{level}"));
        fs_err::create_dir(&at).expect("a directory");
    }
    fs_err::write(at.join("bottom"), "here").expect("a file");
    world.capture("1", None);
    assert_eq!(world.entries("1").len(), 202);
}

#[test]
fn a_payload_may_have_directories_named_like_ours() {
    let world = World::new();
    world.make_dir(jvs_repo::layout::CONTROL_DIR);
    world.make_dir(format!("{}/locks", jvs_repo::layout::CONTROL_DIR));
    for name in ["payload", "manifest", "READY", "descriptor.json"] {
        world.write(name, name);
    }
    world.capture("1", None);
    assert_eq!(world.entries("1").len(), 7);
}

#[test]
fn large_files_and_large_directories_are_kept() {
    let world = World::new();
    for n in 0..1500 {
        world.write(format!("file-{n}"), format!("{n}"));
    }
    let large: Vec<u8> = (0..20_000_000_u32).map(|n| (n >> 8) as u8).collect();
    world.write("large", &large);
    let captured = world.capture("1", None);
    assert_eq!(captured.content.files, 1501);
}

#[test]
fn a_hundred_thousand_tiny_files_are_kept_and_not_read_again() {
    // With room for the inodes of both.
    let Some(small) = SmallFs::on_loop_of(Kind::Ext4, 6 << 30) else { return };
    let world = World::at(small.path(), small.path());
    for n in 0..100_000 {
        if n % 500 == 0 {
            world.make_dir(format!("{}", n / 500));
        }
        world.write(format!("{}/{n}", n / 500), n.to_string());
    }
    let silent = &jvs_snapshot::progress::Silent;
    let first = world.try_capture("1", None, silent).expect("captured");
    assert_eq!((world.entries("1").len(), first.content.files), (100_201, 100_000));
    world.write("7/3501", "changed");
    let second = world.capture("2", Some(("1", &first)));
    assert_eq!((second.content.files, second.reused), (100_000, 99_999));
    assert_ne!(second.content.payload_root_hash, first.content.payload_root_hash);
}

#[test]
fn a_worktree_may_be_on_another_filesystem() {
    let Some(small) = SmallFs::tmpfs(16 << 20) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let world = World::at(small.path(), dir.path());
    zoo(&world);
    let first = world.capture("1", None);
    assert_eq!(first.content.engine, "copy");
    let second = world.capture("2", Some(("1", &first)));
    assert_eq!(second.content.payload_root_hash, first.content.payload_root_hash);
}
