//! What happens to a lock that a command has just taken: a stake is left in the
//! hold, and a keeper renews it for as long as there is one; or it simply lasts.

use jvs_lock::hold::{Ask, Entered, Stake, StakeKind, Who};
use jvs_lock::kept::With;
use jvs_lock::{Lease, Want};
use jvs_repo::config::Config;
use jvs_repo::proc;

use super::turn::LockTurn;
use super::{look, report};
use crate::args::KeepArgs;
use crate::context::Context;
use crate::fail::Failure;
use crate::keeper::{self, FoundKeeper, Order, Started};
use crate::render::Done;
use crate::session::Acting;
use crate::tree::TreeMark as RunMark;

/// For whom a lock is asked for, and until when.
pub(super) struct KeepRequest {
    pub(super) ask: Ask,
    /// For how long it is kept renewed, if it is.
    for_ms: Option<u64>,
    /// What observers are told of that.
    told: Option<jvs_lock::kept::Kept>,
    /// Nobody said for how long, and nothing ends with the session.
    yields: bool,
    /// Somebody said until when.
    bounded: bool,
}

impl KeepRequest {
    /// The same wish, telling for how long.
    pub(super) fn telling<'w>(&'w self, wanted: Want<'w>) -> Want<'w> {
        Want { kept: self.told.as_ref(), ..wanted }
    }
}

/// What the user said about that, before anything is taken.
pub(super) fn wish(
    context: &Context<'_>,
    config: &Config,
    acting: &Acting,
    wanted: &Want<'_>,
    args: &KeepArgs,
) -> Result<KeepRequest, Failure> {
    let identity = acting.session.identity();
    let asker = || -> Result<_, Failure> {
        let follow = keeper::follow(context, args.while_)?;
        Ok(follow.map(|process| Who { pid: process.pid, start: process.start_time }))
    };
    let (by, with, for_ms) = if args.no_keeper {
        // What lasts by itself is promised to anybody.
        (asker().unwrap_or(None), None, None)
    } else {
        let usual = || config.ttl.get(identity.environment, identity.purpose);
        let who = asker()?;
        (who, who, Some(args.for_.unwrap_or_else(usual).as_ms()))
    };
    let now = context.clock().now();
    let lasts_ms = Some(for_ms.unwrap_or(wanted.lease_ms));
    let idle_ms = Some(config.lock.idle_release_ms).filter(|ms| *ms > 0);
    let yields = for_ms.is_some() && args.for_.is_none() && with.is_none() && idle_ms.is_some();
    let told = for_ms.map(|ms| jvs_lock::kept::Kept {
        until: Some(now.wall.plus(ms).rfc3339()),
        with: with.map(|who| match proc::leads_terminal(who.pid) {
            true => With::Terminal,
            false => With::Process { pid: who.pid },
        }),
        idle_ms: idle_ms.filter(|_| yields),
    });
    let ask = Ask { with, lasts_ms, acknowledges_loss: true, by, ..Ask::plain(StakeKind::Acquire) };
    let bounded = args.for_.is_some() || args.while_.is_some();
    Ok(KeepRequest { ask, for_ms, told, yields, bounded })
}

/// A lock that is about to be answered for.
struct Begun<'r> {
    lease: Lease<'r>,
    /// `None` if a command handed it down, which keeps it and releases it.
    left: Option<Left>,
}

/// What is left of a command that has ended: its lock lasts by itself, or is kept.
struct Left {
    stake: Stake,
    /// The keeper that was there before.
    found: Option<FoundKeeper>,
    keeper: Option<Started>,
}

/// Leaves the stake there, with a keeper if it is to be kept, and answers for the
/// command.
pub(super) fn leave(
    turn: &LockTurn<'_, '_>,
    acting: &Acting,
    entered: Entered<'_>,
    kept: &KeepRequest,
) -> Result<Done, Failure> {
    let mut done = leave_all(std::slice::from_ref(turn), acting, vec![entered], kept)?;
    Ok(done.remove(0))
}

