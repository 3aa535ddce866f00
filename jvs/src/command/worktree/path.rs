//! `jvs worktree path NAME`: where its files are, for `cd "$(jvs worktree path x)"`.

use jvs_repo::name::WorktreeName;
use serde_json::json;

use super::existing;
use crate::args::WorktreeNameArg;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, shown};

pub(super) fn run(context: &Context<'_>, args: &WorktreeNameArg) -> Result<Done, Failure> {
    let name: WorktreeName = args.name.parse()?;
    let repo = context.repo()?;
    existing(&repo, &name)?;
    let path = shown(&repo.payload(&name)?);
    Ok(Done::new(json!({ "worktree": name, "path": path })).with_text(format!("{path}\n")))
}
