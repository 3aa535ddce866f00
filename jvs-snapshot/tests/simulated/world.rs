//! A simulated repository, sessions that take snapshots in it, and what must be
//! true of it whatever happened.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use jvs_kit::sim::{Image, SimClock, SimStore, Solo};
use jvs_lock::session::{Environment, Purpose};
use jvs_lock::watching::Silently;
use jvs_lock::{Identity, Lease, Locks, Seams, Secret, Session, Want};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::clock::Clock;
use jvs_repo::config::{Consistency, LockPolicy, Retention};
use jvs_repo::duration::Span;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{Kind, Listing, RepoPath, Store};
use jvs_snapshot::chosen::Chosen;
use jvs_snapshot::descriptor::{About, Content, Quiescence};
use jvs_snapshot::hash::Digest;
use jvs_snapshot::lineage::{Lineage, Step};
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::trees::{Seen, Spot, Spots, Trees};
use jvs_snapshot::{Catalog, Draft, PublishError, Ready, SnapshotError, Snapshots, Staged};

pub(crate) const LEASE_MS: u64 = 30_000;
/// Longer than any lease with its margins.
pub(crate) const LONG_MS: u64 = 100_000;

/// Payload trees in the simulated store, whose names are all plain.
pub(crate) struct SimTrees<'s>(pub(crate) &'s SimStore);

impl Trees for SimTrees<'_> {
    fn absolute(&self, tree: &RepoPath) -> PathBuf {
        PathBuf::from(format!("/{tree}"))
    }

    fn remove(&self, tree: &RepoPath) -> io::Result<()> {
        if self.0.stat(tree)?.kind != Kind::Directory {
            return self.0.unlink(tree);
        }
        // READY last: no order is promised, and in this one a half-removed
        // snapshot would be taken for a whole one.
        for entry in self.0.list(tree)?.into_iter().rev() {
            let name = entry.name.to_str().expect("a plain name");
            self.remove(&tree.child(name)?)?;
        }
        self.0.remove_dir(tree)
    }

    /// Nobody writes into a tree here that is out of the way.
    fn listing(&self, tree: &RepoPath) -> io::Result<Listing> {
        self.0.stat(tree).map(|_| Listing::default())
    }

    fn remove_listed(&self, tree: &RepoPath, _: &Listing) -> io::Result<()> {
        self.remove(tree)
    }

    /// A tree here is one file, whose hash is the snapshot's.
    fn strays(
        &self,
        tree: &RepoPath,
        _: Option<&Chosen>,
        snapshots: &[Ready],
    ) -> Result<Vec<TreePath>, SnapshotError> {
        let stuck = |source| SnapshotError::Io { doing: "compare".into(), source };
        let mut strays = Vec::new();
        for entry in self.0.list(tree).map_err(stuck)? {
            let name = entry.name.to_str().expect("a plain name");
            let bytes = self.0.read(&tree.child(name).map_err(stuck)?, 1_000).map_err(stuck)?;
            let known =
                |ready: &Ready| ready.descriptor().content.payload_root_hash == Digest::of(&bytes);
            if !snapshots.iter().any(known) {
                strays.push(TreePath::new(name.into()).expect("plain"));
            }
        }
        Ok(strays)
    }
}

impl Spots for SimTrees<'_> {
    fn look(&self, at: Spot<'_>) -> io::Result<Seen> {
        let stat = self.0.stat(&joined(at))?;
        Ok(Seen {
            is_directory: stat.kind == Kind::Directory,
            is_symlink: stat.kind == Kind::Symlink,
            identity: (stat.device, stat.inode),
            mount: stat.device,
        })
    }

    fn exchange(&self, a: Spot<'_>, b: Spot<'_>) -> io::Result<()> {
        self.0.exchange(&joined(a), &joined(b))
    }

    fn rename_new(&self, from: Spot<'_>, to: Spot<'_>) -> io::Result<()> {
        self.0.rename_new(&joined(from), &joined(to))
    }

    fn sync_above(&self, of: Spot<'_>) -> io::Result<()> {
        self.0.sync_dir(&joined(of).parent())
    }
}

/// The same place for the control plane's calls.
fn joined(at: Spot<'_>) -> RepoPath {
    at.path.components().fold(at.tree.clone(), |path, name| {
        path.child(std::str::from_utf8(name).expect("plain")).expect("plain")
    })
}

pub(crate) struct World {
    pub(crate) solo: Solo,
}

