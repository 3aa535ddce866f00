//! The rules of holds that can be switched off, one by one, to show that the
//! exploration tests notice.

/// A rule of holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldRule {
    /// A stake is there before the register is touched.
    StakeComesFirst,
    /// Who joins a hold moves its name, so that who looked before looks again.
    JoinMovesTheName,
    /// Who is told that it holds was told by a CAS of its own.
    ConfirmedByOwnCas,
    /// Who joins makes the hold durable, unless somebody was told of it already.
    JoinersMakeItDurable,
    /// A grant alone confirms only where no other process of the session has a stake.
    OthersAreAskedFor,
    /// A hold that ends keeps nobody waiting: its term is burnt.
    EndingIsBurnt,
    /// Nobody waits for another process of the session.
    NobodyWaits,
    /// A hold that is not open is never joined.
    EndingIsNotResumed,
    /// The hold is looked at after the READ that the CAS goes from.
    LookAfterRead,
    /// What was lost is asked for after that READ, too.
    MemoryAfterRead,
    /// A hold with a live stake is not released.
    StakesKeepAHold,
    /// Who finds an open hold gone from the register marks it lost.
    FinderMarksTheLoss,
    /// Who goes on with what another process of the session was told believes it for as long
    /// as that one may.
    InheritedAsConfirmed,
    /// Only a release that the register confirmed is remembered as one.
    OnlyConfirmedIsReleased,
    /// A hold that commands rely on is not released because somebody says so.
    ReleaseAsksTheOthers,
    /// Who gives a hold back because somebody says so gives back that one and no other.
    BoundToItsHold,
    /// A run that has a hold to itself says so in its stake.
    ExclusiveIsInTheStake,
    /// A stake's time is over only once its command has answered.
    TimeCountsWhenTold,
    /// A process is its pid and its start.
    StakesTellPidsApart,
    /// A session remembers what was taken from it.
    SessionsRemember,
    /// A loss is kept until who says to know of it is answered.
    LossIsKeptUntilAnswered,
    /// That a time is over does not say that the session is done.
    TimeIsNoWord,
    /// What a session remembers it remembers after a reboot.
    MemoryOutlivesTheBoot,
    /// Who stops waiting gives back what it was handed.
    LeaverGivesBack,
    /// Who hands over looks whether whom it handed it to is still there.
    GiverLooksForTheHeir,
    /// Whom to signal is read from the private directory alone.
    PrivateWordAlone,
    /// A holder whose keeper has died is dead only if nothing rests on its hold.
    DeadIfNothingRests,
}

impl HoldRule {
    /// All rules.
    pub const ALL: &[HoldRule] = &[
        HoldRule::StakeComesFirst,
        HoldRule::JoinMovesTheName,
        HoldRule::ConfirmedByOwnCas,
        HoldRule::JoinersMakeItDurable,
        HoldRule::OthersAreAskedFor,
        HoldRule::EndingIsBurnt,
        HoldRule::NobodyWaits,
        HoldRule::EndingIsNotResumed,
        HoldRule::LookAfterRead,
        HoldRule::MemoryAfterRead,
        HoldRule::StakesKeepAHold,
        HoldRule::FinderMarksTheLoss,
        HoldRule::InheritedAsConfirmed,
        HoldRule::OnlyConfirmedIsReleased,
        HoldRule::ReleaseAsksTheOthers,
        HoldRule::BoundToItsHold,
        HoldRule::ExclusiveIsInTheStake,
        HoldRule::TimeCountsWhenTold,
        HoldRule::StakesTellPidsApart,
        HoldRule::SessionsRemember,
        HoldRule::LossIsKeptUntilAnswered,
        HoldRule::TimeIsNoWord,
        HoldRule::MemoryOutlivesTheBoot,
        HoldRule::LeaverGivesBack,
        HoldRule::GiverLooksForTheHeir,
        HoldRule::PrivateWordAlone,
        HoldRule::DeadIfNothingRests,
    ];
}

jvs_repo::switchable!(HoldRule);
