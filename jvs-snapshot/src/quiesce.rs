//! The proof that nobody wrote while a tree was captured: what `statx` said of
//! every name before, compared with what it says after.
//!
//! A file's change time is set by the kernel and cannot be set back, so a write
//! between the two looks shows, unless it falls into the same tick of the clock
//! as the change before it. Files changed that recently are looked at again after
//! the tick (`settled`), so that the first look proves something. Writes that change
//! no time when they are made are forced out between the looks (`written_out`).
//!
//! On JuiceFS the clone itself can be the second look: `engine/juicefs/inspect.rs`
//! says when. The first look is kept either way.
//!
//! Freshness: the first look is kept, about sixty bytes a name; the second is
//! compared directory by directory and kept nowhere.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::hash::Digest;
use crate::manifest::{Timestamp, TreePath};
use crate::tree::{self, Names, NodeKind, NodeStat};
use crate::walk::{Freshness, Scope, Tree, Visitor, WalkError, walk};

/// How a name changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It was created.
    Appeared,
    /// It was removed.
    Vanished,
    /// Its content or what is known about it.
    Changed,
}

impl ChangeKind {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Appeared => "appeared",
            Self::Vanished => "vanished",
            Self::Changed => "changed",
        }
    }
}

/// What changed during a capture: how much, and the first names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Some of them, sorted by path.
    pub first: Vec<(TreePath, ChangeKind)>,
    /// All of them.
    pub count: u64,
}

impl Changes {
    const NAMED: usize = 20;

    /// Nothing changed?
    pub fn is_quiet(&self) -> bool {
        self.count == 0
    }

    /// The first of them, each with how it changed.
    pub(crate) fn named(&self) -> Vec<String> {
        self.first.iter().map(|(path, kind)| format!("{path} {}", kind.as_str())).collect()
    }

    pub(crate) fn add(&mut self, path: TreePath, kind: ChangeKind) {
        self.count += 1;
        if self.first.len() < Self::NAMED {
            self.first.push((path, kind));
        }
    }
}

impl std::fmt::Display for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.named().join(", "))?;
        match self.count - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Whether a change of a file at or after `now` is certain to give it a change
/// time other than `changed`.
pub(crate) fn settled(changed: Timestamp, now: Timestamp, margin_ns: i64) -> bool {
    let ns = |time: Timestamp| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    ns(changed) + i128::from(margin_ns) < ns(now)
}

fn same(before: &NodeStat, after: &NodeStat) -> bool {
    before.kind == after.kind
        && before.identity() == after.identity()
        && before.ctime == after.ctime
        && before.mtime == after.mtime
        && before.mode == after.mode
        && (before.uid, before.gid) == (after.uid, after.gid)
        // A directory's size is the filesystem's business.
        && (before.kind == NodeKind::Directory || before.size == after.size)
}

/// Over all names and what is known of them, in order.
pub(crate) fn digest(tree: &Tree) -> Digest {
    let mut hasher = blake3::Hasher::new();
    let mut pending = Vec::with_capacity(128 * 1024);
    let mut push = |path: &[&[u8]], stat: &NodeStat| {
        for part in path {
            pending.extend_from_slice(part);
        }
        pending.push(0);
        for number in [
            u64::from(stat.mode) << 8 | stat.kind as u64,
            u64::from(stat.uid) << 32 | u64::from(stat.gid),
            stat.size,
            stat.inode,
            stat.mtime.seconds as u64,
            stat.ctime.seconds as u64,
            u64::from(stat.mtime.nanos) << 32 | u64::from(stat.ctime.nanos),
        ] {
            pending.extend_from_slice(&number.to_le_bytes());
        }
        if pending.len() > 96 * 1024 {
            hasher.update(&pending);
            pending.clear();
        }
    };
    push(&[], &tree.root);
    for item in tree.in_order() {
        push(&[item.branch.path.as_bytes(), b"/", item.name()], &item.stat());
    }
    hasher.update(&pending);
    hasher.finalize().into()
}

/// Which of the files of rules that were read are not as they were before: no look at what is
/// captured tells that of those that are ignored themselves.
pub(crate) fn changed_rules(root: &OwnedFd, before: &Tree) -> Vec<TreePath> {
    let is_as_read = |path: &TreePath, read: &NodeStat| {
        let (above, name) = path.split()?;
        let dir = tree::reach_below(root, above.components()).ok()?;
        Some(same(read, &Freshness::Fresh.stat(&dir, name).ok()?))
    };
    let files = before.ignored.files.iter();
    let changed = files.filter(|(path, read)| is_as_read(path, read) != Some(true));
    changed.map(|(path, _)| path.clone()).collect()
}

/// What a second look saw.
#[derive(Debug, Default)]
pub(crate) struct SecondLook {
    /// What is not as it was.
    pub(crate) changes: Changes,
    /// Directories whose times alone are others, by their numbers: something in them came or
    /// went that is ignored, unless their extended attributes were changed.
    pub(crate) stirred: Vec<u32>,
}

/// Looks at the whole tree again and says what is not as it was. What another host wrote a
/// moment ago is not in this kernel's memory.
pub(crate) fn compare(
    threads: usize,
    root: impl AsFd,
    before: &Tree,
    freshness: Freshness,
) -> Result<SecondLook, WalkError> {
    let fd = tree::open_directory(root, b".").map_err(WalkError::at_root)?;
    let after = freshness.stat(&fd, b".").map_err(WalkError::at_root)?;
    let (scope, seen) = (before.scope(), Mutex::default());
    let comparison = Comparison { before, scope, freshness, seen };
    if !same(&before.root, &after) {
        comparison.changed(TreePath::root(), (&before.root, &after), Some(0));
    }
    walk(threads, fd, 0, &comparison)?;
    let mut seen = comparison.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    seen.changes.first.sort();
    Ok(seen)
}

