//! What must not be removed whatever the policy says: asked when planning, and
//! asked again of each snapshot once it is out of sight.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::ShownName;
use jvs_repo::sabotage;
use jvs_repo::store::{DirEntry, Store};

use crate::error::SnapshotError;
use crate::garbage::{self, Candidate, Disposal};
use crate::gc::{Keep, Registers};
use crate::line;
use crate::mutation::Rule;
use crate::publish::Snapshots;
use crate::staging_name::{SnapshotBound, StagingName};
use crate::tags;

/// What is in `staging/`.
#[derive(Debug, Default)]
pub(crate) struct StagingContents {
    pub(crate) names: Vec<StagingName>,
    pub(crate) foreign: Vec<String>,
}

impl StagingContents {
    pub(crate) fn list(at: &Snapshots<'_>) -> Result<Self, SnapshotError> {
        let stuck = SnapshotError::io("list the work in progress");
        let mut staging = StagingContents::default();
        for DirEntry { name } in names_in_staging(at.seams.store).map_err(stuck)? {
            match name.to_str().and_then(|name| name.parse().ok()) {
                Some(name) => staging.names.push(name),
                None => staging.foreign.push(ShownName::new(&name).to_string()),
            }
        }
        Ok(staging)
    }
}

/// Listed twice: a restore that is renamed to a swap while the directory is read may be
/// missed under both names, and it is renamed only once.
fn names_in_staging(store: &dyn Store) -> io::Result<BTreeSet<DirEntry>> {
    sabotage!(Rule::ListedTwice => Ok(store.list(&layout::staging())?.into_iter().collect()));
    let first = store.list(&layout::staging())?;
    let second = store.list(&layout::staging())?;
    Ok(first.into_iter().chain(second).collect())
}

/// What becomes of a snapshot that is being built. Judged by a state that was READ before
/// it was looked at, and by nothing else: least of all by its age.
pub(crate) fn verdict(
    at: &Snapshots<'_>,
    registers: &Registers,
    bound: &SnapshotBound,
) -> Result<Option<Disposal>, SnapshotError> {
    sabotage!(Rule::ReadBeforeLooking => {
        super::sabotage::verdict_by_a_late_read(at, registers, bound)
    });
    sabotage!(Rule::AgeProvesNothing => super::sabotage::verdict_by_age(at, registers, bound));
    // A worktree whose register nobody has seen: it may be about to be born.
    let Some(state) = registers.judging(&bound.worktree) else { return Ok(None) };
    let candidate = look_at(at, bound)?;
    match is_head(registers, bound.id) {
        true => Ok(Some(Disposal::Committed)),
        false => Ok(Some(garbage::removable(state, &candidate))),
    }
}

/// Looks at a snapshot that is being built.
pub(super) fn look_at(
    at: &Snapshots<'_>,
    bound: &SnapshotBound,
) -> Result<Candidate, SnapshotError> {
    let stuck = || SnapshotError::io("look at a snapshot");
    let ready = at.catalog().is_shown(bound.id).map_err(stuck())?;
    let parent_ready = match bound.parent {
        Some(parent) => at.catalog().was_ready(parent).map_err(stuck())?,
        None => false,
    };
    Ok(Candidate::new(bound, ready, parent_ready))
}

/// Is it a head, whatever became of the name that it was taken under? A worktree that was
/// renamed took its head along, shown or not, and its name may have begun another epoch
/// since.
pub(super) fn is_head(registers: &Registers, id: SnapshotId) -> bool {
    sabotage!(Rule::HeadOfAnyName => false);
    registers.whose_head(id).is_some()
}

/// Is a restore or a swap in `staging/` over for good?
pub(crate) fn is_dead_restore(registers: &Registers, name: &StagingName) -> bool {
    let (StagingName::Restore { worktree, term, .. } | StagingName::Swap { worktree, term, .. }) =
        name
    else {
        return false;
    };
    registers.judging(worktree).is_some_and(|state| garbage::is_dead(state, *term))
}

/// Everything that somebody needs right now, and why. `registers` were READ
/// before this.
pub(crate) fn needs(
    at: &Snapshots<'_>,
    registers: &Registers,
    staging: &StagingContents,
) -> Result<BTreeMap<SnapshotId, Keep>, SnapshotError> {
    let mut needed = BTreeMap::new();
    each_need(at, registers, staging, &mut |id, why| drop(needed.insert(id, why)))?;
    Ok(needed)
}

/// What people call the head is needed as much as what the register names.
fn named_head(
    at: &Snapshots<'_>,
    head: Option<SnapshotId>,
) -> Result<Option<SnapshotId>, SnapshotError> {
    sabotage!(Rule::LineEndIsKept => Ok(head));
    line::end(at.catalog(), head)
}

/// Tells `each` everything that somebody needs, once for each reason; the weightiest
/// reasons come last.
pub(super) fn each_need(
    at: &Snapshots<'_>,
    registers: &Registers,
    staging: &StagingContents,
    each: &mut dyn FnMut(SnapshotId, Keep),
) -> Result<(), SnapshotError> {
    for name in &staging.names {
        match name {
            StagingName::Snapshot(bound) => {
                let dead = matches!(verdict(at, registers, bound)?, Some(Disposal::Garbage(_)));
                if let (Some(parent), false) = (bound.parent, dead) {
                    each(parent, Keep::InUse);
                }
            }
            StagingName::Restore { source, .. } if !is_dead_restore(registers, name) => {
                each(*source, Keep::InUse);
            }
            StagingName::Swap { source, kept, .. } if !is_dead_restore(registers, name) => {
                kept.iter().chain([source]).for_each(|id| each(*id, Keep::InUse));
            }
            // The next holder of the lock finishes it with them, however long that takes.
            StagingName::Patch { source, kept, .. } => {
                kept.iter().chain([source]).for_each(|id| each(*id, Keep::InUse));
            }
            _ => {}
        }
    }
    for (name, tag) in tags::list(at.seams.store)?.tags {
        // A tag that cannot be read may stand for anything: nothing is removed.
        each(tag?.snapshot_id, Keep::Tagged(name));
    }
    for (worktree, state) in registers.in_place() {
        let named = named_head(at, state.head)?;
        if let Some(last) = state.head.filter(|last| named != Some(*last)) {
            each(last, Keep::LastCommit(worktree.clone()));
        }
        if let Some(head) = named {
            each(head, Keep::Head(worktree.clone()));
        }
    }
    Ok(())
}
