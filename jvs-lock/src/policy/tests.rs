use jvs_repo::clock::{BootId, BootMs, Reading, WallMs};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::{HolderNonce, OpNonce};
use jvs_repo::name::WorktreeName;

use super::*;
use crate::decide::{self, Acquire, Bound, Own, Refusal};
use crate::judge::{Judgement, Method, Standing};
use crate::legacy::{Legacy, LegacyTool};
use crate::liveness::Unknowable;
use crate::record::FoundRecord;
use crate::record::tests::granted;
use crate::session::tests::session;
use crate::state::State;

fn all_rules() -> ReclaimRules {
    ReclaimRules {
        same_user: true,
        higher_privilege: true,
        emergency_override: true,
        ..ReclaimRules::default()
    }
}

fn naming(admins: &str) -> ReclaimRules {
    ReclaimRules { admins: admins.parse().expect("admins"), ..ReclaimRules::default() }
}

/// The holder's user, in another session.
fn ann() -> Identity {
    session("t", 2).identity().clone()
}

fn eve() -> Identity {
    let account = Some(Account { uid: 1001, gids: vec![1001, 50] });
    Identity { user: "eve".into(), account, ..ann() }
}

fn asks(identity: &Identity, emergency: bool) -> Claimant<'_> {
    Claimant { session: "t", identity, emergency }
}

fn ruling(act: Act, stands: Stands, who: &Identity, rules: &ReclaimRules) -> Ruling {
    let (_, record) = granted();
    may(act, stands, LockHolder { record: Some(&record), keeper: None }, asks(who, false), rules)
}

/// Every row and column, for somebody else than the holder, where the repository has
/// said nothing, has allowed everything, and has named its admins.
#[test]
fn the_table_is_this_one() {
    use Ruling::{Frozen, Granted, Held, NotAdmin, NothingOfIt};
    use Stands::{Free, FreezeOver, Live, OtherTool, Over, Own, OwnFreeze, Retired};
    let by = Ruling::Overrules;
    let emergency = by(ReclaimReason::EmergencyOverride);
    let by_default = ReclaimRules::default();
    let rules = [by_default, all_rules(), naming("uid:1001"), naming("gid:7")];
    for act in Act::ALL.iter().copied() {
        for stands in Stands::ALL.iter().copied() {
            let told = rules.each_ref().map(|rules| ruling(act, stands, &eve(), rules));
            let expected = match (act, stands) {
                (_, Retired) => [NothingOfIt; 4],
                (Act::Acquire | Act::Steal | Act::Reclaim, Free | Own | FreezeOver) => [Granted; 4],
                (Act::Acquire | Act::Steal, Over) => [Granted; 4],
                (Act::Acquire | Act::Steal, Live | OtherTool) => [Held; 4],
                (Act::Reclaim, Over) => [by(ReclaimReason::LockExpired); 4],
                (Act::Reclaim, Live | OtherTool) => [Held; 4],
                (Act::Acquire | Act::Steal | Act::Reclaim, OwnFreeze | Stands::Frozen) => {
                    [Frozen; 4]
                }
                (Act::Freeze, Free | Over | FreezeOver) => [Granted; 4],
                (Act::Freeze, Own | Live | OtherTool) => [Held; 4],
                (Act::Freeze, OwnFreeze | Stands::Frozen) => [Frozen; 4],
                (Act::FreezeByForce, Free | Over | Own | OwnFreeze | FreezeOver) => [Granted; 4],
                (Act::FreezeByForce, Live | OtherTool) => [Held, emergency, emergency, NotAdmin],
                (Act::FreezeByForce | Act::Unfreeze, Stands::Frozen) => {
                    let anybody = by(ReclaimReason::AnyOperator);
                    [anybody, anybody, by(ReclaimReason::Admin), NotAdmin]
                }
                (Act::Unfreeze, OwnFreeze | FreezeOver) => [Granted; 4],
                (Act::Unfreeze, _) => [NothingOfIt; 4],
                (Act::ReleaseByForce, Own) => [Granted, Granted, Granted, NotAdmin],
                (Act::Transfer, Own) => [Granted; 4],
                (Act::ReleaseByForce | Act::Transfer, _) => [NothingOfIt; 4],
                (Act::RemoveByForce, Free | Over | Own | FreezeOver) => [Granted; 4],
                (Act::RemoveByForce, Live | OtherTool) => [Held; 4],
                (Act::RemoveByForce, OwnFreeze | Stands::Frozen) => [Frozen; 4],
            };
            assert_eq!(told, expected, "{act:?}, {stands:?}");
        }
    }
}

