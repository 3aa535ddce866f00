//! The supervisor: the thread of `jvs __keeper` that waits, decides when to renew and
//! when to stop, and does no I/O on the repository.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use jvs_kernel::signals::Signals;
use jvs_lock::hold::Who;
use jvs_lock::hold::idle::Silence;
use jvs_lock::record::renew_interval_ms;
use jvs_lock::span::Span;
use jvs_lock::{Belief, Lease, LeaseError, Locks, Session, Ticket, retry};
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::code::Code;
use jvs_repo::config::LockPolicy;
use jvs_repo::term::Term;
use rustix::event::EventfdFlags;
use rustix::process::Signal;

use super::identity::KeeperIdentity;
use super::lease_ends::LeaseEnds;
use super::note;
use super::notifier::Notifier;
use super::pace::EndingPace;
use super::wire::{KeeperMessage, MessageLines, StarterMessage};
use super::worker::{Horizon, Task, TaskOutcome, Worker};
use crate::alarm::Alarm;
use crate::args::{KeeperArgs, OnLoss};
use crate::context::{Context, Env, Here};
use crate::fail::{Failure, Stuck};
use crate::render::Done;
use crate::session::life::SignsOfLife;
use crate::tree::{Member, ProcessTree, handle, is_there, listed};

/// How long `jvs run` may take to warn its user before the command is ended.
const TELL_MS: u64 = 200;
/// How much longer to try to end processes that did not end in time.
const TRY_ON_MS: u64 = 5_000;
/// How long a release may take before the lease is left to expire.
const RELEASE_MS: u64 = 10_000;
/// The signals that it answers.
const CAUGHT: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::USR1];
/// Shortest time between two renewals.
const SHORTEST_INTERVAL_MS: u64 = 20;

pub(crate) fn run(context: &Context<'_>, args: &KeeperArgs) -> Result<Done, Failure> {
    match begin(context, args) {
        Ok(supervisor) => supervisor.run().map(|()| Done::silent()),
        Err(failure) => {
            let message = KeeperMessage::NotBegun(failure.code(), failure.message());
            Notifier::new(io::stdout()).send(message);
            Err(failure)
        }
    }
}

struct Supervisor {
    context: &'static Context<'static>,
    session: &'static Session,
    /// The hold that it keeps.
    term: Term,
    /// Where it recorded its identity, unless another keeper also keeps the lock.
    identity: Option<KeeperIdentity>,
    signals: Signals,
    alarm: Alarm,
    /// Written to by the worker when an answer is ready.
    wakeup: Arc<OwnedFd>,
    orders: Sender<Task>,
    answers: Receiver<TaskOutcome>,
    belief: Belief,
    /// When one of these processes ends, a stake may be over.
    follows: Vec<OwnedFd>,
    /// Processes whose end ends a stake, but which could not be found to follow: the stakes
    /// must be checked again soon.
    missed: Vec<Who>,
    /// How soon.
    look_after_ms: u64,
    /// A `jvs run` reads its messages and sends orders; when its pipe closes, it is gone.
    attached: bool,
    notifier: Notifier<io::Stdout>,
    on_loss: OnLoss,
    tree: Option<ProcessTree>,
    /// Where the guardian of a command reads how long the lease lasts.
    ends_of: Option<(LeaseEnds, usize)>,
    lease_ms: u64,
    interval_ms: u64,
    pace: EndingPace,
    /// The last known end of the lease.
    until: BootMs,
    /// When the next stake runs out.
    ends: Option<BootMs>,
    /// When the attached command left, or was gone.
    leaving: Option<BootMs>,
    /// It has renewed before, and so has used everything that it needs to continue.
    settled_in: bool,
}

/// The state of renewal.
struct Renewing {
    /// When it is due again.
    at: BootMs,
    /// The worker is renewing.
    busy: bool,
    /// Why it failed last time, if it did.
    trouble: String,
}

/// Why the keeper stops.
enum KeeperEnd {
    /// The lock was released, or another keeper took over.
    StandDown,
    /// The lock was released because the requested time is over.
    RanOut,
    /// The lock was released because this process was asked to end.
    Asked,
    /// The lock was released because the session gave no sign of life for this many
    /// milliseconds.
    Idle(u64),
    /// The lock is gone.
    Lost(String),
}

