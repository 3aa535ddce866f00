//! What the audit log is told of a restore in place.

use std::io;

use jvs_lock::Locks;
use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::id::OpNonce;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::audit::Restored;

use crate::error::SnapshotError;

/// The events of one restore.
pub(super) struct RestoreLog<'l, 'r> {
    pub(super) locks: &'l Locks<'r>,
    pub(super) op: OpNonce,
    pub(super) worktree: &'l WorktreeName,
    pub(super) reason: Option<&'l str>,
}

impl RestoreLog<'_, '_> {
    /// Says what is about to be done, before anything is: without that nothing is done.
    pub(super) fn announce(&self, told: Restored) -> Result<(), SnapshotError> {
        self.note(EventPhase::Intent, told).map_err(SnapshotError::io("write the audit log"))
    }

    pub(super) fn note(&self, phase: EventPhase, told: Restored) -> io::Result<()> {
        let (worktree, reason) = (Some(self.worktree), self.reason);
        let details = Some(Box::new(told).into());
        self.locks.note(EventKind::Restore, phase, self.op, worktree, reason, details)
    }
}
