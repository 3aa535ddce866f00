//! `jvs worktree rename OLD NEW`.

use jvs_lock::worktrees;
use jvs_repo::name::WorktreeName;
use serde_json::json;

use super::own_hold;
use crate::args::RenameArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::{Done, shown, tell_path};

pub(super) fn run(context: &Context<'_>, args: &RenameArgs) -> Result<Done, Failure> {
    let old: WorktreeName = args.old.parse()?;
    let new: WorktreeName = args.new.parse()?;
    let here = Here { repo: context.repo()?, worktree: old };
    let acting = context.session(None)?;
    own_hold::retiring(context, &here, &acting, |locks| {
        worktrees::rename(locks, &here.worktree, &new)
    })?;
    let Here { repo, worktree: old } = here;
    // It is renamed, whether or not it can be looked at now.
    let path = repo.payload(&new).ok();
    let at = path.as_ref().map_or_else(String::new, |path| format!(", now at {}", shown(path)));
    let text = format!("Renamed worktree {old} to {new}{at}\n");
    let mut data = json!({ "old": old, "name": new, "path": null });
    if let Some(path) = &path {
        tell_path(&mut data, "path", path);
    }
    Ok(Done::new(data).with_text(text))
}
