//! The lock on a real directory: what each operation leaves on disk.

mod counting;
mod deadlock;
mod handing_over;
mod leases;
mod waiting;
mod worktrees;
mod world;
