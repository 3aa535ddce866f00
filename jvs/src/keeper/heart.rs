//! The keeper's life: `jvs __keeper`, never typed by anybody.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use jvs_kernel::signals::Signals;
use jvs_lock::record::Keeper;
use jvs_lock::span::Span;
use jvs_lock::{Belief, Session, Ticket, retry};
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::code::Code;
use rustix::event::EventfdFlags;
use rustix::process::{Pid, Signal};

use super::hands::{self, Did, Do};
use super::identity::Identity;
use super::voice::Voice;
use super::wire::{Lines, Said, Tell};
use super::{note, stop_group};
use crate::alarm::Alarm;
use crate::args::{KeeperArgs, OnLoss};
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck};
use crate::render::Done;

/// How long the group may take to end by itself when nothing presses.
const GRACE_MS: u64 = 5_000;
/// How long a release may take before the lease is left to expire.
const RELEASE_MS: u64 = 10_000;
/// Shortest time between two renewals.
const SHORTEST_INTERVAL_MS: u64 = 20;

pub(crate) fn run(context: &Context<'_>, args: &KeeperArgs) -> Result<Done, Failure> {
    match begin(context, args) {
        Ok(heart) => heart.beat().map(|()| Done::new(serde_json::Value::Null)),
        Err(failure) => {
            let said = Said::NotBegun(failure.code(), failure.message());
            Voice::new(io::stdout()).say(said);
            Err(failure)
        }
    }
}

struct Heart {
    context: &'static Context<'static>,
    session: &'static Session,
    /// Where it has written down who it is, unless another one keeps the lock too.
    identity: Option<Identity>,
    signals: Signals,
    alarm: Alarm,
    /// Rung by the hands.
    bell: Arc<OwnedFd>,
    orders: Sender<Do>,
    answers: Receiver<Did>,
    belief: Belief,
    /// Ends with any of these.
    follows: Vec<OwnedFd>,
    /// Whoever reads what is said also speaks, and is gone when it falls silent.
    attached: bool,
    voice: Voice<io::Stdout>,
    /// The hold is another's, of the same session: it is not given back.
    guest: bool,
    on_loss: OnLoss,
    group: Option<Pid>,
    interval_ms: u64,
    grace_ms: u64,
    ends: Option<BootMs>,
}

/// How it ends.
enum End {
    /// Give the lock back.
    Release,
    /// Leave the lock as it is: somebody else goes on with it.
    StandDown,
    /// The lock is gone.
    Lost(String),
    /// Whoever ran the group is gone: the group must not outlive the lease.
    Orphaned,
}

