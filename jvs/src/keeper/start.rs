//! Starting a keeper, finding one, and asking one to stand down.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use jvs_lock::hold::{Holds, Stake, StakeKind};
use jvs_lock::{Confirmed, Lease, Session, Ticket};
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::code::{Code, Coded};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_repo::proc;
use jvs_repo::record::keeper::Keeper;
use jvs_repo::term::Term;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::identity::KeeperIdentity;
use super::lease_ends::LeaseEnds;
use super::pace;
use super::wire::{KeeperMessage, MessageLines, StarterMessage, say};
use crate::alarm::Alarm;
use crate::args::{Follow, OnLoss};
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck};
use crate::session::{has_terminal, require_lasting};

/// How long a keeper may take to stand down before it is ended.
const STAND_DOWN_MS: u64 = 3_000;
/// Two ends that are this close are one.
const SAME_END_MS: u64 = 1_000;

/// What a keeper is to do.
pub(crate) struct Order<'o> {
    pub(crate) here: &'o Here,
    pub(crate) session: &'o Session,
    pub(crate) ticket: Ticket,
    /// What the register confirmed to this process, which the keeper may go on with.
    pub(crate) confirmed: Option<Confirmed>,
    /// It keeps a lease for a child of this process.
    pub(crate) attached: Option<Attached<'o>>,
}

/// How a lease is kept for a child.
#[derive(Clone, Copy)]
pub(crate) struct Attached<'o> {
    pub(crate) on_loss: OnLoss,
    /// A pipe's end that it holds for as long as it lives, so that its death is seen by
    /// whoever reads there.
    pub(crate) life: BorrowedFd<'o>,
    /// Where it says until when the lease lasts, and which of several leases it is.
    pub(crate) ends: (&'o LeaseEnds, usize),
    /// The session held the lock before; it is not given back at the end.
    pub(crate) guest: bool,
}

/// A keeper that has begun.
pub(crate) struct Started {
    child: Child,
    said: ChildStdout,
    lines: MessageLines,
    told: Option<ChildStdin>,
    until: BootMs,
}

impl Started {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// When belief ends, unless it renews.
    pub(crate) fn until(&self) -> BootMs {
        self.until
    }

    /// Readable when it has said something, or is gone.
    pub(crate) fn readable_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.said.as_fd()
    }

    /// What it has said, and whether it is gone.
    pub(crate) fn messages(&mut self) -> (Vec<KeeperMessage>, bool) {
        let (lines, gone) = self.lines.drain(&self.said);
        (lines.iter().filter_map(|line| line.parse().ok()).collect(), gone)
    }

    /// Tells it something.
    pub(crate) fn tell(&self, word: &StarterMessage) {
        if let Some(told) = &self.told {
            say(told, word);
        }
    }

    /// Waits for its end, which must be near; one that was stopped is ended. One that
    /// hangs in a dead mount cannot even be killed: it is not waited for, whatever else
    /// must be ended now would wait with it.
    pub(crate) fn reap(self) {
        self.end_after(STAND_DOWN_MS);
    }

    /// Ends it now, and waits for nothing.
    pub(crate) fn kill(self) {
        self.end_after(0);
    }

    fn end_after(mut self, patience_ms: u64) {
        drop(self.told.take());
        let deadline = SystemClock.now().boot.plus(patience_ms);
        let handle = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty());
        let ended = handle.map_err(io::Error::from).and_then(|handle| {
            Alarm::new().and_then(|alarm| alarm.wait([Some(handle.as_fd())], Some(deadline)))
        });
        if !matches!(ended, Ok([true])) {
            let _ = self.child.kill();
        }
        let _ = self.child.try_wait();
    }

    /// Leaves it to itself: it hears that nobody speaks to it any more.
    pub(crate) fn abandon(self) {}
}

/// A keeper could not begin. A lock that was lost meanwhile is that, whoever
/// noticed it.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the lock: {why}")]
struct NotKept {
    code: Code,
    why: String,
    worktree: WorktreeName,
}

impl Coded for NotKept {
    fn code(&self) -> Code {
        self.code
    }

    fn next(&self) -> Option<Next> {
        let lost = matches!(
            self.code,
            Code::FencingMismatch | Code::LockExpired | Code::LockNotHeld | Code::LockConflict
        );
        lost.then(|| Next::StopWriting(self.worktree.clone()))
    }
}

