//! Taking a lock in one's turn: at once, or after waiting in line.

use jvs_kernel::signals::Signals;
use jvs_lock::hold::refusal::Refused;
use jvs_lock::hold::{Ask, EnterError, Entered, HoldRefusal, Holds, OwnTies, Relied, Who};
use jvs_lock::{Lease, Locks, OfRegister, RegisterError, TurnError, Want, retry};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::code::Coded;
use jvs_repo::duration::Period;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc;

use super::or_no_such_worktree;
use crate::alarm::Alarm;
use crate::command::restore::finish_restores;
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck};
use crate::sleeper::{ENDING, WatchingSleeper};

/// How often it is looked whether a command of one's own session has ended.
const LOOK_AGAIN_MS: u64 = 100;

/// What a command that wants a lock has at hand.
pub(crate) struct LockTurn<'t, 'r> {
    pub(crate) context: &'t Context<'t>,
    pub(crate) here: &'t Here,
    pub(crate) locks: &'t Locks<'r>,
    pub(crate) holds: &'t Holds<'r>,
}

/// What it has at hand for each of several worktrees.
pub(crate) fn turns<'t, 'r>(
    context: &'t Context<'t>,
    all: &'t [Here],
    locks: &'t Locks<'r>,
    holds: &'t [Holds<'r>],
) -> Vec<LockTurn<'t, 'r>> {
    let each = all.iter().zip(holds);
    each.map(|(here, holds)| LockTurn { context, here, locks, holds }).collect()
}

impl<'r> LockTurn<'_, 'r> {
    /// Comes into the session's hold, taking the lock if it has none; `wait` says for
    /// how long one may stand in line for it.
    pub(crate) fn enter(
        &self,
        ask: &Ask,
        want: Want<'_>,
        wait: Option<Period>,
    ) -> Result<Entered<'r>, Failure> {
        match wait {
            None => self.at_once(ask, want),
            Some(at_most) => {
                let signals = Signals::catch_unless_ignored(&ENDING)
                    .map_err(|error| Stuck::new("catch signals", error))?;
                self.in_line(ask, want, at_most, &signals)
            }
        }
    }

    /// The same, if it is this session's turn now.
    pub(crate) fn at_once(&self, ask: &Ask, want: Want<'_>) -> Result<Entered<'r>, Failure> {
        let Here { repo, worktree } = self.here;
        let seams = self.context.seams(repo.store());
        self.with(ask, want, &mut |want| {
            retry::while_transient(seams, || {
                self.locks.acquire_in_turn(worktree, want, &proc::process_stat)
            })
        })
    }

    /// The same, taking the lock in any other way.
    pub(crate) fn with<E: Coded + OfRegister + 'static>(
        &self,
        ask: &Ask,
        want: Want<'_>,
        take: &mut dyn FnMut(Want<'_>) -> Result<Lease<'r>, E>,
    ) -> Result<Entered<'r>, Failure> {
        let Here { repo, worktree } = self.here;
        let entered = self.locks.enter(self.holds, ask, want, take);
        self.usable(entered.map_err(|error| or_no_such_worktree(repo, worktree, error))?)
    }

    /// Before anybody is told that it holds: what a restore of the files left is finished.
    fn usable(&self, mut entered: Entered<'r>) -> Result<Entered<'r>, Failure> {
        let finished = finish_restores(self.context, self.here, self.locks, &mut entered.lease);
        match finished {
            Ok(()) => Ok(entered),
            Err(failure) => {
                // Best effort: nobody was told of it, and so it runs out.
                let _ = self.locks.leave(self.holds, &entered.stake);
                Err(failure)
            }
        }
    }

    /// The same, after waiting in line, and for a command of this very session that
    /// has the hold to itself.
    pub(crate) fn in_line(
        &self,
        ask: &Ask,
        want: Want<'_>,
        at_most: Period,
        signals: &Signals,
    ) -> Result<Entered<'r>, Failure> {
        let LockTurn { context, here: Here { repo, worktree }, locks, holds } = self;
        let started = SystemClock.now().boot;
        let alarm = Alarm::new().map_err(|error| Stuck::new("set a timer", error))?;
        let ties = OwnTies::new(holds, ancestry(), started.plus(at_most.as_ms()));
        loop {
            let left_ms = at_most.as_ms().saturating_sub(SystemClock.now().boot.since(started));
            let progress = context.output().progress();
            let sleeper =
                WatchingSleeper::new(repo.store(), signals, progress, worktree.to_string())?;
            let mut sleeper = sleeper.alive(context.life());
            let entered = locks.enter(holds, ask, want, &mut |want| {
                let (seen, sleeper) = (&proc::process_stat, &mut sleeper);
                match locks.wait(worktree, want, left_ms, seen, sleeper, &ties)? {
                    Some(lease) => Ok(lease),
                    None => Err(stopped(locks, worktree, sleeper)?),
                }
            });
            let error = match entered {
                Ok(entered) => return self.usable(entered),
                Err(error) => error,
            };
            let busy = is_busy_with_a_run(&error);
            if busy && ties.is_below_who_has_it() {
                let waited_ms = SystemClock.now().boot.since(started);
                let (worktree, steps) = (worktree.clone(), Vec::new());
                return Err(TurnError::Deadlock { worktree, waited_ms, steps }.into());
            }
            if !busy || left_ms == 0 {
                // Perhaps it was handed over at this very moment. Best effort: if not,
                // it runs out.
                locks.decline(holds);
                let failure = or_no_such_worktree(repo, worktree, error);
                return Err(failure.dying_of(sleeper.stopped_by()));
            }
            let next = SystemClock.now().boot.plus(LOOK_AGAIN_MS.min(left_ms));
            let _ = alarm.wait([Some(signals.fd())], Some(next));
            while let Some(signal) = signals.next() {
                if ENDING.contains(&signal) {
                    return Err(Failure::from(error).dying_of(Some(signal)));
                }
            }
        }
    }
}

