//! What this process claims of its stakes' files: for as long as it lives, and not a
//! moment longer. A process that cannot see the process, from another PID namespace, sees by
//! that whether it has ended.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use jvs_repo::id::OpNonce;

/// Of the process, not of a value: a stake is its process's until that ends.
static CLAIMS: Mutex<Vec<(OpNonce, OwnedFd)>> = Mutex::new(Vec::new());

/// Keeps the claim on the file of the stake `id`.
pub(super) fn keep(id: OpNonce, claim: Option<OwnedFd>) {
    let mut claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
    claims.extend(claim.map(|claim| (id, claim)));
}

/// The stake `id` is taken back.
pub(super) fn give_up(id: OpNonce) {
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner).retain(|(its, _)| *its != id);
}
