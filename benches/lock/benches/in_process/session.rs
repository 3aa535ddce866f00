//! A repository and a session in it, in this process.

use std::path::Path;

use jvs_lock::session::Purpose;
use jvs_lock::{Identity, Locks, Seams, worktrees};
use jvs_repo::audit::WriterId;
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{PosixStore, RepoPath, Store};
use jvs_world::{repository, session};

/// A lease long enough not to end during a benchmark.
pub(crate) const LEASE_MS: u64 = 3_600_000;

/// The control directories of a repository with nothing in it.
pub(crate) fn skeleton(root: &Path) -> PosixStore {
    rustix::fs::mkdir(root, rustix::fs::Mode::RWXU).expect("a root");
    let store = PosixStore::open(root).expect("a root");
    repository::skeleton(&store);
    store
}

/// Who writes the log of [`locks`].
pub(crate) fn writer() -> WriterId {
    WriterId::derive(b"bench", 0)
}

/// How long the log of [`locks`] is.
pub(crate) fn log_size(store: &PosixStore) -> u64 {
    store.stat(&layout::audit_log(writer())).map_or(0, |stat| stat.size)
}

/// The locks in the hands of one session; worktree `main` is made.
pub(crate) fn locks(store: &PosixStore) -> Locks<'_> {
    let seams = Seams { store, clock: &SystemClock, entropy: &SystemEntropy };
    let me = Identity {
        pid: std::process::id(),
        purpose: Purpose::Automated,
        ..session::identity(SystemClock.boot_id())
    };
    let locks = session::locks(seams, session::session("bench", me));
    let main = WorktreeName::main();
    worktrees::create(&locks, &main, Isolation::Exclusive).expect("a worktree");
    locks
}

/// The name of the one entry of a register.
pub(crate) fn entry(store: &PosixStore, dir: &RepoPath) -> String {
    let names = store.first_batch(dir).expect("a register");
    names[0].to_str().expect("a state is text").to_owned()
}