#[test]
fn each_reason_applies_to_its_own_situation() {
    let (_, record) = granted();
    let (ann, eve) = (ann(), eve());
    let in_ci = Identity { environment: Environment::Ci, ..eve.clone() };
    let in_container = Identity { environment: Environment::Container, ..eve.clone() };
    let rules = all_rules();
    for (keeper, who, emergency, expected) in [
        (Some(Liveness::Dead), &eve, false, Some(ReclaimReason::HolderDead)),
        (None, &ann, false, Some(ReclaimReason::SameUser)),
        (None, &in_ci, false, Some(ReclaimReason::HigherPrivilege)),
        (None, &eve, true, Some(ReclaimReason::EmergencyOverride)),
        (None, &in_container, false, None),
        (Some(Liveness::Alive), &eve, false, None),
    ] {
        let holder = LockHolder { record: Some(&record), keeper };
        let ruling = may(Act::Reclaim, Stands::Live, holder, asks(who, emergency), &rules);
        assert_eq!(ruling.reason(), expected, "{who:?}");
        assert_eq!(ruling.allows(), expected.is_some());
    }
}

#[test]
fn ci_ranks_above_cloud_above_local_and_a_container_has_no_rank() {
    use Environment::{Ci, Cloud, Container, Local};
    let (_, granted) = granted();
    let above = [(Ci, Cloud), (Ci, Local), (Cloud, Local)];
    for mine in [Ci, Cloud, Local, Container] {
        for theirs in [Ci, Cloud, Local, Container] {
            let mut record = granted.clone();
            record.metadata.environment = theirs;
            let me = Identity { environment: mine, ..eve() };
            let holder = LockHolder { record: Some(&record), keeper: None };
            let ruling = may(Act::Reclaim, Stands::Live, holder, asks(&me, false), &all_rules());
            let expected =
                above.contains(&(mine, theirs)).then_some(ReclaimReason::HigherPrivilege);
            assert_eq!(ruling.reason(), expected, "{mine:?} over {theirs:?}");
        }
    }
}

#[test]
fn by_default_only_a_dead_keeper_is_a_reason() {
    let (_, record) = granted();
    let bold = Identity { environment: Environment::Ci, ..ann() };
    for act in [Act::Reclaim, Act::FreezeByForce] {
        let ask = |keeper, rules: &ReclaimRules| {
            let holder = LockHolder { record: Some(&record), keeper };
            may(act, Stands::Live, holder, asks(&bold, true), rules).reason()
        };
        let rules = ReclaimRules::default();
        assert_eq!(ask(Some(Liveness::Dead), &rules), Some(ReclaimReason::HolderDead));
        assert_eq!(ask(Some(Liveness::Alive), &rules), None);
        let none = ReclaimRules { holder_dead: false, ..rules };
        assert_eq!(ask(Some(Liveness::Dead), &none), None);
    }
}

#[test]
fn what_cannot_be_known_is_never_dead_and_neither_is_a_lease_without_a_keeper() {
    let (_, record) = granted();
    for keeper in [
        None,
        Some(Liveness::Unknown(Unknowable::OtherHost)),
        Some(Liveness::Unknown(Unknowable::OtherPidNamespace)),
    ] {
        let holder = LockHolder { record: Some(&record), keeper };
        let ruling =
            may(Act::Reclaim, Stands::Live, holder, asks(&eve(), false), &ReclaimRules::default());
        assert_eq!(ruling, Ruling::Held, "{keeper:?}");
    }
}

