//! Waiting for one's turn and then taking the lock.

use std::io;

use jvs_repo::clock::{BootMs, Clock};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::{HolderNonce, OpNonce};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;

use super::circle::Circle;
use super::deadlock::Wait;
use super::turn::{doubtful_pause_ms, listens};
use super::{Fingerprint, Look, Lookup, Neighbour, Queue, QueuePlace, Waiter, pause_ms};
use crate::decide::is_skewed;
use crate::error::{AcquireError, RegisterError, TakeOverError, TurnError};
use crate::hold::Ties;
use crate::lease::Lease;
use crate::locks::{Locks, NewEpoch, Want};
use crate::register::{ReadError, Register, is_transient};
use crate::retry;
use crate::session::SessionId;
use crate::state::{Hold, State};
use crate::view::View;

/// What ended a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The time.
    Time,
    /// A change of what is watched: look now.
    Change,
    /// The user: stop waiting.
    Stop,
}

/// Whether something is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchBegun {
    /// It was there, and whatever happens to it from now on wakes.
    Yes,
    /// It is not there.
    NotThere,
    /// That cannot be watched here.
    Impossible,
}

/// How a waiter sleeps between two looks. Waking early is a hint: a wait without it still
/// ends, only later.
pub trait Sleeper {
    /// Wake when something changes in the directory or file `what`.
    fn watch(&mut self, what: &RepoPath) -> WatchBegun;

    /// Wake when that process ends; this replaces the process followed before.
    fn follow(&mut self, _pid: u32) -> WatchBegun {
        WatchBegun::Impossible
    }

    /// Sleeps until something watched changes, at most this long.
    fn sleep(&mut self, ms: u64) -> Woken;

    /// Told the status of the wait before each sleep.
    fn tell(&mut self, _waiting: &Waiting) {}
}

/// A sleeper that watches nothing.
pub struct SleepOnly<'c>(pub &'c dyn Clock);

