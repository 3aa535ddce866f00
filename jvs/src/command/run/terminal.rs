//! The terminal, handed to a child and taken back.

use std::os::fd::BorrowedFd;

use rustix::process::{Pid, getpgrp};
use rustix::termios::{
    OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp,
};

pub(super) struct Terminal {
    fd: BorrowedFd<'static>,
    /// Its modes as they were found: a child that is killed cannot restore them.
    modes: Option<Termios>,
}

impl Terminal {
    /// The terminal, if there is one and this process is in its foreground.
    pub(super) fn of_foreground() -> Option<Self> {
        let fds = [rustix::stdio::stdin(), rustix::stdio::stderr(), rustix::stdio::stdout()];
        let fd = fds.into_iter().find(|fd| isatty(fd))?;
        let terminal = Terminal { fd, modes: tcgetattr(fd).ok() };
        terminal.is_ours().then_some(terminal)
    }

    /// Is this process in the foreground?
    pub(super) fn is_ours(&self) -> bool {
        tcgetpgrp(self.fd) == Ok(getpgrp())
    }

    /// Puts a process group into the foreground.
    pub(super) fn give(&self, group: Pid) {
        // Best effort: without it the child is in the background, and told so.
        let _ = tcsetpgrp(self.fd, group);
    }

    /// Puts this process into the foreground again, with the modes as they were
    /// if `restore`.
    pub(super) fn take_back(&self, restore: bool) {
        let _ = tcsetpgrp(self.fd, getpgrp());
        if let (true, Some(modes)) = (restore, &self.modes) {
            let _ = tcsetattr(self.fd, OptionalActions::Drain, modes);
        }
    }
}
