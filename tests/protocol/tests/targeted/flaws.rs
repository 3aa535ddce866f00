//! What v6.3 as written gets wrong. Each test first lets the literal sequence
//! of calls break the literal protocol, then shows that the same moment does
//! not break ours.

use std::cell::Cell;

use jvs_kit::sim::{Ctx, Explorer, Process, Solo, View, Way};
use jvs_lock::{LeaseOrigin, Locks};
use jvs_protocol_tests::stage;
use jvs_repo::clock::Clock as _;
use jvs_repo::code::{Code, Coded as _};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::store::Store as _;
use jvs_world::sim::{seams, seams_of};

use crate::interrupted::Interrupted;
use crate::v63::{Refused, V63, lock, ready};
use crate::world::{self, LEASE, LEASE_MS, STEALABLE_MS, World, main};

const X: SnapshotId = SnapshotId { created_ms: 7, random: 7 };

/// Right before this call a process of ours is held up: its CAS.
const CAS: (&str, &str) = ("rename", "main.fence/");

fn v63<'w>(world: &'w World, me: &'w str) -> V63<'w> {
    V63::new(world.solo.store(), world.solo.clock(), me)
}

/// A world in which A took the lock as v6.3 does, and its lease is over.
fn v63_expired() -> World {
    let world = World::new();
    assert_eq!(v63(&world, "A").acquire(), Ok(1));
    world.lease_runs_out();
    world
}

/// A world in which A took the lock as we do, and its lease is over.
fn expired() -> World {
    let world = World::new();
    assert_eq!(world.takes("A"), 1);
    world.lease_runs_out();
    world
}

/// (a) B and C read the same expired record; both rename over it.
#[test]
fn two_stealers_do_not_both_win() {
    let world = v63_expired();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before(CAS.0, "main.lock", move || assert_eq!(v63(&meanwhile, "C").acquire(), Ok(2)));
    let b = V63::new(&store, world.solo.clock(), "B");
    assert_eq!(b.acquire(), Ok(2), "both were told that they hold token 2");
    assert!(b.validates(2) && v63(&world, "C").validates(2), "and both checks pass");

    let world = expired();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before(CAS.0, CAS.1, move || assert_eq!(meanwhile.takes("C"), 2));
    let error = world.session_on(&store, "B").acquire(&main(), LEASE).expect_err("C was first");
    store.happened();
    assert_eq!(error.code(), Code::LockConflict, "{error}");
    assert!(world.is_held_by("C", 2));
    world.audit_adds_up();
}

/// (b) A's release checks, then unlinks the lock of whoever stole it meanwhile.
#[test]
fn a_release_does_not_remove_the_stealers_lock() {
    let world = v63_expired();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before("unlink", "main.lock", move || assert_eq!(v63(&meanwhile, "B").acquire(), Ok(2)));
    assert_eq!(V63::new(&store, world.solo.clock(), "A").release(), Ok(()));
    assert_eq!(v63(&world, "C").acquire(), Ok(1), "while B believes that it holds token 2");

    // Held up before the release itself: A is told that the lock is not its own
    // any more, which is all that a release promises, and B keeps it.
    let world = World::new();
    let store = Interrupted::new(&world);
    let a = world.session_on(&store, "A");
    let lease = a.acquire(&main(), LEASE).expect("free");
    let meanwhile = world.clone();
    store.before(CAS.0, CAS.1, move || {
        meanwhile.lease_runs_out();
        assert_eq!(meanwhile.takes("B"), 2);
    });
    lease.release().expect("not A's any more");
    store.happened();
    assert!(world.is_held_by("B", 2));
    assert_eq!(world.record_names().as_deref(), Some("B"));
    world.audit_adds_up();

    // Held up between the release and the removal of the record: what is there by
    // then is B's, and stays.
    let world = World::new();
    let store = Interrupted::new(&world);
    let a = world.session_on(&store, "A");
    let lease = a.acquire(&main(), LEASE).expect("free");
    let meanwhile = world.clone();
    store.before("rename_new", "main.tmp-", move || assert_eq!(meanwhile.takes("B"), 2));
    lease.release().expect("it was A's");
    store.happened();
    assert!(world.is_held_by("B", 2));
    assert_eq!(world.record_names().as_deref(), Some("B"));
    let error = world.session("C").acquire(&main(), LEASE).expect_err("B holds");
    assert_eq!(error.code(), Code::LockConflict, "{error}");
    let b = world.session("B");
    b.resume(&main(), None).expect("B holds").renew().expect("renewed");
    assert_eq!(world.record_names().as_deref(), Some("B"));
    world.audit_adds_up();
}

