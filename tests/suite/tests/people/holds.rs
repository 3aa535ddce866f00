//! One hold, many processes: what a person would say about it.

use jvs_kit::live::process::{Running, eventually};
use rustix::process::Signal;

use crate::world::{PATIENCE, World, is_gone};

/// Starts a run that goes on until the file it answers with is there, and waits until
/// it runs.
fn run_until_told(world: &World, session: &str, options: &str, name: &str) -> (Running, Told) {
    let (up, go) = (world.outside(&format!("{name}-up")), world.outside(&format!("{name}-go")));
    let script =
        format!("echo > {}; while [ ! -e {} ]; do sleep 0.02; done", up.display(), go.display());
    let running = world.run(session, options, &script).start();
    eventually("it runs", PATIENCE, || up.exists());
    (running, Told(go))
}

struct Told(std::path::PathBuf);

impl Told {
    fn go(&self) {
        std::fs::write(&self.0, "").expect("told to go on");
    }
}

fn holder(world: &World) -> (String, u64) {
    let status = world.status();
    let session = status["record"]["session_id"].as_str().unwrap_or("nobody").to_owned();
    (session, status["fencing_token"].as_u64().unwrap_or(0))
}

#[test]
fn my_second_run_still_has_the_lock_when_my_first_one_ends() {
    let world = World::new();
    let (first, go_first) = run_until_told(&world, "ann", "run", "first");
    let (second, go_second) = run_until_told(&world, "ann", "run --join", "second");
    go_first.go();
    first.wait(PATIENCE).ok();
    assert_eq!(holder(&world), ("ann".to_owned(), 1), "the second still runs");
    world.jvs("bob", "lock acquire --no-keeper").run().exits(2);
    go_second.go();
    let outcome = second.wait(PATIENCE).ok();
    assert_eq!(outcome.stderr(), "");
    world.eventually_free();
    world.audit_holds();
}

#[test]
fn two_builds_in_one_terminal_do_not_run_at_once_unless_i_say_so() {
    let world = World::new();
    let (first, go) = run_until_told(&world, "ann", "run", "first");
    let refused = world.run("ann", "run", "true").run().exits(2);
    let pid = first.pid().as_raw_nonzero().to_string();
    assert!(refused.stderr().contains("another command of this session"), "{refused}");
    assert!(refused.stderr().contains(&pid), "it says which: {refused}");
    assert!(refused.stderr().contains("jvs run --join"), "{refused}");
    world.run("ann", "run --join", "true").run().ok();
    // In line, it gets its turn.
    let waiting = world.run("ann", "run --wait=20s", "echo mine").start();
    go.go();
    first.wait(PATIENCE).ok();
    assert_eq!(waiting.wait(PATIENCE).ok().stdout(), "mine\n");
    world.eventually_free();
}

#[test]
fn a_snapshot_does_not_make_my_lease_longer_than_i_said() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 20s");
    world.ok("ann", "snapshot mine");
    assert_eq!(world.status()["record"]["lease_duration_ms"], 20_000);
    assert_eq!(holder(&world), ("ann".to_owned(), 1));
}

