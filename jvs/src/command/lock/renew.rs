//! `jvs lock renew`.

use jvs_lock::How;

use super::{report, resume};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let here = context.here()?;
    let repo = &here.repo;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), repo.config()?.lock, &acting)?;
    let mut lease = resume(context, &locks, &here)?;
    lease.renew()?;
    Ok(report::held(context, &lease, How::Refreshed))
}
