//! `jvs lock release`.

use std::os::fd::{AsFd, OwnedFd};

use jvs_lock::hold::{GiveBackError, Holds, Refused, Reliance, Relied, Stake, StakeKind};
use jvs_lock::{LeaseError, StatusWord};
use jvs_repo::audit::{EventKind, EventPhase, room};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::id::OpNonce;
use jvs_repo::proc;
use rustix::process::{Signal, pidfd_send_signal};

use super::resume;
use super::turn::{LockTurn, turns};
use crate::alarm::Alarm;
use crate::answer::lock::Released;
use crate::args::ReleaseArgs;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::keeper;
use crate::render::Done;
use crate::tree::handle;

/// How long a command may take to end when it is asked to.
const ASKED_MS: u64 = 5_000;
/// How long it may take when it is made to.
const MADE_MS: u64 = 2_000;

pub(super) fn run(context: &Context<'_>, args: &ReleaseArgs) -> Result<Done, Failure> {
    let all = context.all_here()?;
    let repo = &all[0].repo;
    let acting = context.session(None)?;
    let config = repo.config()?;
    let locks = context.locks(repo.store(), config.lock, &acting)?;
    let locks = locks.ruled_by(config.reclaim, &proc::process_stat);
    if args.force {
        all.iter().try_for_each(|here| locks.may_release_by_force(&here.worktree))?;
    }
    let holds = context.holds_of_all(&all, &acting)?;
    let turns = turns(context, &all, &locks, &holds);
    if let [turn] = &turns[..] {
        return release(turn, args.force);
    }
    // None is released if one of them is not there to be, or is needed.
    for turn in &turns {
        drop(resume(context, &locks, turn.here)?);
        if !args.force {
            locks.may_release(turn.holds)?;
        }
    }
    let mut done: Vec<Done> = Vec::new();
    for turn in &turns {
        match release(turn, args.force) {
            Ok(one) => done.push(one),
            Err(failure) => {
                // Somebody came in between: what was released is told.
                let given_back = turns.iter().take(done.len()).map(|turn| {
                    let worktree = &turn.here.worktree;
                    format!("warning: worktree {worktree} was already released\n")
                });
                return Err(failure.also_preceded_by(given_back.collect()));
            }
        }
    }
    Ok(Done::of_each(done))
}

fn release(turn: &LockTurn<'_, '_>, force: bool) -> Result<Done, Failure> {
    let LockTurn { context, here, locks, holds } = turn;
    let worktree = &here.worktree;
    // A token that was handed down names the hold that is meant.
    let lease = resume(context, locks, here)?;
    let (token, head, ticket) = (lease.token(), lease.head(), lease.ticket());
    let mut unseen = Vec::new();
    let released = match locks.release_resumed(holds, lease) {
        Err(GiveBackError::Relied(_)) if force => {
            // The last of them may release it itself: the log says beforehand why.
            let (op, why) =
                (OpNonce::random(context.entropy()), Some("by force: ends what relies on it"));
            match locks.note(EventKind::Release, EventPhase::Intent, op, Some(worktree), why, None)
            {
                Err(error) if !room::is_full(&error) => {
                    return Err(Stuck::new("write the audit log", error).into());
                }
                _ => end_commands(holds)?,
            }
            unseen = holds.drop_unseen(ticket.term)?;
            match locks.release_as_told(holds, &ticket) {
                // The last of them released it.
                Err(GiveBackError::Lost(LeaseError::NotHeld { view }))
                    if view.state.term() == ticket.term =>
                {
                    Ok(view.state)
                }
                Err(GiveBackError::Relied(relied)) => {
                    Err(GiveBackError::Relied(Relied { refused: Refused::Force, ..relied }))
                }
                other => other,
            }
        }
        other => other,
    };
    let released = released?;
    // It would find out by itself, at its next renewal.
    if let Some(keeper) = keeper::find(context, here, ticket.term)? {
        keeper.stand_down();
    }
    let answer = || Released {
        worktree: worktree.clone(),
        state: StatusWord::Free,
        mine: false,
        remaining_ms: 0,
        head,
        fencing_token: token,
    };
    let done = context.done(answer).with_text(format!("Released worktree {worktree}\n"));
    let done = unseen.iter().fold(done, |done, stake| {
        let what = Reliance::of(stake, None);
        done.with_warning(format!(
            "{what} of another PID namespace was not ended: it cannot be seen from here \
             whether it still runs"
        ))
    });
    Ok(match released.is_untold_release() {
        true => done.with_warning(
            "the volume is full: this could not be logged beforehand, and is in the audit log only if \
             there was room afterwards; the register shows it"
                .to_owned(),
        ),
        false => done,
    })
}

/// Ends the commands that hold stakes: asked first, then made to. What they started is
/// ended by their keepers, which then leave by themselves; one that does not is ended,
/// too. Those in another PID namespace cannot be ended from here.
fn end_commands(holds: &Holds<'_>) -> Result<(), Failure> {
    let scan = holds.scan()?;
    let alive = holds.alive(&scan);
    let (keepers, commands): (Vec<&Stake>, Vec<&Stake>) =
        alive.into_iter().partition(|stake| stake.kind == StakeKind::Guard);
    let commands =
        handles(commands.iter().filter(|it| it.kind != StakeKind::Acquire || !it.answered));
    let keepers = handles(keepers.iter());
    end(&commands, &[(Some(Signal::TERM), ASKED_MS), (Some(Signal::KILL), MADE_MS)]);
    end(&keepers, &[(None, ASKED_MS), (Some(Signal::KILL), MADE_MS)]);
    Ok(())
}

/// Handles on the processes of these stakes that can be seen from here.
fn handles<'s>(stakes: impl Iterator<Item = &'s &'s Stake>) -> Vec<OwnedFd> {
    let me = std::process::id();
    stakes
        .filter(|stake| stake.pid_namespace == proc::pid_namespace())
        .filter(|stake| stake.maker.pid != me)
        .filter_map(|stake| handle(stake.maker.pid, stake.maker.start))
        .collect()
}

/// Signals all of them, and waits, step by step until all have ended.
fn end(processes: &[OwnedFd], steps: &[(Option<Signal>, u64)]) {
    for (signal, patience_ms) in steps {
        for process in processes {
            if let Some(signal) = signal {
                let _ = pidfd_send_signal(process, *signal);
            }
        }
        let deadline = SystemClock.now().boot.plus(*patience_ms);
        let mut all = true;
        for process in processes {
            let waited =
                Alarm::new().and_then(|alarm| alarm.wait([Some(process.as_fd())], Some(deadline)));
            all &= waited.is_ok_and(|[ended]| ended);
        }
        if all {
            break;
        }
    }
}
