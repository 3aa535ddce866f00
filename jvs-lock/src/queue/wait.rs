//! Waiting for one's turn and then taking the lock.

use jvs_repo::clock::{BootMs, Clock};
use jvs_repo::config::LockPolicy;
use jvs_repo::entropy::Entropy;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;

use super::circle::Circle;
use super::deadlock::Wait;
use super::{Fingerprint, Look, Lookup, Queue, QueuePlace, Waiter, pause_ms};
use crate::decide::is_skewed;
use crate::error::{LockError, RegisterError};
use crate::hold::Ties;
use crate::lease::Lease;
use crate::locks::{Locks, Want};
use crate::register::{Register, is_transient};
use crate::retry;
use crate::session::SessionId;
use crate::state::{Hold, State};
use crate::view::View;

/// What ended a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The time, or a change: look again.
    Again,
    /// The user: stop waiting.
    Stop,
}

/// How a waiter sleeps between two looks. Waking early is a hint: a wait without it still
/// ends, only later.
pub trait Sleeper {
    /// Wake when something changes in the directory or file `what`. True if it was not
    /// watched before: then another look is due, because a change may have come between
    /// the last look and now.
    fn watch(&mut self, what: &RepoPath) -> bool;

    /// Sleeps until something watched changes, at most this long.
    fn sleep(&mut self, ms: u64) -> Woken;

    /// Told the status of the wait before each sleep.
    fn tell(&mut self, _waiting: &Waiting) {}
}

/// A sleeper that watches nothing.
pub struct SleepOnly<'c>(pub &'c dyn Clock);

impl Sleeper for SleepOnly<'_> {
    fn watch(&mut self, _what: &RepoPath) -> bool {
        false
    }

    fn sleep(&mut self, ms: u64) -> Woken {
        self.0.sleep_ms(ms);
        Woken::Again
    }
}

/// The status of a wait.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// How many are ahead.
    pub ahead: usize,
    /// How many are waiting, this one included.
    pub waiting: usize,
    /// How long it has lasted.
    pub waited_ms: u64,
    /// The lock as last seen, if there was a reason to look.
    pub view: Option<View>,
}

