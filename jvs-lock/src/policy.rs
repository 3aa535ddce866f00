//! Who may do what to a lock, when, and what the audit log keeps of it: the one table.
//! Pure: what is asked for, how the lock stands, who has it and who asks in, ruling out.
//!
//! Overruling is policy. It is never needed for safety (a dead lease ends by itself) and
//! never hurts it (the token is raised, the old holder is fenced). What of it needs no
//! policy is decided in `decide`; a test holds the two together.

use jvs_repo::account::Account;
use jvs_repo::clock::BootId;
use jvs_repo::config::ReclaimRules;
use jvs_repo::metadata::Environment;
use jvs_repo::sabotage;

use crate::liveness::Liveness;
use crate::mutation::Rule;
use crate::reclaim::ReclaimReason;
use crate::record::{Record, user_as_recorded};
use crate::session::{Identity, Session};
use crate::state::Hold;
use crate::view::{StatusWord, View};

/// What is asked for: the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Act {
    Acquire,
    Steal,
    Reclaim,
    Freeze,
    /// `freeze --force`.
    FreezeByForce,
    Unfreeze,
    /// `release --force`: ends the commands that rely on it first.
    ReleaseByForce,
    /// `worktree remove --force`: with its files.
    RemoveByForce,
    Transfer,
}

impl Act {
    /// All of them.
    pub const ALL: &[Act] = &[
        Act::Acquire,
        Act::Steal,
        Act::Reclaim,
        Act::Freeze,
        Act::FreezeByForce,
        Act::Unfreeze,
        Act::ReleaseByForce,
        Act::RemoveByForce,
        Act::Transfer,
    ];
}

/// How the lock stands to whoever asks: the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// Nobody has it.
    Free,
    /// Another had it, and its lease has been over for long enough.
    Over,
    /// This session has it.
    Own,
    /// Another session has it, and may be at work: also one whose lease looks over by
    /// clocks that prove nothing.
    Live,
    /// This session froze it.
    OwnFreeze,
    /// Another session froze it.
    Frozen,
    /// It was frozen, and the time of that is over.
    FreezeOver,
    /// Another tool has it.
    OtherTool,
    /// The worktree was removed.
    Retired,
}

impl Stands {
    /// All of them.
    pub const ALL: &[Stands] = &[
        Stands::Free,
        Stands::Over,
        Stands::Own,
        Stands::Live,
        Stands::OwnFreeze,
        Stands::Frozen,
        Stands::FreezeOver,
        Stands::OtherTool,
        Stands::Retired,
    ];

    /// How what was seen stands. `doubtful`: what looks over does so by clocks that prove
    /// nothing.
    pub(crate) fn of(view: &View, doubtful: bool) -> Stands {
        let frozen = matches!(view.state.hold, Hold::Frozen(_));
        match view.word() {
            StatusWord::Retired => Stands::Retired,
            _ if view.mine && !frozen => Stands::Own,
            // What holds it is another tool's, whatever our own record says.
            _ if view.foreign.is_some() => Stands::OtherTool,
            StatusWord::Free if frozen && !doubtful => Stands::FreezeOver,
            _ if frozen && view.mine => Stands::OwnFreeze,
            _ if frozen => Stands::Frozen,
            StatusWord::Free | StatusWord::Frozen => Stands::Free,
            StatusWord::Stealable if !doubtful => Stands::Over,
            StatusWord::Stealable | StatusWord::Held | StatusWord::Expired => Stands::Live,
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Claimant<'c> {
    /// The session.
    pub session: &'c str,
    /// The process that speaks for it.
    pub identity: &'c Identity,
    /// Does it declare an emergency? To force is to declare one.
    pub emergency: bool,
}

impl<'c> Claimant<'c> {
    /// The session, which does or does not declare an emergency.
    pub fn of(session: &'c Session, emergency: bool) -> Self {
        Claimant { session: session.id().as_str(), identity: session.identity(), emergency }
    }

    fn account(&self) -> Option<&'c Account> {
        self.identity.account.as_ref()
    }
}

/// Whose lock it is, as far as is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct LockHolder<'h> {
    /// Its record.
    pub record: Option<&'h Record>,
    /// What is known of the process that keeps the lease; `None` if nobody does, or
    /// nobody is known to.
    pub keeper: Option<Liveness>,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// It may, and nobody is overruled.
    Granted,
    /// It may, by this reason; the audit log keeps it, with both of them.
    Overrules(ReclaimReason),
    /// Somebody has it, and no reason is good enough.
    Held,
    /// An operator froze it.
    Frozen,
    /// There is nothing of the kind that it asks for, or it is not its own.
    NothingOfIt,
    /// The repository names who may, and it is not among them.
    NotAdmin,
}

