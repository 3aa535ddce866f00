//! When whoever watches over a command that a lease protects takes the lease for
//! lost. Pure: the end of belief and the length of the lease in, moments out.
//!
//! ```text
//! renewed ─────────── keeper ── run ────── kill ──── guardian ── until
//!                      gives     gives      what      kills      somebody else
//!                      up, asks  up, asks   is left   them all   may have it
//! ```
//! The keeper is first because it knows why. `jvs run` comes after it by itself, so
//! that a keeper that is stopped, hung or slow to begin costs nothing but the reason. The
//! guardian is last: it acts only if both of them are stopped.

use jvs_repo::clock::BootMs;

/// How long a command may take to end by itself, at most.
const GRACE_MS: u64 = 5_000;
/// How long a keeper may take to begin.
const READY_MS: u64 = 20_000;

/// The pace of one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndingPace {
    /// What is set aside of the lease to end a command in.
    pub(crate) grace_ms: u64,
}

impl EndingPace {
    pub(crate) fn of(lease_ms: u64) -> Self {
        EndingPace { grace_ms: GRACE_MS.min(lease_ms / 3) }
    }

    /// When the keeper begins to end the command.
    pub(crate) fn keeper_gives_up(self, until: BootMs) -> BootMs {
        before(until, self.grace_ms)
    }

    /// When `jvs run` does, whatever the keeper is doing.
    pub(crate) fn run_gives_up(self, until: BootMs) -> BootMs {
        before(until, self.grace_ms / 4 * 3)
    }

    /// When whoever has not ended is made to. Half of the grace is for them: on a machine
    /// with hundreds of processes that want to run, the last that is killed gets its turn
    /// to die, in the middle of a write perhaps, hundreds of milliseconds later.
    pub(crate) fn kills(self, until: BootMs) -> BootMs {
        before(until, self.grace_ms / 2)
    }

    /// When the guardian makes everybody end, if nobody else has.
    pub(crate) fn guardian_kills(self, until: BootMs) -> BootMs {
        before(until, self.grace_ms / 4)
    }

    /// Until when a keeper may begin to keep a lease that already protects a command:
    /// no longer than `jvs run` would wait for the former one.
    pub(crate) fn ready_by(self, now: BootMs, until: BootMs) -> BootMs {
        now.plus(READY_MS).min(self.run_gives_up(until))
    }
}

/// Until when a keeper may begin that protects nothing yet.
pub(crate) fn ready_by(now: BootMs) -> BootMs {
    now.plus(READY_MS)
}

fn before(until: BootMs, ms: u64) -> BootMs {
    BootMs(until.0.saturating_sub(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gives_up_while_there_is_time_to_end_the_command() {
        for lease_ms in [200, 900, 3_000, 30_000, 3_600_000] {
            let (pace, until) = (EndingPace::of(lease_ms), BootMs(10_000_000));
            let moments = [
                BootMs(until.0 - lease_ms / 2),
                pace.keeper_gives_up(until),
                pace.run_gives_up(until),
                pace.kills(until),
                pace.guardian_kills(until),
                until,
            ];
            assert!(moments.is_sorted_by(|a, b| a < b), "{lease_ms}: {moments:?}");
        }
    }

    #[test]
    fn a_keeper_that_begins_anew_gets_no_more_time_than_the_lease_has() {
        let (pace, until) = (EndingPace::of(4_000), BootMs(100_000));
        let gives_up = pace.run_gives_up(until);
        assert_eq!(pace.ready_by(BootMs(97_000), until), gives_up);
        assert_eq!(pace.ready_by(BootMs(99_999), until), gives_up, "none at all");
        assert_eq!(pace.ready_by(BootMs(0), until), BootMs(20_000), "nor for ever");
    }
}