impl<'r> Locks<'r> {
    /// Takes the lock as [`Locks::acquire`] does, but not past those who wait
    /// for it. One look: nothing is waited for.
    pub fn acquire_in_turn(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
        lookup: Lookup<'_>,
    ) -> Result<Lease<'r>, LockError> {
        let queue = Queue::new(self.seams, worktree);
        // A line that cannot be read keeps nobody out: it is about fairness only.
        let line = queue.list().unwrap_or_default();
        let others = line.into_iter().filter(|waiter| waiter.holder != self.session().nonce());
        let present = queue.present(others.collect(), self.session(), lookup);
        if !present.is_empty() {
            let view = self.inspect(worktree)?;
            let may_be_taken = !view.mine && view.is_takeable();
            if may_be_taken {
                let (ahead, view) = (present.len(), Box::new(view));
                return Err(LockError::InLine { ahead, waited_ms: None, view });
            }
        }
        self.acquire(worktree, want)
    }

    /// Takes a lock over whose holder is gone, by somebody who says why: past
    /// those who wait, but only from a holder. A free one is theirs.
    pub fn steal(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
        lookup: Lookup<'_>,
    ) -> Result<Lease<'r>, LockError> {
        match self.inspect(worktree)?.state.hold {
            Hold::Held(_) => self.acquire(worktree, want),
            _ => self.acquire_in_turn(worktree, want, lookup),
        }
    }

    /// The first of `session`'s waiters in line.
    pub fn waiter(
        &self,
        worktree: &WorktreeName,
        session: &SessionId,
        lookup: Lookup<'_>,
    ) -> Result<Waiter, LockError> {
        let queue = Queue::new(self.seams, worktree);
        let list = queue.list().map_err(|source| RegisterError::Io {
            worktree: worktree.clone(),
            doing: "cannot read the queue",
            source,
        })?;
        let mark = Fingerprint::of_session(session);
        let mut present = queue.present(list, self.session(), lookup).into_iter();
        present.find(|waiter| waiter.session == mark).ok_or_else(|| LockError::NoSuchWaiter {
            worktree: worktree.clone(),
            session: session.to_string(),
        })
    }

    /// Takes a waiter that was handed the lock out of the line, which wakes it. False
    /// if it is not in it any more.
    pub fn wake(&self, worktree: &WorktreeName, waiter: &Waiter) -> bool {
        let queue = Queue::new(self.seams, worktree);
        // Who cannot be looked for is there.
        let Ok(line) = queue.list() else { return true };
        // By its operation: it may have given a sign of life since it was seen.
        let ticket = line.iter().find(|seen| seen.op == waiter.op);
        ticket.inspect(|seen| queue.remove(seen)).is_some()
    }

    /// Waits in line for the lock, at most `at_most_ms`, and takes it. `None`:
    /// the sleeper said to stop.
    ///
    /// A process that is first in line tries; the register decides. Only the first
    /// looks at the register, so the load does not grow with the square of the
    /// line's length. One whose session keeps something until then, as `ties` tells,
    /// gives up if those who have the lock wait for that.
    pub fn wait(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
        at_most_ms: u64,
        lookup: Lookup<'_>,
        sleeper: &mut dyn Sleeper,
        ties: &dyn Ties,
    ) -> Result<Option<Lease<'r>>, LockError> {
        let started = self.seams.clock.now().boot;
        // A waiter watches anyway.
        let at_once = self.at_once();
        match at_once.acquire_in_turn(worktree, want, lookup) {
            Ok(lease) => return Ok(Some(lease)),
            // As patient as without a wait: a mount that stumbles is waited for.
            Err(error) if !is_worth_waiting(&error) && !retry::passes(&error) => return Err(error),
            Err(_) => {}
        }
        let queue = Queue::new(self.seams, worktree);
        let register = self.register(worktree);
        let mut place: Option<QueuePlace<'r>> = None;
        let mut first: Option<First> = None;
        let mut pace = Pace { looks: 0, ahead: usize::MAX };
        let mut shown = Waiting { ahead: 0, waiting: 1, waited_ms: 0, view: None };
        let mut circle = Circle::new(ties);
        loop {
            let in_line = match &mut place {
                Some(place) => place.look(lookup),
                none => {
                    let joined = queue.join(self.session(), want.lease_ms);
                    joined.and_then(|joined| none.insert(joined).look(lookup))
                }
            };
            let mut due_in_ms = u64::MAX;
            let mut listen = Vec::new();
            match in_line {
                Ok(Look::Waiting { ahead: 0, waiting, .. }) => {
                    (shown.ahead, shown.waiting) = (0, waiting);
                    listen.push(layout::register(worktree));
                    let first = first.get_or_insert_with(First::default);
                    match first.try_it(&at_once, &register, want) {
                        Ok(Tried::Got(lease)) => return Ok(Some(*lease)),
                        Ok(Tried::Not { again_in_ms }) => due_in_ms = again_in_ms,
                        Err(error) => return Err(error),
                    }
                    shown.view.clone_from(&first.view);
                }
                Ok(Look::Waiting { ahead, waiting, next }) => {
                    first = None;
                    (shown.ahead, shown.waiting) = (ahead, waiting);
                    listen.extend(next);
                    // A transfer takes the own ticket away.
                    listen.extend(place.as_ref().map(QueuePlace::ticket));
                }
                Ok(Look::Gone) => {
                    place = None;
                    if register.read()?.holder() == Some(self.session().nonce()) {
                        return self.acquire(worktree, want).map(Some);
                    }
                    // Back to the end of the line, but not in a hurry: a listing
                    // that never shows the own ticket must not become a storm, and
                    // the time limit counts here, too.
                }
                Err(error) if is_transient(&error) => {}
                Err(source) => {
                    let worktree = worktree.clone();
                    let doing = "cannot join the queue";
                    return Err(RegisterError::Io { worktree, doing, source }.into());
                }
            }
            shown.waited_ms = self.seams.clock.now().boot.since(started);
            if shown.waited_ms >= at_most_ms {
                drop(place);
                return Err(self.waited_in_vain(worktree, &shown)?);
            }
            if let Some(place) = &place {
                let own = Wait { worktree: worktree.clone(), waiter: *place.waiter() };
                let again_in_ms = circle.must_not_close(self, own, shown.waited_ms, lookup)?;
                due_in_ms = due_in_ms.min(again_in_ms);
            }
            sleeper.tell(&shown);
            let mut new = false;
            for what in &listen {
                new |= sleeper.watch(what);
            }
            if new {
                continue;
            }
            let pause = pace.next_ms(shown.ahead, self.seams.entropy);
            let pause = pause.min(due_in_ms).min(at_most_ms - shown.waited_ms).max(1);
            if sleeper.sleep(pause) == Woken::Stop {
                return Ok(None);
            }
        }
    }
}

