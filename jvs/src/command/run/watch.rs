//! Watching over a command, everything that it started, and the lease that protects
//! them: until nobody is left.

use std::os::fd::BorrowedFd;

use jvs_kernel::signals::Signals;
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use rustix::process::Signal;

use super::FORWARDED;
use super::child::{Child, Ended, Pipe};
use crate::alarm::Alarm;
use crate::args::OnLoss;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::keeper::{self, EndingPace, KeeperMessage, Order, Started, StarterMessage};
use crate::tree::Member;

/// How long what a command has left may take to end by itself: a filter that still
/// writes out what it has read.
const LINGER_MS: u64 = 300;
/// How long it may take once it was asked to.
const ASKED_MS: u64 = 3_000;
/// How much longer it is tried to end what does not end.
const TRY_ON_MS: u64 = 5_000;
/// Between two such tries.
const AGAIN_MS: u64 = 20;
/// How long a keeper may take, at most, to say what did not fit while this process was
/// stopped.
const CATCH_UP_MS: u64 = 100;
/// How long another keeper may take to begin, while nothing else is looked after.
const ANOTHER_MS: u64 = 3_000;

/// A lease that protects a command.
pub(super) struct Guarded<'w> {
    pub(super) order: Order<'w>,
    /// When belief ends, unless the keeper renews.
    pub(super) until: BootMs,
    /// How often a keeper that works renews.
    pub(super) interval_ms: u64,
    /// When it last said so, or was started.
    pub(super) renewed: BootMs,
    pub(super) keeper: Option<Started>,
    /// Why it is lost, if it is.
    pub(super) lost: Option<String>,
}

impl Guarded<'_> {
    fn extend(&mut self, until: BootMs) {
        self.until = until;
        self.renewed = SystemClock.now().boot;
    }

    fn stale_at(&self) -> Option<BootMs> {
        let watches = self.lost.is_none() && self.keeper.is_some();
        watches.then(|| self.renewed.plus(2 * self.interval_ms))
    }

    fn is_stale(&self) -> bool {
        self.stale_at().is_some_and(|at| SystemClock.now().boot >= at)
    }

    /// From now on this keeper keeps the lease. Answers the one that did.
    fn take_on(&mut self, keeper: Started, child: &Child) -> Option<Started> {
        keeper.tell(&StarterMessage::Tree(child.tree().clone()));
        self.extend(keeper.until());
        self.keeper.replace(keeper)
    }
}

/// Watches over a command and the leases that protect it, all of which it needs.
pub(super) struct RunWatch<'w> {
    pub(super) context: &'w Context<'w>,
    pub(super) on_loss: OnLoss,
    pub(super) pace: EndingPace,
    pub(super) leases: Vec<Guarded<'w>>,
    /// What the command leaves lives on.
    pub(super) leave: bool,
    /// Says that the lease is lost before anything is ended.
    pub(super) tells: bool,
    pub(super) orders: &'w Pipe,
    pub(super) ending: Option<EndingSteps>,
}

/// The steps in which those are ended who are left.
pub(super) struct EndingSteps {
    ask_at: Option<BootMs>,
    kill_at: BootMs,
    give_up_at: BootMs,
    /// How often nobody was to be seen after everybody was made to end.
    empty: u8,
    /// Who was there when all were asked.
    asked: Vec<Member>,
}

/// What came of it all.
pub(super) struct RunOutcome {
    pub(super) ended: Ended,
    /// Who had to be asked to end after the command had.
    pub(super) swept: Vec<Member>,
    /// Who lives on: as was wished, or because they could not be ended.
    pub(super) left: Vec<Member>,
}

