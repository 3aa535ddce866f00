//! Long work under a lease, which is renewed meanwhile, and what is said when it is
//! lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jvs_lock::{Belief, Lease, LeaseError};
use jvs_repo::clock::{BootMs, Clock};
use jvs_repo::code::{Code, Coded as _};

use crate::progress::{CapturePhase, Progress};

/// A lease is renewed this often while files are captured.
const RENEWALS_A_LEASE: u64 = 3;

/// How often a lease of this length is renewed by the process that captures under it.
pub fn renewed_every_ms(lease_ms: u64) -> u64 {
    (lease_ms / RENEWALS_A_LEASE).max(1)
}

/// Why work under a lease ended before it was done, if it was the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// Somebody else has it.
    Taken,
    /// It was not renewed in time; when that was noticed.
    Over(BootMs),
}

/// Runs `work` on a thread of its own and renews the lease on this one. `work` is
/// told to stop once the lease is lost or over; that it was is then the answer,
/// whatever `work` says: a lease that ran out may have been renewed since, by a mount
/// that hung, but what was done in between was not done under it.
pub(crate) fn while_renewing<T: Send, E: From<LeaseError> + Send>(
    lease: &mut Lease<'_>,
    clock: &dyn Clock,
    progress: &dyn Progress,
    work: impl FnOnce(&dyn Progress) -> Result<T, E> + Send,
) -> Result<T, E> {
    let guarded =
        Guarded { inner: progress, lost: Mutex::new(None), belief: lease.belief(), clock };
    let pause = renewed_every_ms(lease.claim().lease_ms);
    let work = Mutex::new(Some(work));
    let run = |progress: &dyn Progress| {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map(|work| work(progress))
    };
    let outcome = std::thread::scope(|scope| {
        let (done, ended) = channel::<()>();
        let (run, guarded) = (&run, &guarded);
        let started = std::thread::Builder::new().spawn_scoped(scope, move || {
            let _done = done;
            run(guarded)
        });
        let Ok(worker) = started else {
            // No thread is left: the work is done here, and renews on its way.
            let next = AtomicU64::new(clock.now().boot.plus(pause).0);
            let lease = Mutex::new(&mut *lease);
            return run(&Alone { guarded, lease, pause, next });
        };
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(Duration::from_millis(pause))
        {
            guarded.renew(lease);
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let lost = *guarded.lost.lock().unwrap_or_else(PoisonError::into_inner);
    outcome.expect("work is run once").map_err(|error| match what_became(lease, lost, clock) {
        Some(lost) => lost.into(),
        None => error,
    })
}

/// What became of the lease under which work failed, if it was lost. That says more
/// than what it did to the work: files of ours that are gone, for example, were
/// removed by somebody who holds the lock now and was right to clean up.
fn what_became(lease: &mut Lease<'_>, lost: Option<Lost>, clock: &dyn Clock) -> Option<LeaseError> {
    let gone = |error: &LeaseError| {
        use Code::{FencingMismatch, LockExpired, LockNotHeld, NotFound};
        matches!(error.code(), FencingMismatch | LockExpired | LockNotHeld | NotFound)
    };
    match lease.fence().and_then(|fence| fence.read()) {
        Err(error) => Some(error).filter(gone),
        // Renewed after all, too late for what was being done.
        Ok(_) => match lost? {
            Lost::Taken => None,
            Lost::Over(noticed) => {
                let (worktree, token) = (lease.worktree().clone(), lease.token());
                let since_ms = clock.now().boot.since(noticed);
                Some(LeaseError::Expired { worktree, token, since_ms })
            }
        },
    }
}

/// Progress that ends with the lease.
struct Guarded<'g> {
    inner: &'g dyn Progress,
    lost: Mutex<Option<Lost>>,
    belief: Belief,
    clock: &'g dyn Clock,
}

impl Guarded<'_> {
    fn note(&self, lost: Lost) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(lost);
    }

    /// A renewal that merely fails is tried again until belief ends.
    fn renew(&self, lease: &mut Lease<'_>) {
        let is_lost = |error: &LeaseError| {
            matches!(error.code(), Code::FencingMismatch | Code::LockNotHeld | Code::NotFound)
        };
        if lease.renew().is_err_and(|error| is_lost(&error)) {
            self.note(Lost::Taken);
        }
    }
}

impl Progress for Guarded<'_> {
    fn phase(&self, phase: CapturePhase) {
        self.inner.phase(phase);
    }

    fn total(&self, files: u64, bytes: u64) {
        self.inner.total(files, bytes);
    }

    fn advance(&self, files: u64, bytes: u64) {
        self.inner.advance(files, bytes);
    }

    fn keep_going(&self) -> bool {
        if !self.inner.keep_going() {
            return false;
        }
        let now = self.clock.now().boot;
        if !self.belief.holds_at(now) {
            self.note(Lost::Over(now));
        }
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

/// Progress that also renews the lease, as often as it is asked whether to go on.
struct Alone<'a, 'g, 'r> {
    guarded: &'a Guarded<'g>,
    lease: Mutex<&'a mut Lease<'r>>,
    pause: u64,
    /// When to renew next, in boot time.
    next: AtomicU64,
}

impl Progress for Alone<'_, '_, '_> {
    fn phase(&self, phase: CapturePhase) {
        self.guarded.phase(phase);
    }

    fn total(&self, files: u64, bytes: u64) {
        self.guarded.total(files, bytes);
    }

    fn advance(&self, files: u64, bytes: u64) {
        self.guarded.advance(files, bytes);
    }

    fn keep_going(&self) -> bool {
        let now = self.guarded.clock.now().boot;
        if now.0 >= self.next.load(Ordering::Relaxed)
            && let Ok(mut lease) = self.lease.try_lock()
        {
            self.next.store(now.plus(self.pause).0, Ordering::Relaxed);
            self.guarded.renew(&mut lease);
        }
        self.guarded.keep_going()
    }
}
