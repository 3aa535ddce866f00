//! One hold, many processes: what the processes of a session agree on.
//!
//! A *hold* is (epoch, token) of a worktree in a session on one host. A *stake* is
//! one reason to go on holding: a terminal, a time, a running command. Stakes are
//! files in the session's private directory; beside them one empty file whose name
//! is the hold ([`HoldName`]), moved only by a rename from the name that was looked
//! at. There is no lock, and nobody waits for another process of the session: it
//! may be stopped.
//!
//! **Must not know.** Where the private directory is, and what a keeper is.
//! A process that is told that it holds was told by the register: the names here only say
//! who must be asked before the lock is released.

pub mod admit;
mod claim;
mod end;
mod enter;
mod files;
mod give_back;
mod handed;
pub mod idle;
pub mod memory;
mod name;
mod past;
pub mod refusal;
mod retire;
pub mod rule;
#[cfg(feature = "mutations")]
mod sabotage;
mod stake;
mod ties;
mod whereabouts;
pub mod whom;

pub use end::{Cause, Ending};
pub use enter::{Ask, Entered, HandedTerm};
pub use files::{Holds, ProcessLookup, Scan};
pub use give_back::LeaveOutcome;
pub use name::{HoldName, HoldState};
pub use refusal::{EnterError, GiveBackError, HoldError, HoldRefusal, Refused, Reliance, Relied};
pub use retire::HeldBefore;
pub use stake::{Sight, Stake, StakeEnd, StakeKind, Viewpoint, Who};
pub use ties::{NoTies, OwnTies, Ties};
