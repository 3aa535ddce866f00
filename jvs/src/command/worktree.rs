//! `jvs worktree …`.

mod create;
mod list;
mod own_hold;
mod path;
mod remove;
mod rename;

use jvs_lock::worktrees::WorktreeError;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::WorktreeRecord;
use jvs_repo::repo::Repo;
use jvs_snapshot::Ready;

use crate::args::{RenameArgs, WorktreeCommand};
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::Done;

pub(crate) fn run(context: &Context<'_>, command: &WorktreeCommand) -> Result<Done, Failure> {
    match command {
        WorktreeCommand::Create(args) => create::run(context, args),
        WorktreeCommand::List => list::run(context),
        WorktreeCommand::Path(args) => path::run(context, args),
        WorktreeCommand::Rename(args) => rename::run(context, args),
        WorktreeCommand::Remove(args) => remove::run(context, args),
    }
}

/// Removes a worktree that is as it was made: without files, or with those of `base`.
pub(super) fn remove_unchanged(
    context: &Context<'_>,
    here: &Here,
    base: Option<&Ready>,
) -> Result<Done, Failure> {
    remove::unchanged(context, here, base)
}

/// Refuses a worktree that is not as it was made any more.
pub(super) fn check_unchanged(
    context: &Context<'_>,
    here: &Here,
    base: Option<&Ready>,
) -> Result<(), Failure> {
    remove::check_unchanged(context, here, base)
}

/// Gives a worktree another name.
pub(super) fn rename(context: &Context<'_>, args: &RenameArgs) -> Result<Done, Failure> {
    rename::run(context, args)
}

/// The record of a worktree that must be there.
pub(crate) fn existing(repo: &Repo, name: &WorktreeName) -> Result<WorktreeRecord, Failure> {
    match repo.worktree(name)? {
        Some(record) => Ok(record),
        None => Err(WorktreeError::NotFound { name: name.clone() }.into()),
    }
}
