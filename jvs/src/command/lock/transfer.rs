//! `jvs lock transfer [--to SESSION]`.

use jvs_lock::session::SessionId;
use jvs_lock::{NoSuchWaiter, StatusWord};
use jvs_repo::proc;

use super::resume;
use crate::answer::lock::TransferredLock;
use crate::args::TransferArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::keeper;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &TransferArgs) -> Result<Done, Failure> {
    let to: Option<SessionId> = args.to.as_ref().map(|to| to.parse()).transpose()?;
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let acting = context.session(None)?;
    let policy = repo.config()?.lock;
    let locks = context.locks(repo.store(), policy, &acting)?;
    let ticket = resume(context, &locks, &here)?.ticket();
    // Found before anything is given up.
    let session = || to.as_ref().map(ToString::to_string);
    let not_there = || NoSuchWaiter { worktree: worktree.clone(), session: session() };
    let waiter = match &to {
        Some(to) => locks.waiter(worktree, to, &proc::process_stat)?,
        None => locks.next_in_line(worktree, &proc::process_stat)?,
    };
    let waiter = waiter.ok_or_else(not_there)?;
    let whom = session().map_or_else(|| "who was next".to_owned(), |id| format!("session {id}"));
    let holds = context.holds(repo, worktree, &acting)?;
    let lease_ms = waiter.lease_ms.unwrap_or(policy.lease_duration_ms);
    let state = locks.transfer_as_told(&holds, &ticket, &waiter, lease_ms, &args.reason)?;
    if let Some(keeper) = keeper::find(context, &here, ticket.term)? {
        keeper.stand_down();
    }
    if !locks.deliver(&waiter, &holds, &state)? {
        let told = format!("Worktree {worktree} is free: {whom} had left the line\n");
        return Err(Failure::from(not_there()).preceded_by(told));
    }
    let answer = TransferredLock {
        worktree: worktree.clone(),
        state: StatusWord::Held,
        mine: false,
        to: session(),
        head: state.head,
        fencing_token: state.token,
    };
    let whom =
        session().map_or_else(|| "the next in line".to_owned(), |id| format!("session {id}"));
    let text = format!("Handed worktree {worktree} to {whom} (fencing token {})\n", state.token);
    Ok(Done::new(&answer).with_text(text))
}
