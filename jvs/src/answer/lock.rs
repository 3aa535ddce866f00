//! What is told of locks.

use jvs_lock::LeaseOrigin;
use jvs_lock::holder::HolderKnown;
use jvs_lock::judge::{Evidence, Method};
use jvs_lock::legacy::Legacy;
use jvs_lock::liveness::Liveness;
use jvs_lock::reclaim::Decision;
use jvs_lock::record::Record;
use jvs_lock::view::StatusWord;
use jvs_repo::id::{FencingToken, HolderNonce, SnapshotId};
use jvs_repo::name::WorktreeName;
use serde::Serialize;

use super::{Time, Unreadable};

/// A lock that this session has now.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HeldLock {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// How the lock stands.
    pub(crate) state: StatusWord,
    /// Is it this session's?
    pub(crate) mine: bool,
    /// Until the lease ends, if nobody renews it.
    pub(crate) remaining_ms: u64,
    /// The newest snapshot of the worktree.
    pub(crate) head: Option<SnapshotId>,
    /// How the session came to it.
    pub(crate) how: LeaseOrigin,
    /// The fencing token: whoever shows a lower one is refused.
    pub(crate) fencing_token: FencingToken,
    /// The record of the lock, if it could be written.
    pub(crate) record: Option<Record>,
    /// Until when it is kept renewed, or lasts by itself.
    pub(crate) kept_until: Option<String>,
    /// For how long the lock of somebody else was watched before it was taken.
    pub(crate) watched_ms: u64,
    /// By which rule a live holder was overruled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reclaim: Option<Decision>,
    /// What observers see of the holder, if the lock is kept by a keeper.
    #[serde(flatten)]
    pub(crate) holder: Option<HolderKnown>,
    /// The keeper that was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keeper: Option<KeeperSeen>,
}

/// The process that renews a lock.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct KeeperSeen {
    /// Process id, in its own PID namespace.
    pub(crate) pid: u32,
    /// Does it run? `null` if that cannot be seen from here.
    pub(crate) alive: Option<bool>,
}

/// What one look tells.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Seen {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// How the lock stands.
    pub(crate) state: StatusWord,
    /// Is it this session's?
    pub(crate) mine: bool,
    /// Until the lease ends, if nobody renews it; `null` if it never does.
    pub(crate) remaining_ms: Option<u64>,
    /// The newest snapshot of the worktree.
    pub(crate) head: Option<SnapshotId>,
    /// Always `null`: a look takes nothing.
    pub(crate) how: Option<LeaseOrigin>,
    /// The fencing token of the last holder.
    pub(crate) fencing_token: FencingToken,
    /// The record of the lock, if there is one that can be read.
    pub(crate) record: Option<Record>,
    /// Until when it is kept at the latest, as its holder said.
    pub(crate) kept_until: Option<String>,
    /// What is known of the holder.
    #[serde(flatten)]
    pub(crate) holder: HolderKnown,
    /// A lock of another tool on the same worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) other_tool: Option<Legacy>,
}

/// Everything that one look tells.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Status {
    #[serde(flatten)]
    pub(crate) seen: Seen,
    /// What the lease was judged by, if somebody has one.
    pub(crate) clock: Option<JudgedBy>,
    /// Until anybody may take it, if nothing changes.
    pub(crate) stealable_in_ms: Option<u64>,
    /// Who renews it, if anybody does.
    pub(crate) keeper: Option<KeeperSeen>,
    /// The freeze, if the worktree is frozen.
    pub(crate) freeze: Option<Freeze>,
    /// Those in line for it, the next one first.
    pub(crate) waiters: Vec<WaiterSeen>,
}

/// What a lease was judged by.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct JudgedBy {
    /// The largest difference of clocks that is proven.
    pub(crate) observed_skew_ms: u64,
    /// By which clock.
    pub(crate) method: Method,
    /// What proves that difference.
    pub(crate) evidence: Vec<Evidence>,
    /// For how much longer the register must be seen unchanged before the lock is taken.
    pub(crate) watch_ms: u64,
    /// Its holder said that nobody renews it.
    pub(crate) nobody_renews: bool,
}

/// A freeze.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Freeze {
    /// When it ends by itself.
    pub(crate) expires_at: Time,
    /// Until then.
    pub(crate) remaining_ms: u64,
    /// Why, in the words of the user who did it.
    pub(crate) reason: Option<String>,
}

/// A process in line.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WaiterSeen {
    /// Its place, counted from 1.
    pub(crate) place: usize,
    /// Public nonce of its session.
    pub(crate) holder_nonce: HolderNonce,
    /// Its process id.
    pub(crate) process_id: u32,
    /// When it last said that it waits.
    pub(crate) last_sign_at: Time,
}

/// A lock in a list.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum ListedLock {
    /// It can be read.
    Lock(Box<Status>),
    /// It cannot.
    Broken(BrokenLock),
}

/// A lock that cannot be read.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BrokenLock {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// Not known.
    pub(crate) state: (),
    /// Why it cannot be read.
    pub(crate) error: Unreadable,
}

/// All locks.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct List {
    /// In the order of the worktrees' names.
    pub(crate) locks: Vec<ListedLock>,
}

/// Who holds, how that is known, and what to do next.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Why {
    #[serde(flatten)]
    pub(crate) status: Status,
    /// What is known of the holder's process.
    pub(crate) process: Option<Liveness>,
    /// How it stands, sentence by sentence.
    pub(crate) explanation: Vec<String>,
    /// How the lock can be had, the gentlest way first.
    pub(crate) ways: Vec<Way>,
    /// The command to run next.
    pub(crate) next: String,
}

/// One way to get a lock that somebody has.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Way {
    /// The command.
    pub(crate) command: String,
    /// By whom it may be run.
    pub(crate) by: String,
    /// What it costs.
    pub(crate) cost: String,
}

/// A lock that was given back.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Released {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// How the lock stands: free.
    pub(crate) state: StatusWord,
    /// Not any more.
    pub(crate) mine: bool,
    /// Nothing of the lease is left.
    pub(crate) remaining_ms: u64,
    /// The newest snapshot of the worktree.
    pub(crate) head: Option<SnapshotId>,
    /// The fencing token that it was held under.
    pub(crate) fencing_token: FencingToken,
}

/// A worktree that was frozen, or is not any more.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Frozen {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// How the lock stands: frozen, or free.
    pub(crate) state: StatusWord,
    /// Nobody holds it.
    pub(crate) mine: bool,
    /// The newest snapshot of the worktree.
    pub(crate) head: Option<SnapshotId>,
    /// The fencing token.
    pub(crate) fencing_token: FencingToken,
    /// The freeze; `null` if it was lifted.
    pub(crate) freeze: Option<Freeze>,
}

/// A lock that was handed over.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TransferredLock {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// How the lock stands: held.
    pub(crate) state: StatusWord,
    /// Not any more.
    pub(crate) mine: bool,
    /// The session that has it now; `null` if it was whoever was next in line.
    pub(crate) to: Option<String>,
    /// The newest snapshot of the worktree.
    pub(crate) head: Option<SnapshotId>,
    /// The fencing token of the new holder.
    pub(crate) fencing_token: FencingToken,
}
