//! `jvs lock status`.

use std::fmt::Write as _;

use jvs_lock::queue::{Queue, Waiter};
use jvs_lock::state::Hold;
use jvs_lock::view::View;
use jvs_repo::repo::Repo;
use serde_json::{Value, json};

use super::{look, report};
use crate::context::Context;
use crate::fail::Failure;
use crate::keeper;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let here = context.here()?;
    let view = look(context, &here)?;
    let mut text = report::lines(&view);
    if let Some(keeper) = view.record().and_then(|record| record.keeper.as_ref()) {
        let alive = match keeper::running(keeper) {
            Some(true) => "which runs",
            Some(false) => "which has ended: nobody renews it any more",
            None => "which cannot be seen from here",
        };
        let _ = writeln!(text, "  kept by process {}, {alive}", keeper.pid);
    }
    match waiters(context, &here.repo, &view).len() {
        0 => {}
        1 => text += "  one session waits in line\n",
        count => {
            let _ = writeln!(text, "  {count} sessions wait in line");
        }
    }
    Ok(context.done(|| data(context, &here.repo, &view)).with_text(text))
}

/// Those in line, as far as one look can tell. A line that cannot be read is
/// no reason to hide the lock.
fn waiters(context: &Context<'_>, repo: &Repo, view: &View) -> Vec<Waiter> {
    Queue::new(context.seams(repo.store()), &view.worktree).list().unwrap_or_default()
}

/// Everything that one look tells.
pub(super) fn data(context: &Context<'_>, repo: &Repo, view: &View) -> Value {
    let mut data = report::seen(view);
    let judged = view.judgement.as_ref();
    data["clock"] = json!(judged.map(|judged| json!({
        "observed_skew_ms": judged.observed_skew_ms,
        "method": judged.method,
        "evidence": judged.evidence,
        "watch_ms": judged.watch_ms,
        "nobody_renews": judged.nobody_renews,
    })));
    data["stealable_in_ms"] = json!(judged.map(|judged| judged.stealable_in_ms));
    let keeper = view.record().and_then(|record| record.keeper.as_ref());
    data["keeper"] = json!(keeper.map(|keeper| json!({
        "pid": keeper.pid,
        "alive": keeper::running(keeper),
    })));
    data["freeze"] = match view.state.hold {
        Hold::Frozen(claim) => json!({
            "expires_at": claim.expires.rfc3339(),
            "remaining_ms": view.remaining_ms(),
            "reason": view.record().and_then(|record| record.note.as_ref()),
        }),
        _ => Value::Null,
    };
    let line = waiters(context, repo, view);
    data["waiters"] = json!(
        line.iter()
            .enumerate()
            .map(|(at, waiter)| json!({
                "place": at + 1,
                "holder_nonce": waiter.holder,
                "process_id": waiter.pid,
                "last_sign_at": waiter.beat.rfc3339(),
            }))
            .collect::<Vec<_>>()
    );
    data
}