impl Ruling {
    /// May it?
    pub fn allows(self) -> bool {
        matches!(self, Ruling::Granted | Ruling::Overrules(_))
    }

    /// The reason by which somebody is overruled.
    pub fn reason(self) -> Option<ReclaimReason> {
        match self {
            Ruling::Overrules(reason) => Some(reason),
            _ => None,
        }
    }
}

/// The table.
pub fn may(
    act: Act,
    stands: Stands,
    holder: LockHolder<'_>,
    who: Claimant<'_>,
    rules: &ReclaimRules,
) -> Ruling {
    match (act, stands) {
        (_, Stands::Retired) => Ruling::NothingOfIt,
        (Act::Unfreeze, Stands::OwnFreeze | Stands::FreezeOver) => Ruling::Granted,
        (Act::Unfreeze, Stands::Frozen) => may_lift(holder, who, rules),
        (Act::ReleaseByForce, Stands::Own) => may_force_own(who, rules),
        (Act::Transfer, Stands::Own) => Ruling::Granted,
        (Act::Unfreeze | Act::ReleaseByForce | Act::Transfer, _) => Ruling::NothingOfIt,

        (_, Stands::Free | Stands::FreezeOver) => Ruling::Granted,
        (Act::Reclaim, Stands::Over) => Ruling::Overrules(ReclaimReason::LockExpired),
        (_, Stands::Over) => Ruling::Granted,
        (Act::Freeze, Stands::Own) => Ruling::Held,
        (_, Stands::Own) => Ruling::Granted,

        (Act::Acquire | Act::Steal, Stands::Live) => match holder.record {
            Some(record) if is_same_session_elsewhere(record, who) => {
                Ruling::Overrules(ReclaimReason::SameSession)
            }
            _ => Ruling::Held,
        },
        (Act::Reclaim, Stands::Live) => may_overrule(holder, who, rules),
        (Act::FreezeByForce, Stands::Live) => may_freeze_over(holder, who, rules),
        (Act::Freeze | Act::RemoveByForce, Stands::Live) => Ruling::Held,

        (Act::FreezeByForce, Stands::OwnFreeze) => Ruling::Granted,
        (Act::FreezeByForce, Stands::Frozen) => may_lift(holder, who, rules),
        (_, Stands::OwnFreeze | Stands::Frozen) => Ruling::Frozen,

        // Nothing is known of that holder, so only an emergency is reason enough.
        (Act::Reclaim, Stands::OtherTool) => emergency(who, rules).unwrap_or(Ruling::Held),
        (Act::FreezeByForce, Stands::OtherTool) => {
            may_freeze_over(LockHolder::default(), Claimant { emergency: true, ..who }, rules)
        }
        (_, Stands::OtherTool) => Ruling::Held,
    }
}

/// May a live holder be overruled, and why?
fn may_overrule(holder: LockHolder<'_>, who: Claimant<'_>, rules: &ReclaimRules) -> Ruling {
    if rules.holder_dead && holder.keeper == Some(Liveness::Dead) {
        return Ruling::Overrules(ReclaimReason::HolderDead);
    }
    if let Some(record) = holder.record {
        if rules.same_user && is_same_user(record, who.identity) == Some(true) {
            return Ruling::Overrules(ReclaimReason::SameUser);
        }
        let ranks = rank(who.identity.environment).zip(rank(record.metadata.environment));
        if rules.higher_privilege && ranks.is_some_and(|(mine, theirs)| mine < theirs) {
            return Ruling::Overrules(ReclaimReason::HigherPrivilege);
        }
    }
    emergency(who, rules).unwrap_or(Ruling::Held)
}

