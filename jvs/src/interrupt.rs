//! Ctrl-C during long work under a lock: the work ends by itself, so that its lock
//! is given back and nothing is left; a second one ends the process.

use std::sync::atomic::{AtomicI32, Ordering};

use jvs_kernel::signals::{self, Signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

use crate::bell::ENDING;

/// The number of the signal that came; none has that number.
static CAME: AtomicI32 = AtomicI32::new(0);

/// From now on the first signal is only noted. Once in a process, and not where
/// another part of it waits for signals.
pub(crate) fn listen() {
    // Where it cannot be, a signal ends the process as it always did.
    let Ok(caught) = Signals::catch(&ENDING) else { return };
    std::thread::spawn(move || {
        loop {
            let _ = poll(&mut [PollFd::new(&caught.fd(), PollFlags::IN)], None);
            while let Some(signal) = caught.next() {
                if CAME.swap(signal.as_raw(), Ordering::Relaxed) != 0 {
                    signals::die_of(signal);
                }
            }
        }
    });
}

/// The signal that came, if one did.
pub(crate) fn came() -> Option<Signal> {
    Signal::from_named_raw(CAME.load(Ordering::Relaxed))
}
