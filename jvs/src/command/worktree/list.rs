//! `jvs worktree list`.

use jvs_lock::view::{View, look};
use jvs_repo::code::Coded;
use serde_json::{Value, json};

use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, shown, table, tell_path};

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
                let mut entry = json!({
                    "name": name,
                    "isolation": null,
                    "created_at": null,
                    "state": null,
                    "error": { "code": error.code().as_str(), "message": error.to_string() },
                });
                tell_path(&mut entry, "path", &place);
                worktrees.push(entry);
                continue;
            }
        };
        let seen = look(context.seams(repo.store()), &policy, &name, me);
        let (state, mine, head, problem) = match &seen {
            Ok(view) => (word(view), view.mine, json!(view.state.head), Value::Null),
            Err(error) => (
                error.code().to_string(),
                false,
                Value::Null,
                json!({ "code": error.code().as_str(), "message": error.to_string() }),
            ),
        };
        let isolation = record.isolation.as_str();
        rows.push([name.to_string(), isolation.into(), state.clone(), path.clone()]);
        let mut entry = json!({
            "name": name,
            "isolation": isolation,
            "created_at": record.created_at.rfc3339(),
            "state": seen.as_ref().ok().map(|view| view.word().as_str()),
            "mine": mine,
            "head": head,
            "base": record.base,
            "label": record.label,
        });
        tell_path(&mut entry, "path", &place);
        if !problem.is_null() {
            entry["error"] = problem;
        }
        worktrees.push(entry);
    }
    let text = table(context.paint(), ["NAME", "ISOLATION", "LOCK", "PATH"], &rows);
    let mut data = json!({ "worktrees": worktrees });
    tell_path(&mut data, "root", repo.root());
    Ok(Done::new(data).with_text(text))
}

fn word(view: &View) -> String {
    let word = view.word().as_str();
    if view.mine { format!("{word} (yours)") } else { word.to_owned() }
}
