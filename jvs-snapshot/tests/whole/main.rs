//! Whole snapshots of real files: taken, compared, verified, restored.
#![allow(clippy::disallowed_methods, reason = "plays the user, who has real files")]

mod comparing;
mod restoring;
mod taking;
mod verifying;
