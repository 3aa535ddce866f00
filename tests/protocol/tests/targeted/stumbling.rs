//! A mount that stumbles for a while, and whoever waits for a lock on it.

use jvs_kit::sim::Errno;
use jvs_lock::hold::NoTies;
use jvs_lock::queue::SleepOnly;
use jvs_lock::retry;
use jvs_repo::clock::Clock as _;
use jvs_repo::code::{Code, Coded};

use crate::world::*;

const WAIT_MS: u64 = 20_000;

/// Every one of the first `calls` calls from now on fails in a way that passes.
fn stumbles(world: &World, calls: usize) {
    (0..calls).for_each(|n| world.solo.fail_call(n, Errno::IO));
}

/// What a plain acquire gets over by trying again does not end a wait at its first
/// look.
#[test]
fn a_mount_that_stumbles_at_the_first_look_does_not_end_a_wait() {
    for calls in [1, 2, 7, 8, 12, 30] {
        let world = World::new();
        stumbles(&world, calls);
        let plain = world.session("A");
        let got = retry::while_transient(plain.seams(), || plain.acquire(&main(), LEASE));
        assert_eq!(got.expect("it is tried again").token().0, 1, "{calls} calls");

        let world = World::new();
        stumbles(&world, calls);
        let waits = world.session("A");
        let mut sleeper = SleepOnly(world.solo.clock());
        let got = waits.wait(&main(), LEASE, WAIT_MS, &|_| None, &mut sleeper, &NoTies);
        let lease = got.expect("the mount came back").expect("nobody said to stop");
        assert_eq!(lease.token().0, 1, "{calls} calls");
        assert!(world.is_held_by("A", 1));
        world.audit_adds_up();
    }
}

#[test]
fn a_mount_that_never_comes_back_ends_a_wait_with_what_is_wrong() {
    let world = World::new();
    stumbles(&world, 10_000);
    let waits = world.session("A");
    let began = world.solo.clock().now().boot;
    let mut sleeper = SleepOnly(world.solo.clock());
    let told =
        waits.wait(&main(), LEASE, WAIT_MS, &|_| None, &mut sleeper, &NoTies).expect_err("in vain");
    assert_eq!(told.code(), Code::Io, "{told}");
    let waited_ms = world.solo.clock().now().boot.since(began);
    assert!(waited_ms >= WAIT_MS, "given up after {waited_ms} ms of the simulated clock");
    world.solo.clear_injected();
    assert!(world.register().holder().is_none());
}
