//! What the tests stand on: a simulated world for the library code ([`sim`]),
//! and real filesystems and real processes for the command ([`live`]).
//!
//! **Responsibility.** To play the world so that a test can choose what happens
//! in it, and to leave nothing of it behind.
//!
//! **Must not know.** `jvs-lock` and everything above it: the kit plays the
//! world, not the protocol.
//!
//! # Limitations
//! Linux only. What needs root, FUSE or JuiceFS is skipped aloud where they are
//! missing, and fails in CI ([`live::capability`]).

pub mod live;
pub mod sim;
