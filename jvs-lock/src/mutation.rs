//! The rules of the protocol that can be switched off, one by one, to show that
//! the exploration tests notice.

/// A rule of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// ENOENT of a rename is *unknown*, not *failed*.
    EnoentIsUnknown,
    /// Unknown with the old name still there is retried or made certain, never
    /// reported as failed.
    UnchangedIsNotFailed,
    /// A CAS lost to one's own session is tried again.
    LostToSelfIsRetried,
    /// An operation is bound to the token it began under.
    BoundToToken,
    /// The rename that moves the head is the one that proves the hold.
    CommitIsFenced,
    /// A state older than one already seen is ignored.
    MonotoneReads,
    /// The margin before a steal includes the skew.
    SkewInStealMargin,
    /// A head move copies the end of the lease from the state just read.
    HeadMoveCopiesExpiry,
    /// A renewal never shortens the lease.
    RenewalNeverShortens,
    /// Belief counts from a reading taken before the call.
    BeliefFromBefore,
    /// Belief ends before a release is issued.
    BeliefEndsBeforeRelease,
    /// The register is born by renaming a ready directory.
    BornByRename,
    /// A steal raises the token.
    StealRaisesToken,
    /// A release keeps the token.
    ReleaseKeepsToken,
    /// All attempts of an operation share one nonce.
    OneOpForAllAttempts,
    /// A grant survives a power cut before anyone is told of it.
    GrantIsDurable,
    /// A session's secret is another one on each host and boot.
    SecretIsOfHost,
    /// What is only told about a lock, its record and files of other tools, is
    /// never needed.
    AdvisoryFilesAreNotNeeded,
    /// A live lock of another tool is respected by every operation that takes one.
    OthersAreRespected,
    /// What else changes hands is durable, too, before anyone is told of it.
    DurableBeforeTold,
    /// A commit is looked for in the state that is read back.
    CommitIsReadBack,
    /// A renewal does not wait for its turn at the audit log.
    RenewalsDoNotWait,
    /// The chain covers the whole name of the state before.
    ChainCoversTheName,
    /// A counter at its end is not counted on from.
    CountersEnd,
    /// Two states of one place in a history are a forgery.
    OneStateAPlace,
    /// Tokens and commits never fall, and each step is one that an operation makes.
    LawfulSteps,
    /// A name is confirmed by CAS before anything else of it is touched.
    ConfirmedBeforeTouched,
    /// A process that loses a name removes nothing of the process that has it.
    LoserRemovesNothing,
    /// A rename reserves its target before it retires its source.
    TargetReservedFirst,
    /// A retirement is done only if it is this operation's.
    RetiredByItself,
    /// A rename that fails gives its source a new epoch.
    RenameTakenBack,
    /// What was made is durable before anyone is told.
    MadeDurably,
    /// A process that fails to make a worktree leaves nothing of what it made.
    FailedMakingLeavesNothing,
    /// What a removal took away is looked at again before it is anybody's to delete.
    TakenThenLooked,
    /// A record is taken aside and looked at before it goes for good.
    ForgottenThenLooked,
    /// What a rename moved is looked at again before it is anybody's.
    MovedThenLooked,
    /// A process that retires a register makes its head visible first.
    ShownBeforeRetired,
    /// A register forgets its head for another only once that is visible.
    ShownBeforeNextLife,
    /// The lock of a name that is only reserved is not taken.
    ReservedIsNotTaken,
    /// What a maker takes apart is its own until it has ended: its note stays, and
    /// cannot become the record.
    WithdrawnUnderItsNote,
    /// What looks abandoned by another host's clock is watched before it is taken.
    WatchedBeforeSteal,
    /// By a wall clock that nothing steers no freeze is over.
    FreezeEndsBySteeredClock,
    /// Boot-time readings are compared only if they are of one clock.
    OneBootTimeClock,
    /// What ids say of clocks is believed only if wall and boot time went the same way.
    ClocksGoTogether,
    /// A process that takes over what is not its own asks one and the same question.
    OneTakeOver,
    /// A freeze after waiting is made from one's own hold and no other.
    FreezeFromOwnHold,
    /// A freeze is lifted by a repair only if it is the one that was surveyed, and
    /// is over still.
    LiftWhatWasSeen,
    /// A renewal changes the end of the lease, however clocks are set.
    RenewalChangesTheEnd,
    /// A record is current only if the length of the lease is the register's, too.
    CurrentByLength,
    /// A waiter counts while it gives signs of life, on its own host, too.
    SignsOfLife,
    /// Who waits in a circle is believed to only when it was seen twice.
    CirclesAreSeenTwice,
    /// Of those who wait in a circle the newest gives up, and nobody else.
    NewestGivesUp,
    /// A log that has no room is asked again for a moment.
    FullIsAskedAgain,
    /// A release needs no room: the register tells what the log cannot.
    ReleasedWhenFull,
    /// A forced freeze obeys what a reclaim obeys.
    ForceObeysPolicy,
    /// Users are compared by the ids that kernels gave out.
    UsersAreTheirIds,
    /// Once admins are named, nobody else forces.
    AdminsAreAsked,
    /// Whoever is overruled is in the log, with who did it and by which reason.
    OverrulingIsTold,
    /// Logs are listed again once they were read.
    LogsListedAgain,
    /// What was read under two names was not read under the second.
    SeenTwiceIsUnread,
    /// A log goes only once an anchor that stands for it is durable.
    AnchorFirst,
    /// A closed log is dropped only once its writer goes on in another.
    NextIsThere,
    /// A session that finds an anchor that it did not know takes its own back.
    AnchorsSeeEachOther,
    /// A state that an anchor says was reached is not taken by a power cut.
    FloorsAreDurable,
    /// What is only announced is not dropped.
    OnlyDecidedIsDropped,
}

