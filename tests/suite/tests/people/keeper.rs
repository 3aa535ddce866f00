//! The life of a keeper.

use jvs_kit::live::process::{Running, eventually};
use rustix::process::Signal;

use crate::world::{PATIENCE, World, is_gone};

#[test]
fn a_kept_lease_outlives_many_times_its_length_and_every_command() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 300ms");
    let first = world.status()["record"]["lease_expires_at"].clone();
    eventually("ten renewals", PATIENCE, || world.events("renew").len() >= 10);
    let status = world.status();
    assert_eq!((&status["state"], &status["fencing_token"]), (&"held".into(), &1.into()));
    assert_ne!(status["record"]["lease_expires_at"], first);
    assert_eq!(status["keeper"]["alive"], true);
    let keeper = world.keeper();
    world.ok("ann", "lock release");
    assert!(is_gone(keeper), "told before the release was issued");
    world.audit_holds();
}

#[test]
fn a_keeper_holds_none_of_its_starter_s_streams() {
    let world = World::new();
    // With `$(…)` the shell waits until nobody holds the pipe any more.
    let shell = world.jvs("ann", "lock acquire").under([
        "sh",
        "-c",
        "out=$(\"$0\" \"$@\" 2>&1); echo \"$out\"",
    ]);
    let outcome = shell.run().ok();
    assert!(outcome.stdout().contains("Locked worktree main"), "{outcome}");
    assert_eq!(world.status()["keeper"]["alive"], true);
}

#[test]
fn sigterm_to_the_keeper_gives_the_lock_back() {
    let world = World::new();
    world.ok("ann", "lock acquire");
    let keeper = world.keeper();
    world.signal(keeper, Signal::TERM);
    world.eventually_free();
    eventually("it has ended", PATIENCE, || is_gone(keeper));
    world.audit_holds();
}

#[test]
fn sigkill_of_the_keeper_means_expiry_and_nothing_worse() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 1s");
    let keeper = world.keeper();
    world.signal(keeper, Signal::KILL);
    eventually("it is seen to be gone", PATIENCE, || world.status()["keeper"]["alive"] == false);
    world.ok("bob", "lock acquire --no-keeper --wait=20s");
    let status = world.status();
    assert_eq!(
        (&status["record"]["session_id"], &status["fencing_token"]),
        (&"bob".into(), &2.into())
    );
    world.audit_holds();
}

#[test]
fn a_keeper_ends_when_its_time_is_over_and_gives_the_lock_back() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 400ms");
    let keeper = world.keeper();
    world.eventually_free();
    eventually("it has ended", PATIENCE, || is_gone(keeper));
}

#[test]
fn acquiring_again_replaces_the_keeper_and_its_time() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 1h");
    let first = world.keeper();
    world.ok("ann", "lock acquire --for 500ms");
    assert!(is_gone(first), "one keeper a lock");
    world.eventually_free();
    world.ok("ann", "lock acquire --for 1h");
    let second = world.keeper();
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    assert!(is_gone(second));
    assert!(world.status()["keeper"].is_null());
}

#[test]
fn a_keeper_ends_with_the_process_that_it_was_told_to_follow() {
    let world = World::new();
    let mut sleep = std::process::Command::new("sleep");
    sleep.arg("1000");
    let followed = Running::start(sleep);
    world.ok("ann", &format!("lock acquire --while {}", followed.pid().as_raw_nonzero()));
    assert_eq!(world.status()["state"], "held");
    drop(followed);
    world.eventually_free();
}

#[test]
fn the_keeper_of_a_terminal_session_ends_with_its_leader() {
    let world = World::new();
    let leader = world
        .jvs("", "lock acquire")
        .env_remove("JVS_SESSION_ID")
        .env_remove("JVS_KEEP_WHILE")
        .under(["setsid", "-w", "sh", "-c", "\"$0\" \"$@\" && exec sleep 1000"])
        .start();
    eventually("it is held", PATIENCE, || world.status()["keeper"]["alive"] == true);
    let keeper = world.keeper();
    let session = jvs_repo::proc::process_stat(keeper.as_raw_nonzero().get().unsigned_abs());
    assert_eq!(
        session.map(|stat| stat.session_leader),
        Some(keeper.as_raw_nonzero().get().unsigned_abs()),
        "the keeper is in a session of its own"
    );
    // `setsid -w` runs the leader as its child, in a group of its own.
    let id = world.status()["record"]["session_id"].as_str().map(str::to_owned);
    let pid = id.as_deref().and_then(|id| id.split(':').nth(2)?.parse().ok()).expect("its leader");
    world.signal(rustix::process::Pid::from_raw(pid).expect("not zero"), Signal::KILL);
    world.eventually_free();
    eventually("it has ended", PATIENCE, || is_gone(keeper));
    drop(leader);
}

#[test]
fn a_lost_lock_is_told_to_the_session_s_next_command_once() {
    let world = World::new();
    world.ok("ann", "config set reclaim.emergency_override true");
    world.ok("ann", "lock acquire --lease 600ms");
    let keeper = world.keeper();
    world.ok("admin", "lock reclaim --emergency --reason maintenance --no-keeper");
    eventually("the keeper has noticed", PATIENCE, || is_gone(keeper));
    let told = world.ok("ann", "lock status");
    assert!(told.stderr().contains("warning: worktree 'main' is not yours any more"), "{told}");
    assert_eq!(world.ok("ann", "lock status").stderr(), "", "once");
    assert_eq!(world.ok("admin", "lock status").stderr(), "", "and nobody else");
}

#[test]
fn a_keeper_that_slept_through_its_lease_gives_up_when_it_wakes() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 400ms");
    let keeper = world.keeper();
    world.signal(keeper, Signal::STOP);
    world.ok("bob", "lock acquire --no-keeper --wait=20s");
    world.signal(keeper, Signal::CONT);
    eventually("it has ended", PATIENCE, || is_gone(keeper));
    let told = world.ok("ann", "lock status");
    assert!(told.stderr().contains("not yours any more"), "{told}");
    assert_eq!(world.status()["record"]["session_id"], "bob");
    world.audit_holds();
}

#[test]
fn an_agent_works_with_one_name_over_many_shells() {
    let world = World::new();
    let shell = |script: &str| {
        let program = jvs_kit::live::binary::jvs();
        world
            .jvs("agent-7", "lock status")
            .env("JVS", program)
            .under(["setsid", "-w", "sh", "-c", script])
            .run()
    };
    shell("\"$JVS\" lock acquire --lease 500ms").ok();
    eventually("renewals", PATIENCE, || world.events("renew").len() >= 4);
    shell("\"$JVS\" lock renew").ok();
    shell("JVS_SESSION_ID=agent-8 \"$JVS\" lock acquire").exits(2);
    shell("\"$JVS\" lock release").ok();
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn the_keeper_is_small() {
    let world = World::new();
    world.ok("ann", "lock acquire");
    let pid = world.keeper().as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).expect("a field");
        line.split_whitespace().nth(1).expect("a value").parse().expect("a number")
    };
    assert!(field("Threads:") <= 2, "{status}");
    // What it has for itself; its program's pages are shared and in the cache.
    assert!(field("RssAnon:") < 1_500, "{} kB of its own", field("RssAnon:"));
}
