//! The guardian: a copy of `jvs run` that is the parent of the command, and the one
//! that orphans of the command's are given to.
//!
//! It tells `jvs run` what becomes of the command and, when it has no children any
//! more, that everybody is gone. It hears of the death of those who watch the lease by
//! the end of a pipe whose other end `jvs run` and its keepers hold: when all of them
//! are gone nobody can end the command in time, so it is ended at once. If they are there
//! but stopped, it sees by itself that the lease is about to end, and ends the command.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::str::FromStr;

use jvs_kernel::descriptors::close_all_but;
use jvs_kernel::fork::{ForkInto, fork};
use jvs_kernel::signals::Signals;
use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::id::strict_decimal;
use rustix::fs::{Mode, OFlags};
use rustix::io::{DupFlags, Errno};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::child::RunControl;
use crate::alarm::Alarm;
use crate::args::Follow;
use crate::keeper::{MessageLines, say};
use crate::tree::{Containment, ProcessTree};
use crate::umask;

/// What would stop or end it while it has something to guard.
const IGNORED: [Signal; 11] = [
    Signal::CHILD,
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
];

/// What it tells `jvs run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardianMessage {
    /// The command waits to be let go; its pid as the guardian sees it.
    Ready(i32),
    /// The tree cannot be held together in this way: an error number.
    Cannot(i32),
    /// The command cannot be executed: an error number.
    NotRun(i32),
    /// The command was stopped.
    Stopped,
    /// The command has exited with this status.
    Exited(i32),
    /// The command was ended by this signal.
    Killed(i32),
    /// Nobody is left.
    Gone,
}

impl fmt::Display for GuardianMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuardianMessage::Ready(pid) => write!(f, "ready {pid}"),
            GuardianMessage::Cannot(error) => write!(f, "cannot {error}"),
            GuardianMessage::NotRun(error) => write!(f, "not-run {error}"),
            GuardianMessage::Stopped => write!(f, "stopped -"),
            GuardianMessage::Exited(status) => write!(f, "exited {status}"),
            GuardianMessage::Killed(signal) => write!(f, "killed {signal}"),
            GuardianMessage::Gone => write!(f, "gone -"),
        }
    }
}

impl FromStr for GuardianMessage {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (word, value) = line.split_once(' ').ok_or(())?;
        let number = || strict_decimal(value).and_then(|n| i32::try_from(n).ok()).ok_or(());
        Ok(match word {
            "ready" => GuardianMessage::Ready(number()?),
            "cannot" => GuardianMessage::Cannot(number()?),
            "not-run" => GuardianMessage::NotRun(number()?),
            "stopped" if value == "-" => GuardianMessage::Stopped,
            "exited" => GuardianMessage::Exited(number()?),
            "killed" => GuardianMessage::Killed(number()?),
            "gone" if value == "-" => GuardianMessage::Gone,
            _ => return Err(()),
        })
    }
}

/// Between two looks at those who are no children of the guardian.
const ELSEWHERE_MS: u64 = 50;
/// What it is told: to leave those who live on alone, and to end.
pub(super) const LEAVE: &str = "leave";
/// To look until when the leases last, which it could not see when it began.
pub(super) const LOOK: &str = "look";

/// What a guardian is given.
pub(super) struct Charge<'c> {
    pub(super) command: &'c mut Command,
    pub(super) hold: &'c Containment,
    /// The user and group that one goes on being in a user namespace, where that comes
    /// with the PID namespace.
    pub(super) user: Option<(u32, u32)>,
    /// Where it says what it has to say.
    pub(super) report: &'c OwnedFd,
    /// What it is told, at the end of which nobody watches any more; and until when the
    /// leases last.
    pub(super) control: &'c RunControl<'c>,
    /// The command waits here to be let go.
    pub(super) gate: &'c OwnedFd,
    /// The copy of the end at which it is: nobody but `jvs run` may have one.
    pub(super) let_go: &'c mut OwnedFd,
}

/// The guardian's epoch, in the copy.
pub(super) fn guard(mut charge: Charge<'_>) -> u8 {
    match begin(&mut charge) {
        Ok((signals, child)) => watch(&charge, &signals, child),
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
            say(charge.report, &GuardianMessage::Cannot(number));
            1
        }
    }
}

fn begin(charge: &mut Charge<'_>) -> io::Result<(Signals, Pid)> {
    // A group of its own: a terminal's Ctrl-C and Ctrl-Z are not for it. In the same
    // terminal session, so that the command's group is not an orphaned one.
    rustix::process::setpgid(None, None)?;
    // Handlers rather than a mask or "ignored": the command begins with neither, but for
    // what its user wants ignored.
    let signals = Signals::catch_unless_ignored(&IGNORED)?;
    let _ = rustix::thread::set_name(c"jvs-guardian");
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let cgroup = match charge.hold {
        Containment::Cgroup(cgroup) => Some(cgroup.open()?),
        Containment::Namespace => {
            enter_namespace(charge.user)?;
            None
        }
        Containment::Reaper => None,
    };
    let place = cgroup.as_ref().map_or(ForkInto::Here, |cgroup| ForkInto::Cgroup(cgroup.as_fd()));
    let Charge { command, gate, let_go, report, .. } = charge;
    // Or the command would wait for itself when `jvs run` is killed before it lets it go,
    // and with it would live the pipes by which keepers know of that.
    rustix::io::dup3(&**gate, let_go, DupFlags::CLOEXEC)?;
    let child = fork(place, || become_the_command(command, gate, report))?;
    let streams = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty())?;
    // A process that reads what the command writes waits for the command, not for this.
    rustix::stdio::dup2_stdin(&streams)?;
    rustix::stdio::dup2_stdout(&streams)?;
    rustix::stdio::dup2_stderr(&streams)?;
    let [heard, door] = signals.fds();
    let RunControl { orders, ends, .. } = charge.control;
    close_all_but(&[charge.report.as_fd(), orders.read.as_fd(), ends.as_fd(), heard, door]);
    std::mem::forget((cgroup, streams));
    say(charge.report, &GuardianMessage::Ready(child.as_raw_nonzero().get()));
    Ok((signals, child))
}

