//! What happens to a lock that a command has just taken: a stake is left in the
//! hold, and a keeper renews it for as long as there is one; or it simply lasts.

use jvs_lock::Want;
use jvs_lock::hold::{Ask, Entered, Kind, Over, Who};
use jvs_repo::config::Config;
use serde_json::json;

use super::turn::Turn;
use super::{look, report};
use crate::args::KeepArgs;
use crate::context::Context;
use crate::fail::Failure;
use crate::keeper::{self, Order};
use crate::render::Done;
use crate::session::Acting;

/// For whom a lock is asked for, and until when.
pub(super) struct Kept {
    pub(super) ask: Ask,
    /// For how long it is kept renewed, if it is.
    for_ms: Option<u64>,
}

/// What the user said about that, before anything is taken.
pub(super) fn wish(
    context: &Context<'_>,
    config: &Config,
    acting: &Acting,
    wanted: &Want<'_>,
    args: &KeepArgs,
) -> Result<Kept, Failure> {
    let identity = acting.session.identity();
    let (with, for_ms) = if args.no_keeper {
        (None, None)
    } else {
        let usual = || config.ttl.get(identity.environment, identity.purpose);
        let follow = keeper::follow(context, args.while_)?;
        let who = follow.map(|process| Who { pid: process.pid, start: process.start_time });
        (who, Some(args.for_.unwrap_or_else(usual).as_ms()))
    };
    let ends = context.clock().now().boot.plus(for_ms.unwrap_or(wanted.lease_ms));
    let over = Over { with, at: Some(ends) };
    Ok(Kept { ask: Ask { over, knows: true, ..Ask::plain(Kind::Acquire) }, for_ms })
}

/// Leaves the stake there, with a keeper if it is to be kept, and answers for the
/// command.
pub(super) fn leave(
    turn: &Turn<'_, '_>,
    acting: &Acting,
    entered: Entered<'_>,
    Kept { ask, for_ms }: &Kept,
) -> Result<Done, Failure> {
    let Turn { context, here, locks, holds } = turn;
    let Entered { mut lease, mut stake, .. } = entered;
    let how = lease.how();
    let handed = context.handed_token(&here.worktree)?;
    if handed.is_some_and(|(token, _)| token == lease.token()) {
        // The command that handed it down keeps it, and gives it back.
        holds.remove(&stake);
        return Ok(report::held(context, &lease, how));
    }
    // One that was started for another stake would look at the stakes only in time;
    // this one looks at once.
    keeper::stand_down(context, here)?;
    let Some(for_ms) = *for_ms else {
        if lease.record().is_some_and(|record| record.keeper.is_some()) {
            let _ = lease.set_keeper(None);
        }
        locks.answer(holds, ask, &mut stake)?;
        return Ok(report::held(context, &lease, how));
    };
    let order = Order { here, session: &acting.session, ticket: lease.ticket(), attached: None };
    let started = match keeper::start(context, &order, None) {
        Ok(started) => started,
        Err(failure) => {
            // It leaves like any other: the lock is given back if it was the last.
            let _ = locks.leave(holds, &stake);
            return Err(failure);
        }
    };
    locks.answer(holds, ask, &mut stake)?;
    let mut done = report::held_as(context, &lease, how, Some(for_ms));
    if !context.output().is_json() {
        return Ok(done);
    }
    // The keeper has renewed it and speaks for the session now.
    let view = look(context, here)?;
    let kept_until = context.clock().now().wall.plus(for_ms);
    done.amend(|data| {
        data["record"] = report::seen(&view)["record"].take();
        data["remaining_ms"] = json!(view.remaining_ms());
        data["keeper"] = json!({ "pid": started.pid(), "alive": true });
        data["kept_until"] = json!(kept_until.rfc3339());
    });
    Ok(done)
}
