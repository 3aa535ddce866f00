//! The clocks of one simulated host.

use std::sync::Arc;

use jvs_repo::clock::{BootId, Clock, Discipline, Reading};

use super::line::Line;

/// A clock that moves only when the world says so.
#[derive(Clone)]
pub struct SimClock {
    line: Arc<dyn Line>,
}

impl SimClock {
    pub(crate) fn new(line: Arc<dyn Line>) -> Self {
        SimClock { line }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Reading {
        self.line.now()
    }

    fn boot_id(&self) -> BootId {
        self.line.boot_id()
    }

    fn time_namespace(&self) -> Option<u64> {
        Some(self.line.time_namespace())
    }

    fn discipline(&self) -> Discipline {
        self.line.discipline()
    }

    fn sleep_ms(&self, ms: u64) {
        self.line.sleep_ms(ms);
    }
}
