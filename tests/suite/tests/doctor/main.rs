//! Doctor on broken repositories: one fixture per check, with what it says word
//! for word; random damage; sessions at work; repositories that lost or moved
//! their registers.
#![expect(clippy::disallowed_methods, reason = "plays the vandal: real files, broken on purpose")]

mod beside;
mod chaos;
mod clinic;
mod faults;
mod forgeries;
mod moved;
mod reference;
mod surroundings;
mod traces;
