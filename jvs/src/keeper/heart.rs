//! The keeper's life: `jvs __keeper`, never typed by anybody.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use jvs_kernel::signals::Signals;
use jvs_lock::hold::idle::Silence;
use jvs_lock::record::renew_interval_ms;
use jvs_lock::span::Span;
use jvs_lock::{Belief, Session, Ticket, retry};
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::code::Code;
use jvs_repo::term::Term;
use rustix::event::EventfdFlags;
use rustix::process::Signal;

use super::ends::Ends;
use super::hands::{Did, Do, Hands, Horizon};
use super::identity::Identity;
use super::note;
use super::pace::Pace;
use super::voice::Voice;
use super::wire::{Lines, Said, Tell};
use crate::alarm::Alarm;
use crate::args::{KeeperArgs, OnLoss};
use crate::context::{Context, Env, Here};
use crate::fail::{Failure, Stuck};
use crate::render::Done;
use crate::session::life::Life;
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
    /// The hold that it keeps.
    term: Term,
    /// Where it has written down who it is, unless another one keeps the lock too.
    identity: Option<Identity>,
    signals: Signals,
    alarm: Alarm,
    /// Rung by the hands.
    bell: Arc<OwnedFd>,
    orders: Sender<Do>,
    answers: Receiver<Did>,
    belief: Belief,
    /// When one of these ends, a stake may be over.
    follows: Vec<OwnedFd>,
    /// Whoever reads what is said also speaks, and is gone when it falls silent.
    attached: bool,
    voice: Voice<io::Stdout>,
    on_loss: OnLoss,
    tree: Option<Tree>,
    /// Where the guardian of a command reads until when the lease lasts.
    ends_of: Option<(Ends, usize)>,
    interval_ms: u64,
    pace: Pace,
    /// The last end of belief that was known.
    until: BootMs,
    /// When a stake is over by its time.
    ends: Option<BootMs>,
    /// Since when the command that it is attached to has left, or is gone.
    leaving: Option<BootMs>,
}

/// How renewing goes.
struct Renewing {
    /// When it is due again.
    at: BootMs,
    /// The hands are at it.
    busy: bool,
    /// Why it did not work the last time, if it did not.
    trouble: String,
}

/// How it ends.
enum End {
    /// The lock was given back, or somebody else goes on with it.
    StandDown,
    /// The lock was given back because the time that was asked for is over.
    RanOut,
    /// The lock was given back because this process was asked to end.
    Asked,
    /// The lock was given back because the session gave no sign of life for so long.
    Idle(u64),
    /// The lock is gone.
    Lost(String),
}

fn begin(context: &Context<'_>, args: &KeeperArgs) -> Result<Heart, Failure> {
    let stuck = |doing: &'static str| move |error: io::Error| Stuck::new(doing, error);
    // Out of the terminal's reach: neither its Ctrl-C nor its end is ours.
    let _ = rustix::process::setsid();
    let caught = [Signal::TERM, Signal::INT, Signal::HUP, Signal::USR1];
    let signals = Signals::catch(&caught).map_err(stuck("catch signals"))?;
    // While its starter waits for it, whose file it is.
    let ends_of = args.ends.as_deref().map(Ends::open).transpose();
    let ends_of = ends_of.map_err(stuck("open the file for the end of the lease"))?.zip(args.lease);
    let context = context.for_ever();
    let here: &'static Here = Box::leak(Box::new(context.here()?));
    let acting = Box::leak(Box::new(context.session(args.purpose)?));
    let policy = here.repo.config()?.lock;
    let locks = context.locks(here.repo.store(), policy, acting)?;
    let term = args.term;
    let ticket = Ticket { worktree: here.worktree.clone(), term };
    let mut lease = locks.resume(&here.worktree, Some(&ticket))?;
    // One that is attached belongs to its command: nobody else may stand it down.
    let identity = Identity::of(context, here)?.filter(|_| !args.attached);
    if let Some(identity) = &identity {
        // First: nobody may think that a lock is kept whose keeper cannot be found.
        identity.write(&acting.session, term)?;
    }
    if !args.guest {
        // Best effort, as all that is in the record.
        let _ = lease.set_keeper(Some(acting.session.keeper(context.clock())));
    }
    let lease_ms = lease.claim().lease_ms;
    let interval_ms = renew_interval_ms(lease_ms, &policy);
    lease.renews_every(interval_ms);
    let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| stuck("make an event descriptor")(error.into()))?;
    let bell = Arc::new(bell);
    let holds = context.holds(&here.repo, &here.worktree, acting)?;
    // It may have been moved since the session first held it.
    holds.tell_repository();
    // Whoever counts the stakes must not think that a command whose `jvs run` was killed
    // has ended: it has when this process says so.
    let guard = if args.attached { holds.guard(term)? } else { None };
    let life = Life::of(acting.session.id(), Env::of_process());
    life.watch();
    let silence = Silence::begin(life.last(), SystemClock.now().boot);
    let idle_ms = Some(policy.idle_release_ms).filter(|ms| *ms > 0);
    let (seen, asked) = (Vec::new(), false);
    let mut hands = Hands { lease, locks, holds, term, guard, seen, life, silence, idle_ms, asked };
    hands.tell_until();
    let seams = context.seams(here.repo.store());
    retry::while_transient(seams, || hands.lease.renew())?;
    let belief = hands.lease.belief();
    let horizon = hands.horizon();
    let (orders, receiver) = mpsc::channel();
    let (sender, answers) = mpsc::channel();
    let for_hands = Arc::clone(&bell);
    std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(move || hands.work(&receiver, &sender, &for_hands))
        .map_err(stuck("start a thread"))?;
    let now = SystemClock.now().boot;
    let until = belief.until().unwrap_or(now);
    if let Some((ends, lease)) = &ends_of {
        ends.extend(*lease, until);
    }
    let mut voice = Voice::new(io::stdout());
    voice.say(Said::Ready(until));
    Ok(Heart {
        context,
        session: &acting.session,
        term,
        identity,
        signals,
        alarm: Alarm::new().map_err(stuck("set a timer"))?,
        bell,
        orders,
        answers,
        belief,
        follows: follows(&horizon),
        attached: args.attached,
        voice,
        on_loss: args.on_loss,
        tree: None,
        ends_of,
        interval_ms,
        pace: Pace::of(lease_ms),
        until: now,
        ends: horizon.at,
        leaving: None,
    })
}

