//! `jvs lock acquire`.

use super::{lockable, report, want};
use crate::args::AcquireArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &AcquireArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let config = repo.config()?;
    lockable(&here)?;
    let acting = context.session(args.lease.purpose)?;
    let locks = context.locks(repo.store(), config.lock, &acting)?;
    let lease = locks.acquire(worktree, want(&args.lease, &config, &acting))?;
    let how = lease.how();
    Ok(report::held(context, &lease, how))
}
