//! Taking a lock from a live holder, where `policy` allows it; its reasons, and what the
//! audit log keeps of any overruling.

use std::fmt;

use jvs_repo::clock::Reading;
use jvs_repo::config::{LockPolicy, ReclaimRules};
use jvs_repo::name::WorktreeName;
use jvs_repo::record::audit::{Details, OtherTool, Reclaimed};
use jvs_repo::sabotage;
use serde::Serialize;

use crate::decide::is_skewed;
use crate::error::{AcquireError, NotOverruled, ReclaimError, TakeOverError};
use crate::hold;
use crate::judge::Judgement;
use crate::lease::Lease;
use crate::liveness::{Liveness, Observer, Unknowable, keeper_liveness};
use crate::locks::{Locks, Want};
use crate::mutation::Rule;
use crate::policy::{self, Act, Claimant, LockHolder, Stands};
use crate::queue::Lookup;
use crate::record::Record;
use crate::session::Session;
use crate::view::View;

/// Why a lock may be taken from its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// One of those whom the repository names lifts a freeze.
    Admin,
    /// Anybody may lift a freeze where the repository names nobody.
    AnyOperator,
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
            ReclaimReason::Admin => "ADMIN",
            ReclaimReason::AnyOperator => "ANY_OPERATOR",
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// By which reason.
    pub reason: ReclaimReason,
    /// How good that is.
    pub priority: Priority,
}

impl Decision {
    /// May it also take what another tool holds? Nothing is known of that holder,
    /// so only a declared emergency may, where the repository allows it.
    pub(crate) fn overrules_other_tools(&self) -> bool {
        self.reason == ReclaimReason::EmergencyOverride
    }

    /// Somebody is overruled for this reason.
    pub(crate) const fn by(reason: ReclaimReason) -> Decision {
        let priority = match reason {
            ReclaimReason::LockExpired
            | ReclaimReason::HolderDead
            | ReclaimReason::EmergencyOverride
            | ReclaimReason::Admin
            | ReclaimReason::SameSession => Priority::High,
            ReclaimReason::SameUser | ReclaimReason::HigherPrivilege => Priority::Medium,
            ReclaimReason::AnyOperator => Priority::Low,
        };
        Decision { reason, priority }
    }
}

/// What the audit log keeps of it.
pub(crate) fn details(decision: Decision, view: &View, me: &Session) -> Details {
    let old = view.record();
    let reclaimed = Reclaimed {
        reason: decision.reason.to_string(),
        priority: decision.priority.as_str().to_owned(),
        old_holder: old.map(|record| record.holder_id.clone()),
        old_uid: old.and_then(|record| record.uid),
        old_session: old.map(|record| record.session_id.clone()),
        old_holder_nonce: view.state.holder(),
        other_tool: view.foreign.as_ref().map(OtherTool::from),
        new_holder: me.holder_id(),
        new_uid: me.identity().uid(),
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
    ) -> Result<Lease<'r>, ReclaimError> {
        let who = Claimant::of(&self.session, emergency);
        let taken = self.take(worktree, want, &|view| {
            let holder = self.holder_in(view, Some(lookup));
            let ruling = policy::may(Act::Reclaim, self.stands(view), holder, who, rules);
            ruling.reason().map(Decision::by)
        });
        match taken {
            Err(AcquireError::Take(TakeOverError::Conflict(view))) => {
                Err(self.denied(view, Act::Reclaim, who, rules, Some(lookup)).into())
            }
            taken => Ok(taken?),
        }
    }
}

impl Locks<'_> {
    /// How what was seen stands to this session.
    pub(crate) fn stands(&self, view: &View) -> Stands {
        // What looks over by a clock that nobody has checked is not over.
        let doubtful = |judged: &Judgement| judged.watch_ms > 0 || is_skewed(judged, &self.policy);
        Stands::of(view, view.judgement.as_ref().is_some_and(doubtful))
    }

    /// Whose lock it is, and whether whoever keeps it lives. Where nobody can look a
    /// process up, none is known to have died.
    pub(crate) fn holder_in<'v>(
        &self,
        view: &'v View,
        lookup: Option<Lookup<'_>>,
    ) -> LockHolder<'v> {
        if view.foreign.is_some() {
            return LockHolder::default();
        }
        let record = view.record();
        let keeper = record.zip(lookup).and_then(|(it, lookup)| self.keeper_of(view, it, lookup));
        LockHolder { record, keeper }
    }

    fn keeper_of(&self, view: &View, record: &Record, lookup: Lookup<'_>) -> Option<Liveness> {
        let clock = self.seams.clock.boot_clock();
        let pid_namespace = self.session.identity().pid_namespace;
        let here = Observer { clock: &clock, pid_namespace };
        let keeper = record.keeper.as_ref()?;
        Some(match is_by_our_clocks(record, view.at, &self.policy) {
            // The ids of a copied machine are the original's: its processes are not.
            false => Liveness::Unknown(Unknowable::OtherHost),
            true => match keeper_liveness(keeper, here, lookup) {
                Liveness::Dead => self.nothing_rests_on(view),
                known => known,
            },
        })
    }

    /// What was refused because somebody has it, with why nothing allows to overrule that.
    pub(crate) fn denied(
        &self,
        view: Box<View>,
        act: Act,
        who: Claimant<'_>,
        rules: &ReclaimRules,
        lookup: Option<Lookup<'_>>,
    ) -> NotOverruled {
        let why_not = why_not(self.holder_in(&view, lookup), who, rules);
        NotOverruled { view, act, why_not }
    }

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

fn why_not(holder: LockHolder<'_>, who: Claimant<'_>, rules: &ReclaimRules) -> WhyNot {
    let mut parts = Vec::new();
    if rules.holder_dead {
        parts.push(match holder.keeper {
            Some(Liveness::Alive) => "a process that needs it is alive",
            Some(Liveness::Unknown(Unknowable::OtherUser)) => {
                "its keeper has died, but only its user can see what else needs it"
            }
            Some(Liveness::Unknown(_)) => "it cannot be seen from here whether its keeper is alive",
            Some(Liveness::Dead) | None => "it has no keeper that could have died",
        });
    }
    if rules.same_user {
        parts.push(match holder.record.map(|it| policy::is_same_user(it, who.identity)) {
            Some(Some(_)) => "its holder is another user",
            _ => "the user id of its holder or of this process is not known",
        });
    }
    if rules.higher_privilege {
        parts.push("its holder's environment ranks no lower");
    }
    let admins = rules.admins.are_named();
    match who.emergency {
        true if admins => parts.push("policy.admins names others than this user"),
        false if admins || rules.emergency_override => {
            parts.push("an emergency must be declared with --emergency");
        }
        _ => {}
    }
    let off = [
        (rules.holder_dead, "reclaim.holder_dead"),
        (rules.same_user, "reclaim.same_user"),
        (rules.higher_privilege, "reclaim.higher_privilege"),
        (rules.emergency_override || admins, "reclaim.emergency_override"),
    ]
    .into_iter()
    .filter_map(|(on, name)| (!on).then_some(name))
    .collect();
    WhyNot { unmet: parts, off }
}

#[cfg(test)]
mod tests;
