//! What is asked of the kernel without a safe wrapper: the state of its clock,
//! signals, copies of a process, the end of inherited descriptors, the memory of the
//! program, programs that end with it, and whether a file has a writer.
//!
//! **Responsibility.** All unsafe code of the project, behind functions that are
//! safe to call with anything. Every other crate forbids it.
//!
//! **Must not know.** Repositories, locks, what a signal or a line means to the process that
//! asked.
//!
//! # How it is used
//! ```
//! use jvs_kernel::signals::Signals;
//! use rustix::process::{Signal, getpid, kill_process};
//!
//! # fn main() -> std::io::Result<()> {
//! let caught = Signals::catch(&[Signal::USR1])?;
//! kill_process(getpid(), Signal::USR1)?;
//! assert_eq!(caught.next(), Some(Signal::USR1)); // readable on caught.fd() before
//! # Ok(())
//! # }
//! ```
//!
//! # Limitations
//! Linux only. Signals are caught for the process, once, and until its end.

pub mod clock;
pub mod descriptors;
pub mod fork;
pub mod lease;
pub mod program;
pub mod signals;