impl World {
    /// A repository with worktree `main`.
    pub(crate) fn new() -> Self {
        World::with(Isolation::Exclusive)
    }

    pub(crate) fn with(isolation: Isolation) -> Self {
        let world = World { solo: Solo::new() };
        skeleton(world.solo.store());
        jvs_lock::worktrees::create(&world.locks("maker"), &main(), isolation).expect("main");
        world
    }

    /// The world that a power cut left.
    pub(crate) fn on(image: Image) -> Self {
        World { solo: Solo::on(image) }
    }

    pub(crate) fn seams(&self) -> Seams<'_> {
        Seams { store: self.solo.store(), clock: self.solo.clock(), entropy: self.solo.entropy() }
    }

    pub(crate) fn trees(&self) -> SimTrees<'_> {
        SimTrees(self.solo.store())
    }

    pub(crate) fn catalog(&self) -> Catalog<'_> {
        Catalog::new(self.solo.store())
    }

    pub(crate) fn locks(&self, id: &str) -> Locks<'_> {
        locks_of(self.seams(), self.solo.store(), self.solo.clock(), id)
    }

    pub(crate) fn lease(&self, id: &str) -> Lease<'_> {
        // A death between a renewal and its record leaves a lock that is watched.
        let patient = self.locks(id).watching(Arc::new(Silently));
        patient.acquire(&main(), Want::lease(LEASE_MS)).expect("free or stealable")
    }

    /// The head that the register names.
    pub(crate) fn head(&self) -> Option<SnapshotId> {
        self.locks("reader").inspect(&main()).expect("readable").state.head
    }

    /// What people see, newest first.
    pub(crate) fn history(&self) -> Vec<SnapshotId> {
        let lineage = Lineage::from_head(self.catalog(), self.head()).expect("a lineage");
        let steps: Result<Vec<Step>, _> = lineage.collect();
        steps
            .expect("no ancestor is missing")
            .into_iter()
            .filter_map(Step::ready)
            .map(|ready| ready.id())
            .collect()
    }

    /// Every directory that is visible, in whatever lineage.
    pub(crate) fn visible(&self) -> Vec<SnapshotId> {
        let ids = self.catalog().list().expect("listed").snapshots;
        ids.into_iter().filter(|id| self.catalog().is_ready(*id).expect("looked")).collect()
    }

    /// READY means verifiable: what the descriptor says is there, byte by byte.
    pub(crate) fn all_visible_are_whole(&self) -> Result<(), String> {
        for id in self.visible() {
            let broken = |what: &str| format!("{id} is visible and not whole: {what}");
            let ready = self.catalog().open(id).map_err(|error| broken(&error.to_string()))?;
            for (path, hash) in [
                (layout::manifest(&ready.dir()), ready.descriptor().content.manifest_hash),
                (payload_file(&ready.dir()), ready.descriptor().content.payload_root_hash),
            ] {
                let bytes = self.solo.store().read(&path, 1000);
                let bytes = bytes.map_err(|error| broken(&format!("{path}: {error}")))?;
                if Digest::of(&bytes) != hash {
                    return Err(broken(path.as_str()));
                }
            }
        }
        Ok(())
    }

    #[track_caller]
    pub(crate) fn assert_all_visible_are_whole(&self) {
        self.all_visible_are_whole().expect("READY means verifiable");
    }

    /// Names in a directory, sorted.
    pub(crate) fn names(&self, dir: &RepoPath) -> Vec<String> {
        let entries = self.solo.store().list(dir).expect("listed");
        let mut names: Vec<String> =
            entries.into_iter().map(|e| e.name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn skeleton(store: &SimStore) {
    store.make_dir(&layout::control_dir()).expect("control directory");
    for part in layout::skeleton() {
        store.make_dir(&part).expect("skeleton");
    }
    store.sync_dir(&layout::control_dir()).expect("synced");
    store.sync_dir(&RepoPath::root()).expect("synced");
}

/// Puts a repository with worktree `main` into an empty world.
pub(crate) fn furnish(solo: &Solo) {
    skeleton(solo.store());
    let seams = Seams { store: solo.store(), clock: solo.clock(), entropy: solo.entropy() };
    let maker = locks_of(seams, solo.store(), solo.clock(), "maker");
    jvs_lock::worktrees::create(&maker, &main(), Isolation::Exclusive).expect("main");
}

/// The locks as the session `id` sees them.
pub(crate) fn locks_of<'s>(
    seams: Seams<'s>,
    store: &'s SimStore,
    clock: &SimClock,
    id: &str,
) -> Locks<'s> {
    let identity = Identity {
        host: "host".into(),
        user: "ann".into(),
        pid: 1,
        start_time: 1,
        pid_namespace: Some(1),
        boot_id: clock.boot_id(),
        environment: Environment::Local,
        purpose: Purpose::Interactive,
    };
    let mut secret = [0; 32];
    secret[..id.len()].copy_from_slice(id.as_bytes());
    let session = Session::new(id.parse().expect("valid"), &Secret(secret), identity);
    let log = Log::new(store, &Alone, WriterId::derive(id.as_bytes(), 0));
    Locks::new(seams, session, LockPolicy::default(), log)
}

