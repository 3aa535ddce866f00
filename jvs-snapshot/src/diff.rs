//! What differs between a snapshot and another one, or the working files.

use std::path::Path;

use jvs_repo::store::Store;

use crate::chosen::Chosen;
use crate::compare::{self, Difference, Trust};
use crate::error::SnapshotError;
use crate::progress::Progress;
use crate::ready::Ready;
use crate::stored::{compared, proven_manifest};

/// What differs between two snapshots, in the order of paths.
pub fn between(
    store: &dyn Store,
    before: &Ready,
    after: &Ready,
) -> Result<Vec<Difference>, SnapshotError> {
    // Equal trees have equal hashes.
    if before.descriptor().payload_root_hash == after.descriptor().payload_root_hash {
        return Ok(Vec::new());
    }
    let mut differences = Vec::new();
    let (a, b) = (proven_manifest(store, before)?, proven_manifest(store, after)?);
    compare::with_manifest(a, b, |difference| differences.push(difference))
        .map_err(|error| compared(before)(compare::CompareError::Manifest(error)))?;
    Ok(differences)
}

/// What changed in the files below `worktree` since `before` was taken. Files
/// that the kernel has not noted a change of are not read.
pub fn since(
    store: &dyn Store,
    before: &Ready,
    worktree: &Path,
    progress: &dyn Progress,
) -> Result<Vec<Difference>, SnapshotError> {
    let manifest = proven_manifest(store, before)?;
    compare::with_files(manifest, worktree, Trust::Hints, progress).map_err(compared(before))
}

/// As [`since`], but only of what is chosen.
pub fn since_of(
    store: &dyn Store,
    before: &Ready,
    worktree: &Path,
    chosen: &Chosen,
    progress: &dyn Progress,
) -> Result<Vec<Difference>, SnapshotError> {
    let manifest = proven_manifest(store, before)?;
    compare::with_chosen_files(manifest, worktree, chosen, Trust::Hints, progress)
        .map_err(compared(before))
}
