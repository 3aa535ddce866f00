//! Each rule about who may overrule whom, switched off: somebody is then overruled who
//! must not be, or nobody learns of it.

use jvs_kit::sim::Solo;
use jvs_lock::mutation::{Rule, without};
use jvs_lock::session::Secret;
use jvs_lock::{FreezeError, Identity, Locks, Session, Want};
use jvs_protocol_tests::actor::LEASE_MS;
use jvs_repo::account::{self, Account};
use jvs_repo::clock::{BootId, Clock as _};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::ReclaimRules;
use jvs_repo::record::worktree::Isolation;
use jvs_world::repository::{main, repository};
use jvs_world::session::{identity, locks, session};
use jvs_world::sim::seams_of;

/// A repository in which Ann holds the lock.
struct World {
    solo: Solo,
}

impl World {
    fn new() -> Self {
        let world = World { solo: Solo::new() };
        let ann = world.user("ann", "ann", 1000);
        repository(&ann, Isolation::Exclusive);
        drop(ann.acquire(&main(), Want::lease(LEASE_MS)).expect("free"));
        drop(ann);
        world
    }

    /// The session `id` of a user who calls itself `name`.
    fn user(&self, id: &str, name: &str, uid: u32) -> Locks<'_> {
        let account = Some(Account { uid, gids: vec![uid] });
        let here = identity(self.solo.clock().boot_id());
        let me = Identity { user: name.into(), account, ..here };
        locks(seams_of(&self.solo), session(id, me))
    }

    /// Ann's session id, said on another host: its secret is another.
    fn holder_s_id_elsewhere(&self, name: &str, uid: u32) -> Locks<'_> {
        let account = Some(Account { uid, gids: vec![uid] });
        let there = Identity { host: "elsewhere".into(), ..identity(BootId("boot-b".into())) };
        let me = Identity { user: name.into(), account, ..there };
        let session = Session::new("ann".parse().expect("an id"), &Secret([9; 32]), me);
        locks(seams_of(&self.solo), session)
    }
}

fn force(locks: &Locks<'_>) -> Result<(), FreezeError> {
    locks.freeze(&main(), LEASE_MS, "maintenance", true).map(drop)
}

fn is_conflict<E: Coded>(answer: &Result<(), E>) -> bool {
    answer.as_ref().is_err_and(|error| error.code() == Code::LockConflict)
}

#[test]
fn a_forced_freeze_needs_a_rule_that_allows_it() {
    let forced = || force(&World::new().user("eve", "eve", 1001));
    assert!(is_conflict(&forced()));
    assert!(without(Rule::ForceObeysPolicy, forced).is_ok(), "anybody fences Ann");
}

#[test]
fn who_calls_itself_ann_is_not_ann() {
    let rules = ReclaimRules { same_user: true, ..ReclaimRules::default() };
    let taken = |name: &str, uid: u32| {
        let world = World::new();
        let rival = world.user("rival", name, uid);
        let want = Want::lease(LEASE_MS);
        rival.reclaim(&main(), want, &rules, false, &|_| None).map(drop)
    };
    assert!(is_conflict(&taken("ann", 1001)));
    taken("somebody", 1000).expect("it is Ann");
    let robbed = without(Rule::UsersAreTheirIds, || taken("ann", 1001));
    assert!(robbed.is_ok(), "a name is all that it takes");
}

#[test]
fn who_says_another_s_session_id_on_another_host_is_not_that_session() {
    let taken = |name: &str, uid: u32| {
        let world = World::new();
        let there = world.holder_s_id_elsewhere(name, uid);
        there.acquire(&main(), Want::lease(LEASE_MS)).map(drop)
    };
    assert!(is_conflict(&taken("ann", 1001)));
    assert!(is_conflict(&taken("eve", 1000)), "a number that another host gave out");
    taken("ann", 1000).expect("Ann's own, on another host of hers");
    let robbed = without(Rule::UsersAreTheirIds, || taken("ann", 1001));
    assert!(robbed.is_ok(), "a name and an id that everybody reads are all that it takes");
}

#[test]
fn once_admins_are_named_nobody_else_forces() {
    let rules = || ReclaimRules {
        emergency_override: true,
        admins: "uid:7".parse().expect("admins"),
        ..ReclaimRules::default()
    };
    let forced = |uid: u32| {
        let world = World::new();
        let rival = world.user("rival", "rival", uid).ruled_by(rules(), &|_| None);
        force(&rival)
    };
    assert!(is_conflict(&forced(1001)));
    forced(7).expect("an admin");
    assert!(without(Rule::AdminsAreAsked, || forced(1001)).is_ok(), "the list says nothing");
}

/// By which rule, over whom, by whom, and the ids of both.
type Told = (String, String, String, [u64; 2]);

/// What the log says of a forced freeze and of lifting another's freeze.
fn told_of() -> Vec<Told> {
    let world = World::new();
    let rules = ReclaimRules { emergency_override: true, ..ReclaimRules::default() };
    force(&world.user("eve", "eve", 1001).ruled_by(rules, &|_| None)).expect("an emergency");
    world.user("bob", "bob", 1002).unfreeze(&main(), "enough").expect("anybody may");
    let logs = jvs_lock::history::read_logs(world.solo.store()).expect("read");
    let told = logs.events.iter().filter_map(|logged| logged.event.details.as_ref());
    told.map(|details| {
        let text = |field: &str| details[field].as_str().expect("text").to_owned();
        let ids = ["old_uid", "new_uid"].map(|field| details[field].as_u64().expect("an id"));
        (text("reason"), text("old_session"), text("new_session"), ids)
    })
    .collect()
}

#[test]
fn whoever_is_overruled_is_in_the_log_with_who_did_it_and_why() {
    assert_eq!(
        told_of(),
        [
            ("EMERGENCY_OVERRIDE".into(), "ann".into(), "eve".into(), [1000, 1001]),
            ("ANY_OPERATOR".into(), "eve".into(), "bob".into(), [1001, 1002]),
        ]
    );
    assert!(without(Rule::OverrulingIsTold, told_of).is_empty(), "nobody learns of it");
}

/// Whoever makes a user namespace is root in it.
#[test]
fn an_id_that_a_user_namespace_maps_is_nobody_s() {
    use jvs_repo::mutation::{Rule, without};
    let root_of_its_own = "0 1000 1";
    assert!(!account::are_the_hosts_own(root_of_its_own));
    let believed =
        without(Rule::MappedIdsAreNobodys, || account::are_the_hosts_own(root_of_its_own));
    assert!(believed, "it would be the host's root");
}
