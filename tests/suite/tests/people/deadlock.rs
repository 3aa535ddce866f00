//! Sessions that wait for each other, with real processes.
#![allow(clippy::print_stderr, reason = "how soon somebody is told is worth seeing")]

use jvs_kit::live::process::{Running, eventually};
use jvs_repo::clock::{Clock as _, SystemClock};
use jvs_repo::layout;
use rustix::process::Signal;
use serde_json::Value;

use crate::world::{PATIENCE, World};

/// A repository with worktrees a, b and c besides main.
fn world() -> World {
    let world = World::new();
    for worktree in ["a", "b", "c"] {
        world.ok("maker", &format!("worktree create {worktree}"));
    }
    world
}

/// How many stand in the line of `worktree`.
fn tickets(world: &World, worktree: &str) -> usize {
    let queue = layout::queue(&worktree.parse().expect("a name"));
    world.root().join(queue.as_str()).read_dir().map_or(0, Iterator::count)
}

/// `session` begins to wait for `worktree` and is seen in line.
fn waits(world: &World, session: &str, words: &str, worktree: &str) -> Running {
    let running = world.jvs(session, words).start();
    eventually("it stands in line", PATIENCE, || tickets(world, worktree) == 1);
    running
}

fn state(world: &World, worktree: &str) -> Value {
    world.json("onlooker", &format!("lock status -w {worktree}"))["data"].clone()
}

#[track_caller]
fn is_deadlock(told: &Value, cycle: &[(&str, &str, &str)]) {
    assert_eq!(told["error"]["code"], "E_DEADLOCK", "{told}");
    let steps = told["error"]["details"]["cycle"].as_array().expect("a cycle");
    let of = |step: &Value| {
        let text = |key: &str| step[key].as_str().expect("text").to_owned();
        (text("session_id"), text("waits_for"), text("held_by"))
    };
    let steps: Vec<_> = steps.iter().map(of).collect();
    let cycle: Vec<_> =
        cycle.iter().map(|(a, b, c)| (a.to_string(), b.to_string(), c.to_string())).collect();
    assert_eq!(steps, cycle, "{told}");
}

#[test]
fn we_each_wait_for_what_the_other_has_and_the_one_who_came_last_is_told() {
    let world = world();
    world.ok("ann", "lock acquire -w a");
    world.ok("bob", "lock acquire -w b");
    let ann = waits(&world, "ann", "lock acquire -w b --wait=60s --json", "b");
    let mut bob = world.jvs("bob", "lock acquire -w a --wait=60s --json").start();
    eventually("bob stands in line", PATIENCE, || tickets(&world, "a") == 1 || bob.ended());
    let began = SystemClock.now().boot;
    let told = bob.wait(PATIENCE).exits(2).json();
    let ms = SystemClock.now().boot.since(began);
    eprintln!("told of a deadlock {ms} ms after the second wait began");
    is_deadlock(&told, &[("bob", "a", "ann"), ("ann", "b", "bob")]);
    assert_eq!((tickets(&world, "a"), tickets(&world, "b")), (0, 1), "ann goes on waiting");
    assert_eq!(state(&world, "b")["record"]["session_id"], "bob", "and bob keeps what he has");
    world.ok("bob", "lock release -w b");
    assert_eq!(ann.wait(PATIENCE).ok().json()["data"]["worktree"], "b");
    world.ok("ann", "lock release -w a");
    world.ok("ann", "lock release -w b");
    world.audit_holds();
}

#[test]
fn three_of_us_wait_in_a_ring_with_a_run_and_a_freeze_and_one_is_told() {
    let world = world();
    world.ok("ann", "lock acquire -w a");
    world.ok("cid", "lock acquire -w c");
    let nested = "jvs run -w c --wait=60s -- true";
    let bob = world.run("bob", "run -w b", nested).start();
    eventually("bob stands in line", PATIENCE, || tickets(&world, "c") == 1);
    let freeze = "lock freeze --for 1m --reason move -w b --wait=60s";
    let ann = waits(&world, "ann", freeze, "b");
    let told = world.jvs("cid", "lock acquire -w a --wait=60s --json").run().exits(2).json();
    is_deadlock(&told, &[("cid", "a", "ann"), ("ann", "b", "bob"), ("bob", "c", "cid")]);
    world.ok("cid", "lock release -w c");
    bob.wait(PATIENCE).ok();
    ann.wait(PATIENCE).ok();
    assert_eq!(state(&world, "b")["state"], "frozen");
}

