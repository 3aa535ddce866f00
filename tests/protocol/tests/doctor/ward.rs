//! A simulated repository with history, a doctor for it, and what must be true
//! of it whatever was done to it.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use jvs_doctor::{Care, Depth, Examination, Patient, Payloads, Surroundings, examine, treat};
use jvs_kit::sim::{Image, SimStore, Solo};
use jvs_lock::session::{Environment, Purpose};
use jvs_lock::watching::Silently;
use jvs_lock::{Identity, Lease, Locks, Seams, Secret, Session, State, Want};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::config::{Consistency, LockPolicy};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::probe::Filesystem;
use jvs_repo::record::format::Format;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{Kind, Listing, RepoPath, Store};
use jvs_snapshot::chosen::Chosen;
use jvs_snapshot::descriptor::{About, Content, Quiescence};
use jvs_snapshot::hash::Digest;
use jvs_snapshot::lineage::Lineage;
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::trees::Trees;
use jvs_snapshot::{Catalog, Ready, SnapshotError, Snapshots, Staged, show_head, tags};

pub(crate) const LEASE_MS: u64 = 30_000;
/// Longer than any lease with its margins.
pub(crate) const LONG_MS: u64 = 100_000;
pub(crate) const OP: OpNonce = OpNonce([7; 8]);
/// More randomness than anybody has used before: nonces never come back.
const USED: usize = 2_000;

pub(crate) fn main() -> WorktreeName {
    WorktreeName::main()
}

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
        for entry in self.0.list(tree)? {
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

    fn strays(
        &self,
        tree: &RepoPath,
        _: Option<&Chosen>,
        snapshots: &[Ready],
    ) -> Result<Vec<TreePath>, SnapshotError> {
        let stuck = |source| SnapshotError::Io { doing: "compare".into(), source };
        let text = |tree: &RepoPath, name: &str| self.0.read(&tree.child(name)?, 1_000);
        let mut strays = Vec::new();
        for entry in self.0.list(tree).map_err(stuck)? {
            let name = entry.name.to_str().expect("a plain name");
            let here = text(tree, name).map_err(stuck)?;
            let has = |ready: &Ready| {
                let payload = layout::snapshot_payload(&ready.dir());
                text(&payload, name).is_ok_and(|there| there == here)
            };
            if !snapshots.iter().any(has) {
                strays.push(TreePath::new(name.into()).expect("plain"));
            }
        }
        Ok(strays)
    }
}

impl Payloads for SimTrees<'_> {
    fn find_directory(&self, _: &RepoPath, _: &str) -> io::Result<Option<PathBuf>> {
        Ok(None)
    }

    fn set_mode(&self, _: &RepoPath, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn copy_access(&self, _: &RepoPath, _: &RepoPath) -> io::Result<()> {
        Ok(())
    }
}

/// The locks as the session `id` sees them.
pub(crate) fn locks_of<'s>(seams: Seams<'s>, id: &str) -> Locks<'s> {
    let identity = Identity {
        host: "host".into(),
        user: "ann".into(),
        pid: 1,
        start_time: 1,
        pid_namespace: Some(1),
        boot_id: seams.clock.boot_id(),
        environment: Environment::Local,
        purpose: Purpose::Interactive,
    };
    let mut secret = [0; 32];
    secret[..id.len()].copy_from_slice(id.as_bytes());
    let session = Session::new(id.parse().expect("valid"), &Secret(secret), identity);
    let log = Log::new(seams.store, &Alone, WriterId::derive(id.as_bytes(), 0));
    Locks::new(seams, session, LockPolicy::default(), log).showing(show_head)
}

/// A full examination and all that may be repaired, by the doctor `id`.
pub(crate) fn doctor(seams: Seams<'_>, store: &SimStore, id: &str) -> Examination {
    let payloads = SimTrees(store);
    let patient = Patient {
        seams,
        payloads: &payloads,
        surroundings: Surroundings {
            filesystem: Filesystem {
                kind: "ext4".into(),
                mount_point: PathBuf::from("/"),
                juicefs: None,
            },
            space: None,
            pid_namespace: Some(1),
            // Whoever is asked for has ended.
            lookup: |_| None,
        },
        chosen_head: None,
    };
    let first = examine(&patient, Depth::Full);
    let locks = locks_of(seams, id).watching(Arc::new(Silently));
    treat(&patient, &locks, Care::Repair, first)
}

pub(crate) fn told(examination: &Examination) -> Vec<String> {
    let tell = |f: &jvs_doctor::Finding| {
        format!("{} {}: {} ({:?})", f.check, f.path, f.message, f.outcome)
    };
    examination.findings.iter().map(tell).collect()
}

/// The world that a ward is in: its own, or one that is being set up.
pub(crate) enum Place<'w> {
    Own(Box<Solo>),
    Theirs(&'w Solo),
}

