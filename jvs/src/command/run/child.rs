//! The child of `jvs run`: a process group of its own, in the foreground of the
//! terminal if this process is.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use jvs_kernel::child::say_pid_before_exec;
use jvs_kernel::signals;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};

use super::terminal::Terminal;
use crate::keeper::GROUP;

/// How a child ended.
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

pub(super) struct Child {
    pid: Pid,
    terminal: Option<Terminal>,
}

impl Child {
    /// Starts `words`, which the keeper is told through `keeper` by the child
    /// itself, before it becomes the command: there is no moment in which it
    /// runs and the keeper would not end it. With `quiet` its output goes where complaints go, so that
    /// standard output stays one JSON document.
    pub(super) fn start(
        words: &[OsString],
        quiet: bool,
        keeper: OwnedFd,
        prepare: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).process_group(0);
        if quiet {
            command.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
        }
        prepare(&mut command);
        say_pid_before_exec(&mut command, keeper, GROUP);
        let terminal = Terminal::of_foreground();
        let pid = Pid::from_child(&command.spawn()?);
        // From here on we hand the terminal about also from its background.
        signals::ignore(Signal::TTOU)?;
        if let Some(terminal) = &terminal {
            terminal.give(pid);
            // It may have stopped because it asked for the terminal too early.
            let _ = kill_process_group(pid, Signal::CONT);
        }
        Ok(Child { pid, terminal })
    }

    /// Its process group, which is its own.
    pub(super) fn group(&self) -> Pid {
        self.pid
    }

    /// Passes a signal on.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// Has it ended? If it was stopped from the terminal, this process stops as
    /// well, until it is continued.
    pub(super) fn look(&mut self) -> io::Result<Option<Ended>> {
        loop {
            let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
            let status = match waitpid(Some(self.pid), options) {
                Ok(Some((_, status))) => status,
                Ok(None) => return Ok(None),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if status.stopped() {
                self.stop_too();
                continue;
            }
            let ended = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Ended::Exit(u8::try_from(code).unwrap_or(u8::MAX)),
                (None, Some(number)) => Ended::Signal(number),
                (None, None) => continue,
            };
            if let Some(terminal) = &self.terminal {
                terminal.take_back(matches!(ended, Ended::Signal(_)));
            }
            return Ok(Some(ended));
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
