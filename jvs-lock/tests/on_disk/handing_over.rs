//! A lock changes hands while its holder lives: transfer, reclaim, the same
//! session elsewhere, and locks of other tools.

use jvs_lock::legacy::{self, Migration};
use jvs_lock::queue::{Look, Queue};
use jvs_lock::{LeaseOrigin, NoSuchWaiter, SessionId, Want};
use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::clock::{Clock, WallMs};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::ReclaimRules;
use jvs_repo::layout;
use jvs_repo::next::Next;
use jvs_repo::proc::ProcessStat;
use jvs_repo::store::Store;
use jvs_world::repository::main;

use crate::world::World;

const MINUTE: u64 = 60_000;

fn all_alive(_pid: u32) -> Option<ProcessStat> {
    Some(ProcessStat { start_ticks: 1, session_leader: 1, zombie: false })
}

fn none_alive(_pid: u32) -> Option<ProcessStat> {
    None
}

/// The details of the one event of `kind` that announced something.
fn details_of(world: &World, kind: EventKind) -> serde_json::Value {
    let logs = jvs_lock::history::read_logs(&world.store).expect("read");
    let mut found = logs
        .events
        .iter()
        .filter(|logged| logged.event.kind == kind && logged.event.phase == EventPhase::Intent);
    let event = found.next().expect("it was announced");
    assert!(found.next().is_none(), "once");
    event.event.details.clone().expect("with details")
}

#[test]
fn a_transfer_leaves_no_gap_and_fences_the_giver() {
    let world = World::new();
    let (giver, receiver) = (world.session("giver"), world.session("receiver"));
    let lease = giver.acquire(&main(), Want::lease(MINUTE)).expect("free");
    let queue = Queue::new(world.seams(&world.clock), &main());
    let mut place = queue.join(receiver.session(), 30_000).expect("joined");
    let token = lease.token();

    let found = giver.waiter(&main(), receiver.session().id(), &all_alive).expect("read");
    let waiter = found.expect("it waits");
    lease.transfer(&waiter, MINUTE, "your turn").expect("handed over");
    giver.wake(&main(), &waiter);

    assert_eq!(place.look(&all_alive).expect("looked"), Look::Gone, "which wakes the receiver");
    let error = giver.acquire(&main(), Want::lease(MINUTE)).expect_err("it is the receiver's");
    assert_eq!(error.code(), Code::LockConflict);
    let lease = receiver.acquire(&main(), Want::lease(MINUTE)).expect("its own already");
    assert_eq!((lease.how(), lease.token().0), (LeaseOrigin::Refreshed, token.0 + 1));
    assert_eq!(lease.record().map(|record| record.session_id.as_str()), Some("receiver"));
    let details = details_of(&world, EventKind::Transfer);
    assert_eq!(details["new_holder_nonce"], receiver.session().nonce().to_string());
    assert!(world.audit(&[&main()]).problems.is_empty());
}

#[test]
fn a_lock_is_handed_only_to_somebody_who_waits() {
    let world = World::new();
    let giver = world.session("giver");
    let nobody: SessionId = "nobody".parse().expect("valid");
    assert!(giver.waiter(&main(), &nobody, &all_alive).expect("read").is_none());
    let error = NoSuchWaiter { worktree: main(), session: Some(nobody.to_string()) };
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(error.next(), Some(Next::HaveSessionWait("nobody".into(), main())));
    assert!(giver.next_in_line(&main(), &all_alive).expect("read").is_none());
    assert_eq!(NoSuchWaiter { session: None, ..error }.code(), Code::NotFound);
}

#[test]
fn a_reclaimed_lock_has_a_new_token_and_an_event_with_both_holders() {
    let world = World::new();
    let (old, new) = (world.session("old"), world.session("new"));
    let mut lease = old.acquire(&main(), Want::lease(MINUTE)).expect("free");
    lease.set_keeper(Some(old.session().keeper(&world.clock))).expect("written");
    let want = || Want { reason: Some("it crashed"), ..Want::lease(MINUTE) };
    let rules = ReclaimRules::default();

    let error = new.reclaim(&main(), want(), &rules, true, &all_alive).expect_err("it lives");
    assert_eq!(error.code(), Code::LockConflict);
    assert_eq!(error.details().expect("told")["reason"], "LOCK_HELD");
    assert!(error.to_string().contains("a process that needs it is alive"), "{error}");

    let taken = new.reclaim(&main(), want(), &rules, false, &none_alive).expect("its keeper died");
    assert_eq!((taken.how(), taken.token().0), (LeaseOrigin::Reclaimed, lease.token().0 + 1));
    assert_eq!(lease.renew().expect_err("fenced").code(), Code::FencingMismatch);
    let details = details_of(&world, EventKind::Reclaim);
    assert_eq!(details["reason"], "HOLDER_DEAD");
    assert_eq!(details["priority"], "high");
    assert_eq!((&details["old_session"], &details["new_session"]), (&"old".into(), &"new".into()));
    assert!(world.audit(&[&main()]).problems.is_empty());
}

