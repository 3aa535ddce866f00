//! From files to a visible snapshot.

use std::sync::atomic::{AtomicBool, Ordering};

use jvs_lock::{Lease, Seams, Want};
use jvs_repo::clock::{BootId, Clock, Discipline, Reading, SystemClock};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::Consistency;
use jvs_repo::layout;
use jvs_repo::record::worktree::Isolation;
use jvs_snapshot::Snapshots;
use jvs_snapshot::line::LinePlace;
use jvs_snapshot::lineage::Lineage;
use jvs_snapshot::progress::{CapturePhase, Progress, Silent};
use jvs_snapshot::restore::RestoreRequest;
use jvs_snapshot::select::select;
use jvs_snapshot::stage::Options;
use jvs_snapshot::take::{Request, SnapshotHold, TakeError, take};
use jvs_world::live::{World, read};
use jvs_world::repository::main;
use jvs_world::session::forcing;

#[test]
fn a_snapshot_is_a_full_tree_with_a_descriptor_that_says_where_it_came_from() {
    let world = World::new();
    world.write("a.txt", "one");
    world.write("dir/b.txt", "two");
    let mut lease = world.lease();
    let first = world.snapshot(&mut lease);
    assert_eq!(read(&world.kept(&first, "dir/b.txt")), "two");
    let described = first.descriptor();
    assert_eq!((described.content.files, described.content.bytes), (2, 6));
    assert_eq!((described.parent, described.commit_seq.0), (None, 1));
    assert_eq!(described.fencing_token, lease.token());
    assert!(described.content.quiescence.proven && described.content.risk.is_none());

    world.write("a.txt", "three");
    let second = world.snapshot(&mut lease);
    assert_eq!(second.descriptor().parent, Some(first.id()));
    assert_eq!(read(&world.kept(&first, "a.txt")), "one", "once READY nothing in it changes");
    assert_eq!(read(&world.kept(&second, "a.txt")), "three");
    assert_ne!(described.content.payload_root_hash, second.descriptor().content.payload_root_hash);
    let head = lease.fence().expect("live").read().expect("read").head;
    let lineage = Lineage::from_head(world.at().catalog(), head).expect("a lineage");
    assert_eq!(lineage.count(), 2);
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}

#[test]
fn an_empty_worktree_has_a_snapshot_and_equal_trees_have_equal_hashes() {
    let world = World::new();
    let mut lease = world.lease();
    let one = world.snapshot(&mut lease);
    let two = world.snapshot(&mut lease);
    assert_eq!(one.descriptor().content.files, 0);
    assert_eq!(
        one.descriptor().content.payload_root_hash,
        two.descriptor().content.payload_root_hash
    );
    assert_ne!(one.id(), two.id());
}

/// Takes the lock over in the middle of a capture, once.
struct Thief<'w> {
    world: &'w World,
    came: AtomicBool,
    /// And removes what is not the new holder's, as doctor may then.
    cleans: bool,
}

impl Progress for Thief<'_> {
    fn phase(&self, phase: CapturePhase) {
        if phase == CapturePhase::Clone && !self.came.swap(true, Ordering::SeqCst) {
            let thief = forcing(self.world.locks("thief"));
            thief.freeze(&main(), 1_000, "a test", true).expect("forced");
            thief.unfreeze(&main(), "a test").expect("lifted");
            let lease = thief.acquire(&main(), Want::lease(30_000)).expect("free");
            drop(lease);
            for name in self.world.names(&layout::staging()).iter().filter(|_| self.cleans) {
                let dir = layout::staging().child(name).expect("a name");
                fs_err::remove_dir_all(self.world.store.absolute(&dir)).expect("removed");
            }
        }
    }
}

/// A lease that is over for one look at the clock, as it is when a renewal hangs and
/// comes through after all.
struct Lapse(AtomicBool);

impl Progress for Lapse {
    fn keep_going(&self) -> bool {
        self.0.store(true, Ordering::SeqCst);
        true
    }
}

impl Clock for Lapse {
    fn now(&self) -> Reading {
        let now = SystemClock.now();
        let later = if self.0.swap(false, Ordering::SeqCst) { 3_600_000 } else { 0 };
        Reading { boot: now.boot.plus(later), ..now }
    }
    fn boot_id(&self) -> BootId {
        SystemClock.boot_id()
    }
    fn discipline(&self) -> Discipline {
        SystemClock.discipline()
    }
    fn sleep_ms(&self, ms: u64) {
        SystemClock.sleep_ms(ms);
    }
}

#[test]
fn a_capture_that_its_lease_did_not_outlive_says_so() {
    let world = World::new();
    world.write("a.txt", "one");
    let mut lease = world.lease();
    let source = world.file("");
    let lapse = Lapse(AtomicBool::new(false));
    let seams = Seams { clock: &lapse, ..world.seams() };
    let mut request = world.request(&source);
    request.options.threads = Some(1);
    let at = Snapshots::new(seams, &world.store);
    let error =
        take(&at, &mut SnapshotHold::Lease(&mut lease), request, &lapse).expect_err("stopped");
    assert_eq!(error.code(), Code::LockExpired, "{error}");
    assert!(error.next().is_some());
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}

