//! What is told of operations that were taken back.

use jvs_repo::audit::EventKind;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::name::{TagName, WorktreeName};
use serde::Serialize;
use serde_json::Value;

/// An operation that was taken back, or done again, or would be.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct UndoTold {
    /// The operation.
    pub(crate) op: OpNonce,
    /// What it was, in words.
    pub(crate) what: String,
    /// The operation that took it back; `null` if none did.
    pub(crate) by: Option<OpNonce>,
    /// Was nothing done?
    pub(crate) dry_run: bool,
    /// What the command answers that did it; `null` if none was needed.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schemas::undone"))]
    pub(crate) result: Value,
}

/// A line of snapshots that ends elsewhere.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LineMoved {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// What its line ends with; `null` if it has no snapshot.
    pub(crate) head: Option<SnapshotId>,
    /// The snapshot beside the line that says so.
    pub(crate) said_by: SnapshotId,
}

/// A tag that was made again.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TagAgain {
    /// Its name.
    pub(crate) tag: TagName,
    /// The snapshot that it names.
    pub(crate) snapshot_id: SnapshotId,
}

/// Operations that can be taken back, or were.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PastOperations {
    /// The newest first.
    pub(crate) operations: Vec<PastOperationTold>,
}

/// An operation.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PastOperationTold {
    /// Its name.
    pub(crate) op: OpNonce,
    /// When it was done.
    pub(crate) at: String,
    /// Who did it.
    pub(crate) session_id: String,
    /// The worktree that it was about.
    pub(crate) worktree: Option<WorktreeName>,
    /// What kind it is.
    pub(crate) kind: EventKind,
    /// What it was, in words.
    pub(crate) what: String,
    /// Is it done, and not taken back?
    pub(crate) done: bool,
}