struct Comparison<'t> {
    before: &'t Tree,
    scope: Scope<'t>,
    freshness: Freshness,
    seen: Mutex<SecondLook>,
}

impl Comparison<'_> {
    fn seen(&self) -> MutexGuard<'_, SecondLook> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, path: TreePath, kind: ChangeKind) {
        self.seen().changes.add(path, kind);
    }

    /// What is not the same before and after; `directory` is its number, if it is one.
    fn changed(&self, path: TreePath, pair: (&NodeStat, &NodeStat), directory: Option<u32>) {
        let (before, after) = pair;
        let ignores = !self.before.ignored.rules.is_empty();
        match directory.filter(|_| ignores && only_times_differ(before, after)) {
            Some(number) => self.seen().stirred.push(number),
            None => self.note(path, ChangeKind::Changed),
        }
    }
}

/// Is this directory as it was but for its times? Whatever comes or goes in it changes
/// those, and the names in it are compared by themselves.
fn only_times_differ(before: &NodeStat, after: &NodeStat) -> bool {
    before.kind == NodeKind::Directory
        && same(before, &NodeStat { mtime: before.mtime, ctime: before.ctime, ..*after })
}

impl Visitor for Comparison<'_> {
    /// Which directory of the first look this is.
    type Place = u32;

    fn look(&self, dir: &OwnedFd, name: &[u8]) -> std::io::Result<NodeStat> {
        self.freshness.stat(dir, name)
    }

    fn lists(&self, path: &TreePath) -> bool {
        self.scope.lists(path)
    }

    fn names(&self, path: &TreePath, dir: &OwnedFd) -> std::io::Result<Names> {
        self.scope.names(path, dir)
    }

    fn listed(&self, place: &u32, path: &TreePath, names: &Arc<Names>) {
        let branch = &self.before.branches[*place as usize];
        for node in &branch.nodes {
            if names.position(branch.name(node)).is_none() {
                self.note(branch.child(node), ChangeKind::Vanished);
            }
        }
        for name in names.iter().filter(|name| branch.find(name).is_none()) {
            self.note(path.child(name).unwrap_or_default(), ChangeKind::Appeared);
        }
    }

    fn gone(&self, place: &u32, names: &Arc<Names>, index: usize) {
        let branch = &self.before.branches[*place as usize];
        if let Some((_, node)) = branch.find(names.get(index)) {
            self.note(branch.child(node), ChangeKind::Changed);
        }
    }

    fn found(
        &self,
        place: &u32,
        _path: &TreePath,
        names: &Arc<Names>,
        found: Vec<(usize, NodeStat)>,
    ) -> Vec<(usize, u32)> {
        let branch = &self.before.branches[*place as usize];
        let mut enter = Vec::new();
        for (index, stat) in found {
            // What appeared was noted when the directory was listed.
            let Some((_, node)) = branch.find(names.get(index)) else { continue };
            let before = branch.stat_of(node);
            if !same(&before, &stat) {
                self.changed(branch.child(node), (&before, &stat), node.directory());
            }
            if stat.kind == NodeKind::Directory
                && let Some(directory) = node.directory()
            {
                enter.push((index, directory));
            }
        }
        enter
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "makes the trees that change")]

    use super::*;
    use std::path::Path;

    fn look(dir: &Path) -> Tree {
        Tree::read(2, tree::open_root(dir).expect("open")).expect("readable")
    }

    fn changes(dir: &Path, before: &Tree) -> Vec<(String, ChangeKind)> {
        let found = compare(2, tree::open_root(dir).expect("open"), before, Freshness::Fresh)
            .expect("readable");
        found.changes.first.into_iter().map(|(path, kind)| (path.to_string(), kind)).collect()
    }

    #[test]
    fn every_kind_of_change_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("d")).expect("a directory");
        for name in ["d/a", "d/b", "c", "same"] {
            std::fs::write(at(name), "x").expect("a file");
        }
        let before = look(dir.path());
        assert_eq!(changes(dir.path(), &before), []);
        assert_eq!(digest(&before), digest(&look(dir.path())));
        // The next tick: in the same one a change may leave no trace.
        let now = || tree::stat_open(tempfile::tempfile().expect("a file")).expect("stat").ctime;
        while !settled(before.root.ctime, now(), 0) {}
        std::fs::remove_file(at("d/a")).expect("removed");
        std::fs::write(at("d/new"), "x").expect("a file");
        std::fs::write(at("c"), "y").expect("as long as before");
        let expected = [
            ("c", ChangeKind::Changed),
            ("d", ChangeKind::Changed),
            ("d/a", ChangeKind::Vanished),
            ("d/new", ChangeKind::Appeared),
        ]
        .map(|(path, kind)| (path.to_owned(), kind));
        assert_eq!(changes(dir.path(), &before), expected);
        assert_ne!(digest(&before), digest(&look(dir.path())));
    }

    #[test]
    fn a_change_is_settled_once_the_clock_has_moved_on() {
        let at = |seconds, nanos| Timestamp { seconds, nanos };
        assert!(!settled(at(5, 7), at(5, 7), 0));
        assert!(settled(at(5, 7), at(5, 8), 0));
        assert!(!settled(at(5, 0), at(6, 0), 1_000_000_000));
        assert!(settled(at(5, 0), at(6, 1), 1_000_000_000));
        assert!(!settled(at(9, 0), at(6, 1), 0), "the clock was set back");
    }
}
