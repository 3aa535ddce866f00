//! How worktrees come, move and go, each with its register.
//!
//! A worktree is a record, a directory of files and a register, which three calls
//! put in place, and many may be at one name at once. Who may is decided in one
//! place, the register, by the same CAS as everything else:
//!
//! 1. An operation writes its *note*: the record that is to be, under a name that
//!    carries the operation's nonce.
//! 2. It *reserves* the name: a register's epoch of its own, which nobody else began.
//!    Nothing else is touched, so a process that comes may take a reservation over, by
//!    beginning the next epoch from that very state.
//! 3. It *confirms* the reservation by a CAS within that epoch. From then on the name
//!    is its own, and it alone (or the process that ends what it began) moves files there.
//! 4. Its note becomes the record, by an exclusive rename: the worktree is there.
//!
//! A register is never moved nor made again. What is removed or renamed away is
//! *retired* by CAS and stays in place, so that a name that is used again goes on
//! above its old token, however often. Its head is made visible before: the next epoch
//! knows nothing of it.

mod create;
mod error;
mod head;
mod note;
mod remove;
mod rename;
mod reserve;
#[cfg(feature = "mutations")]
mod sabotage;
pub mod unfinished;

pub use create::{Base, Begun, begin_from, create};
pub use error::WorktreeError;
pub(crate) use note::has_record;
pub use remove::{Removed, remove};
pub use rename::rename;
