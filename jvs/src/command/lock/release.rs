//! `jvs lock release`.

use jvs_lock::retry;
use serde_json::json;

use super::resume;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::keeper;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), repo.config()?.lock, &acting)?;
    let lease = resume(context, &locks, &here)?;
    let (token, head) = (lease.token(), lease.head());
    // The whole session stops believing before the release is issued.
    keeper::stand_down(context, &here)?;
    retry::release(locks.seams(), lease).map_err(|failed| failed.error)?;
    let data = || {
        json!({
            "worktree": worktree,
            "state": "free",
            "mine": false,
            "remaining_ms": 0,
            "head": head,
            "fencing_token": token,
        })
    };
    Ok(context.done(data).with_text(format!("Released worktree {worktree}\n")))
}
