//! The rules of publishing and collecting that can be switched off, one by one,
//! to show that the exploration tests notice.
//!
//! One condition of the garbage rule has no switch: that the parent of what was
//! overtaken is READY. Where the head is shown before another is begun it always
//! is, so nothing breaks without it; it is there for the day on which READY is
//! lost.

pub mod capturing;

/// A rule of publishing or collecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A snapshot is committed under the token it was begun under.
    OneToken,
    /// A snapshot is shown after it was committed, never before.
    CommittedBeforeShown,
    /// What a snapshot promises is durable before it is committed.
    DurableBeforeCommitted,
    /// A commit is durable before somebody else shows what was committed.
    DurableBeforeHelped,
    /// The head is shown before another snapshot is begun on top of it.
    HeadShownFirst,
    /// A snapshot that is put on top of another head gets another id.
    RebasedUnderANewId,
    /// What was not committed is judged by a state that was READ before it was
    /// looked at.
    ReadBeforeLooking,
    /// Nothing is garbage because of its age.
    AgeProvesNothing,
    /// Only what was visible before the registers were READ is collected.
    VisibleBeforeRead,
    /// What is collected leaves its tombstone before it goes.
    TombstoneFirst,
    /// A tombstone goes only once the ledger that has it is durable.
    LedgerFirst,
    /// What is put into a ledger is not there, nor condemned: it cannot be put back.
    OnlyGoneIntoLedgers,
    /// A listing of tombstones is believed only if the next one names the same ledgers.
    TombstonesListedTwice,
    /// What is collected goes out of sight whole before anything of it goes.
    OutOfSightFirst,
    /// What is needed is read again once a snapshot is out of sight.
    NeedsReadAgain,
    /// Nothing is removed unless every recorded worktree's register was read.
    EveryRegisterAsked,
    /// A head is nobody's garbage, whatever became of the name it was taken under.
    HeadOfAnyName,
    /// Work in progress is listed twice, so that no rename hides it.
    ListedTwice,
    /// Nothing is old because one clock says so.
    ClockIsDoubted,
    /// What the filesystem refuses to show, or fails to, is not damaged.
    RefusalIsNotDamage,
    /// A collection needs no room.
    CollectsWhenFull,
    /// What a restore in place does is on disk before it is committed.
    JournalIsDurable,
    /// A holder of the lock takes away what a restore before it has not committed.
    UncommittedTakenAway,
    /// A holder of the lock finishes the restores before it, before it uses the files.
    FinishedBeforeUse,
    /// The commit of a restore is durable before somebody else finishes it.
    CommitDurableBeforeFinished,
    /// A process that finishes a restore takes up what is not in its place under names of its own.
    ClaimedFirst,
    /// What the line of a worktree ends with is kept as its head is.
    LineEndIsKept,
    /// What a line is about to end with is claimed, and what is claimed is kept.
    ClaimedIsKept,
    /// The end of a line is moved only from where it was seen.
    LineMovesAreBound,
}

impl Rule {
    /// All rules.
    pub const ALL: &[Rule] = &[
        Rule::OneToken,
        Rule::CommittedBeforeShown,
        Rule::DurableBeforeCommitted,
        Rule::DurableBeforeHelped,
        Rule::HeadShownFirst,
        Rule::RebasedUnderANewId,
        Rule::ReadBeforeLooking,
        Rule::AgeProvesNothing,
        Rule::VisibleBeforeRead,
        Rule::TombstoneFirst,
        Rule::LedgerFirst,
        Rule::OnlyGoneIntoLedgers,
        Rule::TombstonesListedTwice,
        Rule::OutOfSightFirst,
        Rule::NeedsReadAgain,
        Rule::EveryRegisterAsked,
        Rule::HeadOfAnyName,
        Rule::ListedTwice,
        Rule::ClockIsDoubted,
        Rule::RefusalIsNotDamage,
        Rule::CollectsWhenFull,
        Rule::JournalIsDurable,
        Rule::UncommittedTakenAway,
        Rule::FinishedBeforeUse,
        Rule::CommitDurableBeforeFinished,
        Rule::ClaimedFirst,
        Rule::LineEndIsKept,
        Rule::ClaimedIsKept,
        Rule::LineMovesAreBound,
    ];
}

jvs_repo::switchable!(Rule);