/// Starts a keeper and waits until it keeps the lease, at most until `by`.
pub(crate) fn start(
    context: &Context<'_>,
    order: &Order<'_>,
    by: Option<BootMs>,
) -> Result<Started, Failure> {
    spawn(context, order, by)?.until_it_keeps(order)
}

/// A keeper that is about to begin.
pub(crate) struct Starting {
    keeper: Started,
    deadline: BootMs,
}

/// Starts a keeper, for whoever has something to do until it keeps the lease.
pub(crate) fn spawn(
    context: &Context<'_>,
    order: &Order<'_>,
    by: Option<BootMs>,
) -> Result<Starting, Failure> {
    let deadline = by.unwrap_or_else(|| pace::ready_by(SystemClock.now().boot));
    let mut command = command(context, order).map_err(stuck("start the keeper"))?;
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => stuck("start the keeper, for /proc is not there")(error)
            .hinting("mount /proc, or take a lease that nobody renews: --no-keeper"),
        _ => stuck("start the keeper")(error),
    })?;
    let said = child.stdout.take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe));
    let said = said.map_err(stuck("read the answer of the keeper"))?;
    rustix::io::ioctl_fionbio(&said, true)
        .map_err(|error| stuck("read the answer of the keeper")(error.into()))?;
    let told = child.stdin.take();
    let until = BootMs(0);
    Ok(Starting {
        keeper: Started { child, said, lines: MessageLines::default(), told, until },
        deadline,
    })
}

impl Starting {
    /// The process, as observers are told of it.
    pub(crate) fn as_recorded(&self, session: &Session) -> Keeper {
        let pid = self.keeper.child.id();
        let start_time = Follow::of(pid).start_time;
        Keeper { pid, start_time, ..session.keeper(&SystemClock) }
    }

    /// Waits until it keeps the lease of `order`, by which it was started.
    pub(crate) fn until_it_keeps(self, order: &Order<'_>) -> Result<Started, Failure> {
        let Starting { keeper: mut started, deadline } = self;
        let alarm = Alarm::new().map_err(stuck("set a timer"))?;
        loop {
            let ready = alarm.wait([Some(started.said.as_fd())], Some(deadline));
            let [spoke] = ready.map_err(stuck("wait for the keeper"))?;
            let (said, gone) = if spoke { started.messages() } else { (Vec::new(), false) };
            for word in said {
                match word {
                    KeeperMessage::Ready(until) => {
                        started.until = until;
                        return Ok(started);
                    }
                    KeeperMessage::NotBegun(code, why) => {
                        started.kill();
                        let worktree = order.here.worktree.clone();
                        return Err(NotKept { code, why, worktree }.into());
                    }
                    KeeperMessage::Failed(why) => {
                        started.kill();
                        return Err(stuck("keep the lock")(io::Error::other(why)).into());
                    }
                    KeeperMessage::Renewed(_)
                    | KeeperMessage::Lost(_)
                    | KeeperMessage::Released
                    | KeeperMessage::GoesOn => {}
                }
            }
            if gone || SystemClock.now().boot >= deadline {
                started.kill();
                let why = if gone { "it ended at once" } else { "it did not begin in time" };
                return Err(stuck("keep the lock")(io::Error::other(why)).into());
            }
        }
    }
}

fn stuck(doing: &'static str) -> impl Fn(io::Error) -> Stuck {
    move |error| Stuck::new(doing, error)
}

fn command(context: &Context<'_>, order: &Order<'_>) -> io::Result<Command> {
    let Order { here, session, ticket, confirmed, .. } = order;
    // This very program, also when its file was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("jvs").current_dir("/").stdout(Stdio::piped()).stderr(Stdio::null());
    command.arg(super::COMMAND).arg("--repo").arg(context.absolute(here.repo.store().root_path()));
    command.args(["--worktree", here.worktree.as_str()]);
    // One word each: what begins with a dash is still a value.
    command.arg(format!("--session={}", session.id().as_str()));
    command.args(["--purpose", session.identity().purpose.as_str()]);
    command.arg(format!("--term={}", ticket.term));
    if let Some(confirmed) = confirmed {
        command.arg(format!("--confirmed={confirmed}"));
    }
    match order.attached {
        Some(Attached { on_loss, guest, life, ends: (ends, which) }) => {
            command.stdin(Stdio::piped()).arg("--attached");
            command.arg(format!("--ends={}", ends.path())).arg(format!("--lease={which}"));
            // A standard stream, for it closes all others. It has nothing to say there.
            command.stderr(Stdio::from(life.try_clone_to_owned()?));
            command.arg(format!("--on-loss={on_loss}"));
            if guest {
                command.arg("--guest");
            }
        }
        None => {
            command.stdin(Stdio::null());
        }
    }
    Ok(command)
}

