//! The lock on a real directory: what each operation leaves on disk.

mod leases;
mod worktrees;
mod world;