/// (c) A's renewal checks, then renames its old record back over B's.
#[test]
fn a_renewal_does_not_bring_a_stale_holder_back() {
    let world = v63_expired();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before(CAS.0, "main.lock", move || assert_eq!(v63(&meanwhile, "B").acquire(), Ok(2)));
    let a = V63::new(&store, world.solo.clock(), "A");
    assert_eq!(a.renew(), Ok(()));
    assert!(a.validates(1), "the token went back from 2 to 1 while B holds");

    // Held up before the renewal itself.
    let world = World::new();
    let store = Interrupted::new(&world);
    let a = world.session_on(&store, "A");
    let mut lease = a.acquire(&main(), LEASE).expect("free");
    let meanwhile = world.clone();
    store.before(CAS.0, CAS.1, move || {
        meanwhile.lease_runs_out();
        assert_eq!(meanwhile.takes("B"), 2);
    });
    let error = lease.renew().expect_err("it is B's");
    store.happened();
    assert_eq!(error.code(), Code::FencingMismatch, "{error}");
    assert_eq!(lease.belief().until(), None, "A stops believing");
    assert!(world.is_held_by("B", 2));
    assert_eq!(world.record_names().as_deref(), Some("B"));
    world.audit_adds_up();

    // Held up between the renewal and its write to the record: that goes to A's
    // own file, which has no name any more.
    let world = World::new();
    let store = Interrupted::new(&world);
    let a = world.session_on(&store, "A");
    let mut lease = a.acquire(&main(), LEASE).expect("free");
    let meanwhile = world.clone();
    store.before("write_at", "main.lock", move || {
        meanwhile.lease_runs_out();
        assert_eq!(meanwhile.takes("B"), 2);
    });
    lease.renew().expect("it was A's then");
    store.happened();
    assert!(world.is_held_by("B", 2));
    assert_eq!(world.record_names().as_deref(), Some("B"));
    world.audit_adds_up();
}

/// (d) A's publish checks the token, is held up, and publishes after a steal.
#[test]
fn a_publish_does_not_follow_a_steal() {
    let world = World::new();
    assert_eq!(v63(&world, "A").acquire(), Ok(1));
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before("create_new", "READY", move || {
        meanwhile.lease_runs_out();
        assert_eq!(v63(&meanwhile, "B").acquire(), Ok(2));
    });
    assert_eq!(V63::new(&store, world.solo.clock(), "A").publish(1), Ok(()));
    assert!(world.solo.image().exists(&ready()), "published under token 1 after token 2");

    let world = World::new();
    let store = Interrupted::new(&world);
    let a = world.session_on(&store, "A");
    let mut lease = a.acquire(&main(), LEASE).expect("free");
    let meanwhile = world.clone();
    store.before(CAS.0, CAS.1, move || {
        meanwhile.lease_runs_out();
        assert_eq!(meanwhile.takes("B"), 2);
    });
    let mut fence = lease.fence().expect("live");
    let error = fence.commit(None, X, &|| Ok(false)).expect_err("it is B's");
    store.happened();
    assert_eq!(error.code(), Code::FencingMismatch, "{error}");
    assert_eq!(world.register().head, None, "nothing was committed");
    assert!(world.is_held_by("B", 2));
    world.audit_adds_up();
}

/// (e) Tokens restart at 1 after a release, so a stale holder's token is valid
/// again: even a check and a commit in one step would let it publish.
#[test]
fn a_token_is_not_granted_again_after_a_release() {
    let world = v63_expired();
    assert_eq!(v63(&world, "B").acquire(), Ok(2));
    assert_eq!(v63(&world, "B").release(), Ok(()));
    assert_eq!(v63(&world, "B").acquire(), Ok(1));
    assert_eq!(v63(&world, "A").publish(1), Ok(()), "A lost token 1 long ago");

    let world = World::new();
    let store = Interrupted::new(&world);
    let a = world.session_on(&store, "A");
    let mut lease = a.acquire(&main(), LEASE).expect("free");
    assert_eq!(lease.token().0, 1);
    let meanwhile = world.clone();
    store.before(CAS.0, CAS.1, move || {
        meanwhile.lease_runs_out();
        assert_eq!(meanwhile.takes("B"), 2);
        meanwhile.gives_back("B");
        assert_eq!(meanwhile.takes("B"), 3);
    });
    let mut fence = lease.fence().expect("live");
    let error = fence.commit(None, X, &|| Ok(false)).expect_err("token 1 is used up");
    store.happened();
    assert_eq!(error.code(), Code::FencingMismatch, "{error}");
    assert_eq!(world.register().head, None);
    // Nor does A's own next hold bring the old one back.
    world.gives_back("B");
    assert_eq!(world.takes("A"), 4);
    let error = fence.commit(None, X, &|| Ok(false)).expect_err("bound to token 1");
    assert_eq!(error.code(), Code::FencingMismatch, "{error}");
    world.audit_adds_up();
}

