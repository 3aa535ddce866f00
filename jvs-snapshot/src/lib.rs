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

mod aside;
mod capture_error;
pub mod catalog;
pub mod chosen;
pub mod compare;
pub mod diff;
pub mod engine;
pub mod error;
pub mod fidelity;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod garbage;
pub mod gc;
mod ground;
pub mod hash;
pub mod ignore;
pub mod imprint;
pub mod line;
pub mod lineage;
pub mod look;
pub mod manifest;
mod mount_counters;
pub mod mutation;
mod nobody_else;
mod observe;
mod open_dirs;
mod plan;
pub mod progress;
pub mod publish;
pub mod quiesce;
pub mod ready;
pub mod restore;
#[cfg(feature = "mutations")]
mod sabotage;
pub mod select;
pub mod short;
mod shown;
pub mod stage;
pub mod stored;
pub mod tags;
pub mod take;
pub mod tombstones;
pub mod tree;
pub mod trees;
mod under_lease;
pub mod verify;
pub mod walk;
mod workers;
mod writeback;
mod written_out;

pub use catalog::Catalog;
pub use error::SnapshotError;
pub use jvs_repo::layout::staging as staging_name;
pub use jvs_repo::record::descriptor::{self, Descriptor};
pub use publish::{Draft, PublishError, Snapshots, Staged};
pub use ready::Ready;
pub use shown::show_head;
pub use under_lease::renewed_every_ms;
