//! May a live holder be overruled? Pure: the record, its judgement, what is
//! known of its keeper, who asks and the repository's rules in, decision out.
//!
//! Overruling is policy. It is never needed for safety (a dead lease ends by
//! itself) and never hurts it (the token is raised, the old holder is fenced).

use std::fmt;

use jvs_repo::clock::Reading;
use jvs_repo::config::{LockPolicy, ReclaimRules};
use jvs_repo::metadata::Environment;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::audit::{Details, OtherTool, Reclaimed};
use jvs_repo::sabotage;
use serde::Serialize;

use crate::error::LockError;
use crate::hold;
use crate::lease::Lease;
use crate::liveness::{Liveness, Observer, Unknowable, keeper_liveness};
use crate::locks::{Locks, Want};
use crate::mutation::Rule;
use crate::queue::Lookup;
use crate::record::{Record, user_as_recorded};
use crate::session::Session;
use crate::view::{StatusWord, View};

/// Why a lock may be taken from its holder, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReclaimReason {
    /// Its lease has been over for long enough.
    LockExpired,
    /// The process that kept it has ended: same host, same boot.
    HolderDead,
    /// The same user holds it, in another session.
    SameUser,
    /// The holder's environment has less privilege.
    HigherPrivilege,
    /// An emergency was declared.
    EmergencyOverride,
    /// The same session id, on another host.
    SameSession,
    /// None of these.
    LockHeld,
}

impl ReclaimReason {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            ReclaimReason::LockExpired => "LOCK_EXPIRED",
            ReclaimReason::HolderDead => "HOLDER_DEAD",
            ReclaimReason::SameUser => "SAME_USER",
            ReclaimReason::HigherPrivilege => "HIGHER_PRIVILEGE",
            ReclaimReason::EmergencyOverride => "EMERGENCY_OVERRIDE",
            ReclaimReason::SameSession => "SAME_SESSION",
            ReclaimReason::LockHeld => "LOCK_HELD",
        }
    }
}

impl fmt::Display for ReclaimReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How good a reason is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words of seed 002")]
pub enum Priority {
    High,
    Medium,
    Low,
}

impl Priority {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Priority::High => "high",
            Priority::Medium => "medium",
            Priority::Low => "low",
        }
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// May it be taken?
    pub allowed: bool,
    /// By which reason.
    pub reason: ReclaimReason,
    /// How good that is.
    pub priority: Priority,
}

impl Decision {
    /// The same session id on another host: no policy, its own.
    pub(crate) const SAME_SESSION: Decision =
        Decision { allowed: true, reason: ReclaimReason::SameSession, priority: Priority::High };

    const HELD: Decision =
        Decision { allowed: false, reason: ReclaimReason::LockHeld, priority: Priority::Low };

    /// May it also take what another tool holds? Nothing is known of that holder,
    /// so only a declared emergency may, where the repository allows it.
    pub(crate) fn overrules_other_tools(&self) -> bool {
        self.allowed && self.reason == ReclaimReason::EmergencyOverride
    }