impl Rule {
    /// All rules.
    pub const ALL: &[Rule] = &[
        Rule::EnoentIsUnknown,
        Rule::UnchangedIsNotFailed,
        Rule::LostToSelfIsRetried,
        Rule::BoundToToken,
        Rule::CommitIsFenced,
        Rule::MonotoneReads,
        Rule::SkewInStealMargin,
        Rule::HeadMoveCopiesExpiry,
        Rule::RenewalNeverShortens,
        Rule::BeliefFromBefore,
        Rule::BeliefEndsBeforeRelease,
        Rule::BornByRename,
        Rule::StealRaisesToken,
        Rule::ReleaseKeepsToken,
        Rule::OneOpForAllAttempts,
        Rule::GrantIsDurable,
        Rule::SecretIsOfHost,
        Rule::AdvisoryFilesAreNotNeeded,
        Rule::OthersAreRespected,
        Rule::DurableBeforeTold,
        Rule::CommitIsReadBack,
        Rule::RenewalsDoNotWait,
        Rule::ChainCoversTheName,
        Rule::CountersEnd,
        Rule::OneStateAPlace,
        Rule::LawfulSteps,
        Rule::ConfirmedBeforeTouched,
        Rule::LoserRemovesNothing,
        Rule::TargetReservedFirst,
        Rule::RetiredByItself,
        Rule::RenameTakenBack,
        Rule::MadeDurably,
        Rule::FailedMakingLeavesNothing,
        Rule::TakenThenLooked,
        Rule::ForgottenThenLooked,
        Rule::MovedThenLooked,
        Rule::ShownBeforeRetired,
        Rule::ShownBeforeNextLife,
        Rule::ReservedIsNotTaken,
        Rule::WithdrawnUnderItsNote,
        Rule::WatchedBeforeSteal,
        Rule::FreezeEndsBySteeredClock,
        Rule::OneBootTimeClock,
        Rule::ClocksGoTogether,
        Rule::OneTakeOver,
        Rule::FreezeFromOwnHold,
        Rule::LiftWhatWasSeen,
        Rule::RenewalChangesTheEnd,
        Rule::CurrentByLength,
        Rule::SignsOfLife,
        Rule::CirclesAreSeenTwice,
        Rule::NewestGivesUp,
        Rule::FullIsAskedAgain,
        Rule::ReleasedWhenFull,
        Rule::ForceObeysPolicy,
        Rule::UsersAreTheirIds,
        Rule::AdminsAreAsked,
        Rule::OverrulingIsTold,
        Rule::LogsListedAgain,
        Rule::SeenTwiceIsUnread,
        Rule::AnchorFirst,
        Rule::NextIsThere,
        Rule::AnchorsSeeEachOther,
        Rule::FloorsAreDurable,
        Rule::OnlyDecidedIsDropped,
    ];
}

jvs_repo::switchable!(Rule);
