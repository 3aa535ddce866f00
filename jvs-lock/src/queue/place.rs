//! A place in the line, held by one process.

use std::io;

use jvs_repo::clock::BootMs;
use jvs_repo::id::OpNonce;
use jvs_repo::store::RepoPath;

use super::turn::{BEAT_MS, Memory, Vantage};
use super::waiter::Waiter;
use super::{Lookup, Queue};

/// What a look at the line told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// In line.
    Waiting {
        /// How many are in front.
        ahead: usize,
        /// How many wait altogether, oneself included.
        waiting: usize,
        /// The one directly in front: when it goes, look again.
        next: Option<Neighbour>,
    },
    /// The ticket is gone: the lock was handed over to this session, or the
    /// others gave it up for dead while this process was stopped.
    Gone,
}

/// The one directly in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// Its ticket: gone when it leaves, renamed when it gives a sign of life.
    pub ticket: RepoPath,
    /// Its wait, whatever its ticket is named by now.
    pub op: OpNonce,
    /// Its process, if that can be seen from here.
    pub pid: Option<u32>,
}

/// A place in the line. Dropping it leaves the line.
///
/// Only the neighbour matters: whether *somebody* is in front is known by the nearest
/// one who is there, and nobody further ahead is looked up. So what a look costs does not
/// grow with the line, but for the listing's length.
pub struct QueuePlace<'r> {
    queue: Queue<'r>,
    me: Waiter,
    here: Vantage,
    memory: Memory,
    beat_at: BootMs,
    /// Since when it is known to be the first, with how many in line.
    first: Option<(BootMs, usize)>,
}

impl<'r> QueuePlace<'r> {
    pub(super) fn new(queue: Queue<'r>, me: Waiter, here: Vantage) -> Self {
        let beat_at = queue.seams.clock.now().boot;
        QueuePlace { queue, me, here, memory: Memory::default(), beat_at, first: None }
    }

    /// The own ticket, as it is named now.
    pub fn ticket(&self) -> RepoPath {
        self.queue.ticket(&self.me)
    }

    /// Who stands there.
    pub(super) fn waiter(&self) -> &Waiter {
        &self.me
    }

    /// Looks at the line, unless it is known how that would end: one who was the first a
    /// moment ago is the first, for whoever came since stands behind it.
    pub(super) fn stay(&mut self, lookup: Lookup<'_>) -> io::Result<Look> {
        let now = self.queue.seams.clock.now().boot;
        match self.first {
            Some((at, waiting)) if now.since(at) < BEAT_MS => {
                Ok(Look::Waiting { ahead: 0, waiting, next: None })
            }
            _ => self.look(lookup),
        }
    }

    /// Gives a sign of life if one is due, and looks at the line.
    pub fn look(&mut self, lookup: Lookup<'_>) -> io::Result<Look> {
        self.first = None;
        let line = self.queue.list()?;
        let now = self.queue.seams.clock.now();
        let Some(own) = line.iter().position(|waiter| waiter.op == self.me.op) else {
            return Ok(Look::Gone);
        };
        // As the directory has it: a rename's answer may have been lost.
        self.me = line[own];
        if now.boot.since(self.beat_at) >= BEAT_MS {
            let beaten = self.me.beaten(now.wall);
            let renamed = self
                .queue
                .seams
                .store
                .rename(&self.queue.ticket(&self.me), &self.queue.ticket(&beaten));
            if renamed.is_ok() {
                self.me = beaten;
                self.beat_at = now.boot;
            }
            // Otherwise the next look tells what came of it.
        }
        self.memory.look(&line, now.boot);
        let mut next: Option<&Waiter> = None;
        let mut ahead = 0;
        let mut dead = Vec::new();
        for waiter in line[..own].iter().rev() {
            if self.memory.is_silent(waiter, now.boot) {
                continue;
            }
            if next.is_none() && self.here.sees(waiter, lookup) == Some(false) {
                dead.push(waiter);
                continue;
            }
            next = next.or(Some(waiter));
            ahead += 1;
        }
        let waiting = ahead + line.len() - own;
        if next.is_none() {
            self.first = Some((now.boot, waiting));
            // One that is only silent may be stopped: it keeps its ticket, and with it its
            // place, until somebody behind it has come to the front.
            dead = line[..own].iter().collect();
        }
        // By the neighbour alone, or everybody would at once.
        dead.into_iter().for_each(|gone| self.queue.remove(gone));
        let next = next.map(|waiter| Neighbour {
            ticket: self.queue.ticket(waiter),
            op: waiter.op,
            pid: self.here.shows(waiter).then_some(waiter.pid),
        });
        Ok(Look::Waiting { ahead, waiting, next })
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        // Best effort; a ticket that stays falls silent and is passed over.
        self.queue.remove(&self.me);
    }
}
