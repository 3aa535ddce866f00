//! Repositories for tests, and who works in them: in the kit's simulated world
//! ([`sim`]) and on real filesystems ([`live`]).
//!
//! **Responsibility.** One place that makes a repository ([`repository`]) and those
//! who speak for a session in it ([`session`]), one that stands in for payload trees,
//! and what must be true of a repository whatever happened to it.
//!
//! **Must not know.** Which rules can be switched off: the protocol tests are built
//! with the switches, the command's tests without, and both stand on this.
//!
//! # Limitations
//! For tests in directories of their own and for benches. The tests beside the code of
//! a crate that this crate knows would meet a second build of their own types.

pub mod any_error;
pub mod commands;
pub mod live;
pub mod repository;
pub mod session;
pub mod sim;
