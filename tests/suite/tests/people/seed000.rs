//! Seed 000: the same owner acquires again.

use jvs_kit::live::process::eventually;
use serde_json::Value;

use crate::world::{PATIENCE, World};

#[test]
fn seed000_ac1_same_owner_reacquires() {
    let world = World::new();
    world.ok("agent-1", "lock acquire");
    let again = world.json("agent-1", "lock acquire");
    assert_eq!(again["data"]["how"], "refreshed");
    assert_eq!(again["data"]["fencing_token"], 1, "under the same token");
}

#[test]
fn seed000_ac2_a_refresh_updates_process_host_and_time() {
    let world = World::new();
    let first = world.json("agent-1", "lock acquire --no-keeper --lease 1m");
    let second = world.json("agent-1", "lock acquire --no-keeper --lease 5m");
    let (first, second) = (&first["data"]["record"], &second["data"]["record"]);
    assert_ne!(first["holder_id"], second["holder_id"], "another process speaks for it");
    assert_ne!(first["metadata"]["process_id"], second["metadata"]["process_id"]);
    assert_eq!(second["lease_duration_ms"], 300_000);
    let later = |field: &str| first[field].as_str() < second[field].as_str();
    assert!(later("last_renewed_at") && later("lease_expires_at"), "{first} {second}");
    assert_eq!(first["lock_id"], second["lock_id"], "it is the same acquisition");
}

#[test]
fn seed000_ac3_another_owner_is_denied() {
    let world = World::new();
    world.ok("agent-1", "lock acquire");
    let denied = world.jvs("agent-2", "lock acquire --json").run().exits(2).json();
    assert_eq!(denied["error"]["code"], "E_LOCK_CONFLICT");
    assert_eq!(denied["error"]["details"]["session_id"], "agent-1");
}

#[test]
fn seed000_ac4_a_refresh_is_a_renew_event() {
    let world = World::new();
    world.ok("agent-1", "lock acquire --no-keeper");
    assert_eq!((world.events("acquire").len(), world.events("renew").len()), (1, 0));
    world.ok("agent-1", "lock acquire --no-keeper");
    assert_eq!((world.events("acquire").len(), world.events("renew").len()), (1, 1));
    world.audit_holds();
}

#[test]
fn seed000_ac6_waiting_refreshes_at_once() {
    let world = World::new();
    world.ok("agent-1", "lock acquire --no-keeper");
    let again = world.json("agent-1", "lock acquire --no-keeper --wait=1s");
    assert_eq!(again["data"]["how"], "refreshed");
    assert_eq!(world.tickets(), 0);
}

#[test]
fn seed000_edge_an_expired_lock_of_the_same_owner_is_refreshed() {
    let world = World::new();
    world.ok("agent-1", "lock acquire --no-keeper --lease 200ms");
    eventually("it is over", PATIENCE, || world.status()["state"] == "stealable");
    let again = world.json("agent-1", "lock acquire --no-keeper --lease 1m");
    assert_eq!(
        (&again["data"]["how"], &again["data"]["fencing_token"]),
        (&"refreshed".into(), &1.into())
    );
}

#[test]
fn seed000_edge_another_owner_s_stale_lock_is_taken_over() {
    let world = World::new();
    world.ok("agent-1", "lock acquire --no-keeper --lease 200ms");
    let taken = world.json("agent-2", "lock acquire --no-keeper --wait=10s");
    assert_eq!(
        (&taken["data"]["how"], &taken["data"]["fencing_token"]),
        (&"stolen".into(), &2.into())
    );
}

#[test]
fn seed000_edge_a_corrupted_record_is_replaced() {
    let world = World::new();
    world.ok("agent-1", "lock acquire --no-keeper");
    fs_err::write(world.record_path(), "{ torn").expect("vandalised");
    world.ok("agent-1", "lock acquire --no-keeper");
    assert_eq!(world.record()["session_id"], "agent-1");
    world.jvs("agent-2", "lock acquire").run().exits(2);
}

#[test]
fn seed000_edge_refreshes_at_the_same_time_all_succeed() {
    let world = World::new();
    world.ok("agent-1", "lock acquire --no-keeper");
    let all: Vec<_> =
        (0..8).map(|_| world.jvs("agent-1", "lock acquire --no-keeper --json").start()).collect();
    for running in all {
        let answer: Value = running.wait(crate::world::PATIENCE).ok().json();
        assert_eq!(answer["data"]["fencing_token"], 1);
    }
    world.audit_holds();
}
