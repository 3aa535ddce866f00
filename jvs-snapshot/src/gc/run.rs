//! Carries a plan out. May be killed anywhere and run again.

use std::io;

use jvs_lock::Locks;
use jvs_repo::audit::{EventKind, EventPhase, room};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::record::audit::Collected;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

use crate::aside::{delete_dir, finish, move_dir};
use crate::descriptor::{self, Descriptor};
use crate::error::SnapshotError;
use crate::gc::compact::compact_many;
use crate::gc::needs::{StagingContents, needs};
use crate::gc::{Dead, GcPlan, Registers};
use crate::mutation::Rule;
use crate::publish::Snapshots;
use crate::restore::leftover;
use crate::staging_name::StagingName;

/// How many ids one event of the audit log names.
const IDS_AN_EVENT: usize = 100;

/// What a collection came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Freed {
    /// Visible snapshots that were removed.
    pub snapshots: Vec<SnapshotId>,
    /// Bytes of their files.
    pub bytes: u64,
    /// Snapshots and restores that were never finished.
    pub dead: u64,
    /// What interrupted restores left and no snapshot has: where it is now.
    pub set_aside: Vec<RepoPath>,
    /// Leftovers of earlier collections.
    pub unfinished: u64,
    /// Snapshots that somebody came to need meanwhile, and that were put back.
    pub put_back: Vec<SnapshotId>,
    /// Leftovers that could not be removed, and why: they stop nothing else.
    pub left: Vec<(RepoPath, String)>,
    /// The volume was so full that the audit log was told only afterwards.
    pub told_late: bool,
}

/// Removes what `plan` says, unless somebody came to need it since. `each` is
/// told how many of how many steps are done.
pub fn run(
    at: &Snapshots<'_>,
    locks: &Locks<'_>,
    plan: &GcPlan,
    each: &mut dyn FnMut(usize, usize),
) -> Result<Freed, SnapshotError> {
    let mut freed = Freed::default();
    let total = plan.unfinished.len() + plan.dead.len() + plan.set_aside.len() + plan.collect.len();
    let mut done = 0;
    let mut step = || {
        done += 1;
        each(done, total);
    };
    for name in &plan.unfinished {
        match name {
            StagingName::Condemned { id, op } => {
                if passed_over(settle(at, *id, *op, &mut freed), name.path(), &mut freed)?.is_some()
                {
                    freed.unfinished += 1;
                }
            }
            other => match finish(at.trees, &other.path()) {
                Ok(()) => freed.unfinished += 1,
                Err(error) => freed.left.push((other.path(), error.to_string())),
            },
        }
        step();
    }
    let mut swaps: Vec<&StagingName> = plan.set_aside.iter().collect();
    for (dead, _) in &plan.dead {
        let dir = match dead {
            Dead::Draft(name) | Dead::Restore(name) => name.path(),
            Dead::Hidden(id) => layout::snapshot(*id),
            Dead::Removed(files) => files.clone(),
            Dead::Swap(name) => {
                swaps.push(name);
                continue;
            }
        };
        match delete_dir(at, &dir) {
            Ok(()) => freed.dead += 1,
            Err(error) => freed.left.push((dir, error.to_string())),
        }
        step();
    }
    for name in swaps {
        // Looked at again, where nobody can swap it any more.
        let settled = leftover::settle(at, locks, name);
        match passed_over(settled, name.path(), &mut freed)? {
            Some(Some(files)) => freed.set_aside.push(files),
            Some(None) => freed.dead += 1,
            None => {}
        }
        step();
    }
    for batch in plan.collect.chunks(IDS_AN_EVENT) {
        let op = OpNonce::random(at.seams.entropy);
        let snapshots = batch.iter().map(|unneeded| unneeded.snapshot_id).collect();
        let collected = Collected { snapshots };
        let note = |phase| {
            locks.note(EventKind::Gc, phase, op, None, None, Some(collected.clone().into()))
        };
        match note(EventPhase::Intent) {
            // It is said afterwards.
            Err(error) if needs_no_room(&error) => freed.told_late = true,
            answer => answer.map_err(SnapshotError::io("write the audit log"))?,
        }
        for unneeded in batch {
            let before = freed.snapshots.len();
            let id = unneeded.snapshot_id;
            // What stays is there, and counts before its tombstone.
            passed_over(collect(at, id, &mut freed), layout::snapshot(id), &mut freed)?;
            if freed.snapshots.len() > before {
                freed.bytes = freed.bytes.saturating_add(unneeded.bytes);
            }
            step();
        }
        match note(EventPhase::Done) {
            Err(error) if needs_no_room(&error) => freed.told_late = true,
            answer => answer.map_err(SnapshotError::io("write the audit log"))?,
        }
    }
    match compact_many(at) {
        // Best effort: the next collection does it.
        Err(SnapshotError::Io { source, .. }) if room::is_full(&source) => {}
        answer => freed.left.extend(answer?),
    }
    Ok(freed)
}

/// What came of one of many, none if that is not ours to remove: it is named, and stops
/// nothing else.
fn passed_over<T>(
    answer: Result<T, SnapshotError>,
    path: RepoPath,
    freed: &mut Freed,
) -> Result<Option<T>, SnapshotError> {
    let is_another_s = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ResourceBusy)
    };
    match answer {
        Err(SnapshotError::Io { source, .. }) if is_another_s(&source) => {
            freed.left.push((path, source.to_string()));
            Ok(None)
        }
        answer => answer.map(Some),
    }
}

