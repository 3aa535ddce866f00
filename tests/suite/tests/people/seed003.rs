//! Seed 003: the end of a lease is written down. Every lock of ours ends, so
//! the seed's locks without an end have no counterpart (spec/waiting.md).

use jvs_kit::live::process::eventually;
use jvs_repo::clock::WallMs;
use serde_json::Value;

use crate::world::{PATIENCE, World};

fn ms(record: &Value, field: &str) -> u64 {
    let text = record[field].as_str().unwrap_or_else(|| panic!("{field} in {record}"));
    WallMs::parse_rfc3339(text).unwrap_or_else(|| panic!("{text} is RFC 3339")).0
}

#[test]
fn seed003_ac1_the_end_is_written_on_acquire() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 5m");
    let record = world.record();
    assert_eq!(ms(&record, "lease_expires_at") - ms(&record, "created_at"), 300_000);
}

#[test]
fn seed003_ac3_the_end_is_written_on_freeze() {
    let world = World::new();
    world.ok("admin", "lock freeze --for 10m --reason audit");
    let record = world.record();
    assert_eq!(ms(&record, "lease_expires_at") - ms(&record, "created_at"), 600_000);
}

#[test]
fn seed003_ac4_the_end_is_refreshed_by_renewals() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 600ms");
    let first = ms(&world.record(), "lease_expires_at");
    eventually("a renewal has moved the end", PATIENCE, || {
        ms(&world.record(), "lease_expires_at") > first
    });
    world.ok("ann", "lock release");
}

#[test]
fn seed003_ac5_the_end_is_refreshed_by_acquiring_again() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 1m");
    let first = ms(&world.record(), "lease_expires_at");
    world.ok("ann", "lock acquire --no-keeper --lease 5m");
    assert!(ms(&world.record(), "lease_expires_at") > first + 200_000);
}

#[test]
fn seed003_ac6_a_lease_whose_end_is_past_is_over() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 200ms");
    eventually("it can be taken", PATIENCE, || world.status()["state"] == "stealable");
}

#[test]
fn seed003_ac7_a_record_of_an_older_tool_without_the_end_is_understood() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    let mut record = world.record();
    let end = record["lease_expires_at"].clone();
    record.as_object_mut().expect("an object").remove("lease_expires_at");
    fs_err::write(world.record_path(), record.to_string()).expect("as an older tool wrote it");
    let status = world.status();
    assert_eq!((&status["state"], &status["record"]["lease_expires_at"]), (&"held".into(), &end));
}

#[test]
fn seed003_ac8_json_output_has_the_end() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    let status = world.status();
    assert!(ms(&status["record"], "lease_expires_at") > 0);
    let denied = world.jvs("bob", "lock acquire --json").run().exits(2).json();
    assert_eq!(
        denied["error"]["details"]["lease_expires_at"],
        status["record"]["lease_expires_at"]
    );
    assert_eq!(world.json("bob", "lock why")["data"]["record"], status["record"]);
}

#[test]
fn seed003_ac9_human_output_shows_the_end_absolute_and_relative() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    let end = world.record()["lease_expires_at"].as_str().expect("text").to_owned();
    let status = world.ok("bob", "lock status");
    assert!(status.stdout().contains("59 min") && status.stdout().contains(&end), "{status}");
}

#[test]
fn seed003_ac10_the_limits_of_wall_clocks_are_documented() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/waiting.md");
    let spec = fs_err::read_to_string(root).expect("the page is there");
    for word in ["monotonic", "clock skew", "NTP"] {
        assert!(spec.contains(word), "{word}");
    }
}