fn begin(context: &Context<'_>, args: &KeeperArgs) -> Result<Heart, Failure> {
    let stuck = |doing: &'static str| move |error: io::Error| Stuck::new(doing, error);
    // Out of the terminal's reach: neither its Ctrl-C nor its end is ours.
    let _ = rustix::process::setsid();
    let caught = [Signal::TERM, Signal::INT, Signal::HUP, Signal::USR1];
    let signals = Signals::catch(&caught).map_err(stuck("catch signals"))?;
    let mut follows = Vec::new();
    for process in &args.follow {
        follows.extend(super::start::pidfd(process.pid, process.start_time));
    }
    if follows.len() < args.follow.len() {
        let gone = io::Error::from(io::ErrorKind::NotFound);
        return Err(stuck("find the process that the lock is kept for")(gone).into());
    }

    let context = context.for_ever();
    let here: &'static Here = Box::leak(Box::new(context.here()?));
    let acting = Box::leak(Box::new(context.session(args.purpose)?));
    let policy = here.repo.config()?.lock;
    let locks = context.locks(here.repo.store(), policy, acting)?;
    let ticket = Ticket { worktree: here.worktree.clone(), epoch: args.epoch, token: args.token };
    let mut lease = locks.resume(&here.worktree, Some(&ticket))?;
    let identity = Identity::of(context, here)?.filter(|_| !args.guest);
    if let Some(identity) = &identity {
        // First: nobody may think that a lock is kept whose keeper cannot be found.
        identity.write(&acting.session)?;
        // Best effort, as all that is in the record.
        let _ = lease.set_keeper(Some(Keeper::of(&acting.session)));
    }
    let seams = context.seams(here.repo.store());
    retry::while_transient(seams, || lease.renew())?;
    let belief = lease.belief();
    let lease_ms = lease.claim().lease_ms;
    let share = u128::from(lease_ms) * u128::from(policy.renew_interval_ms)
        / u128::from(policy.lease_duration_ms.max(1));
    let interval_ms =
        u64::try_from(share).unwrap_or(u64::MAX).min(lease_ms / 2).max(SHORTEST_INTERVAL_MS);
    let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| stuck("make a bell")(error.into()))?;
    let bell = Arc::new(bell);
    let (orders, receiver) = mpsc::channel();
    let (sender, answers) = mpsc::channel();
    let for_hands = Arc::clone(&bell);
    std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(move || hands::work(lease, &receiver, &sender, &for_hands, seams))
        .map_err(stuck("start a thread"))?;
    let now = SystemClock.now().boot;
    let mut voice = Voice::new(io::stdout());
    voice.say(Said::Ready(belief.until().unwrap_or(now)));
    Ok(Heart {
        context,
        session: &acting.session,
        identity,
        signals,
        alarm: Alarm::new().map_err(stuck("set a timer"))?,
        bell,
        orders,
        answers,
        belief,
        follows,
        attached: args.attached,
        voice,
        guest: args.guest,
        on_loss: args.on_loss,
        group: None,
        interval_ms,
        grace_ms: GRACE_MS.min(lease_ms / 3),
        ends: args.for_ms.map(|ms| now.plus(ms)),
    })
}

impl Heart {
    fn beat(mut self) -> Result<(), Failure> {
        let end = self.until_the_end()?;
        let (identity, session) = (self.identity.take(), self.session);
        match end {
            End::StandDown => self.settle(),
            End::Release => self.give_back(),
            End::Orphaned => {
                self.end_group(SystemClock.now().boot.plus(self.grace_ms));
                self.give_back();
            }
            End::Lost(why) => self.lost(&why)?,
        }
        if let Some(identity) = identity {
            identity.remove(session);
        }
        Ok(())
    }

    /// Renews in time, until there is a reason to stop.
    fn until_the_end(&mut self) -> Result<End, Failure> {
        let control = io::stdin();
        let mut lines = Lines::default();
        let mut renew_at = SystemClock.now().boot.plus(self.interval_ms);
        let mut busy = false;
        let mut trouble = String::new();
        loop {
            let now = SystemClock.now().boot;
            let Some(until) = self.belief.until() else {
                return Ok(End::Lost(trouble));
            };
            let last_moment = self.last_moment(until);
            if now >= last_moment {
                return Ok(End::Lost(ran_out(now, until, &trouble)));
            }
            if self.ends.is_some_and(|ends| now >= ends) {
                return Ok(End::Release);
            }
            if now >= renew_at && !busy {
                busy = self.orders.send(Do::Renew).is_ok();
                renew_at = now.plus(self.interval_ms);
            }
            let next = [Some(last_moment), self.ends, (!busy).then_some(renew_at)];
            let next = next.into_iter().flatten().min();
            let (woke, room) = self
                .alarm
                .wait_or_write(
                    [
                        Some(self.signals.fd()),
                        Some(self.bell.as_fd()),
                        self.attached.then_some(control.as_fd()),
                        self.follows.first().map(AsFd::as_fd),
                        self.follows.get(1).map(AsFd::as_fd),
                    ],
                    self.voice.waits_for(),
                    next,
                )
                .map_err(|error| Stuck::new("wait", error))?;
            let [_, rung, spoken, first_gone, second_gone] = woke;
            if room {
                self.voice.go_on();
            }
            while let Some(signal) = self.signals.next() {
                match signal {
                    Signal::USR1 => return Ok(End::StandDown),
                    Signal::TERM => return Ok(End::Release),
                    _ => {}
                }
            }
            if first_gone || second_gone {
                return Ok(End::Release);
            }
            if rung {
                let mut count = [0; 8];
                let _ = rustix::io::read(self.bell.as_fd(), &mut count);
                while let Ok(did) = self.answers.try_recv() {
                    busy = false;
                    match did {
                        Did::Renewed => {
                            trouble.clear();
                            let until = self.belief.until().unwrap_or(now);
                            self.report(Said::Renewed(until));
                        }
                        Did::Stumbled(why) => {
                            trouble = why;
                            let pause = (self.interval_ms / 4).clamp(SHORTEST_INTERVAL_MS, 1_000);
                            renew_at = SystemClock.now().boot.plus(pause);
                        }
                        Did::Lost(why) => return Ok(End::Lost(why)),
                        Did::Released | Did::NotReleased(_) => return Ok(End::StandDown),
                    }
                }
            }
            if spoken {
                let (said, gone) = lines.read(&control);
                for line in said {
                    match line.parse() {
                        Ok(Tell::Group(group)) => self.group = Pid::from_raw(group),
                        Ok(Tell::Release) => return Ok(End::Release),
                        Ok(Tell::StandDown) => return Ok(End::StandDown),
                        Err(()) => {}
                    }
                }
                if gone {
                    return Ok(End::Orphaned);
                }
            }
        }
    }

