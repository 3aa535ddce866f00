//! The seam to payload trees: names of any bytes, any depth. The control plane's
//! calls cannot name what is in them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use jvs_repo::sabotage;
use jvs_repo::store::{PosixStore, RepoPath, TreeListing};

use crate::chosen::ChosenPaths;
use crate::compare::{Difference, Trust};
use crate::diff;
use crate::error::SnapshotError;
use crate::manifest::TreePath;
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

    /// Removes a tree and everything in it. May be interrupted and run again.
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
}

/// The directory that holds a place, and its name there.
fn above<'s>(store: &PosixStore, at: Spot<'s>) -> io::Result<(OwnedFd, &'s [u8])> {
    let mut components: Vec<&[u8]> = at.tree.as_str().split('/').map(str::as_bytes).collect();
    components.extend(at.path.components());
    let name = components.pop().unwrap_or_default();
    // The path up to the repository is its user's own word; nothing below it is.
    let root = tree::open_root_by_any_path(store.root_path())?;
    Ok((tree::open_below(root, components.into_iter())?, name))
}

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
        self.remove_payload_tree(tree)
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
            let differences = match chosen {
                Some(chosen) => diff::since_of(self, snapshot, &root, chosen, trust, &Silent)?,
                None => diff::since(self, snapshot, &root, trust, &Silent)?,
            };
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
        tree::sync(above(self, of)?.0)
    }
}

/// What is in a directory, where nothing is known to have it too.
fn all_names(root: &std::path::Path) -> io::Result<Vec<TreePath>> {
    let names = tree::list(tree::open_root(root)?)?;
    Ok(names.iter().filter_map(|name| TreePath::root().child(name).ok()).collect())
}
