//! Signals as something to wait for: each that was caught is a byte in a pipe.
//!
//! Handlers rather than a blocked mask: a program that is started afterwards
//! begins with the usual dispositions, which a mask would not give it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::pipe::PipeFlags;
use rustix::process::Signal;

/// Where the handler writes; -1 before the first catch.
static DOOR: AtomicI32 = AtomicI32::new(-1);

extern "C" fn ring(signal: libc::c_int) {
    let door = DOOR.load(Ordering::Relaxed);
    let byte = signal as u8;
    // SAFETY: write(2) and errno are all that is touched, both allowed in a
    // handler; `byte` outlives the call. A full pipe loses a repetition only.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(door, (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// The signals that this process catches.
pub struct Signals {
    pipe: OwnedFd,
}

impl Signals {
    /// Catches these from now on, for the rest of the process's epoch. Once.
    pub fn catch(signals: &[Signal]) -> io::Result<Self> {
        Self::catch_if(signals, |_| true)
    }

    /// As [`Self::catch`], but leaves ignored what the process that started this process wants
    /// ignored (`nohup`, `trap ''`): a program that is started afterwards ignores it, too.
    pub fn catch_unless_ignored(signals: &[Signal]) -> io::Result<Self> {
        // Ignored, children could not be waited for.
        Self::catch_if(signals, |signal| signal == Signal::CHILD || !is_ignored(signal))
    }

    fn catch_if(signals: &[Signal], wanted: impl Fn(Signal) -> bool) -> io::Result<Self> {
        let (pipe, door) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        DOOR.store(door.as_raw_fd(), Ordering::Relaxed);
        // It stays open for as long as a handler may run.
        std::mem::forget(door);
        let handler: extern "C" fn(libc::c_int) = ring;
        for signal in signals.iter().filter(|signal| wanted(**signal)) {
            set(*signal, handler as libc::sighandler_t)?;
        }
        Ok(Signals { pipe })
    }

    /// Readable when a signal has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// What must stay open for as long as signals are to be heard of.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        // SAFETY: `catch` has put the writing end there, and it is never closed.
        let door = unsafe { BorrowedFd::borrow_raw(DOOR.load(Ordering::Relaxed)) };
        [self.pipe.as_fd(), door]
    }

    /// The next signal that has come, if one has.
    pub fn next(&self) -> Option<Signal> {
        let mut byte = [0];
        match rustix::io::read(&self.pipe, &mut byte) {
            Ok(1) => Signal::from_named_raw(i32::from(byte[0])),
            _ => None,
        }
    }
}

/// From now on this process does not notice `signal`. Not before a program is
/// started: it would not notice either.
pub fn ignore(signal: Signal) -> io::Result<()> {
    set(signal, libc::SIG_IGN)
}

/// From now on `signal` does nothing to this process, and everything to the programs
/// that it starts: for signals that only repeat what a call answers anyway.
pub fn answer_with_nothing(signal: Signal) -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    set(signal, nothing as *const () as libc::sighandler_t)
}

/// Ends this process as `signal` would have, had it not been caught: a process that
/// waits for it sees that.
pub fn die_of(signal: Signal) {
    if set(signal, libc::SIG_DFL).is_ok() {
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    }
}

/// Does this process not notice `signal`?
fn is_ignored(signal: Signal) -> bool {
    // SAFETY: all-zero bytes are a valid `sigaction` to be written over; nothing is set.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        let answer = libc::sigaction(signal.as_raw(), std::ptr::null(), &raw mut old);
        answer == 0 && old.sa_sigaction == libc::SIG_IGN
    }
}

fn set(signal: Signal, action: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `sigaction` with an empty mask, and
    // the handler is SIG_IGN, `ring`, which does only what it may, or does nothing.
    let answer = unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = action;
        new.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal.as_raw(), &new, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
