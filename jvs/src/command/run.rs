//! `jvs run` and `jvs shell`: a command under a lock.
//!
//! The keeper holds the lease; this process has a guardian start the command, passes
//! signals on, and waits until everything that was started is gone. So a command that
//! is stopped with Ctrl-Z keeps its lock, and one whose `jvs run` was killed is ended
//! by the keeper.

mod child;
mod contain;
mod greeting;
pub(crate) mod guardian;
mod held;
mod terminal;
mod trouble;
mod watch;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use jvs_kernel::signals::Signals;
use jvs_lock::hold::{Ask, StakeKind};
use jvs_lock::kept::Kept;
use jvs_lock::record::renew_interval_ms;
use jvs_lock::{Locks, Want};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_snapshot::descriptor::check_note;
use rustix::process::Signal;

use self::child::{Child, Ended, Pipe, RunControl};
use self::held::RunLock;
use self::trouble::{CannotRun, LostLease};
use self::watch::{Guarded, RunOutcome, RunWatch};
use super::lock::several::enter_all;
use super::lock::turn::turns;
use super::lock::{lockable, writeback_warning};
use super::snapshot;
use crate::alarm::Alarm;
use crate::answer::run::Ran;
use crate::answer::snapshot::TakenTold;
use crate::args::{GuardArgs, OnLoss, RunArgs, ShellArgs};
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck, WrongUsage};
use crate::hint::OwnNext;
use crate::keeper::{EndingPace, KeeperMessage, LeaseEnds, Started, StarterMessage};
use crate::render::Done;
use crate::session::Acting;
use crate::tree::{TreeMark, listed};

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
/// How long the keeper may take to release the lock.
const RELEASE_MS: u64 = 15_000;

pub(crate) fn command(context: &Context<'_>, args: &RunArgs) -> Result<Done, Failure> {
    run(context, &args.guard, &args.command, StakeKind::Run)
}

pub(crate) fn shell(context: &Context<'_>, args: &ShellArgs) -> Result<Done, Failure> {
    run(context, &args.guard, &[context.shell()], StakeKind::Shell)
}

fn run(
    context: &Context<'_>,
    guard: &GuardArgs,
    words: &[OsString],
    kind: StakeKind,
) -> Result<Done, Failure> {
    contain::check(guard.contain, guard.leave_background)?;
    let all = context.all_here()?;
    check(guard, &all)?;
    let config = all[0].repo.config()?;
    all.iter().try_for_each(lockable)?;
    let acting = context.session(guard.purpose)?;
    let locks = guard.watch.apply(context.locks(all[0].repo.store(), config.lock, &acting)?);
    let signals = Signals::catch_unless_ignored(&FORWARDED)
        .map_err(|error| Stuck::new("catch signals", error))?;
    let lease_ms = guard.lease.map_or(config.lock.lease_duration_ms, |lease| lease.as_ms());
    let want = Want {
        note: guard.note.as_deref(),
        renewed_every_ms: Some(renew_interval_ms(lease_ms, &config.lock)),
        kept: Some(&Kept::by_command()),
        ..Want::lease(lease_ms)
    };
    let orders = Pipe::new().map_err(|error| Stuck::new("make a pipe", error))?;
    let ends = LeaseEnds::new().map_err(|error| Stuck::new("make a file in memory", error))?;
    let holds = context.holds_of_all(&all, &acting)?;
    let turns = turns(context, &all, &locks, &holds);
    let entered = enter_all(&turns, guard.wait.wait, |turn, wait| {
        let handed = context.handed_token(&turn.here.worktree)?;
        let ask = Ask { joins: guard.join, handed, ..Ask::plain(kind) };
        match wait {
            Some(at_most) => turn.in_line(&ask, want, at_most, &signals),
            None => turn.at_once(&ask, want),
        }
    })?;
    writeback_warning(&all[0]).into_iter().for_each(|warning| context.warn(warning));
    let mut held = RunLock::all(&turns, entered);
    let life = orders.write.as_fd();
    let begun = held::begin(context, &acting, &mut held, guard.on_loss, life, &ends);
    let mark = TreeMark::new(context);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command.env("JVS_SESSION_ID", acting.session.id().as_str());
    command.env(TreeMark::VARIABLE, mark.beside_outer(context));
    held::hand_down(context, &mut command, &held)?;
    if kind == StakeKind::Shell {
        greeting::mark_prompt(context, &mut command, &held::names(&held));
    }
    if context.output().is_json() {
        // Standard output stays one JSON document.
        command.stdout(streams_of_complaints()?);
    }
    let pace = EndingPace::of(lease_ms);
    let on_loss = (guard.on_loss == OnLoss::Stop).then_some(pace);
    let reins = RunControl { orders: &orders, ends: &ends, pace: on_loss, mark: &mark };
    // The command waits to be let go. Until then the keepers have the time to begin that
    // this takes.
    let started = contain::start(&mut command, guard.contain, guard.leave_background, &reins);
    let leases = held::keep(context, &config.lock, &held, begun);
    let (child, passed_over, leases) = match (started, leases) {
        (Ok((child, passed_over)), Ok(leases)) => (child, passed_over, leases),
        (Err(failure), Ok(leases)) => {
            held::give_all_back(&held, leases)?;
            return Err(failure);
        }
        (started, Err(failure)) => {
            let _ = started.map(|(child, _)| child.reap());
            return Err(failure);
        }
    };
    held.iter_mut().try_for_each(|one| one.answer(&Ask::plain(kind)))?;
    if guard.verbose {
        greeting::tell_containment(context, child.tree(), &passed_over);
    }
    let program = &words[0];
    let under =
        Under { context, guard, kind, program, acting: &acting, locks: &locks, held: &held };
    under.run(child, leases, pace, &orders, &signals)
}