impl std::ops::Deref for Place<'_> {
    type Target = Solo;

    fn deref(&self) -> &Solo {
        match self {
            Place::Own(solo) => solo,
            Place::Theirs(solo) => solo,
        }
    }
}

pub(crate) struct Ward<'w> {
    pub(crate) solo: Place<'w>,
    /// Two snapshots of `main`, oldest first; the first is tagged.
    pub(crate) ids: Vec<SnapshotId>,
    /// The register after the first of them.
    pub(crate) earlier: State,
    /// Files that no repair has a reason to change, with what they say.
    pub(crate) kept: Vec<(RepoPath, Vec<u8>)>,
}

impl<'w> Ward<'w> {
    pub(crate) fn new() -> Self {
        Ward::furnish(Place::Own(Box::default()))
    }

    /// Puts one into an empty world.
    pub(crate) fn in_world(solo: &'w Solo) -> Self {
        Ward::furnish(Place::Theirs(solo))
    }

    /// What became of one, later.
    pub(crate) fn at(image: Image) -> Ward<'static> {
        Ward { kept: Vec::new(), ..Ward::new().on(image) }
    }

    fn furnish(solo: Place<'w>) -> Self {
        let (ids, earlier) = furnish(&solo);
        let mut ward = Ward { solo, ids, earlier, kept: Vec::new() };
        let tag = layout::tag(&"v1".parse().expect("a tag"));
        ward.kept = ward.read_all(&[layout::format(), layout::worktree_record(&main()), tag]);
        ward
    }

    /// Those of the files that can be read, with what they say.
    pub(crate) fn read_all<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p RepoPath>,
    ) -> Vec<(RepoPath, Vec<u8>)> {
        let read = |path: &RepoPath| Some((path.clone(), self.store().read(path, 10_000).ok()?));
        paths.into_iter().filter_map(read).collect()
    }

    /// The same ward with another disk.
    pub(crate) fn on(&self, image: Image) -> Ward<'static> {
        let (ids, kept) = (self.ids.clone(), self.kept.clone());
        Ward { solo: Place::Own(Box::new(aged(image))), ids, earlier: self.earlier, kept }
    }

    pub(crate) fn seams(&self) -> Seams<'_> {
        seams_of(&self.solo)
    }

    pub(crate) fn store(&self) -> &SimStore {
        self.solo.store()
    }

    pub(crate) fn repair(&self, id: &str) -> Examination {
        doctor(self.seams(), self.store(), id)
    }

    pub(crate) fn locks(&self, id: &str) -> Locks<'_> {
        locks_of(self.seams(), id)
    }

    pub(crate) fn lease(&self, id: &str) -> Lease<'_> {
        self.locks(id).acquire(&main(), Want::lease(LEASE_MS)).expect("free or stealable")
    }

    pub(crate) fn state(&self) -> State {
        self.locks("reader").inspect(&main()).expect("readable").state
    }

    pub(crate) fn write(&self, path: &RepoPath, bytes: &[u8]) {
        let _ = self.store().unlink(path);
        self.store().write_tmp(path, bytes).expect("written");
    }

    /// Removes a directory or a file.
    pub(crate) fn remove(&self, path: &RepoPath) {
        SimTrees(self.store()).remove(path).expect("removed");
    }

    pub(crate) fn entry(&self, state: &State) -> RepoPath {
        layout::register(&main()).child(&state.to_string()).expect("plain")
    }

    /// Everything on disk is there to stay.
    pub(crate) fn settle(&self) -> Image {
        let mut pending = vec![RepoPath::root()];
        while let Some(dir) = pending.pop() {
            for entry in self.store().list(&dir).expect("listed") {
                let path = dir.child(entry.name.to_str().expect("text")).expect("plain");
                match self.store().stat(&path).expect("there").kind {
                    Kind::Directory => pending.push(path),
                    _ => self.store().open(&path).and_then(|f| f.sync()).expect("synced"),
                }
            }
            self.store().sync_dir(&dir).expect("synced");
        }
        self.solo.image()
    }

    /// Nothing that was published is lost: it is visible and whole, or set aside
    /// whole; and the newest of it is still the head.
    pub(crate) fn check(&self, published: &[SnapshotId]) -> Result<(), String> {
        let catalog = Catalog::new(self.store());
        for (path, bytes) in &self.kept {
            if self.store().read(path, 10_000).ok().as_ref() != Some(bytes) {
                return Err(format!("{path} was changed"));
            }
        }
        let mut aside = BTreeSet::new();
        for repair in self.store().list(&layout::quarantine()).unwrap_or_default() {
            let op: OpNonce = repair.name.to_str().and_then(|n| n.parse().ok()).expect("a nonce");
            let inside = self.store().list(&layout::quarantined(op)).expect("listed");
            aside.extend(inside.iter().filter_map(|e| e.name.to_str()?.parse::<SnapshotId>().ok()));
        }
        for id in published {
            if aside.contains(id) {
                continue;
            }
            let ready = catalog.open(*id).map_err(|error| format!("{id} was lost: {error}"))?;
            let file = payload_file(&ready.dir());
            let bytes = self.store().read(&file, 1000).map_err(|e| format!("{id}: {e}"))?;
            if Digest::of(&bytes) != ready.descriptor().content.payload_root_hash {
                return Err(format!("{id} has other bytes"));
            }
        }
        let state = self.locks("reader").inspect(&main()).map_err(|e| e.to_string())?.state;
        let lineage = Lineage::from_head(catalog, state.head).map_err(|e| e.to_string())?;
        let mut history = BTreeSet::new();
        for step in lineage {
            history.insert(step.map_err(|e| e.to_string())?.descriptor().snapshot_id);
        }
        match published.iter().find(|id| !history.contains(id) && !aside.contains(id)) {
            Some(id) => Err(format!("{id} is no ancestor of the head any more: {history:?}")),
            None => Ok(()),
        }
    }
}

