use jvs_lock::record::Meaning as _;
use jvs_lock::{LeaseOrigin, StatusWord, Want};
use jvs_repo::code::{Code, Coded};
use jvs_repo::id::{FencingToken, SnapshotId};
use jvs_repo::layout;
use jvs_repo::store::Store;
use jvs_world::repository::main;
use jvs_world::session::forcing;

use crate::world::World;

const LEASE: Want<'static> = Want::lease(30_000);
const X: SnapshotId = SnapshotId { created_ms: 7, random: 7 };

#[test]
fn a_lock_is_taken_kept_and_given_back() {
    let world = World::new();
    let ann = world.session("ann");
    let mut lease = ann.acquire(&main(), LEASE).expect("free");
    assert_eq!((lease.how(), lease.token()), (LeaseOrigin::Acquired, FencingToken(1)));
    assert!(lease.drift().is_empty(), "{:?}", lease.drift());
    let view = ann.inspect(&main()).expect("seen");
    assert_eq!((view.word(), view.mine, view.remaining_ms()), (StatusWord::Held, true, 30_000));
    assert_eq!(view.record().map(|r| r.session_id.as_str()), Some("ann"));
    world.clock.pass(20_000);
    lease.renew().expect("held");
    world.clock.pass(20_000);
    lease.renew().expect("renewed in time");
    lease.release().expect("released");
    let view = ann.inspect(&main()).expect("seen");
    assert_eq!(view.word(), StatusWord::Free);
    assert_eq!(world.names(&layout::locks()), ["main.fence"], "the record is gone");
    assert_eq!(world.audit(&[&main()]).problems, []);
}

#[test]
fn a_rival_is_told_who_holds_and_how_long() {
    let world = World::new();
    let _held = world.session("ann").acquire(&main(), LEASE).expect("free");
    world.clock.pass(10_000);
    let error = world.session("bob").acquire(&main(), LEASE).expect_err("held");
    assert_eq!(error.code(), Code::LockConflict);
    let details = error.details().expect("details");
    for field in
        ["holder_id", "session_id", "since", "lease_expires_at", "remaining_ms", "fencing_token"]
    {
        assert!(!details[field].is_null(), "{field}: {details}");
    }
    assert_eq!(details["remaining_ms"], 20_000);
    assert_eq!(details["reason"], "LOCK_HELD");
    assert!(error.to_string().contains("session ann"), "{error}");
}

#[test]
fn a_dead_lock_is_stolen_after_its_margin_and_not_before() {
    let world = World::new();
    let mut old = world.session("ann").acquire(&main(), LEASE).expect("free");
    world.clock.pass(33_000);
    let bob = world.session("bob");
    let early = bob.acquire(&main(), LEASE).expect_err("within the margin");
    assert_eq!(early.code(), Code::LockConflict);
    world.clock.pass(1);
    let stolen = bob.acquire(&main(), LEASE).expect("stealable");
    assert_eq!((stolen.how(), stolen.token()), (LeaseOrigin::Stolen, FencingToken(2)));
    // The former holder learns it from every operation.
    assert_eq!(old.renew().expect_err("fenced").code(), Code::FencingMismatch);
    assert_eq!(old.fence().map(|_| ()).expect_err("fenced").code(), Code::FencingMismatch);
    let refused = old.release().expect_err("not its lock any more");
    assert_eq!(refused.code(), Code::FencingMismatch);
    assert!(bob.inspect(&main()).expect("seen").mine);
    assert_eq!(world.audit(&[&main()]).problems, []);
}

#[test]
fn a_lease_that_is_over_by_its_own_clock_is_not_renewed() {
    let world = World::new();
    let ann = world.session("ann");
    let mut lease = ann.acquire(&main(), LEASE).expect("free");
    world.clock.pass(30_000);
    let error = lease.renew().expect_err("over");
    assert_eq!(error.code(), Code::LockExpired);
    assert_eq!(lease.fence().map(|_| ()).expect_err("over").code(), Code::LockExpired);
    // Nobody took it: the session may simply acquire it again.
    let again = ann.acquire(&main(), LEASE).expect("still its own");
    assert_eq!((again.how(), again.token()), (LeaseOrigin::Refreshed, FencingToken(1)));
}