impl Sleeper for SleepOnly<'_> {
    fn watch(&mut self, _what: &RepoPath) -> WatchBegun {
        WatchBegun::Impossible
    }

    fn sleep(&mut self, ms: u64) -> Woken {
        self.0.sleep_ms(ms);
        Woken::Time
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
    ) -> Result<Lease<'r>, TurnError> {
        let queue = Queue::new(self.seams, worktree);
        // A line that cannot be read keeps nobody out: it is about fairness only.
        let line = queue.list().unwrap_or_default();
        let me = self.session().nonce();
        let others = line.into_iter().filter(|waiter| waiter.holder != me);
        let mut present = queue.present(others, self.session(), lookup);
        if present.next().is_some() {
            let view = self.inspect(worktree)?;
            let may_be_taken = !view.mine && view.is_takeable();
            if may_be_taken {
                let (ahead, view) = (1 + present.count(), Box::new(view));
                return Err(TurnError::InLine { ahead, waited_ms: None, view });
            }
        }
        Ok(self.acquire(worktree, want)?)
    }

    /// Takes a lock over whose holder is gone, by somebody who says why: past
    /// those who wait, but only from a holder. A free one is theirs.
    pub fn steal(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
        lookup: Lookup<'_>,
    ) -> Result<Lease<'r>, TurnError> {
        match self.inspect(worktree)?.state.hold {
            Hold::Held(_) => Ok(self.acquire(worktree, want)?),
            _ => self.acquire_in_turn(worktree, want, lookup),
        }
    }

    /// The first of `session`'s waiters in line, if one waits.
    pub fn waiter(
        &self,
        worktree: &WorktreeName,
        session: &SessionId,
        lookup: Lookup<'_>,
    ) -> Result<Option<Waiter>, RegisterError> {
        let mark = Fingerprint::of_session(session);
        self.first_waiter(worktree, lookup, &|waiter| waiter.session == mark)
    }

    /// The first waiter in line that is not this session's own.
    pub fn next_in_line(
        &self,
        worktree: &WorktreeName,
        lookup: Lookup<'_>,
    ) -> Result<Option<Waiter>, RegisterError> {
        let mine = Fingerprint::of_session(self.session().id());
        self.first_waiter(worktree, lookup, &|waiter| waiter.session != mine)
    }

    fn first_waiter(
        &self,
        worktree: &WorktreeName,
        lookup: Lookup<'_>,
        is_meant: &dyn Fn(&Waiter) -> bool,
    ) -> Result<Option<Waiter>, RegisterError> {
        let queue = Queue::new(self.seams, worktree);
        let list = queue.list().map_err(|source| RegisterError::Io {
            worktree: worktree.clone(),
            doing: "cannot read the queue",
            source,
        })?;
        let mut present = queue.present(list, self.session(), lookup);
        Ok(present.find(is_meant))
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
    /// Whoever is first in line tries; the register decides. Only the first looks at the
    /// register, and everybody else at the one in front of it, so that a turn costs the
    /// same however many wait. One whose session keeps something until then, as `ties`
    /// tells, gives up if those who have the lock wait for that.
    pub fn wait(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
        at_most_ms: u64,
        lookup: Lookup<'_>,
        sleeper: &mut dyn Sleeper,
        ties: &dyn Ties,
    ) -> Result<Option<Lease<'r>>, TurnError> {
        let clock = self.seams.clock;
        let started = clock.now().boot;
        // Whoever waits watches anyway.
        let locks = self.at_once();
        let behind = match locks.take_or_stand(worktree, want, lookup)? {
            Taken::Got(lease) => return Ok(Some(*lease)),
            Taken::Stand { behind } => behind,
        };
        let mut stand = Stand::new(&locks, worktree, want, lookup, behind);
        let mut circle = Circle::new(ties);
        let mut woken = Woken::Change;
        loop {
            let is_due = woken == Woken::Change || stand.due <= clock.now().boot;
            if is_due && let Some(lease) = stand.look(sleeper)? {
                return Ok(Some(lease));
            }
            let now = clock.now().boot;
            let waited_ms = now.since(started);
            stand.shown.waited_ms = waited_ms;
            if waited_ms >= at_most_ms {
                let Stand { place, shown, .. } = stand;
                drop(place);
                return Err(self.waited_in_vain(worktree, &shown)?);
            }
            let mut pause_ms = stand.due.since(now).min(at_most_ms - waited_ms);
            if let Some(place) = &stand.place {
                let own = Wait { worktree: worktree.clone(), waiter: *place.waiter() };
                let again_in_ms = circle.must_not_close(self, own, waited_ms, lookup)?;
                pause_ms = pause_ms.min(again_in_ms);
            }
            sleeper.tell(&stand.shown);
            woken = sleeper.sleep(pause_ms.max(1));
            if woken == Woken::Stop {
                return Ok(None);
            }
        }
    }

    /// Takes the lock if nobody waits for it and it can be had now.
    fn take_or_stand(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
        lookup: Lookup<'_>,
    ) -> Result<Taken<'r>, AcquireError> {
        let queue = Queue::new(self.seams, worktree);
        // A line that cannot be read keeps nobody out: it is about fairness only.
        let line = queue.list().unwrap_or_default();
        let me = self.session().nonce();
        let others = line.iter().copied().filter(|waiter| waiter.holder != me);
        let is_waited_for = queue.present(others, self.session(), lookup).next().is_some();
        let taken = match is_waited_for {
            true => match self.register(worktree).read() {
                Ok(state) if is_another_s_turn(&state, me) => {
                    return Ok(Taken::Stand { behind: Some(line) });
                }
                Ok(_) => self.acquire(worktree, want),
                Err(error) => Err(error.into()),
            },
            false => self.acquire(worktree, want),
        };
        match taken {
            Ok(lease) => Ok(Taken::Got(Box::new(lease))),
            // As patient as without a wait: a mount that stumbles is waited for.
            Err(AcquireError::Take(error)) if error.is_worth_waiting() || retry::passes(&error) => {
                Ok(Taken::Stand { behind: None })
            }
            Err(error) => Err(error),
        }
    }
}

/// What came of a first attempt.
enum Taken<'r> {
    Got(Box<Lease<'r>>),
    /// In line, behind those who were seen, if nothing was tried since.
    Stand {
        behind: Option<Vec<Waiter>>,
    },
}

/// With others in line, is there nothing to try? One's own hold is refreshed past them, and
/// who asks for what is no lock any more is told.
fn is_another_s_turn(state: &State, me: HolderNonce) -> bool {
    state.hold != Hold::Retired && state.holder() != Some(me)
}

/// One who stands in line.
struct Stand<'w, 'r> {
    locks: &'w Locks<'r>,
    worktree: &'w WorktreeName,
    want: Want<'w>,
    lookup: Lookup<'w>,
    queue: Queue<'r>,
    register: Register<'r>,
    /// Whom to stand behind, until it has joined.
    behind: Option<Vec<Waiter>>,
    place: Option<QueuePlace<'r>>,
    first: Option<First>,
    /// The one in front at the last look.
    next: Option<OpNonce>,
    /// How many looks in a row made no sense.
    doubts: u32,
    /// When to look again, whether or not it was woken.
    due: BootMs,
    shown: Waiting,
}

impl<'w, 'r> Stand<'w, 'r> {
    fn new(
        locks: &'w Locks<'r>,
        worktree: &'w WorktreeName,
        want: Want<'w>,
        lookup: Lookup<'w>,
        behind: Option<Vec<Waiter>>,
    ) -> Self {
        Stand {
            locks,
            worktree,
            want,
            lookup,
            queue: Queue::new(locks.seams, worktree),
            register: locks.register(worktree),
            behind,
            place: None,
            first: None,
            next: None,
            doubts: 0,
            due: BootMs(0),
            shown: Waiting { ahead: 0, waiting: 1, waited_ms: 0, view: None },
        }
    }

