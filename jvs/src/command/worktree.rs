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

use crate::args::WorktreeCommand;
use crate::context::Context;
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

/// The record of a worktree that must be there.
pub(crate) fn existing(repo: &Repo, name: &WorktreeName) -> Result<WorktreeRecord, Failure> {
    match repo.worktree(name)? {
        Some(record) => Ok(record),
        None => Err(WorktreeError::NotFound { name: name.clone() }.into()),
    }
}
