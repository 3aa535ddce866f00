//! `jvs lock list`.

use jvs_lock::view::look;
use jvs_repo::code::Coded;
use jvs_repo::name::WorktreeName;
use jvs_repo::repo::Repo;

use super::{related, report, status};
use crate::answer::Unreadable;
use crate::answer::lock::{BrokenLock, List, ListedLock};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, table};

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let repo = context.repo()?;
    let (rows, locks) = all(context, &repo, None)?;
    let text = table(context.paint(), HEAD, &rows);
    Ok(Done::new(&List { locks }).with_text(text))
}

/// What the columns are called.
pub(super) const HEAD: [&str; 3] = ["WORKTREE", "TOKEN", "LOCK"];

/// Every lock, or that of one worktree: a row for people, and all of it for programs.
pub(super) fn all(
    context: &Context<'_>,
    repo: &Repo,
    only: Option<&WorktreeName>,
) -> Result<(Vec<[String; 3]>, Vec<ListedLock>), Failure> {
    let policy = repo.config()?.lock;
    let me = context.own_nonce()?;
    let mut rows = Vec::new();
    let mut locks = Vec::new();
    let there = repo.worktrees()?.worktrees;
    for (name, _) in there.into_iter().filter(|(name, _)| only.is_none_or(|only| only == name)) {
        match look(context.seams(repo.store()), &policy, &name, me) {
            Ok(view) => {
                let view = related(context, view);
                let token = view.state.token.to_string();
                rows.push([name.to_string(), token, report::brief(&view)]);
                locks.push(ListedLock::Lock(Box::new(status::told(context, repo, &view))));
            }
            Err(error) => {
                // One broken lock does not hide the others.
                let problem = format!("{}: {error}", error.code());
                rows.push([name.to_string(), "?".into(), problem]);
                let error = Unreadable::because(&error);
                locks.push(ListedLock::Broken(BrokenLock { worktree: name, state: (), error }));
            }
        }
    }
    Ok((rows, locks))
}
