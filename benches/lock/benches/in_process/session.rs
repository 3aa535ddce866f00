//! A repository and a session in it, in this process.

use std::path::Path;

use jvs_lock::session::{Environment, Purpose};
use jvs_lock::{Identity, Locks, Seams, Secret, Session, worktrees};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::config::LockPolicy;
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{PosixStore, RepoPath, Store};

/// A lease long enough not to end during a benchmark.
pub(crate) const LEASE_MS: u64 = 3_600_000;

/// The control directories of a repository with nothing in it.
pub(crate) fn skeleton(root: &Path) -> PosixStore {
    rustix::fs::mkdir(root, rustix::fs::Mode::RWXU).expect("a root");
    let store = PosixStore::open(root).expect("a root");
    store.make_dir(&layout::control_dir()).expect("a control directory");
    for part in layout::skeleton() {
        store.make_dir(&part).expect("a control directory");
    }
    store
}

/// Who writes the log of [`locks`].
pub(crate) fn writer() -> WriterId {
    WriterId::derive(b"bench", 0)
}

/// How long the log of [`locks`] is.
pub(crate) fn log_size(store: &PosixStore) -> u64 {
    store.stat(&layout::audit_log(&writer())).map_or(0, |stat| stat.size)
}

/// The locks in the hands of one session; worktree `main` is made.
pub(crate) fn locks(store: &PosixStore) -> Locks<'_> {
    let seams = Seams { store, clock: &SystemClock, entropy: &SystemEntropy };
    let identity = Identity {
        host: "bench".into(),
        user: "bench".into(),
        pid: std::process::id(),
        start_time: 0,
        pid_namespace: None,
        boot_id: SystemClock.boot_id(),
        environment: Environment::Local,
        purpose: Purpose::Automated,
    };
    let id = "bench".parse().expect("a session id");
    let session = Session::new(id, &Secret([7; 32]), identity);
    let log = Log::new(store, &Alone, writer());
    let locks = Locks::new(seams, session, LockPolicy::default(), log);
    let main = WorktreeName::main();
    worktrees::create(&locks, &main, Isolation::Exclusive).expect("a worktree");
    locks
}

/// The name of the one entry of a register.
pub(crate) fn entry(store: &PosixStore, dir: &RepoPath) -> String {
    let names = store.first_batch(dir).expect("a register");
    names[0].to_str().expect("a state is text").to_owned()
}
