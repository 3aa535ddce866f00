//! Why nothing was restored.

use jvs_lock::LeaseError;
use jvs_lock::worktrees::WorktreeError;
use jvs_repo::code::{Coded, Layer, Layered};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::next::Next;
use jvs_repo::record::audit::HalfRestored;
use jvs_repo::store::RepoPath;
use serde_json::{Value, json};

use super::journal::RestoreJournal;
use super::replace::some;
use crate::error::SnapshotError;
use crate::manifest::TreePath;
use crate::stage::CaptureError;

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The snapshot or the lock stands in the way.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Its files could not be copied.
    #[error("nothing was restored: {0}")]
    Copy(#[from] CaptureError),
    /// The worktree could not be made.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// Files were swapped anyway, or may be.
    #[error(transparent)]
    Half(Box<Half>),
    /// It is committed, and has not come to its end.
    #[error(transparent)]
    Unfinished(Box<UnfinishedRestore>),
}

/// A restore that is committed, and that this process did not finish.
#[derive(Debug, thiserror::Error)]
#[error("{cause}; {}", self.how_far())]
pub struct UnfinishedRestore {
    /// Which snapshot is restored.
    pub restored: SnapshotId,
    /// False if it may yet turn out not to be committed.
    pub certain: bool,
    /// What went wrong.
    #[source]
    pub cause: RestoreError,
}

impl UnfinishedRestore {
    fn how_far(&self) -> String {
        let id = self.restored;
        match self.certain {
            true => format!(
                "restoring {id} has begun, some files may be old and some new, and the next \
                 command that uses this worktree's lock finishes it"
            ),
            false => format!(
                "restoring {id} may have begun: the next command that uses this worktree's lock \
                 finishes it, or nothing was changed"
            ),
        }
    }
}

/// Files that were swapped although the restore failed: not all of them, or not
/// under the lock.
#[derive(Debug, thiserror::Error)]
#[error("{cause}; {}; the old ones are in {old}, and nothing was deleted", self.how_many())]
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
    #[source]
    pub cause: RestoreError,
}

impl Half {
    fn how_many(&self) -> String {
        match (self.swapped.len(), self.steps, self.certain) {
            (0, _, _) => "the files may be swapped, or may yet be".into(),
            (done, all, true) if done == all => "the files were swapped nevertheless".into(),
            (done, all, true) => format!("{done} of {all} paths were swapped nevertheless"),
            (done, all, false) => {
                format!("{done} of {all} paths were swapped, and one more may be")
            }
        }
    }

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

impl From<LeaseError> for RestoreError {
    fn from(error: LeaseError) -> Self {
        RestoreError::Snapshot(error.into())
    }
}

impl Layered for RestoreError {
    fn layer(&self) -> Layer<'_> {
        match self {
            RestoreError::Snapshot(error) => Layer::Below(error),
            RestoreError::Copy(error) => Layer::Below(error),
            RestoreError::Worktree(error) => Layer::Below(error),
            RestoreError::Half(half) => Layer::Own(half.cause.code()),
            RestoreError::Unfinished(unfinished) => Layer::Own(unfinished.cause.code()),
        }
    }

    fn own_next(&self) -> Option<Next> {
        match self {
            RestoreError::Half(half) => Some(Next::CompareWithOldFiles(half.old.clone())),
            RestoreError::Unfinished(unfinished) => match &unfinished.cause {
                RestoreError::Snapshot(SnapshotError::Corrupt { path, .. })
                    if *path == layout::journal(&path.parent()) =>
                {
                    Some(RestoreJournal::advice(&path.parent()).into())
                }
                cause => cause.next().or(Some(Next::AskDoctor)),
            },
            _ => None,
        }
    }

    fn own_details(&self) -> Option<Value> {
        if let RestoreError::Unfinished(unfinished) = self {
            let UnfinishedRestore { restored, certain, .. } = &**unfinished;
            return Some(json!({ "unfinished": restored, "certain": certain }));
        }
        let RestoreError::Half(half) = self else { return None };
        let mut told = json!(half.told());
        if let (Value::Object(all), Some(Value::Object(more))) = (&mut told, half.cause.details()) {
            all.extend(more);
        }
        Some(told)
    }
}
