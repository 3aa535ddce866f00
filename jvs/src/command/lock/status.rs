//! `jvs lock status`.

use jvs_lock::state::Hold;
use jvs_lock::view::View;
use serde_json::{Value, json};

use super::{look, report};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let view = look(context, &context.here()?)?;
    let worktree = context.paint().bold(view.worktree.as_str());
    let text = format!("{worktree}: {}\n", report::line(&view));
    Ok(context.done(|| data(&view)).with_text(text))
}

/// Everything that one look tells.
pub(super) fn data(view: &View) -> Value {
    let mut data = report::seen(view);
    let judged = view.judgement.as_ref();
    data["clock"] = json!(judged.map(|judged| json!({
        "observed_skew_ms": judged.observed_skew_ms,
        "method": judged.method,
        "evidence": judged.evidence,
    })));
    data["stealable_in_ms"] = json!(judged.map(|judged| judged.stealable_in_ms));
    data["keeper"] = Value::Null;
    data["freeze"] = match view.state.hold {
        Hold::Frozen(claim) => json!({
            "expires_at": claim.expires.rfc3339(),
            "remaining_ms": view.remaining_ms(),
            "reason": view.record().and_then(|record| record.note.as_ref()),
        }),
        _ => Value::Null,
    };
    data["waiters"] = json!([]);
    data
}