/// Is it only a command of one's own session that is in the way of a run?
fn is_busy_with_a_run<E>(error: &EnterError<E>) -> bool {
    let relied = |it: &Relied| it.refused == Refused::Run;
    matches!(error, EnterError::Refused(HoldRefusal::Relied(it)) if relied(it))
}

/// This process, its parent and so on.
fn ancestry() -> Vec<Who> {
    let me = proc::process(std::process::id());
    let up = std::iter::successors(me, |below| proc::process(below.parent));
    up.map(|process| Who { pid: process.pid, start: process.start_ticks }).collect()
}

/// Waits in line and takes the lock, for nobody: a process that asks moves it on at once.
pub(super) fn wait_in_line<'r>(
    context: &Context<'_>,
    Here { repo, worktree }: &Here,
    locks: &Locks<'r>,
    holds: &Holds<'_>,
    want: Want<'_>,
    at_most: Period,
) -> Result<Lease<'r>, Failure> {
    let signals = Signals::catch_unless_ignored(&ENDING)
        .map_err(|error| Stuck::new("catch signals", error))?;
    let progress = context.output().progress();
    let mut sleeper = WatchingSleeper::new(repo.store(), &signals, progress, worktree.to_string())?;
    let until = SystemClock.now().boot.plus(at_most.as_ms());
    let (seen, ties) = (&proc::process_stat, OwnTies::new(holds, ancestry(), until));
    let waited = locks.wait(worktree, want, at_most.as_ms(), seen, &mut sleeper, &ties);
    let waited = waited.inspect_err(|_| {
        locks.decline(holds);
    });
    match waited.map_err(|error| or_no_such_worktree(repo, worktree, error))? {
        Some(lease) => Ok(lease),
        None => {
            let stopped_by = sleeper.stopped_by();
            locks.decline(holds);
            Err(Failure::from(stopped(locks, worktree, &sleeper)?).dying_of(stopped_by))
        }
    }
}

/// The user did not want to wait any longer.
fn stopped(
    locks: &Locks<'_>,
    worktree: &WorktreeName,
    sleeper: &WatchingSleeper<'_>,
) -> Result<TurnError, RegisterError> {
    let (ahead, waited_ms) = sleeper.last();
    let view = Box::new(locks.inspect(worktree)?);
    Ok(TurnError::InLine { ahead, waited_ms: Some(waited_ms), view })
}
