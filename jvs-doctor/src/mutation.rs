//! The rules of repairs that can be switched off, one by one, to show that the
//! exploration tests notice.

/// A rule of repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Work in progress is removed only if it is proven dead.
    ProvenDead,
    /// A record that a new holder, or a takeover, wrote meanwhile is put back.
    PutsBack,
    /// Nothing follows from what the filesystem did not show.
    UnseenIsNotGone,
    /// A repair in the session that holds the lock leaves it holding.
    HoldIsLeft,
    /// The epochs of a worktree that has a record are not over, whatever was buried.
    RecordedIsNotRemoved,
    /// What a former worktree of a name had published is left, whatever its next one
    /// begins with.
    FormerWorktreesAreLeft,
    /// A lineage is called broken only if it is when looked at again: tombstones are listed
    /// after the snapshots, and asked for once more.
    BrokenIsLookedAtAgain,
    /// READY is written anew only where its draft is not there to become it.
    DraftOfReadyIsUsed,
    /// A register below what was seen of it was set back.
    SeenIsNotUndone,
}

impl Rule {
    /// All rules.
    pub const ALL: &[Rule] = &[
        Rule::ProvenDead,
        Rule::PutsBack,
        Rule::UnseenIsNotGone,
        Rule::HoldIsLeft,
        Rule::RecordedIsNotRemoved,
        Rule::FormerWorktreesAreLeft,
        Rule::BrokenIsLookedAtAgain,
        Rule::DraftOfReadyIsUsed,
        Rule::SeenIsNotUndone,
    ];
}

jvs_repo::switchable!(Rule);