    /// Looks at the line, and from its front at the lock. Says when to look again.
    fn look(&mut self, sleeper: &mut dyn Sleeper) -> Result<Option<Lease<'r>>, AcquireError> {
        let again_in_ms = match self.in_line() {
            Ok(Look::Waiting { ahead: 0, waiting, .. }) => {
                (self.shown.ahead, self.shown.waiting) = (0, waiting);
                match self.at_front(sleeper)? {
                    Tried::Got(lease) => return Ok(Some(*lease)),
                    Tried::Not { again_in_ms } => again_in_ms,
                }
            }
            Ok(Look::Waiting { ahead, waiting, next }) => {
                self.first = None;
                (self.shown.ahead, self.shown.waiting) = (ahead, waiting);
                match self.is_watched(sleeper, next) {
                    true => self.pause_ms(ahead),
                    // It went between the look and now.
                    false => self.in_doubt_ms(),
                }
            }
            Ok(Look::Gone) => {
                (self.place, self.first) = (None, None);
                if self.register.read()?.holder() == Some(self.locks.session().nonce()) {
                    return self.locks.acquire(self.worktree, self.want).map(Some);
                }
                // Back to the end of the line, but not in a hurry: a listing
                // that never shows the own ticket must not become a storm, and
                // the time limit counts here, too.
                self.in_doubt_ms()
            }
            Err(error) if is_transient(&error) => self.in_doubt_ms(),
            Err(source) => {
                let worktree = self.worktree.clone();
                let doing = "cannot join the queue";
                return Err(RegisterError::Io { worktree, doing, source }.into());
            }
        };
        self.due = self.locks.seams.clock.now().boot.plus(again_in_ms);
        Ok(None)
    }

    /// Tries to take the lock.
    fn at_front(&mut self, sleeper: &mut dyn Sleeper) -> Result<Tried<'r>, AcquireError> {
        let clock = self.locks.seams.clock;
        let began = clock.now().boot;
        let first = self.first.get_or_insert_with(|| First::since(began));
        if listens(began.since(first.since), first.spent_ms) {
            // First the watch, then the look: whatever comes after it wakes.
            sleeper.watch(&layout::register(self.worktree));
        }
        let tried = first.try_it(self.locks, &self.register, self.want)?;
        let Tried::Not { again_in_ms } = tried else { return Ok(tried) };
        self.doubts = 0;
        self.shown.view.clone_from(&first.view);
        let now = clock.now().boot;
        first.spent_ms += now.since(began);
        // Where a look takes its time, most of it is left to those who work.
        let at_least = 4 * now.since(began);
        let pause = pause_ms(0, now.since(first.since), 0).max(at_least);
        Ok(Tried::Not { again_in_ms: again_in_ms.min(pause) })
    }

    fn in_line(&mut self) -> io::Result<Look> {
        if let Some(place) = &mut self.place {
            return place.stay(self.lookup);
        }
        let (session, lease_ms) = (self.locks.session(), self.want.lease_ms);
        let joined = match self.behind.take() {
            Some(line) => self.queue.join_behind(&line, session, lease_ms),
            None => self.queue.join(session, lease_ms),
        };
        self.place.insert(joined?).look(self.lookup)
    }

    /// Follows the process ahead, which ends soon after it got the lock or with it. Where the
    /// line stands still, also watches its ticket and the own, which a transfer takes
    /// away. False if one of them is gone: then what was to be noticed was missed.
    fn is_watched(&mut self, sleeper: &mut dyn Sleeper, next: Option<Neighbour>) -> bool {
        let Some(next) = next else { return true };
        if next.pid.is_some_and(|pid| sleeper.follow(pid) == WatchBegun::NotThere) {
            return false;
        }
        let stands_still = self.next.replace(next.op) == Some(next.op);
        if !stands_still {
            return true;
        }
        let own = self.place.as_ref().map(QueuePlace::ticket);
        let mut tickets = [next.ticket].into_iter().chain(own);
        tickets.all(|ticket| sleeper.watch(&ticket) != WatchBegun::NotThere)
    }

    /// How long to wait with so many in front.
    fn pause_ms(&mut self, ahead: usize) -> u64 {
        self.doubts = 0;
        pause_ms(ahead, 0, self.jitter())
    }

    /// How long to wait after a look that made no sense.
    fn in_doubt_ms(&mut self) -> u64 {
        let pause = doubtful_pause_ms(self.doubts, self.jitter());
        self.doubts = self.doubts.saturating_add(1);
        pause
    }

    fn jitter(&self) -> u8 {
        let mut jitter = [0];
        self.locks.seams.entropy.fill(&mut jitter);
        jitter[0]
    }
}

