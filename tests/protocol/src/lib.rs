//! The lock protocol, explored: the real `jvs-lock` runs in the kit's simulated
//! world, and after every step the invariants of the protocol are checked.
//!
//! **Responsibility.** Actors that work with a lock ([`actor`]), what must hold
//! whatever happens to them ([`invariant`]), the worlds they meet in
//! ([`stage`]), and what it takes for a rule to be needed ([`necessity`]).
//!
//! **Must not know.** How the lock decides: an invariant is about the register,
//! about what holders believe and about what callers were told.
//!
//! # Limitations
//! Exhaustive only within the budgets that each scenario names: so many
//! crashes, so many answers that lie, so many jumps of time.

pub mod actor;
pub mod holder;
pub mod invariant;
pub mod kept;
pub mod logs;
pub mod necessity;
pub mod stage;
mod telling;

pub use actor::{Actor, Step};
pub use holder::{Does, Holder};
pub use stage::Stage;
