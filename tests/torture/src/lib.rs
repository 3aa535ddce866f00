//! Proof by trying to break it: many workers, several hosts, a nemesis, and a checker
//! over what everybody was told.
//!
//! **Responsibility.** [`torture`] plays hosts that share one repository, has their
//! workers do everything that there is to do while things fail, and writes down what
//! each was told; `check` compares that with itself and with what is there in the end.
//!
//! **Must not know.** How `jvs` decides anything. It drives the built command, and the
//! checker reads answers and files as a stranger would, with none of the code that made
//! them.
//!
//! # Limitations
//! Linux, and root: hosts are namespaces. One machine: what only several kernels can
//! show is not seen. A seed repeats the plan of the workers and of the nemesis, not the
//! order in which the kernel lets them act.
mod clock;
mod dice;
pub mod jepsen;
pub mod torture;