#[test]
fn a_lease_without_a_keeper_is_not_dead_because_its_command_has_ended() {
    let world = World::new();
    let (old, new) = (world.session("old"), world.session("new"));
    let lease = old.acquire(&main(), Want::lease(MINUTE)).expect("free");
    let rules = ReclaimRules::default();
    let error = new
        .reclaim(&main(), Want::lease(MINUTE), &rules, false, &none_alive)
        .expect_err("nobody keeps it, so nobody can have died");
    assert_eq!(error.code(), Code::LockConflict);
    lease.release().expect("released");
}

#[test]
fn the_same_session_on_another_host_takes_over_under_a_new_token() {
    let world = World::new();
    let here = world.session("agent-1");
    let there = world.same_session_with_another_secret("agent-1", "boot-b");
    let mut lease = here.acquire(&main(), Want::lease(MINUTE)).expect("free");
    let taken = there.acquire(&main(), Want::lease(MINUTE)).expect("its own session");
    assert_eq!((taken.how(), taken.token().0), (LeaseOrigin::Reclaimed, lease.token().0 + 1));
    assert_eq!(lease.renew().expect_err("fenced").code(), Code::FencingMismatch);
    assert_eq!(details_of(&world, EventKind::Reclaim)["reason"], "SAME_SESSION");

    let stranger = world.session("agent-2");
    let error = stranger.acquire(&main(), Want::lease(MINUTE)).expect_err("another session");
    assert_eq!(error.code(), Code::LockConflict);
}

fn put(world: &World, path: &jvs_repo::store::RepoPath, text: &str) {
    let file = world.store.create_new(path).expect("new");
    file.write_at(0, text.as_bytes()).expect("written");
}

fn ends_in(world: &World, seconds: u64) -> String {
    let WallMs(now) = world.clock.now().wall;
    format!(r#"{{"owner":"pid-7@old-host","since":{now},"ttl":{seconds}}}"#)
}

#[test]
fn a_lock_of_another_tool_is_respected_while_it_is_live() {
    let world = World::new();
    put(&world, &layout::lock_record(&main()), &ends_in(&world, 60));
    let locks = world.session("s");
    let error = locks
        .acquire_in_turn(&main(), Want::lease(MINUTE), &all_alive)
        .expect_err("the other tool has it");
    assert_eq!(error.code(), Code::LockConflict);
    assert!(error.to_string().contains("pid-7@old-host"), "{error}");
    world.clock.pass(70_000);
    let lease = locks.acquire_in_turn(&main(), Want::lease(MINUTE), &all_alive).expect("over");
    assert!(lease.drift().is_empty());
    assert_eq!(lease.record().map(|record| record.session_id.as_str()), Some("s"));
}

#[test]
fn a_live_lock_of_another_tool_becomes_a_freeze_that_ends_when_it_would_have() {
    let world = World::new();
    for path in [layout::lock_record(&main()), layout::legacy_lock(&main())] {
        put(&world, &path, &ends_in(&world, 60));
        let locks = world.session("doctor");
        let migrated = legacy::migrate(&locks, &main()).expect("migrated");
        assert!(matches!(migrated[..], [Migration::Frozen { .. }]), "{migrated:?}");
        assert_eq!(
            legacy::find(&world.store, &main()).expect("looked").locks,
            [],
            "the file is gone"
        );
        let error = locks.acquire(&main(), Want::lease(MINUTE)).expect_err("frozen");
        assert_eq!(error.code(), Code::LockFrozen);
        assert!(error.to_string().contains("pid-7@old-host"), "{error}");
        assert_eq!(legacy::migrate(&locks, &main()).expect("nothing to do"), []);
        world.clock.pass(70_000);
        let lease = locks.acquire(&main(), Want::lease(MINUTE)).expect("it ended by itself");
        lease.release().expect("released");
    }
}

#[test]
fn a_lock_of_another_tool_that_is_over_is_removed_and_one_that_never_ends_is_kept() {
    let world = World::new();
    let locks = world.session("doctor");
    put(&world, &layout::legacy_lock(&main()), r#"{"owner":"a","since":1000,"ttl":1}"#);
    let migrated = legacy::migrate(&locks, &main()).expect("migrated");
    assert!(matches!(migrated[..], [Migration::Removed { .. }]), "{migrated:?}");
    assert_eq!(details_of(&world, EventKind::Migrate)["legacy"]["owner"], "a");
    let forever = r#"{"name":"main","owner":"a","acquired_ts":"2023-11-14T22:13:20Z"}"#;
    put(&world, &layout::legacy_lock(&main()), forever);
    let migrated = legacy::migrate(&locks, &main()).expect("looked");
    assert!(matches!(migrated[..], [Migration::Kept { .. }]), "{migrated:?}");
    assert_eq!(legacy::find(&world.store, &main()).expect("looked").locks.len(), 1);
}
