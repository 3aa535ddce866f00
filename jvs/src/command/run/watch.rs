//! Watching over a command, everything that it started, and the lease that protects
//! them: until nobody is left.

use jvs_kernel::signals::Signals;
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use rustix::process::Signal;

use super::FORWARDED;
use super::child::{Child, Ended, Pipe};
use crate::alarm::Alarm;
use crate::args::OnLoss;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::keeper::{self, Order, Pace, Said, Started, Tell};
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

/// Watches over a command and the lease that protects it.
pub(super) struct Watch<'w> {
    pub(super) context: &'w Context<'w>,
    pub(super) order: &'w Order<'w>,
    pub(super) on_loss: OnLoss,
    pub(super) pace: Pace,
    /// When belief ends, unless the keeper renews.
    pub(super) until: BootMs,
    pub(super) keeper: Option<Started>,
    /// Why the lease is lost, if it is.
    pub(super) lost: Option<String>,
    /// What the command leaves lives on.
    pub(super) leave: bool,
    /// Says that the lease is lost before anything is ended.
    pub(super) tells: bool,
    pub(super) orders: &'w Pipe,
    pub(super) ending: Option<Ending>,
}

/// The steps in which those are ended who are left.
pub(super) struct Ending {
    ask_at: Option<BootMs>,
    kill_at: BootMs,
    give_up_at: BootMs,
    /// How often nobody was to be seen after everybody was made to end.
    empty: u8,
    /// Who was there when all were asked.
    asked: Vec<Member>,
}

/// What came of it all.
pub(super) struct Outcome {
    pub(super) ended: Ended,
    /// Who had to be asked to end after the command had.
    pub(super) swept: Vec<Member>,
    /// Who lives on: as was wished, or because they could not be ended.
    pub(super) left: Vec<Member>,
}

