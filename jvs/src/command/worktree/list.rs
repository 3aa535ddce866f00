//! `jvs worktree list`.

use jvs_lock::view::{View, look};
use jvs_repo::code::Coded;

use crate::answer::worktree::{BrokenWorktree, ListedWorktree, Worktree, WorktreeList};
use crate::answer::{self, Unreadable};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, shown, table};

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let repo = context.repo()?;
    let policy = repo.config()?.lock;
    let me = context.own_nonce()?;
    let mut rows = Vec::new();
    let mut worktrees = Vec::new();
    for (name, record) in repo.worktrees()?.worktrees {
        let place = repo.store().absolute(&jvs_repo::layout::payload(&name));
        let path = shown(&place);
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                // One bad record does not hide the other worktrees.
                rows.push([name.to_string(), "?".into(), error.code().to_string(), path.clone()]);
                let error = Unreadable::because(&error);
                let (path, path_bytes) = answer::path(&place);
                worktrees.push(ListedWorktree::Broken(BrokenWorktree {
                    name,
                    isolation: (),
                    created_at: (),
                    state: (),
                    error,
                    path,
                    path_bytes,
                }));
                continue;
            }
        };
        let seen = look(context.seams(repo.store()), &policy, &name, me);
        let state = match &seen {
            Ok(view) => word(view),
            Err(error) => error.code().to_string(),
        };
        rows.push([name.to_string(), record.isolation.as_str().into(), state, path]);
        let (path, path_bytes) = answer::path(&place);
        worktrees.push(ListedWorktree::Worktree(Worktree {
            name,
            isolation: record.isolation,
            created_at: record.created_at.into(),
            state: seen.as_ref().ok().map(View::word),
            mine: seen.as_ref().is_ok_and(|view| view.mine),
            head: seen.as_ref().ok().and_then(|view| view.state.head),
            base: record.base,
            label: record.label,
            path,
            path_bytes,
            error: seen.as_ref().err().map(Unreadable::because),
        }));
    }
    let text = table(context.paint(), ["NAME", "ISOLATION", "LOCK", "PATH"], &rows);
    let (root, root_bytes) = answer::path(repo.root());
    Ok(Done::new(&WorktreeList { worktrees, root, root_bytes }).with_text(text))
}

fn word(view: &View) -> String {
    let word = view.word().as_str();
    if view.mine { format!("{word} (yours)") } else { word.to_owned() }
}
