//! The world as this crate sees it: filesystem, clock, randomness.

use jvs_repo::clock::Clock;
use jvs_repo::entropy::Entropy;
use jvs_repo::store::Store;

/// The seams to the world. Cheap to copy; tests hand in their own.
#[derive(Clone, Copy)]
pub struct Seams<'r> {
    /// The control plane's filesystem.
    pub store: &'r dyn Store,
    /// The clocks of this host.
    pub clock: &'r dyn Clock,
    /// Source of nonces and ids.
    pub entropy: &'r dyn Entropy,
}
