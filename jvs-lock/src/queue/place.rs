//! A place in the line, held by one process.

use std::io;

use jvs_repo::clock::BootMs;
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
        /// The ticket of the one directly in front: when it goes, look again.
        next: Option<RepoPath>,
    },
    /// The ticket is gone: the lock was handed over to this session, or the
    /// others gave it up for dead while this process was stopped.
    Gone,
}

/// A place in the line. Dropping it leaves the line.
pub struct QueuePlace<'r> {
    queue: Queue<'r>,
    me: Waiter,
    here: Vantage,
    memory: Memory,
    beat_at: BootMs,
}

impl<'r> QueuePlace<'r> {
    pub(super) fn new(queue: Queue<'r>, me: Waiter, here: Vantage) -> Self {
        let beat_at = queue.seams.clock.now().boot;
        QueuePlace { queue, me, here, memory: Memory::default(), beat_at }
    }

    /// The own ticket, as it is named now.
    pub fn ticket(&self) -> RepoPath {
        self.queue.ticket(&self.me)
    }

    /// Who stands there.
    pub(super) fn waiter(&self) -> &Waiter {
        &self.me
    }

    /// Gives a sign of life if one is due, and looks at the line.
    pub fn look(&mut self, lookup: Lookup<'_>) -> io::Result<Look> {
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
        let is_there = |waiter: &&Waiter| {
            self.here.sees(waiter, lookup) != Some(false)
                && !self.memory.is_silent(waiter, now.boot)
        };
        let ahead: Vec<&Waiter> = line[..own].iter().filter(is_there).collect();
        if ahead.is_empty() {
            // Only the first clears up, or everybody would at once.
            line[..own].iter().for_each(|gone| self.queue.remove(gone));
        }
        Ok(Look::Waiting {
            ahead: ahead.len(),
            waiting: ahead.len() + line.len() - own,
            next: ahead.last().map(|waiter| self.queue.ticket(waiter)),
        })
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        // Best effort; a ticket that stays falls silent and is passed over.
        self.queue.remove(&self.me);
    }
}
