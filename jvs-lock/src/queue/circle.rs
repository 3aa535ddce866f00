//! What a waiter finds out about others who wait for its own session.
//!
//! **What it costs.** One whose session keeps nothing has nothing to look at in the
//! repository. Otherwise, at joining the line and then once a second: the lines of
//! what its session keeps, and only if an older wait is seen there the whole of it,
//! one listing of all lines' directories, one a line, and one READ a line with
//! somebody in it. A circle is looked at once more after a moment, and then with the
//! records of its holders.

use std::collections::{BTreeMap, HashMap};
use std::io;

use jvs_repo::clock::{BootMs, WallMs};
use jvs_repo::id::{HolderNonce, OpNonce};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;

use super::deadlock::{Holding, Link, Wait, Waits};
use super::turn::{Memory, Vantage, seems_fresh};
use super::{Lookup, Queue, Waiter};
use crate::error::TurnError;
use crate::hold::Ties;
use crate::locks::Locks;
use crate::mutation::Rule;
use crate::state::Hold;
use crate::view::{StatusWord, View};

/// How often it is looked.
const EVERY_MS: u64 = 1_000;
/// How long after a circle was seen it is looked at again.
const AGAIN_MS: u64 = 200;

/// One step of a circle of sessions that wait for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircleStep {
    /// The session that waits.
    pub waits: String,
    /// For what.
    pub worktree: WorktreeName,
    /// The session that holds it.
    pub held_by: String,
    /// Is that one's own?
    pub mine: bool,
    /// And held for a command that this process was started by?
    pub within: bool,
}

/// What is known of those who wait in other lines.
pub(super) struct Circle<'w> {
    ties: &'w dyn Ties,
    memory: Memory,
    /// The first sign of life that was seen of each.
    first: HashMap<OpNonce, WallMs>,
    suspected: Option<Vec<Link>>,
    /// When to look again; `None` while the session keeps nothing.
    due: Option<BootMs>,
    looked: Option<BootMs>,
}

impl<'w> Circle<'w> {
    pub(super) fn new(ties: &'w dyn Ties) -> Self {
        let (memory, first) = (Memory::default(), HashMap::new());
        Circle { ties, memory, first, suspected: None, due: None, looked: None }
    }

    /// Looks, if it is time, and fails if `own` must be given up. Answers how long may be
    /// slept until the next look.
    pub(super) fn must_not_close(
        &mut self,
        locks: &Locks<'_>,
        own: Wait,
        waited_ms: u64,
        lookup: Lookup<'_>,
    ) -> Result<u64, TurnError> {
        match self.look(locks, &own, lookup) {
            Some(steps) => Err(TurnError::Deadlock { worktree: own.worktree, waited_ms, steps }),
            None => Ok(self.due_in_ms(locks.seams.clock.now().boot).unwrap_or(u64::MAX)),
        }
    }

    /// How long it is until a look is due by itself. Who wakes often anyway is not woken
    /// once more for it.
    fn due_in_ms(&self, now: BootMs) -> Option<u64> {
        let in_ms = self.due?.since(now);
        Some(if self.suspected.is_some() { in_ms } else { in_ms.max(EVERY_MS / 2) })
    }

    /// Looks, if it is time. Answers the circle that `own` must give up for: one that was
    /// there at a moment between two looks which saw the same waits and holds, for
    /// a ticket that is gone never comes back and neither does a grant.
    ///
    /// What cannot be read now is read the next time: a circle stays.
    fn look(
        &mut self,
        locks: &Locks<'_>,
        own: &Wait,
        lookup: Lookup<'_>,
    ) -> Option<Vec<CircleStep>> {
        let now = locks.seams.clock.now().boot;
        let due = self.due.or_else(|| self.looked.map(|looked| looked.plus(EVERY_MS)));
        if due.is_some_and(|due| now < due) {
            return None;
        }
        self.looked = Some(now);
        let tied = self.ties.now().unwrap_or_default();
        let found = match tied.is_empty() {
            true => None,
            false => self.closed(locks, own, &tied, lookup).unwrap_or_default(),
        };
        self.due = (!tied.is_empty()).then(|| match found {
            Some(_) => now.plus(AGAIN_MS),
            None => now.plus(EVERY_MS),
        });
        let seen = self.suspected.take();
        let certain = found.as_deref().filter(|found| is_seen_again(found, seen.as_deref()));
        let mut steps = certain.and_then(|links| told(locks, links));
        if let Some(own) = steps.as_mut().and_then(|steps| steps.last_mut()) {
            own.within = self.ties.is_within(&own.worktree);
        }
        self.suspected = found;
        steps
    }

