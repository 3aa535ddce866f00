//! The command of `jvs run`, with everything that it starts: a process group of its
//! own, in the foreground of the terminal if this process is, under a guardian.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;

use jvs_kernel::fork::{ForkInto, fork};
use jvs_kernel::signals;
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::proc;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};

use super::guardian::{Charge, GuardianMessage, LEAVE, LOOK, guard};
use super::terminal::Terminal;
use crate::alarm::Alarm;
use crate::args::Follow;
use crate::keeper::{EndingPace, LeaseEnds, MessageLines, say};
use crate::tree::{Containment, Member, ProcessTree, TreeMark, below};

/// How long the guardian may take to begin.
const BEGIN_MS: u64 = 10_000;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Exit(u8),
    Signal(i32),
}

impl Ended {
    /// As a shell has it: 128 + n for a death by signal n.
    pub(super) fn exit(self) -> u8 {
        match self {
            Ended::Exit(code) => code,
            Ended::Signal(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        }
    }

    pub(super) fn signal(self) -> Option<i32> {
        match self {
            Ended::Exit(_) => None,
            Ended::Signal(number) => Some(number),
        }
    }
}

/// The two ends of a pipe: who reads, who writes.
pub(super) struct Pipe {
    pub(super) read: OwnedFd,
    pub(super) write: OwnedFd,
}

impl Pipe {
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Pipe { read, write })
    }
}

/// What connects the guardian to `jvs run` and its keepers.
pub(super) struct RunControl<'r> {
    /// The pipe whose writing end this process and its keepers hold.
    pub(super) orders: &'r Pipe,
    /// Where the keepers write how long the leases last.
    pub(super) ends: &'r LeaseEnds,
    /// When that means the end of the command; `None` if a lost lease does not.
    pub(super) pace: Option<EndingPace>,
    /// The mark that every process of the tree carries.
    pub(super) mark: &'r TreeMark,
}

pub(super) struct Child {
    tree: ProcessTree,
    /// The guardian, to be waited for.
    guardian: Pid,
    /// The command, and its process group.
    pid: Pid,
    report: OwnedFd,
    lines: MessageLines,
    terminal: Option<Terminal>,
    gate: Option<OwnedFd>,
    ended: Option<Ended>,
    not_run: Option<i32>,
    gone: bool,
    /// The guardian has ended without having said that everybody is gone.
    unguarded: bool,
}

impl Child {
    /// Has a guardian start `command`, which waits to be let go: a process that must know of
    /// it can be told before it does anything.
    pub(super) fn start(
        command: &mut Command,
        hold: Containment,
        control: &RunControl<'_>,
    ) -> io::Result<Self> {
        let (report, mut gate) = (Pipe::new()?, Pipe::new()?);
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let user = (hold == Containment::Namespace && !uid.is_root())
            .then_some((uid.as_raw(), gid.as_raw()));
        let place = match hold {
            Containment::Namespace => ForkInto::Namespace { user: user.is_some() },
            Containment::Cgroup(_) | Containment::Reaper => ForkInto::Here,
        };
        // Should the guardian be killed, its orphans come here and can be found.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let terminal = Terminal::of_foreground();
        let guardian = fork(place, || {
            let Pipe { read: gate, write: let_go } = &mut gate;
            let (hold, report) = (&hold, &report.write);
            guard(Charge { command, hold, user, report, control, gate, let_go })
        })?;
        drop((report.write, gate.read));
        rustix::io::ioctl_fionbio(&report.read, true)?;
        let itself = Follow::of_pid(guardian);
        let tree =
            ProcessTree { guardian: itself, leader: itself, mark: control.mark.clone(), hold };
        let mut child = Child {
            tree,
            guardian,
            pid: guardian,
            report: report.read,
            lines: MessageLines::default(),
            terminal,
            gate: Some(gate.write),
            ended: None,
            not_run: None,
            gone: false,
            unguarded: false,
        };
        match child.until_ready() {
            Ok(pid) => {
                child.pid = pid;
                child.tree.leader = Follow::of_pid(pid);
                Ok(child)
            }
            Err(error) => {
                let _ = rustix::process::kill_process(guardian, Signal::KILL);
                child.reap();
                Err(error)
            }
        }
    }

    /// The command's pid as it is seen from here.
    fn until_ready(&mut self) -> io::Result<Pid> {
        let alarm = Alarm::new()?;
        let deadline = SystemClock.now().boot.plus(BEGIN_MS);
        loop {
            let [spoke] = alarm.wait([Some(self.report.as_fd())], Some(deadline))?;
            let (lines, gone) = self.lines.drain(&self.report);
            let word = lines.first().and_then(|line| line.parse().ok());
            match word {
                Some(GuardianMessage::Ready(pid)) => {
                    let seen = match self.tree.hold {
                        Containment::Namespace => self.only_child_of_the_guardian(),
                        Containment::Cgroup(_) | Containment::Reaper => Pid::from_raw(pid),
                    };
                    return seen.ok_or_else(|| io::ErrorKind::NotFound.into());
                }
                Some(GuardianMessage::Cannot(number)) => {
                    return Err(io::Error::from_raw_os_error(number));
                }
                _ if gone => return Err(io::ErrorKind::BrokenPipe.into()),
                _ if !spoke => return Err(io::ErrorKind::TimedOut.into()),
                _ => {}
            }
        }
    }