fn begin(context: &Context<'_>, args: &KeeperArgs) -> Result<Supervisor, Failure> {
    let stuck = |doing: &'static str| move |error: io::Error| Stuck::new(doing, error);
    // Detach from the terminal: its Ctrl-C and its hangup are not for us.
    let _ = rustix::process::setsid();
    let signals = Signals::catch(&CAUGHT).map_err(stuck("catch signals"))?;
    // Open it while the starter, who owns the file, is still waiting.
    let ends_of = args.ends.as_deref().map(LeaseEnds::open).transpose();
    let ends_of = ends_of.map_err(stuck("open the file for the end of the lease"))?.zip(args.lease);
    let context = context.for_ever();
    let here: &'static Here = Box::leak(Box::new(context.here_of_starter()?));
    let acting = Box::leak(Box::new(context.session(args.purpose)?));
    let policy = here.repo.config()?.lock;
    let locks = context.locks(here.repo.store(), policy, acting)?;
    let ticket = Ticket { worktree: here.worktree.clone(), term: args.term };
    let (mut lease, renews_first) = lease_to_keep(&locks, &ticket, args, &policy)?;
    // An attached keeper belongs to its command: nobody else may make it stand down.
    let identity = KeeperIdentity::of(context, here)?.filter(|_| !args.attached);
    if let Some(identity) = &identity {
        // First, so that nobody relies on a keeper that cannot be found.
        identity.write(&acting.session, args.term)?;
    }
    if !args.guest && renews_first {
        // Best effort, like everything in the record.
        let _ = lease.set_keeper(Some(acting.session.keeper(context.clock())));
    }
    let lease_ms = lease.claim().lease_ms;
    let interval_ms = renew_interval_ms(lease_ms, &policy);
    lease.renews_every(interval_ms);
    let wakeup = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| stuck("make an event descriptor")(error.into()))?;
    let wakeup = Arc::new(wakeup);
    let holds = context.holds(&here.repo, &here.worktree, acting)?;
    // The repository may have been moved since the session first held the lock.
    holds.tell_repository();
    // If `jvs run` is killed, its command may still run: this stake says so until this
    // process removes it.
    let guard = if args.attached { holds.guard(args.term)? } else { None };
    let life = SignsOfLife::of(acting.session.id(), Env::of_process());
    life.watch();
    let silence = Silence::begin(life.last(), SystemClock.now().boot);
    let idle_ms = Some(policy.idle_release_ms).filter(|ms| *ms > 0);
    let (seen, asked) = (Vec::new(), false);
    let mut worker =
        Worker { lease, locks, holds, term: args.term, guard, seen, life, silence, idle_ms, asked };
    worker.tell_until();
    let seams = context.seams(here.repo.store());
    if renews_first {
        retry::while_transient(seams, || worker.lease.renew())?;
    }
    let belief = worker.lease.belief();
    let horizon = worker.horizon();
    let (orders, answers) = set_to_work(worker, &wakeup).map_err(stuck("start a thread"))?;
    let until = belief.until().unwrap_or_else(|| SystemClock.now().boot);
    if let Some((ends, lease)) = &ends_of {
        ends.extend(*lease, until);
    }
    // Before it reports that it is ready: no end after that may be missed.
    let (follows, missed) = follows(&horizon);
    let mut notifier = Notifier::new(io::stdout());
    notifier.send(KeeperMessage::Ready(until));
    Ok(Supervisor {
        context,
        session: &acting.session,
        term: args.term,
        identity,
        signals,
        alarm: Alarm::new().map_err(stuck("set a timer"))?,
        wakeup,
        orders,
        answers,
        belief,
        follows,
        missed,
        look_after_ms: SHORTEST_INTERVAL_MS,
        attached: args.attached,
        notifier,
        on_loss: args.on_loss,
        tree: None,
        ends_of,
        lease_ms,
        interval_ms,
        pace: EndingPace::of(lease_ms),
        until,
        ends: horizon.at,
        leaving: None,
        settled_in: false,
    })
}

/// The lease that is to be kept: as the starter was told of it, or as the register shows it.
/// Then it is renewed before anybody relies on it.
fn lease_to_keep(
    locks: &Locks<'static>,
    ticket: &Ticket,
    args: &KeeperArgs,
    policy: &LockPolicy,
) -> Result<(Lease<'static>, bool), LeaseError> {
    if let Some(confirmed) = &args.confirmed {
        let lease_ms = confirmed.state.hold.claim().map_or(0, |claim| claim.lease_ms);
        let every_ms = renew_interval_ms(lease_ms, policy);
        if let Some(lease) = locks.inherit(&ticket.worktree, ticket, confirmed, every_ms)? {
            return Ok((lease, false));
        }
    }
    Ok((locks.resume(&ticket.worktree, Some(ticket))?, true))
}

