//! Why a session says no to itself: each with its code, a sentence and the next
//! command to run.

use std::fmt;
use std::io;

use jvs_repo::code::{Code, Coded, Layer, Layered, code_of_io};
use jvs_repo::id::FencingToken;
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use serde_json::json;

use super::stake::{Stake, StakeKind};
use crate::error::{BadLease, LeaseError, OfRegister, RegisterError, next_after_io};

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

/// Why the files of a hold in the session's private directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The filesystem failed or refused.
    #[error(
        "cannot use the session's private directory for the hold of worktree '{worktree}': {source}"
    )]
    Io {
        /// The worktree.
        worktree: WorktreeName,
        /// The system's answer.
        source: io::Error,
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
}

impl Coded for HoldError {
    fn code(&self) -> Code {
        match self {
            HoldError::Io { source, .. } => code_of_io(source),
            HoldError::Forgotten { .. } => Code::SessionInvalid,
        }
    }

    fn next(&self) -> Option<Next> {
        Some(match self {
            HoldError::Io { source, .. } => next_after_io(source),
            HoldError::Forgotten { .. } => "run the same command again".into(),
        })
    }
}

/// Commands of this very session are in the way.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", in_the_way(worktree, *refused), listed(by))]
pub struct Relied {
    /// The worktree.
    pub worktree: WorktreeName,
    /// What was refused.
    pub refused: Refused,
    /// Who is in the way.
    pub by: Vec<Reliance>,
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

impl Coded for Relied {
    fn code(&self) -> Code {
        Code::LockConflict
    }

    fn next(&self) -> Option<Next> {
        Some(match self.refused {
            Refused::Run => Next::JoinOrWait,
            Refused::GiveBack => Next::ReleaseByForce(self.worktree.clone()),
            Refused::Force => {
                "end them where they run, such as in their container, and try again".into()
            }
        })
    }

    fn details(&self) -> Option<serde_json::Value> {
        let by = self.by.iter();
        let by: Vec<_> = by
            .map(|it| json!({ "kind": it.kind.as_str(), "pid": it.pid, "command": it.command }))
            .collect();
        Some(json!({ "worktree": self.worktree, "relied_on_by": by, "reason": "SAME_SESSION" }))
    }
}

/// Why a process does not come into the hold of its own session.
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
    /// Another process of the session has just opened a hold: join that one.
    #[error("another process of this session has just taken worktree '{worktree}'")]
    IsOpen {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// A run has it to itself.
    #[error(transparent)]
    Relied(#[from] Relied),
    /// Its files could not be used.
    #[error(transparent)]
    Files(#[from] HoldError),
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

impl Layered for HoldRefusal {
    fn layer(&self) -> Layer<'_> {
        match self {
            HoldRefusal::Taken { .. } => Layer::Own(Code::FencingMismatch),
            HoldRefusal::IsOpen { .. } => Layer::Own(Code::LockConflict),
            HoldRefusal::Relied(error) => Layer::Below(error),
            HoldRefusal::Files(error) => Layer::Below(error),
        }
    }

    fn own_next(&self) -> Option<Next> {
        match self {
            HoldRefusal::Taken { worktree, .. } => Some(Next::LookAndAcquire(worktree.clone())),
            HoldRefusal::IsOpen { .. } => Some("try again".into()),
            HoldRefusal::Relied(_) | HoldRefusal::Files(_) => None,
        }
    }

    fn own_details(&self) -> Option<serde_json::Value> {
        match self {
            HoldRefusal::Taken { worktree, token, current, holder } => Some(json!({
                "worktree": worktree,
                "held_token": token,
                "fencing_token": current,
                "session_id": holder,
            })),
            _ => None,
        }
    }
}

/// Why a process did not come into its session's hold; `E` is why the lock could not be
/// taken for it.
#[derive(Debug, thiserror::Error)]
pub enum EnterError<E> {
    /// The session has none, and the lock could not be taken.
    #[error(transparent)]
    Take(E),
    /// What the session held, or was handed down, is lost.
    #[error(transparent)]
    Lost(#[from] LeaseError),
    /// The session says no to itself.
    #[error(transparent)]
    Refused(#[from] HoldRefusal),
    /// What was asked for cannot be.
    #[error(transparent)]
    Lease(#[from] BadLease),
}

impl<E> From<RegisterError> for EnterError<E> {
    fn from(error: RegisterError) -> Self {
        EnterError::Lost(error.into())
    }
}

impl<E> From<HoldError> for EnterError<E> {
    fn from(error: HoldError) -> Self {
        EnterError::Refused(error.into())
    }
}

impl<E: OfRegister> OfRegister for EnterError<E> {
    fn of_register(&self) -> Option<&RegisterError> {
        match self {
            EnterError::Take(error) => error.of_register(),
            EnterError::Lost(error) => error.of_register(),
            EnterError::Refused(_) | EnterError::Lease(_) => None,
        }
    }
}

impl<E: Coded + 'static> Layered for EnterError<E> {
    fn layer(&self) -> Layer<'_> {
        Layer::Below(match self {
            EnterError::Take(error) => error,
            EnterError::Lost(error) => error,
            EnterError::Refused(refusal) => refusal,
            EnterError::Lease(error) => error,
        })
    }
}

/// Why a lock was not given back or handed over.
#[derive(Debug, thiserror::Error)]
pub enum GiveBackError {
    /// It is lost, or the register failed.
    #[error(transparent)]
    Lost(#[from] LeaseError),
    /// Commands of the session rely on it.
    #[error(transparent)]
    Relied(#[from] Relied),
    /// The hold's files could not be used.
    #[error(transparent)]
    Files(#[from] HoldError),
}

impl From<RegisterError> for GiveBackError {
    fn from(error: RegisterError) -> Self {
        GiveBackError::Lost(error.into())
    }
}

impl Layered for GiveBackError {
    fn layer(&self) -> Layer<'_> {
        Layer::Below(match self {
            GiveBackError::Lost(error) => error,
            GiveBackError::Relied(error) => error,
            GiveBackError::Files(error) => error,
        })
    }
}
