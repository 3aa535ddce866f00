//! The line in front of a lock: one empty file a waiter, whose *name* says where
//! it stands, whose it is, and when it last gave a sign of life.
//!
//! The line is about fairness only. Who holds is decided by the register, and
//! would be decided rightly if every ticket were lost, forged or out of order.

mod circle;
pub mod deadlock;
mod place;
mod turn;
mod wait;
mod waiter;

use std::io;

use jvs_repo::clock::WallMs;
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

pub use circle::CircleStep;
pub use place::{Look, Neighbour, QueuePlace};
pub use turn::{BEAT_MS, SILENT_AFTER_MS, pause_ms};
pub use wait::{SleepOnly, Sleeper, Waiting, WatchBegun, Woken};
pub use waiter::{Fingerprint, Waiter};

use crate::liveness;
use crate::mutation::Rule;
use crate::seams::Seams;
use crate::session::Session;

/// Looks a process of this host up: `jvs_repo::proc::process_stat`, or a test's.
pub type Lookup<'l> = &'l dyn Fn(u32) -> Option<ProcessStat>;

/// The line in front of one worktree's lock.
#[derive(Clone)]
pub struct Queue<'r> {
    seams: Seams<'r>,
    dir: RepoPath,
}

impl<'r> Queue<'r> {
    /// The line of `worktree`. Touches nothing.
    pub fn new(seams: Seams<'r>, worktree: &WorktreeName) -> Self {
        Queue { seams, dir: layout::queue(worktree) }
    }

    /// Everybody in it, first come first. What is no ticket is not counted.
    pub fn list(&self) -> io::Result<Vec<Waiter>> {
        let entries = match self.seams.store.list(&self.dir) {
            Ok(entries) => entries,
            // Nobody has ever waited here.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut line: Vec<Waiter> =
            entries.iter().filter_map(|entry| entry.name.to_str()?.parse().ok()).collect();
        line.sort_by_key(Waiter::rank);
        // A listing taken while a ticket was renamed may show it twice.
        line.dedup_by_key(|waiter| waiter.rank());
        Ok(line)
    }

    /// Those of `line` who seem to be there, as far as one look can tell: by the
    /// time of their last sign, and of this host only those whose process is there,
    /// too.
    /// Looked up one by one as they are asked for: whoever only wants to know whether
    /// anybody is there asks for one.
    pub fn present<'l>(
        &self,
        line: impl IntoIterator<Item = Waiter> + 'l,
        me: &Session,
        lookup: Lookup<'l>,
    ) -> impl Iterator<Item = Waiter> + 'l {
        let now = self.seams.clock.now().wall;
        let here = turn::Vantage::of(me, self.seams.clock);
        line.into_iter().filter(move |waiter| match here.sees(waiter, lookup) {
            Some(false) => false,
            Some(true) => gives_signs(waiter, now),
            None => turn::seems_fresh(waiter, now),
        })
    }

    /// Is the waiter's process certainly gone? Only processes of this boot and
    /// PID namespace can be known to be.
    pub fn is_gone(waiter: &Waiter, here: liveness::Observer<'_>, lookup: Lookup<'_>) -> bool {
        turn::Vantage::at(here).sees(waiter, lookup) == Some(false)
    }

    /// Takes the last place.
    pub fn join(&self, session: &Session, lease_ms: u64) -> io::Result<QueuePlace<'r>> {
        self.join_behind(&self.list()?, session, lease_ms)
    }

    /// Takes the place behind `line`, as it was when the session came.
    fn join_behind(
        &self,
        line: &[Waiter],
        session: &Session,
        lease_ms: u64,
    ) -> io::Result<QueuePlace<'r>> {
        let order = line.last().map_or(1, |last| last.order.saturating_add(1));
        let op = OpNonce::random(self.seams.entropy);
        let me = Waiter::of(session, self.seams.clock, order, op, lease_ms);
        self.put(&self.ticket(&me)).inspect_err(|_| {
            // Nobody stands behind a ticket whose maker was told that it has none.
            self.remove(&me);
        })?;
        Ok(QueuePlace::new(self.clone(), me, turn::Vantage::of(session, self.seams.clock)))
    }

    fn put(&self, ticket: &RepoPath) -> io::Result<()> {
        let store = self.seams.store;
        match store.create_own(ticket) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                store.ensure_dir(&self.dir)?;
                store.create_own(ticket).map(drop)
            }
            made => made.map(drop),
        }
    }

    /// Takes somebody else's ticket out of the line: one who is gone, or who was
    /// handed the lock.
    pub(crate) fn remove(&self, waiter: &Waiter) {
        // Best effort: a ticket that stays is skipped by everybody.
        let _ = self.seams.store.remove(&self.ticket(waiter));
    }

    fn ticket(&self, waiter: &Waiter) -> RepoPath {
        self.dir.child(&waiter.to_string()).expect("a ticket's name has no slash")
    }
}

/// Does a waiter of this host, whose process is there, give signs of life, too? One that
/// is stopped is there and gives none.
fn gives_signs(waiter: &Waiter, now: WallMs) -> bool {
    sabotage!(Rule::SignsOfLife => true);
    turn::seems_fresh(waiter, now)
}

#[cfg(test)]
mod tests;
