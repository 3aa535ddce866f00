//! The repository's policy.

mod lock_policy;

pub use lock_policy::LockPolicy;
