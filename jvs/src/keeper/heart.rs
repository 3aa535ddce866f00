//! The keeper's life: `jvs __keeper`, never typed by anybody.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use jvs_kernel::signals::Signals;
use jvs_lock::record::{Keeper, renew_interval_ms};
use jvs_lock::span::Span;
use jvs_lock::{Belief, Session, Ticket, retry};
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::code::Code;
use rustix::event::EventfdFlags;
use rustix::process::Signal;

use super::hands::{self, Did, Do};
use super::identity::Identity;
use super::note;
use super::pace::Pace;
use super::voice::Voice;
use super::wire::{Lines, Said, Tell};
use crate::alarm::Alarm;
use crate::args::{KeeperArgs, OnLoss};
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck};
use crate::render::Done;
use crate::tree::{Member, Tree, handle, listed};

/// How long whoever sits at the terminal may take to be told before a command is ended.
const TELL_MS: u64 = 200;
/// How much longer it is tried to end what has not ended in time.
const TRY_ON_MS: u64 = 5_000;
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
    tree: Option<Tree>,
    interval_ms: u64,
    pace: Pace,
    /// The last end of belief that was known.
    until: BootMs,
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
    /// Whoever ran the command is gone: the command must not outlive the lease.
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
        follows.extend(handle(process.pid, process.start_time));
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
        let _ = lease.set_keeper(Some(Keeper::of(&acting.session, context.clock())));
    }
    let lease_ms = lease.claim().lease_ms;
    let interval_ms = renew_interval_ms(lease_ms, &policy);
    lease.renews_every(interval_ms);
    let seams = context.seams(here.repo.store());
    retry::while_transient(seams, || lease.renew())?;
    let belief = lease.belief();
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
        tree: None,
        interval_ms,
        pace: Pace::of(lease_ms),
        until: now,
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
            End::Orphaned => self.orphaned()?,
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
            self.until = until;
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
                        Ok(Tell::Tree(tree)) => self.tree = Some(tree),
                        Ok(Tell::Told) => {}
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

    /// When the lease must be taken for lost: early enough to end the command while it
    /// still protects it.
    fn last_moment(&self, until: BootMs) -> BootMs {
        match (&self.tree, self.on_loss) {
            (Some(_), OnLoss::Stop) => self.pace.keeper_gives_up(until),
            _ => until,
        }
    }

    /// Ends what the lease protected, before `limit`. Answers who could not be ended.
    fn end_tree(&mut self, limit: BootMs) -> Vec<Member> {
        match self.tree.take() {
            // Past the limit it is too late, and no reason to stop trying.
            Some(tree) => tree.end(self.pace.kills(limit), limit.plus(TRY_ON_MS)),
            None => Vec::new(),
        }
    }

    /// `jvs run` is gone. Its command ends; then, and only then, the lock is free.
    fn orphaned(mut self) -> Result<(), Failure> {
        let now = SystemClock.now().boot;
        let limit = self.belief.until().unwrap_or(now).min(now.plus(self.pace.grace_ms));
        match &self.end_tree(limit)[..] {
            [] => self.give_back(),
            left => {
                let left = listed(left);
                let why = format!("was not given back, because {left} could not be ended");
                self.leave_note(&why)?;
            }
        }
        Ok(())
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

    /// The lease is gone: tells whoever is there and ends what it protected.
    fn lost(mut self, why: &str) -> Result<(), Failure> {
        self.report(Said::Lost(why.to_owned()));
        if self.on_loss == OnLoss::Stop && self.tree.is_some() {
            let now = SystemClock.now().boot;
            // Fenced, nothing is protected any more: the grace is courtesy, within what
            // was believed in. Running out, the lease's own end is the limit.
            let limit = self.until.min(now.plus(self.pace.grace_ms));
            self.wait_until_it_is_told(now.plus(TELL_MS.min(self.pace.grace_ms / 4)));
            self.end_tree(limit);
        }
        if !self.attached {
            self.leave_note(&format!("is not yours any more: {why}"))?;
        }
        Ok(())
    }

    /// A `jvs run` that is not stopped tells first, and says so.
    fn wait_until_it_is_told(&self, at: BootMs) {
        let control = io::stdin();
        let mut lines = Lines::default();
        while SystemClock.now().boot < at {
            match self.alarm.wait([Some(control.as_fd())], Some(at)) {
                Ok([true]) => {
                    let (said, gone) = lines.read(&control);
                    if gone || said.iter().any(|line| line.parse() == Ok(Tell::Told)) {
                        return;
                    }
                }
                Ok([false]) => {}
                Err(_) => return,
            }
        }
    }

    fn leave_note(&self, what: &str) -> Result<(), Failure> {
        let worktree = self.context.here()?.worktree;
        note::leave(self.context, &format!("worktree '{worktree}' {what}"))
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
