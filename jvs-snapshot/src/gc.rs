//! Garbage collection: what nobody needs any more, planned first, then removed
//! so that a kill at any point loses nothing that is needed.
//!
//! Kept are the heads of all worktrees, the newest of their ancestors and all
//! that is young (as the retention policy says), what has a tag, and what work
//! in progress stands on. A visible snapshot goes in three steps: its descriptor
//! is kept as a tombstone; it is moved out of sight, whole; and only if nobody
//! came to need it meanwhile is it deleted. Uncommitted snapshots are removed by
//! the rules of [`crate::garbage`]. Tombstones are put together in ledgers
//! afterwards ([`compact`]).

mod age;
mod compact;
mod forget;
mod measure;
mod needs;
mod plan;
mod registers;
mod retention;
mod run;
#[cfg(feature = "mutations")]
mod sabotage;

use std::collections::BTreeMap;
use std::fmt;

use jvs_repo::duration::Period;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::{TagName, WorktreeName};
use jvs_repo::store::RepoPath;
use serde::Serialize;

use crate::garbage::Uncommittable;
use crate::staging_name::StagingName;

pub use age::ClockDoubt;
pub use compact::compact;
pub use forget::{Forgotten, forget};
pub use measure::{Measured, measure};
pub(crate) use needs::StagingContents;
pub use plan::{Terms, plan};
pub use registers::Registers;
use retention::Season;
pub use run::{Freed, run};

/// Why a visible snapshot is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// It is the head of a worktree, as people call it.
    Head(WorktreeName),
    /// It is what a worktree was last committed as, beside its line.
    LastCommit(WorktreeName),
    /// It is one of the newest of a worktree.
    Recent(WorktreeName),
    /// It is the newest of its hour in the history of a worktree.
    Hourly(WorktreeName),
    /// The same of its day.
    Daily(WorktreeName),
    /// The same of its week.
    Weekly(WorktreeName),
    /// The same of its month.
    Monthly(WorktreeName),
    /// The same of its year.
    Yearly(WorktreeName),
    /// It is the oldest of a worktree, and fewer hours, days, and so on have a snapshot than
    /// the policy keeps.
    Oldest(WorktreeName),
    /// It is younger than the policy lets go.
    Young,
    /// It has a name.
    Tagged(TagName),
    /// A snapshot or a restore in progress stands on it.
    InUse,
    /// Its descriptor cannot be believed, so nothing is done to it.
    Corrupt,
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::Head(worktree) => write!(f, "head of worktree '{worktree}'"),
            Keep::LastCommit(worktree) => write!(f, "last commit of worktree '{worktree}'"),
            Keep::Recent(worktree) => write!(f, "one of the newest of worktree '{worktree}'"),
            Keep::Hourly(worktree) => newest_of(f, Season::Hour, worktree),
            Keep::Daily(worktree) => newest_of(f, Season::Day, worktree),
            Keep::Weekly(worktree) => newest_of(f, Season::Week, worktree),
            Keep::Monthly(worktree) => newest_of(f, Season::Month, worktree),
            Keep::Yearly(worktree) => newest_of(f, Season::Year, worktree),
            Keep::Oldest(worktree) => write!(f, "oldest of worktree '{worktree}'"),
            Keep::Young => f.write_str("young"),
            Keep::Tagged(tag) => write!(f, "tagged '{tag}'"),
            Keep::InUse => f.write_str("in use"),
            Keep::Corrupt => f.write_str("its descriptor is corrupt"),
        }
    }
}

fn newest_of(f: &mut fmt::Formatter<'_>, season: Season, worktree: &WorktreeName) -> fmt::Result {
    write!(f, "newest of its {} in worktree '{worktree}'", season.as_str())
}

/// Why nobody needs a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Uncalled {
    /// Its worktree has newer ones in all the places that the policy keeps.
    Outnumbered,
    /// The worktree that it was taken of is gone, and nothing descends from it that counts.
    WorktreeGone,
    /// It keeps what a restore replaced, or says what was undone.
    Beside,
}

impl Uncalled {
    /// In words; the policy keeps what is younger than `within`.
    pub fn because(self, within: Period) -> String {
        let newer = match self {
            Uncalled::Outnumbered => "newer ones are kept instead",
            Uncalled::Beside => "it is beside the history",
            Uncalled::WorktreeGone => "its worktree is gone",
        };
        match within.as_ms() {
            0 => newer.to_owned(),
            _ => format!("{newer}, and it is older than {within}"),
        }
    }
}

/// A visible snapshot that nobody needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unneeded {
    /// The snapshot's id.
    pub snapshot_id: SnapshotId,
    /// The worktree that it was taken of.
    pub worktree_id: WorktreeName,
    /// Why it goes.
    pub why: Uncalled,
    /// What its maker said of it.
    pub note: Option<String>,
    /// Bytes of its files. What deleting it frees may be less: files that did
    /// not change are shared with other snapshots.
    pub bytes: u64,
}

/// What was never committed and never will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dead {
    /// A snapshot being built.
    Draft(StagingName),
    /// A complete snapshot that nobody sees.
    Hidden(SnapshotId),
    /// A restore whose hold is over, and that was not offered for a swap.
    Restore(StagingName),
    /// Files of a worktree that was removed by force, not deleted yet.
    Removed(RepoPath),
    /// A swap whose hold is over: deleted only if snapshots have all that is in it.
    Swap(StagingName),
}

/// What a collection would do, and what it would not.
#[derive(Debug, Default)]
pub struct GcPlan {
    /// Visible snapshots that are kept, and why.
    pub keep: Vec<(SnapshotId, Keep)>,
    /// What their makers said of those that are kept, as far as they said something.
    pub notes: BTreeMap<SnapshotId, String>,
    /// Visible snapshots that go, oldest first.
    pub collect: Vec<Unneeded>,
    /// What was never committed, and why it never will be.
    pub dead: Vec<(Dead, Option<Uncommittable>)>,
    /// Interrupted swaps that may hold the only copy of somebody's file: set
    /// aside, never deleted.
    pub set_aside: Vec<StagingName>,
    /// What an earlier collection did not come to the end of.
    pub unfinished: Vec<StagingName>,
    /// What is somebody's work or cannot be understood, and is left alone.
    pub left_alone: Vec<String>,
}

impl GcPlan {
    /// Is there nothing to do?
    pub fn is_empty(&self) -> bool {
        self.collect.is_empty()
            && self.dead.is_empty()
            && self.set_aside.is_empty()
            && self.unfinished.is_empty()
    }
}
