//! The one step in which restored files take the place of others.
//!
//! The lease is renewed right before: nobody can have taken it over between that
//! and the step, unless this process is stopped for a whole lease in between.
//! Only storage could promise more, and no filesystem swaps two directories on
//! the condition that a third has some name.

use std::io;

use jvs_lock::{Lease, Seams};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::store::{RepoPath, Store};

use super::RestoreError;
use crate::error::SnapshotError;

/// How a path came to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swapped {
    /// With what was there before, which is now where it came from.
    Exchanged,
    /// Nothing was there.
    Placed,
}

/// Swaps the worktree of `lease` with `tree`.
pub fn swap_whole(
    seams: Seams<'_>,
    lease: &mut Lease<'_>,
    tree: &RepoPath,
) -> Result<(), RestoreError> {
    let payload = layout::payload(lease.worktree());
    sure(lease)?;
    exchange(seams.store, tree, &payload)?;
    Ok(sync(seams.store, tree, &payload)?)
}

/// Swaps each of `paths`, relative to the worktree of `lease`, with what `tree`
/// has there. All of them are in `tree`, or nothing is touched.
pub fn swap_paths(
    seams: Seams<'_>,
    lease: &mut Lease<'_>,
    tree: &RepoPath,
    paths: &[RepoPath],
    source: SnapshotId,
) -> Result<Vec<Swapped>, RestoreError> {
    let store = seams.store;
    let payload = layout::payload(lease.worktree());
    check_paths(store, tree, paths, source)?;
    let mut pairs = Vec::new();
    for path in paths {
        pairs.push((below(tree, path)?, below(&payload, path)?));
    }
    let mut swapped = Vec::new();
    for (from, to) in pairs {
        make_parents(store, &payload, &to)?;
        sure(lease)?;
        let placed = match store.stat(&to) {
            Ok(_) => exchange(store, &from, &to).map(|()| Swapped::Exchanged)?,
            Err(error) if is_absence(&error) => {
                let stuck = SnapshotError::io(format!("put {to} in its place"));
                store.rename_new(&from, &to).map(|()| Swapped::Placed).map_err(stuck)?
            }
            Err(source) => {
                return Err(SnapshotError::Io { doing: format!("look at {to}"), source }.into());
            }
        };
        sync(store, &from, &to)?;
        swapped.push(placed);
    }
    Ok(swapped)
}

/// Are all of `paths` in the tree of the snapshot `source` that is at `tree`?
pub fn check_paths(
    store: &dyn Store,
    tree: &RepoPath,
    paths: &[RepoPath],
    source: SnapshotId,
) -> Result<(), SnapshotError> {
    for path in paths {
        match store.stat(&below(tree, path)?) {
            Ok(_) => {}
            Err(error) if is_absence(&error) => {
                return Err(SnapshotError::NoSuchPath { id: source, path: path.to_string() });
            }
            Err(source) => {
                return Err(SnapshotError::Io { doing: format!("look at {path}"), source });
            }
        }
    }
    Ok(())
}

fn below(root: &RepoPath, path: &RepoPath) -> Result<RepoPath, SnapshotError> {
    path.as_str()
        .split('/')
        .try_fold(root.clone(), |at, name| at.child(name))
        .map_err(|error| SnapshotError::Invalid { problem: error.to_string() })
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn make_parents(store: &dyn Store, root: &RepoPath, path: &RepoPath) -> Result<(), SnapshotError> {
    let parent = path.parent();
    if parent == *root || store.stat(&parent).is_ok() {
        return Ok(());
    }
    make_parents(store, root, &parent)?;
    store.make_dir(&parent).map_err(SnapshotError::io(format!("make {parent}")))
}

/// A renewal confirms the hold and makes it last.
fn sure(lease: &mut Lease<'_>) -> Result<(), RestoreError> {
    lease.renew()?;
    lease.fence()?.read()?;
    Ok(())
}

/// Swaps two paths. An answer that was lost is settled by looking at which file
/// is where.
fn exchange(store: &dyn Store, from: &RepoPath, to: &RepoPath) -> Result<(), SnapshotError> {
    let stuck = || SnapshotError::io(format!("swap {to} with its restored files"));
    let new = store.stat(from).map_err(stuck())?;
    let Err(error) = store.exchange(from, to) else { return Ok(()) };
    match store.stat(to) {
        Ok(there) if (there.device, there.inode) == (new.device, new.inode) => Ok(()),
        _ => Err(stuck()(error)),
    }
}

fn sync(store: &dyn Store, from: &RepoPath, to: &RepoPath) -> Result<(), SnapshotError> {
    for dir in [to.parent(), from.parent()] {
        store.sync_dir(&dir).map_err(SnapshotError::io(format!("sync {dir}")))?;
    }
    Ok(())
}
