//! Why a session says no to itself: each with its code, a sentence and the next
//! command to run.

use std::fmt;

use jvs_repo::code::{Code, Coded};
use jvs_repo::id::FencingToken;
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use serde_json::json;

use super::stake::{Stake, StakeKind};

/// A command that relies on a hold, as people are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reliance {
    /// What it is.
    pub kind: StakeKind,
    /// Its process.
    pub pid: u32,
    /// Its words, if its process can be seen.
    pub command: Option<String>,
}

impl Reliance {
    /// What is known of the command that `stake` is of.
    pub fn of(stake: &Stake, command: Option<String>) -> Self {
        Reliance { kind: stake.kind, pid: stake.maker.pid, command }
    }
}

impl fmt::Display for Reliance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            StakeKind::Acquire => "an unfinished lock acquire",
            StakeKind::Shell => "jvs shell",
            StakeKind::Run => "jvs run",
            StakeKind::Work => "a command",
            StakeKind::Guard => "leftovers of a killed jvs run",
        };
        match &self.command {
            Some(words) => write!(f, "process {} ({words})", self.pid),
            None => write!(f, "process {} ({what})", self.pid),
        }
    }
}

/// What was refused because of another command of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// To run beside it.
    Run,
    /// To release the lock, or to hand it over.
    GiveBack,
    /// The same, although they were to be ended first.
    Force,
}

/// Why not.
#[derive(Debug, thiserror::Error)]
pub enum HoldRefusal {
    /// The session held it and somebody else may have written since.
    #[error("{}", taken(worktree, *token, *current, holder.as_deref()))]
    Taken {
        /// The worktree.
        worktree: WorktreeName,
        /// The token that the session remembers.
        token: FencingToken,
        /// The token now.
        current: FencingToken,
        /// Who has it, if anybody is known to.
        holder: Option<String>,
    },
    /// A command of this very session is in the way.
    #[error("{}: {}", in_the_way(worktree, *refused), listed(by))]
    Relied {
        /// The worktree.
        worktree: WorktreeName,
        /// What was refused.
        refused: Refused,
        /// Who is in the way.
        by: Vec<Reliance>,
    },
    /// The session was forgotten while this process was at it.
    #[error(
        "this session was forgotten, or its private directory removed, while this command used \
         worktree '{worktree}': what it may have locked lasts for one lease"
    )]
    Forgotten {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// Another process of the session has just opened a hold: join that one.
    #[error("another process of this session has just taken worktree '{worktree}'")]
    IsOpen {
        /// The worktree.
        worktree: WorktreeName,
    },
}

fn taken(
    worktree: &WorktreeName,
    token: FencingToken,
    current: FencingToken,
    holder: Option<&str>,
) -> String {
    if token == FencingToken(0) {
        return format!(
            "it is no longer known what this session held of worktree '{worktree}': its name in \
             the session's private directory is gone; the token is now {current}"
        );
    }
    let since = holder
        .map(|holder| format!(", and session {holder} has held it since"))
        .unwrap_or_default();
    format!(
        "this session did not hold worktree '{worktree}' throughout: it held token {token}, the \
         token is now {current}{since}"
    )
}

fn in_the_way(worktree: &WorktreeName, refused: Refused) -> String {
    match refused {
        Refused::Run => {
            format!("another command of this session has worktree '{worktree}' to itself")
        }
        Refused::Force => format!(
            "commands of this session that could not be ended from here need worktree '{worktree}'"
        ),
        Refused::GiveBack => format!("commands of this session still need worktree '{worktree}'"),
    }
}

fn listed(by: &[Reliance]) -> String {
    by.iter().map(Reliance::to_string).collect::<Vec<_>>().join(", ")
}

impl Coded for HoldRefusal {
    fn code(&self) -> Code {
        match self {
            HoldRefusal::Taken { .. } => Code::FencingMismatch,
            HoldRefusal::Forgotten { .. } => Code::SessionInvalid,
            HoldRefusal::Relied { .. } | HoldRefusal::IsOpen { .. } => Code::LockConflict,
        }
    }

    fn next(&self) -> Option<Next> {
        Some(match self {
            HoldRefusal::Taken { worktree, .. } => Next::LookAndAcquire(worktree.clone()),
            HoldRefusal::Relied { refused: Refused::Run, .. } => Next::JoinOrWait,
            HoldRefusal::Relied { worktree, refused: Refused::GiveBack, .. } => {
                Next::ReleaseByForce(worktree.clone())
            }
            HoldRefusal::Relied { refused: Refused::Force, .. } => {
                "end them where they run, such as in their container, and try again".into()
            }
            HoldRefusal::Forgotten { .. } => "run the same command again".into(),
            HoldRefusal::IsOpen { .. } => "try again".into(),
        })
    }

    fn details(&self) -> Option<serde_json::Value> {
        match self {
            HoldRefusal::Taken { worktree, token, current, holder } => Some(json!({
                "worktree": worktree,
                "held_token": token,
                "fencing_token": current,
                "session_id": holder,
            })),
            HoldRefusal::Relied { worktree, by, .. } => {
                let by: Vec<_> = by
                    .iter()
                    .map(|it| json!({ "kind": it.kind.as_str(), "pid": it.pid, "command": it.command }))
                    .collect();
                Some(json!({ "worktree": worktree, "relied_on_by": by, "reason": "SAME_SESSION" }))
            }
            HoldRefusal::IsOpen { .. } | HoldRefusal::Forgotten { .. } => None,
        }
    }
}
