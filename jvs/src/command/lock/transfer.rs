//! `jvs lock transfer --to SESSION`.

use jvs_lock::session::SessionId;
use jvs_repo::proc;
use serde_json::json;

use super::resume;
use crate::args::TransferArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::keeper;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &TransferArgs) -> Result<Done, Failure> {
    let to: SessionId = args.to.parse()?;
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let acting = context.session(None)?;
    let policy = repo.config()?.lock;
    let locks = context.locks(repo.store(), policy, &acting)?;
    let lease = resume(context, &locks, &here)?;
    // Found before anything is given up.
    let waiter = locks.waiter(worktree, &to, &proc::process_stat)?;
    keeper::stand_down(context, &here)?;
    let state = lease
        .transfer(&waiter, waiter.lease_ms.unwrap_or(policy.lease_duration_ms), &args.reason)
        .map_err(|failed| failed.error)?;
    locks.wake(worktree, &waiter);
    let data = json!({
        "worktree": worktree,
        "state": "held",
        "mine": false,
        "to": to.as_str(),
        "head": state.head,
        "fencing_token": state.token,
    });
    let text =
        format!("Handed worktree {worktree} to session {to} (fencing token {})\n", state.token);
    Ok(Done::new(data).with_text(text))
}
