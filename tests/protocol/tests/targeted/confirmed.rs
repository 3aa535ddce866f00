//! What is told is what was looked at: a commit that is read back, and what was done
//! but cannot be made durable.

use jvs_kit::sim::Errno;
use jvs_lock::mutation::{Rule, without};
use jvs_lock::queue::Waiter;
use jvs_lock::{CommitError, Lease, OfRegister, RegisterError, State};
use jvs_repo::code::{Code, Coded};
use jvs_repo::id::{Epoch, FencingToken, Generation, OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::store::Store;

use crate::interrupted::Interrupted;
use crate::world::*;

const HEAD: SnapshotId = SnapshotId { created_ms: 5, random: 6 };

/// The register is rebuilt without the head right after the head was committed.
fn commit_over_a_rebuild() -> Result<State, CommitError> {
    let world = World::new();
    let store = Interrupted::new(&world);
    let locks = world.session_on(&store, "A");
    let mut lease = locks.acquire(&main(), LEASE).expect("free");
    let meanwhile = world.clone();
    store.before("sync_dir", "main.fence", move || {
        let epoch = Epoch { counter: 2, salt: 1 };
        let op = OpNonce([9; 8]);
        let next = State::rebuilt(epoch, FencingToken(9), Generation(0), None, op);
        let dir = layout::register(&main());
        let path = |state: &State| dir.child(&state.to_string()).expect("plain");
        let old = meanwhile.register();
        meanwhile.solo.store().rename(&path(&old), &path(&next)).expect("rebuilt");
    });
    let mut fence = lease.fence().expect("held");
    let answer = fence.commit(None, HEAD, &|| Ok(false));
    store.happened();
    answer
}

#[test]
fn a_commit_that_is_not_in_what_is_read_back_is_not_told_done() {
    let told = commit_over_a_rebuild().expect_err("the register does not have it");
    assert_eq!(told.code(), Code::OutcomeUnknown, "{told}");
    without(Rule::CommitIsReadBack, || {
        commit_over_a_rebuild().expect("without the rule it is told done");
    });
}

/// Runs `operation` in a world in which the register cannot be synced, and returns
/// what it was told.
#[track_caller]
fn without_a_sync<E: Coded>(operation: impl Fn(&World) -> Result<(), E>) -> (World, E) {
    let rehearsed = World::new();
    operation(&rehearsed).expect("it can be done");
    let calls = rehearsed.solo.calls();
    let sync = format!("sync_dir({}", layout::register(&main()));
    let last = calls.iter().rposition(|call| call.starts_with(&sync));
    let world = World::new();
    world.solo.fail_call(last.expect("it is synced"), Errno::IO);
    let told = operation(&world).expect_err("it is not durable");
    world.solo.clear_injected();
    (world, told)
}

fn is_told_as_done(told: &(impl Coded + OfRegister)) {
    assert!(matches!(told.of_register(), Some(RegisterError::NotDurable { .. })), "{told}");
    assert_eq!(told.code(), Code::OutcomeUnknown);
    assert!(told.to_string().contains("may not survive a power cut"), "{told}");
}

/// The record of a lock on a full volume is not there, rather than empty: nothing is
/// left for doctor when the lock was given back.
#[test]
fn a_full_volume_leaves_no_empty_record() {
    let rehearsed = World::new();
    rehearsed.takes("A");
    let write = format!("write_at({}", layout::lock_record(&main()));
    let at = rehearsed.solo.calls().iter().position(|call| call.starts_with(&write));
    let world = World::new();
    world.solo.fail_call(at.expect("it is written"), Errno::NOSPC);
    assert_eq!(world.takes("A"), 1, "the register needs no room");
    world.solo.clear_injected();
    assert!(world.solo.store().stat(&layout::lock_record(&main())).is_err(), "not even empty");
    world.gives_back("A");
    assert!(world.solo.store().stat(&layout::lock_record(&main())).is_err());
}

/// A log is never begun anew, and nobody pays for its length.
#[test]
fn a_long_log_is_read_and_added_to_as_a_short_one_is() {
    let world = World::new();
    let log = format!("({}/", layout::audit());
    // Where in the log is no matter, and how much of it is.
    let touched = || {
        world.solo.forget_calls();
        world.takes("A");
        world.gives_back("A");
        let calls = world.solo.calls();
        let of_logs = calls.iter().filter(|call| call.contains(&log));
        let what = |call: &String| match call.strip_prefix("read") {
            Some(read) => read.split(" at ").next().map(str::to_owned),
            None => call.split('(').next().map(str::to_owned),
        };
        of_logs.filter_map(what).collect::<Vec<_>>()
    };
    for _ in 0..5 {
        touched();
    }
    let of_a_short_one = touched();
    assert!(of_a_short_one.iter().any(|call| call.ends_with(" 2048")), "{of_a_short_one:?}");
    for _ in 0..200 {
        touched();
    }
    assert_eq!(touched(), of_a_short_one);
}

#[test]
fn a_grant_that_cannot_be_made_durable_is_given_back_and_told() {
    let (world, told) =
        without_a_sync(|world| world.session("A").acquire(&main(), LEASE).map(drop));
    is_told_as_done(&told);
    assert!(told.to_string().contains("released"), "{told}");
    assert!(world.register().holder().is_none(), "nobody has to wait for it");
    assert_eq!(world.takes("B"), 2, "and its token is spent");
    world.audit_adds_up();
}

#[test]
fn a_release_or_freeze_that_cannot_be_made_durable_is_told_as_done() {
    let (world, told) = without_a_sync(|world| {
        let lease = world.session("A").acquire(&main(), LEASE).expect("free");
        lease.release().map(drop).map_err(|failed| failed.error)
    });
    is_told_as_done(&told);
    assert!(world.register().holder().is_none());
    world.audit_adds_up();
    let (world, told) =
        without_a_sync(|world| world.session("A").freeze(&main(), 1_000, "why", false).map(drop));
    is_told_as_done(&told);
    assert!(world.register().hold.claim().is_some(), "it is frozen");
    let (world, told) = without_a_sync(|world| {
        world.session("A").freeze(&main(), 1_000, "why", false).expect("free");
        world.session("A").unfreeze(&main(), "why not").map(drop)
    });
    is_told_as_done(&told);
    assert!(world.register().hold.claim().is_none(), "it is not frozen any more");
}

/// Fails unless nobody of the holder's believes any more when the register's entry is
/// renamed, which may land whenever it likes.
#[track_caller]
fn believes_no_more(gives_up: impl FnOnce(Lease<'_>)) {
    let world = World::new();
    let store = Interrupted::new(&world);
    let lease = world.session_on(&store, "A").acquire(&main(), LEASE).expect("free");
    let belief = lease.belief();
    assert!(belief.until().is_some(), "it has the lock");
    store.before("rename", "main.fence", move || {
        assert_eq!(belief.until(), None, "it gave up before it asked");
    });
    gives_up(lease);
    store.happened();
}

#[test]
fn belief_ends_before_a_hold_is_released_handed_on_or_frozen() {
    believes_no_more(|lease| {
        lease.release().expect("released");
    });
    believes_no_more(|lease| {
        lease.freeze(1_000, "a test").expect("frozen");
    });
    believes_no_more(|lease| {
        let ticket = "3.1.0101010101010101.02020202020202020202020202020202.0303030303030303.\
                      0404040404040404.1.7.7.30000.1.1";
        let heir: Waiter = ticket.parse().expect("a ticket");
        lease.transfer(&heir, LEASE_MS, "a test").expect("handed over");
    });
}