    /// One look at the lines and the registers.
    fn closed(
        &mut self,
        locks: &Locks<'_>,
        own: &Wait,
        tied: &[WorktreeName],
        lookup: Lookup<'_>,
    ) -> io::Result<Option<Vec<Link>>> {
        let mut waited_for = false;
        for worktree in tied {
            let line = Queue::new(locks.seams, worktree).list()?;
            let mut others = line.iter().filter(|waiter| waiter.holder != own.waiter.holder);
            waited_for |= others.any(|waiter| waiter.came_before(&own.waiter));
        }
        if !waited_for {
            return Ok(None);
        }
        let mut lines: BTreeMap<WorktreeName, Vec<Waiter>> = BTreeMap::new();
        for entry in locks.seams.store.list(&layout::locks())? {
            if let Some(worktree) = entry.name.to_str().and_then(layout::worktree_of_queue) {
                let line = Queue::new(locks.seams, &worktree).list()?;
                lines.insert(worktree, line);
            }
        }
        let all: Vec<Waiter> = lines.values().flatten().copied().collect();
        let now = locks.seams.clock.now();
        self.memory.look(&all, now.boot);
        self.first.retain(|op, _| all.iter().any(|waiter| waiter.op == *op));
        let here = Vantage::of(locks.session(), locks.seams.clock);
        let mut world = Waits::default();
        for (worktree, line) in lines {
            let there = line.into_iter().filter(|waiter| {
                let first = *self.first.entry(waiter.op).or_insert(waiter.beat);
                // Of another host: by its clock, or by a sign that was seen to come.
                let alive = seems_fresh(waiter, now.wall) || first != waiter.beat;
                alive
                    && !self.memory.is_silent(waiter, now.boot)
                    && here.sees(waiter, lookup) != Some(false)
            });
            let waits: Vec<Wait> =
                there.map(|waiter| Wait { worktree: worktree.clone(), waiter }).collect();
            if waits.is_empty() {
                continue;
            }
            world.waits.extend(waits);
            if let Some(held) = held(locks, &worktree) {
                world.held.insert(worktree, held);
            }
        }
        Ok(world.closed_by(own, tied))
    }
}

/// Who holds a worktree. A freeze is nobody's to give back, and ends by itself.
fn held(locks: &Locks<'_>, worktree: &WorktreeName) -> Option<Holding> {
    let state = locks.register(worktree).read().ok()?;
    match state.hold {
        Hold::Held(claim) => Some(Holding { holder: claim.holder, term: state.term() }),
        _ => None,
    }
}

/// The circle as people are told of it; `None` if one of its leases is over, for then
/// the next in line takes that.
fn told(locks: &Locks<'_>, links: &[Link]) -> Option<Vec<CircleStep>> {
    let me = locks.session().nonce();
    let mut names: Vec<(HolderNonce, String)> = vec![(me, locks.session().id().to_string())];
    for link in links {
        let view: View = locks.inspect(&link.worktree).ok()?;
        if view.word() != StatusWord::Held || view.state.term() != link.held.term {
            return None;
        }
        let holder = link.held.holder;
        if names.iter().all(|(nonce, _)| *nonce != holder) {
            let session = view.record().map(|record| record.session_id.clone());
            names.push((holder, session.unwrap_or_else(|| holder.to_string())));
        }
    }
    let name = |nonce| Some(names.iter().find(|(known, _)| *known == nonce)?.1.clone());
    let step = |link: &Link| {
        Some(CircleStep {
            waits: name(link.waiter)?,
            worktree: link.worktree.clone(),
            held_by: name(link.held.holder)?,
            mine: link.held.holder == me,
            within: false,
        })
    };
    links.iter().map(step).collect()
}

/// Who waits in a circle is believed to only when it was seen twice.
fn is_seen_again(found: &[Link], seen: Option<&[Link]>) -> bool {
    sabotage!(Rule::CirclesAreSeenTwice => true);
    seen == Some(found)
}
