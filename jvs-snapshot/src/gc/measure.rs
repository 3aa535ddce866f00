//! How much room a collection makes: the blocks of every file that has no name left after
//! it, as `du` counts them. On most filesystems different files may share content (clones),
//! which cannot be told from content of their own: there the answer is what is freed at
//! most. A remote filesystem is not asked about every file: there it is what is in them.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::store::{PosixStore, RepoPath};

use crate::progress::Progress;
use crate::tree::{self, Names, NodeKind, NodeStat};

/// What removing some trees would free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Bytes on disk of files that have no name elsewhere.
    pub bytes: u64,
    /// Files that have, and so stay.
    pub shared: u64,
    /// Is it certain that no less is freed?
    pub exact: bool,
}

/// One block of a file, as the kernel counts them.
const BLOCK: u64 = 512;

/// What is known of files with several names.
#[derive(Debug, Default)]
struct Ledger {
    freed: u64,
    /// How many names of each were not met yet, and its bytes.
    open: HashMap<(u64, u64), (u32, u64)>,
}

impl Ledger {
    fn take(&mut self, (stat, blocks): (NodeStat, u64)) {
        let bytes = blocks.saturating_mul(BLOCK);
        if stat.kind == NodeKind::Directory || stat.links <= 1 {
            self.freed = self.freed.saturating_add(bytes);
            return;
        }
        let left = self.open.entry(stat.identity()).or_insert((stat.links, bytes));
        left.0 = left.0.saturating_sub(1);
        if left.0 == 0 {
            self.open.remove(&stat.identity());
            self.freed = self.freed.saturating_add(bytes);
        }
    }

    fn sum(&self, exact: bool) -> Measured {
        Measured { bytes: self.freed, shared: self.open.len() as u64, exact }
    }
}

/// Measures these snapshots, each with the bytes of its files. What goes away meanwhile is
/// not counted.
pub fn measure(
    store: &PosixStore,
    snapshots: impl IntoIterator<Item = (SnapshotId, u64)>,
    progress: &dyn Progress,
) -> io::Result<Measured> {
    let root = tree::open_root_by_any_path(store.root_path())?;
    if tree::is_remote(&root) {
        let bytes = snapshots.into_iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(bytes));
        return Ok(Measured { bytes, shared: 0, exact: false });
    }
    let exact = tree::shares_no_content(&root);
    let mut ledger = Ledger::default();
    for (id, _) in snapshots {
        match measure_tree(store, &layout::snapshot(id), &mut ledger, progress) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            answer => answer?,
        }
    }
    Ok(ledger.sum(exact))
}

/// A directory on the way down. Only the last one is open, however deep it is.
struct Level {
    identity: (u64, u64),
    names: Names,
    next: usize,
}

impl Level {
    fn of(dir: &OwnedFd) -> io::Result<Self> {
        let identity = tree::stat_open(dir)?.identity();
        Ok(Level { identity, names: tree::list(dir.as_fd())?, next: 0 })
    }
}

fn measure_tree(
    store: &PosixStore,
    path: &RepoPath,
    ledger: &mut Ledger,
    progress: &dyn Progress,
) -> io::Result<()> {
    let mut here = tree::open_root(&store.absolute(path))?;
    ledger.take(tree::stat_with_blocks(&here, b"")?);
    let mut levels = vec![Level::of(&here)?];
    while let Some(level) = levels.last_mut() {
        if level.next == level.names.len() {
            levels.pop();
            let Some(above) = levels.last() else { break };
            here = tree::open_directory(&here, b"..")?;
            if tree::stat_open(&here)?.identity() != above.identity {
                return Err(io::Error::other("a directory was moved while it was measured"));
            }
            continue;
        }
        let name = level.names.get(level.next);
        level.next += 1;
        let (stat, blocks) = match tree::stat_with_blocks(&here, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            answer => answer?,
        };
        ledger.take((stat, blocks));
        progress.advance(1, 0);
        if stat.kind == NodeKind::Directory {
            here = tree::open_directory(&here, name)?;
            let below = Level::of(&here)?;
            levels.push(below);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Device, Timestamp};

    fn file(inode: u64, links: u32, blocks: u64) -> (NodeStat, u64) {
        let time = Timestamp { seconds: 0, nanos: 0 };
        let stat = NodeStat {
            kind: NodeKind::File,
            mode: 0o644,
            uid: 0,
            gid: 0,
            links,
            size: 1,
            inode,
            filesystem: 1,
            mtime: time,
            ctime: time,
            device: Device { major: 0, minor: 0 },
            mount: 1,
        };
        (stat, blocks)
    }

    #[test]
    fn a_file_is_freed_with_its_last_name() {
        let sum = |files: &[(NodeStat, u64)]| {
            let mut ledger = Ledger::default();
            files.iter().for_each(|file| ledger.take(*file));
            ledger.sum(true)
        };
        assert_eq!(sum(&[file(1, 1, 8)]), Measured { bytes: 4096, shared: 0, exact: true });
        assert_eq!(
            sum(&[file(1, 2, 8)]),
            Measured { bytes: 0, shared: 1, exact: true },
            "a name elsewhere"
        );
        assert_eq!(
            sum(&[file(1, 2, 8), file(1, 2, 8)]),
            Measured { bytes: 4096, shared: 0, exact: true }
        );
        assert_eq!(sum(&[file(1, 3, 8), file(2, 1, 8), file(1, 3, 8)]), {
            Measured { bytes: 4096, shared: 1, exact: true }
        });
        let directory = NodeStat { kind: NodeKind::Directory, ..file(1, 7, 8).0 };
        assert_eq!(sum(&[(directory, 8)]), Measured { bytes: 4096, shared: 0, exact: true });
    }
}