/// Starts the thread that talks to the repository; what it is asked, and what it answers.
/// It waits for a mount that hangs, so that this thread never does.
fn set_to_work(
    worker: Worker,
    wakeup: &Arc<OwnedFd>,
) -> io::Result<(Sender<Task>, Receiver<TaskOutcome>)> {
    let (orders, receiver) = mpsc::channel();
    let (sender, answers) = mpsc::channel();
    let wakeup = Arc::clone(wakeup);
    std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(move || worker.work(&receiver, &sender, &wakeup))?;
    Ok((orders, answers))
}

/// Handles on the processes whose end ends a stake, and those processes that are not there.
fn follows(horizon: &Horizon) -> (Vec<OwnedFd>, Vec<Who>) {
    let (mut handles, mut missed) = (Vec::new(), Vec::new());
    for who in &horizon.with {
        match handle(who.pid, who.start) {
            Some(handle) => handles.push(handle),
            // Otherwise the kernel offers no handles, or too many files are open.
            None if !is_there(who.pid, who.start) => missed.push(*who),
            None => {}
        }
    }
    (handles, missed)
}

impl Supervisor {
    fn run(mut self) -> Result<(), Failure> {
        let end = self.run_until_end()?;
        let (identity, session) = (self.identity.take(), self.session);
        match end {
            KeeperEnd::StandDown => self.settle(),
            KeeperEnd::RanOut => self.given_back("the time that it was locked for is over")?,
            KeeperEnd::Asked => self.given_back("its keeper was asked to end (SIGTERM)")?,
            KeeperEnd::Idle(ms) => {
                let idle = Span(ms);
                self.given_back(&format!("no command of this session has run for {idle}"))?;
            }
            KeeperEnd::Lost(why) => self.lost(&why)?,
        }
        if let Some(identity) = identity {
            identity.remove(session);
        }
        Ok(())
    }

    /// Renews in time until there is a reason to stop.
    fn run_until_end(&mut self) -> Result<KeeperEnd, Failure> {
        let mut lines = MessageLines::default();
        // From the CAS that it was last confirmed by, which may be its starter's.
        let confirmed = BootMs(self.until.0.saturating_sub(self.lease_ms));
        let at = self.next_renewal(confirmed.min(SystemClock.now().boot));
        let mut renewing = Renewing { at, busy: false, trouble: String::new() };
        loop {
            let now = SystemClock.now().boot;
            if let Some(end) = self.what_is_due(now, &mut renewing) {
                return Ok(end);
            }
            let [answered, spoken, gone] = self.wait(&renewing)?;
            if let Some(end) = self.signalled() {
                return Ok(end);
            }
            if gone {
                self.follows.clear();
                renewing.at = now;
            }
            if answered {
                let mut count = [0; 8];
                let _ = rustix::io::read(self.wakeup.as_fd(), &mut count);
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

    /// Does what is due now. Returns the end if the lease is over or about to be, or if the
    /// release took too long.
    fn what_is_due(&mut self, now: BootMs, renewing: &mut Renewing) -> Option<KeeperEnd> {
        let Some(until) = self.belief.until() else {
            return Some(KeeperEnd::Lost(std::mem::take(&mut renewing.trouble)));
        };
        self.until = until;
        if now >= self.last_moment(until) {
            return Some(KeeperEnd::Lost(ran_out(now, until, &renewing.trouble)));
        }
        if self.leaving.is_some_and(|since| now.since(since) >= RELEASE_MS) {
            let why = "the filesystem does not answer; the lease will run out";
            self.last_message(KeeperMessage::Failed(why.to_owned()));
            return Some(KeeperEnd::StandDown);
        }
        if self.ends.is_some_and(|ends| now >= ends) {
            self.ends = None;
            renewing.at = now;
        }
        if now >= renewing.at && !renewing.busy {
            renewing.busy = self.orders.send(Task::Keep).is_ok();
            renewing.at = self.next_renewal(now);
        }
        None
    }

    /// When the renewal after one at `now` is due.
    fn next_renewal(&self, now: BootMs) -> BootMs {
        let sooner = (!self.missed.is_empty()).then_some(self.look_after_ms);
        now.plus(sooner.unwrap_or(self.interval_ms).min(self.interval_ms))
    }

    /// Waits until something happens or is due. Returns whether the worker has answered,
    /// whether the attached command sent something, and whether a followed process is gone.
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
                    Some(self.wakeup.as_fd()),
                    self.attached.then_some(control.as_fd()),
                    self.follows.first().map(AsFd::as_fd),
                    self.follows.get(1).map(AsFd::as_fd),
                ],
                self.notifier.waits_for(),
                next.into_iter().flatten().min(),
            )
            .map_err(|error| Stuck::new("wait", error))?;
        if room {
            self.notifier.flush();
        }
        let [_, answered, spoken, first_gone, second_gone] = woke;
        Ok([answered, spoken, first_gone || second_gone])
    }

