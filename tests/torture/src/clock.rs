//! The one clock that all hosts of a machine share, whatever their wall clocks say.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine has booted.
pub(crate) fn boot_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, rest) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or_default() * 1_000_000_000 + rest.unwrap_or_default()
}

/// Milliseconds since the machine has booted.
pub(crate) fn boot_ms() -> u64 {
    boot_ns() / 1_000_000
}
