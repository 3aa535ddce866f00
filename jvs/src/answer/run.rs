//! What is told of commands that ran under a lock.

use jvs_repo::id::FencingToken;
use jvs_repo::name::WorktreeName;
use serde::Serialize;

use super::snapshot::TakenTold;
use crate::tree::Member;

/// A command that ran under the locks of one worktree or several.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Ran {
    #[serde(flatten)]
    pub(crate) under: Under,
    /// Its exit status, as a shell has it.
    pub(crate) exit: u8,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
    /// Why a lock was lost, if one was.
    pub(crate) lost: Option<String>,
    /// What held its processes together: `cgroup`, `pidns` or `reap`.
    pub(crate) contained: &'static str,
    /// Processes that it left, and that were ended.
    pub(crate) background_ended: Vec<Member>,
    /// Processes that it left, and that still run.
    pub(crate) background_left: Vec<Member>,
    /// The snapshot that was taken at the end, if one was asked for.
    pub(crate) snapshot: Option<TakenTold>,
}

/// What a command ran under.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Under {
    /// One lock.
    One(UnderOne),
    /// Several locks.
    Several(UnderSeveral),
}

/// One lock.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct UnderOne {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// The fencing token.
    pub(crate) fencing_token: FencingToken,
}

/// Several locks.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct UnderSeveral {
    /// Each of them.
    pub(crate) worktrees: Vec<UnderEach>,
}

/// One of several locks.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct UnderEach {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// The fencing token.
    pub(crate) fencing_token: FencingToken,
    /// Why it was lost, if it was.
    pub(crate) lost: Option<String>,
}
