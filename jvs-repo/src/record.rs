//! What is on disk, one module per shape: what a file says, its bytes, and a strict
//! reader of them that says what is wrong. What it means, the crates know that use it.

pub mod audit;
pub mod descriptor;
pub mod format;
pub mod ignore_rules;
pub mod keeper;
pub mod ledger;
pub mod lock;
pub mod patch;
pub mod probe;
pub mod ready;
pub mod rfc3339;
pub mod seal;
pub mod tag;
pub mod takeover;
mod version;
pub mod worktree;
