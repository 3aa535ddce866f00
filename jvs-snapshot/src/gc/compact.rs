//! Puts the tombstones of many snapshots into few files.
//!
//! Two collections may do it at once, and each may die anywhere: a ledger has a name that
//! never comes back and is never edited, and a file goes only once a ledger that has all
//! that is in it is durable. That ledger may itself have gone by then, but not before
//! another one was durable that has all of it. Entries that are in two files do no harm.

use std::collections::BTreeMap;
use std::io;

use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::record::ledger::{self, ENTRIES_MAX, Tombstone};
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

use crate::error::SnapshotError;
use crate::gc::needs::StagingContents;
use crate::mutation::Rule;
use crate::publish::Snapshots;
use crate::staging_name::StagingName;
use crate::tombstones::{TombstoneNames, read_ledger, read_loose};

/// So few files of their own are not worth a ledger yet.
const LOOSE_MAX: usize = 16;

/// Puts loose tombstones into ledgers if there are enough of them to be worth it. Answers
/// the files that could not be removed, and why.
pub(super) fn compact_many(at: &Snapshots<'_>) -> Result<Vec<(RepoPath, String)>, SnapshotError> {
    let names = names(at)?;
    if names.loose.len() <= LOOSE_MAX {
        return Ok(Vec::new());
    }
    compact(at)
}

/// Puts all loose tombstones into ledgers, and small ledgers together. What cannot be
/// read stays where it is. Answers the files that could not be removed, and why.
pub fn compact(at: &Snapshots<'_>) -> Result<Vec<(RepoPath, String)>, SnapshotError> {
    let store = at.seams.store;
    let mut merged = Merged::default();
    let names = names(at)?;
    for op in &names.ledgers {
        let entries = read_ledger(store, *op).ok().flatten();
        if let Some(entries) = entries.filter(|entries| entries.len() < ENTRIES_MAX) {
            merged.take(layout::ledger(*op), entries);
        }
    }
    let ledgers = merged.files.len();
    for id in &names.loose {
        if let Ok(Some(tombstone)) = read_loose(store, *id) {
            merged.loose.push(tombstone);
        }
    }
    only_gone(at, &names, &mut merged.loose)?;
    for tombstone in std::mem::take(&mut merged.loose) {
        merged.take(layout::tombstone(tombstone.snapshot_id), vec![tombstone]);
    }
    if merged.files.len() == ledgers && ledgers < 2 {
        return Ok(Vec::new());
    }
    replace(at, merged)
}

fn names(at: &Snapshots<'_>) -> Result<TombstoneNames, SnapshotError> {
    let listed = at.seams.store.list(&layout::snapshots());
    Ok(TombstoneNames::of(&listed.map_err(SnapshotError::io("list the snapshots"))?))
}

/// Leaves out what is there, or may be put back: its tombstone goes with that. `before`
/// was listed before; in which of the three places a snapshot was, it was in that one.
fn only_gone(
    at: &Snapshots<'_>,
    before: &TombstoneNames,
    loose: &mut Vec<Tombstone>,
) -> Result<(), SnapshotError> {
    sabotage!(Rule::OnlyGoneIntoLedgers => Ok(()));
    let condemned = StagingContents::list(at)?.names;
    let after = names(at)?;
    let is_there = |names: &TombstoneNames, id| names.there.binary_search(&id).is_ok();
    loose.retain(|tombstone| {
        let id = tombstone.snapshot_id;
        let is_of =
            |name: &StagingName| matches!(name, StagingName::Condemned { id: of, .. } if *of == id);
        !is_there(before, id) && !condemned.iter().any(is_of) && !is_there(&after, id)
    });
    Ok(())
}

/// What goes into ledgers, and the files that it is in now.
#[derive(Default)]
struct Merged {
    entries: BTreeMap<SnapshotId, Tombstone>,
    files: Vec<RepoPath>,
    loose: Vec<Tombstone>,
}

impl Merged {
    /// A file that contradicts another one stays, for somebody to look at.
    fn take(&mut self, file: RepoPath, entries: Vec<Tombstone>) {
        let contradicts = |entry: &Tombstone| {
            self.entries.get(&entry.snapshot_id).is_some_and(|known| known != entry)
        };
        if entries.iter().any(contradicts) {
            return;
        }
        self.entries.extend(entries.into_iter().map(|entry| (entry.snapshot_id, entry)));
        self.files.push(file);
    }
}

/// Writes the ledgers, and only then removes what they replace.
fn replace(at: &Snapshots<'_>, merged: Merged) -> Result<Vec<(RepoPath, String)>, SnapshotError> {
    sabotage!(Rule::LedgerFirst => {
        let left = remove(at, &merged.files);
        write(at, merged.entries)?;
        Ok(left)
    });
    write(at, merged.entries)?;
    Ok(remove(at, &merged.files))
}

fn write(
    at: &Snapshots<'_>,
    entries: BTreeMap<SnapshotId, Tombstone>,
) -> Result<(), SnapshotError> {
    let entries: Vec<Tombstone> = entries.into_values().collect();
    for entries in entries.chunks(ENTRIES_MAX) {
        let op = OpNonce::random(at.seams.entropy);
        let (tmp, to) = (layout::ledger_tmp(op), layout::ledger(op));
        let written = at.seams.store.write_new(&tmp, &to, &ledger::to_bytes(entries));
        written.map_err(|source| SnapshotError::Io { doing: format!("write {to}"), source })?;
    }
    Ok(())
}

fn remove(at: &Snapshots<'_>, files: &[RepoPath]) -> Vec<(RepoPath, String)> {
    let mut left = Vec::new();
    for file in files {
        match at.seams.store.remove(file) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => left.push((file.clone(), error.to_string())),
        }
    }
    left
}
