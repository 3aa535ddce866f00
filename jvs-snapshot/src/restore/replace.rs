//! From a finished copy to files in their place, and what becomes of the old
//! ones: in this order, so that a death anywhere leaves a directory whose name
//! says what may be in it.

use jvs_lock::{Lease, Locks};
use jvs_repo::audit::EventPhase;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::quarantine;
use jvs_repo::record::audit::Restored;
use jvs_repo::store::RepoPath;

use super::leftover::{Worth, discard};
use super::log::RestoreLog;
use super::swap::{Stopped, Swap, Swapped};
use super::{Copied, Half, InPlace, Left, RestoreError, RestoreRequest};
use crate::aside::{delete_dir, move_dir};
use crate::chosen::ChosenPaths;
use crate::error::SnapshotError;
use crate::manifest::TreePath;
use crate::publish::Snapshots;
use crate::ready::Ready;
use crate::trees::Spots;

/// How many paths one event of the audit log names.
const PATHS_AN_EVENT: usize = 50;

/// Puts `copied`, files of `wish.source`, in the place of those of the worktree
/// of `lease`.
pub fn replace(
    at: &Snapshots<'_>,
    spots: &dyn Spots,
    locks: &Locks<'_>,
    lease: &mut Lease<'_>,
    copied: Copied,
    wish: &RestoreRequest<'_>,
) -> Result<InPlace, RestoreError> {
    let RestoreRequest { source, kept, chosen, reason } = *wish;
    let worktree = lease.worktree().clone();
    let op = OpNonce::random(at.seams.entropy);
    let told = Restored {
        snapshot_id: source.id(),
        kept: kept.map(Ready::id),
        paths: chosen.map_or_else(Vec::new, |chosen| some(chosen.paths())),
        half: None,
        left: None,
    };
    let log = RestoreLog { locks, op, worktree: &worktree, reason };
    let offered = log.announce(told.clone()).and_then(|()| offer(at, &copied, kept));
    let dir = match offered {
        Ok(dir) => dir,
        Err(error) => {
            let _ = log.note(EventPhase::NotApplied, told);
            let _ = delete_dir(at, &copied.dir());
            return Err(error.into());
        }
    };
    let tree = layout::snapshot_payload(&dir);
    let swap = Swap { seams: at.seams, spots, tree: &tree };
    let swapped = match swap.run(lease, chosen) {
        Ok(swapped) => swapped,
        Err(stopped) if stopped.certain && stopped.swapped.is_empty() => {
            let _ = log.note(EventPhase::NotApplied, told);
            let _ = delete_dir(at, &dir);
            return Err(stopped.error);
        }
        Err(stopped) => {
            let phase = if stopped.certain { EventPhase::Done } else { EventPhase::Unknown };
            let half = half(at, op, &dir, *stopped);
            // What was done although it was not to be is told like what was.
            let _ = log.note(phase, Restored { half: Some(half.told()), ..told });
            return Err(RestoreError::Half(Box::new(half)));
        }
    };
    let _ = log.note(EventPhase::Done, told.clone());
    let left = left(at, op, &dir, &swapped, wish);
    if let Some(left) = &left {
        let _ = log.note(EventPhase::Done, Restored { left: Some(left.path.to_string()), ..told });
    }
    Ok(InPlace { degraded: copied.degraded, left, unplaced: Vec::new() })
}

/// From now on the directory may hold the worktree's own files, and says so.
fn offer(
    at: &Snapshots<'_>,
    copied: &Copied,
    kept: Option<&Ready>,
) -> Result<RepoPath, SnapshotError> {
    let dir = copied.offered(kept.map(Ready::id));
    move_dir(at.seams, &copied.dir(), &dir)
        .map_err(SnapshotError::io("make the restored files ready"))?;
    Ok(dir)
}

/// Some were swapped, or none is certain not to be: nothing is deleted.
fn half(at: &Snapshots<'_>, op: OpNonce, dir: &RepoPath, stopped: Stopped) -> Half {
    let Stopped { swapped: Swapped { mut exchanged, placed }, steps, certain, error } = stopped;
    exchanged.extend(placed);
    // A swap that may yet land finds its tree where it was.
    let aside = match certain {
        true => quarantine::set_aside(at.seams.store, op, dir).ok(),
        false => None,
    };
    let old = layout::snapshot_payload(aside.as_ref().unwrap_or(dir));
    Half { swapped: exchanged, steps, certain, old, cause: error }
}

/// The old files are deleted if a snapshot has all of them, and set aside if not.
fn left(
    at: &Snapshots<'_>,
    op: OpNonce,
    dir: &RepoPath,
    swapped: &Swapped,
    wish: &RestoreRequest<'_>,
) -> Option<Left> {
    let tree = layout::snapshot_payload(dir);
    let replaced = ChosenPaths::new(swapped.exchanged.iter().cloned());
    let known: Vec<SnapshotId> =
        wish.kept.map(Ready::id).into_iter().chain([wish.source.id()]).collect();
    let worth = match (wish.chosen, &replaced) {
        // Nobody's file was ever in it.
        (Some(_), None) => {
            let _ = delete_dir(at, dir);
            return None;
        }
        _ => discard(at, dir, &[tree], replaced.as_ref(), &known),
    };
    judged(at, op, dir, worth)
}

/// What a discarding left is set aside.
pub(super) fn judged(
    at: &Snapshots<'_>,
    op: OpNonce,
    dir: &RepoPath,
    worth: std::io::Result<Worth>,
) -> Option<Left> {
    let why = match worth {
        // What cannot be removed now is compared again by the process that collects garbage.
        Ok(Worth::Nothing) | Err(_) => return None,
        Ok(Worth::Something(paths)) => Ok(paths),
        Ok(Worth::Unproven(why)) => Err(why),
    };
    let aside = quarantine::set_aside(at.seams.store, op, dir).ok();
    let dir = aside.as_ref().unwrap_or(dir);
    let tree = layout::snapshot_payload(dir);
    let path = if at.seams.store.stat(&tree).is_ok() { tree } else { dir.clone() };
    Some(Left { path, why })
}

pub(super) fn some<'p>(paths: impl Iterator<Item = &'p TreePath>) -> Vec<String> {
    paths.take(PATHS_AN_EVENT).map(ToString::to_string).collect()
}