impl RunWatch<'_> {
    /// Until everybody is gone, or is left alone as was wished.
    pub(super) fn until_all_have_ended(
        &mut self,
        child: &mut Child,
        signals: &Signals,
    ) -> Result<RunOutcome, Failure> {
        let alarm = Alarm::new().map_err(|error| Stuck::new("set a timer", error))?;
        loop {
            child.look();
            if child.is_gone(&self.keepers()) {
                // It may have been ended because this process was stopped for too long.
                self.look_at_the_leases(child, &alarm);
                return Ok(self.outcome(child, Vec::new()));
            }
            let stops = self.is_lost() && self.on_loss == OnLoss::Stop;
            if child.ended().is_some() && self.leave && !stops {
                let left = child.members(&self.keepers());
                child.leave(&self.orders.write);
                return Ok(self.outcome(child, left));
            }
            self.look_at_the_keepers(child);
            self.look_at_the_leases(child, &alarm);
            let now = SystemClock.now().boot;
            if child.ended().is_some() && self.ending.is_none() {
                self.ending = Some(EndingSteps::of_what_is_left(now));
            }
            let go_on = self.go_on_ending(child, now);
            if self.ending.as_ref().is_some_and(|ending| ending.is_over(now)) {
                let left = child.members(&self.keepers());
                return Ok(self.outcome(child, left));
            }
            let next = [self.next_look(), self.stale_at(), go_on];
            // Nobody says any more who is left.
            let blind = child.readable_fd().is_none().then(|| now.plus(AGAIN_MS));
            let next = next.into_iter().chain([blind]).flatten().min();
            let mut descriptors = vec![Some(signals.fd()), child.readable_fd()];
            descriptors.extend(self.leases.iter().map(Guarded::readable_fd));
            let (ready, _) = alarm
                .wait_for(&descriptors, None, next)
                .map_err(|error| Stuck::new("wait for the command", error))?;
            let spoke = ready[2..].contains(&true);
            while let Some(signal) = signals.next() {
                if FORWARDED.contains(&signal) {
                    child.signal(signal);
                }
            }
            if spoke {
                self.read_messages(child);
            }
        }
    }

    fn outcome(&mut self, child: &Child, left: Vec<Member>) -> RunOutcome {
        let swept = match self.ending.take() {
            Some(ending) if !self.is_lost() => ending.asked,
            _ => Vec::new(),
        };
        let ended = child.ended().unwrap_or(Ended::Signal(Signal::KILL.as_raw()));
        RunOutcome { ended, swept, left }
    }

    fn keepers(&self) -> Vec<u32> {
        self.leases.iter().filter_map(|lease| lease.keeper.as_ref()).map(Started::pid).collect()
    }

    /// Is one of them lost?
    pub(super) fn is_lost(&self) -> bool {
        self.leases.iter().any(|lease| lease.lost.is_some())
    }

    /// Takes the next step, if it is time. Answers when the one after it is.
    fn go_on_ending(&mut self, child: &Child, now: BootMs) -> Option<BootMs> {
        let (keepers, lost) = (self.keepers(), self.is_lost());
        let ending = self.ending.as_mut()?;
        if let Some(at) = ending.ask_at.filter(|at| now < *at) {
            return Some(at);
        }
        if ending.ask_at.take().is_some() {
            // A lost lease leaves no time for names.
            if !lost {
                ending.asked = child.members(&keepers);
            }
            child.ask(&keepers);
        }
        if now < ending.kill_at {
            return Some(ending.kill_at);
        }
        child.kill(&keepers);
        let empty = child.members(&keepers).is_empty();
        ending.empty = if empty { ending.empty + 1 } else { 0 };
        Some(now.plus(AGAIN_MS).min(ending.give_up_at))
    }

    /// When the leases must be looked at, if their keepers say nothing.
    fn next_look(&self) -> Option<BootMs> {
        self.leases.iter().filter_map(|lease| self.next_look_at(lease)).min()
    }

    fn next_look_at(&self, lease: &Guarded<'_>) -> Option<BootMs> {
        lease.lost.is_none().then(|| match self.on_loss {
            OnLoss::Stop => self.pace.run_gives_up(lease.until),
            OnLoss::Warn => lease.until,
        })
    }

    /// When a keeper that says nothing is taken for stopped, or hung: it may live, and
    /// renew nothing for as long as it does.
    fn stale_at(&self) -> Option<BootMs> {
        self.leases.iter().filter_map(Guarded::stale_at).min()
    }

    /// Starts another keeper beside one that does not renew. If that cannot begin, the
    /// one that is there has the time that the lease has.
    fn look_at_the_keepers(&mut self, child: &Child) {
        for at in 0..self.leases.len() {
            if !self.leases[at].is_stale() {
                continue;
            }
            // It may be this process that was stopped.
            self.read_messages(child);
            let lease = &mut self.leases[at];
            if !lease.is_stale() {
                continue;
            }
            let now = SystemClock.now().boot;
            lease.renewed = now;
            let by = self.pace.ready_by(now, lease.until).min(now.plus(ANOTHER_MS));
            if let Ok(another) = keeper::start(self.context, &lease.order, Some(by))
                && let Some(stale) = lease.take_on(another, child)
            {
                stale.kill();
            }
        }
    }

    fn is_over(&self, at: usize) -> bool {
        self.next_look_at(&self.leases[at]).is_some_and(|look| SystemClock.now().boot >= look)
    }

    /// A keeper that is stopped or hangs ends nothing in time: this process does, too.
    fn look_at_the_leases(&mut self, child: &Child, alarm: &Alarm) {
        for at in 0..self.leases.len() {
            if !self.is_over(at) {
                continue;
            }
            // It may be this process that was stopped: then there is a word waiting, and
            // perhaps one more that did not fit.
            self.read_messages(child);
            if self.is_over(at) {
                let patience = CATCH_UP_MS.min(self.pace.grace_ms / 8);
                let soon = SystemClock.now().boot.plus(patience);
                let _ = alarm.wait([self.leases[at].readable_fd()], Some(soon));
                self.read_messages(child);
            }
            if self.is_over(at) {
                let why = match &self.leases[at].keeper {
                    Some(keeper) => format!(
                        "E_LOCK_EXPIRED: process {} did not renew the lease in time",
                        keeper.pid()
                    ),
                    None => "E_LOCK_EXPIRED: nobody renewed the lease in time".to_owned(),
                };
                self.lose(at, why);
            }
        }
    }

    /// Takes in what the keepers said.
    fn read_messages(&mut self, child: &Child) {
        for at in 0..self.leases.len() {
            let Some(keeper) = &mut self.leases[at].keeper else { continue };
            let (said, gone) = keeper.messages();
            for word in said {
                match word {
                    KeeperMessage::Renewed(until) | KeeperMessage::Ready(until) => {
                        self.leases[at].extend(until)
                    }
                    KeeperMessage::Lost(why) => self.lose(at, why),
                    KeeperMessage::Released
                    | KeeperMessage::GoesOn
                    | KeeperMessage::Failed(_)
                    | KeeperMessage::NotBegun(..) => {}
                }
            }
            if gone {
                if let Some(keeper) = self.leases[at].keeper.take() {
                    keeper.kill();
                }
                if self.leases[at].lost.is_none() {
                    self.without_a_keeper(at, child);
                }
            }
        }
    }

    /// The keeper was killed, or stood down for a release: another one goes on
    /// if the lease is still this session's, else it is lost.
    fn without_a_keeper(&mut self, at: usize, child: &Child) {
        let lease = &mut self.leases[at];
        let by = self.pace.ready_by(SystemClock.now().boot, lease.until);
        match keeper::start(self.context, &lease.order, Some(by)) {
            Ok(keeper) => drop(lease.take_on(keeper, child)),
            Err(failure) => self.lose(at, failure.message()),
        }
    }

    /// With `stop` the failure tells, once everybody has ended; somebody at a terminal
    /// is told at once, and only then is anything ended.
    fn lose(&mut self, at: usize, why: String) {
        if self.leases[at].lost.is_some() {
            return;
        }
        let (output, lease) = (self.context.output(), &self.leases[at]);
        let worktree = &lease.order.here.worktree;
        match self.on_loss {
            OnLoss::Warn if self.leases.len() == 1 => {
                output.aside(&format!("warning: the lock was lost: {why}"));
            }
            OnLoss::Warn => {
                output
                    .aside(&format!("warning: the lock of worktree '{worktree}' was lost: {why}"));
            }
            OnLoss::Stop => {
                if self.tells {
                    let line = format!(
                        "\r\nwarning: the lock of worktree '{worktree}' was lost, \
                         everything started here is being ended: {why}\r"
                    );
                    output.aside(&line);
                }
                let now = SystemClock.now().boot;
                let limit = lease.until.min(now.plus(self.pace.grace_ms));
                let ending = EndingSteps::of_a_lost_lease(now, self.pace, limit);
                let begun = self.ending.take().filter(|_| self.is_lost());
                self.ending = Some(match begun {
                    Some(begun) => begun.no_later_than(ending),
                    None => ending,
                });
            }
        }
        if let Some(keeper) = &self.leases[at].keeper {
            keeper.tell(&StarterMessage::Told);
        }
        self.leases[at].lost = Some(why);
    }
}