/// What can be said of the words before anything is touched.
fn check(guard: &GuardArgs, all: &[Here]) -> Result<(), Failure> {
    let Some(note) = guard.snapshot.as_deref() else { return Ok(()) };
    if let Err(problem) = check_note(note) {
        return Err(WrongUsage::new(problem, "a note is text of up to 4096 bytes").into());
    }
    if all.len() > 1 {
        let message =
            "--snapshot is for one worktree: with several, some could fail after others succeeded";
        let each = all.iter().map(|here| here.worktree.clone()).collect();
        return Err(WrongUsage::new(message, OwnNext::SnapshotEach(each)).into());
    }
    Ok(())
}

/// A command and the locks that it runs under.
struct Under<'u, 'r> {
    context: &'u Context<'u>,
    guard: &'u GuardArgs,
    kind: StakeKind,
    program: &'u OsString,
    acting: &'u Acting,
    locks: &'u Locks<'r>,
    held: &'u [RunLock<'u, 'r>],
}

impl Under<'_, '_> {
    /// Lets it go, waits until nobody of it is left, and gives the locks back.
    fn run(
        &self,
        mut child: Child,
        leases: Vec<Guarded<'_>>,
        pace: EndingPace,
        orders: &Pipe,
        signals: &Signals,
    ) -> Result<Done, Failure> {
        let Under { context, guard, held, .. } = *self;
        let shell = self.kind == StakeKind::Shell;
        let contained = child.tree().hold.word();
        if shell {
            held.iter().for_each(|one| greeting::begin(context, &one.lease));
        }
        // Before it can do anything: there is no moment in which it runs and a keeper
        // would not end it.
        for keeper in leases.iter().filter_map(|lease| lease.keeper.as_ref()) {
            keeper.tell(&StarterMessage::Tree(child.tree().clone()));
        }
        let let_go = child.let_go(orders);
        let (on_loss, leave) = (guard.on_loss, guard.leave_background);
        let (tells, ending) = (shell, None);
        let mut watch = RunWatch { context, on_loss, pace, leases, leave, tells, orders, ending };
        let_go.map_err(|error| Stuck::new("let the command go", error))?;
        let outcome = watch.until_all_have_ended(&mut child, signals)?;
        let done = match (child.not_run(), watch.is_lost()) {
            (Some(error), false) => {
                held::give_all_back(held, watch.leases)?;
                let command = self.program.to_string_lossy().into_owned();
                Err(CannotRun { command, error }.failure())
            }
            _ => self.end(watch, outcome, contained),
        };
        // Its guardian had the time to end in which the locks were given back.
        child.reap();
        done
    }

