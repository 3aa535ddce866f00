//! Why a lock could not be acquired, reclaimed, frozen, or a freeze lifted.

use jvs_repo::code::{Code, Coded, Layer, Layered};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use serde_json::json;

use super::lease::LeaseError;
use super::register::{OfRegister, RegisterError};
use super::take::{TakeOverError, conflict, next_in_conflict, view_details};
use crate::hold::HoldRefusal;
use crate::policy::Act;
use crate::reclaim::WhyNot;
use crate::view::View;

/// A lease that no lock can have.
#[derive(Debug, thiserror::Error)]
#[error("a lease lasts from 1 ms to 366 days")]
pub struct BadLease;

impl Coded for BadLease {
    fn code(&self) -> Code {
        Code::Usage
    }

    fn next(&self) -> Option<Next> {
        Some(Next::ReadHelpOfLocks)
    }
}

/// Why a lock could not be acquired.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// Whoever has it is in the way.
    #[error(transparent)]
    Take(#[from] TakeOverError),
    /// What was asked for cannot be.
    #[error(transparent)]
    Lease(#[from] BadLease),
    /// The gate that the wish came with: the session says no to itself.
    #[error(transparent)]
    Gate(#[from] Box<HoldRefusal>),
}

impl TryFrom<AcquireError> for TakeOverError {
    type Error = AcquireError;

    fn try_from(error: AcquireError) -> Result<Self, AcquireError> {
        match error {
            AcquireError::Take(error) => Ok(error),
            error => Err(error),
        }
    }
}

impl Layered for AcquireError {
    fn layer(&self) -> Layer<'_> {
        Layer::Below(match self {
            AcquireError::Take(error) => error,
            AcquireError::Lease(error) => error,
            AcquireError::Gate(refusal) => &**refusal,
        })
    }
}

/// Why a lock could not be reclaimed.
#[derive(Debug, thiserror::Error)]
pub enum ReclaimError {
    /// It could not be acquired either, for another reason than a live holder.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The policy does not allow it.
    #[error(transparent)]
    NotOverruled(#[from] NotOverruled),
}

impl Layered for ReclaimError {
    fn layer(&self) -> Layer<'_> {
        Layer::Below(match self {
            ReclaimError::Acquire(error) => error,
            ReclaimError::NotOverruled(error) => error,
        })
    }
}

/// A live holder, and no rule that allows to overrule it.
#[derive(Debug, thiserror::Error)]
#[error("{}; {}: {why_not}", conflict(view), cannot(*act))]
pub struct NotOverruled {
    /// What was seen.
    pub view: Box<View>,
    /// What was asked for.
    pub act: Act,
    /// Which rules there are and why none applies.
    pub why_not: WhyNot,
}

fn cannot(act: Act) -> &'static str {
    match act {
        Act::FreezeByForce => "it cannot be frozen by force",
        _ => "it cannot be reclaimed",
    }
}

impl Coded for NotOverruled {
    fn code(&self) -> Code {
        Code::LockConflict
    }

    fn next(&self) -> Option<Next> {
        let next = next_in_conflict(&self.view);
        Some(match self.why_not.off.as_slice() {
            [] => next,
            _ => next.or(Next::AllowReclaim),
        })
    }

    fn details(&self) -> Option<serde_json::Value> {
        let mut details = view_details(&self.view);
        details["reason"] = json!("LOCK_HELD");
        details["priority"] = json!("low");
        details["why_not"] = json!(self.why_not.to_string());
        Some(details)
    }
}

/// The repository names who may, and this user is not among them.
#[derive(Debug, thiserror::Error)]
#[error(
    "worktree '{worktree}': only those named in policy.admins ({admins}) may {doing}, and {} \
     not one of them",
    who(*uid)
)]
pub struct NotAdmin {
    /// The worktree.
    pub worktree: WorktreeName,
    /// What was asked for.
    pub doing: &'static str,
    /// Those who may.
    pub admins: String,
    /// Who asked.
    pub uid: Option<u32>,
}

