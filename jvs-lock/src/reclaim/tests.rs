use super::*;

#[test]
fn priorities_are_those_of_the_seed() {
    for (reason, priority) in [
        (ReclaimReason::LockExpired, Priority::High),
        (ReclaimReason::SameUser, Priority::Medium),
        (ReclaimReason::HigherPrivilege, Priority::Medium),
        (ReclaimReason::EmergencyOverride, Priority::High),
        (ReclaimReason::HolderDead, Priority::High),
    ] {
        assert_eq!(Decision::by(reason).priority, priority, "{reason}");
    }
}
