//! `jvs lock renew`.

use jvs_lock::hold::{Ask, HandedTerm, StakeKind};
use jvs_lock::{LeaseError, Want};

use super::turn::LockTurn;
use super::{report, resume};
use crate::context::Context;
use crate::fail::Failure;
use crate::keeper;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let here = context.here()?;
    let repo = &here.repo;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), repo.config()?.lock, &acting)?;
    let mut held = resume(context, &locks, &here)?;
    let now = context.clock().now().boot;
    if !held.belief().holds_at(now) {
        // Says in which way it is over, and does nothing else.
        held.renew()?;
    }
    let lease_ms = held.claim().lease_ms;
    let lasts_ms = Some(lease_ms);
    let handed = Some(HandedTerm { token: held.token(), epoch: Some(held.term().epoch) });
    let ask = Ask { lasts_ms, handed, ..Ask::plain(StakeKind::Acquire) };
    let holds = context.holds(repo, &here.worktree, &acting)?;
    let turn = LockTurn { context, here: &here, locks: &locks, holds: &holds };
    // Like everybody who is told that it holds: with a stake in the open hold.
    let entered = turn.with(&ask, Want::lease(lease_ms), &mut |_| {
        Err(LeaseError::NotHeld { view: Box::new(locks.inspect(&here.worktree)?) })
    })?;
    let (lease, mut stake) = (entered.lease, entered.stake);
    if holds.is_needed(&stake)? {
        // A stake that lasts as long as a lease that nothing renews lasts on with it.
        holds.prolong(lease.term(), lease.belief().until())?;
        keeper::ensure(context, &here, &acting.session, &holds, &lease);
        holds.remove(&stake);
    } else {
        holds.answered(&mut stake)?;
    }
    Ok(report::held(context, &lease, lease.how()))
}