#[test]
fn the_same_session_refreshes_and_its_next_process_goes_on() {
    let world = World::new();
    let first = world.session("ann").acquire(&main(), LEASE).expect("free");
    let ticket = first.ticket();
    world.clock.pass(10_000);
    let ann = world.session("ann");
    let again = ann.acquire(&main(), Want { note: Some("build"), ..LEASE }).expect("its own");
    assert_eq!((again.how(), again.token()), (LeaseOrigin::Refreshed, first.token()));
    assert_eq!(again.record().and_then(|r| r.note.clone()).as_deref(), Some("build"));
    let mut resumed = ann.resume(&main(), Some(&ticket)).expect("the same hold");
    assert_eq!(resumed.belief().remaining_ms(&world.clock), 30_000);
    resumed.renew().expect("held");
    resumed.release().expect("held");
    let error = ann.resume(&main(), Some(&ticket)).expect_err("released");
    assert_eq!(error.code(), Code::LockNotHeld);
    assert_eq!(world.audit(&[&main()]).problems, []);
}

#[test]
fn a_ticket_of_an_earlier_hold_opens_nothing() {
    let world = World::new();
    let ann = world.session("ann");
    let first = ann.acquire(&main(), LEASE).expect("free");
    let ticket = first.ticket();
    world.clock.pass(40_000);
    let bob = world.session("bob").acquire(&main(), LEASE).expect("stealable");
    bob.release().expect("held");
    let again = ann.acquire(&main(), LEASE).expect("free");
    assert_eq!(again.token(), FencingToken(3));
    let error = ann.resume(&main(), Some(&ticket)).expect_err("another hold");
    assert_eq!(error.code(), Code::FencingMismatch);
    assert!(ann.resume(&main(), None).is_ok());
}

#[test]
fn tokens_do_not_restart_after_a_release() {
    let world = World::new();
    for round in 1..=5 {
        let lease = world.session("ann").acquire(&main(), LEASE).expect("free");
        assert_eq!(lease.token(), FencingToken(round));
        lease.release().expect("held");
    }
}

#[test]
fn a_commit_moves_the_head_once_and_only_from_its_parent() {
    let world = World::new();
    let mut lease = world.session("ann").acquire(&main(), LEASE).expect("free");
    let mut fence = lease.fence().expect("live");
    let state = fence.commit(None, X, &|| Ok(false)).expect("committed");
    assert_eq!(state.head, Some(X));
    let y = SnapshotId { created_ms: 8, random: 8 };
    let error = fence.commit(None, y, &|| Ok(false)).expect_err("the parent is X");
    assert!(matches!(error, jvs_lock::CommitError::HeadMoved { current: Some(X), .. }), "{error}");
    fence.commit(Some(X), y, &|| Ok(false)).expect("committed");
    assert_eq!(fence.read().expect("held").generation.0, 2);
    assert_eq!(world.audit(&[&main()]).problems, []);
}

#[test]
fn a_commit_under_an_old_token_is_refused() {
    let world = World::new();
    let mut old = world.session("ann").acquire(&main(), LEASE).expect("free");
    let mut fence = old.fence().expect("live");
    world.clock.pass(40_000);
    let _new = world.session("bob").acquire(&main(), LEASE).expect("stealable");
    let error = fence.commit(None, X, &|| Ok(false)).expect_err("fenced");
    assert_eq!(error.code(), Code::FencingMismatch);
    assert_eq!(world.session("bob").inspect(&main()).expect("seen").state.head, None);
}

