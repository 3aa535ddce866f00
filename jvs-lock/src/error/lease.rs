//! Why what a lease allows could not be done.

use std::fmt;

use jvs_repo::code::{Code, Layer, Layered};
use jvs_repo::id::{FencingToken, SnapshotId};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use serde_json::json;

use super::register::RegisterError;
use super::take::{WasRemoved, view_details};
use crate::span::Span;
use crate::view::{StatusWord, View};

/// Why what a lease allows, or the right to commit, could not be done: it is lost or over.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The register, whatever was wanted of it.
    #[error(transparent)]
    Register(RegisterError),
    /// This session does not hold it.
    #[error("{}", not_held(view))]
    NotHeld {
        /// What was seen.
        view: Box<View>,
    },
    /// This session's hold was taken over.
    #[error("{}", taken_over(worktree, *token, *current))]
    Fenced {
        /// The worktree.
        worktree: WorktreeName,
        /// The token that this session held.
        token: FencingToken,
        /// The token now.
        current: FencingToken,
    },
    /// The lease ran out before it was renewed.
    #[error("the lease of worktree '{worktree}' (token {token}) ran out {} ago", Span(*since_ms))]
    Expired {
        /// The worktree.
        worktree: WorktreeName,
        /// The token of the hold.
        token: FencingToken,
        /// How long ago, on this host's boot-time clock.
        since_ms: u64,
    },
    /// The worktree, which many wrote to and nobody held, was removed.
    #[error(transparent)]
    Retired(#[from] WasRemoved),
}

/// How a hold was lost. The token is still the same where nobody has taken the lock, and
/// what said that this session has it is gone.
fn taken_over(worktree: &WorktreeName, token: FencingToken, current: FencingToken) -> String {
    if token == current {
        return format!(
            "it is no longer known that this session holds the lock of worktree '{worktree}' with \
             token {token}: nothing in its private directory says so"
        );
    }
    format!(
        "the lock of worktree '{worktree}' was taken over: this session held token {token}, the \
         token is now {current}"
    )
}

/// Who has what this session does not.
fn not_held(view: &View) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        write!(f, "this session does not hold the lock of worktree '{}': ", view.worktree)?;
        match (view.word(), view.record()) {
            (StatusWord::Free, _) => write!(f, "it is free"),
            (StatusWord::Frozen, Some(_)) => write!(f, "it was frozen by {}", view.holder().who()),
            (_, Some(_)) => write!(f, "it is held by {}", view.holder().who()),
            (word, None) => write!(f, "it is {}", word.as_str()),
        }
    })
}

impl Layered for LeaseError {
    fn layer(&self) -> Layer<'_> {
        Layer::Own(match self {
            LeaseError::Register(error) => return Layer::Below(error),
            LeaseError::Retired(error) => return Layer::Below(error),
            LeaseError::NotHeld { .. } => Code::LockNotHeld,
            LeaseError::Fenced { .. } => Code::FencingMismatch,
            LeaseError::Expired { .. } => Code::LockExpired,
        })
    }

    fn own_next(&self) -> Option<Next> {
        Some(match self {
            LeaseError::Register(_) | LeaseError::Retired(_) => return None,
            LeaseError::NotHeld { view } => {
                // What another one has is not to be had by asking.
                let next = match view.word() {
                    StatusWord::Held | StatusWord::Frozen => Next::Why(view.worktree.clone()),
                    _ => Next::Acquire(view.worktree.clone()),
                };
                view.holder().advice().unwrap_or(next)
            }
            LeaseError::Fenced { worktree, .. } => Next::StopWriting(worktree.clone()),
            LeaseError::Expired { worktree, .. } => Next::AcquireAgain(worktree.clone()),
        })
    }

    fn own_details(&self) -> Option<serde_json::Value> {
        match self {
            LeaseError::Register(_) | LeaseError::Retired(_) => None,
            LeaseError::NotHeld { view } => Some(view_details(view)),
            LeaseError::Fenced { token, current, .. } => {
                Some(json!({"fencing_token": token, "current_token": current}))
            }
            LeaseError::Expired { token, since_ms, .. } => {
                Some(json!({"fencing_token": token, "expired_since_ms": since_ms}))
            }
        }
    }
}

/// Why nothing was committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The right to commit is lost.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The head is not the parent that a commit was built on.
    #[error("{}", moved_head(worktree, *current))]
    HeadMoved {
        /// The worktree.
        worktree: WorktreeName,
        /// The head now.
        current: Option<SnapshotId>,
    },
}

fn moved_head(worktree: &WorktreeName, current: Option<SnapshotId>) -> String {
    match current {
        Some(head) => format!("the head of worktree '{worktree}' is now {head}"),
        None => format!("worktree '{worktree}' has no head"),
    }
}

impl Layered for CommitError {
    fn layer(&self) -> Layer<'_> {
        match self {
            CommitError::Lease(error) => Layer::Below(error),
            CommitError::HeadMoved { .. } => Layer::Own(Code::FencingMismatch),
        }
    }

    fn own_next(&self) -> Option<Next> {
        Some("take the snapshot again on top of the new head".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_nobody_else_took_is_not_said_to_be_taken_over() {
        let lost =
            |current| taken_over(&WorktreeName::main(), FencingToken(1), FencingToken(current));
        assert!(lost(2).contains("was taken over: this session held token 1, the token is now 2"));
        assert!(!lost(1).contains("taken over"), "{}", lost(1));
    }
}