impl Guarded<'_> {
    fn readable_fd(&self) -> Option<BorrowedFd<'_>> {
        self.keeper.as_ref().map(Started::readable_fd)
    }
}

impl EndingSteps {
    /// Nobody more can be ended; or nobody is there, and it is the guardian that was
    /// stopped and cannot say so. A process that was missed while being born is seen the next
    /// time.
    fn is_over(&self, now: BootMs) -> bool {
        now >= self.give_up_at || self.empty > 2
    }

    /// The same for a second lease that is lost meanwhile.
    fn no_later_than(self, other: EndingSteps) -> Self {
        EndingSteps { kill_at: self.kill_at.min(other.kill_at), ..self }
    }

    /// The command has ended; what it started has the time to end by itself.
    fn of_what_is_left(now: BootMs) -> Self {
        let ask_at = now.plus(LINGER_MS);
        let kill_at = ask_at.plus(ASKED_MS);
        EndingSteps {
            ask_at: Some(ask_at),
            kill_at,
            give_up_at: kill_at.plus(TRY_ON_MS),
            empty: 0,
            asked: Vec::new(),
        }
    }

    /// Everything ends, before the lease does.
    fn of_a_lost_lease(now: BootMs, pace: EndingPace, limit: BootMs) -> Self {
        EndingSteps {
            ask_at: Some(now),
            kill_at: pace.kills(limit),
            give_up_at: limit.max(now).plus(TRY_ON_MS),
            empty: 0,
            asked: Vec::new(),
        }
    }
}
