//! The line of a worktree: its snapshots as people count them.
//!
//! The register only ever goes forward, so everything that is committed is in the lineage.
//! Not all of it is a step that somebody took: what a restore replaced is beside the line,
//! and so is a snapshot that says that another is undone. Each snapshot says itself what it
//! follows, so that the line is known whatever is collected beside it.

use jvs_lock::State;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::name::WorktreeName;
use jvs_repo::record::descriptor::LineStanding;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

use crate::aside::delete_dir;
use crate::catalog::Catalog;
use crate::error::SnapshotError;
use crate::mutation::Rule;
use crate::publish::Snapshots;
use crate::staging_name::StagingName;

/// Where a new snapshot is to stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LinePlace {
    /// On the line, after what it ends with.
    #[default]
    Next,
    /// Beside it, so that it ends with what it did.
    Aside,
    /// Beside it, so that a line that ends with `from` ends with `to`.
    Move {
        /// What the line has to end with now.
        from: Option<SnapshotId>,
        /// What it ends with then.
        to: Option<SnapshotId>,
    },
}

/// What the line ends with, of a worktree whose register names `head`.
pub fn end(
    catalog: Catalog<'_>,
    head: Option<SnapshotId>,
) -> Result<Option<SnapshotId>, SnapshotError> {
    let Some(head) = head else { return Ok(None) };
    // Without a descriptor it is whatever it is: who reads it is told.
    Ok(catalog.describe(head)?.map_or(Some(head), |(descriptor, _)| descriptor.line_head()))
}

/// A snapshot that the line is about to end with, kept from being collected meanwhile.
#[must_use = "what is claimed is kept until it is given up, or its term is over"]
pub struct LineClaim(RepoPath);

impl LineClaim {
    /// Claims a visible snapshot. The claim is there before it is looked at, and whoever
    /// collects looks at claims once it is out of sight: one of the two sees the other.
    pub fn new(
        at: &Snapshots<'_>,
        worktree: &WorktreeName,
        state: &State,
        id: SnapshotId,
    ) -> Result<Self, SnapshotError> {
        let (worktree, op) = (worktree.clone(), OpNonce::random(at.seams.entropy));
        let name = StagingName::Restore { worktree, term: state.term(), source: id, op };
        let claim = LineClaim(name.path());
        claim.make(at)?;
        match at.catalog().open(id) {
            Ok(_) => Ok(claim),
            Err(error) => {
                claim.give_up(at);
                Err(error)
            }
        }
    }

    fn make(&self, at: &Snapshots<'_>) -> Result<(), SnapshotError> {
        sabotage!(Rule::ClaimedIsKept => Ok(()));
        let made = at.seams.store.ensure_dir(&self.0);
        made.map_err(SnapshotError::io("keep the snapshot from being collected"))
    }

    /// It is needed no more, or by a head.
    pub fn give_up(self, at: &Snapshots<'_>) {
        // Best effort: once the term is over, nobody takes it for a claim.
        let _ = delete_dir(at, &self.0);
    }
}

/// What a snapshot on top of `parent` says about the line; `Err` of what the line ends with
/// if it was to be moved from elsewhere.
pub(crate) fn on_top_of(
    catalog: Catalog<'_>,
    parent: Option<SnapshotId>,
    place: LinePlace,
) -> Result<Result<Option<LineStanding>, Option<SnapshotId>>, SnapshotError> {
    let now = end(catalog, parent)?;
    Ok(match place {
        LinePlace::Next => Ok(after(now, parent)),
        LinePlace::Aside => Ok(Some(LineStanding { aside: true, follows: now })),
        LinePlace::Move { from, to } if may_move(from, now) => {
            Ok(Some(LineStanding { aside: true, follows: to }))
        }
        LinePlace::Move { .. } => Err(now),
    })
}

/// A move was meant for the line as it was seen: what ends it by now may be a step that
/// nobody means to take back.
fn may_move(from: Option<SnapshotId>, now: Option<SnapshotId>) -> bool {
    sabotage!(Rule::LineMovesAreBound => true);
    from == now
}

/// A step of the line that ends with `now`, committed on top of `parent`.
fn after(now: Option<SnapshotId>, parent: Option<SnapshotId>) -> Option<LineStanding> {
    (now != parent).then_some(LineStanding { aside: false, follows: now })
}
