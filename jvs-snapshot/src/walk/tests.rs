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
        tree::make_directory(&at, b"d").expect("a directory");
        at = tree::open_directory(&at, b"d").expect("open");
    }
    assert_eq!(read(dir.path()).expect("just deep enough").nodes, MAX_DEPTH + 1);
    tree::make_directory(&at, b"one-too-many").expect("a directory");
    let error = read(dir.path()).expect_err("too deep");
    assert!(error.to_string().starts_with("d/d/d/d/…"), "{error}");
    let parent = tree::open_root(dir.path()).expect("open");
    tree::remove(&parent, b"d").expect("removed whatever its depth");
}

/// Two directories at each level, one of them with more names than one task looks at:
/// something waits at every level while the other directory is walked through.
#[test]
fn few_directories_are_open_at_a_time_however_deep_and_wide_a_tree_is() {
    const LEVELS: usize = 40;
    let dir = tempfile::tempdir().expect("a directory");
    let mut at = tree::open_root(dir.path()).expect("open");
    for _ in 0..LEVELS {
        for n in 0..CHUNK {
            tree::create_file(&at, format!("file-{n}").as_bytes()).expect("a file");
        }
        for name in [&b"a"[..], b"z"] {
            tree::make_directory(&at, name).expect("a directory");
        }
        at = tree::open_directory(&at, b"z").expect("open");
    }
    struct Counter {
        names: std::sync::atomic::AtomicUsize,
        most_open: std::sync::atomic::AtomicUsize,
        open_dirs: OpenDirs,
    }
    impl Visitor for Counter {
        type Place = ();

        fn listed(&self, (): &(), _path: &TreePath, names: &Arc<Names>) {
            self.names.fetch_add(names.len(), std::sync::atomic::Ordering::Relaxed);
            let open = self.open_dirs.open();
            self.most_open.fetch_max(open, std::sync::atomic::Ordering::Relaxed);
        }

        fn found(
            &self,
            (): &(),
            _path: &TreePath,
            _names: &Arc<Names>,
            found: Vec<(usize, NodeStat)>,
        ) -> Vec<(usize, ())> {
            let inside = found.into_iter().filter(|(_, stat)| stat.kind == NodeKind::Directory);
            inside.map(|(index, _)| (index, ())).collect()
        }
    }
    let (names, most_open) = Default::default();
    let counter = Counter { names, most_open, open_dirs: OpenDirs::at_most(4) };
    let root = tree::open_root(dir.path()).expect("open");
    walk_with(1, root, (), &counter, &counter.open_dirs).expect("walked through");
    assert_eq!(counter.names.into_inner(), LEVELS * (CHUNK + 2));
    assert_eq!(counter.most_open.into_inner(), 4, "and then no more");
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
    assert!(tree.stats().all(|stat| stat.kind == NodeKind::Symlink));
}

/// A server of the files is asked to open what is read, and nothing else.
#[test]
fn a_directory_whose_names_are_known_is_reached_and_not_opened() {
    use rustix::fs::{OFlags, fcntl_getfl};

    struct Known(Mutex<Vec<(String, bool)>>);
    impl Visitor for Known {
        type Place = ();

        fn lists(&self, path: &TreePath) -> bool {
            path.as_bytes() != b"above"
        }

        fn names(&self, path: &TreePath, dir: &OwnedFd) -> io::Result<Names> {
            let is_reached = fcntl_getfl(dir)?.contains(OFlags::PATH);
            self.0.lock().expect("nobody panicked").push((path.to_string(), is_reached));
            match self.lists(path) {
                true => tree::list(dir),
                false => Names::of(&[b"chosen"]),
            }
        }

        fn listed(&self, (): &(), _path: &TreePath, _names: &Arc<Names>) {}

        fn found(
            &self,
            (): &(),
            _path: &TreePath,
            _names: &Arc<Names>,
            found: Vec<(usize, NodeStat)>,
        ) -> Vec<(usize, ())> {
            found.into_iter().map(|(index, _)| (index, ())).collect()
        }
    }
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(dir.path().join("above/chosen")).expect("made");
    let seen = Known(Mutex::default());
    walk(1, tree::open_root(dir.path()).expect("open"), (), &seen).expect("walked through");
    let seen = seen.0.into_inner().expect("nobody panicked");
    let expected = [(".", false), ("above", true), ("above/chosen", false)];
    assert_eq!(seen, expected.map(|(path, is_reached)| (path.to_owned(), is_reached)));
}
