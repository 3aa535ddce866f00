//! `jvs run` and `jvs shell`: a command under a lock.
//!
//! The keeper holds the lease; this process only starts the child, passes
//! signals on, and waits. So a child that is stopped with Ctrl-Z keeps its
//! lock, and a child whose `jvs run` was killed is ended by the keeper.

mod child;
mod terminal;

use std::ffi::OsString;

use jvs_kernel::signals::Signals;
use jvs_lock::{How, Want};
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::code::{Code, Coded};
use jvs_repo::name::WorktreeName;
use jvs_snapshot::descriptor::check_note;
use rustix::process::Signal;
use serde_json::{Value, json};

use self::child::{Child, Ended};
use super::lock::{keepable, lockable, turn};
use super::snapshot;
use crate::alarm::Alarm;
use crate::args::{GuardArgs, OnLoss, RunArgs, ShellArgs};
use crate::context::Context;
use crate::fail::{Failure, Stuck, WrongUsage};
use crate::keeper::{self, Attached, Order, Said, Started, Tell};
use crate::render::Done;

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
/// How long the group may take to end when there is no keeper left to end it.
const GRACE_MS: u64 = 2_000;

pub(crate) fn command(context: &Context<'_>, args: &RunArgs) -> Result<Done, Failure> {
    run(context, &args.guard, &args.command)
}

pub(crate) fn shell(context: &Context<'_>, args: &ShellArgs) -> Result<Done, Failure> {
    run(context, &args.guard, &[context.shell()])
}

fn run(context: &Context<'_>, guard: &GuardArgs, words: &[OsString]) -> Result<Done, Failure> {
    let here = context.here()?;
    let config = here.repo.config()?;
    lockable(&here)?;
    let acting = context.session(guard.purpose)?;
    let locks = context.locks(here.repo.store(), config.lock, &acting)?;
    let caught: Vec<Signal> = FORWARDED.into_iter().chain([Signal::CHILD]).collect();
    let signals = Signals::catch(&caught).map_err(|error| Stuck::new("catch signals", error))?;
    let lease_ms = guard.lease.map_or(config.lock.lease_duration_ms, |lease| lease.as_ms());
    keepable(lease_ms)?;
    if let Some(problem) = guard.snapshot.as_deref().and_then(|note| check_note(note).err()) {
        return Err(WrongUsage::new(problem, "a note is text of up to 4096 bytes").into());
    }
    let want = Want { note: guard.note.as_deref(), ..Want::lease(lease_ms) };
    let lease = match guard.wait.wait {
        Some(at_most) => turn::in_line(context, &here, &locks, want, at_most, &signals)?,
        None => turn::at_once(context, &here, &locks, want)?,
    };
    let guest = lease.how() == How::Refreshed;
    let order = Order {
        here: &here,
        session: &acting.session,
        ticket: lease.ticket(),
        for_ms: None,
        follow: Vec::new(),
        attached: Some(Attached { on_loss: guard.on_loss, guest }),
    };
    let keeper = match keeper::start(context, &order) {
        Ok(keeper) => keeper,
        Err(failure) => {
            if !guest {
                let _ = lease.release();
            }
            return Err(failure);
        }
    };
    let token = lease.token();
    let child = keeper.voice().and_then(|voice| {
        Child::start(words, context.output().is_json(), voice, |command| {
            command.env("JVS_SESSION_ID", acting.session.id().as_str());
            command.env("JVS_WORKTREE", here.worktree.as_str());
            command.env("JVS_FENCING_TOKEN", token.to_string());
        })
    });
    let child = match child {
        Ok(child) => child,
        Err(error) => {
            give_back(keeper)?;
            let command = words[0].to_string_lossy().into_owned();
            return Err(CannotRun { command, error }.failure());
        }
    };
    let until = keeper.until();
    let mut watch = Watch {
        context,
        order: &order,
        on_loss: guard.on_loss,
        until,
        keeper: Some(keeper),
        lost: None,
    };
    let ended = watch.until_the_child_ends(child, &signals)?;
    let snapshot = match &guard.snapshot {
        Some(note) if ended == Ended::Exit(0) && watch.lost.is_none() => {
            // The very hold that the child ran under, or none.
            let lease = locks.resume(&here.worktree, Some(&order.ticket));
            Some(lease.map_err(Failure::from).and_then(|mut lease| {
                snapshot::under_lease(context, &here, &locks, &acting, &mut lease, note)
            }))
        }
        _ => None,
    };
    let released = match watch.keeper.take() {
        Some(keeper) if watch.lost.is_none() => Some(give_back(keeper)?),
        Some(keeper) => {
            keeper.reap();
            None
        }
        None => None,
    };
    let exit = ended.exit();
    if let (Some(why), OnLoss::Stop) = (&watch.lost, guard.on_loss) {
        return Err(LostLease { worktree: here.worktree, why: why.clone(), exit }.into());
    }
    let mut done = snapshot.unwrap_or_else(|| Ok(Done::new(Value::Null)))?.with_exit(exit);
    done.amend(|snapshot| {
        *snapshot = json!({
            "worktree": here.worktree,
            "fencing_token": token,
            "exit": exit,
            "signal": ended.signal(),
            "lost": watch.lost,
            "snapshot": snapshot.take(),
        });
    });
    Ok(match released.flatten() {
        Some(problem) => done.with_warning(format!("the lock was not given back: {problem}")),
        None => done,
    })
}

