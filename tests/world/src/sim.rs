//! Repositories in the simulated world of the kit.

pub mod actors;
mod content;
pub mod restoring;
mod trees;
pub mod ward;
mod world;

use jvs_kit::sim::{Ctx, Solo};
use jvs_lock::Seams;
use jvs_repo::record::worktree::Isolation;

pub use self::content::{
    about, fill, payload_file, snapshot, snapshot_on, stage, stage_on, with_history,
};
pub use self::trees::SimTrees;
pub use self::world::World;
use crate::repository::repository;
use crate::session::locks_of;

/// How long a lease is in these worlds.
pub const LEASE_MS: u64 = 30_000;
/// Longer than any lease with its margins.
pub const LONG_MS: u64 = 100_000;

/// The world as a process in it sees it.
pub fn seams(ctx: &Ctx) -> Seams<'_> {
    Seams { store: ctx.store(), clock: ctx.clock(), entropy: ctx.entropy() }
}

/// The world as whoever is alone in it sees it.
pub fn seams_of(solo: &Solo) -> Seams<'_> {
    Seams { store: solo.store(), clock: solo.clock(), entropy: solo.entropy() }
}

/// Puts a repository with worktree `main` into an empty world.
pub fn furnish(solo: &Solo) {
    repository(&locks_of(seams_of(solo), "maker"), Isolation::Exclusive);
}