pub(crate) fn main() -> WorktreeName {
    WorktreeName::main()
}

pub(crate) fn payload_file(dir: &RepoPath) -> RepoPath {
    layout::snapshot_payload(dir).child("file").expect("plain")
}

pub(crate) fn about(now: jvs_repo::clock::WallMs) -> About {
    About {
        created_at: now,
        note: None,
        tags: Vec::new(),
        holder_id: "host:ann:1:1".into(),
        session_id: "s".into(),
    }
}

/// Stands in for a capture: one file, a manifest, all of it synced.
pub(crate) fn fill(store: &SimStore, draft: &Draft<'_>, text: &str) -> io::Result<Content> {
    let dir = draft.dir();
    store.make_dir(&layout::snapshot_payload(&dir))?;
    for path in [payload_file(&dir), layout::manifest(&dir)] {
        let file = store.create_new(&path)?;
        file.write_at(0, text.as_bytes())?;
        file.sync()?;
    }
    store.sync_dir(&layout::snapshot_payload(&dir))?;
    store.sync_dir(&dir)?;
    Ok(Content {
        consistency: Consistency::Quiesced,
        files: 1,
        bytes: text.len() as u64,
        payload_root_hash: Digest::of(text.as_bytes()),
        manifest_hash: Digest::of(text.as_bytes()),
        engine: "copy".into(),
        degraded: Vec::new(),
        quiescence: Quiescence {
            proven: true,
            digest: Digest::of(b"looks"),
            compared: 1,
            attempts: 1,
            changed: Vec::new(),
        },
        boot_id: None,
        risk: None,
    })
}

/// Everything before the commit.
pub(crate) fn stage<'r>(
    world: &World,
    at: &Snapshots<'r>,
    lease: &mut Lease<'_>,
    text: &str,
) -> Result<Staged<'r>, SnapshotError> {
    let draft = at.begin(&lease.fence()?)?;
    let now = world.solo.clock().now().wall;
    let stuck = |source| SnapshotError::Io { doing: "stage".into(), source };
    let content = fill(world.solo.store(), &draft, text).map_err(stuck)?;
    draft.seal(about(now), content).map_err(|error| stuck(error.source))
}

/// One whole snapshot in a world without faults.
pub(crate) fn snapshot(world: &World, lease: &mut Lease<'_>, text: &str) -> Ready {
    world.solo.pass_ms(1);
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let staged = stage(world, &at, lease, text).expect("staged");
    let fence = lease.fence().expect("live");
    match staged.publish(fence) {
        Ok(ready) => ready,
        Err(error) => panic!("published: {error}"),
    }
}

pub(crate) fn code_of(error: &PublishError<'_>) -> jvs_repo::code::Code {
    jvs_repo::code::Coded::code(error)
}

pub(crate) fn keep(last: u64, within_ms: u64) -> Retention {
    Retention { keep_last: last, keep_within: Span::from_ms(within_ms) }
}

/// Three snapshots of `main`, one on top of the other.
pub(crate) fn with_history(solo: &Solo) {
    let seams = Seams { store: solo.store(), clock: solo.clock(), entropy: solo.entropy() };
    let trees = SimTrees(solo.store());
    let at = Snapshots::new(seams, &trees);
    let locks = locks_of(seams, solo.store(), solo.clock(), "maker");
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    for text in ["one", "two", "three"] {
        solo.pass_ms(1);
        let draft = at.begin(&lease.fence().expect("live")).expect("begun");
        let content = fill(solo.store(), &draft, text).expect("filled");
        let sealed = draft.seal(about(solo.clock().now().wall), content).expect("sealed");
        sealed.publish(lease.fence().expect("live")).expect("published");
    }
    lease.release().expect("released");
    solo.pass_ms(1);
}
