//! What the kernel says of its own wall clock.
//!
//! Unsafe code, because `adjtimex(2)` has no safe wrapper among our dependencies.

#![allow(unsafe_code)]

use crate::clock::Discipline;

/// Reads the clock's discipline without changing it.
pub(crate) fn discipline() -> Discipline {
    // SAFETY: all-zero bytes are a valid `timex`, and `modes = 0` asks the
    // kernel to fill it in and to change nothing.
    let (answer, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut timex), timex)
    };
    if answer < 0 {
        return Discipline::Unknown;
    }
    if answer == libc::TIME_ERROR || timex.status & libc::STA_UNSYNC != 0 {
        return Discipline::Unsynchronised;
    }
    let micros = u64::try_from(timex.maxerror).unwrap_or(u64::MAX);
    Discipline::Synchronised { max_error_ms: micros / 1000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_changes_nothing_and_answers_the_same() {
        assert_eq!(std::mem::discriminant(&discipline()), std::mem::discriminant(&discipline()));
    }
}
