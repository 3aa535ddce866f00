//! What would be done without a rule, where that is more than an expression: see
//! [`jvs_repo::mutation`].

use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;

use crate::error::SnapshotError;
use crate::garbage::{self, Disposal, Uncommittable};
use crate::gc::needs::{is_head, look_at};
use crate::gc::run::{leave_tombstone, set_aside, settle};
use crate::gc::{Freed, Registers};
use crate::publish::Snapshots;
use crate::staging_name::{SnapshotBound, StagingName};

/// What those would take for old who believed that age proves something.
const OLD_MS: u64 = 60_000;

/// By states that were READ after the look.
pub(super) fn verdict_by_a_late_read(
    at: &Snapshots<'_>,
    registers: &Registers,
    bound: &SnapshotBound,
) -> Result<Option<Disposal>, SnapshotError> {
    if registers.judging(&bound.worktree).is_none() {
        return Ok(None);
    }
    let candidate = look_at(at, bound)?;
    if is_head(registers, bound.id) {
        return Ok(Some(Disposal::Committed));
    }
    let late = Registers::read(at.seams)?;
    Ok(late.judging(&bound.worktree).map(|state| garbage::removable(state, &candidate)))
}

/// By its age, if that is high enough.
pub(super) fn verdict_by_age(
    at: &Snapshots<'_>,
    registers: &Registers,
    bound: &SnapshotBound,
) -> Result<Option<Disposal>, SnapshotError> {
    let Some(state) = registers.judging(&bound.worktree) else { return Ok(None) };
    let candidate = look_at(at, bound)?;
    let age_ms = at.seams.clock.now().wall.0.saturating_sub(bound.id.created_ms);
    Ok(Some(match is_head(registers, bound.id) {
        true => Disposal::Committed,
        false if age_ms > OLD_MS => Disposal::Garbage(Uncommittable::Fenced),
        false => garbage::removable(state, &candidate),
    }))
}

/// Leaves the tombstone once the snapshot is out of sight.
pub(super) fn collect_then_tell(
    at: &Snapshots<'_>,
    id: SnapshotId,
    freed: &mut Freed,
) -> Result<(), SnapshotError> {
    let op = OpNonce::random(at.seams.entropy);
    if !set_aside(at, id, op)? {
        return Ok(());
    }
    leave_tombstone(at, &StagingName::Condemned { id, op }.path(), id, op)?;
    settle(at, id, op, freed)
}

/// File by file, for all to see.
pub(super) fn remove_where_it_is(at: &Snapshots<'_>, id: SnapshotId) -> Result<(), SnapshotError> {
    let stuck = SnapshotError::io("remove it where it is");
    at.trees.remove(&layout::snapshot(id)).map_err(stuck)
}