#[test]
fn files_that_the_next_holder_removed_are_a_lost_lock() {
    let world = World::new();
    world.write("a.txt", "one");
    let mut lease = world.lease();
    let old = world.snapshot(&mut lease);
    let source = world.file("");
    let thief = || Thief { world: &world, came: AtomicBool::new(false), cleans: true };
    let request = world.request(&source);
    let error = take(&world.at(), &mut SnapshotHold::Lease(&mut lease), request, &thief())
        .expect_err("fenced");
    assert_eq!(error.code(), Code::FencingMismatch, "{error}");

    let locks = world.locks("thief");
    let mut lease = locks.acquire(&main(), Want::lease(30_000)).expect("its own");
    let wish =
        RestoreRequest { source: &old, kept: Some(&old), chosen: None, reason: Some("a test") };
    let error = world.restore().in_place(&locks, &mut lease, &wish, &thief()).expect_err("fenced");
    assert_eq!(error.code(), Code::FencingMismatch, "{error}");
    assert_eq!(read(&world.file("a.txt")), "one");
}

#[test]
fn a_lock_lost_during_the_capture_fences_the_snapshot_and_leaves_nothing_behind() {
    let world = World::new();
    world.write("a.txt", "one");
    let mut lease = world.lease();
    let source = world.file("");
    let thief = Thief { world: &world, came: AtomicBool::new(false), cleans: false };
    let request = world.request(&source);
    let error = take(&world.at(), &mut SnapshotHold::Lease(&mut lease), request, &thief)
        .expect_err("fenced");
    assert_eq!(error.code(), Code::FencingMismatch, "{error}");
    assert!(error.next().is_some());
    assert_eq!(world.names(&layout::snapshots()), [""; 0]);
    assert_eq!(world.names(&layout::staging()), [""; 0]);
    assert_eq!(read(&world.file("a.txt")), "one");
}

#[test]
fn a_shared_worktree_is_never_quiesced_and_takes_what_is_there_with_a_label() {
    let world = World::with(Isolation::Shared);
    world.write("a.txt", "one");
    let locks = world.locks("s");
    let source = world.file("");
    let mut shared = locks.share(&main()).expect("free");
    let request = world.request(&source);
    let refused = take(&world.at(), &mut SnapshotHold::Shared(&mut shared), request, &Silent)
        .expect_err("refused");
    assert_eq!(refused.code(), Code::ConsistencyUnavailable);
    let request = best_effort(world.request(&source));
    let taken =
        take(&world.at(), &mut SnapshotHold::Shared(&mut shared), request, &Silent).expect("taken");
    assert!(taken.ready.descriptor().content.risk.is_some(), "it says what to beware of");
}

/// Publishes another snapshot each time that one is about to be.
struct Rival<'w>(&'w World);

impl Progress for Rival<'_> {
    fn phase(&self, phase: CapturePhase) {
        if phase == CapturePhase::Sync {
            let locks = self.0.locks("rival");
            let mut shared = locks.share(&main()).expect("free");
            let source = self.0.file("");
            let request = best_effort(self.0.request(&source));
            take(&self.0.at(), &mut SnapshotHold::Shared(&mut shared), request, &Silent)
                .expect("first");
        }
    }
}

fn best_effort(plain: Request<'_>) -> Request<'_> {
    let options = Options { consistency: Consistency::BestEffort, ..Options::default() };
    Request { options, ..plain }
}

#[test]
fn a_snapshot_that_others_always_overtake_is_told_so_and_is_no_wrong_usage() {
    let world = World::with(Isolation::Shared);
    world.write("a.txt", "one");
    let locks = world.locks("s");
    let mut shared = locks.share(&main()).expect("free");
    let source = world.file("");
    let request = best_effort(world.request(&source));
    let error = take(&world.at(), &mut SnapshotHold::Shared(&mut shared), request, &Rival(&world))
        .expect_err("never first");
    assert!(matches!(error, TakeError::Overtaken), "{error}");
    assert_eq!(error.code(), Code::LockConflict, "{error}");
    assert!(error.next().is_some());
    let head = shared.fence().read().expect("read").head;
    let lineage = Lineage::from_head(world.at().catalog(), head).expect("a lineage");
    assert_eq!(lineage.count(), world.names(&layout::snapshots()).len(), "it left nothing");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}

#[test]
fn what_is_taken_beside_the_line_leaves_the_head_what_it_was() {
    let world = World::new();
    world.write("a.txt", "one");
    let mut lease = world.lease();
    let first = world.snapshot(&mut lease);
    let source = world.file("");
    let take_at = |lease: &mut Lease<'_>, place| {
        let request = Request { place, ..world.request(&source) };
        take(&world.at(), &mut SnapshotHold::Lease(lease), request, &Silent)
    };
    let named = |lease: &mut Lease<'_>, name: &str| {
        let head = lease.fence().expect("live").read().expect("read").head;
        select(&world.store, head, name).expect("found").id()
    };
    world.write("a.txt", "spoilt");
    let kept = take_at(&mut lease, LinePlace::Aside).expect("taken").ready;
    assert_eq!(named(&mut lease, "@"), first.id());
    assert_eq!(read(&world.kept(&kept, "a.txt")), "spoilt");
    let second = world.snapshot(&mut lease);
    assert_eq!(second.descriptor().parent, Some(kept.id()), "in the order of commits");
    assert_eq!((named(&mut lease, "@"), named(&mut lease, "@-")), (second.id(), first.id()));

    let back = LinePlace::Move { from: Some(second.id()), to: Some(first.id()) };
    take_at(&mut lease, back).expect("moved");
    assert_eq!(named(&mut lease, "@"), first.id());
    let before = world.names(&layout::snapshots());
    let error = take_at(&mut lease, back).expect_err("the line ends elsewhere by now");
    assert!(matches!(error, TakeError::Overtaken), "{error}");
    assert_eq!(world.names(&layout::snapshots()), before, "it left nothing");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}