impl Watch<'_> {
    /// Until everybody is gone, or is left alone as was wished.
    pub(super) fn until_all_have_ended(
        &mut self,
        child: &mut Child,
        signals: &Signals,
    ) -> Result<Outcome, Failure> {
        let alarm = Alarm::new().map_err(|error| Stuck::new("set a timer", error))?;
        loop {
            child.look();
            if child.is_gone(self.keeper_pid()) {
                return Ok(self.outcome(child, Vec::new()));
            }
            let stops = self.lost.is_some() && self.on_loss == OnLoss::Stop;
            if child.ended().is_some() && self.leave && !stops {
                let left = child.members(self.keeper_pid());
                child.leave(&self.orders.write);
                return Ok(self.outcome(child, left));
            }
            self.look_at_the_lease(child, &alarm);
            let now = SystemClock.now().boot;
            if child.ended().is_some() && self.ending.is_none() {
                self.ending = Some(Ending::of_what_is_left(now));
            }
            let go_on = self.go_on_ending(child, now);
            if self.ending.as_ref().is_some_and(|ending| ending.is_over(now)) {
                let left = child.members(self.keeper_pid());
                return Ok(self.outcome(child, left));
            }
            let next = [self.next_look(), go_on];
            // Nobody says any more who is left.
            let blind = child.ear().is_none().then(|| now.plus(AGAIN_MS));
            let next = next.into_iter().chain([blind]).flatten().min();
            let ear = self.keeper.as_ref().map(Started::ear);
            let [_, spoke, _] = alarm
                .wait([Some(signals.fd()), ear, child.ear()], next)
                .map_err(|error| Stuck::new("wait for the command", error))?;
            while let Some(signal) = signals.next() {
                if FORWARDED.contains(&signal) {
                    child.signal(signal);
                }
            }
            if spoke {
                self.hear(child);
            }
        }
    }

    fn outcome(&mut self, child: &Child, left: Vec<Member>) -> Outcome {
        let swept = match self.ending.take() {
            Some(ending) if self.lost.is_none() => ending.asked,
            _ => Vec::new(),
        };
        let ended = child.ended().unwrap_or(Ended::Signal(Signal::KILL.as_raw()));
        Outcome { ended, swept, left }
    }

    fn keeper_pid(&self) -> Option<u32> {
        self.keeper.as_ref().map(Started::pid)
    }

    /// Takes the next step, if it is time. Answers when the one after it is.
    fn go_on_ending(&mut self, child: &Child, now: BootMs) -> Option<BootMs> {
        let keeper = self.keeper.as_ref().map(Started::pid);
        let ending = self.ending.as_mut()?;
        if let Some(at) = ending.ask_at.filter(|at| now < *at) {
            return Some(at);
        }
        if ending.ask_at.take().is_some() {
            // A lost lease leaves no time for names.
            if self.lost.is_none() {
                ending.asked = child.members(keeper);
            }
            child.ask(keeper);
        }
        if now < ending.kill_at {
            return Some(ending.kill_at);
        }
        child.kill(keeper);
        let empty = child.members(keeper).is_empty();
        ending.empty = if empty { ending.empty + 1 } else { 0 };
        Some(now.plus(AGAIN_MS).min(ending.give_up_at))
    }

    /// When the lease must be looked at, if the keeper says nothing.
    fn next_look(&self) -> Option<BootMs> {
        self.lost.is_none().then(|| match self.on_loss {
            OnLoss::Stop => self.pace.run_gives_up(self.until),
            OnLoss::Warn => self.until,
        })
    }

    /// A keeper that is stopped or hangs ends nothing in time: this process does, too.
    fn look_at_the_lease(&mut self, child: &Child, alarm: &Alarm) {
        let is_over =
            |watch: &Self| watch.next_look().is_some_and(|at| SystemClock.now().boot >= at);
        if !is_over(self) {
            return;
        }
        // It may be this process that was stopped: then there is a word waiting, and
        // perhaps one more that did not fit.
        self.hear(child);
        if is_over(self) {
            let patience = CATCH_UP_MS.min(self.pace.grace_ms / 8);
            let soon = SystemClock.now().boot.plus(patience);
            let _ = alarm.wait([self.keeper.as_ref().map(Started::ear)], Some(soon));
            self.hear(child);
        }
        if is_over(self) {
            let why = match &self.keeper {
                Some(keeper) => format!(
                    "E_LOCK_EXPIRED: process {} did not renew the lease in time",
                    keeper.pid()
                ),
                None => "E_LOCK_EXPIRED: nobody renewed the lease in time".to_owned(),
            };
            self.lose(why);
        }
    }

    /// Takes in what the keeper said.
    fn hear(&mut self, child: &Child) {
        let Some(keeper) = &mut self.keeper else { return };
        let (said, gone) = keeper.hear();
        for word in said {
            match word {
                Said::Renewed(until) | Said::Ready(until) => self.until = until,
                Said::Lost(why) => self.lose(why),
                Said::Released | Said::Failed(_) | Said::NotBegun(..) => {}
            }
        }
        if gone {
            if let Some(keeper) = self.keeper.take() {
                keeper.kill();
            }
            if self.lost.is_none() {
                self.without_a_keeper(child);
            }
        }
    }

    /// The keeper was killed, or stood down for a release: another one goes on
    /// if the lease is still this session's, else it is lost.
    fn without_a_keeper(&mut self, child: &Child) {
        let by = self.pace.ready_by(SystemClock.now().boot, self.until);
        match keeper::start(self.context, self.order, Some(by)) {
            Ok(keeper) => {
                keeper.tell(&Tell::Tree(child.tree().clone()));
                self.until = keeper.until();
                self.keeper = Some(keeper);
            }
            Err(failure) => self.lose(failure.message()),
        }
    }

    /// With `stop` the failure tells, once everybody has ended; somebody at a terminal
    /// is told at once, and only then is anything ended.
    fn lose(&mut self, why: String) {
        if self.lost.is_some() {
            return;
        }
        let output = self.context.output();
        match self.on_loss {
            OnLoss::Warn => output.aside(&format!("warning: the lock was lost: {why}")),
            OnLoss::Stop => {
                if self.tells {
                    let worktree = &self.order.here.worktree;
                    let line = format!(
                        "\r\nwarning: the lock of worktree '{worktree}' was lost, \
                         everything started here is being ended: {why}\r"
                    );
                    output.aside(&line);
                }
                let now = SystemClock.now().boot;
                let limit = self.until.min(now.plus(self.pace.grace_ms));
                self.ending = Some(Ending::of_a_lost_lease(now, self.pace, limit));
            }
        }
        if let Some(keeper) = &self.keeper {
            keeper.tell(&Tell::Told);
        }
        self.lost = Some(why);
    }
}

impl Ending {
    /// Nobody more can be ended; or nobody is there, and it is the guardian that was
    /// stopped and cannot say so. Whoever was missed while being born is seen the next
    /// time.
    fn is_over(&self, now: BootMs) -> bool {
        now >= self.give_up_at || self.empty > 2
    }

    /// The command has ended; what it started has the time to end by itself.
    fn of_what_is_left(now: BootMs) -> Self {
        let ask_at = now.plus(LINGER_MS);
        let kill_at = ask_at.plus(ASKED_MS);
        Ending {
            ask_at: Some(ask_at),
            kill_at,
            give_up_at: kill_at.plus(TRY_ON_MS),
            empty: 0,
            asked: Vec::new(),
        }
    }

    /// Everything ends, before the lease does.
    fn of_a_lost_lease(now: BootMs, pace: Pace, limit: BootMs) -> Self {
        Ending {
            ask_at: Some(now),
            kill_at: pace.kills(limit),
            give_up_at: limit.max(now).plus(TRY_ON_MS),
            empty: 0,
            asked: Vec::new(),
        }
    }
}
