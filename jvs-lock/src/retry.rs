//! Trying again when a network filesystem stumbles. A refusal is never tried
//! again: it is an answer.

use std::io;

use crate::error::{OfRegister, RegisterError};
use crate::lease::{Lease, ReleaseError};
use crate::register::{ReadError, is_transient};
use crate::seams::Seams;
use crate::state::State;

/// How often an operation is tried.
const TRIES: u32 = 6;
/// First pause; each is twice the one before.
const FIRST_PAUSE_MS: u64 = 50;

/// Runs `operation`, and again while it fails in a way that passes by itself:
/// at most six times within about two seconds. The operation must be one that
/// may be repeated: acquire, refresh, renew.
pub fn while_transient<T, E: OfRegister>(
    seams: Seams<'_>,
    operation: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    while_it(seams, passes, operation)
}

/// The same for failures of another kind, of which `passes` says whether they do.
pub(crate) fn while_it<T, E>(
    seams: Seams<'_>,
    passes: impl Fn(&E) -> bool,
    mut operation: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut tries = 0;
    loop {
        tries += 1;
        match operation() {
            Err(error) if tries < TRIES && passes(&error) => pause(seams, tries),
            answer => return answer,
        }
    }
}

/// Gives the lock back, and tries again while that fails in a way that passes
/// by itself.
pub fn release<'r>(seams: Seams<'_>, lease: Lease<'r>) -> Result<State, ReleaseError<'r>> {
    let mut lease = lease;
    let mut tries = 0;
    loop {
        tries += 1;
        match lease.release() {
            Err(failed) if tries < TRIES && passes(&failed.error) => {
                lease = *failed.lease;
                pause(seams, tries);
            }
            answer => return answer,
        }
    }
}

fn pause(seams: Seams<'_>, tries: u32) {
    let mut jitter = [0];
    seams.entropy.fill(&mut jitter);
    seams.clock.sleep_ms(pause_ms(tries, jitter[0]));
}

/// The pause after so many tries, spread by half of itself.
fn pause_ms(tries: u32, jitter: u8) -> u64 {
    let pause = FIRST_PAUSE_MS << (tries - 1).min(TRIES);
    pause + pause / 2 * u64::from(jitter) / 255
}

/// Is this a failure that passes by itself?
pub fn passes(error: &impl OfRegister) -> bool {
    let Some(error) = error.of_register() else { return false };
    let source: &io::Error = match error {
        RegisterError::Io { source, .. }
        | RegisterError::OutcomeUnknown { source, .. }
        | RegisterError::Read(ReadError::Io { source, .. }) => source,
        _ => return false,
    };
    is_transient(source)
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;
    use jvs_repo::name::WorktreeName;

    fn io(errno: Errno) -> RegisterError {
        let source = errno.into();
        RegisterError::Io { worktree: WorktreeName::main(), doing: "cannot test", source }
    }

    #[test]
    fn only_what_a_network_filesystem_gets_over_is_tried_again() {
        for errno in [Errno::IO, Errno::STALE, Errno::TIMEDOUT, Errno::AGAIN, Errno::NOTCONN] {
            assert!(passes(&io(errno)), "{errno}");
        }
        for errno in [Errno::NOSPC, Errno::ACCESS, Errno::ROFS, Errno::NOENT, Errno::LOOP] {
            assert!(!passes(&io(errno)), "{errno}");
        }
        assert!(!passes(&RegisterError::StaleMount { worktree: WorktreeName::main() }));
    }

    #[test]
    fn pauses_double_and_are_spread() {
        let all: Vec<u64> = (1..TRIES).map(|tries| pause_ms(tries, 0)).collect();
        assert_eq!(all, [50, 100, 200, 400, 800]);
        assert_eq!(pause_ms(1, 255), 75);
    }
}
