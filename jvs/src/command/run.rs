//! `jvs run` and `jvs shell`: a command under a lock.
//!
//! The keeper holds the lease; this process has a guardian start the command, passes
//! signals on, and waits until everything that was started is gone. So a command that
//! is stopped with Ctrl-Z keeps its lock, and one whose `jvs run` was killed is ended
//! by the keeper.

mod child;
mod contain;
mod greeting;
mod guardian;
mod terminal;
mod trouble;
mod watch;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use jvs_kernel::signals::Signals;
use jvs_lock::record::renew_interval_ms;
use jvs_lock::{How, LockError, Want};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_snapshot::descriptor::check_note;
use rustix::process::Signal;
use serde_json::{Value, json};

use self::child::{Ended, Pipe};
use self::trouble::{CannotRun, LostLease};
use self::watch::{Outcome, Watch};
use super::lock::{keepable, lockable, turn};
use super::snapshot;
use crate::alarm::Alarm;
use crate::args::{GuardArgs, OnLoss, RunArgs, ShellArgs};
use crate::context::Context;
use crate::fail::{Failure, Stuck, WrongUsage};
use crate::keeper::{self, Attached, Order, Pace, Said, Started, Tell};
use crate::render::Done;
use crate::tree::listed;

/// Passed on to the child's process group.
const FORWARDED: [Signal; 7] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
];
/// How long the keeper may take to give the lock back.
const RELEASE_MS: u64 = 15_000;

pub(crate) fn command(context: &Context<'_>, args: &RunArgs) -> Result<Done, Failure> {
    run(context, &args.guard, &args.command, false)
}

pub(crate) fn shell(context: &Context<'_>, args: &ShellArgs) -> Result<Done, Failure> {
    run(context, &args.guard, &[context.shell()], true)
}

