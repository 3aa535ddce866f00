//! Why nothing was restored.

use std::fmt;

use jvs_lock::LockError;
use jvs_lock::worktrees::WorktreeError;
use jvs_repo::code::{Code, Coded};

use crate::error::SnapshotError;
use crate::stage::CaptureError;

/// Why nothing was restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// The snapshot or the lock stands in the way.
    Snapshot(SnapshotError),
    /// Its files could not be copied.
    Copy(CaptureError),
    /// The worktree could not be made.
    Worktree(WorktreeError),
}

macro_rules! from_inner {
    ($($variant:ident $inner:ty;)*) => {
        $(impl From<$inner> for RestoreError {
            fn from(error: $inner) -> Self {
                RestoreError::$variant(error)
            }
        })*
    };
}
from_inner! {
    Snapshot SnapshotError;
    Copy CaptureError;
    Worktree WorktreeError;
}

impl From<LockError> for RestoreError {
    fn from(error: LockError) -> Self {
        RestoreError::Snapshot(error.into())
    }
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Snapshot(error) => error.fmt(f),
            RestoreError::Copy(error) => write!(f, "nothing was restored: {error}"),
            RestoreError::Worktree(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RestoreError {}

impl Coded for RestoreError {
    fn code(&self) -> Code {
        match self {
            RestoreError::Snapshot(error) => error.code(),
            RestoreError::Copy(error) => error.code(),
            RestoreError::Worktree(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            RestoreError::Snapshot(error) => error.hint(),
            RestoreError::Copy(error) => error.hint(),
            RestoreError::Worktree(error) => error.hint(),
        }
    }

    fn details(&self) -> Option<serde_json::Value> {
        match self {
            RestoreError::Snapshot(error) => error.details(),
            RestoreError::Copy(error) => error.details(),
            RestoreError::Worktree(error) => error.details(),
        }
    }
}
