//! Which snapshots there are. Visible means READY, and nothing else does.

use std::ffi::OsString;
use std::io;

use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::record::ledger::Tombstone;
use jvs_repo::store::{RepoPath, Store};

use crate::descriptor::{self, Descriptor};
use crate::error::SnapshotError;
use crate::hash::Digest;
use crate::ready::Ready;
use crate::tombstones::{Tombstones, read_loose, unusable};

/// The snapshots of a repository, to look at.
#[derive(Clone, Copy)]
pub struct Catalog<'r> {
    store: &'r dyn Store,
}

/// What there is of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It is visible.
    Ready(Box<Ready>),
    /// It is there and not visible: being published, or never was.
    Hidden,
    /// It was visible and was collected; this described it.
    Collected(Box<Tombstone>),
    /// There is no such directory.
    Absent,
}

/// What is in the directory of snapshots.
#[derive(Debug, Default)]
pub struct SnapshotListing {
    /// Directories with the name of a snapshot, visible or not, oldest first.
    pub snapshots: Vec<SnapshotId>,
    /// Tombstones that are being written, or whose writer died.
    pub unfinished: Vec<OsString>,
    /// What JVS did not put there.
    pub foreign: Vec<OsString>,
}

impl<'r> Catalog<'r> {
    /// The snapshots in `store`. Touches nothing.
    pub fn new(store: &'r dyn Store) -> Self {
        Catalog { store }
    }

    /// Is it visible?
    pub fn is_ready(&self, id: SnapshotId) -> io::Result<bool> {
        self.is_there(&layout::ready(&layout::snapshot(id)))
    }

    /// Is it visible? For the process that would take it for uncommitted if it were not: a
    /// mount may remember that READY was not there, so its denial is not believed.
    pub fn is_shown(&self, id: SnapshotId) -> io::Result<bool> {
        self.store.is_there(&layout::ready(&layout::snapshot(id)))
    }

    /// Was it visible once, whether or not it was collected since?
    pub fn was_ready(&self, id: SnapshotId) -> io::Result<bool> {
        if self.is_ready(id)? || self.is_there(&layout::tombstone(id))? {
            return Ok(true);
        }
        let tombstones = Tombstones::read(self.store)?;
        match tombstones.has(id) {
            true => Ok(true),
            false => tombstones.doubt(id).map_or(Ok(false), |why| Err(io::Error::other(why))),
        }
    }

    /// What is left of all that was collected.
    pub fn tombstones(&self) -> Result<Tombstones, SnapshotError> {
        Tombstones::read(self.store).map_err(SnapshotError::io("read what was collected"))
    }

    fn is_there(&self, path: &RepoPath) -> io::Result<bool> {
        match self.store.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A visible snapshot.
    pub fn open(&self, id: SnapshotId) -> Result<Ready, SnapshotError> {
        match self.look(id)? {
            Presence::Ready(ready) => Ok(*ready),
            Presence::Hidden => Err(SnapshotError::Hidden { id }),
            Presence::Collected(_) => Err(SnapshotError::Collected { id }),
            Presence::Absent => Err(SnapshotError::NotFound { wanted: format!("snapshot {id}") }),
        }
    }

    /// What there is of a snapshot.
    pub fn look(&self, id: SnapshotId) -> Result<Presence, SnapshotError> {
        self.look_with(id, &mut None)
    }

    /// As [`Catalog::look`], for the process that looks at many: reads all tombstones once,
    /// and only if one is needed.
    pub(crate) fn look_with(
        &self,
        id: SnapshotId,
        tombstones: &mut Option<Tombstones>,
    ) -> Result<Presence, SnapshotError> {
        let dir = layout::snapshot(id);
        let stuck = |source| SnapshotError::Io { doing: format!("look at snapshot {id}"), source };
        let ready = self.is_ready(id).map_err(stuck)?;
        if ready && let Some((descriptor, checksum)) = self.describe(id)? {
            return Ok(Presence::Ready(Box::new(Ready::seen(descriptor, checksum))));
        }
        // Nothing visible becomes invisible but by collection, whose tombstone
        // is there first. READY without a descriptor may be one of these: it was
        // collected between two looks, or this mount remembers a name that
        // another host has removed.
        if let Some(tombstone) = read_loose(self.store, id).map_err(unusable)? {
            return Ok(Presence::Collected(Box::new(tombstone)));
        }
        let all = self.tombstones()?;
        if let Some(tombstone) = all.of(id).cloned() {
            *tombstones = Some(all);
            return Ok(Presence::Collected(Box::new(tombstone)));
        }
        if !ready && self.is_there(&dir).map_err(stuck)? {
            return Ok(Presence::Hidden);
        }
        match all.doubt(id) {
            Some(doubt) => Err(doubt),
            None if ready => Err(corrupt(&layout::descriptor(&dir), "it is missing".into())),
            None => Ok(Presence::Absent),
        }
    }

    /// The descriptor of a snapshot that may not be visible; `None` if it has
    /// none.
    pub fn describe(&self, id: SnapshotId) -> Result<Option<(Descriptor, Digest)>, SnapshotError> {
        self.read(&layout::descriptor(&layout::snapshot(id)), id)
    }

    fn read(
        &self,
        path: &RepoPath,
        id: SnapshotId,
    ) -> Result<Option<(Descriptor, Digest)>, SnapshotError> {
        let bytes = match self.store.read(path, descriptor::LIMITS.size) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(corrupt(path, error.to_string()));
            }
            Err(source) => {
                return Err(SnapshotError::Io { doing: format!("read {path}"), source });
            }
        };
        let read = Descriptor::parse(&bytes).map_err(|reason| corrupt(path, reason))?;
        if read.0.snapshot_id != id {
            let reason = format!("it describes {}", read.0.snapshot_id);
            return Err(corrupt(path, reason));
        }
        Ok(Some(read))
    }

    /// All names in the directory of snapshots. Opens none of them.
    pub fn list(&self) -> Result<SnapshotListing, SnapshotError> {
        let entries = self
            .store
            .list(&layout::snapshots())
            .map_err(SnapshotError::io("list the snapshots"))?;
        let mut listing = SnapshotListing::default();
        for entry in entries {
            let name = entry.name.to_str().unwrap_or_default();
            if let Some(id) = layout::id_of_snapshot(name) {
                listing.snapshots.push(id);
            } else if layout::id_of_tombstone(name).is_some()
                || layout::op_of_ledger(name).is_some()
            {
            } else if layout::is_tombstone_tmp(name) || layout::op_of_ledger_tmp(name).is_some() {
                listing.unfinished.push(entry.name);
            } else {
                listing.foreign.push(entry.name);
            }
        }
        listing.snapshots.sort_unstable();
        listing.foreign.sort();
        Ok(listing)
    }
}

fn corrupt(path: &RepoPath, reason: String) -> SnapshotError {
    SnapshotError::Corrupt { path: path.clone(), reason }
}
