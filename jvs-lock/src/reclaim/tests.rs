use super::*;
use crate::liveness::Unknowable;
use crate::record::tests::granted;
use crate::session::tests::session;

const ALL: ReclaimRules = ReclaimRules {
    same_user: true,
    higher_privilege: true,
    emergency_override: true,
    holder_dead: true,
};

fn ann(environment: Environment, emergency: bool) -> Claimant<'static> {
    Claimant { user: "ann", environment, emergency }
}

fn stranger(environment: Environment, emergency: bool) -> Claimant<'static> {
    Claimant { user: "eve", environment, emergency }
}

fn reason(
    word: StatusWord,
    keeper: Option<Liveness>,
    claimant: Claimant<'_>,
    rules: &ReclaimRules,
) -> ReclaimReason {
    let (_, record) = granted();
    let decision = decide(word, Some(&record), keeper, claimant, rules);
    assert_eq!(decision.allowed, decision.reason != ReclaimReason::LockHeld);
    decision.reason
}

#[test]
fn each_reason_applies_to_its_own_situation() {
    use Environment::{Ci, Container, Local};
    let held = StatusWord::Held;
    for (word, keeper, claimant, expected) in [
        (StatusWord::Stealable, None, stranger(Local, false), ReclaimReason::LockExpired),
        (held, Some(Liveness::Dead), stranger(Local, false), ReclaimReason::HolderDead),
        (held, None, ann(Local, false), ReclaimReason::SameUser),
        (held, None, stranger(Ci, false), ReclaimReason::HigherPrivilege),
        (held, None, stranger(Local, true), ReclaimReason::EmergencyOverride),
        (held, None, stranger(Container, false), ReclaimReason::LockHeld),
        (held, Some(Liveness::Alive), stranger(Local, false), ReclaimReason::LockHeld),
        (StatusWord::Expired, None, stranger(Local, false), ReclaimReason::LockHeld),
        (StatusWord::Frozen, Some(Liveness::Dead), ann(Ci, true), ReclaimReason::LockHeld),
    ] {
        assert_eq!(reason(word, keeper, claimant, &ALL), expected, "{word:?} {claimant:?}");
    }
}

#[test]
fn by_default_only_a_dead_keeper_is_a_reason() {
    let rules = ReclaimRules::default();
    let bold = ann(Environment::Ci, true);
    assert_eq!(
        reason(StatusWord::Held, Some(Liveness::Dead), bold, &rules),
        ReclaimReason::HolderDead
    );
    assert_eq!(
        reason(StatusWord::Held, Some(Liveness::Alive), bold, &rules),
        ReclaimReason::LockHeld
    );
    let none = ReclaimRules { holder_dead: false, ..rules };
    assert_eq!(
        reason(StatusWord::Held, Some(Liveness::Dead), bold, &none),
        ReclaimReason::LockHeld
    );
}

#[test]
fn what_cannot_be_known_is_never_dead_and_neither_is_a_lease_without_a_keeper() {
    for keeper in [
        None,
        Some(Liveness::Unknown(Unknowable::OtherHost)),
        Some(Liveness::Unknown(Unknowable::OtherPidNamespace)),
    ] {
        let nobody = stranger(Environment::Local, false);
        assert_eq!(
            reason(StatusWord::Held, keeper, nobody, &ALL),
            ReclaimReason::LockHeld,
            "{keeper:?}"
        );
    }
}

#[test]
fn priorities_are_those_of_the_seed() {
    for (reason, priority) in [
        (ReclaimReason::LockExpired, Priority::High),
        (ReclaimReason::SameUser, Priority::Medium),
        (ReclaimReason::HigherPrivilege, Priority::Medium),
        (ReclaimReason::EmergencyOverride, Priority::High),
        (ReclaimReason::HolderDead, Priority::High),
        (ReclaimReason::LockHeld, Priority::Low),
    ] {
        assert_eq!(Decision::by(reason).priority, priority, "{reason}");
    }
}

#[test]
fn the_same_session_is_elsewhere_only_on_another_host_or_boot() {
    let (_, mut record) = granted();
    let me = session("s", 2);
    assert!(!is_same_session_elsewhere(&record, &me), "same host, other secret: a stranger");
    record.boot_id = jvs_repo::clock::BootId("boot-b".into());
    assert!(is_same_session_elsewhere(&record, &me));
    assert!(!is_same_session_elsewhere(&record, &session("t", 2)));
}

#[test]
fn a_user_with_a_long_name_is_the_same_user_and_its_namesake_is_not() {
    let (_, mut record) = granted();
    let long = "n".repeat(100);
    record.metadata.user_identity = user_as_recorded(&long);
    assert!(record.metadata.user_identity.len() <= 64);
    let ask = |user: &str| {
        let claimant = Claimant { user, environment: Environment::Local, emergency: false };
        let rules = ReclaimRules { higher_privilege: false, ..ALL };
        decide(StatusWord::Held, Some(&record), None, claimant, &rules).reason
    };
    assert_eq!(ask(&long), ReclaimReason::SameUser);
    for other in [&long[..64], &long[..47], &long[..99]] {
        assert_eq!(ask(other), ReclaimReason::LockHeld, "{other}");
    }
}