#[test]
fn the_run_that_waits_inside_my_run_is_told_and_my_run_ends() {
    let world = world();
    world.ok("bob", "lock acquire -w b");
    let go = world.outside("go");
    let wait = format!("until test -e {}; do sleep 0.05; done", go.display());
    let script = format!("{wait}; jvs run -w b --wait=60s -- true");
    let ann = world.run("ann", "run -w a", &script).start();
    eventually("ann has a", PATIENCE, || state(&world, "a")["state"] == "held");
    let bob = waits(&world, "bob", "lock acquire -w a --wait=60s", "a");
    fs_err::write(go, "").expect("written");
    let told = ann.wait(PATIENCE).exits(2);
    assert!(told.stderr().contains("E_DEADLOCK"), "{told}");
    let cannot = "jvs lock release";
    assert!(!told.stderr().contains(cannot), "that would be refused in here: {told}");
    assert!(told.stderr().contains("jvs run --wait -w a -w b -- COMMAND"), "{told}");
    bob.wait(PATIENCE).ok();
    assert_eq!(state(&world, "a")["record"]["session_id"], "bob");
}

#[test]
fn a_run_that_waits_for_the_run_that_started_it_is_told() {
    let world = world();
    let within = |options: &str| {
        let script = format!("env -u JVS_FENCING_TOKEN jvs run -w a {options} -- true");
        world.run("ann", "run --contain reap -w a", &script).run()
    };
    let told = within("--wait=60s").exits(2);
    assert!(told.stderr().contains("error[E_DEADLOCK]"), "{told}");
    within("--join --wait=60s").ok();
    assert_eq!(state(&world, "a")["state"], "free");
}

#[test]
fn a_build_of_mine_that_ends_by_itself_makes_no_deadlock() {
    let world = world();
    let go = world.outside("go");
    let build = format!("until test -e {}; do sleep 0.05; done", go.display());
    let builds = [world.run("ann", "run -w a", &build), world.run("bob", "run -w b", &build)];
    let builds = builds.map(|build| build.start());
    for worktree in ["a", "b"] {
        eventually("it builds", PATIENCE, || state(&world, worktree)["state"] == "held");
    }
    let ann = waits(&world, "ann", "run -w b --wait=60s -- true", "b");
    // Longer than it takes to be told of a deadlock.
    let told = world.jvs("bob", "run -w a --wait=4s --json -- true").run().exits(2).json();
    assert_eq!(told["error"]["code"], "E_LOCK_CONFLICT", "{told}");
    fs_err::write(go, "").expect("written");
    builds.into_iter().chain([ann]).for_each(|running| drop(running.wait(PATIENCE).ok()));
}

#[test]
fn a_lock_of_mine_that_ends_by_its_time_makes_no_deadlock() {
    let world = world();
    world.ok("ann", "lock acquire -w a");
    world.ok("bob", "lock acquire -w b --for 6s");
    let ann = waits(&world, "ann", "lock acquire -w b --wait=60s", "b");
    let mut bob = world.jvs("bob", "lock acquire -w a --wait=60s --json").start();
    ann.wait(PATIENCE).ok();
    assert!(!bob.ended(), "what he had was given back at its time, and he waits");
    world.ok("ann", "lock release -w a");
    assert_eq!(bob.wait(PATIENCE).ok().json()["data"]["worktree"], "a");
}

#[test]
fn nobody_gives_up_because_of_a_waiter_that_was_killed() {
    let world = world();
    world.ok("ann", "lock acquire -w a");
    world.ok("bob", "lock acquire -w b");
    let killed = waits(&world, "ann", "lock acquire -w b --wait=60s", "b");
    world.signal(killed.pid(), Signal::KILL);
    drop(killed);
    let told = world.jvs("bob", "lock acquire -w a --wait=4s --json").run().exits(2).json();
    assert_eq!(told["error"]["code"], "E_LOCK_CONFLICT", "{told}");
}