fn who(uid: Option<u32>) -> String {
    match uid {
        Some(uid) => format!("user {uid} is"),
        None => "a user whose id is not known outside of its namespace is".to_owned(),
    }
}

impl Coded for NotAdmin {
    fn code(&self) -> Code {
        Code::Permission
    }

    fn next(&self) -> Option<Next> {
        Some(Next::AskAdmin)
    }

    fn details(&self) -> Option<serde_json::Value> {
        let NotAdmin { worktree, admins, uid, .. } = self;
        Some(json!({"worktree": worktree, "admins": admins, "uid": uid}))
    }
}

/// Why commands of one's own session may not be ended by force.
#[derive(Debug, thiserror::Error)]
pub enum ForceError {
    /// The register, whatever was wanted of it.
    #[error(transparent)]
    Register(RegisterError),
    /// Only some may.
    #[error(transparent)]
    NotAdmin(#[from] NotAdmin),
}

impl Layered for ForceError {
    fn layer(&self) -> Layer<'_> {
        Layer::Below(match self {
            ForceError::Register(error) => error,
            ForceError::NotAdmin(error) => error,
        })
    }
}

/// Why a worktree could not be frozen.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// Whoever has it is in the way.
    #[error(transparent)]
    Take(#[from] TakeOverError),
    /// The hold that was to become a freeze is lost.
    #[error(transparent)]
    Lost(#[from] LeaseError),
    /// It cannot last that long.
    #[error(transparent)]
    Lease(#[from] BadLease),
    /// The policy does not allow to overrule its holder.
    #[error(transparent)]
    NotOverruled(#[from] NotOverruled),
    /// Only some may freeze over a freeze.
    #[error(transparent)]
    NotAdmin(#[from] NotAdmin),
}

impl TryFrom<FreezeError> for TakeOverError {
    type Error = FreezeError;

    fn try_from(error: FreezeError) -> Result<Self, FreezeError> {
        match error {
            FreezeError::Take(error) => Ok(error),
            error => Err(error),
        }
    }
}

impl OfRegister for FreezeError {
    fn of_register(&self) -> Option<&RegisterError> {
        match self {
            FreezeError::Take(error) => error.of_register(),
            FreezeError::Lost(error) => error.of_register(),
            FreezeError::Lease(_) | FreezeError::NotOverruled(_) | FreezeError::NotAdmin(_) => None,
        }
    }
}

impl From<RegisterError> for FreezeError {
    fn from(error: RegisterError) -> Self {
        FreezeError::Take(error.into())
    }
}

impl Layered for FreezeError {
    fn layer(&self) -> Layer<'_> {
        Layer::Below(match self {
            FreezeError::Take(error) => error,
            FreezeError::Lost(error) => error,
            FreezeError::Lease(error) => error,
            FreezeError::NotOverruled(error) => error,
            FreezeError::NotAdmin(error) => error,
        })
    }
}

/// Why a freeze could not be lifted.
#[derive(Debug, thiserror::Error)]
pub enum UnfreezeError {
    /// It is not over yet.
    #[error(transparent)]
    Take(#[from] TakeOverError),
    /// There is no freeze to lift.
    #[error("worktree '{worktree}' is not frozen")]
    NotFrozen {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// Only some may lift it.
    #[error(transparent)]
    NotAdmin(#[from] NotAdmin),
}

impl Layered for UnfreezeError {
    fn layer(&self) -> Layer<'_> {
        match self {
            UnfreezeError::Take(error) => Layer::Below(error),
            UnfreezeError::NotAdmin(error) => Layer::Below(error),
            UnfreezeError::NotFrozen { .. } => Layer::Own(Code::LockNotHeld),
        }
    }

    fn own_next(&self) -> Option<Next> {
        match self {
            UnfreezeError::Take(_) | UnfreezeError::NotAdmin(_) => None,
            UnfreezeError::NotFrozen { worktree } => Some(Next::Status(worktree.clone())),
        }
    }
}
