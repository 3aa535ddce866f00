//! What wakes a follower before its time: changes of this host. What others do is seen by
//! looking again.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::{PosixStore, RepoPath};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// Other hosts wake nobody: it is looked again after this time.
const LOOK_AGAIN_MS: u64 = 300;
/// Looking takes at most a tenth of the time, however many registers there are and however
/// slow their filesystem is.
const REST: u64 = 9;
/// No longer than that.
const REST_MAX_MS: u64 = 10_000;

/// The kernel's watches on the registers of a repository.
pub(super) struct Watches<'r> {
    store: &'r PosixStore,
    /// `None` if the kernel has no watches left: then only looking again helps.
    fd: Option<OwnedFd>,
    watched: BTreeSet<WorktreeName>,
    list: bool,
}

impl<'r> Watches<'r> {
    pub(super) fn new(store: &'r PosixStore) -> Self {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        Watches { store, fd, watched: BTreeSet::new(), list: false }
    }

    /// Watches these, and whether there are more.
    pub(super) fn watch<'w>(&mut self, worktrees: impl Iterator<Item = &'w WorktreeName>) {
        if !self.list {
            self.list = self.add(&layout::locks());
        }
        for worktree in worktrees {
            if !self.watched.contains(worktree) && self.add(&layout::register(worktree)) {
                self.watched.insert(worktree.clone());
            }
        }
    }

    fn add(&self, what: &RepoPath) -> bool {
        let Some(fd) = &self.fd else { return false };
        // A register changes by a rename in its directory.
        let changes = WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::DONT_FOLLOW;
        inotify::add_watch(fd, self.store.absolute(what), changes).is_ok()
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Takes what has woken.
    pub(super) fn take(&self) {
        let Some(fd) = &self.fd else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(fd, &mut buffer);
        while reader.next().is_ok() {}
    }

    /// How long to wait after a look that took so long.
    pub(super) fn pause_ms(&self, took_ms: u64) -> u32 {
        let pause = LOOK_AGAIN_MS.max(took_ms.saturating_mul(REST)).min(REST_MAX_MS);
        u32::try_from(pause).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_takes_a_tenth_of_the_time_at_most() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = PosixStore::open(dir.path()).expect("a store");
        let watches = Watches::new(&store);
        assert_eq!(
            [0, 10, 100, 1_000_000].map(|took| watches.pause_ms(took)),
            [300, 300, 900, 10_000]
        );
    }
}