impl Locks<'_> {
    /// What one is told whose time in line is over: that clocks disagree, if that
    /// is what kept it from a lock which looks abandoned.
    fn waited_in_vain(
        &self,
        worktree: &WorktreeName,
        shown: &Waiting,
    ) -> Result<LockError, LockError> {
        let view = match &shown.view {
            Some(view) if shown.ahead == 0 && is_in_doubt(view, &self.policy) => {
                let max_clock_skew_ms = self.policy.max_clock_skew_ms;
                let view = Box::new(view.clone());
                return Ok(LockError::ClockSkew { view, max_clock_skew_ms });
            }
            _ => Box::new(self.inspect(worktree)?),
        };
        Ok(LockError::InLine { ahead: shown.ahead, waited_ms: Some(shown.waited_ms), view })
    }
}

/// Does it rest on wall clocks that are proven to disagree?
fn is_in_doubt(view: &View, policy: &LockPolicy) -> bool {
    view.judgement.as_ref().is_some_and(|judged| is_skewed(judged, policy))
}

/// Is this a refusal that time may lift?
pub fn is_worth_waiting(error: &LockError) -> bool {
    matches!(
        error,
        LockError::Conflict(_)
            | LockError::Frozen(_)
            | LockError::ClockSkew { .. }
            | LockError::Unproven(_)
            | LockError::Legacy { .. }
            | LockError::InLine { .. }
    )
}

/// How often to look.
struct Pace {
    /// How many looks there were since somebody in front went.
    looks: u32,
    /// How many were in front then.
    ahead: usize,
}

impl Pace {
    /// How long to wait before the next look, with `ahead` in front.
    fn next_ms(&mut self, ahead: usize, entropy: &dyn Entropy) -> u64 {
        if ahead < self.ahead {
            *self = Pace { looks: 0, ahead };
        }
        let mut jitter = [0];
        entropy.fill(&mut jitter);
        let pause = pause_ms(ahead, self.looks, jitter[0]);
        self.looks = self.looks.saturating_add(1);
        pause
    }
}

/// What the first in line knows of the lock.
#[derive(Default)]
struct First {
    refused: Option<(State, BootMs)>,
    view: Option<View>,
}

enum Tried<'r> {
    Got(Box<Lease<'r>>),
    Not { again_in_ms: u64 },
}

impl First {
    /// Looks at the register; tries to take it if it changed, or if time has
    /// made it takeable.
    fn try_it<'r>(
        &mut self,
        locks: &Locks<'r>,
        register: &Register<'r>,
        want: Want<'_>,
    ) -> Result<Tried<'r>, LockError> {
        let before = locks.seams.clock.now();
        let state = match register.read() {
            Ok(state) => state,
            Err(crate::register::ReadError::Io { source, .. }) if is_transient(&source) => {
                return Ok(Tried::Not { again_in_ms: u64::MAX });
            }
            Err(error) => return Err(error.into()),
        };
        locks.saw(register.worktree(), &state, before);
        let after = locks.seams.clock.now();
        if let Some((_, due)) = self.refused.filter(|(at, due)| *at == state && after.boot < *due) {
            return Ok(Tried::Not { again_in_ms: due.since(after.boot) });
        }
        let error = match locks.acquire(register.worktree(), want) {
            Ok(lease) => return Ok(Tried::Got(Box::new(lease))),
            Err(error) if is_worth_waiting(&error) => error,
            Err(error) if retry::passes(&error) => {
                return Ok(Tried::Not { again_in_ms: u64::MAX });
            }
            Err(error) => return Err(error),
        };
        if let LockError::Legacy { .. } = error {
            // Its file may be gone at any moment: looked at again with every look.
            self.view = Some(locks.examine(register, &state, before)?);
            return Ok(Tried::Not { again_in_ms: u64::MAX });
        }
        let (LockError::Conflict(view)
        | LockError::Frozen(view)
        | LockError::Unproven(view)
        | LockError::ClockSkew { view, .. }) = error
        else {
            return Err(RegisterError::internal("a refusal worth waiting for has a view").into());
        };
        let due = due(locks, &view);
        self.refused = Some((state, due));
        self.view = Some(*view);
        Ok(Tried::Not { again_in_ms: due.since(after.boot) })
    }
}

/// When a refusal is worth asking again, if the register stays as it is: when
/// its clocks or the own watch make it stealable.
fn due(locks: &Locks<'_>, view: &View) -> BootMs {
    let observed = locks.observed_in_ms(view);
    let by_clocks = view.judgement.as_ref().map_or(0, |judged| judged.stealable_in_ms);
    view.at.boot.plus(match by_clocks {
        // Over by the clocks and refused anyway: they disagree.
        0 => observed,
        ms => ms.min(observed),
    })
}
