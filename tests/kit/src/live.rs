//! Real filesystems and real processes: the built `jvs`, JuiceFS volumes,
//! Redis, loop devices, a false wall clock, failing system calls.
//!
//! **Responsibility.** Everything started here is bounded: no program inherits
//! the test's standard streams, every wait has a deadline, and what was mounted
//! or spawned is undone on drop, also when the test panics. What a machine
//! lacks is said aloud ([`capability`]), and in CI it is a failure.
//!
//! **Must not know.** What `jvs` does or prints; that is the suite's business. But every
//! document of `--json` that comes by is compared with its schema ([`schema`]).
//!
//! # Limitations
//! A test killed by SIGKILL cannot clean up. `scripts/test` therefore runs the
//! whole suite in its own process and mount namespace. Mounting needs root.
#![expect(
    clippy::disallowed_methods,
    reason = "plays the world around jvs: real files, real processes and their deadlines"
)]

pub mod accesslog;
pub mod binary;
pub mod calls;
pub mod capability;
pub mod held_back;
pub mod home;
pub mod juicefs;
pub mod loopfs;
pub mod mount;
pub mod process;
pub mod redis;
pub mod schema;
pub mod terminal;
pub mod writer;
