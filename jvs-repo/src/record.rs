//! The shapes of the control files that describe the repository itself, one
//! module a shape. Records of locks and snapshots belong to the crates that
//! give them meaning; all of them are read through [`crate::json`].

pub mod format;
pub mod rfc3339;
pub mod seal;
pub mod worktree;
