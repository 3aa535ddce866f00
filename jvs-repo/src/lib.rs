//! What a JVS repository is on disk, and the two seams to the world: the
//! filesystem ([`store`]) and the clock ([`clock`]).
//!
//! **Responsibility.** Layout, names and ids, the shape of each control file,
//! error codes, configuration, the audit log, the filesystem probe, and how a
//! repository is found, opened and born.
//!
//! **Must not know.** Who may hold a lock, when a lease ends, how a snapshot is
//! captured, the terminal, the environment. A thing belongs here only if it
//! describes the repository on disk or is a seam that tests replace.
//!
//! # How it is used
//! ```
//! use jvs_repo::config;
//! use jvs_repo::discover::discover;
//! use jvs_repo::entropy::SystemEntropy;
//! use jvs_repo::name::WorktreeName;
//! use jvs_repo::nursery::{Adopt, Unborn};
//! use jvs_repo::repo::Repo;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! // Built unseen, after a probe of the filesystem; a rename makes it a repository.
//! let repo = Unborn::prepare(&dir.path().join("r"), Adopt::No)?.finish()?;
//! repo.set_config("retention.keep_last", "20", &SystemEntropy)?;
//!
//! // Found again from anywhere below.
//! let payload = repo.payload(&WorktreeName::main())?;
//! let found = Repo::open(&discover(&payload)?.root)?;
//! assert_eq!(found.id(), repo.id());
//! assert_eq!(config::get(&found.config()?, "retention.keep_last")?.to_string(), "20");
//! # Ok(())
//! # }
//! ```
//!
//! # Limitations
//! Linux only: `getdents64`, `openat2` and `CLOCK_BOOTTIME` are used directly.
//! Control files are read whole, so each shape has a size limit.
//! The probe catches a filesystem that lies here and now; it cannot prove that
//! one never will.

pub mod account;
pub mod audit;
pub mod clock;
pub mod code;
pub mod config;
pub mod digest;
pub mod discover;
pub mod duration;
pub mod entropy;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod id;
pub mod inert;
pub mod json;
pub mod layout;
pub mod metadata;
pub mod mutation;
pub mod name;
pub mod next;
pub mod nursery;
pub mod probe;
pub mod proc;
pub mod quarantine;
pub mod record;
pub mod repo;
pub mod sharing;
pub mod store;
pub mod term;
pub mod varint;
