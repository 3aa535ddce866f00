//! The repository under examination, and what is known of the world around it.

use std::io;
use std::path::PathBuf;

use jvs_lock::Seams;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::probe::Filesystem;
use jvs_repo::proc::ProcessStat;
use jvs_repo::store::{PosixStore, RepoPath, Space};
use jvs_snapshot::trees::{Spots, Trees};

/// Payload trees: what the control plane's calls cannot walk.
pub trait Payloads: Trees {
    /// The first directory called `name` anywhere below `dir`.
    fn find_directory(&self, dir: &RepoPath, name: &str) -> io::Result<Option<PathBuf>>;

    /// Sets the permissions of a file or directory; no symlink is followed.
    fn set_mode(&self, path: &RepoPath, mode: u32) -> io::Result<()>;

    /// Gives the directory `to` the owner and mode of the directory `from`.
    fn copy_access(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()>;

    /// Single places in them; none where nothing in a tree is moved in truth.
    fn spots(&self) -> Option<&dyn Spots>;
}

impl Payloads for PosixStore {
    fn find_directory(&self, dir: &RepoPath, name: &str) -> io::Result<Option<PathBuf>> {
        PosixStore::find_directory(self, dir, name)
    }

    fn set_mode(&self, path: &RepoPath, mode: u32) -> io::Result<()> {
        PosixStore::set_mode(self, path, mode)
    }

    fn copy_access(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        PosixStore::copy_access(self, from, to)
    }

    fn spots(&self) -> Option<&dyn Spots> {
        Some(self)
    }
}

/// What is known of the host and the mount.
#[derive(Clone)]
pub struct Surroundings {
    /// The filesystem that the repository is on.
    pub filesystem: Filesystem,
    /// How much room it has, if it says.
    pub space: Option<Space>,
    /// The PID namespace of this process.
    pub pid_namespace: Option<u64>,
    /// Looks a process of this host up.
    pub lookup: fn(u32) -> Option<ProcessStat>,
}

/// A repository to examine.
#[derive(Clone)]
pub struct Patient<'r> {
    /// The control plane, the clocks, randomness.
    pub seams: Seams<'r>,
    /// The payloads.
    pub payloads: &'r dyn Payloads,
    /// The world around.
    pub surroundings: Surroundings,
    /// What a person chose where the evidence does not decide.
    pub chosen_head: Option<ChosenHead>,
}

/// A head that a person chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenHead {
    /// Which; `None` to begin again, without one.
    pub head: Option<SnapshotId>,
    /// Whose; `None` for whichever worktree it fits.
    pub worktree: Option<WorktreeName>,
}

impl Patient<'_> {
    /// The head that was chosen for `worktree`, if one was.
    pub(crate) fn chosen_for(&self, worktree: &WorktreeName) -> Option<Option<SnapshotId>> {
        let chosen = self.chosen_head.as_ref()?;
        let meant = chosen.worktree.as_ref().is_none_or(|name| name == worktree);
        meant.then_some(chosen.head)
    }
}
