//! Whom to signal because of a hold. A process that may write the repository must not choose
//! which process of its holder is ended.

use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::record::keeper::{Keeper, Written};
use jvs_repo::sabotage;
use jvs_repo::store::Store;
use jvs_repo::term::Term;

use super::rule::HoldRule;
use crate::liveness::{Liveness, Observer, keeper_liveness};

/// Where it stands who keeps a lock.
pub struct Sources<'s> {
    /// What a keeper wrote of itself into the private directory of its session.
    pub private: Option<Written>,
    /// The repository, whose record tells it too, to people.
    pub repository: &'s dyn Store,
    /// The worktree that is kept.
    pub worktree: &'s WorktreeName,
}

/// The keeper of the hold `term`, if it is proven to be the very process that wrote. One
/// that keeps another hold is nobody's to be asked.
pub fn to_signal(
    sources: Sources<'_>,
    term: Term,
    here: Observer<'_>,
    lookup: impl FnOnce(u32) -> Option<ProcessStat>,
) -> Option<Keeper> {
    let keeper = named(sources, term)?;
    (keeper_liveness(&keeper, here, lookup) == Liveness::Alive).then_some(keeper)
}

/// Whom the private directory names, whatever the record says.
fn named(sources: Sources<'_>, term: Term) -> Option<Keeper> {
    sabotage!(HoldRule::PrivateWordAlone => super::sabotage::recorded(&sources));
    sources.private.filter(|written| written.term == term).map(|written| written.keeper)
}
