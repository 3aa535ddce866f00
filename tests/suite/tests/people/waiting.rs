//! Standing in line, with real processes.

use jvs_kit::live::process::eventually;
use rustix::process::Signal;

use crate::world::{PATIENCE, World};

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    let world = World::new();
    world.ok("first", "lock acquire --no-keeper --lease 1h");
    let log = world.outside("order");
    let mut all = Vec::new();
    for n in 1..=4 {
        let script = format!("echo {n} >> {}", log.display());
        all.push(world.run(&format!("w{n}"), "run --wait=30s", &script).start());
        eventually("it stands in line", PATIENCE, || world.tickets() == n);
    }
    assert_eq!(world.status()["waiters"].as_array().map(Vec::len), Some(4));
    world.ok("first", "lock release");
    for running in all {
        running.wait(PATIENCE).ok();
    }
    assert_eq!(fs_err::read_to_string(log).expect("written"), "1\n2\n3\n4\n");
    assert_eq!(world.tickets(), 0);
    world.audit_holds();
}

#[test]
fn a_killed_waiter_is_passed_over() {
    let world = World::new();
    world.ok("first", "lock acquire --no-keeper --lease 1h");
    let killed = world.jvs("killed", "lock acquire --no-keeper --wait=30s").start();
    eventually("it stands in line", PATIENCE, || world.tickets() == 1);
    let next = world.jvs("next", "lock acquire --no-keeper --wait=30s").start();
    eventually("so does the next", PATIENCE, || world.tickets() == 2);
    world.signal(killed.pid(), Signal::KILL);
    world.ok("first", "lock release");
    next.wait(PATIENCE).ok();
    assert_eq!(world.tickets(), 0, "and its ticket is cleared away");
    drop(killed);
}

#[test]
fn a_waiter_that_is_interrupted_leaves_no_ticket_and_dies_of_the_signal() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let world = World::new();
        world.ok("first", "lock acquire --no-keeper --lease 1h");
        let waiting = world.jvs("waiter", "lock acquire --wait").start();
        eventually("it stands in line", PATIENCE, || world.tickets() == 1);
        world.signal(waiting.pid(), signal);
        let outcome = waiting.wait(PATIENCE);
        assert_eq!(outcome.signal(), Some(signal.as_raw()), "{outcome}");
        assert!(outcome.stderr().contains("session first"), "{outcome}");
        assert_eq!(world.tickets(), 0);
    }
}

#[test]
fn a_wait_that_ends_without_the_lock_says_who_has_it() {
    let world = World::new();
    world.ok("first", "lock acquire --no-keeper --lease 1h");
    let gave_up = world.jvs("waiter", "lock acquire --wait=100ms --json").run().exits(2).json();
    let details = &gave_up["error"]["details"];
    assert_eq!((&details["session_id"], &details["ahead"]), (&"first".into(), &0.into()));
    assert_eq!(world.tickets(), 0);
}

#[test]
fn a_freeze_can_wait_for_its_turn() {
    let world = World::new();
    world.ok("first", "lock acquire --no-keeper --lease 1h");
    let freezing = world.jvs("admin", "lock freeze --for 1h --reason move --wait=30s").start();
    eventually("it stands in line", PATIENCE, || world.tickets() == 1);
    world.ok("first", "lock release");
    freezing.wait(PATIENCE).ok();
    assert_eq!(world.status()["state"], "frozen");
    assert_eq!(world.status()["freeze"]["reason"], "move");
    assert_eq!(world.tickets(), 0);
}

#[test]
fn a_freeze_ends_by_itself_and_the_next_in_line_goes_on() {
    let world = World::new();
    world.ok("admin", "lock freeze --for 400ms --reason move");
    world.jvs("ann", "lock acquire").run().exits(2);
    world.ok("ann", "lock acquire --no-keeper --wait=20s");
    assert_eq!(world.status()["record"]["session_id"], "ann");
}
