//! What is wrong with a repository, and what can safely be done about it.
//!
//! **Responsibility.** Findings and their remedies. A remedy changes something
//! only if it is proven that nobody can still need it.
//!
//! **Must not know.** How a lock is decided or a snapshot captured; it asks the
//! crates that do. The terminal, the environment.
//!
//! # Limitations
//! Nothing is examined yet: the crate holds the place of this part in the order
//! of dependencies.
