//! What would be done without a rule, where that is more than an expression: see
//! [`jvs_repo::mutation`].

use jvs_lock::{CommitError, Fence, State};

use crate::publish::Snapshots;
use crate::shown::show;
use crate::staging_name::SnapshotBound;

/// Shows a snapshot that may not come to be committed.
pub(crate) fn show_then_commit(
    at: &Snapshots<'_>,
    bound: &SnapshotBound,
    fence: &mut Fence<'_, '_>,
) -> Result<State, CommitError> {
    let _ = show(at.seams, bound.id);
    let catalog = at.catalog();
    fence.commit(bound.parent, bound.id, &|| catalog.is_shown(bound.id))
}
