#![expect(clippy::disallowed_methods, reason = "makes the trees that are walked")]

use super::*;
use crate::tree::NodeKind;
use std::os::unix::ffi::OsStrExt as _;

fn paths(tree: &Tree) -> Vec<Vec<u8>> {
    tree.in_order().map(|item| item.path().as_bytes().to_vec()).collect()
}

fn read(dir: &std::path::Path) -> Result<Tree, WalkError> {
    Tree::read(3, tree::open_root(dir).expect("a directory"))
}

#[test]
fn nodes_come_in_the_bytewise_order_of_their_paths() {
    let dir = tempfile::tempdir().expect("a directory");
    let below = |name: &[u8]| dir.path().join(std::ffi::OsStr::from_bytes(name));
    for name in [&b"a"[..], b"a-b", b"a/b", b"a.d", b"a/b-", b"a0", b"\xff", b"a/b/c"] {
        std::fs::create_dir(below(name)).expect("a directory");
    }
    for name in [&b"a/z"[..], b"a-b/z", b"a/b/c/z", b"a!", b"a/b.z", b"\xff/\n", b"a0/x"] {
        std::fs::write(below(name), name).expect("a file");
    }
    for n in 0..700 {
        std::fs::write(dir.path().join(format!("a/b/{n}")), "").expect("a file");
    }
    let tree = read(dir.path()).expect("readable");
    let found = paths(&tree);
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(found, sorted);
    assert_eq!(found.len(), 715);
    assert_eq!(tree.nodes, 716);
}

#[test]
fn a_tree_that_is_too_deep_is_refused_by_name_and_one_at_the_limit_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut at = tree::open_root(dir.path()).expect("open");
    for _ in 0..MAX_DEPTH {
        tree::make_directory(&at, b"deep").expect("a directory");
        at = tree::open_directory(&at, b"deep").expect("open");
    }
    assert_eq!(read(dir.path()).expect("just deep enough").nodes, MAX_DEPTH + 1);
    tree::make_directory(&at, b"one-too-many").expect("a directory");
    let error = read(dir.path()).expect_err("too deep");
    assert!(error.to_string().starts_with("deep/deep/deep/deep/…"), "{error}");
    let parent = tree::open_root(dir.path()).expect("open");
    tree::remove(&parent, b"deep").expect("removed whatever its depth");
}

#[test]
fn symlinks_are_seen_and_not_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    for (target, name) in [("/", "root"), ("loop", "loop"), ("nowhere", "dangling"), (".", "here")]
    {
        std::os::unix::fs::symlink(target, dir.path().join(name)).expect("a symlink");
    }
    let tree = read(dir.path()).expect("readable");
    assert_eq!(tree.nodes, 5);
    assert!(tree.branches[0].nodes.iter().all(|node| node.stat.kind == NodeKind::Symlink));
}
