//! The thread that does all I/O of a keeper. It may hang in a dead mount; the
//! heart never waits for it longer than the lease allows.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use jvs_lock::hold::{Given, HoldState, Holds, Stake, Term, Who};
use jvs_lock::{Lease, LockError, Locks, retry};
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::code::Coded;

/// What the hands are told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Do {
    /// Renew if anybody still needs the hold, else give the lock back.
    Keep,
    /// The command that this is a keeper of has ended: if nobody else needs the hold,
    /// give the lock back.
    Leave,
    /// Give the lock back because somebody says so.
    Release,
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
}

impl Hands {
    /// When to look at the stakes again. A command takes its own stake back; only a
    /// terminal, a process or a time ends without a word.
    pub(super) fn horizon(&self) -> Horizon {
        let Ok(scan) = self.holds.scan() else { return Horizon::default() };
        let stakes = self.holds.alive(&scan).into_iter().filter(|it| it.term == Some(self.term));
        horizon(stakes)
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
                    }
                    match self.keep() {
                        Did::Kept(horizon) => Did::Left(horizon),
                        did => did,
                    }
                }
                Do::Release => self.release(),
            };
            let sent = answers.send(did).is_ok();
            let _ = rustix::io::write(bell.as_ref(), &1_u64.to_ne_bytes());
            if !sent {
                return;
            }
        }
    }

    fn keep(&mut self) -> Did {
        let timed = self.holds.scan().is_ok_and(|scan| {
            let now = SystemClock.now().boot;
            let ran_out = |it: &&Stake| it.over.at.is_some_and(|at| at <= now);
            scan.stakes.iter().filter(|it| it.term == Some(self.term)).any(|it| ran_out(&it))
        });
        match self.locks.give_back_unneeded(&self.holds, self.term) {
            Ok(Given::Back) if timed => return Did::RanOut,
            Ok(Given::Back) => return Did::Released,
            Ok(Given::Over) => return self.over(),
            // What cannot be seen is needed.
            Ok(Given::Kept(_)) | Err(_) => {}
        }
        match self.lease.renew() {
            Ok(()) => Did::Kept(self.horizon()),
            Err(error) if retry::passes(&error) => Did::Stumbled(error.to_string()),
            Err(error) => self.lost(&error),
        }
    }

    /// The session's hold is another one by now, or over.
    fn over(&mut self) -> Did {
        match self.holds.peek() {
            Ok(Some(hold)) if hold.term == self.term && hold.state == HoldState::Lost => {
                let error = self.lease.renew().err();
                let why =
                    error.map_or_else(String::new, |error| format!("{}: {error}", error.code()));
                Did::Lost(why)
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

    fn release(&mut self) -> Did {
        match self.locks.release_as_told(&self.holds) {
            Ok(_) => Did::Released,
            Err(error) => Did::NotReleased(error.to_string()),
        }
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
