//! The worker: the thread that does all of a keeper's I/O. It may hang in a dead mount;
//! the supervisor never waits for it longer than the lease allows.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use jvs_lock::hold::idle::{self, Silence};
use jvs_lock::hold::{Cause, HoldState, Holds, LeaveOutcome, Scan, Stake, StakeKind, Who};
use jvs_lock::{Lease, LeaseError, Locks, retry};
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::code::Coded;
use jvs_repo::record::keeper::Keeper;
use jvs_repo::term::Term;

use super::kept::kept;
use crate::session::life::{Sign, SignsOfLife};

/// What the worker is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    /// Renew if anyone still needs the hold; otherwise release the lock.
    Keep,
    /// The command that this keeper serves has ended: release the lock if nobody else
    /// needs the hold.
    Leave,
    /// Release the lock because this process was asked to end. Anyone allowed to signal
    /// it may have asked, so this does not mean that the session is done.
    Release,
    /// This keeper continues for other commands: the record should name it.
    GoOn(Keeper),
}

/// How a task ended.
#[derive(Debug)]
pub(super) enum TaskOutcome {
    /// Renewed, and when to look again before the next renewal.
    Kept(Horizon),
    /// Others of the session still need it.
    Left(Horizon),
    /// It failed in a way that may pass; worth retrying.
    Stumbled(String),
    Lost(String),
    /// Released, by this worker or by another process of the session.
    Released,
    /// Released because the requested time is over.
    RanOut,
    /// Released because this process was asked to end.
    Asked,
    /// Released because the session gave no sign of life for this many milliseconds.
    Idle(u64),
    NotReleased(String),
}

/// When a stake may be over.
#[derive(Debug, Default)]
pub(super) struct Horizon {
    /// At this time.
    pub(super) at: Option<BootMs>,
    /// With any of these processes.
    pub(super) with: Vec<Who>,
}

/// Everything a keeper does I/O with.
pub(super) struct Worker {
    pub(super) lease: Lease<'static>,
    pub(super) locks: Locks<'static>,
    pub(super) holds: Holds<'static>,
    pub(super) term: Term,
    /// The keeper's own stake, while it guards a command.
    pub(super) guard: Option<Stake>,
    /// The stakes that kept the hold when last looked at.
    pub(super) seen: Vec<Stake>,
    /// Where the session gives signs of life, and how long it has given none.
    pub(super) life: SignsOfLife,
    pub(super) silence: Silence<Sign>,
    /// How long it may be silent, if that is bounded.
    pub(super) idle_ms: Option<u64>,
    /// This process was asked to end.
    pub(super) asked: bool,
}

impl Worker {
    /// When to look at the stakes again. A command removes its own stake; only a
    /// terminal, a process or a time ends without notice.
    pub(super) fn horizon(&self) -> Horizon {
        let Ok(scan) = self.holds.scan() else { return Horizon::default() };
        let alive = self.holds.alive(&scan);
        let mut horizon = horizon(alive.iter().copied().filter(|it| it.term == Some(self.term)));
        if !idle::over(&scan, &alive, self.term).is_empty() {
            let silent = self.idle_ms.map(|ms| self.silence.lasts_until(ms));
            horizon.at = [horizon.at, silent].into_iter().flatten().min();
        }
        horizon
    }

    /// Records how long the stakes keep the lock, for other readers.
    pub(super) fn tell_until(&mut self) {
        let Some((kept, stakes)) = kept(&self.holds, self.term, self.idle_ms) else { return };
        self.lease.keep_until(kept);
        self.seen = stakes;
    }

    /// Ends the default promise to a session that gives no sign of life.
    fn end_idle(&mut self) -> Option<u64> {
        if self.guard.is_some() {
            // The guarded command belongs to the session wherever it runs.
            self.life.sign();
        }
        let idle_ms = self.idle_ms?;
        let scan = self.holds.scan().ok()?;
        let alive = self.holds.alive(&scan);
        let now = SystemClock.now().boot;
        self.silence.look(self.life.last(), &alive, now);
        let over = idle::over(&scan, &alive, self.term);
        let ended = !over.is_empty() && self.silence.lasted(idle_ms, now);
        // Its time is over; no process of the session said that it is done.
        over.into_iter().filter(|_| ended).for_each(|stake| self.holds.run_out(stake, now));
        ended.then_some(idle_ms)
    }

    /// Works until there are no more tasks. `wakeup` wakes the supervisor.
    pub(super) fn work(
        mut self,
        orders: &Receiver<Task>,
        answers: &Sender<TaskOutcome>,
        wakeup: &Arc<OwnedFd>,
    ) {
        while let Ok(order) = orders.recv() {
            let did = match order {
                Task::Keep => self.keep(),
                Task::Leave => {
                    if let Some(guard) = self.guard.take() {
                        self.holds.remove(&guard);
                        self.seen.retain(|stake| stake.id != guard.id);
                    }
                    match self.keep() {
                        TaskOutcome::Kept(horizon) => TaskOutcome::Left(horizon),
                        did => did,
                    }
                }
                Task::Release => self.release(),
                Task::GoOn(keeper) => {
                    // Best effort, like everything in the record.
                    let _ = self.lease.set_keeper(Some(keeper));
                    continue;
                }
            };
            let sent = answers.send(did).is_ok();
            let _ = rustix::io::write(wakeup.as_ref(), &1_u64.to_ne_bytes());
            if !sent {
                return;
            }
        }
    }

