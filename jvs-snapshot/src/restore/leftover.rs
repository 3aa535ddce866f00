//! What a swap leaves in `staging/`: worth nothing, or the only copy of
//! somebody's file. A restore in place, garbage collection and doctor all ask
//! here and nowhere else.
//!
//! The name says which snapshots have the same files: the one that was restored,
//! and the one of what was replaced. Whatever is in one of them as it is here may
//! be deleted; all else is set aside, for a person to look at.

use std::io;

use jvs_lock::Locks;
use jvs_repo::audit::{Details, EventKind, EventPhase};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::quarantine;
use jvs_repo::record::audit::{SetAside, SettingAside};
use jvs_repo::store::RepoPath;

use super::journal::RestoreJournal;
use super::patch::trees_in;
use crate::aside::move_dir;
use crate::chosen::ChosenPaths;
use crate::error::SnapshotError;
use crate::manifest::TreePath;
use crate::publish::Snapshots;
use crate::staging_name::StagingName;

/// What a tree is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worth {
    /// Everything in it is in a visible snapshot.
    Nothing,
    /// These paths are nowhere else, as far as can be told.
    Something(Vec<TreePath>),
    /// It could not be compared.
    Unproven(String),
}

/// Where the tree of a directory in `staging/` is.
fn tree_of(dir: &RepoPath) -> RepoPath {
    layout::snapshot_payload(dir)
}

/// The trees in a directory of a swap, and which paths in them were anybody's: all, unless
/// a journal says which were touched.
fn content_of(
    at: &Snapshots<'_>,
    dir: &RepoPath,
) -> Result<(Vec<RepoPath>, Option<ChosenPaths>), SnapshotError> {
    let listed = trees_in(at.seams, dir);
    let mut trees = listed.map_err(SnapshotError::io("list what a restore left"))?;
    trees.retain(|tree| *tree != tree_of(dir));
    match at.seams.store.stat(&layout::journal(dir)) {
        Ok(_) => Ok((trees, RestoreJournal::read(at.seams.store, dir)?.chosen())),
        Err(_) => Ok((trees, None)),
    }
}

/// What is the tree at `tree` worth, if the snapshots `known` still have their
/// files? Only of what is chosen, if something is.
pub(super) fn worth(
    at: &Snapshots<'_>,
    tree: &RepoPath,
    chosen: Option<&ChosenPaths>,
    known: impl IntoIterator<Item = SnapshotId>,
) -> Worth {
    match at.seams.store.stat(tree) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Worth::Nothing,
        Err(error) => return Worth::Unproven(error.to_string()),
    }
    // One that cannot be opened proves nothing.
    let snapshots: Vec<_> = known.into_iter().filter_map(|id| at.catalog().open(id).ok()).collect();
    match at.trees.strays(tree, chosen, &snapshots) {
        Ok(strays) if strays.is_empty() => Worth::Nothing,
        Ok(strays) => Worth::Something(strays),
        Err(error) => Worth::Unproven(error.to_string()),
    }
}

/// Removes the trees, and `dir` that they are in, if they are worth nothing, and says what
/// they are worth. A process that works in one, or has a file of it open, may write to the
/// end: only what was compared is removed, and if there is more, it stays where it is.
pub(super) fn discard(
    at: &Snapshots<'_>,
    dir: &RepoPath,
    trees: &[RepoPath],
    chosen: Option<&ChosenPaths>,
    known: &[SnapshotId],
) -> io::Result<Worth> {
    for tree in trees {
        match discard_tree(at, tree, chosen, known)? {
            Worth::Nothing => {}
            something => return Ok(something),
        }
    }
    // The copy's own, beside them. Nothing else is, unless somebody put it there.
    let _ = at.seams.store.unlink(&layout::manifest(dir));
    let _ = at.seams.store.unlink(&layout::journal(dir));
    match at.seams.store.remove_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => written_to(error),
        _ => Ok(Worth::Nothing),
    }
}

