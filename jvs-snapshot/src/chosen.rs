//! Some paths of a tree, where not all of it is meant.

use std::collections::{BTreeSet, btree_set};
use std::io;
use std::iter::Peekable;
use std::ops::Bound;
use std::os::fd::AsFd;

use crate::manifest::TreePath;
use crate::tree::{self, Names};

/// Paths, each with everything below it. None is the root, and none is below
/// another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenPaths {
    paths: BTreeSet<TreePath>,
    /// How long they are, in bytes.
    lengths: BTreeSet<usize>,
}

/// Where a path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lies {
    /// It is chosen, or below what is.
    Inside,
    /// A directory that holds something chosen.
    Above,
    /// Neither chosen nor above a chosen path.
    Outside,
}

impl ChosenPaths {
    /// What `paths` mean together; nothing if there are none, or if the root is
    /// one of them: then it is the whole tree.
    pub fn new(paths: impl IntoIterator<Item = TreePath>) -> Option<Self> {
        let all: BTreeSet<TreePath> = paths.into_iter().collect();
        if all.is_empty() || all.contains(&TreePath::root()) {
            return None;
        }
        let is_top = |path: &&TreePath| above(path.as_bytes()).all(|above| !all.contains(above));
        let paths: BTreeSet<TreePath> = all.iter().filter(is_top).cloned().collect();
        let lengths = paths.iter().map(|path| path.as_bytes().len()).collect();
        Some(ChosenPaths { paths, lengths })
    }

    /// The paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &TreePath> {
        self.paths.iter()
    }

    /// Where paths lie that will be asked about in their order.
    pub(crate) fn cursor(&self) -> ChosenCursor<'_> {
        ChosenCursor { chosen: self, next: self.paths.iter().peekable(), passed: Vec::new() }
    }

    pub(crate) fn lies(&self, path: &TreePath) -> Lies {
        let bytes = path.as_bytes();
        let is_whole = |&length: &usize| bytes.get(length).is_none_or(|&next| next == b'/');
        let mut lengths = self.lengths.range(..=bytes.len()).copied().filter(is_whole);
        if lengths.any(|length| self.paths.contains(&bytes[..length])) {
            Lies::Inside
        } else if self.below(path).next().is_some() {
            Lies::Above
        } else {
            Lies::Outside
        }
    }

    /// The chosen paths below a directory.
    fn below(&self, directory: &TreePath) -> impl Iterator<Item = &TreePath> {
        let mut prefix = directory.as_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        self.paths
            .range::<[u8], _>((Bound::Excluded(prefix.as_slice()), Bound::Unbounded))
            .take_while(move |path| path.as_bytes().starts_with(&prefix))
    }

    /// The names in the open directory `path` that matter, as far as they are
    /// there: all of them inside, and only those on the way above.
    pub(crate) fn names(&self, path: &TreePath, dir: impl AsFd) -> io::Result<Names> {
        if self.lies(path) == Lies::Inside {
            return tree::list(dir);
        }
        let depth = path.components().count();
        let wanted: BTreeSet<&[u8]> =
            self.below(path).filter_map(|chosen| chosen.components().nth(depth)).collect();
        let mut there = Vec::new();
        for name in wanted {
            match tree::stat(&dir, name) {
                Ok(_) => there.push(name),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Names::of(&there)
    }
}

/// Tells where paths lie that come in their order: a comparison each, however many are
/// chosen.
pub(crate) struct ChosenCursor<'c> {
    chosen: &'c ChosenPaths,
    next: Peekable<btree_set::Iter<'c, TreePath>>,
    /// Those that the last path began with, byte by byte, each longer than the one before.
    passed: Vec<&'c TreePath>,
}

impl ChosenCursor<'_> {
    /// As [`ChosenPaths::lies`], for a path not before the last one.
    pub(crate) fn lies(&mut self, path: &TreePath) -> Lies {
        let bytes = path.as_bytes();
        while let Some(next) = self.next.next_if(|next| *next <= path) {
            self.passed.push(next);
        }
        self.passed.retain(|chosen| bytes.starts_with(chosen.as_bytes()));
        let is_whole = |chosen: &&TreePath| {
            bytes.get(chosen.as_bytes().len()).is_none_or(|&next| next == b'/')
        };
        if self.passed.iter().any(is_whole) {
            return Lies::Inside;
        }
        // Between a path and what is below it is nothing that does not begin with it.
        match self.next.peek().is_some_and(|next| next.as_bytes().starts_with(bytes)) {
            true => self.chosen.lies(path),
            false => Lies::Outside,
        }
    }
}

/// The paths above one, the root excluded.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..path.len()).filter(|&at| path[at] == b'/').map(|at| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::new(text.as_bytes().to_vec()).expect("plain")
    }

    fn chosen(paths: &[&str]) -> Option<ChosenPaths> {
        ChosenPaths::new(paths.iter().map(|text| path(text)))
    }

    #[test]
    fn what_is_below_a_chosen_path_is_chosen_with_it() {
        let some = chosen(&["a/b", "a-b/c", "a/b/c", "d", "d"]).expect("some");
        let paths: Vec<String> = some.paths().map(ToString::to_string).collect();
        assert_eq!(paths, ["a-b/c", "a/b", "d"]);
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&["a", ""]), None, "the root is the whole tree");
    }

    #[test]
    fn a_path_is_inside_above_or_outside() {
        let some = chosen(&["a/b", "a-b/c"]).expect("some");
        for (text, lies) in [
            ("", Lies::Above),
            ("a", Lies::Above),
            ("a/b", Lies::Inside),
            ("a/b/c/d", Lies::Inside),
            ("a/bc", Lies::Outside),
            ("a-", Lies::Outside),
            ("a-b", Lies::Above),
            ("a-b/d", Lies::Outside),
            ("z", Lies::Outside),
        ] {
            assert_eq!(some.lies(&path(text)), lies, "{text}");
        }
    }

    #[test]
    fn in_their_order_paths_lie_where_they_lie_one_by_one() {
        let names = ["a", "a-", "a-b", "a/b", "b", "ab"];
        let mut all = vec![TreePath::root()];
        for first in names {
            all.push(path(first));
            all.extend(names.map(|second| path(&format!("{first}/{second}"))));
        }
        all.sort();
        all.dedup();
        // Every choice of up to three of them.
        for (one, two, three) in (0..all.len()).flat_map(|one| {
            (one..all.len()).flat_map(move |two| [(one, two, one), (one, two, (one + two) / 2)])
        }) {
            let some = [one, two, three].map(|at| all[at].clone());
            let Some(some) = ChosenPaths::new(some) else { continue };
            let mut cursor = some.cursor();
            for path in &all {
                assert_eq!(cursor.lies(path), some.lies(path), "{path} of {some:?}");
            }
        }
    }
}
