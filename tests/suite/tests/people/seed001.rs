//! Seed 001: a lease is renewed for as long as the command runs.

use jvs_kit::live::process::eventually;
use rustix::process::Signal;

use crate::world::{PATIENCE, World, is_gone};

/// Runs until there have been so many renewals.
fn until_renewed(times: usize) -> String {
    format!(
        "until [ $(jvs audit --json | grep -o '\"kind\":\"renew\"' | wc -l) -ge {times} ]; \
         do sleep 0.05; done"
    )
}

#[test]
fn seed001_ac1_the_heartbeat_is_a_fraction_of_the_lease() {
    let world = World::new();
    // Longer than two leases: with a heartbeat at or past the lease it would be lost.
    world.run("ci", "run --lease 1s", "sleep 2.5").run().ok();
    let renewals = world.events("renew").len();
    assert!(renewals >= 4, "at least two a lease: {renewals}");
    world.audit_holds();
}

#[test]
fn seed001_ac2_a_renewal_moves_the_end_of_the_lease() {
    let world = World::new();
    let script = "first=$(jvs lock status --json | grep -o '\"lease_expires_at\":\"[^\"]*\"'); \
                  until [ \"$first\" != \"$(jvs lock status --json | \
                  grep -o '\"lease_expires_at\":\"[^\"]*\"')\" ]; do sleep 0.05; done; echo moved";
    let outcome = world.run("ci", "run --lease 3s", script).run().ok();
    assert_eq!(outcome.stdout(), "moved\n");
}

#[test]
fn seed001_ac3_a_record_that_is_deleted_is_written_again() {
    let world = World::new();
    let record = world.record_path();
    let script =
        format!("rm {0}; until [ -e {0} ]; do sleep 0.02; done; echo back", record.display());
    let outcome = world.run("ci", "run --lease 3s", &script).run().ok();
    assert_eq!(outcome.stdout(), "back\n");
    world.eventually_free();
}

#[test]
fn seed001_ac4_a_stolen_lock_is_noticed_and_told() {
    let world = World::new();
    world.ok("ann", "config set reclaim.emergency_override true");
    let started = world.outside("started");
    let script = format!("touch {}; sleep 1.5; echo finished; exit 4", started.display());
    let running = world.run("ci", "run --lease 3s --on-loss warn", &script).start();
    eventually("the child runs", PATIENCE, || started.exists());
    world.ok("admin", "lock reclaim --emergency --reason stop --no-keeper");
    let outcome = running.wait(PATIENCE).exits(4);
    assert_eq!(outcome.stdout(), "finished\n", "with `warn` it runs on");
    assert!(outcome.stderr().contains("the lock was lost"), "{outcome}");
    assert!(outcome.stderr().contains("E_FENCING_MISMATCH"), "{outcome}");
    assert_eq!(world.status()["record"]["session_id"], "admin", "and takes nothing back");
}

#[test]
fn seed001_ac5_the_heartbeat_ends_with_the_child() {
    let world = World::new();
    let script = "jvs lock status --json | grep -o '\"keeper\":{\"pid\":[0-9]*' | grep -o '[0-9]*$' | tail -1";
    let outcome = world.run("ci", "run --lease 3s", script).run().ok();
    let keeper = outcome.stdout().trim().parse().expect("the keeper's pid");
    let keeper = rustix::process::Pid::from_raw(keeper).expect("not zero");
    assert!(is_gone(keeper), "the keeper ended before `jvs run` did");
    assert_eq!(world.status()["state"], "free");
    let events = world.json("onlooker", "audit")["data"]["events"].as_array().cloned();
    let last = events.expect("events").pop().expect("an event");
    assert_eq!(last["kind"], "release", "nothing is renewed after the release");
}

#[test]
fn seed001_ac6_renewals_are_audited() {
    let world = World::new();
    world.run("ci", "run --lease 3s", &until_renewed(3)).run().ok();
    assert!(world.events("renew").len() >= 3);
    assert!(world.events("renew").iter().all(|event| event["session_id"] == "ci"));
    world.audit_holds();
}

#[test]
fn seed001_ac7_a_lease_that_nobody_keeps_is_not_renewed() {
    let world = World::new();
    let answer = world.json("ci", "lock acquire --no-keeper --lease 1h");
    assert!(answer["data"].get("keeper").is_none());
    assert!(world.status()["keeper"].is_null());
    assert_eq!(world.events("renew").len(), 0);
}

#[test]
fn seed001_edge_a_lease_too_short_to_keep_is_refused() {
    let world = World::new();
    let refused = world.run("ci", "run --lease 100ms", "echo never").run().exits(64);
    assert_eq!(refused.stdout(), "");
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn seed001_edge_a_renewal_that_races_with_the_release_hurts_nobody() {
    let world = World::new();
    for _ in 0..6 {
        // The heartbeat is due about when the child ends.
        let outcome = world.run("ci", "run --lease 1500ms", "sleep 0.49").run().ok();
        assert_eq!(outcome.stderr(), "");
        assert_eq!(world.status()["state"], "free");
    }
    world.audit_holds();
}

#[test]
fn seed001_edge_a_signal_during_renewals_reaches_the_child() {
    let world = World::new();
    let started = world.outside("started");
    let script = format!(
        "trap 'echo got TERM; exit 9' TERM; touch {}; while :; do sleep 0.02; done",
        started.display()
    );
    let running = world.run("ci", "run --lease 3s", &script).start();
    eventually("the child runs", PATIENCE, || started.exists());
    world.signal(running.pid(), Signal::TERM);
    let outcome = running.wait(PATIENCE).exits(9);
    assert_eq!(outcome.stdout(), "got TERM\n");
}
