//! `jvs lock acquire`.

use super::turn::Turn;
use super::{keep, lockable, want, warned_of_writeback};
use crate::args::AcquireArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &AcquireArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let Here { repo, .. } = &here;
    let config = repo.config()?;
    lockable(&here)?;
    let acting = context.session(args.lease.purpose)?;
    let locks = args.watch.apply(context.locks(repo.store(), config.lock, &acting)?);
    let wanted = want(&args.lease, &args.keep, &config, &acting)?;
    let holds = context.holds(repo, &here.worktree, &acting)?;
    let turn = Turn { context, here: &here, locks: &locks, holds: &holds };
    let kept = keep::wish(context, &config, &acting, &wanted, &args.keep)?;
    let entered = turn.enter(&kept.ask, wanted, args.wait.wait)?;
    let done = keep::leave(&turn, &acting, entered, &kept)?;
    Ok(warned_of_writeback(&here, done))
}
