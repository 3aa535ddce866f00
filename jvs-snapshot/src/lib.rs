//! What a worktree looked like: capturing, publishing and restoring it.
//!
//! **Responsibility.** Which files a snapshot has and what they hash to, how an
//! engine copies or clones them, and the one step that makes a snapshot visible.
//! That step needs a live lease of `jvs-lock`.
//!
//! **Must not know.** How a lock is decided, what a doctor may remove, the
//! terminal, the environment.
//!
//! # How it is used
//! [`take::take`] is the whole of it: under a lease, a draft is captured out of sight, and
//! the rename that commits it is the lock's.
//!
//! ```
//! use jvs_lock::session::{Environment, Purpose};
//! use jvs_lock::{Identity, Locks, Seams, Secret, Session, Want, worktrees};
//! use jvs_repo::audit::{Alone, Log, WriterId};
//! use jvs_repo::clock::{Clock, SystemClock};
//! use jvs_repo::config::LockPolicy;
//! use jvs_repo::entropy::SystemEntropy;
//! use jvs_repo::name::WorktreeName;
//! use jvs_repo::nursery::{Adopt, Unborn};
//! use jvs_repo::record::worktree::Isolation;
//! # use jvs_repo::store::PosixStore;
//! use jvs_snapshot::Snapshots;
//! use jvs_snapshot::descriptor::About;
//! use jvs_snapshot::line::LinePlace;
//! use jvs_snapshot::progress::Silent;
//! use jvs_snapshot::stage::Options;
//! use jvs_snapshot::take::{Request, SnapshotHold, take};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let main = WorktreeName::main();
//! # let unborn = Unborn::prepare(&dir.path().join("r"), Adopt::No)?;
//! # worktrees::create(&session(unborn.store())?, &main, Isolation::Exclusive)?;
//! # let repo = unborn.finish()?;
//! let (store, payload) = (repo.store(), repo.payload(&main)?);
//! let locks = session(store)?; // as the documentation of jvs-lock shows
//! let mut lease = locks.acquire(&main, Want::lease(30_000))?;
//! let about = About {
//!     created_at: SystemClock.now().wall,
//!     note: Some("the first".into()),
//!     tags: Vec::new(),
//!     holder_id: locks.session().holder_id(),
//!     session_id: locks.session().id().as_str().into(),
//!     line: None,
//! };
//! let request =
//!     Request { source: &payload, about, options: Options::default(), place: LinePlace::Next };
//! let snapshots = Snapshots::new(locks.seams(), store);
//! let ready = take(&snapshots, &mut SnapshotHold::Lease(&mut lease), request, &Silent)?.ready;
//! lease.release().map_err(|failed| failed.error)?;
//! assert_eq!(ready.descriptor().note.as_deref(), Some("the first"));
//! # Ok(())
//! # }
//! # fn session(store: &PosixStore) -> Result<Locks<'_>, Box<dyn std::error::Error>> {
//! #     let identity = Identity {
//! #         host: "laptop".into(),
//! #         user: "ann".into(),
//! #         account: jvs_repo::proc::account(),
//! #         pid: std::process::id(),
//! #         start_time: 0,
//! #         pid_namespace: None,
//! #         boot_id: SystemClock.boot_id(),
//! #         environment: Environment::Local,
//! #         purpose: Purpose::Interactive,
//! #     };
//! #     let session = Session::new("agent-1".parse()?, &Secret([7; 32]), identity);
//! #     let log = Log::new(store, &Alone, WriterId::derive(b"agent-1", 0));
//! #     let seams = Seams { store, clock: &SystemClock, entropy: &SystemEntropy };
//! #     Ok(Locks::new(seams, session, LockPolicy::default(), log))
//! # }
//! ```
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
mod hashes;
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