    /// Handles the signals that arrived.
    fn signalled(&mut self) -> Option<KeeperEnd> {
        while let Some(signal) = self.signals.next() {
            match signal {
                Signal::USR1 => return Some(KeeperEnd::StandDown),
                Signal::TERM => {
                    let _ = self.orders.send(Task::Release);
                }
                _ => {}
            }
        }
        None
    }

    /// Handles the worker's answer.
    fn answered(
        &mut self,
        did: TaskOutcome,
        now: BootMs,
        renewing: &mut Renewing,
    ) -> Result<Option<KeeperEnd>, Failure> {
        renewing.busy = false;
        match did {
            TaskOutcome::Kept(horizon) => {
                renewing.trouble.clear();
                self.look_out_for(&horizon);
                renewing.at = renewing.at.min(self.next_renewal(now));
                let until = self.belief.until().unwrap_or(now);
                if let Some((ends, lease)) = &self.ends_of {
                    ends.extend(*lease, until);
                }
                self.report(KeeperMessage::Renewed(until));
                if !std::mem::replace(&mut self.settled_in, true) {
                    // Not earlier: the keeper of a short command would only need it again.
                    jvs_kernel::program::let_go_of_unused();
                }
            }
            TaskOutcome::Left(horizon) => {
                self.leaving = None;
                self.look_out_for(&horizon);
                renewing.at = renewing.at.min(self.next_renewal(now));
                if self.others_keep_it()? {
                    return Ok(Some(KeeperEnd::StandDown));
                }
            }
            TaskOutcome::Stumbled(why) => {
                renewing.trouble = why;
                let pause = (self.interval_ms / 4).clamp(SHORTEST_INTERVAL_MS, 1_000);
                renewing.at = SystemClock.now().boot.plus(pause);
            }
            TaskOutcome::Lost(why) => return Ok(Some(KeeperEnd::Lost(why))),
            TaskOutcome::Released => {
                self.last_message(KeeperMessage::Released);
                return Ok(Some(KeeperEnd::StandDown));
            }
            TaskOutcome::RanOut => return Ok(Some(KeeperEnd::RanOut)),
            TaskOutcome::Asked => return Ok(Some(KeeperEnd::Asked)),
            TaskOutcome::Idle(ms) => return Ok(Some(KeeperEnd::Idle(ms))),
            // Commands still need it.
            TaskOutcome::NotReleased(why) => renewing.trouble = why,
        }
        Ok(None)
    }

    fn look_out_for(&mut self, horizon: &Horizon) {
        let (follows, missed) = follows(horizon);
        // Less and less often: a process that still counts as alive may be in a PID
        // namespace that cannot be seen from here.
        let same = missed == self.missed;
        self.look_after_ms = if same { self.look_after_ms * 2 } else { SHORTEST_INTERVAL_MS };
        self.look_after_ms = self.look_after_ms.min(self.interval_ms);
        (self.follows, self.missed, self.ends) = (follows, missed, horizon.at);
    }

    /// Handles messages from the attached command, or the end of its pipe.
    fn told(
        &mut self,
        lines: &mut MessageLines,
        now: BootMs,
    ) -> Result<Option<KeeperEnd>, Failure> {
        let (said, gone) = lines.read(io::stdin());
        for line in said {
            match line.parse() {
                Ok(StarterMessage::Tree(tree)) => self.tree = Some(tree),
                Ok(StarterMessage::Told) => {}
                Ok(StarterMessage::Release) => {
                    self.tree = None;
                    self.leave(now);
                }
                Ok(StarterMessage::StandDown) => return Ok(Some(KeeperEnd::StandDown)),
                Err(()) => {}
            }
        }
        if gone {
            self.attached = false;
            if !self.orphaned()? {
                return Ok(Some(KeeperEnd::StandDown));
            }
            self.leave(now);
        }
        Ok(None)
    }

