//! `jvs worktree create NAME`.

use jvs_lock::{StatusWord, worktrees};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;

use crate::answer;
use crate::answer::worktree::CreatedEmpty;
use crate::args::CreateArgs;
use crate::command::restore::new_worktree;
use crate::command::snapshots::find;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, shown};

pub(super) fn run(context: &Context<'_>, args: &CreateArgs) -> Result<Done, Failure> {
    let name: WorktreeName = args.name.parse()?;
    let isolation = if args.shared { Isolation::Shared } else { Isolation::Exclusive };
    if let Some(from) = &args.from {
        let here = context.here()?;
        let source = find(context, &here, from)?;
        return new_worktree(context, &here, &source, &name, isolation);
    }
    let repo = context.repo()?;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), repo.config()?.lock, &acting)?;
    let record = worktrees::create(&locks, &name, isolation)?;
    // It is made: no look at it may say otherwise.
    let path = repo.store().absolute(&layout::payload(&name));
    let paint = context.paint();
    let text = format!(
        "Created {} worktree {} at {}\n",
        isolation.as_str(),
        paint.bold(name.as_str()),
        shown(&path)
    );
    let created_at = record.created_at.into();
    let (path, path_bytes) = answer::path(&path);
    let made =
        CreatedEmpty { name, isolation, created_at, state: StatusWord::Free, path, path_bytes };
    Ok(Done::new(&made).with_text(text))
}