    const fn by(reason: ReclaimReason) -> Decision {
        let priority = match reason {
            ReclaimReason::LockExpired
            | ReclaimReason::HolderDead
            | ReclaimReason::EmergencyOverride
            | ReclaimReason::SameSession => Priority::High,
            ReclaimReason::SameUser | ReclaimReason::HigherPrivilege => Priority::Medium,
            ReclaimReason::LockHeld => Priority::Low,
        };
        Decision { allowed: true, reason, priority }
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Claimant<'c> {
    /// User identity.
    pub user: &'c str,
    /// Where it runs.
    pub environment: Environment,
    /// Does it declare an emergency?
    pub emergency: bool,
}

/// Decides. `keeper` is what is known of the process that keeps the lease;
/// `None` if nobody does, or nobody is known to.
pub fn decide(
    word: StatusWord,
    record: Option<&Record>,
    keeper: Option<Liveness>,
    claimant: Claimant<'_>,
    rules: &ReclaimRules,
) -> Decision {
    match word {
        StatusWord::Stealable => return Decision::by(ReclaimReason::LockExpired),
        StatusWord::Held | StatusWord::Expired => {}
        StatusWord::Free | StatusWord::Frozen | StatusWord::Retired => return Decision::HELD,
    }
    if rules.holder_dead && keeper == Some(Liveness::Dead) {
        return Decision::by(ReclaimReason::HolderDead);
    }
    if let Some(metadata) = record.map(|record| &record.metadata) {
        let user = user_as_recorded(claimant.user);
        let same_user = !user.is_empty() && metadata.user_identity == user;
        if rules.same_user && same_user {
            return Decision::by(ReclaimReason::SameUser);
        }
        let outranks = match (rank(claimant.environment), rank(metadata.environment)) {
            (Some(mine), Some(theirs)) => mine < theirs,
            _ => false,
        };
        if rules.higher_privilege && outranks {
            return Decision::by(ReclaimReason::HigherPrivilege);
        }
    }
    if rules.emergency_override && claimant.emergency {
        return Decision::by(ReclaimReason::EmergencyOverride);
    }
    Decision::HELD
}

/// Smaller has more privilege; a container has none to compare.
const fn rank(environment: Environment) -> Option<u8> {
    match environment {
        Environment::Ci => Some(0),
        Environment::Cloud => Some(1),
        Environment::Local => Some(2),
        Environment::Container => None,
    }
}

/// Is the holder this very session id, on another host or another boot?
pub(crate) fn is_same_session_elsewhere(record: &Record, me: &Session) -> bool {
    let identity = me.identity();
    record.session_id == me.id().as_str()
        && !record.frozen
        && (record.boot_id != identity.boot_id || record.metadata.hostname != identity.host)
}

/// What the audit log keeps of it.
pub(crate) fn details(decision: Decision, view: &View, me: &Session) -> Details {
    let old = view.record();
    let reclaimed = Reclaimed {
        reason: decision.reason.to_string(),
        priority: decision.priority.as_str().to_owned(),
        old_holder: old.map(|record| record.holder_id.clone()),
        old_session: old.map(|record| record.session_id.clone()),
        old_holder_nonce: view.state.holder(),
        other_tool: view.foreign.as_ref().map(OtherTool::from),
        new_holder: me.holder_id(),
        new_session: me.id().as_str().to_owned(),
    };
    Box::new(reclaimed).into()
}

impl<'r> Locks<'r> {
    /// Takes the lock also from a live holder, if `rules` allow it: always
    /// under a new token, always in the audit log with both holders.
    pub fn reclaim(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
        rules: &ReclaimRules,
        emergency: bool,
        lookup: Lookup<'_>,
    ) -> Result<Lease<'r>, LockError> {
        let identity = self.session.identity();
        let claimant =
            Claimant { user: &identity.user, environment: identity.environment, emergency };
        let keeper = |view: &View| {
            if view.foreign.is_some() {
                return None;
            }
            let clock = self.seams.clock.boot_clock();
            let here = Observer { clock: &clock, pid_namespace: identity.pid_namespace };
            let record = view.record()?;
            let keeper = record.keeper.as_ref()?;
            Some(match is_by_our_clocks(record, view.at, &self.policy) {
                // The ids of a copied machine are the original's: its processes are not.
                false => Liveness::Unknown(Unknowable::OtherHost),
                true => match keeper_liveness(keeper, here, lookup) {
                    Liveness::Dead => self.nothing_rests_on(view),
                    known => known,
                },
            })
        };
        let taken = self.take(worktree, want, &|view| {
            // What looks over by a clock that nobody has checked is not over.
            let unproven = view.judgement.as_ref().is_some_and(|judged| judged.watch_ms > 0);
            let word = if unproven { StatusWord::Expired } else { view.word() };
            // What holds it is another tool's, whatever our own record says.
            let record = view.record().filter(|_| view.foreign.is_none());
            Some(decide(word, record, keeper(view), claimant, rules))
        });
        match taken {
            Err(LockError::Conflict(view)) => {
                let why_not = why_not(keeper(&view), claimant, rules);
                Err(LockError::ReclaimDenied { view, why_not })
            }
            other => other,
        }
    }
}

impl Locks<'_> {
    /// The keeper of the hold in `view` has died. The holder has, too, only if nothing
    /// rests on the hold: a command may run on, and start another keeper.
    fn nothing_rests_on(&self, view: &View) -> Liveness {
        sabotage!(hold::rule::HoldRule::DeadIfNothingRests => Liveness::Dead);
        match self.stakes.map(|stakes| stakes(&view.state)) {
            Some(Some(true)) => Liveness::Alive,
            Some(None) => Liveness::Unknown(Unknowable::OtherUser),
            // Nobody looks: then the keeper was all there was.
            Some(Some(false)) | None => Liveness::Dead,
        }
    }
}

/// Did the clocks of the record's last renewal go as ours did since?
fn is_by_our_clocks(record: &Record, now: Reading, policy: &LockPolicy) -> bool {
    sabotage!(Rule::ClocksGoTogether => true);
    let allowed = policy.max_clock_skew_ms;
    record.renewed_at().is_some_and(|at| now.parted_ms(&at, allowed).is_none())
}

/// Why none of the rules allows to overrule a live holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyNot {
    /// Of each rule that is on, what is missing.
    pub unmet: Vec<&'static str>,
    /// The keys of those that are off in this repository.
    pub off: Vec<&'static str>,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.unmet.join(", "))?;
        if self.off.is_empty() {
            return Ok(());
        }
        let mark = if self.unmet.is_empty() { "" } else { "; " };
        write!(f, "{mark}off in this repository: {}", self.off.join(", "))
    }
}

fn why_not(keeper: Option<Liveness>, claimant: Claimant<'_>, rules: &ReclaimRules) -> WhyNot {
    let mut parts = Vec::new();
    if rules.holder_dead {
        parts.push(match keeper {
            Some(Liveness::Alive) => "a process that needs it is alive",
            Some(Liveness::Unknown(Unknowable::OtherUser)) => {
                "its keeper has died, but only its user can see what else needs it"
            }
            Some(Liveness::Unknown(_)) => "it cannot be seen from here whether its keeper is alive",
            Some(Liveness::Dead) | None => "it has no keeper that could have died",
        });
    }
    if rules.same_user {
        parts.push("its holder is another user");
    }
    if rules.higher_privilege {
        parts.push("its holder's environment ranks no lower");
    }
    if rules.emergency_override && !claimant.emergency {
        parts.push("an emergency must be declared with --emergency");
    }
    let off = [
        (rules.holder_dead, "reclaim.holder_dead"),
        (rules.same_user, "reclaim.same_user"),
        (rules.higher_privilege, "reclaim.higher_privilege"),
        (rules.emergency_override, "reclaim.emergency_override"),
    ]
    .into_iter()
    .filter_map(|(on, name)| (!on).then_some(name))
    .collect();
    WhyNot { unmet: parts, off }
}

#[cfg(test)]
mod tests;