#[test]
fn i_asked_for_the_lock_so_my_runs_may_share_it_and_it_stays_mine() {
    let world = World::new();
    world.ok("ann", "lock acquire");
    let (first, go) = run_until_told(&world, "ann", "run", "first");
    world.run("ann", "run", "true").run().ok();
    go.go();
    first.wait(PATIENCE).ok();
    assert_eq!(holder(&world), ("ann".to_owned(), 1));
    world.ok("ann", "lock release");
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn the_lock_i_took_while_my_build_ran_is_still_mine_when_the_build_ends() {
    let world = World::new();
    let (build, go) = run_until_told(&world, "ann", "run", "build");
    world.ok("ann", "lock acquire");
    go.go();
    build.wait(PATIENCE).ok();
    assert_eq!(holder(&world), ("ann".to_owned(), 1));
    eventually("it is kept", PATIENCE, || world.status()["keeper"]["alive"] == true);
    world.ok("ann", "lock release");
}

#[test]
fn the_lock_i_took_right_after_my_build_was_killed_stays_mine() {
    let world = World::new();
    for round in 0..3 {
        let (build, _) = run_until_told(&world, "ann", "run", &format!("build{round}"));
        world.signal(build.pid(), Signal::KILL);
        let taken = world.ok("ann", "lock acquire --no-keeper --lease 10m --json").json();
        let token = taken["data"]["fencing_token"].as_u64();
        // Until well after the keeper of the killed one has ended what that left.
        let renewals = world.events("renew").len();
        world.run("ann", "run", "sleep 1").run().ok();
        assert!(world.events("renew").len() > renewals);
        assert_eq!(holder(&world), ("ann".to_owned(), token.unwrap_or(0)), "round {round}");
        drop(build);
        world.ok("ann", "lock release");
    }
}

#[test]
fn i_cannot_release_the_lock_under_my_own_build_unless_i_end_it() {
    let world = World::new();
    let (build, _go) = run_until_told(&world, "ann", "run", "build");
    let refused = world.jvs("ann", "lock release --json").run().exits(2).json();
    let by = &refused["error"]["details"]["relied_on_by"][0];
    assert_eq!(by["kind"], "run", "{refused}");
    assert_eq!(by["pid"], i64::from(build.pid().as_raw_nonzero().get()));
    assert_eq!(holder(&world), ("ann".to_owned(), 1), "nothing was changed");
    world.ok("ann", "lock release --force");
    eventually("it was ended", PATIENCE, || is_gone(build.pid()));
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn the_time_i_locked_it_for_does_not_end_my_build() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 300ms --lease 600ms");
    let (build, go) = run_until_told(&world, "ann", "run --lease 600ms", "build");
    let renewals = world.events("renew").len();
    eventually("renewed long after the time", PATIENCE, || {
        world.events("renew").len() > renewals + 4
    });
    assert_eq!(holder(&world), ("ann".to_owned(), 1));
    go.go();
    build.wait(PATIENCE).ok();
    world.eventually_free();
}

#[test]
fn i_am_told_that_my_time_is_over() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 200ms");
    let keeper = world.keeper();
    eventually("it has ended", PATIENCE, || is_gone(keeper));
    let told = world.ok("ann", "lock status");
    assert!(told.stderr().contains("the time that it was locked for is over"), "{told}");
}

#[test]
fn what_somebody_else_did_meanwhile_is_not_overwritten_without_my_word() {
    let world = World::new();
    world.ok("ann", "config set reclaim.emergency_override true");
    world.ok("ann", "lock acquire");
    world.ok("bob", "lock reclaim --emergency --reason stuck --no-keeper");
    world.ok("bob", "snapshot theirs");
    world.ok("bob", "lock release");
    for words in ["snapshot mine", "run -- true", "restore @ --in-place --reason x"] {
        let refused = world.jvs("ann", words).run().exits(5);
        assert!(refused.stderr().contains("E_FENCING_MISMATCH"), "{refused}");
        assert!(refused.stderr().contains("jvs lock acquire -w main"), "{refused}");
    }
    assert_eq!(world.status()["fencing_token"], 2, "nothing was changed");
    let history = world.json("ann", "history");
    assert_eq!(history["data"]["snapshots"].as_array().map(Vec::len), Some(1));
    // "I know."
    world.ok("ann", "lock acquire");
    world.ok("ann", "snapshot mine");
    world.ok("ann", "lock release");
    world.ok("ann", "snapshot again");
    world.audit_holds();
}

#[test]
fn a_lock_that_nobody_else_had_since_is_simply_mine_again() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 400ms");
    let keeper = world.keeper();
    world.signal(keeper, Signal::KILL);
    eventually("its lease is over", PATIENCE, || world.status()["state"] != "held");
    world.ok("ann", "snapshot mine");
    world.run("ann", "run", "true").run().ok();
}

#[test]
fn a_run_that_was_handed_the_lock_gives_it_back() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 20s");
    let running = world.run("bob", "run --wait=20s --lease 2s", "true").start();
    eventually("it waits", PATIENCE, || world.tickets() == 1);
    world.ok("ann", "lock transfer --to bob");
    running.wait(PATIENCE).ok();
    world.eventually_free();
    world.ok("carl", "lock acquire --no-keeper");
}
