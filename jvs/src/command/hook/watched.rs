//! Work that may hang, and an answer in time all the same.
//!
//! A call on a mount whose server is gone cannot be ended, and neither can the process
//! that made it: whoever waits for that process waits with it. So the work is done in a
//! copy of this process, which is killed if it is late and not waited for any more. What
//! it has in its hands then is as after any other death: a lock without a keeper runs out.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use jvs_kernel::fork::{ForkInto, fork};
use jvs_repo::clock::BootMs;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Signal, WaitOptions, kill_process, waitpid};

use crate::alarm::Alarm;
use crate::context::Context;
use crate::harness::HookVerdict;

/// The verdict of `work`; or why there is none by then.
pub(super) fn within(
    context: &Context<'_>,
    by: BootMs,
    work: impl FnOnce() -> HookVerdict,
) -> Result<HookVerdict, String> {
    let stuck = |error: io::Error| format!("no process can be started for it: {error}");
    let (read, write) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| stuck(error.into()))?;
    let alarm = Alarm::new().map_err(stuck)?;
    let parent = rustix::process::getpid();
    let child = fork(ForkInto::Here, || {
        // Nobody hears the answer of a child whose parent is gone.
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        if rustix::process::getppid() != Some(parent) || be_quiet().is_err() {
            return 1;
        }
        u8::from(tell(&write, &work().to_bytes()).is_err())
    })
    .map_err(stuck)?;
    // The end of what is said is the end of the last who could say something.
    drop(write);
    let mut said = Vec::new();
    let in_time = hear(context, &alarm, &read, by, &mut said);
    if !in_time {
        let _ = kill_process(child, Signal::KILL);
        return Err("the repository did not answer in time: is its mount alive?".to_owned());
    }
    // It ends now. Where nobody reaps orphans, it would stay for ever.
    let _ = waitpid(Some(child), WaitOptions::empty());
    HookVerdict::of_bytes(&said).ok_or_else(|| "the process that looked died".to_owned())
}

/// Hears all that is said until the end; false if that did not come in time.
fn hear(
    context: &Context<'_>,
    alarm: &Alarm,
    from: &OwnedFd,
    by: BootMs,
    said: &mut Vec<u8>,
) -> bool {
    let mut piece = [0; 4096];
    loop {
        match alarm.wait([Some(from.as_fd())], Some(by)) {
            Ok([true]) => {}
            Ok([false]) if context.clock().now().boot < by => continue,
            Ok([false]) | Err(_) => return false,
        }
        match rustix::io::read(from, &mut piece) {
            Ok(0) => return true,
            Ok(got) => said.extend_from_slice(&piece[..got]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return false,
        }
    }
}

fn tell(to: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(done) => bytes = &bytes[done..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A harness reads to the end of these streams: whoever keeps them, keeps it waiting.
fn be_quiet() -> io::Result<()> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(rustix::stdio::dup2_stderr(&nothing)?)
}
