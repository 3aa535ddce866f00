//! The architecture as a test: what no compiler checks and every reader relies
//! on. Each failure says which file, which line and what to do about it.
#![expect(clippy::disallowed_methods, reason = "reads the project's own sources")]

mod architecture;
mod codes;
mod compiled;
mod documents;
mod source;
