//! Jepsen's workload for locks: a set and a register in files that only a holder of the
//! lock may touch, and what is left of them when holders are paused for longer than
//! their lease, or killed.
//!
//! Several tools are asked for the lock side by side. Nothing is assumed of any of them:
//! what a tool loses is printed as it is.

mod batch;
mod contender;
pub mod history;
pub mod linear;
pub mod set;
mod workload;

pub use batch::batch;
pub use contender::Tool;
pub use workload::{Wish, work};
