//! `jvs lock reclaim --reason TEXT [--emergency]`.

use jvs_lock::session::Purpose;
use jvs_lock::{State, Want};
use jvs_repo::proc;

use super::turn::LockTurn;
use super::{keep, lockable, reasoned, want, warned_of_writeback};
use crate::args::ReclaimArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &ReclaimArgs) -> Result<Done, Failure> {
    reasoned(&args.reason, "reclaiming a lock needs a reason")?;
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let config = repo.config()?;
    lockable(&here)?;
    let emergency = args.emergency || args.lease.purpose == Some(Purpose::Emergency);
    let purpose = args.lease.purpose.or(emergency.then_some(Purpose::Emergency));
    let acting = context.session(purpose)?;
    let me = acting.session.identity();
    let holds_of = context.holds_of(repo, worktree, &acting.private, me)?;
    let stakes = |state: &State| holds_of(state.holder()?).is_relied_on(state);
    let locks = context.locks(repo.store(), config.lock, &acting)?.asking(&stakes);
    let locks = args.watch.apply(locks);
    let wanted = want(&args.lease, &args.keep, &config, &acting)?;
    let wanted = Want { reason: Some(&args.reason), ..wanted };
    let holds = context.holds(repo, worktree, &acting)?;
    let turn = LockTurn { context, here: &here, locks: &locks, holds: &holds };
    let kept = keep::wish(context, &config, &acting, &wanted, &args.keep)?;
    let entered = turn.with(&kept.ask, kept.telling(wanted), &mut |want| {
        locks.reclaim(worktree, want, &config.reclaim, emergency, &proc::process_stat)
    })?;
    let done = keep::leave(&turn, &acting, entered, &kept)?;
    Ok(warned_of_writeback(&here, done))
}