/// A reclaim and a forced freeze of the same live lock get the same answer, whatever the
/// rules, the holder and whoever asks.
#[test]
fn a_forced_freeze_obeys_what_a_reclaim_in_an_emergency_obeys() {
    let (_, record) = granted();
    let mut asked = 0;
    for bits in 0..16u8 {
        for admins in ["none", "uid:1001", "gid:50", "uid:7"] {
            let rules = ReclaimRules {
                same_user: bits & 1 != 0,
                higher_privilege: bits & 2 != 0,
                emergency_override: bits & 4 != 0,
                holder_dead: bits & 8 != 0,
                ..naming(admins)
            };
            for who in [ann(), eve(), Identity { account: None, ..eve() }] {
                for keeper in [None, Some(Liveness::Dead), Some(Liveness::Alive)] {
                    let holder = LockHolder { record: Some(&record), keeper };
                    let ask =
                        |act, force| may(act, Stands::Live, holder, asks(&who, force), &rules);
                    assert_eq!(
                        ask(Act::FreezeByForce, false),
                        ask(Act::Reclaim, true),
                        "{rules:?}"
                    );
                    asked += 1;
                }
            }
        }
    }
    assert_eq!(asked, 16 * 4 * 3 * 3);
}

#[test]
fn a_user_is_the_id_that_the_kernel_gave_out_and_not_a_name() {
    let (_, record) = granted();
    let same = |who: &Identity| is_same_user(&record, who);
    let eve_as_ann = Identity { user: "ann".into(), ..eve() };
    let ann_as_eve = Identity { user: "eve".into(), ..ann() };
    assert_eq!(same(&ann()), Some(true));
    assert_eq!(same(&ann_as_eve), Some(true), "JVS_USER hides nobody");
    assert_eq!(same(&eve_as_ann), Some(false), "JVS_USER makes nobody somebody else");
    let elsewhere = |who: Identity| Identity { boot_id: BootId("boot-b".into()), ..who };
    assert_eq!(same(&elsewhere(ann())), Some(true));
    assert_eq!(same(&elsewhere(ann_as_eve)), Some(false), "another host's 1000 is another's");
    assert_eq!(same(&elsewhere(eve_as_ann)), Some(false));
    assert_eq!(same(&Identity { account: None, ..ann() }), None, "a mapped id is nobody's");
    let old = Record { uid: None, ..record.clone() };
    assert_eq!(is_same_user(&old, &ann()), None, "older records do not tell");
    let rules = all_rules();
    let holder = LockHolder { record: Some(&old), keeper: None };
    let ruling = may(Act::Reclaim, Stands::Live, holder, asks(&ann(), false), &rules);
    assert_eq!(ruling, Ruling::Held);
}

/// On another host names count, too, and all of a long one does.
#[test]
fn a_user_with_a_long_name_is_the_same_user_and_its_namesake_is_not() {
    let (_, mut record) = granted();
    let long = "n".repeat(100);
    record.metadata.user_identity = user_as_recorded(&long);
    assert!(record.metadata.user_identity.len() <= 64);
    let same = |user: &str| {
        let boot_id = BootId("boot-b".into());
        is_same_user(&record, &Identity { user: user.into(), boot_id, ..ann() })
    };
    assert_eq!(same(&long), Some(true));
    for other in [&long[..64], &long[..47], &long[..99]] {
        assert_eq!(same(other), Some(false), "{other}");
    }
}

#[test]
fn the_same_session_is_elsewhere_only_on_another_host_or_boot() {
    let (_, mut record) = granted();
    let rules = ReclaimRules::default();
    let ask = |record: &Record, session: &str| {
        let who = Claimant { session, identity: &ann(), emergency: false };
        let holder = LockHolder { record: Some(record), keeper: None };
        may(Act::Acquire, Stands::Live, holder, who, &rules)
    };
    assert_eq!(ask(&record, "s"), Ruling::Held, "same host, other secret: a stranger");
    record.boot_id = BootId("boot-b".into());
    assert_eq!(ask(&record, "s"), Ruling::Overrules(ReclaimReason::SameSession));
    assert_eq!(ask(&record, "t"), Ruling::Held);
}

