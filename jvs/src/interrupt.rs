//! Ctrl-C during long work under a lock: the work ends by itself, so that its lock
//! is released and nothing is left; a second one ends the process.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use jvs_kernel::signals::{self, Signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

use crate::sleeper::ENDING;

/// The number of the signal that came; none has that number.
static CAME: AtomicI32 = AtomicI32::new(0);
/// What was caught, where no thread was left to wait for it: then the process that asks looks.
static UNWATCHED: OnceLock<Arc<Signals>> = OnceLock::new();

/// From now on the first signal is only noted. Once in a process, and not where
/// another part of it waits for signals.
pub(crate) fn listen() {
    // Where it cannot be, a signal ends the process as it always did.
    let Ok(caught) = Signals::catch_unless_ignored(&ENDING) else { return };
    let caught = Arc::new(caught);
    let watched = caught.clone();
    let watch = move || {
        loop {
            let _ = poll(&mut [PollFd::new(&watched.fd(), PollFlags::IN)], None);
            note(&watched);
        }
    };
    if std::thread::Builder::new().spawn(watch).is_err() {
        let _ = UNWATCHED.set(caught);
    }
}

fn note(caught: &Signals) {
    while let Some(signal) = caught.next() {
        if CAME.swap(signal.as_raw(), Ordering::Relaxed) != 0 {
            signals::die_of(signal);
        }
    }
}

/// The signal that came, if one did.
pub(crate) fn came() -> Option<Signal> {
    if let Some(caught) = UNWATCHED.get() {
        note(caught);
    }
    Signal::from_named_raw(CAME.load(Ordering::Relaxed))
}
