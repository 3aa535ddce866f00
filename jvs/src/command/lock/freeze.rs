//! `jvs lock freeze` and `jvs lock unfreeze`.

use jvs_lock::span::Span;
use jvs_lock::state::State;
use jvs_lock::{FreezeError, StatusWord, Want};
use jvs_repo::name::WorktreeName;
use jvs_repo::proc;

use super::{lockable, or_no_such_worktree, reasoned, turn, warned_of_writeback};
use crate::answer::lock::{Freeze, Frozen};
use crate::args::{FreezeArgs, UnfreezeArgs};
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn freeze(context: &Context<'_>, args: &FreezeArgs) -> Result<Done, Failure> {
    reasoned(&args.reason, "freezing a worktree needs a reason")?;
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let config = repo.config()?;
    lockable(&here)?;
    let acting = context.session(None)?;
    let me = acting.session.identity();
    let holds_of = context.holds_of(repo, worktree, &acting.private, me)?;
    let stakes = |state: &State| holds_of(state.holder()?).is_relied_on(state);
    let locks = context.locks(repo.store(), config.lock, &acting)?.asking(&stakes);
    let locks = args.watch.apply(locks).ruled_by(config.reclaim.clone(), &proc::process_stat);
    // One who waits watches in line.
    let first = if args.wait.wait.is_some() { locks.at_once() } else { locks.clone() };
    let for_ms = args.for_.as_ms();
    let or_missing = |error| or_no_such_worktree(repo, worktree, error);
    let frozen = match first.freeze(worktree, for_ms, &args.reason, args.force) {
        Err(FreezeError::Take(error)) if error.is_worth_waiting() => {
            let Some(at_most) = args.wait.wait else { return Err(error.into()) };
            let want = Want::lease(config.lock.lease_duration_ms);
            let holds = context.holds(repo, worktree, &acting)?;
            // Next in line; then from one's own hold, so that nobody gets in between.
            let lease = turn::wait_in_line(context, &here, &locks, &holds, want, at_most)?;
            match lease.freeze(for_ms, &args.reason) {
                Ok(state) => state,
                Err(failed) => {
                    let _ = failed.lease.release();
                    return Err(failed.error.into());
                }
            }
        }
        other => other.map_err(or_missing)?,
    };
    let now = context.clock().now().wall;
    let until = frozen.hold.claim().map_or(now.plus(for_ms), |claim| claim.expires);
    let freeze = Freeze {
        expires_at: until.into(),
        remaining_ms: for_ms,
        reason: Some(args.reason.clone()),
    };
    let answer = answer(worktree, StatusWord::Frozen, &frozen, Some(freeze));
    let (span, until) = (Span(for_ms), until.shown());
    let text = format!("Froze worktree {worktree} for {span}, until {until}\n");
    Ok(warned_of_writeback(&here, Done::new(&answer).with_text(text)))
}

pub(super) fn unfreeze(context: &Context<'_>, args: &UnfreezeArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let acting = context.session(None)?;
    let config = repo.config()?;
    let locks = context.locks(repo.store(), config.lock, &acting)?;
    let locks = locks.ruled_by(config.reclaim, &proc::process_stat);
    let state = locks
        .unfreeze(worktree, &args.reason)
        .map_err(|error| or_no_such_worktree(repo, worktree, error))?;
    let answer = answer(worktree, StatusWord::Free, &state, None);
    Ok(Done::new(&answer).with_text(format!("Lifted the freeze of worktree {worktree}\n")))
}

fn answer(
    worktree: &WorktreeName,
    word: StatusWord,
    state: &State,
    freeze: Option<Freeze>,
) -> Frozen {
    Frozen {
        worktree: worktree.clone(),
        state: word,
        mine: false,
        head: state.head,
        fencing_token: state.token,
        freeze,
    }
}
