//! One writer per worktree: the fence register, leases on it, and the events they
//! leave behind.
//!
//! **Responsibility.** Who may write, decided by one rename; when a lease ends
//! and when it may be taken; what an ambiguous answer of the filesystem means.
//!
//! **Must not know.** How a snapshot is captured, where a session's secret is
//! kept, the terminal, the environment. It sees the world through [`Seams`].
//!
//! # How it is used
//! [`Locks`] is what one session works with; [`Lease`] is the right to write;
//! [`Fence`], borrowed from a live lease, is the right to commit. The next
//! process of the session goes on with [`Locks::resume`] and a [`Ticket`].
//!
//! ```
//! use jvs_lock::session::{Environment, Purpose};
//! use jvs_lock::{Identity, Locks, Seams, Secret, Session, Want, worktrees};
//! use jvs_repo::audit::{Alone, Log, WriterId};
//! use jvs_repo::clock::{Clock, SystemClock};
//! use jvs_repo::config::LockPolicy;
//! use jvs_repo::entropy::SystemEntropy;
//! use jvs_repo::id::SnapshotId;
//! use jvs_repo::layout;
//! use jvs_repo::name::WorktreeName;
//! use jvs_repo::record::worktree::Isolation;
//! use jvs_repo::store::{PosixStore, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let store = PosixStore::open(dir.path())?;
//! # store.make_dir(&layout::control_dir())?;
//! # for part in layout::skeleton() { store.make_dir(&part)?; }
//! let seams = Seams { store: &store, clock: &SystemClock, entropy: &SystemEntropy };
//! let identity = Identity {
//!     host: "laptop".into(),
//!     user: "ann".into(),
//!     account: jvs_repo::proc::account(),
//!     pid: std::process::id(),
//!     start_time: 0,
//!     pid_namespace: None,
//!     boot_id: SystemClock.boot_id(),
//!     environment: Environment::Local,
//!     purpose: Purpose::Interactive,
//! };
//! let session = Session::new("agent-1".parse()?, &Secret([7; 32]), identity);
//! let log = Log::new(&store, &Alone, WriterId::derive(b"agent-1", 0));
//! let locks = Locks::new(seams, session, LockPolicy::default(), log);
//!
//! let main = WorktreeName::main();
//! worktrees::create(&locks, &main, Isolation::Exclusive)?;
//! let mut lease = locks.acquire(&main, Want::lease(30_000))?;
//! let head = SnapshotId::fresh(SystemClock.now().wall.0, &SystemEntropy);
//! lease.fence()?.commit(None, head, &|| Ok(false))?; // check and commit are one rename
//! lease.renew()?;
//! lease.release().map_err(|failed| failed.error)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Limitations
//! The register fences what goes through it. No lock on a filesystem can stop a
//! paused process from finishing a `write(2)` into the worktree after it lost
//! its lease. Two sessions can *believe* at once when clocks are further apart
//! than the policy allows; they can never both commit.

mod advisory;
mod backoff;
mod belief;
mod birth;
pub mod decide;
mod drive;
mod error;
mod exactly;
mod fence;
pub mod history;
pub mod hold;
pub mod holder;
mod inherit;
mod journal;
pub mod judge;
pub mod kept;
mod lease;
pub mod legacy;
pub mod liveness;
mod locks;
pub mod mutation;
pub mod policy;
pub mod queue;
pub mod rebuild;
pub mod reclaim;
pub mod record;
pub mod register;
pub mod retry;
#[cfg(feature = "mutations")]
mod sabotage;
mod seams;
pub mod session;
pub mod span;
pub mod state;
pub mod view;
pub mod watching;
pub mod worktrees;

pub use belief::Belief;
pub use error::{
    AcquireError, BadLease, BirthError, CommitError, ForceError, FreezeError, LeaseError,
    NoSuchWaiter, NotAdmin, NotOverruled, OfRegister, ReclaimError, RegisterError, TakeOverError,
    TurnError, UnfreezeError, WasRemoved,
};
pub use fence::{Fence, Shared};
pub use inherit::Confirmed;
pub use journal::Journal;
pub use lease::{Lease, LeaseOrigin, ReleaseError, Ticket};
pub use locks::{Locks, SeenBy, ShowHead, Stakes, Want};
pub use seams::Seams;
pub use session::{Identity, Secret, Session, SessionId};
pub use state::{Hold, NameFormat, State};
pub use view::{StatusWord, View};
