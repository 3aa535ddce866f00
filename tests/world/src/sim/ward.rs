//! A simulated repository with history, a doctor for it, and what must be true
//! of it whatever was done to it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jvs_doctor::{Care, Depth, Examination, Patient, Surroundings, examine, treat};
use jvs_kit::sim::{Image, SimStore, Solo};
use jvs_lock::watching::Silently;
use jvs_lock::{Lease, Locks, Seams, State, Want};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::probe::Filesystem;
use jvs_repo::record::format::FormatRecord;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{DirEntryKind, RepoPath, Store};
use jvs_snapshot::hash::Digest;
use jvs_snapshot::lineage::Lineage;
use jvs_snapshot::trees::Trees;
use jvs_snapshot::{Catalog, show_head, tags};

use super::{LEASE_MS, LONG_MS, SimTrees, payload_file, seams_of, snapshot};
use crate::repository::{main, repository};
use crate::session;

/// The operation by which whoever furnishes a ward makes files.
pub const OP: OpNonce = OpNonce([7; 8]);
/// More randomness than anybody has used before: nonces never come back.
const USED: usize = 2_000;

/// The locks as the session `id` sees them, which shows heads that nobody has shown.
pub fn locks_of<'s>(seams: Seams<'s>, id: &str) -> Locks<'s> {
    session::locks_of(seams, id).showing(show_head)
}

/// A full examination and all that may be repaired, by the doctor `id`.
pub fn doctor(seams: Seams<'_>, store: &SimStore, id: &str) -> Examination {
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

/// Each finding of an examination, in words.
pub fn told(examination: &Examination) -> Vec<String> {
    let tell = |f: &jvs_doctor::Finding| {
        format!("{} {}: {} ({:?})", f.check, f.path, f.message, f.outcome)
    };
    examination.findings.iter().map(tell).collect()
}

/// The world that a ward is in: its own, or one that is being set up.
pub enum Place<'w> {
    /// Its own.
    Own(Box<Solo>),
    /// One that is being set up.
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

/// A repository with two snapshots that doctor is let at.
pub struct Ward<'w> {
    /// Where it is.
    pub solo: Place<'w>,
    /// Two snapshots of `main`, oldest first; the first is tagged.
    pub ids: Vec<SnapshotId>,
    /// The register after the first of them.
    pub earlier: State,
    /// Files that no repair has a reason to change, with what they say.
    pub kept: Vec<(RepoPath, Vec<u8>)>,
}

impl<'w> Ward<'w> {
    /// One in a world of its own.
    pub fn new() -> Self {
        Ward::furnish(Place::Own(Box::default()))
    }

    /// Puts one into an empty world.
    pub fn in_world(solo: &'w Solo) -> Self {
        Ward::furnish(Place::Theirs(solo))
    }

    /// What became of one, later.
    pub fn at(image: Image) -> Ward<'static> {
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
    pub fn read_all<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p RepoPath>,
    ) -> Vec<(RepoPath, Vec<u8>)> {
        let read = |path: &RepoPath| Some((path.clone(), self.store().read(path, 10_000).ok()?));
        paths.into_iter().filter_map(read).collect()
    }

    /// The same ward with another disk.
    pub fn on(&self, image: Image) -> Ward<'static> {
        let (ids, kept) = (self.ids.clone(), self.kept.clone());
        Ward { solo: Place::Own(Box::new(aged(image))), ids, earlier: self.earlier, kept }
    }

    /// The world as code under test sees it.
    pub fn seams(&self) -> Seams<'_> {
        seams_of(&self.solo)
    }

    /// Its store.
    pub fn store(&self) -> &SimStore {
        self.solo.store()
    }

    /// All that doctor repairs, as the session `id`.
    pub fn repair(&self, id: &str) -> Examination {
        doctor(self.seams(), self.store(), id)
    }

    /// The locks as the session `id` sees them.
    pub fn locks(&self, id: &str) -> Locks<'_> {
        locks_of(self.seams(), id)
    }

    /// A lease of `main` for the session `id`.
    pub fn lease(&self, id: &str) -> Lease<'_> {
        self.locks(id).acquire(&main(), Want::lease(LEASE_MS)).expect("free or stealable")
    }

    /// The state of the register of `main`.
    pub fn state(&self) -> State {
        self.locks("reader").inspect(&main()).expect("readable").state
    }

    /// Writes a file, in the place of any that is there.
    pub fn write(&self, path: &RepoPath, bytes: &[u8]) {
        let _ = self.store().unlink(path);
        self.store().write_tmp(path, bytes).expect("written");
    }

    /// Removes a directory or a file.
    pub fn remove(&self, path: &RepoPath) {
        SimTrees(self.store()).remove(path).expect("removed");
    }

    /// Where the register of `main` says `state`.
    pub fn entry(&self, state: &State) -> RepoPath {
        layout::register(&main()).child(&state.to_string()).expect("plain")
    }

    /// Everything on disk is there to stay.
    pub fn settle(&self) -> Image {
        let mut pending = vec![RepoPath::root()];
        while let Some(dir) = pending.pop() {
            for entry in self.store().list(&dir).expect("listed") {
                let path = dir.child(entry.name.to_str().expect("text")).expect("plain");
                match self.store().stat(&path).expect("there").kind {
                    DirEntryKind::Directory => pending.push(path),
                    _ => self.store().open(&path).and_then(|f| f.sync()).expect("synced"),
                }
            }
            self.store().sync_dir(&dir).expect("synced");
        }
        self.solo.image()
    }

    /// Nothing that was published is lost: all of it is visible and whole, of whatever
    /// worktree it is, and what was published in `main` is still in the history of its head.
    pub fn check(&self, published: &[SnapshotId]) -> Result<(), String> {
        let catalog = Catalog::new(self.store());
        for (path, bytes) in &self.kept {
            if self.store().read(path, 10_000).ok().as_ref() != Some(bytes) {
                return Err(format!("{path} was changed"));
            }
        }
        let mut of_main = Vec::new();
        for id in published {
            let ready = catalog.open(*id).map_err(|error| format!("{id} was lost: {error}"))?;
            if ready.descriptor().worktree_id == main() {
                of_main.push(id);
            }
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
            history.insert(step.map_err(|e| e.to_string())?.id());
        }
        match of_main.iter().find(|id| !history.contains(id)) {
            Some(id) => Err(format!("{id} is no ancestor of the head any more: {history:?}")),
            None => Ok(()),
        }
    }
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
pub fn furnish(solo: &Solo) -> (Vec<SnapshotId>, State) {
    let locks = locks_of(seams_of(solo), "maker");
    repository(&locks, Isolation::Exclusive);
    let format = FormatRecord::fresh(solo.entropy()).to_bytes();
    let store = solo.store();
    store.write_new(&layout::format_tmp(OP), &layout::format(), &format).expect("format");
    let mut ids = Vec::new();
    let mut earlier = None;
    for text in ["one", "two"] {
        let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
        let ready = snapshot(solo, &mut lease, text);
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

impl Default for Ward<'_> {
    fn default() -> Self {
        Ward::new()
    }
}