/// Has the keeper give the lock back. Answers what went wrong, if anything did.
fn give_back(mut keeper: Started) -> Result<Option<String>, Failure> {
    keeper.tell(Tell::Release);
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

/// Watches over a child and the lease that protects it.
struct Watch<'w> {
    context: &'w Context<'w>,
    order: &'w Order<'w>,
    on_loss: OnLoss,
    /// When belief ends, unless the keeper renews.
    until: BootMs,
    keeper: Option<Started>,
    lost: Option<String>,
}

impl Watch<'_> {
    fn until_the_child_ends(
        &mut self,
        mut child: Child,
        signals: &Signals,
    ) -> Result<Ended, Failure> {
        let alarm = Alarm::new().map_err(|error| Stuck::new("set a timer", error))?;
        loop {
            if let Some(ended) =
                child.look().map_err(|error| Stuck::new("wait for the child", error))?
            {
                return Ok(ended);
            }
            let ear = self.keeper.as_ref().map(Started::ear);
            let [_, spoke] = alarm
                .wait([Some(signals.fd()), ear], None)
                .map_err(|error| Stuck::new("wait for the child", error))?;
            while let Some(signal) = signals.next() {
                if FORWARDED.contains(&signal) {
                    child.signal(signal);
                }
            }
            if spoke {
                self.hear(&child);
            }
        }
    }

    /// Takes in what the keeper said.
    fn hear(&mut self, child: &Child) {
        let Some(keeper) = &mut self.keeper else { return };
        let (said, gone) = keeper.hear();
        for word in said {
            match word {
                Said::Renewed(until) | Said::Ready(until) => self.until = until,
                // With `stop` the keeper ends the group itself, in time.
                Said::Lost(why) => self.lose(why),
                Said::Released | Said::Failed(_) | Said::NotBegun(..) => {}
            }
        }
        if gone {
            if let Some(keeper) = self.keeper.take() {
                keeper.reap();
            }
            if self.lost.is_none() {
                self.without_a_keeper(child);
            }
        }
    }

    /// With `stop` the failure tells, once the child has ended.
    fn lose(&mut self, why: String) {
        if self.on_loss == OnLoss::Warn {
            self.context.output().aside(&format!("warning: the lock was lost: {why}"));
        }
        self.lost = Some(why);
    }

    /// The keeper was killed, or stood down for a release: another one goes on
    /// if the lease is still this session's, else it is lost.
    fn without_a_keeper(&mut self, child: &Child) {
        match keeper::start(self.context, self.order) {
            Ok(keeper) => {
                keeper.tell(Tell::Group(child.group().as_raw_nonzero().get()));
                self.until = keeper.until();
                self.keeper = Some(keeper);
            }
            Err(failure) => {
                self.lose(failure.message());
                if self.on_loss == OnLoss::Stop {
                    let patience = SystemClock.now().boot.plus(GRACE_MS);
                    keeper::stop_group(child.group(), patience.min(self.until));
                }
            }
        }
    }
}

/// The child could not be started.
#[derive(Debug)]
struct CannotRun {
    command: String,
    error: std::io::Error,
}

impl CannotRun {
    /// Ends as a shell does: 127 for what is not there, 126 for what is there and
    /// cannot be executed.
    fn failure(self) -> Failure {
        let exit = match self.error.kind() {
            std::io::ErrorKind::NotFound => 127,
            _ => 126,
        };
        Failure::from(self).exiting_with(exit)
    }
}

impl std::fmt::Display for CannotRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot run {}: {}", self.command, self.error)
    }
}

impl std::error::Error for CannotRun {}

impl Coded for CannotRun {
    fn code(&self) -> Code {
        Code::Io
    }

    fn hint(&self) -> Option<String> {
        Some("check the command's name and that it may be executed; the lock was given back".into())
    }
}

/// A child was stopped because its lease was lost.
#[derive(Debug)]
struct LostLease {
    worktree: WorktreeName,
    why: String,
    exit: u8,
}

impl std::fmt::Display for LostLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LostLease { worktree, why, .. } = self;
        write!(f, "the lock of worktree '{worktree}' was lost, so the command was stopped: {why}")
    }
}

impl std::error::Error for LostLease {}

impl Coded for LostLease {
    fn code(&self) -> Code {
        Code::FencingMismatch
    }

    fn hint(&self) -> Option<String> {
        Some(format!("see who has it and why: jvs lock why -w {}", self.worktree))
    }

    fn details(&self) -> Option<serde_json::Value> {
        Some(json!({ "worktree": self.worktree, "lost": self.why, "child_exit": self.exit }))
    }
}