/// Handles on the processes that stakes end with.
fn follows(horizon: &Horizon) -> Vec<OwnedFd> {
    horizon.with.iter().filter_map(|who| handle(who.pid, who.start)).collect()
}

impl Heart {
    fn beat(mut self) -> Result<(), Failure> {
        let end = self.until_the_end()?;
        let (identity, session) = (self.identity.take(), self.session);
        match end {
            End::StandDown => self.settle(),
            End::RanOut => self.given_back("the time that it was locked for is over")?,
            End::Asked => self.given_back("its keeper was asked to end (SIGTERM)")?,
            End::Idle(ms) => {
                let idle = Span(ms);
                self.given_back(&format!("no command of this session has run for {idle}"))?;
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
        let mut lines = Lines::default();
        let renew_at = SystemClock.now().boot.plus(self.interval_ms);
        let mut renewing = Renewing { at: renew_at, busy: false, trouble: String::new() };
        loop {
            let now = SystemClock.now().boot;
            if let Some(end) = self.what_is_due(now, &mut renewing) {
                return Ok(end);
            }
            let [rung, spoken, gone] = self.wait(&renewing)?;
            if let Some(end) = self.signalled() {
                return Ok(end);
            }
            if gone {
                self.follows.clear();
                renewing.at = now;
            }
            if rung {
                let mut count = [0; 8];
                let _ = rustix::io::read(self.bell.as_fd(), &mut count);
                while let Ok(did) = self.answers.try_recv() {
                    if let Some(end) = self.answered(did, now, &mut renewing)? {
                        return Ok(end);
                    }
                }
            }
            if spoken && let Some(end) = self.told(&mut lines, now)? {
                return Ok(end);
            }
        }
    }

    /// Does what the time has come for. The end, if belief has ended or is about to, or if
    /// a command that has left waited long enough.
    fn what_is_due(&mut self, now: BootMs, renewing: &mut Renewing) -> Option<End> {
        let Some(until) = self.belief.until() else {
            return Some(End::Lost(std::mem::take(&mut renewing.trouble)));
        };
        self.until = until;
        if now >= self.last_moment(until) {
            return Some(End::Lost(ran_out(now, until, &renewing.trouble)));
        }
        if self.leaving.is_some_and(|since| now.since(since) >= RELEASE_MS) {
            let why = "the filesystem does not answer; the lease will run out";
            self.last_word(Said::Failed(why.to_owned()));
            return Some(End::StandDown);
        }
        if self.ends.is_some_and(|ends| now >= ends) {
            self.ends = None;
            renewing.at = now;
        }
        if now >= renewing.at && !renewing.busy {
            renewing.busy = self.orders.send(Do::Keep).is_ok();
            renewing.at = now.plus(self.interval_ms);
        }
        None
    }

    /// Waits until something happens or is due. Answers whether the hands have rung, whether
    /// whoever it is attached to has spoken, and whether somebody who is followed is gone.
    fn wait(&mut self, renewing: &Renewing) -> Result<[bool; 3], Failure> {
        let control = io::stdin();
        let patience = self.leaving.map(|since| since.plus(RELEASE_MS));
        let renewal = (!renewing.busy).then_some(renewing.at);
        let next = [Some(self.last_moment(self.until)), self.ends, renewal, patience];
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
                next.into_iter().flatten().min(),
            )
            .map_err(|error| Stuck::new("wait", error))?;
        if room {
            self.voice.go_on();
        }
        let [_, rung, spoken, first_gone, second_gone] = woke;
        Ok([rung, spoken, first_gone || second_gone])
    }

    /// Hears the signals that came.
    fn signalled(&mut self) -> Option<End> {
        while let Some(signal) = self.signals.next() {
            match signal {
                Signal::USR1 => return Some(End::StandDown),
                Signal::TERM => {
                    let _ = self.orders.send(Do::Release);
                }
                _ => {}
            }
        }
        None
    }

    /// Takes in what the hands did.
    fn answered(
        &mut self,
        did: Did,
        now: BootMs,
        renewing: &mut Renewing,
    ) -> Result<Option<End>, Failure> {
        renewing.busy = false;
        match did {
            Did::Kept(horizon) => {
                renewing.trouble.clear();
                (self.follows, self.ends) = (follows(&horizon), horizon.at);
                let until = self.belief.until().unwrap_or(now);
                if let Some((ends, lease)) = &self.ends_of {
                    ends.extend(*lease, until);
                }
                self.report(Said::Renewed(until));
            }
            Did::Left(horizon) => {
                self.leaving = None;
                (self.follows, self.ends) = (follows(&horizon), horizon.at);
                if self.others_keep_it()? {
                    return Ok(Some(End::StandDown));
                }
            }
            Did::Stumbled(why) => {
                renewing.trouble = why;
                let pause = (self.interval_ms / 4).clamp(SHORTEST_INTERVAL_MS, 1_000);
                renewing.at = SystemClock.now().boot.plus(pause);
            }
            Did::Lost(why) => return Ok(Some(End::Lost(why))),
            Did::Released => {
                self.last_word(Said::Released);
                return Ok(Some(End::StandDown));
            }
            Did::RanOut => return Ok(Some(End::RanOut)),
            Did::Asked => return Ok(Some(End::Asked)),
            Did::Idle(ms) => return Ok(Some(End::Idle(ms))),
            // Commands still need it.
            Did::NotReleased(why) => renewing.trouble = why,
        }
        Ok(None)
    }

    /// Takes in what whoever it is attached to said, or that nobody is there any more.
    fn told(&mut self, lines: &mut Lines, now: BootMs) -> Result<Option<End>, Failure> {
        let (said, gone) = lines.read(io::stdin());
        for line in said {
            match line.parse() {
                Ok(Tell::Tree(tree)) => self.tree = Some(tree),
                Ok(Tell::Told) => {}
                Ok(Tell::Release) => {
                    self.tree = None;
                    self.leave(now);
                }
                Ok(Tell::StandDown) => return Ok(Some(End::StandDown)),
                Err(()) => {}
            }
        }
        if gone {
            self.attached = false;
            if !self.orphaned()? {
                return Ok(Some(End::StandDown));
            }
            self.leave(now);
        }
        Ok(None)
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
        match &self.tree {
            // Past the limit it is too late, and no reason to stop trying.
            Some(tree) => tree.end(self.pace.kills(limit), limit.plus(TRY_ON_MS)),
            None => Vec::new(),
        }
    }

    /// Is it certain that nobody of the tree is left whom nobody sees?
    fn is_tree_seen_whole(&self) -> bool {
        let said = self.ends_of.as_ref().is_some_and(|(ends, _)| ends.is_nobody_left());
        self.tree.as_ref().is_none_or(|tree| tree.is_seen_whole(said))
    }

    /// `jvs run` is gone. Its command ends; then, and only then, may the lock be given
    /// back. False if somebody could not be ended: then it runs out by itself.
    fn orphaned(&mut self) -> Result<bool, Failure> {
        let now = SystemClock.now().boot;
        let limit = self.belief.until().unwrap_or(now).min(now.plus(self.pace.grace_ms));
        let left = self.end_tree(limit);
        let is_certain = self.is_tree_seen_whole();
        self.tree = None;
        let why = match left.is_empty() {
            true if is_certain => return Ok(true),
            true => "its guardian was killed, and it is not known whether all that it started has \
                     ended"
                .to_owned(),
            false => format!("{} could not be ended", listed(&left)),
        };
        self.leave_note(&format!("was not released, because {why}"))?;
        Ok(false)
    }

    /// The command that it is attached to needs the hold no more.
    fn leave(&mut self, now: BootMs) {
        if self.leaving.is_none() && self.orders.send(Do::Leave).is_ok() {
            self.leaving = Some(now);
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

    /// The command that it was attached to has left, and others still need the hold.
    /// Does another keeper go on with it? If not, this one does.
    fn others_keep_it(&mut self) -> Result<bool, Failure> {
        let here = self.context.here()?;
        let identity = Identity::of(self.context, &here)?;
        if identity.as_ref().is_some_and(|identity| identity.process(&here, self.term).is_some()) {
            self.last_word(Said::Released);
            return Ok(true);
        }
        if let Some(identity) = &identity {
            identity.write(self.session, self.term)?;
        }
        self.identity = identity;
        let _ = self.orders.send(Do::GoOn(self.session.keeper(self.context.clock())));
        // Its starter must not wait for its end, nor end it.
        self.last_word(Said::GoesOn);
        self.attached = false;
        Ok(false)
    }

    /// It was given back behind the session's back: told by its next command.
    fn given_back(mut self, why: &str) -> Result<(), Failure> {
        self.last_word(Said::Released);
        self.leave_note(&format!("was released: {why}"))?;
        self.settle();
        Ok(())
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
            self.leave_note(&format!("is no longer yours: {why}"))?;
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
