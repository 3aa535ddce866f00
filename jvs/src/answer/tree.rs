//! What is told of files.

use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_snapshot::compare::Aspect;
use jvs_snapshot::imprint::Change;
use serde::Serialize;

use super::lock::Seen;
use super::{Base64, Time};

/// Paths that differ.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Differences {
    /// In the order of their paths.
    pub(crate) differences: Vec<DifferenceTold>,
    /// How many paths are new.
    pub(crate) added: u64,
    /// How many are gone.
    pub(crate) removed: u64,
    /// How many are not what they were.
    pub(crate) changed: u64,
}

/// A path that differs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DifferenceTold {
    /// In which way.
    pub(crate) change: Change,
    /// In what.
    pub(crate) aspects: Vec<Aspect>,
    /// Bytes of the file before, if there was one.
    pub(crate) before_bytes: Option<u64>,
    /// Bytes of the file now, if there is one.
    pub(crate) after_bytes: Option<u64>,
    /// The path, below the worktree.
    pub(crate) path: String,
    /// Its bytes, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// How two trees differ.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Diff {
    #[serde(flatten)]
    pub(crate) differences: Differences,
    /// The snapshot that is compared.
    pub(crate) from: SnapshotId,
    /// With which other; `null` if it is the files as they are.
    pub(crate) to: Option<SnapshotId>,
}

/// A worktree at one glance.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Glance {
    #[serde(flatten)]
    pub(crate) differences: Differences,
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// One writer or many.
    pub(crate) isolation: Isolation,
    /// Where its files are.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
    /// The newest snapshot.
    pub(crate) head: Option<SnapshotId>,
    /// Was every file read, whatever its times say?
    pub(crate) full: bool,
    /// Are the files those of the head? `null` without one.
    pub(crate) clean: Option<bool>,
    /// Is a restore of the files under way, or was it interrupted?
    pub(crate) restoring: bool,
    /// The session that asks, if it has a name.
    pub(crate) session_id: Option<String>,
    /// The lock.
    pub(crate) lock: Seen,
    /// Paths of the head that are ignored now: the next snapshot will not have them.
    pub(crate) ignored_now: Vec<String>,
    /// Their bytes, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ignored_now_bytes: Option<Vec<Option<Base64>>>,
    /// What is ignored, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ignored: Option<Vec<IgnoredTold>>,
}

/// A path that is ignored.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct IgnoredTold {
    /// The file of rules that ignores it, or `snapshot.ignore`.
    pub(crate) from: String,
    /// The rule, as it stands there.
    pub(crate) rule: String,
    /// The path, below the worktree.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// The files of a worktree, each of them read.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FilesRead {
    #[serde(flatten)]
    pub(crate) differences: Differences,
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// The snapshot that they were compared with.
    pub(crate) snapshot_id: SnapshotId,
    /// Is every byte as there?
    pub(crate) clean: bool,
    /// Paths that changed without a change of time.
    pub(crate) unnoticed: Vec<String>,
    /// Their bytes, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unnoticed_bytes: Option<Vec<Option<Base64>>>,
}

/// What is in a snapshot.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Listing {
    /// The snapshot.
    pub(crate) snapshot_id: SnapshotId,
    /// In the order of their paths.
    pub(crate) entries: Vec<EntryTold>,
}

/// Something in a snapshot.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EntryTold {
    /// What it is, in a word: `file`, `directory`, `symlink`.
    pub(crate) kind: String,
    /// Its size, if it is a file.
    pub(crate) bytes: Option<u64>,
    /// Its permission bits, in octal digits.
    pub(crate) mode: String,
    /// Its owner.
    pub(crate) uid: u32,
    /// Its group.
    pub(crate) gid: u32,
    /// Its path, below the worktree.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// A file of a snapshot.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FileContent {
    /// The snapshot.
    pub(crate) snapshot_id: SnapshotId,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its content, if it is text of at most 1 MiB.
    pub(crate) text: Option<String>,
    /// Its path, below the worktree.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
    /// Its content, if it is no text, of at most 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text_bytes: Option<Base64>,
}

/// A worktree that was made of a snapshot.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RestoredBeside {
    /// Its name.
    pub(crate) name: WorktreeName,
    /// One writer or many.
    pub(crate) isolation: Isolation,
    /// When it was made.
    pub(crate) created_at: Time,
    /// How its lock stands: free.
    pub(crate) state: jvs_lock::StatusWord,
    /// The snapshot that it was made of.
    pub(crate) base: SnapshotId,
    /// Its newest snapshot: the same.
    pub(crate) head: SnapshotId,
    /// Where its files are.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// Files that were replaced by those of a snapshot.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RestoredInPlace {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// The snapshot whose files are there now.
    pub(crate) snapshot_id: SnapshotId,
    /// The snapshot that has what was there before; `null` if nothing was.
    pub(crate) kept: Option<SnapshotId>,
    /// Was that taken for this?
    pub(crate) kept_is_new: bool,
    /// How many paths were replaced; `null` if it was all of them in one step, or those
    /// that were named.
    pub(crate) changed: Option<usize>,
    /// Where old files are that no snapshot has, if there are any.
    pub(crate) left: Option<String>,
    /// The paths that were named; empty if it was all of them.
    pub(crate) paths: Vec<String>,
    /// Their bytes, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paths_bytes: Option<Vec<Option<Base64>>>,
    /// Paths that stay as they are because they are ignored.
    pub(crate) stays: Vec<String>,
    /// Their bytes, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stays_bytes: Option<Vec<Option<Base64>>>,
    /// The bytes of `left`, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left_bytes: Option<Base64>,
}
