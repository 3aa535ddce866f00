//! `jvs worktree path NAME`: where its files are, for `cd "$(jvs worktree path x)"`.

use jvs_repo::name::WorktreeName;
use serde_json::json;

use super::existing;
use crate::args::WorktreeNameArg;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, tell_path};

pub(super) fn run(context: &Context<'_>, args: &WorktreeNameArg) -> Result<Done, Failure> {
    let name: WorktreeName = args.name.parse()?;
    let repo = context.repo()?;
    existing(&repo, &name)?;
    let path = repo.payload(&name)?;
    let mut data = json!({ "worktree": name });
    tell_path(&mut data, "path", &path);
    Ok(Done::new(data).with_path(&path))
}
