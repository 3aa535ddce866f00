//! What the tests stand on: a simulated world for the library code ([`sim`]),
//! and real filesystems and real processes for the command ([`live`]).
//!
//! **Must not know.** `jvs-lock` and everything above it: the kit plays the
//! world, not the protocol.

pub mod live;
pub mod sim;
