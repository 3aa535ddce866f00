//! A repository in a temporary directory, and sessions that work in it.

use std::sync::atomic::{AtomicU64, Ordering};

use jvs_lock::{Identity, Locks, Seams, Secret, Session};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::clock::{BootId, BootMs, Clock, Discipline, Reading, WallMs};
use jvs_repo::config::LockPolicy;
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{PosixStore, RepoPath, Store};
use jvs_world::repository::{names, repository};
use jvs_world::session::{identity, secret};

/// A clock that the test moves; sleeping moves it too.
pub(crate) struct TestClock {
    ms: AtomicU64,
}

impl TestClock {
    pub(crate) fn pass(&self, ms: u64) {
        self.ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Reading {
        let ms = self.ms.load(Ordering::SeqCst);
        Reading { wall: WallMs(1_700_000_000_000 + ms), boot: BootMs(ms) }
    }

    fn boot_id(&self) -> BootId {
        BootId("boot".into())
    }

    fn discipline(&self) -> Discipline {
        Discipline::Unknown
    }

    fn sleep_ms(&self, ms: u64) {
        self.pass(ms);
    }
}

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: PosixStore,
    pub(crate) clock: TestClock,
}

impl World {
    /// A repository with worktree `main`.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let store = PosixStore::open(dir.path()).expect("open");
        let world = World { dir, store, clock: TestClock { ms: AtomicU64::new(1_000) } };
        repository(&world.session("maker"), Isolation::Exclusive);
        world
    }

    /// The world as code under test sees it, with `clock`.
    pub(crate) fn seams<'w>(&'w self, clock: &'w dyn Clock) -> Seams<'w> {
        Seams { store: &self.store, clock, entropy: &SystemEntropy }
    }

    /// The locks as the session `id` sees them.
    pub(crate) fn session(&self, id: &str) -> Locks<'_> {
        self.session_at(id, "boot", &self.clock)
    }

    /// The same on a host of its own.
    pub(crate) fn session_of_host(&self, id: &str, boot: &str) -> Locks<'_> {
        self.session_at(id, boot, &self.clock)
    }

    /// The same with another clock.
    pub(crate) fn session_on<'w>(&'w self, id: &str, clock: &'w dyn Clock) -> Locks<'w> {
        self.session_at(id, "boot", clock)
    }

    /// The session `id` on another host, where its secret is another.
    pub(crate) fn same_session_with_another_secret(&self, id: &str, boot: &str) -> Locks<'_> {
        self.session_with(id, [9; 32], boot, &self.clock)
    }

    fn session_at<'w>(&'w self, id: &str, boot: &str, clock: &'w dyn Clock) -> Locks<'w> {
        self.session_with(id, secret(id).0, boot, clock)
    }

    fn session_with<'w>(
        &'w self,
        id: &str,
        secret: [u8; 32],
        boot: &str,
        clock: &'w dyn Clock,
    ) -> Locks<'w> {
        let here = Identity {
            host: format!("host-of-{boot}"),
            pid: std::process::id(),
            ..identity(BootId(boot.into()))
        };
        let session = Session::new(id.parse().expect("valid"), &Secret(secret), here);
        self.locks_of(session, secret, self.seams(clock))
    }

    /// The locks as the session `id` sees them through another store.
    pub(crate) fn session_through<'w>(&'w self, id: &str, store: &'w dyn Store) -> Locks<'w> {
        let session = self.session(id).session().clone();
        let seams = Seams { store, ..self.seams(&self.clock) };
        self.locks_of(session, [7; 32], seams)
    }

    fn locks_of<'w>(&'w self, session: Session, secret: [u8; 32], seams: Seams<'w>) -> Locks<'w> {
        let id = session.id().as_str().to_owned();
        let writer = WriterId::derive(&[id.as_bytes(), &secret].concat(), 0);
        let log = Log::new(&self.store, &Alone, writer);
        Locks::new(seams, session, LockPolicy::default(), log)
    }

    /// Names in a directory of the repository, sorted.
    pub(crate) fn names(&self, dir: &RepoPath) -> Vec<String> {
        names(&self.store, dir)
    }

    /// Checks all registers against all logs.
    pub(crate) fn audit(&self, worktrees: &[&WorktreeName]) -> jvs_lock::history::HistoryReport {
        let names = worktrees.iter().map(|name| (*name).clone());
        let (seen, logs) =
            jvs_lock::history::witness(&self.store, &jvs_repo::clock::SystemClock, names, |_| {
                false
            })
            .expect("seen");
        jvs_lock::history::check(&seen, &logs.expect("read"))
    }
}

/// Looks again and again until `done`; fails past the deadline.
#[track_caller]
pub(crate) fn wait_no_longer_than(
    deadline: std::time::Duration,
    what: &str,
    mut done: impl FnMut() -> bool,
) {
    let step = std::time::Duration::from_millis(5);
    let mut waited = std::time::Duration::ZERO;
    while !done() {
        assert!(waited < deadline, "after {deadline:?} still not: {what}");
        std::thread::sleep(step);
        waited += step;
    }
}
