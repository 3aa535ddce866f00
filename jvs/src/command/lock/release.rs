//! `jvs lock release`.

use std::os::fd::{AsFd, OwnedFd};

use jvs_lock::LockError;
use jvs_lock::hold::{HoldRefusal, Holds, Kind};
use jvs_repo::clock::{Clock, SystemClock};
use rustix::process::{Signal, pidfd_send_signal};
use serde_json::json;

use super::resume;
use crate::alarm::Alarm;
use crate::args::ReleaseArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::keeper;
use crate::render::Done;
use crate::tree::handle;

/// How long a command may take to end when it is asked to.
const ASKED_MS: u64 = 5_000;
/// How long it may take when it is made to.
const MADE_MS: u64 = 2_000;

pub(super) fn run(context: &Context<'_>, args: &ReleaseArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let Here { repo, worktree } = &here;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), repo.config()?.lock, &acting)?;
    let holds = context.holds(repo, worktree, &acting)?;
    // A token that was handed down names the hold that is meant.
    let lease = resume(context, &locks, &here)?;
    let (token, head) = (lease.token(), lease.head());
    drop(lease);
    let released = match locks.release_as_told(&holds) {
        Err(LockError::Hold(refusal)) if args.force => {
            if !matches!(*refusal, HoldRefusal::Relied { .. }) {
                return Err(LockError::Hold(refusal).into());
            }
            end_commands(&holds)?;
            match locks.release_as_told(&holds) {
                // The last of them gave it back.
                Err(LockError::NotHeld { view }) if view.state.token == token => Ok(view.state),
                other => other,
            }
        }
        other => other,
    };
    released?;
    // It would find out by itself, at its next renewal.
    keeper::stand_down(context, &here)?;
    let data = || {
        json!({
            "worktree": worktree,
            "state": "free",
            "mine": false,
            "remaining_ms": 0,
            "head": head,
            "fencing_token": token,
        })
    };
    Ok(context.done(data).with_text(format!("Released worktree {worktree}\n")))
}

/// Ends the commands that hold stakes: asked first, then made to. Those in another
/// PID namespace cannot be ended from here, and go on being refused for.
fn end_commands(holds: &Holds<'_>) -> Result<(), Failure> {
    let me = std::process::id();
    let scan = holds.scan()?;
    let commands: Vec<OwnedFd> = holds
        .alive(&scan)
        .into_iter()
        .filter(|stake| stake.kind != Kind::Acquire || !stake.answered)
        .filter(|stake| stake.pid_namespace == jvs_repo::proc::pid_namespace())
        .filter(|stake| stake.maker.pid != me)
        .filter_map(|stake| handle(stake.maker.pid, stake.maker.start))
        .collect();
    for (signal, patience_ms) in [(Signal::TERM, ASKED_MS), (Signal::KILL, MADE_MS)] {
        for command in &commands {
            let _ = pidfd_send_signal(command, signal);
        }
        let deadline = SystemClock.now().boot.plus(patience_ms);
        let mut all = true;
        for command in &commands {
            let waited =
                Alarm::new().and_then(|alarm| alarm.wait([Some(command.as_fd())], Some(deadline)));
            all &= waited.is_ok_and(|[ended]| ended);
        }
        if all {
            break;
        }
    }
    Ok(())
}
