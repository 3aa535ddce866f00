//! What is left of the snapshots that were collected: loose files, one for each, which
//! a collection leaves before anything goes, and ledgers, into which later collections
//! put many of them.
//!
//! A tombstone that was durable once is in some file ever after: what replaces a file is
//! durable before the file goes, under a name that never comes back. But a listing that
//! is read meanwhile may show neither. So one is believed only if a listing after it
//! names the same ledgers, and everything in it was there to be read.

use std::collections::BTreeSet;
use std::io;

use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::json::RecordError;
use jvs_repo::layout;
use jvs_repo::record::ledger::{self, Tombstone};
use jvs_repo::sabotage;
use jvs_repo::store::{DirEntry, RepoPath, Store};

use crate::descriptor::{self, Descriptor};
use crate::error::SnapshotError;
use crate::mutation::Rule;

/// How often the directory is read again because files went away meanwhile. Each of
/// these times somebody else got something done.
const TRIES: usize = 64;

/// All tombstones, as one look found them.
#[derive(Debug, Default)]
pub struct Tombstones {
    /// By id, each once.
    entries: Vec<Tombstone>,
    /// The snapshots that there was a directory of, by id.
    there: Vec<SnapshotId>,
    unread: Vec<UnreadTombstone>,
}

/// A file with tombstones that cannot be read.
#[derive(Debug)]
pub struct UnreadTombstone {
    /// Whose tombstone it is, if it is of one snapshot.
    pub id: Option<SnapshotId>,
    /// Which file, and why.
    pub error: RecordError,
}

/// The names of files with tombstones, and of snapshots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TombstoneNames {
    pub(crate) loose: Vec<SnapshotId>,
    pub(crate) ledgers: BTreeSet<OpNonce>,
    pub(crate) there: Vec<SnapshotId>,
}

impl TombstoneNames {
    /// Of what there is in the directory of snapshots.
    pub(crate) fn of(entries: &[DirEntry]) -> Self {
        let mut names = TombstoneNames::default();
        for name in entries.iter().filter_map(|entry| entry.name.to_str()) {
            if let Some(id) = layout::id_of_snapshot(name) {
                names.there.push(id);
            } else if let Some(id) = layout::id_of_tombstone(name) {
                names.loose.push(id);
            } else if let Some(op) = layout::op_of_ledger(name) {
                names.ledgers.insert(op);
            }
        }
        names.there.sort_unstable();
        names.loose.sort_unstable();
        names
    }
}

impl Tombstones {
    /// Reads all of them. What cannot be read is in the answer.
    pub fn read(store: &dyn Store) -> io::Result<Self> {
        let list = || Ok::<_, io::Error>(TombstoneNames::of(&store.list(&layout::snapshots())?));
        let mut names = list()?;
        for _ in 0..TRIES {
            let read = Tombstones::named(store, &names);
            let after = list()?;
            if let Some(mut read) = read
                && is_settled(&names, &after)
            {
                read.there = after.there;
                return Ok(read);
            }
            names = after;
        }
        let why = "the tombstones of collected snapshots are moved faster than they can be read";
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    }

    /// `None` if one of them is not there any more.
    fn named(store: &dyn Store, names: &TombstoneNames) -> Option<Self> {
        let mut found = Tombstones::default();
        for op in &names.ledgers {
            match read_ledger(store, *op) {
                Ok(Some(entries)) => found.entries.extend(entries),
                Ok(None) => return None,
                Err(error) => found.unread.push(UnreadTombstone { id: None, error }),
            }
        }
        for id in &names.loose {
            match read_loose(store, *id) {
                Ok(Some(tombstone)) => found.entries.push(tombstone),
                Ok(None) => return None,
                Err(error) => found.unread.push(UnreadTombstone { id: Some(*id), error }),
            }
        }
        found.entries.sort_by_key(|entry| entry.snapshot_id);
        found.entries.dedup_by_key(|entry| entry.snapshot_id);
        Some(found)
    }

    /// What is left of `id`, if it was collected.
    pub fn of(&self, id: SnapshotId) -> Option<&Tombstone> {
        self.place(id, 0).map(|place| &self.entries[place])
    }

    /// Its place in [`Tombstones::entries`]. Looks next to `near` first.
    pub fn place(&self, id: SnapshotId, near: usize) -> Option<usize> {
        ledger::place_of(&self.entries, id, near)
    }

    /// All of them, by id.
    pub fn entries(&self) -> &[Tombstone] {
        &self.entries
    }

    /// Was it collected, as far as can be told? What has a file of its own was, whatever
    /// is in the file.
    pub fn has(&self, id: SnapshotId) -> bool {
        self.of(id).is_some() || self.unread.iter().any(|unread| unread.id == Some(id))
    }

    /// Was there a directory of that snapshot?
    pub(crate) fn is_there(&self, id: SnapshotId) -> bool {
        self.there.binary_search(&id).is_ok()
    }

    /// The files that cannot be read.
    pub fn unread(&self) -> &[UnreadTombstone] {
        &self.unread
    }

    /// Why nothing follows from there being no tombstone of `id`.
    pub(crate) fn doubt(self, id: SnapshotId) -> Option<SnapshotError> {
        let may_be_in = |unread: &UnreadTombstone| unread.id.is_none_or(|of| of == id);
        let unread = self.unread.into_iter().find(may_be_in)?;
        Some(unusable(unread.error))
    }
}

/// Did `names` show everything? Whatever was moved meanwhile is in a ledger that the
/// listing after it shows for the first time.
fn is_settled(names: &TombstoneNames, after: &TombstoneNames) -> bool {
    sabotage!(Rule::TombstonesListedTwice => true);
    names.ledgers == after.ledgers
}

/// A file with tombstones that cannot be used, to whoever needs what is in it.
pub(crate) fn unusable(error: RecordError) -> SnapshotError {
    use jvs_repo::json::UnusableReason;
    let RecordError { path, reason } = error;
    match reason {
        UnusableReason::Invalid(reason) => SnapshotError::Corrupt { path, reason },
        UnusableReason::Io(source) => SnapshotError::Io { doing: format!("read {path}"), source },
    }
}

fn read(store: &dyn Store, path: &RepoPath, limit: usize) -> Result<Option<Vec<u8>>, RecordError> {
    match store.read(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError::io(path, error)),
    }
}

/// The entries of a ledger; `None` if it is not there.
pub(crate) fn read_ledger(
    store: &dyn Store,
    op: OpNonce,
) -> Result<Option<Vec<Tombstone>>, RecordError> {
    let path = layout::ledger(op);
    let Some(bytes) = read(store, &path, ledger::SIZE_MAX)? else { return Ok(None) };
    ledger::parse(&bytes).map(Some).map_err(|reason| RecordError::invalid(&path, reason))
}

/// The tombstone of one snapshot in a file of its own; `None` if there is none.
pub(crate) fn read_loose(
    store: &dyn Store,
    id: SnapshotId,
) -> Result<Option<Tombstone>, RecordError> {
    let path = layout::tombstone(id);
    let Some(bytes) = read(store, &path, descriptor::LIMITS.size)? else { return Ok(None) };
    let wrong = |reason| RecordError::invalid(&path, reason);
    let (descriptor, _) = Descriptor::parse(&bytes).map_err(wrong)?;
    match descriptor.snapshot_id == id {
        true => Ok(Some(Tombstone::from(&descriptor))),
        false => Err(wrong(format!("it describes {}", descriptor.snapshot_id))),
    }
}
