//! A repository on a real filesystem, and a session that works in it.

use std::path::{Path, PathBuf};

use jvs_lock::{Identity, Lease, Locks, Seams, Want};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::config::Engine;
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::layout;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{PosixStore, RepoPath};
use jvs_snapshot::descriptor::About;
use jvs_snapshot::ignore::IgnoreRules;
use jvs_snapshot::line::LinePlace;
use jvs_snapshot::progress::Silent;
use jvs_snapshot::restore::Restore;
use jvs_snapshot::stage::Options;
use jvs_snapshot::take::{Request, SnapshotHold, TakeError, Taken, take};
use jvs_snapshot::{Ready, Snapshots};
use tempfile::TempDir;

use crate::repository::{main, names, repository};
use crate::session::{identity, locks, session};

/// A repository in a temporary directory.
pub struct World {
    /// Where it is; gone with it.
    pub dir: TempDir,
    /// Its store.
    pub store: PosixStore,
    /// What is ignored in it, besides what files of rules say.
    pub ignore: IgnoreRules,
}

impl World {
    /// A repository with worktree `main`.
    pub fn new() -> Self {
        World::with(Isolation::Exclusive)
    }

    /// As [`World::new`], in some place.
    pub fn below(place: &Path) -> Self {
        World::in_dir(tempfile::tempdir_in(place).expect("a directory"), Isolation::Exclusive)
    }

    /// A repository whose `main` has this isolation.
    pub fn with(isolation: Isolation) -> Self {
        World::in_dir(tempfile::tempdir().expect("a directory"), isolation)
    }

    fn in_dir(dir: TempDir, isolation: Isolation) -> Self {
        let store = PosixStore::open(dir.path()).expect("open");
        let world = World { dir, store, ignore: IgnoreRules::default() };
        repository(&world.locks("maker"), isolation);
        world
    }

    /// The world as code under test sees it.
    pub fn seams(&self) -> Seams<'_> {
        Seams { store: &self.store, clock: &SystemClock, entropy: &SystemEntropy }
    }

    /// Its snapshots.
    pub fn at(&self) -> Snapshots<'_> {
        Snapshots::new(self.seams(), &self.store)
    }

    /// What restores its snapshots.
    pub fn restore(&self) -> Restore<'_> {
        let (at, store) = (self.at(), &self.store);
        Restore { at, store, engine: Engine::Auto, ignore: &self.ignore }
    }

    /// The locks as the session `id` sees them in this process.
    pub fn locks(&self, id: &str) -> Locks<'_> {
        let here = Identity { pid: std::process::id(), ..identity(SystemClock.boot_id()) };
        locks(self.seams(), session(id, here))
    }

    /// A lease of `main` for the session `s`.
    pub fn lease(&self) -> Lease<'_> {
        self.locks("s").acquire(&main(), Want::lease(30_000)).expect("free")
    }

    /// A path among the worktree's files.
    pub fn file(&self, path: &str) -> PathBuf {
        self.dir.path().join(layout::payload(&main()).as_str()).join(path)
    }

    /// Writes a file of the worktree, with the directories above it.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.file(path);
        fs_err::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs_err::write(path, text).expect("a file");
    }

    /// A path among a snapshot's files.
    pub fn kept(&self, ready: &Ready, path: &str) -> PathBuf {
        self.store.absolute(&layout::snapshot_payload(&ready.dir())).join(path)
    }

    /// The wish for a snapshot of `source`.
    pub fn request<'q>(&self, source: &'q Path) -> Request<'q> {
        Request {
            source,
            about: About {
                created_at: SystemClock.now().wall,
                note: None,
                tags: Vec::new(),
                holder_id: "host:ann:1:1".into(),
                session_id: "s".into(),
                line: None,
            },
            options: Options { ignore: Some(self.ignore.clone()), ..Options::default() },
            place: LinePlace::Next,
        }
    }

    /// A snapshot of `main`, if it can be had.
    pub fn try_snapshot(&self, lease: &mut Lease<'_>) -> Result<Taken, TakeError> {
        let source = self.file("");
        let request = self.request(&source);
        take(&self.at(), &mut SnapshotHold::Lease(lease), request, &Silent)
    }

    /// A snapshot of `main`.
    pub fn snapshot(&self, lease: &mut Lease<'_>) -> Ready {
        self.try_snapshot(lease).expect("taken").ready
    }

    /// Names in a directory, sorted.
    pub fn names(&self, dir: &RepoPath) -> Vec<String> {
        names(&self.store, dir)
    }
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}

/// What a file says.
pub fn read(path: &Path) -> String {
    fs_err::read_to_string(path).expect("a file")
}