    /// Everybody is gone, or is left alone as was wished.
    fn end(
        &self,
        watch: RunWatch<'_>,
        RunOutcome { ended, swept, left }: RunOutcome,
        contained: &'static str,
    ) -> Result<Done, Failure> {
        let Under { context, guard, held, .. } = *self;
        let all_ended = left.is_empty() || guard.leave_background;
        let stopped = watch.is_lost();
        let snapshot = match &guard.snapshot {
            Some(note) if ended == Ended::Exit(0) && !stopped && all_ended => {
                Some(self.snapshot(&watch.leases[0], note))
            }
            _ => None,
        };
        let cannot_end = (!all_ended).then(|| listed(&left));
        // What was published was published under the lock. Nothing that comes after it,
        // a loss of the lock included, may hide it.
        let published = matches!(snapshot, Some(Ok(_)));
        let mut outcomes = Vec::new();
        for (one, lease) in held.iter().zip(watch.leases) {
            outcomes.push(match one.end(lease, cannot_end.as_deref()) {
                Err(failure) if published => held::HoldOutcome::not_released(failure.message()),
                outcome => outcome?,
            });
        }
        let exit = ended.exit();
        let mut each = held.iter().zip(&outcomes);
        if let (Some((one, outcome)), OnLoss::Stop, false) =
            (each.find(|(_, outcome)| outcome.lost.is_some()), guard.on_loss, published)
        {
            let (worktree, why) = (one.turn.here.worktree.clone(), outcome.lost.clone());
            let why = why.unwrap_or_default();
            return Err(LostLease { worktree, why, exit, stopped, left }.into());
        }
        greeting::tell_background(context, guard.leave_background, &swept, &left);
        if self.kind == StakeKind::Shell {
            for (one, outcome) in held.iter().zip(&outcomes) {
                greeting::end(context, one, outcome);
            }
        }
        let (snapshot, text) = snapshot.transpose()?.unzip();
        let answer = Ran {
            under: held::told(held, &outcomes),
            exit,
            signal: ended.signal(),
            lost: outcomes.iter().find_map(|outcome| outcome.lost.clone()),
            contained,
            background_ended: swept,
            background_left: left,
            snapshot,
        };
        let done = Done::new(&answer).with_text(text.unwrap_or_default()).with_exit(exit);
        Ok(self.warned(done, &outcomes))
    }

    /// The very hold that the child ran under, or none.
    fn snapshot(&self, lease: &Guarded<'_>, note: &str) -> Result<(TakenTold, String), Failure> {
        let Under { context, locks, acting, .. } = *self;
        let here = lease.order.here;
        let mut lease = locks.resume(&here.worktree, Some(&lease.order.ticket))?;
        snapshot::under_lease(context, here, locks, acting, &mut lease, note)
    }

    fn warned(&self, done: Done, outcomes: &[held::HoldOutcome]) -> Done {
        let mut done = done;
        for (one, outcome) in self.held.iter().zip(outcomes) {
            let which = match self.held {
                [_] => "the lock".to_owned(),
                _ => format!("the lock of worktree '{}'", one.turn.here.worktree),
            };
            if let (Some(why), true) = (&outcome.lost, outcome.overruled) {
                done = done.with_warning(format!("{which} was lost: {why}"));
            }
            if let Some(Some(problem)) = &outcome.released {
                done = done.with_warning(format!("{which} was not released: {problem}"));
            }
        }
        done
    }
}

/// Where complaints go, for a command whose words must not be mixed with ours.
fn streams_of_complaints() -> Result<Stdio, Failure> {
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    Ok(Stdio::from(stderr.map_err(|error| Stuck::new("hand on the standard error", error))?))
}

/// Has the keeper release the lock. Answers what went wrong, if anything did.
fn give_back(mut keeper: Started) -> Result<Option<String>, Failure> {
    keeper.tell(&StarterMessage::Release);
    let alarm = Alarm::new().map_err(|error| Stuck::new("set a timer", error))?;
    let deadline = SystemClock.now().boot.plus(RELEASE_MS);
    loop {
        let [spoke] = alarm
            .wait([Some(keeper.readable_fd())], Some(deadline))
            .map_err(|error| Stuck::new("wait for the keeper", error))?;
        if !spoke {
            return Ok(Some("its keeper does not answer; the lease will run out".to_owned()));
        }
        let (said, gone) = keeper.messages();
        for word in said {
            match word {
                KeeperMessage::Released => {
                    keeper.reap();
                    return Ok(None);
                }
                KeeperMessage::GoesOn => {
                    keeper.abandon();
                    return Ok(None);
                }
                KeeperMessage::Failed(why)
                | KeeperMessage::Lost(why)
                | KeeperMessage::NotBegun(_, why) => {
                    return Ok(Some(why));
                }
                KeeperMessage::Ready(_) | KeeperMessage::Renewed(_) => {}
            }
        }
        if gone {
            return Ok(Some("its keeper is gone; the lease will run out".to_owned()));
        }
    }
}