pub(crate) fn seams_of(solo: &Solo) -> Seams<'_> {
    Seams { store: solo.store(), clock: solo.clock(), entropy: solo.entropy() }
}

/// A world on `image` in which no nonce comes again.
fn aged(image: Image) -> Solo {
    let solo = Solo::on(image);
    let _used: u64 = (0..USED).fold(0, |all, _| all ^ solo.entropy().next());
    // Later than anything that happened before, whatever time was jumped over.
    solo.pass_ms(3 * LONG_MS);
    solo
}

/// A repository with two snapshots; them, and the register after the first.
pub(crate) fn furnish(solo: &Solo) -> (Vec<SnapshotId>, State) {
    let store = solo.store();
    store.make_dir(&layout::control_dir()).expect("control directory");
    for part in layout::skeleton() {
        store.make_dir(&part).expect("skeleton");
    }
    let format = Format::fresh(solo.entropy()).to_bytes();
    store.write_new(&layout::format_tmp(OP), &layout::format(), &format).expect("format");
    let locks = locks_of(seams_of(solo), "maker");
    jvs_lock::worktrees::create(&locks, &main(), Isolation::Exclusive).expect("main");
    let mut ids = Vec::new();
    let mut earlier = None;
    for text in ["one", "two"] {
        let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
        let ready = publish(solo, &mut lease, text);
        lease.release().expect("released");
        if ids.is_empty() {
            let name = "v1".parse().expect("a tag");
            tags::create(seams_of(solo), &name, &ready, "maker").expect("tagged");
            earlier = Some(locks.inspect(&main()).expect("read").state);
        }
        ids.push(ready.id());
    }
    (ids, earlier.expect("there was a first"))
}

pub(crate) fn payload_file(dir: &RepoPath) -> RepoPath {
    layout::snapshot_payload(dir).child("file").expect("plain")
}

/// Everything before the commit. `None` if the world does not let it.
pub(crate) fn stage<'r>(
    seams: Seams<'r>,
    at: &Snapshots<'r>,
    lease: &mut Lease<'_>,
    text: &str,
) -> Option<Staged<'r>> {
    let draft = at.begin(&lease.fence().ok()?).ok()?;
    let dir = draft.dir();
    let store = seams.store;
    store.make_dir(&layout::snapshot_payload(&dir)).ok()?;
    for path in [payload_file(&dir), layout::manifest(&dir)] {
        let file = store.create_new(&path).ok()?;
        file.write_at(0, text.as_bytes()).ok()?;
        file.sync().ok()?;
    }
    store.sync_dir(&layout::snapshot_payload(&dir)).ok()?;
    store.sync_dir(&dir).ok()?;
    let digest = Digest::of(text.as_bytes());
    let content = Content {
        consistency: Consistency::Quiesced,
        files: 1,
        bytes: text.len() as u64,
        payload_root_hash: digest,
        manifest_hash: digest,
        engine: "copy".into(),
        degraded: Vec::new(),
        quiescence: Quiescence {
            proven: true,
            digest,
            compared: 1,
            attempts: 1,
            changed: Vec::new(),
        },
        boot_id: None,
        risk: None,
    };
    let about = About {
        created_at: seams.clock.now().wall,
        note: None,
        tags: Vec::new(),
        holder_id: "host:ann:1:1".into(),
        session_id: "s".into(),
    };
    draft.seal(about, content).ok()
}

/// One whole snapshot in a world without faults.
pub(crate) fn publish(solo: &Solo, lease: &mut Lease<'_>, text: &str) -> Ready {
    solo.pass_ms(1);
    let trees = SimTrees(solo.store());
    let at = Snapshots::new(seams_of(solo), &trees);
    let staged = stage(seams_of(solo), &at, lease, text).expect("staged");
    match staged.publish(lease.fence().expect("live")) {
        Ok(ready) => ready,
        Err(error) => panic!("published: {error}"),
    }
}
