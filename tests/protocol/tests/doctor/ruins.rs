//! What can have happened to a repository, and be mended without a person.

use jvs_lock::queue::{Fingerprint, Waiter};
use jvs_repo::clock::Clock as _;
use jvs_repo::id::{FencingToken, HolderNonce};
use jvs_repo::layout;
use jvs_repo::store::Store as _;
use jvs_repo::term::Term;
use jvs_snapshot::Snapshots;
use jvs_snapshot::staging_name::StagingName;
use jvs_world::repository::main;
use jvs_world::sim::ward::{OP, Ward};
use jvs_world::sim::{LEASE_MS, LONG_MS, SimTrees, stage};

/// Breaks a repository.
pub(crate) type Ruin = fn(&Ward<'_>);

/// Each with its name.
pub(crate) const RUINS: &[(&str, Ruin)] = &[
    ("the register is gone", |w| w.remove(&layout::register(&main()))),
    ("the register is empty", |w| w.remove(&w.entry(&w.state()))),
    ("the register has two entries", |w| w.write(&w.entry(&w.earlier), b"")),
    ("the register's entry is garbled", |w| {
        let other = layout::register(&main()).child("1.broken").expect("plain");
        w.store().rename(&w.entry(&w.state()), &other).expect("renamed");
    }),
    ("the register is a file", |w| {
        w.remove(&layout::register(&main()));
        w.write(&layout::register(&main()), b"");
    }),
    ("the register is from a backup", |w| {
        w.store().rename(&w.entry(&w.state()), &w.entry(&w.earlier)).expect("renamed");
    }),
    ("the register was buried", bury),
    ("all locks are gone", |w| w.remove(&layout::locks())),
    ("the lock was abandoned", |w| {
        drop(w.lease("gone"));
        w.solo.pass_ms(LONG_MS);
    }),
    ("a freeze is over", |w| {
        w.locks("gone").freeze(&main(), LEASE_MS, "maintenance", false).expect("frozen");
        w.solo.pass_ms(LONG_MS);
    }),
    ("a record is stale", |w| {
        let lease = w.lease("gone");
        let record = layout::lock_record(&main());
        let bytes = w.store().read(&record, 10_000).expect("read");
        lease.release().expect("released");
        w.write(&record, &bytes);
    }),
    ("a record is torn", |w| w.write(&layout::lock_record(&main()), b"{\"version\":1,")),
    ("the head is not visible yet", |w| {
        let dir = layout::snapshot(w.ids[1]);
        w.store().rename(&layout::ready(&dir), &layout::ready_staged(&dir)).expect("renamed");
    }),
    ("the head's READY is gone", |w| w.remove(&layout::ready(&layout::snapshot(w.ids[1])))),
    ("an ancestor's READY is gone", |w| w.remove(&layout::ready(&layout::snapshot(w.ids[0])))),
    ("an ancestor's READY is garbled", |w| {
        w.write(&layout::ready(&layout::snapshot(w.ids[0])), b"what?");
    }),
    ("a snapshot was never finished", |w| {
        dead_work(w);
    }),
    ("a dead snapshot was made visible", |w| {
        let dir = layout::snapshot(dead_work(w));
        w.store().rename(&layout::ready_staged(&dir), &layout::ready(&dir)).expect("renamed");
    }),
    ("a restore was never finished", |w| {
        let state = w.state();
        let name = StagingName::Restore {
            worktree: main(),
            term: Term { token: FencingToken(state.token.0 - 1), ..state.term() },
            source: w.ids[0],
            op: OP,
        };
        w.store().make_dir(&name.path()).expect("made");
    }),
    ("a collection was never finished", |w| {
        let condemned = StagingName::Condemned { id: w.ids[0], op: OP }.path();
        let bytes = w.store().read(&layout::descriptor(&layout::snapshot(w.ids[0])), 10_000);
        w.write(&layout::tombstone(w.ids[0]), &bytes.expect("read"));
        w.store().rename(&layout::snapshot(w.ids[0]), &condemned).expect("renamed");
        let doomed = StagingName::Doomed { op: OP }.path();
        w.store().make_dir(&doomed).expect("made");
        w.write(&doomed.child("rest").expect("plain"), b"");
    }),
    ("temporary files were left", |w| {
        let state = w.state();
        let mark = format!("{}-{}-{OP}", state.epoch, state.token.0 - 1);
        w.write(&layout::lock_tmp(&main(), &mark), b"");
        let birth = layout::register_birth(&main(), OP);
        w.store().make_dir(&birth).expect("made");
        w.write(&birth.child(&state.to_string()).expect("plain"), b"");
        w.write(&layout::worktree_record_tmp(&main(), OP), b"");
        w.write(&layout::tag_tmp(&"v1".parse().expect("a tag"), OP), b"");
        w.write(&layout::probe_scratch(&layout::register(&main()), OP), b"");
    }),
    ("a takeover was interrupted", |w| {
        let text = format!(r#"{{"fencing_token":{}}}"#, w.state().token);
        w.write(&layout::takeover(&main()), text.as_bytes());
    }),
    ("a waiter is gone", |w| {
        let waiter = Waiter {
            lease_ms: Some(30_000),
            since: None,
            order: 1,
            op: OP,
            holder: HolderNonce([1; 16]),
            session: Fingerprint::of_session(&"agent".parse().expect("an id")),
            boot: Fingerprint::of_clock(&w.solo.clock().boot_id(), w.solo.clock().time_namespace()),
            pid_namespace: Some(1),
            pid: 77,
            start_time: 1,
            beat: w.solo.clock().now().wall,
        };
        w.store().make_dir(&layout::queue(&main())).expect("made");
        w.write(&layout::queue(&main()).child(&waiter.to_string()).expect("plain"), b"");
    }),
    ("a directory is gone", |w| w.remove(&layout::staging())),
    ("a directory is a file", |w| {
        w.remove(&layout::staging());
        w.write(&layout::staging(), b"");
    }),
    ("the format is gone", |w| w.remove(&layout::format())),
    ("the format is garbled", |w| w.write(&layout::format(), b"{\"format\":1,")),
    ("the metadata is gone", |w| w.remove(&layout::worktree_record(&main()))),
    ("the metadata is garbled", |w| w.write(&layout::worktree_record(&main()), b"{")),
];

/// A draft and a hidden snapshot of a session whose lock was taken and used.
fn dead_work(w: &Ward<'_>) -> jvs_repo::id::SnapshotId {
    let trees = SimTrees(w.store());
    let at = Snapshots::new(w.seams(), &trees);
    let mut lease = w.lease("gone");
    w.solo.pass_ms(1);
    std::mem::forget(at.begin(&lease.fence().expect("live")).expect("begun"));
    let staged = stage(w.seams(), &at, &mut lease, "never").expect("staged");
    let id = staged.id();
    std::mem::forget(staged);
    w.solo.pass_ms(LONG_MS);
    w.lease("next").release().expect("released");
    id
}

/// Breaks a new repository.
pub(crate) fn ruined(ruin: Ruin) -> Ward<'static> {
    let mut ward = Ward::new();
    let before = ward.kept.clone();
    ruin(&ward);
    // What was not broken must not be changed by a repair.
    ward.kept = ward.read_all(before.iter().map(|(path, _)| path));
    ward.kept.retain(|file| before.contains(file));
    ward
}

/// The register of a worktree that is there, where those of removed ones are.
pub(crate) fn bury(w: &Ward<'_>) {
    let grave = layout::buried_register(&main(), w.state().epoch);
    w.store().rename(&layout::register(&main()), &grave).expect("renamed");
}
