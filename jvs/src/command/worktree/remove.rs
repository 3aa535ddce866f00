//! `jvs worktree remove NAME`.

use jvs_lock::worktrees;
use jvs_repo::name::WorktreeName;
use serde_json::json;

use super::own_hold;
use crate::args::RemoveArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &RemoveArgs) -> Result<Done, Failure> {
    let name: WorktreeName = args.name.parse()?;
    let here = Here { repo: context.repo()?, worktree: name };
    let acting = context.session(None)?;
    let removed = own_hold::retiring(context, &here, &acting, |locks| {
        worktrees::remove(locks, &here.worktree, args.force)
    })?;
    let Here { repo, worktree: name } = here;
    let done = Done::new(json!({ "name": name })).with_text(format!("Removed worktree {name}\n"));
    // The worktree is gone; what may fail from here on is only tidying up.
    let Some(files) = removed.files else { return Ok(done) };
    Ok(match repo.store().remove_payload_tree(&files) {
        // A garbage collection or doctor took it over.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => done,
        Err(error) => done.with_warning(format!(
            "its files could not all be deleted ({error}): see what is left in {files}, then \
             `jvs gc`"
        )),
        Ok(()) => done,
    })
}
