//! What differs between a snapshot and another one, or the working files.

use std::path::Path;

use jvs_repo::clock::BootId;
use jvs_repo::proc;
use jvs_repo::store::{PosixStore, Store};

use crate::compare::{self, Compared, ComparedFiles, Difference, SeenFiles, Trust};
use crate::error::SnapshotError;
use crate::ground::Ground;
use crate::manifest::Entry;
use crate::nobody_else::{Ours, bystanders};
use crate::progress::Progress;
use crate::ready::Ready;
use crate::stored::{compared, proven_manifest};
use crate::tree;
use crate::walk::Tree;
use crate::{workers, written_out};

/// What differs between two snapshots, in the order of paths.
pub fn between(
    store: &dyn Store,
    before: &Ready,
    after: &Ready,
) -> Result<Vec<Difference>, SnapshotError> {
    // Equal trees have equal hashes.
    if before.descriptor().content.payload_root_hash == after.descriptor().content.payload_root_hash
    {
        return Ok(Vec::new());
    }
    let mut differences = Vec::new();
    let (a, b) = (proven_manifest(store, before)?, proven_manifest(store, after)?);
    compare::with_manifest(a, b, |difference| differences.push(difference))
        .map_err(|error| compared(store, before)(compare::CompareError::Manifest(error)))?;
    let (one, other) = (&before.descriptor().content, &after.descriptor().content);
    Ok(compare::comparable(differences, &one.id_map, &other.id_map))
}

/// All that a snapshot has, as if there had been nothing before it.
pub fn since_nothing(store: &dyn Store, after: &Ready) -> Result<Vec<Difference>, SnapshotError> {
    let mut differences = Vec::new();
    let mut manifest = proven_manifest(store, after)?;
    let mut next = || {
        manifest
            .read()
            .map_err(|error| compared(store, after)(compare::CompareError::Manifest(error)))
    };
    while let Some((entry, _)) = next()? {
        if !entry.path.is_root() {
            differences.push(Difference::added(&entry));
        }
    }
    Ok(differences)
}

/// What changed in `files` since `before` was taken, as far as `trust` lets it be seen. A
/// process that removes or overwrites files because of it trusts nothing.
pub fn since<'f>(
    store: &PosixStore,
    before: &Ready,
    files: impl Into<ComparedFiles<'f>>,
    trust: Trust,
    progress: &dyn Progress,
) -> Result<Vec<Difference>, SnapshotError> {
    Ok(compared_with(store, before, files, trust, progress)?.differences)
}

/// As [`since`], and what is ignored.
pub fn compared_with<'f>(
    store: &PosixStore,
    before: &Ready,
    files: impl Into<ComparedFiles<'f>>,
    trust: Trust,
    progress: &dyn Progress,
) -> Result<Compared, SnapshotError> {
    let files = files.into();
    let seen = look(store, before, &files, trust, progress)?;
    since_telling(store, before, &files, &seen, trust, progress, &mut |_| {})
}

/// Looks at `files`, to compare them with `before` and others.
pub(crate) fn look(
    store: &PosixStore,
    before: &Ready,
    files: &ComparedFiles<'_>,
    trust: Trust,
    progress: &dyn Progress,
) -> Result<SeenFiles, SnapshotError> {
    bring_to_light(store, files, trust, progress);
    SeenFiles::look(files).map_err(compared(store, before))
}

/// As [`since`], of all files that were looked at before, as they were then.
pub fn since_of_seen(
    store: &PosixStore,
    before: &Ready,
    files: ComparedFiles<'_>,
    seen: &SeenFiles,
    trust: Trust,
    progress: &dyn Progress,
) -> Result<Vec<Difference>, SnapshotError> {
    Ok(since_telling(store, before, &files, seen, trust, progress, &mut |_| {})?.differences)
}

/// As [`compared_with`]; tells `each` every entry of the manifest, in order. None of them may
/// be acted on if this fails.
pub(crate) fn since_telling(
    store: &PosixStore,
    before: &Ready,
    files: &ComparedFiles<'_>,
    seen: &SeenFiles,
    trust: Trust,
    progress: &dyn Progress,
    each: &mut dyn FnMut(&Entry),
) -> Result<Compared, SnapshotError> {
    let manifest = proven_manifest(store, before)?;
    let mut found = compare::with_seen_files(manifest, files, seen, trust, progress, each)
        .map_err(compared(store, before))?;
    let (taken, here) = (&before.descriptor().content.id_map, proc::id_map());
    found.differences = compare::comparable(found.differences, taken, &here);
    Ok(found)
}

/// Where a write changes no time before it reaches its server, it is made to, so that
/// the process that asks right after it is not told that nothing changed. What cannot be is
/// left: this is for those who only want to know. Done before the manifest is opened:
/// whatever is open makes a mount be asked about each file.
fn bring_to_light(
    store: &PosixStore,
    files: &ComparedFiles<'_>,
    trust: Trust,
    progress: &dyn Progress,
) {
    let Ok(root) = tree::open_root(files.root) else { return };
    let ground = Ground::of(&root);
    if trust == Trust::Nothing || !matches!(ground, Ground::JuiceFs(_) | Ground::Remote) {
        return;
    }
    let threads = workers::processors();
    let files = || Tree::read_some(threads, &root, files.scope());
    let bystanders = bystanders(store);
    let ours = Ours::new(&root, &[], &bystanders);
    let _ = written_out::bring_in(&root, &ours, &ground, files, threads, progress);
}

/// What may be trusted of the files below `worktree` in the boot `now`, for those
/// who only want to know: the change times that `before` remembers, or nothing.
pub fn trust(before: &Ready, worktree: &Path, now: &BootId) -> Trust {
    let believed = tree::open_root(worktree).is_ok_and(|root| {
        Ground::of(&root).believes(before.descriptor().content.boot_id.as_ref(), now)
    });
    if believed { Trust::Hints } else { Trust::Nothing }
}
