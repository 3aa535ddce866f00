//! What is told of repositories and worktrees.

use jvs_lock::StatusWord;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::sharing::Sharing;
use serde::Serialize;

use super::{Base64, Time, Unreadable};

/// A repository that was made.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Init {
    /// Its id.
    pub(crate) repo_id: String,
    /// Its first worktree.
    pub(crate) worktree: WorktreeName,
    /// Is what was in the directory in that worktree now?
    pub(crate) adopted: bool,
    /// With whom it is shared.
    pub(crate) shared: Sharing,
    /// What was found out about the filesystem.
    pub(crate) filesystem: Option<FilesystemProbed>,
    /// The root of the repository.
    pub(crate) root: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) root_bytes: Option<Base64>,
    /// Where the files of the worktree are.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// A filesystem that was tested.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FilesystemProbed {
    /// What kind it is.
    pub(crate) kind: String,
    /// Does it keep the promises that locking needs?
    pub(crate) safe: bool,
    /// What is wrong or worth knowing, worst first.
    pub(crate) findings: Vec<ProbeFound>,
    /// Where it is mounted.
    pub(crate) mount_point: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mount_point_bytes: Option<Base64>,
}

/// Something about a filesystem.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ProbeFound {
    /// How much it matters: `unsafe` or `warning`.
    pub(crate) severity: &'static str,
    /// What it is about, in a word.
    pub(crate) subject: &'static str,
    /// What was seen.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) remedy: String,
}

/// A worktree that was made, and has no snapshot yet.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CreatedEmpty {
    /// Its name.
    pub(crate) name: WorktreeName,
    /// One writer or many.
    pub(crate) isolation: Isolation,
    /// When it was made.
    pub(crate) created_at: Time,
    /// How its lock stands: free.
    pub(crate) state: StatusWord,
    /// Where its files are.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// All worktrees.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorktreeList {
    /// In the order of their names.
    pub(crate) worktrees: Vec<ListedWorktree>,
    /// The root of the repository.
    pub(crate) root: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) root_bytes: Option<Base64>,
}

/// A worktree in a list.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum ListedWorktree {
    /// Its record can be read.
    Worktree(Worktree),
    /// It cannot.
    Broken(BrokenWorktree),
}

/// A worktree.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Worktree {
    /// Its name.
    pub(crate) name: WorktreeName,
    /// One writer or many.
    pub(crate) isolation: Isolation,
    /// When it was made.
    pub(crate) created_at: Time,
    /// How its lock stands; `null` if that cannot be read.
    pub(crate) state: Option<StatusWord>,
    /// Is the lock this session's?
    pub(crate) mine: bool,
    /// Its newest snapshot.
    pub(crate) head: Option<SnapshotId>,
    /// The snapshot that it was made of.
    pub(crate) base: Option<SnapshotId>,
    /// A word to people.
    pub(crate) label: Option<String>,
    /// Where its files are.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
    /// Why its lock cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Unreadable>,
}

/// A worktree whose record cannot be read.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BrokenWorktree {
    /// Its name.
    pub(crate) name: WorktreeName,
    /// Not known.
    pub(crate) isolation: (),
    /// Not known.
    pub(crate) created_at: (),
    /// Not known.
    pub(crate) state: (),
    /// Why it cannot be read.
    pub(crate) error: Unreadable,
    /// Where its files are.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// Where the files of a worktree are.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorktreePath {
    /// Its name.
    pub(crate) worktree: WorktreeName,
    /// Where its files are.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// A worktree that has another name now.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Renamed {
    /// The name that it had.
    pub(crate) old: WorktreeName,
    /// Its name.
    pub(crate) name: WorktreeName,
    /// Where its files are; `null` if that cannot be seen now.
    pub(crate) path: Option<String>,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// A worktree that is gone.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RemovedWorktree {
    /// Its name.
    pub(crate) name: WorktreeName,
}
