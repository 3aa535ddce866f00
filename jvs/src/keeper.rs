//! The small process that keeps a lease renewed after the command that took it
//! has ended, or while `jvs run` runs its child.
//!
//! Two threads. One does all I/O on the repository and may hang in a dead
//! mount; the other only waits (for the clock, for signals, for whoever it
//! keeps the lease for) and so can always end belief in time.

mod ends;
mod hands;
mod heart;
mod identity;
mod kept;
mod note;
mod pace;
mod start;
mod voice;
mod wire;

pub(crate) use ends::Ends;
pub(crate) use heart::run;
pub(crate) use identity::{Identity, running};
pub(crate) use kept::kept;
pub(crate) use note::{take as take_note, waiting as notes_waiting};
pub(crate) use pace::Pace;
pub(crate) use start::{Attached, Found, Order, Started, ensure, find, follow, start};
pub(crate) use wire::{Lines, Said, Tell, say};

/// The word by which a keeper is started. Nobody types it.
pub(crate) const COMMAND: &str = "__keeper";
