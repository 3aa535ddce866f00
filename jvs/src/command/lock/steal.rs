//! `jvs lock steal --reason TEXT [--observe]`.

use std::ops::ControlFlow;

use jvs_lock::decide::is_skewed;
use jvs_lock::watching::Patience;
use jvs_lock::{AcquireError, Locks, TakeOverError, TurnError, Want};
use jvs_repo::config::LockPolicy;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc;

use super::turn::LockTurn;
use super::{keep, lockable, reasoned, want, warned_of_writeback};
use crate::args::StealArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &StealArgs) -> Result<Done, Failure> {
    reasoned(&args.reason, "stealing a lock needs a reason")?;
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let config = repo.config()?;
    lockable(&here)?;
    let acting = context.session(args.lease.purpose)?;
    let locks = args.watch.apply(context.locks(repo.store(), config.lock, &acting)?);
    if args.observe {
        observe(context, &locks, worktree)?;
    }
    let wanted = want(&args.lease, &args.keep, &config, &acting)?;
    let wanted = Want { reason: Some(&args.reason), ..wanted };
    let holds = context.holds(repo, worktree, &acting)?;
    let turn = LockTurn { context, here: &here, locks: &locks, holds: &holds };
    let kept = keep::wish(context, &config, &acting, &wanted, &args.keep)?;
    let entered = turn.with(&kept.ask, kept.telling(wanted), &mut |want| {
        locks.steal(worktree, want, &proc::process_stat).map_err(|error| match args.observe {
            true => error,
            false => or_in_doubt(error, &config.lock),
        })
    })?;
    let done = keep::leave(&turn, &acting, entered, &kept)?;
    Ok(warned_of_writeback(&here, done))
}

/// A lease that runs by clocks which are proven to disagree may be over long
/// since: a process that wants to steal is told so, and how to find out without them.
fn or_in_doubt(error: TurnError, policy: &LockPolicy) -> TurnError {
    match error {
        TurnError::Acquire(AcquireError::Take(TakeOverError::Conflict(view)))
            if view.judgement.as_ref().is_some_and(|judged| is_skewed(judged, policy)) =>
        {
            let max_clock_skew_ms = policy.max_clock_skew_ms;
            AcquireError::from(TakeOverError::ClockSkew { view, max_clock_skew_ms }).into()
        }
        error => error,
    }
}

/// Watches until the holder is proven idle, or is seen to be alive.
fn observe(
    context: &Context<'_>,
    locks: &Locks<'_>,
    worktree: &WorktreeName,
) -> Result<(), Failure> {
    let reporter = context.watch_reporter();
    let mut longest_ms = 0;
    locks.observe(worktree, |watched| {
        if watched.watched_ms < longest_ms {
            // The name changed: somebody renewed, so there is nothing to prove.
            return ControlFlow::Break(());
        }
        longest_ms = watched.watched_ms;
        reporter.tell(watched)
    })?;
    Ok(())
}