/// The number of the first of `calls` that begins like this.
#[track_caller]
fn number_of(calls: &[String], beginning: &str) -> usize {
    let found = calls.iter().position(|call| call.starts_with(beginning));
    found.unwrap_or_else(|| panic!("no {beginning} in {calls:#?}"))
}

/// (f) A dies between O_EXCL and write: an empty lock that nobody can judge.
#[test]
fn a_torn_lock_keeps_nobody_out() {
    let world = World::new();
    world.solo.inject(1, Way::DiesFirst);
    assert_eq!(world.solo.run(|| v63(&world, "A").acquire()), None, "it died before the write");
    for _ in 0..1_000 {
        world.lease_runs_out();
        assert_eq!(v63(&world, "B").acquire(), Err(Refused::Unreadable), "now and for ever");
    }

    // If an empty lock may be stolen instead: A was only held up.
    let world = World::new();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before("write_at", "main.lock", move || {
        assert_eq!(v63(&meanwhile, "B").stealing_empty_locks().acquire(), Ok(1));
    });
    let a = V63::new(&store, world.solo.clock(), "A").stealing_empty_locks();
    assert_eq!(a.acquire(), Ok(1), "both hold token 1");

    let plain = World::new();
    plain.takes("A");
    let write = number_of(&plain.solo.calls(), &format!("write_at({}", lock()));
    let world = World::new();
    world.solo.inject(write, Way::DiesFirst);
    assert_eq!(world.solo.run(|| world.takes("A")), None, "it died before the write");
    assert_eq!(world.solo.image().read(&lock()), Some(&[][..]), "the record is empty");
    let error = world.session("B").acquire(&main(), LEASE).expect_err("A's lease runs");
    assert_eq!(error.code(), Code::LockConflict, "{error}");
    world.lease_runs_out();
    assert_eq!(world.takes("B"), 2);
    assert_eq!(world.record_names().as_deref(), Some("B"));
    world.audit_adds_up();

    // Held up instead: A's write goes to its own file, which B replaced.
    let world = World::new();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before("write_at", "main.lock", move || {
        meanwhile.lease_runs_out();
        assert_eq!(meanwhile.takes("B"), 2);
    });
    let a = world.session_on(&store, "A");
    let mut lease = a.acquire(&main(), LEASE).expect("it was free");
    store.happened();
    assert_eq!(lease.renew().expect_err("it is B's").code(), Code::FencingMismatch);
    assert!(world.is_held_by("B", 2));
    assert_eq!(world.record_names().as_deref(), Some("B"));
    world.audit_adds_up();
}

/// For how long a mount may still show what another mount replaced.
const CACHED_MS: u64 = 1_000;

/// The locks as a simulated process of session `id` sees them.
fn locks<'c>(ctx: &'c Ctx, id: &str) -> Locks<'c> {
    world::locks(seams(ctx), id)
}

/// A took the lock as v6.3 does.
fn v63_taken(solo: &Solo) {
    stage::repository(solo);
    assert_eq!(V63::new(solo.store(), solo.clock(), "A").acquire(), Ok(1));
}

/// A took the lock as we do.
fn taken(solo: &Solo) {
    stage::repository(solo);
    drop(world::locks(seams_of(solo), "A").acquire(&main(), LEASE).expect("free"));
}

