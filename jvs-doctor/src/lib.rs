//! What is wrong with a repository, and what can safely be done about it.
//!
//! **Responsibility.** Findings and their remedies. A remedy changes something
//! only if it is proven that nobody can still need it, or through the lock.
//!
//! **Must not know.** How a lock is decided or a snapshot captured; it asks the
//! crates that do. The terminal, the environment.
//!
//! # Words
//! The crate has one metaphor: doctor looks at a [`Patient`], a repository and what is
//! around it, in an [`Examination`], and [`treat()`]s it.
//!
//! # How it is used
//! [`examine()`] looks and changes nothing; [`treat()`] applies remedies in a safe
//! order, one at a time, each with its event in the audit log, and looks again
//! until nothing changes any more. On a [`Rehearsal`] it does the same without
//! touching the repository: that is what a dry run shows.
//!
//! ```
//! use jvs_doctor::{Depth, Patient, Surroundings, examine};
//! use jvs_lock::Seams;
//! use jvs_repo::clock::SystemClock;
//! use jvs_repo::entropy::SystemEntropy;
//! use jvs_repo::nursery::{Adopt, Unborn};
//! use jvs_repo::probe::Filesystem;
//! use jvs_repo::proc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let repo = Unborn::prepare(&dir.path().join("r"), Adopt::No)?.finish()?;
//! let store = repo.store();
//! let patient = Patient {
//!     seams: Seams { store, clock: &SystemClock, entropy: &SystemEntropy },
//!     payloads: store,
//!     surroundings: Surroundings {
//!         filesystem: Filesystem::at(repo.root())?,
//!         space: store.space().ok(),
//!         pid_namespace: proc::pid_namespace(),
//!         lookup: proc::process_stat,
//!     },
//!     chosen_head: None,
//! };
//! for finding in examine(&patient, Depth::Quick).findings {
//!     println!("{}: {}", finding.check, finding.message);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Limitations
//! The content of snapshots' files is not read: that is what verifying them is
//! for. Only processes of this boot and PID namespace can be known to have
//! ended. What a later version of JVS wrote is reported and left alone.

pub mod check;
pub mod examine;
pub mod finding;
pub mod mutation;
pub mod patient;
pub mod proof;
mod read;
mod rebuild;
mod rehearsal;
pub mod remedy;
mod survey;
mod treat;

pub use check::{Check, Depth, Family, Severity};
pub use examine::{Clocks, Examination, Vitals, examine};
pub use finding::{Finding, RemedyOutcome};
pub use patient::{ChosenHead, Patient, Payloads, Surroundings};
pub use rebuild::Rebuild;
pub use rehearsal::Rehearsal;
pub use remedy::{Remedy, Tense};
pub use treat::{Care, HoldsOf, RepairError, treat, treat_as};
