//! Seed 002: formats of other tools, reclaim, messages. What each reclaim rule
//! decides is in the transcript `lock_reclaim` and in `jvs-lock`'s own tests.

use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use crate::world::World;

fn now_ms() -> u64 {
    use jvs_repo::clock::Clock as _;
    jvs_repo::clock::SystemClock.now().wall.0
}

#[test]
fn seed002_locks_of_other_tools_are_respected_while_they_are_live() {
    let world = World::new();
    let rfc3339 = jvs_repo::clock::WallMs(now_ms()).rfc3339();
    let lokt = world.root().join(layout::legacy_lock(&WorktreeName::main()).as_str());
    for (path, text) in [
        (world.record_path(), format!(r#"{{"owner":"pid-7@box","since":{},"ttl":60}}"#, now_ms())),
        (
            world.record_path(),
            format!(
                r#"{{"owner":"ci-gh-1","since":"{rfc3339}","ttl":60,
                    "metadata":{{"hostname":"box","environment":"ci"}}}}"#
            ),
        ),
        (
            lokt,
            format!(
                r#"{{"version":1,"name":"main","owner":"agent-9","host":"box","pid":1,
                    "acquired_ts":"{rfc3339}","ttl_sec":60}}"#
            ),
        ),
    ] {
        std::fs::write(&path, &text).expect("written by another tool");
        let denied = world.jvs("ann", "lock acquire --json").run().exits(2).json();
        assert_eq!(denied["error"]["code"], "E_LOCK_CONFLICT", "{text}");
        assert_eq!(denied["error"]["details"]["reason"], "LOCK_HELD");
        std::fs::remove_file(&path).expect("gone");
    }
    world.ok("ann", "lock acquire --no-keeper");
}

#[test]
fn seed002_a_conflict_says_who_since_when_how_long_until_when_and_what_to_do() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    let denied = world.jvs("bob", "lock acquire").env("TZ", "Asia/Kolkata").run().exits(2);
    let text = denied.stderr();
    for part in ["session ann", "since 20", "+05:30, for ", "lease ends in", "hint: ", "--wait"] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
}

#[test]
fn seed002_an_emergency_is_short_and_says_so() {
    let world = World::new();
    let taken = world.json("admin", "lock acquire --no-keeper --purpose emergency");
    assert_eq!(taken["data"]["record"]["metadata"]["purpose"], "emergency");
    assert_eq!(taken["data"]["record"]["lease_duration_ms"], 300_000);
}

#[test]
fn seed002_a_record_with_metadata_beyond_the_closed_list_is_not_believed() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper");
    let mut record = world.record();
    record["metadata"]["migrated"] = true.into();
    std::fs::write(world.record_path(), record.to_string()).expect("vandalised");
    let status = world.status();
    assert_eq!(status["state"], "held", "the register says who holds");
    assert!(status["record"].is_null(), "{status}");
}
