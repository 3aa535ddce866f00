//! The small process that keeps a lease renewed after the command that took it
//! has ended, or while `jvs run` runs its child.
//!
//! Two threads. The worker does all I/O on the repository and may hang in a dead mount.
//! The supervisor only waits (for the clock, for signals, for the process that it keeps
//! the lease for), so it can always stop relying on the lease in time.

mod identity;
mod kept;
mod lease_ends;
mod note;
mod notifier;
mod pace;
mod start;
mod supervisor;
pub(crate) mod wire;
mod worker;

pub(crate) use identity::{KeeperIdentity, running};
pub(crate) use kept::kept;
pub(crate) use lease_ends::LeaseEnds;
pub(crate) use note::{take as take_note, waiting as notes_waiting};
pub(crate) use pace::EndingPace;
pub(crate) use start::{
    Attached, FoundKeeper, Order, Started, Starting, ensure, find, follow, spawn, start,
};
pub(crate) use supervisor::run;
pub(crate) use wire::{KeeperMessage, MessageLines, StarterMessage, say};

/// The word by which a keeper is started. Nobody types it.
pub(crate) const COMMAND: &str = "__keeper";
