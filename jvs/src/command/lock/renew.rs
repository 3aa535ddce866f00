//! `jvs lock renew`.

use jvs_lock::hold::{Holds, Term};
use jvs_lock::{How, Lease};

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
    let holds = context.holds(repo, &here.worktree, &acting)?;
    prolong(&holds, &lease)?;
    Ok(report::held(context, &lease, How::Refreshed))
}

/// A stake that lasts as long as a lease that nothing renews lasts on with it.
fn prolong(holds: &Holds<'_>, lease: &Lease<'_>) -> Result<(), Failure> {
    let ends = lease.belief().until();
    let term = Term { epoch: lease.ticket().epoch, token: lease.token() };
    Ok(holds.prolong(term, ends)?)
}
