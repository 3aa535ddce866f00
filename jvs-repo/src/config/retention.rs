//! What garbage collection keeps beyond what heads and tags need.

use crate::duration::Period;

/// A snapshot is kept if either rule keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The newest so many of each worktree.
    pub keep_last: u64,
    /// Those younger than this.
    pub keep_within: Period,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { keep_last: 10, keep_within: Period::days(30) }
    }
}