    /// In a PID namespace the guardian knows the command under another number.
    fn only_child_of_the_guardian(&self) -> Option<Pid> {
        let all = proc::processes();
        let child = *below(&all, self.tree.guardian.pid).first()?;
        Pid::from_raw(i32::try_from(child.pid).ok()?)
    }

    pub(super) fn tree(&self) -> &ProcessTree {
        &self.tree
    }

    /// Lets the command begin. The guardian, which began before the keepers, now sees
    /// until when the leases last.
    pub(super) fn let_go(&mut self, orders: &Pipe) -> io::Result<()> {
        say(&orders.write, &LOOK);
        // From here on we hand the terminal about also from its background.
        signals::ignore(Signal::TTOU)?;
        if let Some(terminal) = &self.terminal {
            terminal.give(self.pid);
        }
        let gate = self.gate.take().ok_or(io::ErrorKind::BrokenPipe)?;
        rustix::io::write(&gate, b".")?;
        Ok(())
    }

    /// Readable when something has become of it.
    pub(super) fn readable_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.gone && !self.unguarded).then(|| self.report.as_fd())
    }

    /// Takes in what has become of it. If it was stopped from the terminal, this
    /// process stops as well, until it is continued.
    pub(super) fn look(&mut self) {
        let (lines, silent) = self.lines.drain(&self.report);
        for word in lines.iter().filter_map(|line| line.parse().ok()) {
            match word {
                GuardianMessage::Stopped => self.stop_too(),
                GuardianMessage::Exited(code) => {
                    self.end(Ended::Exit(u8::try_from(code).unwrap_or(u8::MAX)))
                }
                GuardianMessage::Killed(number) => self.end(Ended::Signal(number)),
                GuardianMessage::NotRun(error) => self.not_run = Some(error),
                GuardianMessage::Gone => self.gone = true,
                GuardianMessage::Ready(_) | GuardianMessage::Cannot(_) => {}
            }
        }
        if silent && !self.gone {
            self.end(Ended::Signal(Signal::KILL.as_raw()));
            // A namespace ends with its first process, and not before all others.
            self.gone = self.tree.hold == Containment::Namespace;
            self.unguarded = !self.gone;
        }
    }

    fn end(&mut self, ended: Ended) {
        if self.ended.is_none() {
            self.ended = Some(ended);
            if let Some(terminal) = &self.terminal {
                terminal.take_back(matches!(ended, Ended::Signal(_)));
            }
        }
    }

    /// How the command ended, if it has.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Why it could not be executed, if it could not.
    pub(super) fn not_run(&self) -> Option<io::Error> {
        self.not_run.map(io::Error::from_raw_os_error)
    }

    /// Is nobody left, of all that it started? `keepers` are children of this process
    /// that are none of them.
    pub(super) fn is_gone(&self, keepers: &[u32]) -> bool {
        self.gone || self.unguarded && self.members(keepers).is_empty()
    }

    /// Who is there.
    pub(super) fn members(&self, keepers: &[u32]) -> Vec<Member> {
        let mut members = self.tree.members();
        if self.unguarded {
            // Orphans were given to this process when the guardian died.
            let all = proc::processes();
            let mine = below(&all, std::process::id()).into_iter();
            let others = mine.filter(|process| !keepers.contains(&process.pid));
            members.extend(others.map(Member::from));
            members.sort_by_key(|member| member.pid);
            members.dedup();
        }
        members
    }

    /// Asks everybody to end.
    pub(super) fn ask(&self, keepers: &[u32]) {
        if self.unguarded {
            self.members(keepers).iter().for_each(Member::ask);
        } else {
            self.tree.ask();
        }
    }

    /// Makes everybody end that can be seen.
    pub(super) fn kill(&self, keepers: &[u32]) {
        self.tree.kill();
        if self.unguarded {
            self.members(keepers).iter().for_each(Member::kill);
        }
    }

    /// Lets those live on that the command has left.
    pub(super) fn leave(&mut self, orders: &OwnedFd) {
        if let Containment::Cgroup(cgroup) = &self.tree.hold {
            cgroup.set_free();
        }
        say(orders, &LEAVE);
        self.gone = true;
    }

    /// Passes a signal on.
    pub(super) fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Waits for the guardian, which has nobody to guard any more, and leaves nothing
    /// behind. One that does not end is left to the system.
    pub(super) fn reap(mut self) {
        drop(self.gate.take());
        let patience = SystemClock.now().boot.plus(1_000);
        if let (Some(handle), Ok(alarm)) = (self.tree.guardian(), Alarm::new()) {
            let _ = alarm.wait([Some(handle.as_fd())], Some(patience));
        }
        let _ = waitpid(Some(self.guardian), WaitOptions::NOHANG);
        if let Containment::Cgroup(cgroup) = &self.tree.hold {
            cgroup.remove();
        }
    }

    /// Ctrl-Z: the shell that started us sees its job stop; `fg` and `bg` come
    /// back here.
    fn stop_too(&self) {
        let Some(terminal) = &self.terminal else { return };
        terminal.take_back(true);
        // Nobody to continue us (an orphaned group): the kernel ignores this,
        // and the child goes on at once.
        let _ = rustix::process::kill_current_process_group(Signal::TSTP);
        if terminal.is_ours() {
            terminal.give(self.pid);
        }
        let _ = kill_process_group(self.pid, Signal::CONT);
    }
}
