//! `jvs worktree path NAME`: where its files are, for `cd "$(jvs worktree path x)"`.

use jvs_repo::name::WorktreeName;

use super::existing;
use crate::answer;
use crate::answer::worktree::WorktreePath;
use crate::args::WorktreeNameArg;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &WorktreeNameArg) -> Result<Done, Failure> {
    let name: WorktreeName = args.name.parse()?;
    let repo = context.repo()?;
    existing(&repo, &name)?;
    let path = repo.payload(&name)?;
    let (text, path_bytes) = answer::path(&path);
    Ok(Done::new(&WorktreePath { worktree: name, path: text, path_bytes }).with_path(&path))
}