/// Whom a keeper follows to their end: the process that was named, else the
/// leader of this terminal session. A session without a terminal that was given
/// its own name follows nobody: its next command may come from anywhere.
pub(crate) fn follow(context: &Context<'_>, named: Option<u32>) -> Result<Option<Follow>, Failure> {
    let pid = match named.map_or_else(|| context.keep_while(), |pid| Ok(Some(pid)))? {
        Some(pid) => pid,
        None => {
            require_lasting(context.whence()?)?;
            let me = proc::process_stat(std::process::id());
            let leader = me.map(|stat| stat.session_leader).filter(|pid| *pid > 0);
            match leader.filter(|_| has_terminal()) {
                Some(leader) => leader,
                None => return Ok(None),
            }
        }
    };
    if proc::pid_namespace().is_none() {
        let elsewhere = io::Error::other("/proc shows the processes of another PID namespace");
        let stuck = Stuck::new("keep the lock for as long as that process runs", elsewhere);
        return Err(stuck
            .hinting("mount /proc, or take a lease that nobody renews: --no-keeper")
            .into());
    }
    match proc::process_stat(pid).filter(|stat| !stat.zombie) {
        Some(stat) => Ok(Some(Follow { pid, start_time: stat.start_ticks })),
        // Its own leader is visible whenever its name could be told.
        None if named.is_none() && context.keep_while()?.is_none() => Ok(None),
        None => {
            let gone = io::Error::new(io::ErrorKind::NotFound, format!("no process {pid}"));
            let stuck = Stuck::new("keep the lock for as long as that process runs", gone);
            Err(stuck.hinting("name one that runs, such as this shell: --while $$").into())
        }
    }
}

/// A keeper that somebody else started.
pub(crate) struct FoundKeeper(OwnedFd);

/// The keeper of the session's hold `term`, if it has one that can be found.
pub(crate) fn find(
    context: &Context<'_>,
    here: &Here,
    term: Term,
) -> Result<Option<FoundKeeper>, Failure> {
    Ok(KeeperIdentity::of(context, here)?
        .and_then(|identity| identity.process(here, term))
        .map(FoundKeeper))
}

impl FoundKeeper {
    /// Asks it to end without giving the lock back, and waits until it has.
    pub(crate) fn stand_down(self) {
        for signal in [Signal::USR1, Signal::KILL] {
            let _ = pidfd_send_signal(&self.0, signal);
            let deadline = SystemClock.now().boot.plus(STAND_DOWN_MS);
            let waited =
                Alarm::new().and_then(|alarm| alarm.wait([Some(self.0.as_fd())], Some(deadline)));
            if waited.is_ok_and(|[ended]| ended) {
                break;
            }
        }
    }
}

/// Somebody was promised that the hold is kept renewed, and nobody does any more: from
/// now on somebody does. Best effort, for it is not what the command was asked for.
pub(crate) fn ensure(
    context: &Context<'_>,
    here: &Here,
    session: &Session,
    holds: &Holds<'_>,
    lease: &Lease<'_>,
) {
    let ticket = lease.ticket();
    let term = ticket.term;
    let Ok(scan) = holds.scan() else { return };
    // A lease that was to last as it is needs nobody.
    let until = lease.belief().until().unwrap_or(BootMs(0)).plus(SAME_END_MS);
    let promised = |stake: &&Stake| {
        stake.kind == StakeKind::Acquire
            && stake.answered
            && stake.over.at.is_none_or(|at| at > until)
    };
    let of_this = |stake: &&Stake| stake.term == Some(term);
    if !holds.alive(&scan).into_iter().filter(of_this).any(|stake| promised(&stake)) {
        return;
    }
    if let Ok(None) = find(context, here, term) {
        let order = Order { here, session, ticket, confirmed: None, attached: None };
        let _ = start(context, &order, None);
    }
}
