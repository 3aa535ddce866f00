//! Why a remedy was not applied.

use std::io;

use jvs_lock::hold::{EnterError, GiveBackError};
use jvs_lock::worktrees::WorktreeError;
use jvs_lock::{
    AcquireError, BirthError, FreezeError, LeaseError, RegisterError, TakeOverError, UnfreezeError,
};
use jvs_repo::json::RecordError;
use jvs_repo::store::RepoPath;
use jvs_snapshot::SnapshotError;
use jvs_snapshot::restore::RestoreError;

/// Why a remedy was not applied. What a crate below says keeps its own error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Every repair is logged before it is made.
    #[error("the audit log cannot be written: {0}")]
    LogUnwritable(#[source] io::Error),
    /// A log that may say otherwise.
    #[error("{path} cannot be read: {source}")]
    LogUnreadable {
        /// Which log.
        path: RepoPath,
        /// Why not.
        source: io::Error,
    },
    /// What was to be written again was deleted on purpose.
    #[error("it was deleted meanwhile")]
    DeletedMeanwhile,
    /// What was to be replaced is no longer what was seen.
    #[error("somebody else is repairing it")]
    ChangedMeanwhile,
    /// The record to be removed is one of a new hold.
    #[error("a new holder wrote it meanwhile")]
    HeldMeanwhile,
    /// The file to be removed is one of a new takeover.
    #[error("another session is taking the lock over meanwhile")]
    TakenOverMeanwhile,
    /// A lock of another tool that this one cannot judge.
    #[error("it never ends, or somebody holds our lock as well: decide by hand")]
    LegacyLockInUse,
    /// The session that repairs is at work itself.
    #[error("commands of this session still need it")]
    StillNeeded,
    /// The register is broken by now.
    #[error("its register cannot be read any more")]
    RegisterUnreadable,
    /// There is nothing to rebuild the register from.
    #[error("there is no entry to keep")]
    NoEntry,
    /// Nothing says what READY has to say.
    #[error("it has no descriptor")]
    NotDescribed,
    /// The filesystem did not do it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The lock was not taken.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The worktree was not shared.
    #[error(transparent)]
    Share(#[from] TakeOverError),
    /// The session's hold was not entered.
    #[error(transparent)]
    Enter(#[from] EnterError<AcquireError>),
    /// The lock was not given back.
    #[error(transparent)]
    GiveBack(#[from] GiveBackError),
    /// What was held is lost.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A lock of another tool did not become one of ours.
    #[error(transparent)]
    Freeze(#[from] FreezeError),
    /// A freeze was not lifted.
    #[error(transparent)]
    Unfreeze(#[from] UnfreezeError),
    /// The register was not read or moved.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The restore was not finished.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The register was not installed.
    #[error(transparent)]
    Birth(#[from] BirthError),
    /// The operation on the worktree was not ended.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// The snapshot was not shown or collected.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The metadata was not written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn what_went_wrong_below_stays_the_source() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = RepairError::LogUnwritable(full());
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
        let error = RepairError::from(full());
        assert!(matches!(&error, RepairError::Io(io) if io.kind() == io::ErrorKind::StorageFull));
        assert_eq!(error.to_string(), full().to_string());
    }
}
