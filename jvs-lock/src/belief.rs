//! How long a holder may act, on its own boot-time clock.
//!
//! Must not know the register: a timer that does no I/O watches this value,
//! because a rename can hang for a quarter of an hour in a dead mount.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jvs_repo::clock::{BootMs, Clock};

/// A holder's belief that it holds. Cloned handles see the same belief, so a
/// timer thread can watch what another thread renews.
#[derive(Debug, Clone)]
pub struct Belief {
    /// Boot time in ms; zero means that nothing is believed.
    until: Arc<AtomicU64>,
}

impl Belief {
    pub(crate) fn until_boot(until: BootMs) -> Self {
        Belief { until: Arc::new(AtomicU64::new(until.0)) }
    }

    /// When belief ends; `None` once it has been given up.
    pub fn until(&self) -> Option<BootMs> {
        match self.until.load(Ordering::SeqCst) {
            0 => None,
            until => Some(BootMs(until)),
        }
    }

    /// May the holder act at `now`?
    pub fn holds_at(&self, now: BootMs) -> bool {
        self.until().is_some_and(|until| now < until)
    }

    /// What is left of it.
    pub fn remaining_ms(&self, clock: &dyn Clock) -> u64 {
        self.until().map_or(0, |until| until.since(clock.now().boot))
    }

    /// Only ever called with a renewal that was confirmed.
    pub(crate) fn extend_to(&self, until: BootMs) {
        let later = |now: u64| (now != 0).then(|| now.max(until.0));
        // What was given up stays given up: a renewal confirmed late revives nothing.
        let _ = self.until.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    /// Gives it up: before a release is issued, and when the lock is lost.
    pub(crate) fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handle_sees_the_end() {
        let belief = Belief::until_boot(BootMs(100));
        let timer = belief.clone();
        assert!(timer.holds_at(BootMs(99)) && !timer.holds_at(BootMs(100)));
        belief.extend_to(BootMs(200));
        assert!(timer.holds_at(BootMs(199)));
        belief.extend_to(BootMs(150));
        assert_eq!(timer.until(), Some(BootMs(200)), "a renewal never shortens");
        belief.end();
        assert!(!timer.holds_at(BootMs(0)));
        belief.extend_to(BootMs(300));
        assert_eq!(timer.until(), None, "what was given up stays given up");
    }
}
