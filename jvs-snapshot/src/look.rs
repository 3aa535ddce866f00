//! Looking inside a snapshot, and at single files of it or of a worktree, without
//! restoring anything. Nothing is followed and nothing is changed.

use std::io;
use std::path::Path;

use jvs_repo::store::Store;

use crate::error::SnapshotError;
use crate::manifest::{Entry, EntryKind, TreePath};
use crate::ready::Ready;
use crate::stored::{not_believed, proven_manifest};
use crate::tree::{self, FileStream};

/// What is at `path` in a snapshot: the entry itself, then what is in it, all the way down
/// if `deep`. In the order of paths.
pub fn entries(
    store: &dyn Store,
    snapshot: &Ready,
    path: &TreePath,
    deep: bool,
) -> Result<Vec<Entry>, SnapshotError> {
    let mut found = Vec::new();
    each_at(store, snapshot, path, &mut |entry| {
        let inside = entry.path.as_path().strip_prefix(path.as_path());
        let depth = inside.map(|rest| rest.components().count());
        if depth.is_ok_and(|depth| deep || depth <= 1) {
            found.push(entry.clone());
        }
    })?;
    if found.is_empty() {
        let (id, path) = (snapshot.id(), path.to_string());
        return Err(SnapshotError::NoSuchPath { id, path });
    }
    Ok(found)
}

/// Tells `each` the entry at `path` and those below it, in the order of paths. Nothing of
/// it may be believed if this fails.
pub fn each_at(
    store: &dyn Store,
    snapshot: &Ready,
    path: &TreePath,
    each: &mut dyn FnMut(&Entry),
) -> Result<(), SnapshotError> {
    let manifest = jvs_repo::layout::manifest(&snapshot.dir());
    for entry in proven_manifest(store, snapshot)? {
        let entry = entry.map_err(|error| not_believed(manifest.clone(), error))?;
        if entry.path.as_path().starts_with(path.as_path()) {
            each(&entry);
        }
    }
    Ok(())
}

/// The file at `path` below `root`, to be read.
pub fn open(root: &Path, path: &TreePath) -> io::Result<FileStream> {
    let Some((parent, name)) = path.split() else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let dir = tree::open_below(tree::open_root(root)?, parent.components())?;
    Ok(FileStream::new(tree::open_file(dir, name)?))
}

/// Where the symlink at `path` below `root` points to.
pub fn target(root: &Path, path: &TreePath) -> io::Result<Vec<u8>> {
    let Some((parent, name)) = path.split() else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    tree::read_link(tree::open_below(tree::open_root(root)?, parent.components())?, name)
}

/// The bytes of an entry, if it is a file.
pub fn size(entry: &Entry) -> Option<u64> {
    match entry.kind {
        EntryKind::File { size, .. } => Some(size),
        _ => None,
    }
}
