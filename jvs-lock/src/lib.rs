//! One writer a worktree: the fence register, leases on it, and the events they
//! leave behind.
//!
//! **Responsibility.** Who may write, decided by one rename; when a lease ends
//! and when it may be taken; what an ambiguous answer of the filesystem means.
//!
//! **Must not know.** How a snapshot is captured, where a session's secret is
//! kept, the terminal, the environment. It sees the world through [`Seams`].
//!
//! # Limitations
//! The register fences what goes through it. No lock on a filesystem can stop a
//! paused process from finishing a `write(2)` into the worktree after it lost
//! its lease. Two sessions can *believe* at once when clocks are further apart
//! than the policy allows; they can never both commit.

mod backoff;
pub mod belief;
pub mod birth;
pub mod decide;
mod drive;
pub mod error;
pub mod history;
pub mod judge;
pub mod lease;
pub mod liveness;
pub mod locks;
pub mod mutation;
pub mod record;
pub mod register;
pub mod seams;
pub mod session;
pub mod span;
pub mod state;
pub mod view;

pub use belief::Belief;
pub use drive::Journal;
pub use error::{BirthError, LockError};
pub use lease::{Fence, How, Lease, ReleaseError, Ticket};
pub use locks::{Locks, Want};
pub use seams::Seams;
pub use session::{Identity, Secret, Session, SessionId};
pub use state::{Hold, State};
pub use view::{View, Word};
