//! Snapshots through the real command, on real filesystems, with real deaths.
#![allow(clippy::disallowed_methods, reason = "plays the user, who has real files")]

mod deaths;
mod two_hosts;
mod user;
