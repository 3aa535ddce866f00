//! Whole snapshots of real files: taken, compared, verified, restored.

mod comparing;
mod restoring;
mod taking;
mod verifying;
