//! What there is of snapshots: looked at after every register was READ.

use std::io;

use jvs_repo::id::SnapshotId;
use jvs_repo::json::{RecordError, UnusableReason};
use jvs_repo::layout;
use jvs_repo::sabotage;
use jvs_repo::store::{RepoPath, Store};
use jvs_snapshot::descriptor::{self, Descriptor};
use jvs_snapshot::hash::Digest;
use jvs_snapshot::tombstones::Tombstones;

use crate::finding::FindingCollector;
use crate::mutation::Rule;

use super::{Survey, Unseen, is_absent, is_symlink};

/// A directory of a snapshot.
#[derive(Debug)]
pub(crate) struct Snap {
    pub(crate) ready: bool,
    pub(crate) staged: bool,
    pub(crate) payload: bool,
    pub(crate) descriptor: Result<(Descriptor, Digest), String>,
}

impl Snap {
    pub(crate) fn described(&self) -> Option<&Descriptor> {
        self.descriptor.as_ref().ok().map(|(descriptor, _)| descriptor)
    }
}

/// What is in the directory of a snapshot.
struct Parts {
    ready: bool,
    staged: bool,
    payload: bool,
}

impl Survey<'_, '_> {
    pub(super) fn read_snapshots(&mut self) {
        let store = self.store();
        let unseen = std::cell::RefCell::new(Vec::new());
        // What cannot be looked at may be there.
        let there = |path: RepoPath| match store.stat(&path) {
            Ok(_) => true,
            Err(error) if is_absent(&error) => false,
            Err(error) => {
                unseen.borrow_mut().push(Unseen { path, why: error.to_string() });
                true
            }
        };
        // From one listing, not by look-ups: a mount may remember that READY was not
        // there, and what has no READY may be taken for garbage.
        let parts = |dir: &RepoPath| match store.list(dir) {
            Ok(entries) => {
                let has = |path: RepoPath| entries.iter().any(|e| e.name == path.split().1);
                Parts {
                    ready: has(layout::ready(dir)),
                    staged: has(layout::ready_staged(dir)),
                    payload: has(layout::snapshot_payload(dir)),
                }
            }
            Err(error) => {
                let absent = is_absent(&error);
                if !absent {
                    let why = error.to_string();
                    unseen.borrow_mut().push(Unseen { path: dir.clone(), why });
                }
                Parts { ready: !absent, staged: !absent, payload: !absent }
            }
        };
        let describe = |path: RepoPath, id| {
            describe(store, &path, id).map_err(|why| match why {
                BadDescriptor::Refused(why) => {
                    unseen.borrow_mut().push(Unseen { path, why: why.clone() });
                    why
                }
                BadDescriptor::Wrong(why) => why,
            })
        };
        for name in &self.snapshot_names {
            let Some(name) = name.to_str() else { continue };
            if let Some(id) = layout::id_of_snapshot(name) {
                let dir = layout::snapshot(id);
                let Parts { ready, staged, payload } = parts(&dir);
                let descriptor = describe(layout::descriptor(&dir), id);
                let snap = Snap { ready, staged, payload, descriptor };
                // Collected while it was looked at.
                if snap.descriptor.is_err() && !there(dir) {
                    continue;
                }
                self.snapshots.insert(id, snap);
            }
        }
        self.unseen.extend(unseen.into_inner());
    }

    /// What is collected meanwhile left its tombstone before it went.
    pub(super) fn read_snapshots_before_tombstones(&mut self, report: &mut FindingCollector) {
        sabotage!(Rule::BrokenIsLookedAtAgain => {
            self.read_tombstones(report);
            self.read_snapshots();
        });
        self.read_snapshots();
        self.read_tombstones(report);
    }

    fn read_tombstones(&mut self, report: &mut FindingCollector) {
        match Tombstones::read(self.store()) {
            Ok(tombstones) => self.tombstones = tombstones,
            Err(error) if is_absent(&error) || is_symlink(&error) => {}
            Err(error) => self.refused(&layout::snapshots(), &error, report),
        }
        for unread in self.tombstones.unread() {
            let RecordError { path, reason } = &unread.error;
            if let UnusableReason::Io(why) = reason
                && !is_symlink(why)
            {
                self.unseen.push(Unseen { path: path.clone(), why: why.to_string() });
            }
        }
    }
}

/// Why a descriptor cannot be used.
enum BadDescriptor {
    /// It is not what was written.
    Wrong(String),
    /// The filesystem did not show it.
    Refused(String),
}

fn describe(
    store: &dyn Store,
    path: &RepoPath,
    id: SnapshotId,
) -> Result<(Descriptor, Digest), BadDescriptor> {
    let bytes = store.read(path, descriptor::LIMITS.size).map_err(|error| match error.kind() {
        _ if is_absent(&error) => BadDescriptor::Wrong("it is missing".to_owned()),
        io::ErrorKind::InvalidData => BadDescriptor::Wrong(error.to_string()),
        _ if is_symlink(&error) => BadDescriptor::Wrong(error.to_string()),
        _ => BadDescriptor::Refused(error.to_string()),
    })?;
    let read = Descriptor::parse(&bytes).map_err(BadDescriptor::Wrong)?;
    if read.0.snapshot_id != id {
        return Err(BadDescriptor::Wrong(format!("it describes {}", read.0.snapshot_id)));
    }
    Ok(read)
}
