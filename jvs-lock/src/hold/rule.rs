//! The rules of holds that can be switched off, one by one, to show that the
//! exploration tests notice.

/// A rule of holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A stake is there before the register is touched.
    StakeComesFirst,
    /// Who joins a hold moves its name, so that who looked before looks again.
    JoinMovesTheName,
    /// Who is told that it holds was told by a CAS of its own.
    ConfirmedByOwnCas,
    /// A grant alone confirms only where no other process of the session has a stake.
    OthersAreAskedFor,
    /// A hold that is not open is never joined.
    EndingIsNotResumed,
    /// The hold is looked at after the READ that the CAS goes from.
    LookAfterRead,
    /// A hold with a live stake is not given back.
    StakesKeepAHold,
    /// Who finds an open hold gone from the register marks it lost.
    FinderMarksTheLoss,
    /// Only a release that the register confirmed is remembered as one.
    OnlyConfirmedIsReleased,
    /// A hold that commands rely on is not given back because somebody says so.
    ReleaseAsksTheOthers,
    /// A run that has a hold to itself says so in its stake.
    ExclusiveIsInTheStake,
    /// A process is its pid and its start.
    StakesTellPidsApart,
    /// A session remembers what was taken from it.
    SessionsRemember,
    /// A loss is kept until who says to know of it is answered.
    LossIsKeptUntilAnswered,
}

impl Rule {
    /// All rules.
    pub const ALL: &[Rule] = &[
        Rule::StakeComesFirst,
        Rule::JoinMovesTheName,
        Rule::ConfirmedByOwnCas,
        Rule::OthersAreAskedFor,
        Rule::EndingIsNotResumed,
        Rule::LookAfterRead,
        Rule::StakesKeepAHold,
        Rule::FinderMarksTheLoss,
        Rule::OnlyConfirmedIsReleased,
        Rule::ReleaseAsksTheOthers,
        Rule::ExclusiveIsInTheStake,
        Rule::StakesTellPidsApart,
        Rule::SessionsRemember,
        Rule::LossIsKeptUntilAnswered,
    ];
}

jvs_repo::switchable!(Rule);