fn discard_tree(
    at: &Snapshots<'_>,
    tree: &RepoPath,
    chosen: Option<&ChosenPaths>,
    known: &[SnapshotId],
) -> io::Result<Worth> {
    // Before it is compared: what is then as it is listed was so all the while.
    let listing = match at.trees.listing(tree) {
        Ok(listing) => Some(listing),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Ok(Worth::Unproven(error.to_string())),
    };
    match worth(at, tree, chosen, known.iter().copied()) {
        Worth::Nothing => {}
        something => return Ok(something),
    }
    let removed = listing.map_or(Ok(()), |listing| at.trees.remove_listed(tree, &listing));
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => written_to(error),
        _ => Ok(Worth::Nothing),
    }
}

fn written_to(error: io::Error) -> io::Result<Worth> {
    match error.kind() {
        io::ErrorKind::DirectoryNotEmpty => Ok(Worth::Unproven(error.to_string())),
        _ => Err(error),
    }
}

/// What is an interrupted swap worth? Of anything else, nothing is known.
pub fn worth_of(at: &Snapshots<'_>, name: &StagingName) -> Worth {
    let StagingName::Swap { source, kept, .. } = name else {
        return Worth::Unproven("it is not a swap".into());
    };
    let dir = name.path();
    let (mut trees, chosen) = match content_of(at, &dir) {
        Ok(content) => content,
        Err(error) => return Worth::Unproven(error.to_string()),
    };
    trees.push(tree_of(&dir));
    let of =
        |tree: &RepoPath| worth(at, tree, chosen.as_ref(), kept.iter().copied().chain([*source]));
    let worths = trees.iter().map(of);
    worths.into_iter().find(|worth| *worth != Worth::Nothing).unwrap_or(Worth::Nothing)
}

/// Ends what a swap left whose hold is over: deletes it, or sets it aside and
/// says where. First it is moved to where no late swap finds it, so that what is
/// compared is what is deleted.
pub(crate) fn settle(
    at: &Snapshots<'_>,
    locks: &Locks<'_>,
    name: &StagingName,
) -> Result<Option<RepoPath>, SnapshotError> {
    let StagingName::Swap { worktree, source, kept, .. } = name else { return Ok(None) };
    let op = OpNonce::random(at.seams.entropy);
    let note = |phase, details: Details| {
        locks.note(EventKind::Gc, phase, op, Some(worktree), None, Some(details))
    };
    let written = || SnapshotError::io("write the audit log");
    note(EventPhase::Intent, SettingAside { sets_aside: name.to_string() }.into())
        .map_err(written())?;
    let dir = match quarantine::set_aside(at.seams.store, op, &name.path()) {
        Ok(dir) => dir,
        // Another collection was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(SnapshotError::Io { doing: format!("set {name} aside"), source });
        }
    };
    let files = layout::quarantined_files(&dir);
    match move_dir(at.seams, &tree_of(&dir), &files) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(SnapshotError::Io { doing: format!("set {name} aside"), source: error });
        }
        _ => {}
    }
    let known: Vec<SnapshotId> = kept.iter().copied().chain([*source]).collect();
    let discarded = content_of(at, &dir).map(|(mut trees, chosen)| {
        trees.push(files.clone());
        discard(at, &dir, &trees, chosen.as_ref(), &known)
    });
    let set_aside = match discarded {
        Ok(Ok(Worth::Nothing)) => {
            // Best effort: empty, and under a name that nobody uses again.
            let _ = at.seams.store.remove_dir(&dir.parent());
            None
        }
        _ => Some(if at.seams.store.stat(&files).is_ok() { files } else { dir }),
    };
    let where_to = set_aside.as_ref().map(RepoPath::to_string);
    note(EventPhase::Done, SetAside { set_aside: where_to }.into()).map_err(written())?;
    Ok(set_aside)
}
