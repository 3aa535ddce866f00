//! `jvs worktree rename OLD NEW`.

use jvs_lock::worktrees;
use jvs_repo::name::WorktreeName;
use serde_json::json;

use crate::args::RenameArgs;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, shown};

pub(super) fn run(context: &Context<'_>, args: &RenameArgs) -> Result<Done, Failure> {
    let old: WorktreeName = args.old.parse()?;
    let new: WorktreeName = args.new.parse()?;
    let repo = context.repo()?;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), repo.config()?.lock, &acting)?;
    worktrees::rename(&locks, &old, &new)?;
    let path = shown(&repo.payload(&new)?);
    let text = format!("Renamed worktree {old} to {new}, now at {path}\n");
    Ok(Done::new(json!({ "old": old, "name": new, "path": path })).with_text(text))
}
