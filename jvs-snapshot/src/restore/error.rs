//! Why nothing was restored.

use std::fmt;

use jvs_lock::LockError;
use jvs_lock::worktrees::WorktreeError;
use jvs_repo::code::{Code, Coded};
use jvs_repo::next::Next;
use jvs_repo::record::audit::HalfRestored;
use jvs_repo::store::RepoPath;
use serde_json::{Value, json};

use super::replace::some;
use crate::error::SnapshotError;
use crate::manifest::TreePath;
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
    /// Files were swapped all the same, or may be.
    Half(Box<Half>),
}

/// Files that were swapped although the restore failed: not all of them, or not
/// under the lock.
#[derive(Debug)]
pub struct Half {
    /// Which, the root if it is the whole worktree.
    pub swapped: Vec<TreePath>,
    /// Of how many.
    pub steps: usize,
    /// False if one more may be, or may yet become.
    pub certain: bool,
    /// Where the old ones are, and what was not swapped.
    pub old: RepoPath,
    /// What went wrong.
    pub cause: RestoreError,
}

impl Half {
    /// For the audit log and for scripts.
    pub(crate) fn told(&self) -> HalfRestored {
        HalfRestored {
            swapped: some(self.swapped.iter()),
            steps: self.steps,
            certain: self.certain,
            old_files: self.old.to_string(),
            cause: self.cause.code().to_string(),
        }
    }
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Half { swapped, steps, certain, old, cause } = self;
        write!(f, "{cause}; ")?;
        match (swapped.len(), steps, certain) {
            (0, _, _) => f.write_str("the files may be swapped, or may yet be")?,
            (done, all, true) if done == *all => {
                f.write_str("the files were swapped all the same")?
            }
            (done, all, true) => write!(f, "{done} of {all} paths were swapped all the same")?,
            (done, all, false) => {
                write!(f, "{done} of {all} paths were swapped, and one more may be")?;
            }
        }
        write!(f, "; the old ones are in {old}, and nothing was deleted")
    }
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
            RestoreError::Half(half) => half.fmt(f),
        }
    }
}

impl std::error::Error for RestoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RestoreError::Snapshot(error) => Some(error),
            RestoreError::Copy(error) => Some(error),
            RestoreError::Worktree(error) => Some(error),
            RestoreError::Half(half) => Some(&half.cause),
        }
    }
}

impl Coded for RestoreError {
    fn code(&self) -> Code {
        match self {
            RestoreError::Snapshot(error) => error.code(),
            RestoreError::Copy(error) => error.code(),
            RestoreError::Worktree(error) => error.code(),
            RestoreError::Half(half) => half.cause.code(),
        }
    }

    fn next(&self) -> Option<Next> {
        match self {
            RestoreError::Snapshot(error) => error.next(),
            RestoreError::Copy(error) => error.next(),
            RestoreError::Worktree(error) => error.next(),
            RestoreError::Half(half) => Some(Next::CompareWithOldFiles(half.old.clone())),
        }
    }

    fn details(&self) -> Option<Value> {
        match self {
            RestoreError::Snapshot(error) => error.details(),
            RestoreError::Copy(error) => error.details(),
            RestoreError::Worktree(error) => error.details(),
            RestoreError::Half(half) => {
                let mut told = json!(half.told());
                if let (Value::Object(all), Some(Value::Object(more))) =
                    (&mut told, half.cause.details())
                {
                    all.extend(more);
                }
                Some(told)
            }
        }
    }
}
