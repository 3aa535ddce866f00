//! Snapshots through the real command, on real filesystems, with real deaths.
#![allow(clippy::print_stderr, reason = "how often somebody died is worth seeing")]

mod again;
mod believing;
mod crashes;
mod deaths;
mod deep;
mod degraded;
mod full;
mod garbage;
mod hidden_options;
mod immovable;
mod in_bulk;
mod inside;
mod paths;
mod places;
mod quotas;
mod strikes;
mod thefts;
mod two_hosts;
mod undo;
mod unshown;
mod user;
mod worktrees;