fn run(
    context: &Context<'_>,
    guard: &GuardArgs,
    words: &[OsString],
    shell: bool,
) -> Result<Done, Failure> {
    contain::check(guard.contain, guard.leave_background)?;
    let here = context.here()?;
    let config = here.repo.config()?;
    lockable(&here)?;
    let acting = context.session(guard.purpose)?;
    let locks = guard.watch.apply(context.locks(here.repo.store(), config.lock, &acting)?);
    let signals = Signals::catch(&FORWARDED).map_err(|error| Stuck::new("catch signals", error))?;
    let lease_ms = guard.lease.map_or(config.lock.lease_duration_ms, |lease| lease.as_ms());
    keepable(lease_ms)?;
    if let Some(problem) = guard.snapshot.as_deref().and_then(|note| check_note(note).err()) {
        return Err(WrongUsage::new(problem, "a note is text of up to 4096 bytes").into());
    }
    let want = Want {
        note: guard.note.as_deref(),
        renewed_every_ms: Some(renew_interval_ms(lease_ms, &config.lock)),
        ..Want::lease(lease_ms)
    };
    let orders = Pipe::new().map_err(|error| Stuck::new("make a pipe", error))?;
    let lease = match guard.wait.wait {
        Some(at_most) => turn::in_line(context, &here, &locks, want, at_most, &signals)?,
        None => turn::at_once(context, &here, &locks, want)?,
    };
    let guest = lease.how() == How::Refreshed;
    let life = orders.write.as_fd();
    let order = Order {
        here: &here,
        session: &acting.session,
        ticket: lease.ticket(),
        for_ms: None,
        follow: Vec::new(),
        attached: Some(Attached { on_loss: guard.on_loss, life, guest }),
    };
    let keeper = match keeper::start(context, &order, None) {
        Ok(keeper) => keeper,
        Err(failure) => {
            if !guest {
                let _ = lease.release();
            }
            return Err(failure);
        }
    };
    let token = lease.token();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command.env("JVS_SESSION_ID", acting.session.id().as_str());
    command.env("JVS_WORKTREE", here.worktree.as_str());
    command.env("JVS_FENCING_TOKEN", token.to_string());
    command.env("JVS_FENCING_EPOCH", lease.ticket().epoch.to_string());
    if shell {
        greeting::mark_prompt(context, &mut command, &here.worktree);
    }
    if context.output().is_json() {
        // Standard output stays one JSON document.
        command.stdout(streams_of_complaints()?);
    }
    let started = contain::start(&mut command, guard.contain, guard.leave_background, &orders);
    let (mut child, passed_over) = match started {
        Ok(started) => started,
        Err(failure) => {
            give_back(keeper)?;
            return Err(failure);
        }
    };
    let contained = child.tree().hold.word();
    if guard.verbose {
        greeting::tell_containment(context, child.tree(), &passed_over);
    }
    if shell {
        greeting::begin(context, &here.worktree, token, &lease);
    }
    // Before it can do anything: there is no moment in which it runs and the keeper
    // would not end it.
    keeper.tell(&Tell::Tree(child.tree().clone()));
    let let_go = child.let_go();
    let mut watch = Watch {
        context,
        order: &order,
        on_loss: guard.on_loss,
        pace: Pace::of(lease_ms),
        until: keeper.until(),
        keeper: Some(keeper),
        lost: None,
        leave: guard.leave_background,
        tells: shell,
        orders: &orders,
        ending: None,
    };
    let_go.map_err(|error| Stuck::new("let the command go", error))?;
    let Outcome { ended, swept, left } = watch.until_all_have_ended(&mut child, &signals)?;
    let not_run = child.not_run();
    child.reap();
    if let (Some(error), None) = (not_run, &watch.lost) {
        if let Some(keeper) = watch.keeper.take() {
            give_back(keeper)?;
        }
        let command = words[0].to_string_lossy().into_owned();
        return Err(CannotRun { command, error }.failure());
    }
    let all_ended = left.is_empty() || guard.leave_background;
    let snapshot = match &guard.snapshot {
        Some(note) if ended == Ended::Exit(0) && watch.lost.is_none() && all_ended => {
            // The very hold that the child ran under, or none.
            let lease = locks.resume(&here.worktree, Some(&order.ticket));
            Some(lease.map_err(Failure::from).and_then(|mut lease| {
                snapshot::under_lease(context, &here, &locks, &acting, &mut lease, note)
            }))
        }
        _ => None,
    };
    // Whoever was overruled between two renewals must not pass for one who held.
    let overruled = match locks.resume(&here.worktree, Some(&order.ticket)) {
        Err(error @ (LockError::Fenced { .. } | LockError::Retired { .. })) => {
            Some(error.to_string()).filter(|_| watch.lost.is_none())
        }
        _ => None,
    };
    let released = match watch.keeper.take() {
        Some(keeper) if watch.lost.is_none() && all_ended => Some(give_back(keeper)?),
        Some(keeper) if watch.lost.is_none() => {
            // It goes on ending them, and gives the lock back when they have.
            keeper.abandon();
            Some(Some(format!("{} cannot be ended", listed(&left))))
        }
        Some(keeper) => {
            keeper.reap();
            None
        }
        None => None,
    };
    let exit = ended.exit();
    let stopped = watch.lost.is_some();
    let lost = watch.lost.clone().or(overruled);
    if let (Some(why), OnLoss::Stop) = (&lost, guard.on_loss) {
        let (worktree, why) = (here.worktree, why.clone());
        return Err(LostLease { worktree, why, exit, stopped, left }.into());
    }
    greeting::tell_background(context, guard.leave_background, &swept, &left);
    if shell {
        greeting::end(context, &here.worktree, guest, &lost, &released);
    }
    let mut done = snapshot.unwrap_or_else(|| Ok(Done::new(Value::Null)))?.with_exit(exit);
    done.amend(|snapshot| {
        *snapshot = json!({
            "worktree": here.worktree,
            "fencing_token": token,
            "exit": exit,
            "signal": ended.signal(),
            "lost": lost,
            "contained": contained,
            "background_ended": swept,
            "background_left": left,
            "snapshot": snapshot.take(),
        });
    });
    if let (Some(why), false) = (&lost, stopped) {
        done = done.with_warning(format!("the lock was lost: {why}"));
    }
    Ok(match released.flatten() {
        Some(problem) => done.with_warning(format!("the lock was not given back: {problem}")),
        None => done,
    })
}

/// Where complaints go, for a command whose words must not be mixed with ours.
fn streams_of_complaints() -> Result<Stdio, Failure> {
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    Ok(Stdio::from(stderr.map_err(|error| Stuck::new("hand on the standard error", error))?))
}

/// Has the keeper give the lock back. Answers what went wrong, if anything did.
fn give_back(mut keeper: Started) -> Result<Option<String>, Failure> {
    keeper.tell(&Tell::Release);
    let alarm = Alarm::new().map_err(|error| Stuck::new("set a timer", error))?;
    let deadline = SystemClock.now().boot.plus(RELEASE_MS);
    loop {
        let [spoke] = alarm
            .wait([Some(keeper.ear())], Some(deadline))
            .map_err(|error| Stuck::new("wait for the keeper", error))?;
        if !spoke {
            return Ok(Some("its keeper does not answer; the lease will run out".to_owned()));
        }
        let (said, gone) = keeper.hear();
        for word in said {
            match word {
                Said::Released => {
                    keeper.reap();
                    return Ok(None);
                }
                Said::Failed(why) | Said::Lost(why) | Said::NotBegun(_, why) => {
                    return Ok(Some(why));
                }
                Said::Ready(_) | Said::Renewed(_) => {}
            }
        }
        if gone {
            return Ok(Some("its keeper is gone; the lease will run out".to_owned()));
        }
    }
}
