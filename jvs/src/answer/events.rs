//! What is told of the changes of locks.

use jvs_lock::history::LockChangeKind;
use jvs_repo::id::{Epoch, FencingToken, OpNonce, Seq, SnapshotId};
use jvs_repo::name::WorktreeName;
use serde::Serialize;

use super::Time;

/// Changes of locks.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LockChanges {
    /// Of each lock in the order in which they happened.
    pub(crate) changes: Vec<LockChange>,
}

/// A change of a lock.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LockChange {
    /// What it was.
    pub(crate) kind: LockChangeKind,
    /// Whose lock.
    pub(crate) worktree: WorktreeName,
    /// When, by the clock of who did it; `null` if no log says.
    pub(crate) at: Option<String>,
    /// How the lock is since then; not there if its register cannot be read.
    #[serde(flatten)]
    pub(crate) stands: Option<LockStands>,
    /// Whose doing it was; `null` if no log says.
    pub(crate) session_id: Option<String>,
    /// `host:user:pid:start_time` of the process, as it said.
    pub(crate) holder_id: Option<String>,
    /// The session that had the lock before, where it is another's now or nobody's, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) previous_session: Option<String>,
    /// Why, in the words of who did it; of `unreadable`, the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// What the worktree is called now, of `renamed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) renamed_to: Option<WorktreeName>,
    /// How many changes are not told: of `gap`, and of `renewed` how many renewals before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) missed: Option<u64>,
}

/// How a lock is.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LockStands {
    /// `free`, `held`, `frozen` or `retired`.
    pub(crate) state: &'static str,
    /// The fencing token.
    pub(crate) fencing_token: FencingToken,
    /// The epoch of the register.
    pub(crate) epoch: Epoch,
    /// How many changes its register has seen in this epoch: with worktree and epoch, the
    /// name of this change.
    pub(crate) seq: Seq,
    /// When it ends unless it is renewed, by the clock of its holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<Time>,
    /// The newest snapshot that was published.
    pub(crate) head: Option<SnapshotId>,
    /// The operation that made it so.
    pub(crate) op: OpNonce,
}
