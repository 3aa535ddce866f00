//! The lock that a session holds of the very worktree that it renames or removes.

use jvs_lock::hold::{Ask, HeldBefore, StakeKind};
use jvs_lock::record::renew_interval_ms;
use jvs_lock::worktrees::WorktreeError;
use jvs_lock::{Locks, Want};
use jvs_repo::code::{Code, Coded};
use jvs_repo::id::FencingToken;
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use serde_json::{Value, json};

use crate::command::lock::turn::LockTurn;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::keeper::{self, Order};
use crate::session::Acting;

/// Does what takes a worktree's name away from it, in a session that may hold it.
///
/// If it succeeds the hold is over. If it fails after the register was retired, the
/// worktree was given its next epoch, which nobody holds: it is taken again before
/// anybody who waits, for whom it was held before.
pub(super) fn retiring<T>(
    context: &Context<'_>,
    here: &Here,
    acting: &Acting,
    act: impl FnOnce(&Locks<'_>) -> Result<T, WorktreeError>,
) -> Result<T, Failure> {
    let Here { repo, worktree } = here;
    let policy = repo.config()?.lock;
    let locks = context.locks(repo.store(), policy, acting)?;
    let holds = context.holds(repo, worktree, acting)?;
    let turn = LockTurn { context, here, locks: &locks, holds: &holds };
    finish_restores_first(&turn, policy.lease_duration_ms)?;
    let before = locks.held_before_retiring(&holds)?;
    // Its record tells; afterwards it is of a hold that is over.
    let kept = before.is_some()
        && locks.inspect(worktree)?.record().is_some_and(|record| record.keeper.is_some());
    let error = match act(&locks) {
        Ok(done) => {
            // One that is made under this name later is another: nothing was taken. It is
            // done, whatever comes of this: at worst the session is asked once too often.
            let _ = holds.forget();
            return Ok(done);
        }
        Err(error) => error,
    };
    let Some(before) = before else { return Err(error.into()) };
    match locks.holds_after_failing(&holds, &before) {
        Ok(true) => return Err(error.into()),
        Ok(false) => {}
        Err(_) => return Err(Interrupted::new(error, worktree, &before, None).into()),
    }
    let again = take_again(&turn, acting, &before, kept).ok();
    Err(Interrupted::new(error, worktree, &before, again).into())
}

/// A restore of its files that was interrupted is finished while they have their name.
fn finish_restores_first(turn: &LockTurn<'_, '_>, lease_ms: u64) -> Result<(), Failure> {
    let LockTurn { here, locks, holds, .. } = turn;
    if !locks.inspect(&here.worktree).is_ok_and(|view| view.restoring) {
        return Ok(());
    }
    let entered = turn.at_once(&Ask::plain(StakeKind::Work), Want::lease(lease_ms))?;
    locks.leave(holds, &entered.stake)?;
    Ok(())
}

/// Takes what was held before, with what it rested on, and a keeper if it had one.
fn take_again(
    turn: &LockTurn<'_, '_>,
    acting: &Acting,
    before: &HeldBefore,
    kept: bool,
) -> Result<FencingToken, Failure> {
    let LockTurn { context, here, locks, holds } = turn;
    let policy = here.repo.config()?.lock;
    let want = Want {
        renewed_every_ms: kept.then(|| renew_interval_ms(before.lease_ms, &policy)),
        ..Want::lease(before.lease_ms)
    };
    // Not in turn: those who wait came after the hold that goes on.
    let entered = turn.with(&Ask::plain(StakeKind::Work), want, &mut |want| {
        locks.acquire(&here.worktree, want)
    })?;
    let ticket = entered.lease.ticket();
    let term = ticket.term;
    let token = entered.lease.token();
    holds.carry_over(before, term)?;
    if kept {
        if let Some(keeper) = keeper::find(context, here, before.term)? {
            keeper.stand_down();
        }
        let order =
            Order { here, session: &acting.session, ticket, confirmed: None, attached: None };
        keeper::start(context, &order, None)?.abandon();
    }
    locks.leave(holds, &entered.stake)?;
    Ok(token)
}

/// It failed, and the lock that the session held ended on the way.
#[derive(Debug, thiserror::Error)]
#[error(
    "{error}; this session's lock of '{worktree}' (fencing token {before}) ended{}",
    taken_again(*again)
)]
struct Interrupted {
    #[source]
    error: WorktreeError,
    worktree: WorktreeName,
    before: FencingToken,
    again: Option<FencingToken>,
}

impl Interrupted {
    fn new(
        error: WorktreeError,
        worktree: &WorktreeName,
        before: &HeldBefore,
        again: Option<FencingToken>,
    ) -> Self {
        Interrupted { error, worktree: worktree.clone(), before: before.term.token, again }
    }
}

fn taken_again(token: Option<FencingToken>) -> String {
    match token {
        Some(token) => format!(" and was taken again: fencing token {token}"),
        None => ", and could not be taken again".to_owned(),
    }
}

impl Coded for Interrupted {
    fn code(&self) -> Code {
        self.error.code()
    }

    fn next(&self) -> Option<Next> {
        let take = || Next::AcquireBack(self.worktree.clone());
        self.error.next().or_else(|| self.again.is_none().then(take))
    }

    fn details(&self) -> Option<Value> {
        let mut details = self.error.details().unwrap_or_else(|| json!({}));
        details["held_token"] = json!(self.before);
        details["fencing_token"] = json!(self.again);
        Some(details)
    }
}
