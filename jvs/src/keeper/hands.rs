//! The thread that does all I/O of a keeper. It may hang in a dead mount; the
//! heart never waits for it longer than the lease allows.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use jvs_lock::hold::idle::{self, Silence};
use jvs_lock::hold::{Cause, Given, HoldState, Holds, Kind, Scan, Stake, Who};
use jvs_lock::{Lease, LockError, Locks, retry};
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::code::Coded;
use jvs_repo::record::keeper::Keeper;
use jvs_repo::term::Term;

use super::kept::kept;
use crate::session::life::{Life, Sign};

/// What the hands are told to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Do {
    /// Renew if anybody still needs the hold, else give the lock back.
    Keep,
    /// The command that this is a keeper of has ended: if nobody else needs the hold,
    /// give the lock back.
    Leave,
    /// Give the lock back because this process was asked to end: by anybody who may signal
    /// it, so that it is no word of the session.
    Release,
    /// This keeper goes on for others: the record is to name it.
    GoOn(Keeper),
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Did {
    /// Renewed; when it is worth looking again before the next renewal.
    Kept(Horizon),
    /// Others of the session still need it.
    Left(Horizon),
    /// It failed in a way that may pass; worth another try.
    Stumbled(String),
    Lost(String),
    /// Given back, by these hands or by others of the session.
    Released,
    /// The time that somebody asked for is over, and so it was given back.
    RanOut,
    /// This process was asked to end, and so it was given back.
    Asked,
    /// The session gave no sign of life for so long, and so it was given back.
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

/// All that a keeper works with.
pub(super) struct Hands {
    pub(super) lease: Lease<'static>,
    pub(super) locks: Locks<'static>,
    pub(super) holds: Holds<'static>,
    pub(super) term: Term,
    /// Its own stake, for as long as it guards a command.
    pub(super) guard: Option<Stake>,
    /// The stakes that the hold was last seen to rest on.
    pub(super) seen: Vec<Stake>,
    /// Where the session gives its signs of life, and since when it gave none.
    pub(super) life: Life,
    pub(super) silence: Silence<Sign>,
    /// How long it may be silent, if that is bounded.
    pub(super) idle_ms: Option<u64>,
    /// This process was asked to end.
    pub(super) asked: bool,
}

impl Hands {
    /// When to look at the stakes again. A command takes its own stake back; only a
    /// terminal, a process or a time ends without a word.
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

    /// Until when the stakes say that it is kept, for whoever looks.
    pub(super) fn tell_until(&mut self) {
        let Some((kept, stakes)) = kept(&self.holds, self.term, self.idle_ms) else { return };
        self.lease.keep_until(kept);
        self.seen = stakes;
    }

    /// Takes back what a session that gives no sign of life was promised by default.
    fn end_idle(&mut self) -> Option<u64> {
        if self.guard.is_some() {
            // The command that it guards is a command of the session wherever it runs.
            self.life.sign();
        }
        let idle_ms = self.idle_ms?;
        let scan = self.holds.scan().ok()?;
        let alive = self.holds.alive(&scan);
        let now = SystemClock.now().boot;
        self.silence.look(self.life.last(), &alive, now);
        let over = idle::over(&scan, &alive, self.term);
        let ended = !over.is_empty() && self.silence.lasted(idle_ms, now);
        // Its time is over: nobody of the session said that it is done.
        over.into_iter().filter(|_| ended).for_each(|stake| self.holds.run_out(stake, now));
        ended.then_some(idle_ms)
    }

    /// Works until there are no more orders. `bell` wakes the heart.
    pub(super) fn work(
        mut self,
        orders: &Receiver<Do>,
        answers: &Sender<Did>,
        bell: &Arc<OwnedFd>,
    ) {
        while let Ok(order) = orders.recv() {
            let did = match order {
                Do::Keep => self.keep(),
                Do::Leave => {
                    if let Some(guard) = self.guard.take() {
                        self.holds.remove(&guard);
                        self.seen.retain(|stake| stake.id != guard.id);
                    }
                    match self.keep() {
                        Did::Kept(horizon) => Did::Left(horizon),
                        did => did,
                    }
                }
                Do::Release => self.release(),
                Do::GoOn(keeper) => {
                    // Best effort, as all that is in the record.
                    let _ = self.lease.set_keeper(Some(keeper));
                    continue;
                }
            };
            let sent = answers.send(did).is_ok();
            let _ = rustix::io::write(bell.as_ref(), &1_u64.to_ne_bytes());
            if !sent {
                return;
            }
        }
    }

    fn keep(&mut self) -> Did {
        let idle = self.end_idle();
        match (self.locks.give_back_unneeded(&self.holds, self.term), idle) {
            (Ok(Given::Back(_)), Some(ms)) => return Did::Idle(ms),
            (Ok(Given::Back(_)), None) if self.asked => return Did::Asked,
            (Ok(Given::Back(Cause::RanOut)), None) => return Did::RanOut,
            (Ok(Given::Back(Cause::Unneeded)), None) => return Did::Released,
            (Ok(Given::Over), _) => return self.over(),
            // It is ending, and only the register does not answer yet: it is tried again,
            // and not made to last longer.
            (Err(error), _) if self.is_ending() => return Did::Stumbled(error.to_string()),
            // What cannot be seen is needed, until all that was seen before is over: a
            // private directory that is gone must not keep a lock for ever.
            (Err(error), _) if !self.is_needed_as_seen() => {
                return Did::Stumbled(error.to_string());
            }
            (Ok(Given::Kept(_)) | Err(_), _) => {}
        }
        self.tell_until();
        match self.lease.renew() {
            Ok(()) => Did::Kept(self.horizon()),
            Err(error) if retry::passes(&error) => Did::Stumbled(error.to_string()),
            Err(error) => self.lost(&error),
        }
    }

    /// Does any of the stakes live that were seen at the last look?
    fn is_needed_as_seen(&self) -> bool {
        let scan = Scan { stakes: self.seen.clone(), ..Scan::default() };
        !self.holds.alive(&scan).is_empty()
    }

    fn is_ending(&self) -> bool {
        let hold = self.holds.peek().ok().flatten();
        hold.is_some_and(|hold| hold.term == self.term && hold.state == HoldState::Ending)
    }

    /// The session's hold is another one by now, or over.
    fn over(&mut self) -> Did {
        match self.holds.peek() {
            Ok(Some(hold)) if hold.term == self.term && hold.state == HoldState::Lost => {
                match self.lease.renew() {
                    // Another process of the session found its time over first.
                    Err(LockError::NotHeld { view }) if view.state.term() == self.term => {
                        Did::Released
                    }
                    Err(error) => Did::Lost(format!("{}: {error}", error.code())),
                    Ok(()) => Did::Lost(String::new()),
                }
            }
            _ => Did::Released,
        }
    }

    fn lost(&mut self, error: &LockError) -> Did {
        let fenced = matches!(error, LockError::Fenced { .. } | LockError::NotHeld { .. });
        if fenced && let Ok(Some(hold)) = self.holds.peek() {
            let ended = matches!(hold.state, HoldState::Ending | HoldState::Released);
            if hold.term > self.term || hold.term == self.term && ended {
                // By this very session, which knows.
                return Did::Released;
            }
            let _ = self.holds.lost(self.term);
        }
        Did::Lost(format!("{}: {error}", error.code()))
    }

    /// Whoever signals this process may be a run that sweeps what was started in it, or a
    /// machine that shuts down: nobody of the session said that it is done. So what was
    /// promised ends as a time does, and whoever goes on with an end that was cut short
    /// sees by the stakes that it is one.
    fn release(&mut self) -> Did {
        let scan = match self.locks.may_release(&self.holds).and_then(|()| self.holds.scan()) {
            Ok(scan) => scan,
            Err(error) => return Did::NotReleased(error.to_string()),
        };
        self.asked = true;
        let now = SystemClock.now().boot;
        let promised = |stake: &&&Stake| {
            stake.term == Some(self.term) && stake.kind == Kind::Acquire && stake.answered
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
