//! What would be done without a rule, where that is more than an expression: see
//! [`jvs_repo::mutation`].

use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use super::error::{WorktreeError, io_at};
use super::note;
use super::remove::retire;
use super::reserve::{self, Origin};
use crate::locks::Locks;
use crate::state::State;

/// Whatever record is there, it goes.
pub(super) fn remove_record(locks: &Locks<'_>, name: &WorktreeName) -> Result<(), WorktreeError> {
    let (store, path) = (locks.seams.store, layout::worktree_record(name));
    note::unlink(store, &path)?;
    store.sync_dir(&path.parent()).map_err(io_at(&path))
}

/// Retires the source of a rename before there is a target to go on in.
pub(super) fn retire_first(
    locks: &Locks<'_>,
    old: &WorktreeName,
    new: &WorktreeName,
    op: OpNonce,
) -> Result<State, WorktreeError> {
    let now = locks.register(old).read()?;
    let origin = Origin { token: now.token.next(), generation: now.generation, head: now.head };
    let last = retire(locks, old, op, &format!("renamed to {new}"), None)?;
    reserve::reserve(locks, new, origin, op)?;
    Ok(last)
}
