//! Seed 002: formats of other tools, reclaim, messages. What each reclaim rule
//! decides is in the transcript `lock_reclaim` and in `jvs-lock`'s own tests.

use std::path::PathBuf;

use jvs_kit::live::process::eventually;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use crate::world::{PATIENCE, World};

fn now_ms() -> u64 {
    use jvs_repo::clock::Clock as _;
    jvs_repo::clock::SystemClock.now().wall.0
}

/// What each of the tools that were there before writes, where, for a minute.
fn locks_of_other_tools(world: &World) -> [(PathBuf, String); 3] {
    let rfc3339 = jvs_repo::clock::WallMs(now_ms()).rfc3339();
    let lokt = world.root().join(layout::legacy_lock(&WorktreeName::main()).as_str());
    [
        (world.record_path(), format!(r#"{{"owner":"box-7","since":{},"ttl":60}}"#, now_ms())),
        (
            world.record_path(),
            format!(
                r#"{{"owner":"box-7","since":"{rfc3339}","ttl":60,
                    "metadata":{{"hostname":"box","environment":"ci"}}}}"#
            ),
        ),
        (
            lokt,
            format!(
                r#"{{"version":1,"name":"main","owner":"box-7","host":"box","pid":1,
                    "acquired_ts":"{rfc3339}","ttl_sec":60}}"#
            ),
        ),
    ]
}

#[test]
fn seed002_locks_of_other_tools_are_respected_by_every_command() {
    let world = World::new();
    fs_err::write(world.root().join("main/file"), "one").expect("written");
    world.ok("ann", "snapshot first");
    for (path, text) in locks_of_other_tools(&world) {
        fs_err::write(&path, &text).expect("written by another tool");
        for command in [
            "lock acquire",
            "lock acquire --no-keeper --wait=1s",
            "lock steal --reason mine",
            "lock steal --reason mine --observe",
            "lock reclaim --reason mine",
            "lock reclaim --reason mine --emergency",
            "lock freeze --for 1m --reason mine",
            "run -- true",
            "snapshot second",
            "restore @ --in-place --reason mine",
        ] {
            let denied = world.jvs("ann", &format!("--json {command}")).run().exits(2).json();
            assert_eq!(denied["error"]["code"], "E_LOCK_CONFLICT", "{command}: {text}");
            assert_eq!(denied["error"]["details"]["holder_id"], "box-7", "{command}: {denied}");
            assert_eq!(denied["error"]["details"]["reason"], "LOCK_HELD", "{command}: {denied}");
            let there = fs_err::read_to_string(&path).expect("it is there");
            assert_eq!(there, text, "{command} wrote over it");
        }
        fs_err::remove_file(&path).expect("gone");
    }
    world.ok("ann", "lock acquire --no-keeper");
}

#[test]
fn seed002_locks_of_other_tools_are_shown_by_every_view() {
    let world = World::new();
    for (path, text) in locks_of_other_tools(&world) {
        fs_err::write(&path, &text).expect("written by another tool");
        let status = world.status();
        assert_eq!((&status["state"], &status["mine"]), (&"held".into(), &false.into()), "{text}");
        assert_eq!(status["other_tool"]["owner"], "box-7", "{status}");
        assert!(status["remaining_ms"].as_u64().is_some_and(|ms| ms <= 60_000), "{status}");
        let listed = world.json("onlooker", "lock list")["data"]["locks"][0].clone();
        assert_eq!(
            (&listed["state"], &listed["other_tool"]),
            (&"held".into(), &status["other_tool"])
        );
        for command in ["lock status", "lock list", "lock why", "status"] {
            let shown = world.ok("onlooker", command);
            for part in ["by box-7", "another tool", "expires in"] {
                assert!(shown.stdout().contains(part), "{command}: {}", shown.stdout());
            }
        }
        let why = world.json("onlooker", "lock why");
        assert_eq!(why["data"]["next"], "jvs lock acquire --wait -w main", "{why}");
        let gave_up = world.jvs("ann", "lock acquire --wait=1s").run().exits(2);
        assert!(gave_up.stderr().contains("by box-7"), "{}", gave_up.stderr());
        fs_err::remove_file(&path).expect("gone");
    }
}

#[test]
fn seed002_a_wait_gets_the_lock_when_the_other_tool_gives_it_back() {
    let world = World::new();
    for (path, text) in locks_of_other_tools(&world) {
        fs_err::write(&path, &text).expect("written by another tool");
        let waiting = world.jvs("ann", "lock acquire --no-keeper --wait=30s").start();
        eventually("it waits", PATIENCE, || world.tickets() == 1);
        fs_err::remove_file(&path).expect("given back");
        waiting.wait(PATIENCE).ok();
        world.ok("ann", "lock release");
    }
}

#[test]
fn seed002_a_lock_that_never_ends_is_told_with_what_to_do() {
    let world = World::new();
    let lokt = world.root().join(layout::legacy_lock(&WorktreeName::main()).as_str());
    let since = jvs_repo::clock::WallMs(now_ms()).rfc3339();
    let text = format!(r#"{{"owner":"box-7","acquired_ts":"{since}"}}"#);
    fs_err::write(&lokt, text).expect("written by another tool");
    let denied = world.jvs("ann", "lock acquire").run().exits(2);
    assert!(denied.stderr().contains("never expires"), "{}", denied.stderr());
    assert!(!denied.stderr().contains("doctor"), "which cannot help: {}", denied.stderr());
    let why = world.json("ann", "lock why");
    let next = why["data"]["next"].as_str().expect("text").to_owned();
    assert!(why["data"]["remaining_ms"].is_null(), "{why}");
    let (_, file) = next.split_once(": rm ").expect("a command that helps");
    fs_err::remove_file(file).expect("as it says");
    world.ok("ann", "lock acquire --no-keeper");
}

#[test]
fn seed002_a_conflict_says_who_since_when_how_long_until_when_and_what_to_do() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    let denied = world.jvs("bob", "lock acquire").env("TZ", "Asia/Kolkata").run().exits(2);
    let text = denied.stderr();
    for part in ["session ann", "since 20", "+05:30, for ", "at most ", "hint: ", "--wait"] {
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
    fs_err::write(world.record_path(), record.to_string()).expect("vandalised");
    let status = world.status();
    assert_eq!(status["state"], "held", "the register says who holds");
    assert!(status["record"].is_null(), "{status}");
}
