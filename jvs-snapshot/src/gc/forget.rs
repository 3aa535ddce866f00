//! Forgetting one snapshot because somebody says so, whatever the policy would keep. What
//! something else needs is not forgotten: the head of a worktree, and what work in progress
//! stands on. A tag is somebody's word that a snapshot must stay, so it takes as plain a
//! word to break it.
//!
//! It goes in the steps of a collection ([`super::run`]), so that a kill at any point, and
//! somebody who comes to need it meanwhile, find what they would find there.

use jvs_lock::Locks;
use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::name::TagName;
use jvs_repo::record::audit::Collected;

use crate::error::SnapshotError;
use crate::gc::needs::{StagingContents, each_need};
use crate::gc::run::{Freed, collect};
use crate::gc::{Keep, Registers};
use crate::publish::Snapshots;
use crate::ready::Ready;
use crate::tags;

/// What became of a snapshot that was forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// The tags that were deleted with it.
    pub tags: Vec<TagName>,
    /// What is left of its files, and why.
    pub left: Option<String>,
}

/// May a snapshot that is needed for these reasons be forgotten? The tags that go with it
/// if it may, else the reasons against it.
fn permit(reasons: Vec<Keep>, force: bool) -> Result<Vec<TagName>, Vec<Keep>> {
    let is_tag = |why: &Keep| matches!(why, Keep::Tagged(_));
    if reasons.iter().any(|why| !is_tag(why) || !force) {
        return Err(reasons);
    }
    let tags = reasons.into_iter().filter_map(|why| match why {
        Keep::Tagged(tag) => Some(tag),
        _ => None,
    });
    Ok(tags.collect())
}

/// What somebody needs a snapshot for. Asked once it has been seen.
fn reasons(at: &Snapshots<'_>, id: SnapshotId) -> Result<Vec<Keep>, SnapshotError> {
    // READ before anything is looked at, as for a collection.
    let registers = Registers::read(at.seams)?;
    let staging = StagingContents::list(at)?;
    let mut reasons = Vec::new();
    let mut take = |needed, why| {
        if needed == id && !reasons.contains(&why) {
            reasons.push(why);
        }
    };
    each_need(at, &registers, &staging, &mut take)?;
    Ok(reasons)
}

/// Removes a visible snapshot; with `force` also its tags. Only looks if `dry`.
pub fn forget(
    at: &Snapshots<'_>,
    locks: &Locks<'_>,
    snapshot: &Ready,
    force: bool,
    reason: Option<&str>,
    dry: bool,
) -> Result<Forgotten, SnapshotError> {
    let id = snapshot.id();
    let needed = |why| SnapshotError::Needed { id, why };
    let tags = permit(reasons(at, id)?, force).map_err(needed)?;
    if dry {
        return Ok(Forgotten { tags, left: None });
    }
    for tag in &tags {
        tags::take_away(locks, tag)?;
    }
    let op = OpNonce::random(at.seams.entropy);
    let details = Collected { snapshots: vec![id] };
    let note =
        |phase| locks.note(EventKind::Gc, phase, op, None, reason, Some(details.clone().into()));
    let mut freed = Freed::default();
    note(EventPhase::Intent).map_err(SnapshotError::io("write the audit log"))?;
    collect(at, id, &mut freed)?;
    if freed.put_back.contains(&id) {
        // Best effort: what was promised by them holds again.
        for tag in &tags {
            let _ = tags::make(locks, tag, snapshot);
        }
        let _ = note(EventPhase::NotApplied);
        return Err(needed(reasons(at, id)?));
    }
    note(EventPhase::Done).map_err(SnapshotError::io("write the audit log"))?;
    let left = freed.left.into_iter().next();
    Ok(Forgotten { tags, left: left.map(|(path, why)| format!("{path}: {why}")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tags_can_be_forgotten_along_and_only_by_force() {
        let head = || Keep::Head("main".parse().expect("a name"));
        let tag = |name: &str| Keep::Tagged(name.parse().expect("a name"));
        let (v1, v2) = (|| tag("v1"), || tag("v2"));
        // Every set of reasons, and whether it is forgotten with and without force.
        for (reasons, plain, forced) in [
            (vec![], true, true),
            (vec![v1()], false, true),
            (vec![v1(), v2()], false, true),
            (vec![head()], false, false),
            (vec![Keep::InUse], false, false),
            (vec![v1(), head()], false, false),
            (vec![Keep::InUse, v1()], false, false),
            (vec![Keep::InUse, head()], false, false),
        ] {
            assert_eq!(permit(reasons.clone(), false).is_ok(), plain, "{reasons:?}");
            let answer = permit(reasons.clone(), true);
            assert_eq!(answer.is_ok(), forced, "{reasons:?}");
            match answer {
                Ok(tags) => assert_eq!(tags.len(), reasons.len(), "{reasons:?}"),
                Err(against) => assert_eq!(against, reasons),
            }
        }
    }
}
