//! What a worktree looked like: capturing, publishing and restoring it.
//!
//! **Responsibility.** Which files a snapshot has and what they hash to, how an
//! engine copies or clones them, and the one step that makes a snapshot visible.
//! That step needs a live lease of `jvs-lock`.
//!
//! **Must not know.** How a lock is decided, what a doctor may remove, the
//! terminal, the environment.
//!
//! # Limitations
//! Access times and file flags (`chattr`) are not part of a snapshot.

pub mod hash;
pub mod manifest;
