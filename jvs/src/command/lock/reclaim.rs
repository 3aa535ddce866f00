//! `jvs lock reclaim --reason TEXT [--emergency]`.

use jvs_lock::Want;
use jvs_lock::session::Purpose;
use jvs_repo::proc;

use super::{keep, lockable, or_no_such_worktree, reasoned, want, warned_of_writeback};
use crate::args::ReclaimArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &ReclaimArgs) -> Result<Done, Failure> {
    reasoned(&args.reason, "a lock is not reclaimed without a reason")?;
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let config = repo.config()?;
    lockable(&here)?;
    let emergency = args.emergency || args.lease.purpose == Some(Purpose::Emergency);
    let purpose = args.lease.purpose.or(emergency.then_some(Purpose::Emergency));
    let acting = context.session(purpose)?;
    let locks = args.watch.apply(context.locks(repo.store(), config.lock, &acting)?);
    let wanted = want(context, &args.lease, &args.keep, &config, &acting)?;
    let wanted = Want { reason: Some(&args.reason), ..wanted };
    let lease = locks
        .reclaim(worktree, wanted, &config.reclaim, emergency, &proc::process_stat)
        .map_err(|error| or_no_such_worktree(repo, worktree, error))?;
    let done = keep::leave(context, &here, &config, &acting, lease, &args.keep)?;
    Ok(warned_of_writeback(&here, done))
}
