//! A simulated world in which real library code is model-checked: filesystem,
//! clocks, randomness, and a scheduler that tries every order of events.
//!
//! **Responsibility.** Answering the seams of `jvs-repo` ([`SimStore`],
//! [`SimClock`], [`SimEntropy`]) as a filesystem with several mounts, several
//! hosts and bad days would; visiting every state that this leads to.
//!
//! **Must not know.** The lock, or any protocol: what a state means is said by
//! the scenario's checks.
//!
//! # How a scenario is written
//! Processes are closures that get a [`Ctx`]. They publish what they believe
//! on a board ([`Ctx::claim`]), and checks look at the boards and at the
//! filesystem ([`View`]).
//!
//! ```
//! use jvs_kit::sim::{Explorer, Process};
//! use jvs_repo::store::{RepoPath, Store};
//!
//! let at = |name: &str| RepoPath::root().child(name).expect("a plain name");
//! // Moves the register from `free` to its own name, and believes any answer.
//! let taker = |name: &str| {
//!     Process::new(name, move |me| {
//!         if me.store().rename(&at("free"), &at(&format!("held-by-{}", me.name()))).is_ok() {
//!             me.claim("holds", 1);
//!         }
//!     })
//! };
//! let world = || {
//!     Explorer::new()
//!         .setup(|solo| drop(solo.store().create_new(&at("free")).expect("an empty disk")))
//!         .processes([taker("A"), taker("B")])
//!         .crashes(1)
//!         .always(|view| match view.processes().filter(|p| p.get("holds").is_some()).count() {
//!             0 | 1 => Ok(()),
//!             n => Err(format!("{n} hold it")),
//!         })
//!         .at_end(|view| {
//!             let told = view.processes().any(|p| p.get("holds").is_some() || p.crashed());
//!             if told { Ok(()) } else { Err("it is held, and nobody knows".to_owned()) }
//!         })
//! };
//! world().run().holds();
//!
//! // Not so if a rename may be applied and answered with an error:
//! let violation = world().ambiguous_renames(1).run().violation();
//! assert_eq!(violation.message, "it is held, and nobody knows");
//! assert!(violation.trace.contains(&"A rename(free -> held-by-A) = EIO (applied)".to_owned()));
//! assert!(world().ambiguous_renames(1).replay(&violation.choices).violation.is_some());
//! ```
//!
//! # What a step is
//! One call of `Store` or `StoredFile`, a sleep, a [`Ctx::pick`], a
//! [`Ctx::pause`]; between two steps anything may happen that the scenario
//! allows. Not a step, because nobody could tell the difference: `inode` of an
//! open file, `sync` and `sync_dir` while no power cut is to come, calls on
//! paths that the scenario calls private. Looking at the clock is one if the
//! scenario says so ([`Explorer::clock_is_a_step`]). Checks run after every step.
//!
//! # How it is done
//! A process is deterministic, so it is a function from the answers it got to
//! its next request. That function is computed by running the real code on
//! a thread, once for each history of answers, and remembered; a state is then
//! the filesystem, the clocks, what is left of each budget, and one history
//! a process. States are told apart by 128-bit fingerprints, and one that was
//! seen is not gone on from again.
//!
//! # Limitations
//! - A process must not start threads that use the seams, nor share memory with
//!   another: [`Ctx::look`] is how one is told something by another.
//! - Steps take no time. Time passes by [`Explorer::time_jumps`] and by sleeping.
//! - Modification times are all zero; there are no symlinks or modes.
//! - A directory is listed in one moment and in the order of names, unless
//!   [`Explorer::torn_listings`] says otherwise.
//! - `sync_dir`, while no power cut is to come, is answered at once: that its
//!   directory is removed by another right before it is not tried.

mod board;
mod cache;
mod call;
mod choice;
mod clock;
mod entropy;
mod explorer;
mod fault;
mod fingerprint;
mod image;
mod kernel;
mod line;
mod process;
mod program;
mod solo;
mod store;
mod world;

pub use board::Value;
pub use call::{Call, Handle};
pub use choice::{Choice, NotAChoice, Way, parse_choices, print_choices};
pub use clock::SimClock;
pub use entropy::SimEntropy;
pub use explorer::{Explorer, Replay, Report, Verdict, Violation};
pub use image::Image;
pub use process::{Ctx, Process, Start};
pub use rustix::io::Errno;
pub use solo::Solo;
pub use store::SimStore;
pub use world::{PowerCuts, ProcessView, Status, View};

#[cfg(test)]
mod tests;