/// The same for several, of which all are kept or none is.
pub(super) fn leave_all(
    turns: &[LockTurn<'_, '_>],
    acting: &Acting,
    entered: Vec<Entered<'_>>,
    kept: &KeepRequest,
) -> Result<Vec<Done>, Failure> {
    let stakes: Vec<Stake> = entered.iter().map(|one| one.stake).collect();
    let mut begun = Vec::new();
    for (turn, one) in turns.iter().zip(entered) {
        match begin(turn, acting, one, kept) {
            Ok(one) => begun.push(one),
            Err(failure) => {
                // They leave like any other: a lock is released if it was the last.
                for (turn, stake) in turns.iter().zip(&stakes) {
                    let _ = turn.locks.leave(turn.holds, stake);
                }
                return Err(failure);
            }
        }
    }
    turns.iter().zip(begun).map(|(turn, one)| finish(turn, acting, one, kept)).collect()
}

fn begin<'r>(
    turn: &LockTurn<'_, '_>,
    acting: &Acting,
    entered: Entered<'r>,
    kept: &KeepRequest,
) -> Result<Begun<'r>, Failure> {
    let LockTurn { context, here, holds, .. } = turn;
    let Entered { mut lease, stake, joined } = entered;
    let handed = context.handed_token(&here.worktree)?;
    if handed.is_some_and(|handed| handed.token == lease.token()) {
        holds.remove(&stake);
        return Ok(Begun { lease, left: None });
    }
    let found = keeper::find(context, here, lease.term())?;
    let keeper = match kept.for_ms {
        Some(_) => {
            if kept.yields {
                holds.yields_when_idle(&stake)?;
            }
            let (session, ticket) = (&acting.session, lease.ticket());
            // What a record says of a hold that was there before, the keeper writes anew.
            let confirmed = lease.confirmed().filter(|_| !joined);
            let order = Order { here, session, ticket, confirmed, attached: None };
            lease.rest_the_log();
            let starting = keeper::spawn(context, &order, None)?;
            // Best effort, like everything in the record.
            if !joined {
                let _ = lease.set_keeper(Some(starting.as_recorded(session)));
            }
            Some(starting.until_it_keeps(&order)?)
        }
        None => None,
    };
    Ok(Begun { lease, left: Some(Left { stake, found, keeper }) })
}

fn finish(
    turn: &LockTurn<'_, '_>,
    acting: &Acting,
    Begun { mut lease, left }: Begun<'_>,
    KeepRequest { ask, for_ms, told, bounded, .. }: &KeepRequest,
) -> Result<Done, Failure> {
    let LockTurn { context, here, locks, holds } = turn;
    let how = lease.how();
    let Some(Left { mut stake, found, keeper: started }) = left else {
        let done = report::held(context, &lease, how);
        return Ok(match bounded {
            true => done.with_warning(
                "the enclosing command keeps the lock and releases it when it ends: --for and \
                 --while have no effect here"
                    .to_owned(),
            ),
            false => done,
        });
    };
    let (Some(started), Some(for_ms)) = (started, *for_ms) else {
        locks.answer(holds, ask, &mut stake)?;
        match found {
            // Others of the session were promised more than this lease.
            found if holds.is_needed(&stake)? => {
                if found.is_none() {
                    keeper::ensure(context, here, &acting.session, holds, &lease);
                }
            }
            found => {
                if let Some(keeper) = found {
                    keeper.stand_down();
                }
                if lease
                    .record()
                    .is_some_and(|record| record.keeper.is_some() || record.kept.is_some())
                {
                    let _ = lease.set_keeper(None);
                }
            }
        }
        return Ok(report::held(context, &lease, how));
    };
    // One that was started for another stake would look at the stakes only in time, and
    // one is enough; but there is one at every moment.
    if let Some(keeper) = found {
        keeper.stand_down();
    }
    // The keeper goes on with it and speaks for the session now. Before the answer, for
    // what was lost is forgotten with that.
    let view = if context.output().is_json() { Some(look(context, here)?) } else { None };
    locks.answer(holds, ask, &mut stake)?;
    let pid = started.pid();
    let kept = told.as_ref().map(|told| report::KeptRenewed { for_ms, told, pid, view });
    let done = report::held_as(context, &lease, how, kept.as_ref());
    if context.variable(RunMark::VARIABLE).is_some() {
        // Its keeper is one of the processes that are ended then.
        return Ok(done.with_warning(
            "the enclosing command ends what was started in it when it ends, and this lock is \
             released then, unless that is `jvs run --leave-background`"
                .to_owned(),
        ));
    }
    Ok(done)
}
