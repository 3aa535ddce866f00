//! The `juicefs` program, for a mount whose control file does not understand us.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::super::Work;
use super::Job;
use crate::tree;

/// Between two looks at the program.
const PAUSE: Duration = Duration::from_millis(5);
/// The program tells nobody how far it is. A clone takes 36 µs a file here.
const PATIENCE: Duration = Duration::from_secs(300);
const PATIENCE_A_NAME: Duration = Duration::from_millis(2);
/// So much of what it said last goes into an error.
const TAIL: usize = 1024;
/// Reads in a row, so that one who never stops talking can be stopped.
const READS: usize = 32;

pub(super) enum ProgramFailure {
    /// Progress asked to stop.
    Stopped,
    /// In its words, or in those of the system.
    Told(String),
}

/// Runs the program to its end, or ends it. Whatever it started ends with it; the
/// mount gives up a clone that nobody waits for.
pub(super) fn run(program: &Path, job: &Job<'_>, work: &Work<'_>) -> Result<(), ProgramFailure> {
    let told = |error: io::Error| ProgramFailure::Told(error.to_string());
    let target = tree::path_of_open(job.target).map_err(told)?.join(OsStr::from_bytes(job.name));
    let mut command = Command::new(program);
    command.args(["clone", "--preserve"]).arg(&job.from).arg(target);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.process_group(0).spawn().map_err(|error| {
        ProgramFailure::Told(match error.kind() {
            ErrorKind::NotFound => format!("there is no {}", program.display()),
            _ => format!("{}: {error}", program.display()),
        })
    })?;
    let mut running = Running { child, said: Vec::new() };
    let patience = PATIENCE + PATIENCE_A_NAME * u32::try_from(work.tree.nodes).unwrap_or(u32::MAX);
    let mut waited = Duration::ZERO;
    loop {
        running.listen().map_err(told)?;
        if let Some(status) = running.child.try_wait().map_err(told)? {
            running.listen().map_err(told)?;
            return if status.success() { Ok(()) } else { Err(running.failed(status)) };
        }
        if !work.progress.keep_going() {
            return Err(ProgramFailure::Stopped);
        }
        if waited >= patience {
            return Err(ProgramFailure::Told(format!("no answer in {} s", patience.as_secs())));
        }
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

/// Ended with everything that it started, and reaped, when this goes away.
struct Running {
    child: Child,
    said: Vec<u8>,
}

impl Running {
    /// Takes what was said since, without waiting for more: a descendant may hold
    /// the pipe open for ever.
    fn listen(&mut self) -> io::Result<()> {
        if let Some(pipe) = &mut self.child.stdout {
            drain(pipe, &mut self.said)?;
        }
        if let Some(pipe) = &mut self.child.stderr {
            drain(pipe, &mut self.said)?;
        }
        Ok(())
    }

    fn failed(&self, status: ExitStatus) -> ProgramFailure {
        let said = String::from_utf8_lossy(&self.said);
        let said = said.trim();
        ProgramFailure::Told(if said.is_empty() {
            status.to_string()
        } else {
            format!("{status}: {said}")
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            let _ = self.child.wait();
        }
    }
}

fn drain(mut pipe: impl Read + AsFd, into: &mut Vec<u8>) -> io::Result<()> {
    rustix::io::ioctl_fionbio(&pipe, true)?;
    let mut buffer = [0; 4096];
    for _ in 0..READS {
        match pipe.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(got) => {
                into.extend_from_slice(&buffer[..got]);
                let surplus = into.len().saturating_sub(TAIL);
                into.drain(..surplus);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
