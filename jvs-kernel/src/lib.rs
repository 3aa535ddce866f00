//! What is asked of the kernel without a safe wrapper: the state of its clock,
//! signals, a word from a child before it is another program, the end of inherited
//! descriptors, and whether a file has a writer.
//!
//! **Responsibility.** All unsafe code of the project, behind functions that are
//! safe to call with anything. Every other crate forbids it.
//!
//! **Must not know.** Repositories, locks, what a signal or a line means to whoever
//! asked.
//!
//! # Limitations
//! Linux only. Signals are caught for the process, once, and until its end.

pub mod child;
pub mod clock;
pub mod descriptors;
pub mod lease;
pub mod signals;
