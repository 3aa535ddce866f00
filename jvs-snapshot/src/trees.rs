//! The seam to payload trees: names of any bytes, any depth. The control plane's
//! calls cannot name what is in them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use jvs_repo::sabotage;
use jvs_repo::store::{PosixStore, RepoPath, TreeListing};

use crate::chosen::ChosenPaths;
use crate::compare::{ComparedFiles, Difference, Trust};
use crate::diff;
use crate::engine::was_removed_by_the_mount;
use crate::error::SnapshotError;
use crate::fidelity::{self, LossKind};
use crate::manifest::{Entry, TreePath};
use crate::mutation::capturing::CaptureRule;
use crate::progress::Silent;
use crate::ready::Ready;
use crate::tree::{self, NodeKind};

/// A place in a payload tree; the tree itself if the path is the root.
#[derive(Debug, Clone, Copy)]
pub struct Spot<'s> {
    /// The tree, below the repository's root.
    pub tree: &'s RepoPath,
    /// Where in it.
    pub path: &'s TreePath,
}

/// What is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpotStat {
    /// Is it a directory?
    pub is_directory: bool,
    /// Is it a symlink?
    pub is_symlink: bool,
    /// Which file it is, whatever its name.
    pub identity: (u64, u64),
    /// On which mount.
    pub mount: u64,
}

/// Payload trees below a repository's root, as wholes. No method follows a symlink.
pub trait Trees: Send + Sync {
    /// Where a tree is on this host, for those who read and write it file by file.
    fn absolute(&self, tree: &RepoPath) -> PathBuf;

    /// Removes a tree and everything in it, under a name that nobody else uses. May be
    /// interrupted and run again.
    fn remove(&self, tree: &RepoPath) -> io::Result<()>;

    /// What is in a tree that others may still write into.
    fn listing(&self, tree: &RepoPath) -> io::Result<TreeListing>;

    /// Removes what is listed of a tree. Ends with `DirectoryNotEmpty` at what is
    /// not listed, or not as it was then. May be interrupted and run again.
    fn remove_listed(&self, tree: &RepoPath, listing: &TreeListing) -> io::Result<()>;

    /// The paths of a tree that are in none of `snapshots` as they are here: what
    /// would be lost with it. Only of what is chosen, if something is.
    fn strays(
        &self,
        tree: &RepoPath,
        chosen: Option<&ChosenPaths>,
        snapshots: &[Ready],
    ) -> Result<Vec<TreePath>, SnapshotError>;
}

/// Single places in payload trees, for swapping them. Each method is one step; no
/// method follows a symlink.
pub trait Spots: Send + Sync {
    /// Metadata of a place, as by `lstat`.
    fn look(&self, at: Spot<'_>) -> io::Result<SpotStat>;

    /// Swaps two of them in one step.
    fn exchange(&self, a: Spot<'_>, b: Spot<'_>) -> io::Result<()>;

    /// `rename` that fails if `to` is there.
    fn rename_new(&self, from: Spot<'_>, to: Spot<'_>) -> io::Result<()>;

    /// `fsync` of the directory that holds it.
    fn sync_above(&self, of: Spot<'_>) -> io::Result<()>;

    /// [`Spots::sync_above`] of each that is there, in whichever way is the quickest.
    fn sync_above_all(&self, of: &[Spot<'_>]) -> io::Result<()> {
        for of in of {
            match self.sync_above(*of) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                answer => answer?,
            }
        }
        Ok(())
    }

    /// Makes an empty directory.
    fn make_directory(&self, at: Spot<'_>) -> io::Result<()>;

    /// Gives a directory what `like` has: owner, mode, time, attributes. What it did not
    /// take.
    fn dress(&self, at: Spot<'_>, like: &Entry) -> io::Result<Vec<LossKind>>;
}

/// Makes the directories above a place, as far as they are not there.
pub(crate) fn make_above(spots: &dyn Spots, of: Spot<'_>) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut next = of.path.split().map(|(above, _)| above);
    while let Some(path) = next {
        match spots.look(Spot { tree: of.tree, path: &path }) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            answer => {
                answer?;
                break;
            }
        }
        next = path.split().map(|(above, _)| above);
        missing.push(path);
    }
    for path in missing.iter().rev() {
        match spots.make_directory(Spot { tree: of.tree, path }) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            answer => answer?,
        }
    }
    Ok(())
}

/// As [`make_above`], for many places of one tree, and durably.
pub(crate) fn make_all_above<'p>(
    spots: &dyn Spots,
    tree: &RepoPath,
    paths: impl Iterator<Item = &'p TreePath>,
) -> io::Result<()> {
    let mut made = BTreeSet::new();
    for path in paths {
        make_above(spots, Spot { tree, path })?;
        let mut at = path.clone();
        while let Some((above, _)) = at.split() {
            if !made.insert(std::mem::replace(&mut at, above)) {
                break;
            }
        }
    }
    let spots_made: Vec<Spot<'_>> = made.iter().map(|path| Spot { tree, path }).collect();
    spots.sync_above_all(&spots_made)
}

/// The directory that holds a place, and its name there.
pub(crate) fn above<'s>(store: &PosixStore, at: Spot<'s>) -> io::Result<(OwnedFd, &'s [u8])> {
    let mut components: Vec<&[u8]> = at.tree.as_str().split('/').map(str::as_bytes).collect();
    components.extend(at.path.components());
    let name = components.pop().unwrap_or_default();
    Ok((tree::find_below(store.root_path(), components.into_iter())?, name))
}