#[test]
fn a_session_s_id_alone_makes_nobody_its_user() {
    let (_, record) = granted();
    let rules = all_rules();
    let taken = |act, who: Identity| {
        let who = Claimant { session: "s", identity: &who, emergency: false };
        may(act, Stands::Live, LockHolder { record: Some(&record), keeper: None }, who, &rules)
    };
    let same = Ruling::Overrules(ReclaimReason::SameSession);
    let moved = |who: Identity| Identity { host: "elsewhere".into(), ..who };
    let rebooted = |who: Identity| Identity { boot_id: BootId("boot-b".into()), ..who };
    for act in [Act::Acquire, Act::Steal] {
        assert_eq!(taken(act, moved(ann())), same, "a container of hers on this host");
        assert_eq!(taken(act, rebooted(ann())), same, "her other host");
        for who in [
            eve(),
            Identity { user: "ann".into(), ..eve() },
            Identity { account: None, ..ann() },
            Identity { account: None, ..eve() },
        ] {
            assert_eq!(taken(act, moved(who.clone())), Ruling::Held, "{who:?}");
            assert_eq!(taken(act, rebooted(who.clone())), Ruling::Held, "{who:?}");
        }
    }
}

/// What needs no policy is decided by the protocol: there the table says what it does.
#[test]
fn the_table_says_what_the_protocol_decides() {
    let policy = LockPolicy::default();
    let (held, _) = granted();
    let op = OpNonce([9; 8]);
    let holder = held.holder().expect("held");
    let (mine, other) = (holder, session("t", 2).nonce());
    let judged = |standing| Judgement {
        standing,
        remaining_ms: 0,
        stealable_in_ms: 0,
        method: Method::SameBoot,
        observed_skew_ms: 0,
        evidence: Vec::new(),
        watch_ms: 0,
        nobody_renews: false,
    };
    let (live, over) = (judged(Standing::Live), judged(Standing::Stealable));
    let free = held.released(op);
    let frozen = free.frozen(holder, 1_000, jvs_repo::clock::WallMs(5), OpNonce([8; 8]));
    let cases: [(Stands, State, _, Option<&Judgement>); 8] = [
        (Stands::Free, free, other, None),
        (Stands::Over, held, other, Some(&over)),
        (Stands::Own, held, mine, Some(&live)),
        (Stands::Live, held, other, Some(&live)),
        (Stands::OwnFreeze, frozen, mine, Some(&live)),
        (Stands::Frozen, frozen, other, Some(&live)),
        (Stands::FreezeOver, frozen, other, Some(&over)),
        (Stands::Retired, free.retired(op), other, None),
    ];
    for (stands, state, me, judgement) in cases {
        let table = |act| ruling(act, stands, &eve(), &ReclaimRules::default());
        let bound = Bound { term: state.term(), holder: me };
        let next = OpNonce([10; 8]);
        let said = |act: Act, decided: Result<(), Refusal>| {
            let told = table(act);
            assert_eq!(told.allows(), decided.is_ok(), "{act:?}, {stands:?}: {decided:?}");
            let frozen = decided == Err(Refusal::Frozen);
            assert_eq!(told == Ruling::Frozen, frozen, "{act:?}, {stands:?}: {decided:?}");
        };
        let acquired = decide::acquire(&state, me, next, judgement, &policy);
        said(Act::Acquire, acquired.map(drop::<Acquire>));
        said(Act::Steal, acquired.map(drop));
        let froze = decide::freeze(&state, next, judgement, false, &policy);
        said(Act::Freeze, froze.map(drop::<Own>));
        let retired = decide::retire(&state, judgement, me, next, &policy);
        said(Act::RemoveByForce, retired.map(drop));
        let lifted = decide::unfreeze(&state, state.term(), false);
        assert_eq!(table(Act::Unfreeze).allows(), lifted.is_ok(), "{stands:?}");
        let given = decide::transfer(&state, bound, other, false);
        assert_eq!(table(Act::Transfer).allows(), given.is_ok(), "{stands:?}");
        let released = decide::release(&state, bound, false);
        assert_eq!(table(Act::ReleaseByForce).allows(), released.is_ok(), "{stands:?}");
    }
}

