//! Whole snapshots of real files: taken, compared, verified, restored.

mod comparing;
mod ignoring;
mod restoring;
mod taking;
mod verifying;