/// So many directories are synced one by one; beyond that, all that was written is.
const SYNCED_ALONE: usize = 8;

/// What is removed because of a comparison is read for it.
fn trust_before_removal() -> Trust {
    sabotage!(CaptureRule::RemovedByContent => Trust::Hints);
    Trust::Nothing
}

impl Trees for PosixStore {
    fn absolute(&self, tree: &RepoPath) -> PathBuf {
        PosixStore::absolute(self, tree)
    }

    fn remove(&self, tree: &RepoPath) -> io::Result<()> {
        let path = TreePath::root();
        let (dir, name) = above(self, Spot { tree, path: &path })?;
        match was_removed_by_the_mount(&dir, name) {
            true => Ok(()),
            false => self.remove_payload_tree(tree),
        }
    }

    fn listing(&self, tree: &RepoPath) -> io::Result<TreeListing> {
        self.list_payload_tree(tree)
    }

    fn remove_listed(&self, tree: &RepoPath, listing: &TreeListing) -> io::Result<()> {
        self.remove_listed_tree(tree, listing)
    }

    fn strays(
        &self,
        tree: &RepoPath,
        chosen: Option<&ChosenPaths>,
        snapshots: &[Ready],
    ) -> Result<Vec<TreePath>, SnapshotError> {
        let root = self.absolute(tree);
        let trust = trust_before_removal();
        let mut strays: Option<BTreeSet<TreePath>> = None;
        for snapshot in snapshots {
            let files = ComparedFiles::from(root.as_path()).only(chosen);
            let differences = diff::since(self, snapshot, files, trust, &Silent)?;
            let only_here: BTreeSet<TreePath> = differences
                .into_iter()
                .filter(Difference::has_what_the_first_has_not)
                .map(|difference| difference.path)
                .collect();
            let still = match strays {
                None => only_here,
                Some(strays) => strays.intersection(&only_here).cloned().collect(),
            };
            if still.is_empty() {
                return Ok(Vec::new());
            }
            strays = Some(still);
        }
        match strays {
            Some(strays) => Ok(strays.into_iter().collect()),
            None => all_names(&root).map_err(SnapshotError::io("list the old files")),
        }
    }
}

impl Spots for PosixStore {
    fn look(&self, at: Spot<'_>) -> io::Result<SpotStat> {
        let (dir, name) = above(self, at)?;
        let stat = tree::stat_afresh(dir, name)?;
        Ok(SpotStat {
            is_directory: stat.kind == NodeKind::Directory,
            is_symlink: stat.kind == NodeKind::Symlink,
            identity: stat.identity(),
            mount: stat.mount,
        })
    }

    fn exchange(&self, a: Spot<'_>, b: Spot<'_>) -> io::Result<()> {
        let ((a_dir, a), (b_dir, b)) = (above(self, a)?, above(self, b)?);
        tree::exchange(a_dir, a, b_dir, b)
    }

    fn rename_new(&self, from: Spot<'_>, to: Spot<'_>) -> io::Result<()> {
        let ((from_dir, from), (to_dir, to)) = (above(self, from)?, above(self, to)?);
        tree::rename_new(from_dir, from, to_dir, to)
    }

    fn sync_above(&self, of: Spot<'_>) -> io::Result<()> {
        tree::sync(tree::open_directory(above(self, of)?.0, b".")?)
    }

    fn sync_above_all(&self, of: &[Spot<'_>]) -> io::Result<()> {
        let root = tree::open_root_by_any_path(self.root_path())?;
        if tree::is_remote(&root) {
            // A rename is durable there when it is acknowledged.
            return Ok(());
        }
        if of.len() > SYNCED_ALONE {
            return tree::sync_filesystem(root);
        }
        for of in of {
            match self.sync_above(*of) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                answer => answer?,
            }
        }
        Ok(())
    }

    fn make_directory(&self, at: Spot<'_>) -> io::Result<()> {
        let (dir, name) = above(self, at)?;
        tree::make_directory(dir, name)
    }

    fn dress(&self, at: Spot<'_>, like: &Entry) -> io::Result<Vec<LossKind>> {
        let (dir, name) = above(self, at)?;
        fidelity::dress_directory(&dir, name, like)
    }
}

/// What is in a directory, where nothing is known to have it too.
fn all_names(root: &std::path::Path) -> io::Result<Vec<TreePath>> {
    let names = tree::list(tree::open_root(root)?)?;
    Ok(names.iter().filter_map(|name| TreePath::root().child(name).ok()).collect())
}