#[test]
fn watching_proves_a_holder_idle() {
    let world = World::new();
    let _held = world.session("ann").acquire(&main(), Want::lease(5_000)).expect("free");
    let bob = world.session("bob");
    // A record that says nothing about boot time leaves only the wall clock.
    world.store.unlink(&layout::lock_record(&main())).expect("unlinked");
    let mut looks = 0;
    let proven = bob
        .observe(&main(), |watch| {
            looks += 1;
            assert!(watch.watched_ms < watch.needed_ms);
            std::ops::ControlFlow::Continue(())
        })
        .expect("watched");
    assert!(proven && looks > 10, "{looks}");
    let lease = bob.acquire(&main(), LEASE).expect("idle");
    assert_eq!(lease.how(), LeaseOrigin::Stolen);
}

#[test]
fn a_removed_or_replaced_record_is_mended_by_the_next_renewal() {
    let world = World::new();
    let ann = world.session("ann");
    let mut lease = ann.acquire(&main(), LEASE).expect("free");
    world.store.unlink(&layout::lock_record(&main())).expect("unlinked");
    assert!(ann.inspect(&main()).expect("seen").record().is_none());
    lease.renew().expect("held");
    assert!(ann.inspect(&main()).expect("seen").record().is_some());
    // Somebody restores a torn file over it.
    let tmp = layout::lock_tmp(&main(), "vandal");
    world.store.write_over(&tmp, &layout::lock_record(&main()), b"{\"lock").expect("written");
    assert!(ann.inspect(&main()).expect("seen").record().is_none());
    lease.renew().expect("held");
    let view = ann.inspect(&main()).expect("seen");
    assert!(view.record().is_some_and(|record| record.is_current(&view.state)));
}

#[test]
fn a_torn_record_keeps_nobody_out() {
    let world = World::new();
    let file = world.store.create_new(&layout::lock_record(&main())).expect("created");
    drop(file);
    let lease = world.session("ann").acquire(&main(), LEASE).expect("the register says free");
    assert!(lease.drift().is_empty(), "{:?}", lease.drift());
    assert!(world.session("ann").inspect(&main()).expect("seen").record().is_some());
}

#[test]
fn a_freeze_keeps_out_fences_and_ends_by_itself() {
    let world = World::new();
    let admin = world.session("admin");
    let mut lease = world.session("ann").acquire(&main(), LEASE).expect("free");
    let error = admin.freeze(&main(), 60_000, "upgrade", false).expect_err("held");
    assert_eq!(error.code(), Code::LockConflict);
    let error = admin.freeze(&main(), 60_000, "upgrade", true).expect_err("no rule allows it");
    assert_eq!(error.code(), Code::LockConflict);
    forcing(admin.clone()).freeze(&main(), 60_000, "upgrade", true).expect("forced");
    assert_eq!(lease.renew().expect_err("fenced").code(), Code::FencingMismatch);
    let error = world.session("bob").acquire(&main(), LEASE).expect_err("frozen");
    assert_eq!(error.code(), Code::LockFrozen);
    assert!(error.to_string().contains("upgrade"), "{error}");
    world.clock.pass(64_000);
    let bob = world.session("bob").acquire(&main(), LEASE).expect("over by itself");
    bob.release().expect("held");
    admin.freeze(&main(), 60_000, "again", false).expect("free");
    admin.unfreeze(&main(), "done").expect("frozen");
    assert!(world.session("bob").acquire(&main(), LEASE).is_ok());
    assert_eq!(world.audit(&[&main()]).problems, []);
}

#[test]
fn bad_leases_are_refused_before_anything_is_touched() {
    let world = World::new();
    let before = world.session("ann").inspect(&main()).expect("seen").state;
    for lease_ms in [0, u64::MAX] {
        let error = world.session("ann").acquire(&main(), Want::lease(lease_ms)).expect_err("bad");
        assert_eq!(error.code(), Code::Usage);
    }
    assert_eq!(world.session("ann").inspect(&main()).expect("seen").state, before);
}
