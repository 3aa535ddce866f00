//! `jvs lock acquire`.

use super::several::enter_all;
use super::turn::{LockTurn, turns};
use super::{keep, lockable, want, warned_of_writeback};
use crate::args::AcquireArgs;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, args: &AcquireArgs) -> Result<Done, Failure> {
    let all = context.all_here()?;
    let repo = &all[0].repo;
    let config = repo.config()?;
    all.iter().try_for_each(lockable)?;
    let acting = context.session(args.lease.purpose)?;
    let locks = args.watch.apply(context.locks(repo.store(), config.lock, &acting)?);
    let wanted = want(&args.lease, &args.keep, &config, &acting)?;
    let holds = context.holds_of_all(&all, &acting)?;
    let turns: Vec<LockTurn<'_, '_>> = turns(context, &all, &locks, &holds);
    let mut kept = keep::wish(context, &config, &acting, &wanted, &args.keep)?;
    kept.ask.acknowledges_loss = !args.by_itself;
    let entered = enter_all(&turns, args.wait.wait, |turn, wait| {
        turn.enter(&kept.ask, kept.telling(wanted), wait)
    })?;
    let mut done = keep::leave_all(&turns, &acting, entered, &kept)?;
    let done = match done.len() {
        1 => done.remove(0),
        _ => Done::of_each(done),
    };
    Ok(warned_of_writeback(&all[0], done))
}