/// A forced freeze obeys what a reclaim obeys: to force is to declare an emergency, which
/// is a reason where the repository says so.
fn may_freeze_over(holder: LockHolder<'_>, who: Claimant<'_>, rules: &ReclaimRules) -> Ruling {
    sabotage!(Rule::ForceObeysPolicy => Ruling::Overrules(ReclaimReason::EmergencyOverride));
    may_overrule(holder, Claimant { emergency: true, ..who }, rules)
}

/// What becomes of an emergency that is declared; `None` if none is.
fn emergency(who: Claimant<'_>, rules: &ReclaimRules) -> Option<Ruling> {
    if !who.emergency {
        return None;
    }
    Some(match admission(who, rules) {
        Admission::Admin => Ruling::Overrules(ReclaimReason::EmergencyOverride),
        Admission::NotAdmin => Ruling::NotAdmin,
        Admission::NobodyIsNamed if rules.emergency_override => {
            Ruling::Overrules(ReclaimReason::EmergencyOverride)
        }
        Admission::NobodyIsNamed => Ruling::Held,
    })
}

/// May another's freeze be lifted? By its user, by those who are named, else by anybody
/// who can write to the repository.
fn may_lift(holder: LockHolder<'_>, who: Claimant<'_>, rules: &ReclaimRules) -> Ruling {
    let its_user = holder.record.and_then(|record| is_same_user(record, who.identity));
    match admission(who, rules) {
        _ if its_user == Some(true) => Ruling::Overrules(ReclaimReason::SameUser),
        Admission::Admin => Ruling::Overrules(ReclaimReason::Admin),
        Admission::NobodyIsNamed => Ruling::Overrules(ReclaimReason::AnyOperator),
        Admission::NotAdmin => Ruling::NotAdmin,
    }
}

/// May one's own commands be ended?
fn may_force_own(who: Claimant<'_>, rules: &ReclaimRules) -> Ruling {
    match admission(who, rules) {
        Admission::Admin | Admission::NobodyIsNamed => Ruling::Granted,
        Admission::NotAdmin => Ruling::NotAdmin,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admission {
    Admin,
    NotAdmin,
    NobodyIsNamed,
}

/// Once the repository names its admins, they may force, and nobody else.
fn admission(who: Claimant<'_>, rules: &ReclaimRules) -> Admission {
    sabotage!(Rule::AdminsAreAsked => Admission::NobodyIsNamed);
    match (rules.admins.are_named(), rules.admins.include(who.account())) {
        (false, _) => Admission::NobodyIsNamed,
        (true, true) => Admission::Admin,
        (true, false) => Admission::NotAdmin,
    }
}

/// Is it the same user? By the ids that kernels gave out, not by names that anybody may
/// choose. On one boot of one host an id is one user. On another host it is a number that
/// another administrator gave out, so there the names have to agree, too. `None` if either
/// id is not known: then nobody is the same.
pub fn is_same_user(record: &Record, me: &Identity) -> Option<bool> {
    is_user(record, me.uid(), &user_as_recorded(&me.user), &me.boot_id)
}

/// The same of whoever has this id and this name on that boot.
pub(crate) fn is_user(
    record: &Record,
    uid: Option<u32>,
    name: &str,
    boot: &BootId,
) -> Option<bool> {
    sabotage!(Rule::UsersAreTheirIds => Some(is_called(record, name)));
    let same_id = record.uid? == uid?;
    Some(same_id && (record.boot_id == *boot || is_called(record, name)))
}

fn is_called(record: &Record, name: &str) -> bool {
    !name.is_empty() && record.metadata.user_identity == name
}

/// Is the holder this very session of this very user, on another host or another boot? An
/// id alone makes nobody the holder: everybody may read it, and two may choose the same.
fn is_same_session_elsewhere(record: &Record, who: Claimant<'_>) -> bool {
    let me = who.identity;
    record.session_id == who.session
        && (record.boot_id != me.boot_id || record.metadata.hostname != me.host)
        && is_same_user(record, me) == Some(true)
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

#[cfg(test)]
mod tests;