    /// When the lease must be taken for lost: early enough to end the group
    /// while it still protects it.
    fn last_moment(&self, until: BootMs) -> BootMs {
        let stops = self.group.is_some() && self.on_loss == OnLoss::Stop;
        BootMs(until.0.saturating_sub(if stops { self.grace_ms } else { 0 }))
    }

    fn end_group(&mut self, kill_at: BootMs) {
        if let Some(group) = self.group.take() {
            stop_group(group, kill_at);
        }
    }

    fn report(&mut self, said: Said) {
        if self.attached {
            self.voice.say(said);
        }
    }

    /// The last word, which a slow reader should still hear.
    fn last_word(&mut self, said: Said) {
        self.report(said);
        self.voice.finish(1_000);
    }

    /// Waits for what the hands are doing, so that nothing is left half-written.
    fn settle(self) {
        drop(self.orders);
        let patience = std::time::Duration::from_millis(1_000);
        while self.answers.recv_timeout(patience).is_ok() {}
    }

    fn give_back(mut self) {
        if self.guest {
            self.last_word(Said::Released);
            return self.settle();
        }
        let patience = std::time::Duration::from_millis(RELEASE_MS);
        if self.orders.send(Do::Release).is_err() {
            return;
        }
        loop {
            match self.answers.recv_timeout(patience) {
                Ok(Did::Released) => return self.last_word(Said::Released),
                Ok(Did::NotReleased(why)) => return self.last_word(Said::Failed(why)),
                Ok(_) => {}
                Err(_) => {
                    let why = "the filesystem does not answer; the lease will run out";
                    return self.last_word(Said::Failed(why.to_owned()));
                }
            }
        }
    }

    /// The lease is gone: ends what it protected and tells whoever is there.
    fn lost(mut self, why: &str) -> Result<(), Failure> {
        self.report(Said::Lost(why.to_owned()));
        let now = SystemClock.now().boot;
        if self.on_loss == OnLoss::Stop {
            // Fenced, nothing is protected any more: the grace is courtesy.
            // Running out, the lease's own end is the limit.
            let limit = self.belief.until().unwrap_or_else(|| now.plus(self.grace_ms));
            self.end_group(BootMs(limit.0.saturating_sub(self.grace_ms / 10)));
        }
        if !self.attached {
            let worktree = self.context.here()?.worktree;
            note::leave(
                self.context,
                &format!("worktree '{worktree}' is not yours any more: {why}"),
            )?;
        }
        Ok(())
    }
}

fn ran_out(now: BootMs, until: BootMs, trouble: &str) -> String {
    let why = if trouble.is_empty() { "this machine slept or its mount hung" } else { trouble };
    let when = match now.since(until) {
        0 => "could not be renewed in time".to_owned(),
        ms => format!("ran out {} ago", Span(ms)),
    };
    format!("{}: the lease {when} ({why})", Code::LockExpired)
}
