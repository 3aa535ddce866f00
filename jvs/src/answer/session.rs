//! What is told of sessions.

use jvs_repo::id::{Epoch, FencingToken, HolderNonce};
use jvs_repo::name::WorktreeName;
use serde::Serialize;

use super::lock::KeeperSeen;
use super::{Base64, Time};

/// A session, and what it holds.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SessionTold {
    /// Its id.
    pub(crate) session_id: String,
    /// Which rule chose it: `option`, `variable`, `agent`, `terminal` or `leader`.
    pub(crate) known_by: &'static str,
    /// The variables that say so.
    pub(crate) variables: Vec<&'static str>,
    /// Will the next command be of the same session?
    pub(crate) lasts: bool,
    /// Its public nonce on this boot; `null` if it never locked anything here.
    pub(crate) holder_nonce: Option<HolderNonce>,
    /// Its user, as it says.
    pub(crate) user: Option<String>,
    /// Its user to the kernel.
    pub(crate) uid: Option<u32>,
    /// Its host.
    pub(crate) host: Option<String>,
    /// The boot of that host.
    pub(crate) boot_id: Option<String>,
    /// Its terminal, such as `pts/3`.
    pub(crate) terminal: Option<String>,
    /// The agent or CI system that it runs under.
    pub(crate) agent: Option<String>,
    /// Where its secret is.
    pub(crate) private_dir: Option<String>,
    /// Which of these anybody may claim.
    pub(crate) self_declared: Option<[&'static str; 4]>,
    /// What it holds, or held and was not told to have lost.
    pub(crate) holds: Vec<HoldTold>,
    /// What it was not told yet.
    pub(crate) notes: Vec<NoteTold>,
    /// The bytes of `private_dir`, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) private_dir_bytes: Option<Base64>,
}

/// A hold of a session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HoldTold {
    /// Where the repository was when that was last written down.
    pub(crate) repository: Option<String>,
    /// Its id.
    pub(crate) repository_id: String,
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// The fencing token.
    pub(crate) fencing_token: FencingToken,
    /// Life of the register that the token belongs to.
    pub(crate) epoch: Epoch,
    /// What the session last knew of it: `open`, `ending`, `released` or `lost`.
    pub(crate) state: &'static str,
    /// What the register says; `null` if it cannot be asked.
    pub(crate) held: Option<bool>,
    /// Until when it is kept at the latest.
    pub(crate) kept_until: Option<String>,
    /// What it rests on, as far as that is alive.
    pub(crate) stakes: Vec<StakeSeen>,
    /// Who keeps it renewed.
    pub(crate) keeper: Option<KeeperSeen>,
    /// The token under which it was lost, if nobody said to know.
    pub(crate) taken_token: Option<FencingToken>,
    /// Why the register cannot be asked.
    pub(crate) problem: Option<String>,
}

/// What a hold rests on.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StakeSeen {
    /// What it is: `acquire`, `shell`, `run`, `guard` or `work`.
    pub(crate) kind: &'static str,
    /// Its process.
    pub(crate) pid: u32,
    /// The words of that process, if it can be seen.
    pub(crate) command: Option<String>,
    /// Does it want to be alone?
    pub(crate) exclusive: bool,
    /// Was it reported to whoever asked for it?
    pub(crate) answered: bool,
    /// Since when.
    pub(crate) since: Option<Time>,
    /// Until when at the latest.
    pub(crate) until: Option<Time>,
    /// The process that it ends with.
    pub(crate) with: Option<EndsWith>,
}

/// A process that something ends with.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EndsWith {
    /// Process id.
    pub(crate) pid: u32,
}

/// Something that a session was not told yet.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NoteTold {
    /// In which repository.
    pub(crate) repository_id: String,
    /// What there is to tell.
    pub(crate) text: String,
}

/// All sessions of this user on this host.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SessionList {
    /// Those that do something first, then the last seen.
    pub(crate) sessions: Vec<ListedSession>,
    /// Where their secrets are.
    pub(crate) private_dir: Option<String>,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) private_dir_bytes: Option<Base64>,
}

/// A session in a list.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ListedSession {
    /// Its id, if that is known.
    pub(crate) session_id: Option<String>,
    /// What the names of its files begin with.
    pub(crate) file: String,
    /// Is it the one that asks?
    pub(crate) mine: bool,
    /// Its public nonce on this boot.
    pub(crate) holder_nonce: Option<HolderNonce>,
    /// Is its terminal open? `null` if it has none, or that cannot be seen.
    pub(crate) terminal_open: Option<bool>,
    /// When one of its files was last changed.
    pub(crate) last_seen_at: Time,
    /// What it holds, or held and was not told to have lost.
    pub(crate) holds: Vec<HoldTold>,
    /// What it was not told yet.
    pub(crate) notes: Vec<NoteTold>,
}

/// A session whose files were removed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ForgottenSession {
    /// Its id.
    pub(crate) session_id: String,
    /// How many holds it had known.
    pub(crate) holds: usize,
    /// What was taken from it, and nobody said to know.
    pub(crate) forgotten_losses: Vec<HoldTold>,
    /// What it was never told.
    pub(crate) notes: Vec<NoteTold>,
}