/// What was seen of a lock in that state.
fn seen(state: State, standing: Option<Standing>, mine: bool) -> View {
    let judgement = standing.map(|standing| Judgement {
        standing,
        method: Method::SameBoot,
        remaining_ms: 0,
        stealable_in_ms: 0,
        watch_ms: 0,
        nobody_renews: false,
        observed_skew_ms: 0,
        evidence: Vec::new(),
    });
    View {
        worktree: WorktreeName::main(),
        state,
        found: FoundRecord::Nothing,
        judgement,
        mine,
        foreign: None,
        unheard: None,
        restoring: false,
        at: Reading { wall: WallMs(0), boot: BootMs(0) },
        seen_by: None,
    }
}

/// The same, beside a lock of another tool.
fn beside_another_tool(view: View) -> View {
    let foreign = Legacy {
        format: LegacyTool::Lokt,
        path: "lock".into(),
        owner: "agent".into(),
        since: WallMs(0),
        ends: None,
    };
    View { foreign: Some(foreign), ..view }
}

#[test]
fn how_a_lock_stands_is_told_from_what_was_seen() {
    use Standing::{Expired, Live, Stealable};
    let op = OpNonce([9; 8]);
    let (held, _) = granted();
    let frozen = held.frozen(HolderNonce([5; 16]), 1, WallMs(0), op);
    let (free, retired) = (held.released(op), held.retired(op));
    // What is seen, and how it stands if the clocks prove it, and if they prove nothing.
    for (view, proven, doubtful) in [
        (seen(free, None, false), Stands::Free, Stands::Free),
        (seen(retired, None, true), Stands::Retired, Stands::Retired),
        (seen(held, Some(Live), true), Stands::Own, Stands::Own),
        (seen(held, Some(Stealable), true), Stands::Own, Stands::Own),
        (seen(held, Some(Live), false), Stands::Live, Stands::Live),
        (seen(held, Some(Expired), false), Stands::Live, Stands::Live),
        (seen(held, Some(Stealable), false), Stands::Over, Stands::Live),
        (seen(frozen, Some(Live), false), Stands::Frozen, Stands::Frozen),
        (seen(frozen, Some(Live), true), Stands::OwnFreeze, Stands::OwnFreeze),
        (seen(frozen, Some(Stealable), false), Stands::FreezeOver, Stands::Frozen),
        (seen(frozen, Some(Stealable), true), Stands::FreezeOver, Stands::OwnFreeze),
    ] {
        assert_eq!(Stands::of(&view, false), proven, "{view:?}");
        assert_eq!(Stands::of(&view, true), doubtful, "{view:?}");
        let other = match proven {
            Stands::Own | Stands::Retired => proven,
            _ => Stands::OtherTool,
        };
        assert_eq!(Stands::of(&beside_another_tool(view), false), other);
    }
}

#[test]
fn a_freeze_is_lifted_by_its_user_also_where_others_are_admins() {
    let by = |who: &Identity, rules: &ReclaimRules| {
        ruling(Act::FreezeByForce, Stands::Frozen, who, rules)
    };
    let (nobody_named, named) = (ReclaimRules::default(), naming("uid:1001"));
    let overrules = Ruling::Overrules;
    assert_eq!(by(&ann(), &nobody_named), overrules(ReclaimReason::SameUser));
    assert_eq!(by(&ann(), &named), overrules(ReclaimReason::SameUser));
    assert_eq!(by(&eve(), &nobody_named), overrules(ReclaimReason::AnyOperator));
    assert_eq!(by(&eve(), &named), overrules(ReclaimReason::Admin));
    assert_eq!(by(&eve(), &naming("gid:7")), Ruling::NotAdmin);
}
