//! The line between library code and the world that answers it.

use jvs_repo::clock::{BootId, Discipline, Reading};

use super::board::Value;
use super::call::{Answer, Call, Effect};

/// Whoever answers: a scheduled world, or one that a test has to itself.
pub(crate) trait Line: Send + Sync {
    fn call(&self, call: Call) -> Answer;
    fn now(&self) -> Reading;
    fn sleep_ms(&self, ms: u64);
    fn boot_id(&self) -> BootId;
    fn time_namespace(&self) -> u64;
    fn discipline(&self) -> Discipline;
    fn pick(&self, below: usize) -> usize;
    fn look(&self, process: usize, key: &'static str) -> Option<Value>;
    fn pause(&self);
    fn effect(&self, effect: Effect);
}

/// The time namespace that every host begins with.
pub(crate) const FIRST_TIME_NAMESPACE: u64 = 1;

/// A boot id as the kernel prints one.
pub(crate) fn boot_id(host: usize, boots: u32) -> BootId {
    BootId(format!("{host:08x}-0000-4000-8000-{boots:012x}"))
}
