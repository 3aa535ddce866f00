//! `jvs lock list`.

use jvs_lock::view::look;
use jvs_repo::code::Coded;
use serde_json::json;

use super::{related, report, status};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, table};

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let repo = context.repo()?;
    let policy = repo.config()?.lock;
    let me = context.own_nonce()?;
    let mut rows = Vec::new();
    let mut locks = Vec::new();
    for (name, _) in repo.worktrees()?.worktrees {
        match look(context.seams(repo.store()), &policy, &name, me) {
            Ok(view) => {
                let view = related(context, view);
                let token = view.state.token.to_string();
                rows.push([name.to_string(), token, report::brief(&view)]);
                locks.push(status::data(context, &repo, &view));
            }
            Err(error) => {
                // One broken lock does not hide the others.
                let problem = format!("{}: {error}", error.code());
                rows.push([name.to_string(), "?".into(), problem]);
                locks.push(json!({
                    "worktree": name,
                    "state": null,
                    "error": { "code": error.code().as_str(), "message": error.to_string() },
                }));
            }
        }
    }
    let text = table(context.paint(), ["WORKTREE", "TOKEN", "LOCK"], &rows);
    Ok(Done::new(json!({ "locks": locks })).with_text(text))
}
