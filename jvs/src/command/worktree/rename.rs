//! `jvs worktree rename OLD NEW`.

use jvs_lock::worktrees;
use jvs_repo::name::WorktreeName;

use super::own_hold;
use crate::answer;
use crate::answer::worktree::Renamed;
use crate::args::RenameArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::{Done, shown};

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
    let (path, path_bytes) = answer::path_if_any(path.as_deref());
    Ok(Done::new(&Renamed { old, name: new, path, path_bytes }).with_text(text))
}