    fn keep(&mut self) -> TaskOutcome {
        let idle = self.end_idle();
        match (self.locks.give_back_unneeded(&self.holds, self.term), idle) {
            (Ok(LeaveOutcome::Back(_)), Some(ms)) => return TaskOutcome::Idle(ms),
            (Ok(LeaveOutcome::Back(_)), None) if self.asked => return TaskOutcome::Asked,
            (Ok(LeaveOutcome::Back(Cause::RanOut)), None) => return TaskOutcome::RanOut,
            (Ok(LeaveOutcome::Back(Cause::Unneeded)), None) => return TaskOutcome::Released,
            (Ok(LeaveOutcome::Over), _) => return self.over(),
            // The hold is ending and only the register has not answered yet: retry, and do
            // not extend the lease.
            (Err(error), _) if self.is_ending() => return TaskOutcome::Stumbled(error.to_string()),
            // If the stakes cannot be read, assume that the lock is needed until all the
            // stakes seen before are over: a missing private directory must not keep a
            // lock for ever.
            (Err(error), _) if !self.is_needed_as_seen() => {
                return TaskOutcome::Stumbled(error.to_string());
            }
            (Ok(LeaveOutcome::Kept(_)) | Err(_), _) => {}
        }
        self.tell_until();
        match self.lease.renew() {
            Ok(()) => TaskOutcome::Kept(self.horizon()),
            Err(error) if retry::passes(&error) => TaskOutcome::Stumbled(error.to_string()),
            Err(error) => self.lost(&error),
        }
    }

    /// Is any of the stakes seen last time still alive?
    fn is_needed_as_seen(&self) -> bool {
        let scan = Scan { stakes: self.seen.clone(), ..Scan::default() };
        !self.holds.alive(&scan).is_empty()
    }

    fn is_ending(&self) -> bool {
        let hold = self.holds.peek().ok().flatten();
        hold.is_some_and(|hold| hold.term == self.term && hold.state == HoldState::Ending)
    }

    /// The session has another hold by now, or none.
    fn over(&mut self) -> TaskOutcome {
        match self.holds.peek() {
            Ok(Some(hold)) if hold.term == self.term && hold.state == HoldState::Lost => {
                match self.lease.renew() {
                    // Another process of the session was first to see that its time is over.
                    Err(LeaseError::NotHeld { view }) if view.state.term() == self.term => {
                        TaskOutcome::Released
                    }
                    Err(error) => TaskOutcome::Lost(format!("{}: {error}", error.code())),
                    Ok(()) => TaskOutcome::Lost(String::new()),
                }
            }
            _ => TaskOutcome::Released,
        }
    }

    fn lost(&mut self, error: &LeaseError) -> TaskOutcome {
        let fenced = matches!(error, LeaseError::Fenced { .. } | LeaseError::NotHeld { .. });
        if fenced && let Ok(Some(hold)) = self.holds.peek() {
            let ended = matches!(hold.state, HoldState::Ending | HoldState::Released);
            if hold.term > self.term || hold.term == self.term && ended {
                // Released by this session itself, which knows.
                return TaskOutcome::Released;
            }
            let _ = self.holds.lost(self.term);
        }
        TaskOutcome::Lost(format!("{}: {error}", error.code()))
    }

    /// The signal may come from a run that cleans up what was started in it, or from a
    /// machine that shuts down: no process of the session said that it is done. So the
    /// promised stakes end as if their time were over, and a process that completes an
    /// interrupted end can see that from the stakes.
    fn release(&mut self) -> TaskOutcome {
        let scan = match self.locks.may_release(&self.holds).and_then(|()| Ok(self.holds.scan()?)) {
            Ok(scan) => scan,
            Err(error) => return TaskOutcome::NotReleased(error.to_string()),
        };
        self.asked = true;
        let now = SystemClock.now().boot;
        let promised = |stake: &&&Stake| {
            stake.term == Some(self.term) && stake.kind == StakeKind::Acquire && stake.answered
        };
        self.holds.alive(&scan).iter().filter(promised).for_each(|it| self.holds.run_out(it, now));
        self.keep()
    }
}

fn horizon<'s>(stakes: impl Iterator<Item = &'s Stake>) -> Horizon {
    let mut horizon = Horizon::default();
    for stake in stakes {
        horizon.at = match (horizon.at, stake.over.at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        horizon.with.extend(stake.over.with);
    }
    horizon
}