    /// When to treat the lease as lost: early enough to end the command while the lease
    /// still protects it.
    fn last_moment(&self, until: BootMs) -> BootMs {
        match (&self.tree, self.on_loss) {
            (Some(_), OnLoss::Stop) => self.pace.keeper_gives_up(until),
            _ => until,
        }
    }

    /// Ends the protected processes before `limit`. Returns those that could not be ended.
    fn end_tree(&mut self, limit: BootMs) -> Vec<Member> {
        match &self.tree {
            // Past the limit it is too late, but worth trying on.
            Some(tree) => tree.end(self.pace.kills(limit), limit.plus(TRY_ON_MS)),
            None => Vec::new(),
        }
    }

    /// Is it certain that no process of the tree is left unseen?
    fn is_tree_seen_whole(&self) -> bool {
        let said = self.ends_of.as_ref().is_some_and(|(ends, _)| ends.is_nobody_left());
        self.tree.as_ref().is_none_or(|tree| tree.is_seen_whole(said))
    }

    /// `jvs run` is gone. End its command; only then may the lock be released. False if a
    /// process could not be ended: then the lease is left to expire.
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

    /// The attached command no longer needs the hold.
    fn leave(&mut self, now: BootMs) {
        if self.leaving.is_none() && self.orders.send(Task::Leave).is_ok() {
            self.leaving = Some(now);
        }
    }

    fn report(&mut self, message: KeeperMessage) {
        if self.attached {
            self.notifier.send(message);
        }
    }

    /// Sends a last message, and gives a slow reader time to read it.
    fn last_message(&mut self, message: KeeperMessage) {
        self.report(message);
        self.notifier.finish(1_000);
    }

    /// Waits for the worker, so that nothing is left half-written.
    fn settle(self) {
        drop(self.orders);
        let patience = std::time::Duration::from_millis(1_000);
        while self.answers.recv_timeout(patience).is_ok() {}
    }

    /// The attached command has left, and others still need the hold. Does another keeper
    /// keep it? If not, this one continues.
    fn others_keep_it(&mut self) -> Result<bool, Failure> {
        let here = self.context.here()?;
        let identity = KeeperIdentity::of(self.context, &here)?;
        if identity.as_ref().is_some_and(|identity| identity.process(&here, self.term).is_some()) {
            self.last_message(KeeperMessage::Released);
            return Ok(true);
        }
        if let Some(identity) = &identity {
            identity.write(self.session, self.term)?;
        }
        self.identity = identity;
        let _ = self.orders.send(Task::GoOn(self.session.keeper(self.context.clock())));
        // Its starter must neither wait for it nor end it.
        self.last_message(KeeperMessage::GoesOn);
        self.attached = false;
        Ok(false)
    }

    /// The lock was released without a request of the session: its next command says so.
    fn given_back(mut self, why: &str) -> Result<(), Failure> {
        self.last_message(KeeperMessage::Released);
        self.leave_note(&format!("was released: {why}"))?;
        self.settle();
        Ok(())
    }

    /// The lease is gone: reports it and ends the protected command.
    fn lost(mut self, why: &str) -> Result<(), Failure> {
        self.report(KeeperMessage::Lost(why.to_owned()));
        if self.on_loss == OnLoss::Stop && self.tree.is_some() {
            let now = SystemClock.now().boot;
            // If fenced, nothing is protected any more and the grace is a courtesy, within
            // the lease as it was known. If it ran out, its own end is the limit.
            let limit = self.until.min(now.plus(self.pace.grace_ms));
            self.wait_until_user_is_told(now.plus(TELL_MS.min(self.pace.grace_ms / 4)));
            self.end_tree(limit);
        }
        if !self.attached {
            self.leave_note(&format!("is no longer yours: {why}"))?;
        }
        Ok(())
    }

    /// A `jvs run` that is not stopped warns its user first and confirms that.
    fn wait_until_user_is_told(&self, at: BootMs) {
        let control = io::stdin();
        let mut lines = MessageLines::default();
        while SystemClock.now().boot < at {
            match self.alarm.wait([Some(control.as_fd())], Some(at)) {
                Ok([true]) => {
                    let (said, gone) = lines.read(&control);
                    if gone || said.iter().any(|line| line.parse() == Ok(StarterMessage::Told)) {
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