/// In the command's own process. Comes back only if there is no such command.
fn become_the_command(command: &mut Command, gate: &OwnedFd, report: &OwnedFd) -> u8 {
    let _ = rustix::process::setpgid(None, None);
    // The guardian is not meant to die; if somebody kills it, the command goes too.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let mut word = [0];
    loop {
        match rustix::io::read(gate, &mut word) {
            Ok(1) => break,
            Err(Errno::INTR) => {}
            // `jvs run` is gone before it let the command go.
            Ok(_) | Err(_) => return 1,
        }
    }
    umask::give_back();
    let error = command.exec();
    let number = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    say(report, &GuardianMessage::NotRun(number));
    1
}

/// Makes the new PID namespace one to live in: with a `/proc` of its own, and with the
/// user that one was before. Other mounts go on appearing on both sides, where they did.
fn enter_namespace(user: Option<(u32, u32)>) -> io::Result<()> {
    if let Some((uid, gid)) = user {
        write_to("/proc/self/setgroups", "deny")?;
        write_to("/proc/self/uid_map", &format!("{uid} {uid} 1"))?;
        write_to("/proc/self/gid_map", &format!("{gid} {gid} 1"))?;
    }
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/proc", flags)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(rustix::mount::mount("proc", "/proc", "proc", flags, None)?)
}

fn write_to(file: &str, text: &str) -> io::Result<()> {
    let file = rustix::fs::open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

/// Until nobody is left, or it is told to leave them.
fn watch(charge: &Charge<'_>, signals: &Signals, child: Pid) -> u8 {
    let _ = rustix::io::ioctl_fionbio(charge.report, true);
    let orders = &charge.control.orders.read;
    let _ = rustix::io::ioctl_fionbio(orders, true);
    let Ok(alarm) = Alarm::new() else { return 1 };
    let mut lines = MessageLines::default();
    let mut again = None;
    loop {
        let mut elsewhere = None;
        loop {
            match rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if pid == child => tell(charge.report, status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // Orphans in a PID namespace that was there before are given to its first
                // process. They are in the cgroup anyway.
                Err(_) if charge.hold.has_members() => {
                    elsewhere = Some(SystemClock.now().boot.plus(ELSEWHERE_MS));
                    break;
                }
                Err(_) => {
                    if let Containment::Cgroup(cgroup) = charge.hold {
                        cgroup.remove();
                    }
                    charge.control.ends.nobody_is_left();
                    say(charge.report, &GuardianMessage::Gone);
                    return 0;
                }
            }
        }
        let orders_fd = again.is_none().then(|| orders.as_fd());
        let next = again.or_else(|| last_moment(charge.control));
        let next = [next, elsewhere].into_iter().flatten().min();
        let Ok([_, told]) = alarm.wait([Some(signals.fd()), orders_fd], next) else { return 1 };
        while signals.next().is_some() {}
        if told {
            let (said, gone) = lines.drain(orders);
            if said.iter().any(|line| line == LEAVE) {
                return 0;
            }
            again = gone.then(|| SystemClock.now().boot);
        }
        // Read again: it may have been renewed since the alarm was set.
        let now = SystemClock.now().boot;
        if again.is_none() && last_moment(charge.control).is_some_and(|at| now >= at) {
            again = Some(now);
        }
        if again.is_some() {
            if *charge.hold == Containment::Namespace {
                // All of it ends with its first process.
                return 1;
            }
            kill_everybody(charge, child);
            again = Some(SystemClock.now().boot.plus(10));
        }
    }
}

/// When everybody has to be gone, as far as is known: those who watch the lease have
/// given up before, unless they are stopped.
fn last_moment(RunControl { ends, pace, .. }: &RunControl<'_>) -> Option<BootMs> {
    pace.zip(ends.first()).map(|(pace, until)| pace.guardian_kills(until))
}

fn tell(report: &OwnedFd, status: WaitStatus) {
    let word = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => GuardianMessage::Exited(code),
        (None, Some(number)) => GuardianMessage::Killed(number),
        (None, None) if status.stopped() => GuardianMessage::Stopped,
        (None, None) => return,
    };
    say(report, &word);
}

fn kill_everybody(charge: &Charge<'_>, child: Pid) {
    let (guardian, leader) = (Follow::of(std::process::id()), Follow::of_pid(child));
    let (mark, hold) = (charge.control.mark.clone(), charge.hold.clone());
    ProcessTree { guardian, leader, mark, hold }.kill();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_nothing_else_is() {
        for word in [
            GuardianMessage::Ready(7),
            GuardianMessage::Cannot(1),
            GuardianMessage::NotRun(2),
            GuardianMessage::Stopped,
            GuardianMessage::Exited(255),
            GuardianMessage::Killed(9),
            GuardianMessage::Gone,
        ] {
            assert_eq!(word.to_string().parse(), Ok(word));
        }
        for nonsense in
            ["", "gone", "exited", "exited x", "ready -", "ready +7", "exited 00", "gone x"]
        {
            assert!(nonsense.parse::<GuardianMessage>().is_err(), "{nonsense}");
        }
    }
}
