//! What the kernel says of its own wall clock.

/// Whether something steers the wall clock, and how well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steered {
    /// Something keeps it synchronised.
    pub synchronised: bool,
    /// The largest error that the kernel thinks possible.
    pub max_error_us: u64,
}

/// Asks (`adjtimex`) without changing anything; `None` if the kernel does not say.
pub fn steered() -> Option<Steered> {
    // SAFETY: all-zero bytes are a valid `timex`, and `modes = 0` asks the
    // kernel to fill it in and to change nothing.
    let (answer, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut timex), timex)
    };
    (answer >= 0).then(|| Steered {
        synchronised: answer != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0,
        max_error_us: u64::try_from(timex.maxerror).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_changes_nothing_and_answers_the_same() {
        let synchronised = || steered().map(|steered| steered.synchronised);
        assert_eq!(synchronised(), synchronised());
    }
}
