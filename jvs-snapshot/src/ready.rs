//! A snapshot that was seen to be visible. Restoring and comparing take nothing else.

use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
pub use jvs_repo::record::ready::bytes;
use jvs_repo::store::RepoPath;

use crate::descriptor::Descriptor;
use crate::hash::Digest;

/// A snapshot that is visible. It can only come from
/// [`crate::catalog::Catalog::open`] or from publishing it:
///
/// ```compile_fail,E0451
/// fn forged(descriptor: jvs_snapshot::Descriptor) -> jvs_snapshot::Ready {
///     jvs_snapshot::Ready { descriptor, checksum: todo!() }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    descriptor: Descriptor,
    checksum: Digest,
}

impl Ready {
    /// Only for those who saw READY.
    pub(crate) fn seen(descriptor: Descriptor, checksum: Digest) -> Self {
        Ready { descriptor, checksum }
    }

    /// Its id.
    pub fn id(&self) -> SnapshotId {
        self.descriptor.snapshot_id
    }

    /// What is known about it.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The checksum of its descriptor.
    pub fn descriptor_checksum(&self) -> Digest {
        self.checksum
    }

    /// Where it is.
    pub fn dir(&self) -> RepoPath {
        layout::snapshot(self.id())
    }
}