/// Is it only room that was missing? A process that makes room must not need any.
fn needs_no_room(error: &io::Error) -> bool {
    sabotage!(Rule::CollectsWhenFull => false);
    room::is_full(error)
}

/// Collects one visible snapshot. Its descendants must never find nothing: the tombstone
/// is there first.
pub(super) fn collect(
    at: &Snapshots<'_>,
    id: SnapshotId,
    freed: &mut Freed,
) -> Result<(), SnapshotError> {
    sabotage!(Rule::TombstoneFirst => super::sabotage::collect_then_tell(at, id, freed));
    let op = OpNonce::random(at.seams.entropy);
    match leave_tombstone(at, &layout::snapshot(id), id, op)? {
        true => take_away(at, id, op, freed),
        false => Ok(()),
    }
}

/// Takes a snapshot out of sight whole, before anything of it goes.
fn take_away(
    at: &Snapshots<'_>,
    id: SnapshotId,
    op: OpNonce,
    freed: &mut Freed,
) -> Result<(), SnapshotError> {
    sabotage!(Rule::OutOfSightFirst => super::sabotage::remove_where_it_is(at, id));
    match set_aside(at, id, op)? {
        true => settle(at, id, op, freed),
        false => Ok(()),
    }
}

/// False if another collection was faster.
pub(super) fn set_aside(
    at: &Snapshots<'_>,
    id: SnapshotId,
    op: OpNonce,
) -> Result<bool, SnapshotError> {
    let condemned = StagingName::Condemned { id, op }.path();
    match move_dir(at.seams, &layout::snapshot(id), &condemned) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(SnapshotError::Io { doing: format!("set {id} aside"), source }),
    }
}

/// False if the snapshot is gone already.
pub(super) fn leave_tombstone(
    at: &Snapshots<'_>,
    dir: &RepoPath,
    id: SnapshotId,
    op: OpNonce,
) -> Result<bool, SnapshotError> {
    let path = layout::descriptor(dir);
    let bytes = match at.seams.store.read(&path, descriptor::LIMITS.size) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(SnapshotError::Io { doing: format!("read {path}"), source }),
    };
    // Read again, because it is the last chance: what does not parse stays.
    Descriptor::parse(&bytes).map_err(|reason| SnapshotError::Corrupt { path, reason })?;
    let (tmp, to) = (layout::tombstone_tmp(id, op), layout::tombstone(id));
    let mut written = at.seams.store.write_new(&tmp, &to, &bytes);
    if written.as_ref().is_err_and(needs_no_room) {
        // No room for another file: the descriptor itself, which never changes, gets
        // the tombstone's name, too.
        let linked = at.seams.store.link_new(&layout::descriptor(dir), &to);
        written = linked.or_else(|error| match at.seams.store.is_there(&to) {
            Ok(true) => Ok(()),
            _ if room::is_full(&error) => Err(error),
            _ => written,
        });
        if written.is_ok() {
            written = at.seams.store.sync_dir(&to.parent());
        }
    }
    match written {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(SnapshotError::Io { doing: format!("write {to}"), source: error })
        }
        _ => Ok(true),
    }
}

/// Who needs it now? If that cannot be told it is needed.
fn is_needed(at: &Snapshots<'_>, id: SnapshotId) -> Result<bool, SnapshotError> {
    sabotage!(Rule::NeedsReadAgain => Ok(false));
    let registers = Registers::read(at.seams)?;
    let staging = StagingContents::list(at)?;
    Ok(needs(at, &registers, &staging)?.contains_key(&id))
}

fn put_back(
    at: &Snapshots<'_>,
    id: SnapshotId,
    condemned: &RepoPath,
    freed: &mut Freed,
) -> Result<(), SnapshotError> {
    match move_dir(at.seams, condemned, &layout::snapshot(id)) {
        Ok(()) => {
            freed.put_back.push(id);
            // Best effort: a snapshot that is there counts before its tombstone.
            let _ = at.seams.store.remove(&layout::tombstone(id));
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(SnapshotError::Io { doing: format!("put {id} back"), source }),
    }
}

/// Decides about a snapshot that is out of sight and whole. A process that needed it
/// from now on did not find it any more; a process that needs it already shows in what
/// is read here.
pub(super) fn settle(
    at: &Snapshots<'_>,
    id: SnapshotId,
    op: OpNonce,
    freed: &mut Freed,
) -> Result<(), SnapshotError> {
    let condemned = StagingName::Condemned { id, op }.path();
    let needed = is_needed(at, id);
    if !matches!(needed, Ok(false)) {
        put_back(at, id, &condemned, freed)?;
        return needed.map(drop);
    }
    let doomed = StagingName::Doomed { op: OpNonce::random(at.seams.entropy) }.path();
    match move_dir(at.seams, &condemned, &doomed) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(SnapshotError::Io {
                doing: format!("set {id} aside for deletion"),
                source,
            });
        }
    }
    freed.snapshots.push(id);
    // Collected anyway: a user who may removes the rest with the next collection.
    if let Err(error) = finish(at.trees, &doomed) {
        freed.left.push((doomed, error.to_string()));
    }
    Ok(())
}
