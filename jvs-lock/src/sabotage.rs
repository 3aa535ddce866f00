//! What would be done without a rule, where that is more than an expression: see
//! [`jvs_repo::mutation`].

use std::io;

use jvs_repo::clock::WallMs;
use jvs_repo::config::LockPolicy;
use jvs_repo::id::{FencingToken, OpNonce};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use crate::decide::{Refusal, may_take_over};
use crate::drive::{Attempt, Driver};
use crate::error::{BirthError, RegisterError};
use crate::judge::{Judgement, Standing};
use crate::lease::{Lease, ReleaseError};
use crate::seams::Seams;
use crate::state::{Claim, Hold, State};

/// Raised only by the process that takes what nobody holds.
pub(crate) fn token_of_free(state: &State) -> FencingToken {
    match state.holder() {
        Some(_) => state.token,
        None => state.token.next(),
    }
}

/// Of a head move that does not copy the end of the lease.
pub(crate) fn hold_with_an_earlier_end(state: &State) -> Hold {
    match state.hold {
        Hold::Held(claim) => Hold::Held(Claim { expires: WallMs(claim.expires.0 / 2), ..claim }),
        hold => hold,
    }
}

/// Whatever a clock calls over is moved, however little that clock is worth.
pub(crate) fn may_move(
    state: &State,
    judgement: Option<&Judgement>,
    policy: &LockPolicy,
) -> Result<(), Refusal> {
    match judgement {
        Some(judged) if judged.standing == Standing::Stealable => Ok(()),
        _ => may_take_over(state, judgement, policy),
    }
}

/// As if the attempt had been refused.
pub(crate) fn refused(driver: &Driver<'_, '_>) -> RegisterError {
    let (worktree, source) = (driver.register.worktree().clone(), io::ErrorKind::NotFound.into());
    RegisterError::Io { worktree, doing: "cannot update the fence register", source }
}

/// The same attempt, which nothing tells to be the same.
pub(crate) fn under_another_nonce(driver: &Driver<'_, '_>, attempt: &Attempt) -> State {
    let op = OpNonce::random(driver.seams.entropy);
    State { op, ..attempt.to }.chained_to(Some(&attempt.from))
}

/// The directory first, then its entry.
pub(crate) fn make_in_place(
    seams: Seams<'_>,
    worktree: &WorktreeName,
    state: &State,
) -> Result<(), BirthError> {
    let io = |source| BirthError::Io { worktree: worktree.clone(), source };
    let place = layout::register(worktree);
    match seams.store.make_dir(&place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io(error)),
        _ => {}
    }
    let entry = place.child(&state.to_string()).map_err(io)?;
    seams.store.create_new(&entry).map(drop).map_err(io)
}

/// Believes until the release has been answered.
pub(crate) fn release_believing(mut lease: Lease<'_>) -> Result<State, ReleaseError<'_>> {
    match lease.give_back() {
        Ok(state) => {
            lease.belief().end();
            Ok(state)
        }
        Err(error) => Err(ReleaseError { lease: Box::new(lease), error }),
    }
}
