//! That nobody else has a file of a JuiceFS mount open, so that the mount holds nothing
//! that anybody wrote: it hands in what it has of a file before the file counts as
//! closed. One look at its statistics, instead of a question about each file.
//!
//! The mount counts the files and directories that are open, each once, no matter who has it
//! open and how often. So whatever this process has open itself, and knows to be no file
//! of the tree, may be taken off: it is among those that are counted for as long as the
//! descriptor lives. That is why the files of `bystanders`, which keepers and other
//! commands of ours have open all the time, are opened here, too. If nothing is left,
//! then nobody has any other file open.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use jvs_repo::layout;

use crate::mount_counters::{Counters, OPEN_FILES};
use crate::tree;
use crate::trees::Trees;

/// How often a mount is asked: what was closed a moment ago is still counted.
const LOOKS: usize = 3;
/// How many bystanders are opened. A process that has more than that asks each file.
const BYSTANDERS_MAX: usize = 200;

/// Where keepers and other commands of ours may have files open that are in no tree.
pub(crate) fn bystanders(trees: &dyn Trees) -> Vec<PathBuf> {
    [layout::locks(), layout::audit()].map(|dir| trees.absolute(&dir)).into()
}

/// What this process has open on a mount, none of it a file of the tree.
pub(crate) struct Ours<'o> {
    /// The root of the tree.
    source: &'o OwnedFd,
    others: &'o [&'o OwnedFd],
    /// Directories of files that are in no tree and that others of ours may have open.
    bystanders: &'o [PathBuf],
}

impl<'o> Ours<'o> {
    pub(crate) fn new(
        source: &'o OwnedFd,
        others: &'o [&'o OwnedFd],
        bystanders: &'o [PathBuf],
    ) -> Self {
        Ours { source, others, bystanders }
    }

    /// Nothing but the root of the tree.
    #[cfg(test)]
    pub(crate) fn only(source: &'o OwnedFd) -> Self {
        Ours { source, others: &[], bystanders: &[] }
    }

    /// Whether they are all that anybody has open at the mount.
    pub(crate) fn are_all_that_is_open(&self, mount_point: &Path) -> bool {
        let bystanders = self.open_bystanders();
        let files = [self.source].into_iter().chain(self.others.iter().copied()).chain(&bystanders);
        let Some(ours) = distinct(self.source, files) else { return false };
        let count = |now: Option<Counters>| now?.get(OPEN_FILES);
        (0..LOOKS).any(|_| {
            let open = count(Counters::read(mount_point));
            // The second look costs as much and is spared where the first says no.
            is_nobody_else(ours, open, open.map(|open| open + 1))
                && is_nobody_else(ours, open, count(Counters::read_with_control_open(mount_point)))
        })
    }

    fn open_bystanders(&self) -> Vec<OwnedFd> {
        let mut open = Vec::new();
        for dir in self.bystanders {
            let Ok(dir) = tree::open_root(dir) else { continue };
            let Ok(names) = tree::list(&dir) else { continue };
            let files = names.iter().filter_map(|name| tree::open_file(&dir, name).ok());
            open.extend(files.take(BYSTANDERS_MAX));
            open.push(dir);
        }
        open
    }
}

/// Whether what a mount counts while its statistics are open, and while its control
/// file is, too, is `ours` and these. That it counts its own files like any others is
/// seen rather than presumed: one that did not would count somebody's file instead.
fn is_nobody_else(ours: u64, open: Option<u64>, with_control: Option<u64>) -> bool {
    let statistics = 1;
    open == Some(ours + statistics) && with_control == Some(ours + statistics + 1)
}

/// How many different files at the mount of `source` these are. `None` if one of them
/// cannot be asked.
fn distinct<'f>(source: &OwnedFd, files: impl Iterator<Item = &'f OwnedFd>) -> Option<u64> {
    let mount = tree::stat_open(source).ok()?.filesystem;
    let mut inodes = BTreeSet::new();
    for file in files {
        let stat = tree::stat_open(file).ok()?;
        if stat.filesystem == mount {
            inodes.insert(stat.inode);
        }
    }
    Some(inodes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_count_of_nothing_but_ones_own_tells_that_nobody_writes() {
        assert!(is_nobody_else(3, Some(4), Some(5)));
        assert!(!is_nobody_else(3, Some(5), Some(6)), "somebody has a file open");
        assert!(!is_nobody_else(3, Some(4), Some(4)), "its own files are not counted");
        assert!(!is_nobody_else(3, Some(4), Some(6)), "somebody opened a file meanwhile");
        assert!(!is_nobody_else(3, Some(3), Some(4)), "counted otherwise than we do");
        assert!(!is_nobody_else(3, None, Some(5)), "not counted");
        assert!(!is_nobody_else(3, Some(4), None), "not counted");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
    fn a_file_that_is_open_twice_is_one() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("log"), "x").expect("a file");
        let root = tree::open_root(dir.path()).expect("opened");
        let log = tree::open_file(&root, b"log").expect("opened");
        let dirs = [dir.path().to_owned()];
        let ours = Ours::new(&root, &[], &dirs);
        let bystanders = ours.open_bystanders();
        assert_eq!(bystanders.len(), 2, "the directory and its file");
        let all = [&root, &log].into_iter().chain(&bystanders);
        assert_eq!(distinct(&root, all), Some(2));
    }
}
