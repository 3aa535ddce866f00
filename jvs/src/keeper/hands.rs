//! The thread that does all I/O of a keeper. It may hang in a dead mount; the
//! heart never waits for it longer than the lease allows.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use jvs_lock::{Lease, Seams, retry};
use jvs_repo::code::Coded;

/// What the hands are told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Do {
    Renew,
    Release,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Did {
    Renewed,
    /// It failed in a way that may pass; worth another try.
    Stumbled(String),
    Lost(String),
    Released,
    NotReleased(String),
}

/// Works until there are no more orders. `bell` wakes the heart.
pub(super) fn work(
    mut lease: Lease<'static>,
    orders: &Receiver<Do>,
    answers: &Sender<Did>,
    bell: &Arc<OwnedFd>,
    seams: Seams<'static>,
) {
    let answer = |did| {
        let sent = answers.send(did).is_ok();
        let _ = rustix::io::write(bell.as_ref(), &1_u64.to_ne_bytes());
        sent
    };
    while let Ok(order) = orders.recv() {
        let did = match order {
            Do::Renew => match lease.renew() {
                Ok(()) => Did::Renewed,
                Err(error) if retry::passes(&error) => Did::Stumbled(error.to_string()),
                Err(error) => Did::Lost(format!("{}: {error}", error.code())),
            },
            Do::Release => {
                let _ = match retry::release(seams, lease) {
                    Ok(()) => answer(Did::Released),
                    Err(failed) => answer(Did::NotReleased(failed.error.to_string())),
                };
                return;
            }
        };
        if !answer(did) {
            return;
        }
    }
}
