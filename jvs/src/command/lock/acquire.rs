//! `jvs lock acquire`.

use super::{keep, lockable, turn, want, warned_of_writeback};
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
    let wanted = want(context, &args.lease, &args.keep, &config, &acting)?;
    let lease = turn::take(context, &here, &locks, wanted, args.wait.wait)?;
    let done = keep::leave(context, &here, &config, &acting, lease, &args.keep)?;
    Ok(warned_of_writeback(&here, done))
}