/// What goes wrong in the old protocol because a mount shows what it has in its cache.
fn v63_believes_its_cache(
    processes: [Process; 2],
    check: fn(&View<'_>) -> Result<(), String>,
) -> String {
    let violation = Explorer::new()
        .setup(v63_taken)
        .processes(processes)
        .stale_reads_for_ms(CACHED_MS)
        .always(check)
        .run()
        .violation();
    assert!(violation.trace.iter().any(|line| line.contains("(stale)")), "{violation}");
    violation.message
}

fn no_theft(view: &View<'_>) -> Result<(), String> {
    match view.process(1).number("stole") {
        Some(token) => Err(format!("a live lease was stolen under token {token}")),
        None => Ok(()),
    }
}

fn not_after_the_steal(view: &View<'_>) -> Result<(), String> {
    match view.process(0).number("published") {
        Some(token) => Err(format!("published under token {token} after the steal")),
        None => Ok(()),
    }
}

/// (g1) B reads A's expired record from its mount's cache after A renewed it,
/// and steals a live lease.
#[test]
fn a_cached_record_does_not_get_a_live_lease_stolen() {
    let renewer = Process::new("A", |ctx| {
        ctx.clock().sleep_ms(STEALABLE_MS);
        if V63::new(ctx.store(), ctx.clock(), "A").renew().is_ok() {
            ctx.claim("renewed", 1);
        }
    });
    let stealer = Process::new("B", |ctx| {
        if ctx.look(0, "renewed").is_none() {
            return;
        }
        if let Ok(token) = V63::new(ctx.store(), ctx.clock(), "B").acquire() {
            ctx.claim("stole", token);
        }
    });
    let told = v63_believes_its_cache([renewer, stealer], no_theft);
    assert_eq!(told, "a live lease was stolen under token 2");

    // Ours: B's mount may show an old record or none; the register decides.
    let refresher = Process::new("A", |ctx| {
        ctx.clock().sleep_ms(STEALABLE_MS);
        // A renewal after the end is a refresh; it replaces nothing by rename,
        // so the record is removed first to make the cache lie as it can.
        ctx.store().unlink(&lock()).expect("there");
        if locks(ctx, "A")
            .acquire(&main(), LEASE)
            .is_ok_and(|lease| lease.how() == LeaseOrigin::Refreshed)
        {
            ctx.claim("renewed", 1);
        }
    });
    let stealer = Process::new("B", |ctx| {
        if ctx.look(0, "renewed").is_none() {
            return;
        }
        match locks(ctx, "B").acquire(&main(), LEASE) {
            Ok(lease) => ctx.claim("stole", lease.token().0),
            Err(error) => ctx.claim("refused", error.code().as_str()),
        }
    });
    let refused = Cell::new(0);
    let report = Explorer::new()
        .setup(taken)
        .processes([refresher, stealer])
        .stale_reads_for_ms(CACHED_MS)
        .always(no_theft)
        .at_end(|view| match view.process(1).text("refused") {
            Some("E_LOCK_CONFLICT") => {
                refused.set(refused.get() + 1);
                Ok(())
            }
            Some(other) => Err(format!("refused with {other}")),
            None => Ok(()),
        })
        .run()
        .holds();
    assert!(refused.get() > 1, "with the old record and with the new one: {report}");
}

/// (g2) B stole on another mount; A's mount still shows A's record, so A's check
/// passes and it publishes, even if check and READY were one step.
#[test]
fn a_cached_record_does_not_validate_a_stale_token() {
    let publisher = Process::new("A", |ctx| {
        ctx.clock().sleep_ms(STEALABLE_MS);
        if ctx.look(1, "stole").is_none() {
            return;
        }
        if V63::new(ctx.store(), ctx.clock(), "A").publish(1).is_ok() {
            ctx.claim("published", 1);
        }
    });
    let stealer = Process::new("B", |ctx| {
        ctx.clock().sleep_ms(STEALABLE_MS);
        if let Ok(token) = V63::new(ctx.store(), ctx.clock(), "B").acquire() {
            ctx.claim("stole", token);
        }
    });
    let told = v63_believes_its_cache([publisher, stealer], not_after_the_steal);
    assert_eq!(told, "published under token 1 after the steal");

    // Ours: A sees its own old record in the cache, and is fenced all the same.
    let publisher = Process::new("A", |ctx| {
        let locks = locks(ctx, "A");
        let Ok(mut lease) = locks.resume(&main(), None) else { return };
        let Ok(mut fence) = lease.fence() else { return };
        ctx.clock().sleep_ms(STEALABLE_MS);
        if ctx.look(1, "stole").is_none() {
            return;
        }
        let found = locks.inspect(&main()).expect("seen").found;
        if found.record().is_some_and(|record| record.session_id == "A") {
            ctx.claim("deceived", 1);
        }
        match fence.commit(None, X, &|| Ok(false)) {
            Ok(_) => ctx.claim("published", 1),
            Err(error) => ctx.claim("refused", error.code().as_str()),
        }
    });
    let stealer = Process::new("B", |ctx| {
        ctx.clock().sleep_ms(STEALABLE_MS);
        if let Ok(lease) = locks(ctx, "B").acquire(&main(), LEASE) {
            ctx.claim("stole", lease.token().0);
        }
    });
    let deceived = Cell::new(0);
    let report = Explorer::new()
        .setup(taken)
        .processes([publisher, stealer])
        .stale_reads_for_ms(CACHED_MS)
        .always(not_after_the_steal)
        .at_end(|view| {
            let a = view.process(0);
            if let Some(other) = a.text("refused").filter(|code| *code != "E_FENCING_MISMATCH") {
                return Err(format!("refused with {other}"));
            }
            if a.number("deceived").is_some() && a.text("refused").is_some() {
                deceived.set(deceived.get() + 1);
            }
            Ok(())
        })
        .run()
        .holds();
    assert!(deceived.get() > 0, "the cache did lie: {report}");
}

/// (h) All stealers use one tmp name: C opens the file that B is about to
/// rename, and writes through its descriptor into what is B's lock by then.
#[test]
fn two_stealers_do_not_share_a_tmp_file() {
    let world = v63_expired();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before("write_at", "main.tmp-", move || {
        assert_eq!(v63(&meanwhile, "B").with_fixed_tmp().acquire(), Ok(2));
    });
    let c = V63::new(&store, world.solo.clock(), "C").with_fixed_tmp();
    assert_eq!(c.acquire(), Err(Refused::Failed), "its tmp file was renamed by B");
    let seen = c.read().expect("whole");
    assert_eq!(seen.nonce, "C", "B won, and its lock became C's without a rename");

    // Ours: C wins token 2, is held up before it writes its record, D takes
    // over. Their tmp files have different names, so each record is whole and
    // its owner's, and whichever is there last decides nothing.
    let world = expired();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before("write_at", "main.tmp-", move || {
        meanwhile.lease_runs_out();
        assert_eq!(meanwhile.takes("D"), 3);
        assert_eq!(meanwhile.record_names().as_deref(), Some("D"));
        let names = meanwhile.solo.image().list(&layout::locks());
        let tmp = names.iter().filter(|name| name.starts_with("main.tmp-")).count();
        assert_eq!(tmp, 1, "C's own, not touched by D: {names:?}");
    });
    let c = world.session_on(&store, "C");
    let mut late = c.acquire(&main(), LEASE).expect("it won token 2");
    store.happened();
    assert_eq!(late.renew().expect_err("it is D's").code(), Code::FencingMismatch);
    assert!(world.is_held_by("D", 3));
    let names = world.record_names();
    assert!(matches!(names.as_deref(), Some("C" | "D")), "whole, whosever it is: {names:?}");
    let d = world.session("D");
    d.resume(&main(), None).expect("D holds").renew().expect("renewed");
    assert_eq!(world.record_names().as_deref(), Some("D"), "mended by the next renewal");
    world.audit_adds_up();
}

/// (i) B reads an expired record, A renews, B renames over the live lease.
#[test]
fn a_stealer_does_not_overwrite_a_renewal() {
    let world = v63_expired();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before(CAS.0, "main.lock", move || assert_eq!(v63(&meanwhile, "A").renew(), Ok(())));
    let b = V63::new(&store, world.solo.clock(), "B");
    assert_eq!(b.acquire(), Ok(2), "A's lease was renewed a moment ago");

    let world = expired();
    let store = Interrupted::new(&world);
    let meanwhile = world.clone();
    store.before(CAS.0, CAS.1, move || assert_eq!(meanwhile.takes("A"), 1, "a refresh"));
    let error = world.session_on(&store, "B").acquire(&main(), LEASE).expect_err("A is back");
    store.happened();
    assert_eq!(error.code(), Code::LockConflict, "{error}");
    assert!(world.is_held_by("A", 1));
    world.audit_adds_up();
}

/// `|now - lease_expires_at - lease_duration| > max_clock_skew` calls an old dead
/// lock a clock that is wrong. The arithmetic alone is a test beside the code.
#[test]
fn a_dead_lock_does_not_become_a_clock_skew_as_it_ages() {
    let literal_allows =
        |since_end: u64| since_end > 3_000 && since_end.abs_diff(LEASE_MS) <= 2_000;
    let mut refused_by_v63 = 0;
    for since_end in [3_001, 10_000, 27_999, 28_000, 32_000, 32_001, 3_600_000, 86_400_000] {
        let world = World::new();
        assert_eq!(world.takes("A"), 1);
        // A reboot: another boot id, so that only wall clocks can be compared.
        world.solo.power_cut(world.solo.crash_images() - 1);
        world.solo.pass_ms(LEASE_MS + since_end);
        let locks = world.session("B");
        let lease = locks.acquire(&main(), LEASE).expect("a dead lock");
        assert_eq!((lease.how(), lease.token().0), (LeaseOrigin::Stolen, 2), "{since_end}");
        refused_by_v63 += u32::from(!literal_allows(since_end));
    }
    assert_eq!(refused_by_v63, 6, "v6.3 lets only 28 s to 32 s through");
}
