//! A repository on a real filesystem, and a session that works in it.

use std::path::{Path, PathBuf};

use jvs_lock::session::{Environment, Purpose};
use jvs_lock::{Identity, Lease, Locks, Seams, Secret, Session, Want};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::config::{Engine, LockPolicy};
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{PosixStore, RepoPath, Store};
use jvs_snapshot::descriptor::About;
use jvs_snapshot::progress::Silent;
use jvs_snapshot::restore::Restore;
use jvs_snapshot::stage::Options;
use jvs_snapshot::take::{Hold, Request, TakeError, Taken, take};
use jvs_snapshot::{Ready, Snapshots};

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: PosixStore,
}

impl World {
    /// A repository with worktree `main`.
    pub(crate) fn new() -> Self {
        World::with(Isolation::Exclusive)
    }

    /// As [`World::new`], in some place.
    pub(crate) fn below(place: &Path) -> Self {
        World::in_dir(tempfile::tempdir_in(place).expect("a directory"), Isolation::Exclusive)
    }

    pub(crate) fn with(isolation: Isolation) -> Self {
        World::in_dir(tempfile::tempdir().expect("a directory"), isolation)
    }

    fn in_dir(dir: tempfile::TempDir, isolation: Isolation) -> Self {
        let store = PosixStore::open(dir.path()).expect("open");
        store.make_dir(&layout::control_dir()).expect("control directory");
        for part in layout::skeleton() {
            store.make_dir(&part).expect("skeleton");
        }
        let world = World { dir, store };
        let locks = world.locks("maker");
        jvs_lock::worktrees::create(&locks, &main(), isolation).expect("main");
        world
    }

    pub(crate) fn seams(&self) -> Seams<'_> {
        Seams { store: &self.store, clock: &SystemClock, entropy: &SystemEntropy }
    }

    pub(crate) fn at(&self) -> Snapshots<'_> {
        Snapshots::new(self.seams(), &self.store)
    }

    pub(crate) fn restore(&self) -> Restore<'_> {
        Restore { at: self.at(), store: &self.store, engine: Engine::Auto }
    }

    pub(crate) fn locks(&self, id: &str) -> Locks<'_> {
        let identity = Identity {
            host: "host".into(),
            user: "ann".into(),
            pid: std::process::id(),
            start_time: 1,
            pid_namespace: Some(1),
            boot_id: SystemClock.boot_id(),
            environment: Environment::Local,
            purpose: Purpose::Interactive,
        };
        let mut secret = [0; 32];
        secret[..id.len()].copy_from_slice(id.as_bytes());
        let session = Session::new(id.parse().expect("valid"), &Secret(secret), identity);
        let log = Log::new(&self.store, &Alone, WriterId::derive(id.as_bytes(), 0));
        Locks::new(self.seams(), session, LockPolicy::default(), log)
    }

    pub(crate) fn lease(&self) -> Lease<'_> {
        self.locks("s").acquire(&main(), Want::lease(30_000)).expect("free")
    }

    /// A path among the worktree's files.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.dir.path().join(layout::payload(&main()).as_str()).join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.file(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    }

    /// A path among a snapshot's files.
    pub(crate) fn kept(&self, ready: &Ready, path: &str) -> PathBuf {
        self.store.absolute(&layout::snapshot_payload(&ready.dir())).join(path)
    }

    pub(crate) fn request<'q>(&self, source: &'q Path) -> Request<'q> {
        Request {
            source,
            about: About {
                created_at: SystemClock.now().wall,
                note: None,
                tags: Vec::new(),
                holder_id: "host:ann:1:1".into(),
                session_id: "s".into(),
            },
            options: Options::default(),
        }
    }

    pub(crate) fn try_snapshot(&self, lease: &mut Lease<'_>) -> Result<Taken, TakeError> {
        let source = self.file("");
        let request = self.request(&source);
        take(&self.at(), &mut Hold::Lease(lease), request, &Silent)
    }

    pub(crate) fn snapshot(&self, lease: &mut Lease<'_>) -> Ready {
        self.try_snapshot(lease).expect("taken").ready
    }

    /// Names in a directory, sorted.
    pub(crate) fn names(&self, dir: &RepoPath) -> Vec<String> {
        let entries = self.store.list(dir).expect("listed");
        let mut names: Vec<String> =
            entries.into_iter().map(|e| e.name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

pub(crate) fn main() -> WorktreeName {
    WorktreeName::main()
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}