impl Locks<'_> {
    /// What one is told whose time in line is over: that clocks disagree, if that
    /// is what kept it from a lock which looks abandoned.
    fn waited_in_vain(
        &self,
        worktree: &WorktreeName,
        shown: &Waiting,
    ) -> Result<TurnError, RegisterError> {
        let view = match &shown.view {
            Some(view) if shown.ahead == 0 && is_in_doubt(view, &self.policy) => {
                let max_clock_skew_ms = self.policy.max_clock_skew_ms;
                let view = Box::new(view.clone());
                let skewed = TakeOverError::ClockSkew { view, max_clock_skew_ms };
                return Ok(AcquireError::from(skewed).into());
            }
            _ => Box::new(self.inspect(worktree)?),
        };
        Ok(TurnError::InLine { ahead: shown.ahead, waited_ms: Some(shown.waited_ms), view })
    }
}

/// Does it rest on wall clocks that are proven to disagree?
fn is_in_doubt(view: &View, policy: &LockPolicy) -> bool {
    view.judgement.as_ref().is_some_and(|judged| is_skewed(judged, policy))
}

/// What the first in line knows of the lock.
struct First {
    /// Since when it is the first.
    since: BootMs,
    /// How long its looks have taken.
    spent_ms: u64,
    refused: Option<(State, BootMs)>,
    /// The first state of an epoch that it waits through, and since when.
    begun: Option<(State, BootMs)>,
    view: Option<View>,
}

/// How long an epoch that has just begun is left to the session that held the lock before:
/// its command failed to rename or remove the worktree, and takes the lock again. Nothing
/// depends on it but who is first.
const BEGUN_IS_LEFT_MS: u64 = 2_000;

enum Tried<'r> {
    Got(Box<Lease<'r>>),
    Not { again_in_ms: u64 },
}

impl First {
    fn since(now: BootMs) -> Self {
        First { since: now, spent_ms: 0, refused: None, begun: None, view: None }
    }

    /// Tries to take the lock if it changed, or if time has made it takeable.
    fn try_it<'r>(
        &mut self,
        locks: &Locks<'r>,
        register: &Register<'r>,
        want: Want<'_>,
    ) -> Result<Tried<'r>, AcquireError> {
        let worktree = register.worktree();
        let not_yet = Ok(Tried::Not { again_in_ms: u64::MAX });
        let before = locks.seams.clock.now();
        let state = match register.read() {
            Ok(state) => state,
            Err(ReadError::Io { source, .. }) if is_transient(&source) => return not_yet,
            Err(error) => return Err(error.into()),
        };
        locks.saw(worktree, &state, before);
        let now = locks.seams.clock.now().boot;
        if let Some(due) = self.left_to_another_until(&state, now).filter(|due| now < *due) {
            return Ok(Tried::Not { again_in_ms: due.since(now) });
        }
        if let Some((_, due)) = self.refused.filter(|(at, due)| *at == state && now < *due) {
            return Ok(Tried::Not { again_in_ms: due.since(now) });
        }
        // What begins after that READ is left, too.
        let new_epoch = NewEpoch::Left { but: self.begun.map(|(begun, _)| begun) };
        let want = Want { new_epoch, just_read: Some(state), ..want };
        let refusal = match locks.acquire(worktree, want).map_err(TakeOverError::try_from) {
            Ok(lease) => return Ok(Tried::Got(Box::new(lease))),
            Err(Ok(refusal)) => refusal,
            Err(Err(error)) => return Err(error),
        };
        let view = match refusal {
            TakeOverError::Legacy { .. } => {
                // Its file may be gone at any moment: tried again with every look.
                (self.refused, self.view) = (None, Some(locks.inspect(worktree)?));
                return not_yet;
            }
            TakeOverError::Conflict(view)
            | TakeOverError::Frozen(view)
            | TakeOverError::Unproven(view)
            | TakeOverError::ClockSkew { view, .. } => view,
            TakeOverError::JustBegun { .. } => return not_yet,
            error if retry::passes(&error) => return not_yet,
            error => return Err(error.into()),
        };
        let due = due(locks, &view);
        self.refused = Some((view.state, due));
        self.view = Some(*view);
        Ok(Tried::Not { again_in_ms: due.since(locks.seams.clock.now().boot) })
    }

    /// Until when an epoch that has just begun is left to the session that held the lock
    /// before it.
    fn left_to_another_until(&mut self, state: &State, now: BootMs) -> Option<BootMs> {
        if !state.follows_another_epoch() {
            return None;
        }
        let (begun, since) =
            self.begun.filter(|(begun, _)| begun == state).unwrap_or((*state, now));
        self.begun = Some((begun, since));
        Some(since.plus(BEGUN_IS_LEFT_MS))
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
