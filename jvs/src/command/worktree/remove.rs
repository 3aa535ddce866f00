//! `jvs worktree remove NAME`.

use jvs_lock::worktrees;
use jvs_repo::name::WorktreeName;
use serde_json::json;

use crate::args::RemoveArgs;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &RemoveArgs) -> Result<Done, Failure> {
    let name: WorktreeName = args.name.parse()?;
    let repo = context.repo()?;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), repo.config()?.lock, &acting)?;
    let removed = worktrees::remove(&locks, &name, args.force)?;
    if let Some(files) = removed.files {
        // The worktree is gone; what may fail from here on is only tidying up.
        match repo.store().remove_payload_tree(&files) {
            // A garbage collection or doctor took it over.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            deleted => deleted
                .map_err(|error| Stuck::new(format!("delete what is left in {files}"), error))?,
        }
    }
    let text = format!("Removed worktree {name}\n");
    Ok(Done::new(json!({ "name": name })).with_text(text))
}
