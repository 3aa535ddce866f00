//! A terminal with somebody at it: what is typed, and what is seen.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The byte that Ctrl-C sends.
pub const CTRL_C: &str = "\x03";
/// The byte that Ctrl-D sends.
pub const CTRL_D: &str = "\x04";
/// The byte that Ctrl-Z sends.
pub const CTRL_Z: &str = "\x1a";

/// A terminal, and the program that leads its session. Dropped, the terminal
/// hangs up and the leader is killed.
#[derive(Debug)]
pub struct Terminal {
    keyboard: Option<std::fs::File>,
    leader: Child,
    seen: Vec<u8>,
    /// What was seen before this was expected already.
    read: usize,
}

impl Terminal {
    /// Starts `command` as the leader of a session on a terminal of its own.
    #[track_caller]
    pub fn start(command: &Command) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a terminal");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("a terminal to use");
        let name = ptsname(&keyboard, Vec::new()).expect("a terminal has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let screen = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("its screen");
        let size = Winsize { ws_row: 40, ws_col: 132, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&screen, size).expect("a screen has a size");
        let another = || Stdio::from(screen.try_clone().expect("one more of it"));
        // `setsid --ctty` makes it the controlling terminal of a new session.
        let mut leader = Command::new("setsid");
        leader.arg("--ctty").arg(command.get_program()).args(command.get_args());
        leader.env_clear();
        for (key, value) in command.get_envs() {
            leader.env(key, value.unwrap_or(OsStr::new("")));
        }
        if let Some(dir) = command.get_current_dir() {
            leader.current_dir(dir);
        }
        leader.stdin(another()).stdout(another()).stderr(another());
        let leader = leader.spawn().expect("setsid starts");
        Terminal {
            keyboard: Some(std::fs::File::from(keyboard)),
            leader,
            seen: Vec::new(),
            read: 0,
        }
    }

    /// The leader of its session.
    pub fn leader(&self) -> Pid {
        Pid::from_child(&self.leader)
    }

    /// Types this.
    #[track_caller]
    pub fn types(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().expect("not hung up");
        keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits until this is seen, after whatever was waited for before.
    #[track_caller]
    pub fn sees(&mut self, text: &str, deadline: Duration) {
        let end = Instant::now() + deadline;
        loop {
            let new = &self.seen[self.read..];
            let found = new.windows(text.len()).position(|window| window == text.as_bytes());
            if let Some(at) = found {
                self.read += at + text.len();
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            let more = !left.is_zero() && self.look(left);
            assert!(more, "after {deadline:?} not seen: {text:?}\n{}", self.screen());
        }
    }

    /// All that was seen so far.
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Closes the window.
    pub fn hang_up(&mut self) {
        self.keyboard = None;
    }

    /// Takes in what is there to see; false if nothing came in time.
    fn look(&mut self, patience: Duration) -> bool {
        let Some(keyboard) = &mut self.keyboard else { return false };
        let timeout = Timespec::try_from(patience).expect("a deadline fits a timespec");
        match poll(&mut [PollFd::new(keyboard, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("a terminal can be polled: {error}"),
        }
        let mut buffer = [0; 4096];
        match keyboard.read(&mut buffer) {
            Ok(count) => {
                self.seen.extend_from_slice(&buffer[..count]);
                count > 0
            }
            // Everybody has closed the terminal.
            Err(_) => false,
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.hang_up();
        let _ = kill_process(self.leader(), Signal::KILL);
        let _ = self.leader.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::process::DEADLINE;

    #[test]
    fn what_is_typed_is_answered_and_ctrl_c_interrupts() {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-i").env("PS1", "ready> ").env("PATH", "/usr/bin:/bin");
        let mut terminal = Terminal::start(&shell);
        terminal.sees("ready> ", DEADLINE);
        // Said by the one in the foreground: a key typed before it is there goes
        // to the shell.
        terminal.types("sh -c 'echo $((20+3)); exec sleep 1000'\n");
        terminal.sees("23", DEADLINE);
        terminal.types(CTRL_C);
        terminal.sees("ready> ", DEADLINE);
    }
}
