//! What must not be removed whatever the policy says: asked when planning, and
//! asked again of each snapshot once it is out of sight.

use std::collections::{BTreeMap, BTreeSet};

use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::Shown;
use jvs_repo::store::DirEntry;

use crate::error::SnapshotError;
use crate::garbage::{self, Candidate, Verdict};
use crate::gc::{Keep, Registers};
use crate::mutation::Rule;
use crate::publish::Snapshots;
use crate::staging_name::StagingName;
use crate::tags;

/// What those would take for old who believed that age proves something.
const OLD_MS: u64 = 60_000;

/// What is in `staging/`.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    pub(crate) names: Vec<StagingName>,
    pub(crate) foreign: Vec<String>,
}

impl Staging {
    /// Listed twice: a restore that is renamed to a swap while the directory is read
    /// may be missed under both names, and it is renamed only once.
    pub(crate) fn list(at: &Snapshots<'_>) -> Result<Self, SnapshotError> {
        let stuck = || SnapshotError::io("list the work in progress");
        let store = at.seams.store;
        let mut names = BTreeSet::new();
        names.extend(store.list(&layout::staging()).map_err(stuck())?);
        if Rule::ListedTwice.holds() {
            names.extend(store.list(&layout::staging()).map_err(stuck())?);
        }
        let mut staging = Staging::default();
        for DirEntry { name } in names {
            match name.to_str().and_then(|name| name.parse().ok()) {
                Some(name) => staging.names.push(name),
                None => staging.foreign.push(Shown::new(&name).to_string()),
            }
        }
        Ok(staging)
    }
}

/// What becomes of a snapshot that is being built.
pub(crate) fn verdict(
    at: &Snapshots<'_>,
    registers: &Registers,
    bound: &crate::staging_name::Bound,
) -> Result<Option<Verdict>, SnapshotError> {
    // A worktree whose register nobody has seen: it may be about to be born.
    let Some(state) = registers.judging(&bound.worktree) else { return Ok(None) };
    let stuck = || SnapshotError::io("look at a snapshot");
    let ready = at.catalog().is_shown(bound.id).map_err(stuck())?;
    let parent_ready = match bound.parent {
        Some(parent) => at.catalog().was_ready(parent).map_err(stuck())?,
        None => false,
    };
    let candidate = Candidate::new(bound, ready, parent_ready);
    // A worktree that was renamed took its head along, shown or not, and its name
    // may have begun another life since.
    if Rule::HeadOfAnyName.holds() && registers.whose_head(bound.id).is_some() {
        return Ok(Some(Verdict::Committed));
    }
    if !Rule::ReadBeforeLooking.holds() {
        let late = Registers::read(at.seams)?;
        return Ok(late
            .judging(&bound.worktree)
            .map(|state| garbage::removable(state, &candidate)));
    }
    let age = || at.seams.clock.now().wall.0.saturating_sub(bound.id.created_ms);
    if !Rule::AgeProvesNothing.holds() && age() > OLD_MS {
        return Ok(Some(Verdict::Garbage(garbage::Why::Fenced)));
    }
    Ok(Some(garbage::removable(state, &candidate)))
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
    staging: &Staging,
) -> Result<BTreeMap<SnapshotId, Keep>, SnapshotError> {
    let mut needed = BTreeMap::new();
    for name in &staging.names {
        match name {
            StagingName::Snapshot(bound) => {
                let dead = matches!(verdict(at, registers, bound)?, Some(Verdict::Garbage(_)));
                if let (Some(parent), false) = (bound.parent, dead) {
                    needed.insert(parent, Keep::InUse);
                }
            }
            StagingName::Restore { source, .. } if !is_dead_restore(registers, name) => {
                needed.insert(*source, Keep::InUse);
            }
            StagingName::Swap { source, kept, .. } if !is_dead_restore(registers, name) => {
                needed.extend(kept.iter().chain([source]).map(|id| (*id, Keep::InUse)));
            }
            _ => {}
        }
    }
    for (name, tag) in tags::list(at.seams.store)?.tags {
        // A tag that cannot be read may stand for anything: nothing is removed.
        needed.insert(tag?.snapshot_id, Keep::Tagged(name));
    }
    for (worktree, state) in registers.in_place() {
        if let Some(head) = state.head {
            needed.insert(head, Keep::Head(worktree.clone()));
        }
    }
    Ok(needed)
}
