//! One broken repository a check.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jvs_doctor::Check;
use jvs_lock::queue::Waiter;
use jvs_lock::record::{Keeper, Meaning as _, Record, Stamp};
use jvs_lock::{Secret, Session, State};
use jvs_repo::clock::{BootId, BootMs, Clock as _, Reading, SystemClock, WallMs};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::{FencingToken, Generation, HolderNonce, OpNonce, Seq, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc;
use jvs_repo::record::patch::{Patch, PatchStep};
use jvs_repo::term::Term;
use jvs_snapshot::Descriptor;
use jvs_snapshot::staging_name::{SnapshotBound, StagingName};
use jvs_world::session::identity;

use crate::clinic::{Clinic, OP, compare, main, side};
use crate::reference::assert_shown;

macro_rules! faults {
    ($(#[test] fn $test:ident shows $check:ident: $break:expr;)*) => {
        /// The checks that have a fixture here.
        pub(crate) const SHOWN: &[(Check, &str)] = &[$((Check::$check, stringify!($test)),)*];

        $(#[test]
        fn $test() {
            shows(Check::$check, stringify!($test), $break);
        })*
    };
}

#[track_caller]
fn shows(check: Check, name: &str, damage: impl FnOnce(&Clinic)) {
    let clinic = Clinic::new();
    damage(&clinic);
    clinic.assert_a_repair_does_what_its_dry_run_said();
    let story = clinic.story();
    assert_shown(check, &story);
    compare(name, &story);
}

fn session(secret: u8) -> Session {
    let me = identity(BootId("another boot".into()));
    Session::new("agent".parse().expect("an id"), &Secret([secret; 32]), me)
}

const HOUR_MS: u64 = 3_600_000;

/// Somebody took the lock so long ago, and it is still there.
fn hold(clinic: &Clinic, worktree: &WorktreeName, ago_ms: u64, lease_ms: u64) -> (State, Record) {
    let now = SystemClock.now();
    let then = Reading { wall: WallMs(now.wall.0 - ago_ms), ..now };
    let session = session(1);
    let state = clinic.state(worktree).granted(session.nonce(), lease_ms, then.wall, OP);
    clinic.set_state(worktree, &state);
    let claim = *state.hold.claim().expect("a claim");
    let policy = LockPolicy::default();
    let stamp = Stamp { at: then, time_namespace: SystemClock.time_namespace() };
    let mut record = Record::of_grant(&session, worktree, &state, &claim, stamp, &policy, None);
    // Nobody renews it, so nobody has to watch it before it is taken.
    record.renews = Some(false);
    put_record(clinic, worktree, &record);
    (state, record)
}

fn put_record(clinic: &Clinic, worktree: &WorktreeName, record: &Record) {
    clinic.write(&layout::lock_record(worktree), record.to_bytes().expect("it fits"));
}

fn garbled(clinic: &Clinic, path: &jvs_repo::store::RepoPath) {
    let mut bytes = fs_err::read(clinic.at(path)).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x20;
    clinic.write(path, bytes);
}

/// Another session in a file that has a checksum.
fn claimed(clinic: &Clinic, path: &jvs_repo::store::RepoPath) {
    let text = fs_err::read_to_string(clinic.at(path)).expect("text");
    let other = text.replace("\"test\"", "\"evil\"");
    assert_ne!(text, other, "{path}");
    clinic.write(path, other);
}

fn lines(clinic: &Clinic, change: impl Fn(&mut Vec<String>)) {
    let log = clinic.logs().remove(0);
    let text = fs_err::read_to_string(clinic.at(&log)).expect("read");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    clinic.write(&log, lines.join("\n") + "\n");
}

fn bound(clinic: &Clinic, token: u64) -> SnapshotBound {
    let state = clinic.state(&main());
    SnapshotBound {
        worktree: main(),
        term: Term { token: FencingToken(token), ..state.term() },
        parent: state.head,
        generation: state.generation,
        id: SnapshotId { created_ms: 1_700_000_000_000, random: 7 },
    }
}

/// A hidden snapshot, whole, bound as given.
fn hidden(clinic: &Clinic, bound: &SnapshotBound) {
    let source = layout::snapshot(clinic.head());
    let dir = layout::snapshot(bound.id);
    clinic.make_dir(&dir);
    clinic.make_dir(&layout::snapshot_payload(&dir));
    let bytes = fs_err::read(clinic.at(&layout::descriptor(&source))).expect("read");
    let (mut descriptor, _) = Descriptor::parse(&bytes).expect("valid");
    descriptor.snapshot_id = bound.id;
    descriptor.parent = bound.parent;
    descriptor.fencing_token = bound.term.token;
    descriptor.commit_seq = bound.generation.next();
    let (bytes, checksum) = descriptor.seal();
    clinic.write(&layout::descriptor(&dir), bytes);
    let manifest = fs_err::read(clinic.at(&layout::manifest(&source))).expect("read");
    clinic.write(&layout::manifest(&dir), manifest);
    clinic.write(&layout::ready_staged(&dir), jvs_snapshot::ready::bytes(bound.id, checksum));
}

/// The same, visible: what nobody but a restore from a backup could have made.
fn visible(clinic: &Clinic, bound: &SnapshotBound) {
    hidden(clinic, bound);
    let dir = layout::snapshot(bound.id);
    let rename =
        fs_err::rename(clinic.at(&layout::ready_staged(&dir)), clinic.at(&layout::ready(&dir)));
    rename.expect("renamed");
}

/// What a takeover by the letter of v6.3 writes before it renames it into place.
fn takeover_by(token: u64) -> String {
    format!(
        r#"{{"worktree_id":"main","holder_id":"box:bob:7:1","session_id":"bob",
            "lease_duration_ms":30000,"fencing_token":{token}}}"#
    )
}

fn ticket(clinic: &Clinic, pid: u32, start: u64) -> Waiter {
    // The name of a real ticket, made by waiting: its boot mark is this boot's.
    let holder = HolderNonce([1; 16]);
    let boot = jvs_lock::queue::Fingerprint::of_clock(
        &SystemClock.boot_id(),
        SystemClock.time_namespace(),
    );
    let waiter = Waiter {
        lease_ms: Some(30_000),
        order: 1,
        op: OP,
        holder,
        session: jvs_lock::queue::Fingerprint::of_session(&"agent".parse().expect("an id")),
        boot,
        pid_namespace: proc::pid_namespace(),
        pid,
        start_time: start,
        since: None,
        beat: SystemClock.now().wall,
    };
    let dir = layout::queue(&main());
    clinic.make_dir(&dir);
    fs_err::write(clinic.below(&dir, &waiter.to_string()), "").expect("written");
    waiter
}

faults! {
    #[test]
    fn format_missing shows FormatMissing: |c: &Clinic| c.remove(&layout::format());
    #[test]
    fn format_invalid shows FormatInvalid: |c: &Clinic| c.write(&layout::format(), "{\"format\":1,");
    #[test]
    fn format_unsupported shows FormatUnsupported: |c: &Clinic| c.write(&layout::format(), "{\"format\":2}");
    #[test]
    fn config_invalid shows ConfigInvalid: |c: &Clinic| c.write(&layout::config(), "lock.leese = 1\n");
    #[test]
    fn directory_missing shows DirectoryMissing: |c: &Clinic| {
        c.jvs(&["tag", "--delete", "v1"]).ok();
        c.remove(&layout::tags());
    };
    #[test]
    fn not_a_directory shows NotADirectory: |c: &Clinic| {
        c.remove(&layout::staging());
        c.write(&layout::staging(), "");
    };
    #[test]
    fn symlink shows Symlink: |c: &Clinic| {
        let record = layout::worktree_record(&side());
        fs_err::rename(c.at(&record), c.root.join("elsewhere")).expect("moved");
        c.symlink(&c.root.join("elsewhere"), &record);
        c.symlink(Path::new("/etc"), &layout::lock_record(&main()));
    };
    #[test]
    fn mode shows Mode: |c: &Clinic| {
        let open = |bits| std::fs::Permissions::from_mode(bits);
        fs_err::set_permissions(c.at(&layout::config()), open(0o666)).expect("chmod");
        fs_err::set_permissions(c.at(&layout::tags()), open(0o311)).expect("chmod");
    };
    #[test]
    fn foreign_file shows ForeignFile: |c: &Clinic| {
        fs_err::write(c.below(&layout::control_dir(), "notes.txt"), "").expect("written");
        fs_err::write(c.below(&layout::locks(), "lost+found"), "").expect("written");
        c.make_dir(&layout::queue(&main()));
        fs_err::write(c.below(&layout::queue(&main()), "no ticket"), "").expect("written");
    };
    #[test]
    fn register_missing shows RegisterMissing: |c: &Clinic| c.remove(&layout::register(&main()));
    #[test]
    fn register_empty shows RegisterEmpty: |c: &Clinic| {
        c.remove(&layout::register(&main()));
        c.make_dir(&layout::register(&main()));
    };
    #[test]
    fn register_two_entries shows RegisterTwo: |c: &Clinic| {
        let older = c.state(&main());
        let newer = older.granted(HolderNonce([3; 16]), 30_000, WallMs(0), OP).released(OP);
        c.add_state(&main(), &newer);
    };
    #[test]
    fn register_unparsable shows RegisterUnparsable: |c: &Clinic| {
        let dir = layout::register(&main());
        let old = c.below(&dir, &c.state(&main()).to_string());
        fs_err::rename(old, c.below(&dir, "1.broken")).expect("renamed");
    };
    #[test]
    fn register_newer shows RegisterNewer: |c: &Clinic| {
        let dir = layout::register(&main());
        let state = c.state(&main()).to_string();
        fs_err::rename(c.below(&dir, &state), c.below(&dir, &format!("3{}.more", &state[1..])))
            .expect("renamed");
    };
    #[test]
    fn register_chain shows RegisterChain: |c: &Clinic| {
        let made = c.state(&side());
        c.set_state(&side(), &State { token: FencingToken(9), seq: Seq(0), ..made });
    };
    #[test]
    fn register_regressed shows RegisterRegressed: |c: &Clinic| {
        c.set_state(&main(), &c.earlier());
    };
    #[test]
    fn register_set_back shows RegisterRegressed: |c: &Clinic| {
        // What remembers is a snapshot of one worktree, the lock record of the other.
        let state = c.state(&main());
        c.set_state(&main(), &State { token: FencingToken(state.token.0 - 1), ..state });
        let (held, _) = hold(c, &side(), 0, HOUR_MS);
        c.set_state(&side(), &State { token: FencingToken(held.token.0 - 1), ..held.released(OP) });
    };
    #[test]
    fn record_missing shows RecordMissing: |c: &Clinic| {
        hold(c, &main(), 0, HOUR_MS);
        c.remove(&layout::lock_record(&main()));
    };
    #[test]
    fn record_torn shows RecordTorn: |c: &Clinic| c.write(&layout::lock_record(&main()), "{\"version\":1,");
    #[test]
    fn record_stale shows RecordStale: |c: &Clinic| {
        let (state, _) = hold(c, &main(), 0, HOUR_MS);
        c.set_state(&main(), &state.released(OP));
    };
    #[test]
    fn record_foreign shows RecordForeign: |c: &Clinic| {
        let (state, record) = hold(c, &main(), 0, HOUR_MS);
        c.set_state(&main(), &state.released(OP));
        put_record(c, &side(), &record);
        c.remove(&layout::lock_record(&main()));
        let nowhere: WorktreeName = "nowhere".parse().expect("a name");
        put_record(c, &nowhere, &record);
    };
    #[test]
    fn record_legacy shows RecordLegacy: |c: &Clinic| {
        let lock = r#"{"owner":"bob","since":1700000000000,"ttl":60}"#;
        c.write(&layout::legacy_lock(&main()), lock);
    };
    #[test]
    fn lock_expired shows LockExpired: |c: &Clinic| {
        c.jvs(&["config", "set", "lock.steal_grace_ms", "600000"]).ok();
        hold(c, &main(), 60_000, 30_000);
    };
    #[test]
    fn lock_abandoned shows LockAbandoned: |c: &Clinic| { hold(c, &main(), HOUR_MS, 30_000); };
    #[test]
    fn freeze_stale shows FreezeStale: |c: &Clinic| {
        // On this boot, so that no wall clock is asked.
        let now = SystemClock.now();
        let then = Reading { wall: WallMs(now.wall.0 - 10_000), boot: BootMs(now.boot.0 - 10_000) };
        let (session, policy) = (session(1), LockPolicy::default());
        let frozen = c.state(&main()).frozen(session.nonce(), 1_000, then.wall, OP);
        c.set_state(&main(), &frozen);
        let claim = *frozen.hold.claim().expect("a claim");
        let stamp = Stamp { at: then, time_namespace: SystemClock.time_namespace() };
        let mut record =
            Record::of_grant(&session, &main(), &frozen, &claim, stamp, &policy, None);
        record.boot_id = SystemClock.boot_id();
        put_record(c, &main(), &record);
    };
    #[test]
    fn keeper_dead shows KeeperDead: |c: &Clinic| {
        let (_, mut record) = hold(c, &main(), 0, HOUR_MS);
        record.keeper = Some(Keeper {
            time_namespace: SystemClock.time_namespace(),
            pid: std::process::id(),
            start_time: 1,
            boot_id: SystemClock.boot_id(),
            pid_namespace: proc::pid_namespace(),
        });
        put_record(c, &main(), &record);
    };
    #[test]
    fn ticket_stale shows TicketStale: |c: &Clinic| { ticket(c, std::process::id(), 1); };
    #[test]
    fn tmp_dead shows TmpDead: |c: &Clinic| {
        let state = c.state(&main());
        let mark = format!("{}-{}-{OP}", state.epoch, state.token.0 - 1);
        c.write(&layout::lock_tmp(&main(), &mark), "");
        let birth = layout::register_birth(&main(), OP);
        c.make_dir(&birth);
        fs_err::write(c.below(&birth, &state.to_string()), "").expect("written");
        c.write(&layout::worktree_record_tmp(&main(), OP), "");
        c.write(&layout::tag_tmp(&"v1".parse().expect("a tag"), OP), "");
        let probe = layout::probe_scratch(&layout::register(&main()), OP);
        c.write(&probe, "");
    };
    #[test]
    fn takeover_dead shows TmpDead: |c: &Clinic| {
        let state = c.state(&main());
        c.write(&layout::takeover(&main()), takeover_by(state.token.0));
    };
    #[test]
    fn takeover_unproven shows TmpUnproven: |c: &Clinic| {
        let state = c.state(&main());
        c.write(&layout::takeover(&main()), takeover_by(state.token.0 + 1));
        c.write(&layout::takeover(&"other".parse().expect("a name")), "{");
    };
    #[test]
    fn tmp_unproven shows TmpUnproven: |c: &Clinic| {
        let state = c.state(&main());
        c.write(&layout::lock_tmp(&main(), &format!("{}-{}-{OP}", state.epoch, state.token)), "");
        c.write(&layout::config_tmp(OP), "");
        c.write(&layout::worktree_record_tmp(&"new".parse().expect("a name"), OP), "");
        // Nobody makes one that is not empty.
        c.write(&layout::probe_scratch(&layout::register(&main()), OP), "what is this");
    };
    #[test]
    fn staged_dead shows StagedDead: |c: &Clinic| {
        c.make_dir(&StagingName::Snapshot(bound(c, 1)).path());
        hidden(c, &SnapshotBound { id: SnapshotId { created_ms: 1_700_000_000_001, random: 8 }, ..bound(c, 1) });
    };
    #[test]
    fn staged_in_flight shows StagedInFlight: |c: &Clinic| {
        let token = c.state(&main()).token.0;
        c.make_dir(&StagingName::Snapshot(bound(c, token)).path());
        hidden(c, &SnapshotBound { id: SnapshotId { created_ms: 1_700_000_000_001, random: 8 }, ..bound(c, token) });
    };
    #[test]
    fn staged_unknown shows StagedUnknown: |c: &Clinic| {
        c.make_dir(&layout::staged("what-is-this").expect("plain"));
    };
    #[test]
    fn restore_dead shows RestoreDead: |c: &Clinic| {
        let state = c.state(&main());
        let term = Term { token: FencingToken(state.token.0 - 1), ..state.term() };
        let source = c.head();
        // A copy that was never swapped, one that was, and one with last words.
        let copy = StagingName::Restore { worktree: main(), term, source, op: OP };
        c.make_dir(&copy.path());
        fs_err::write(c.below(&copy.path(), "half a file"), "ha").expect("written");
        for (op, text) in [(OpNonce([3; 8]), None), (OpNonce([4; 8]), Some("the last words"))] {
            let worktree = main();
            let swap = StagingName::Swap { worktree, term, source, kept: None, op };
            let tree = layout::snapshot_payload(&swap.path());
            c.make_dir(&swap.path());
            c.copy(&layout::snapshot_payload(&layout::snapshot(source)), &tree);
            if let Some(text) = text {
                fs_err::write(c.below(&tree, "precious"), text).expect("written");
            }
        }
    };
    #[test]
    fn restore_unfinished shows RestoreUnfinished: |c: &Clinic| {
        // The first snapshot is restored; what only the second has is still there.
        let (state, worktree) = (c.state(&main()), main());
        let (source, kept) = (c.first(), Some(c.head()));
        let patch = StagingName::Patch { worktree, term: state.term(), source, kept, op: OP }.path();
        c.make_dir(&patch);
        c.make_dir(&layout::snapshot_payload(&patch));
        let path = jvs_repo::id::hex(b"two");
        let steps = vec![PatchStep { path, inode: None, replaces: true }];
        c.write(&layout::journal(&patch), Patch::new(steps, vec![String::new()]).to_bytes());
        c.write(&layout::restore_mark(&main(), OP), "");
    };
    #[test]
    fn gc_unfinished shows GcUnfinished: |c: &Clinic| {
        c.make_dir(&StagingName::Doomed { op: OP }.path());
        let condemned = StagingName::Condemned { id: c.first(), op: OP }.path();
        fs_err::rename(c.at(&layout::snapshot(c.first())), c.at(&condemned)).expect("moved");
        let kept = fs_err::read(c.at(&layout::descriptor(&condemned))).expect("read");
        let id: SnapshotId = condemned.split().1.split('.').nth(1).expect("an id").parse().expect("an id");
        c.write(&layout::tombstone(id), kept);
    };
    #[test]
    fn removed_files shows RemovedFiles: |c: &Clinic| {
        // Of a worktree that was removed by force, and of one that was not.
        let life = c.state(&side()).epoch;
        c.jvs(&["worktree", "create", "gone"]).ok();
        c.jvs(&["worktree", "remove", "gone", "--force"]).ok();
        let gone = "gone".parse().expect("a name");
        let last = c.state(&gone);
        c.make_dir(&layout::removed_payload(&gone, last.term(), last.op));
        c.make_dir(&layout::removed_payload(&side(), Term { epoch: life, token: FencingToken(1) }, OP));
    };
    #[test]
    fn ready_pending shows ReadyPending: |c: &Clinic| {
        let dir = layout::snapshot(c.head());
        fs_err::rename(c.at(&layout::ready(&dir)), c.at(&layout::ready_staged(&dir))).expect("renamed");
    };
    #[test]
    fn ready_lost shows ReadyLost: |c: &Clinic| {
        for id in c.snapshots() {
            c.remove(&layout::ready(&layout::snapshot(id)));
        }
    };
    #[test]
    fn ready_mismatch shows ReadyMismatch: |c: &Clinic| {
        let other = fs_err::read(c.at(&layout::ready(&layout::snapshot(c.first())))).expect("read");
        c.write(&layout::ready(&layout::snapshot(c.head())), other);
    };
    #[test]
    fn ready_outside shows ReadyOutside: |c: &Clinic| {
        visible(c, &SnapshotBound { parent: Some(c.first()), generation: Generation(1), ..bound(c, 1) });
    };
    #[test]
    fn lineage_broken shows LineageBroken: |c: &Clinic| {
        c.jvs(&["tag", "--delete", "v1"]).ok();
        c.remove(&layout::snapshot(c.first()));
    };
    #[test]
    fn lineage_tombstone_missing shows LineageBroken: |c: &Clinic| {
        c.jvs(&["tag", "--delete", "v1"]).ok();
        let first = c.first();
        c.jvs(&["gc", "--keep-last", "1", "--keep-within", "0s"]).ok();
        c.remove(&layout::tombstone(first));
    };
    #[test]
    fn ledger_corrupt shows LedgerCorrupt: |c: &Clinic| {
        c.write(&layout::ledger(OP), "jvs ledger 1\n and no more");
    };
    #[test]
    fn lineage_cycle shows LineageCycle: |c: &Clinic| {
        let path = layout::descriptor(&layout::snapshot(c.first()));
        let bytes = fs_err::read(c.at(&path)).expect("read");
        let (mut descriptor, _) = Descriptor::parse(&bytes).expect("valid");
        descriptor.parent = Some(c.head());
        descriptor.commit_seq = Generation(2);
        let (bytes, checksum) = descriptor.seal();
        c.write(&path, bytes);
        let ready = layout::ready(&layout::snapshot(c.first()));
        c.write(&ready, jvs_snapshot::ready::bytes(c.first(), checksum));
    };
    #[test]
    fn descriptor_corrupt shows DescriptorCorrupt: |c: &Clinic| {
        claimed(c, &layout::descriptor(&layout::snapshot(c.head())));
    };
    #[test]
    fn manifest_corrupt shows ManifestCorrupt: |c: &Clinic| {
        garbled(c, &layout::manifest(&layout::snapshot(c.head())));
    };
    #[test]
    fn payload_missing shows PayloadMissing: |c: &Clinic| {
        c.remove(&layout::snapshot_payload(&layout::snapshot(c.head())));
    };
    #[test]
    fn snapshot_unknown shows SnapshotUnknown: |c: &Clinic| {
        c.make_dir(&layout::snapshot(SnapshotId { created_ms: 1_700_000_000_000, random: 7 }));
    };
    #[test]
    fn head_missing shows HeadMissing: |c: &Clinic| c.remove(&layout::snapshot(c.head()));
    #[test]
    fn tag_dangling shows TagDangling: |c: &Clinic| c.remove(&layout::snapshot(c.first()));
    #[test]
    fn tag_invalid shows TagInvalid: |c: &Clinic| claimed(c, &layout::tag(&"v1".parse().expect("a tag")));
    #[test]
    fn tag_missing shows TagMissing: |c: &Clinic| c.remove(&layout::tag(&"v1".parse().expect("a tag")));
    #[test]
    fn altered shows Altered: |c: &Clinic| {
        // A flipped bit, and a word that was changed.
        let record = layout::worktree_record(&side());
        let mut bytes = fs_err::read(c.at(&record)).expect("read");
        let digit = bytes.windows(4).position(|four| four == b"\"202").expect("a year") + 4;
        bytes[digit] ^= 1;
        c.write(&record, bytes);
        let format = fs_err::read_to_string(c.at(&layout::format())).expect("read");
        let at = format.find("-4").expect("a version 4 UUID") - 4;
        let other = if format[at..].starts_with("0000") { "ffff" } else { "0000" };
        c.write(&layout::format(), format!("{}{other}{}", &format[..at], &format[at + 4..]));
    };
    #[test]
    fn worktree_no_record shows WorktreeNoRecord: |c: &Clinic| c.remove(&layout::worktree_record(&main()));
    #[test]
    fn worktree_record_invalid shows WorktreeRecordInvalid: |c: &Clinic| {
        c.write(&layout::worktree_record(&side()), "{");
    };
    #[test]
    fn worktree_no_files shows WorktreeNoFiles: |c: &Clinic| c.remove(&layout::payload(&side()));
    #[test]
    fn worktree_half_made shows WorktreeHalfMade: |c: &Clinic| {
        c.remove(&layout::worktree_record(&side()));
        c.remove(&layout::payload(&side()));
    };
    #[test]
    fn worktree_half_removed shows WorktreeHalfRemoved: |c: &Clinic| {
        let state = c.state(&side());
        c.set_state(&side(), &state.retired(OP));
    };
    #[test]
    fn payload_unknown shows PayloadUnknown: |c: &Clinic| {
        c.make_dir(&layout::payload(&"stranger".parse().expect("a name")));
    };
    #[test]
    fn control_in_payload shows ControlInPayload: |c: &Clinic| {
        let inside = c.at(&layout::payload(&side())).join("deep").join(layout::CONTROL_DIR);
        fs_err::create_dir_all(inside).expect("made");
    };
    #[test]
    fn audit_torn shows AuditTorn: |c: &Clinic| {
        let log = c.logs().remove(0);
        let text = fs_err::read_to_string(c.at(&log)).expect("read");
        c.write(&log, format!("{text}{{\"sum\":\""));
    };
    #[test]
    fn audit_gap shows AuditGap: |c: &Clinic| {
        let moved = c.state(&main()).advanced(OP).advanced(OP);
        c.set_state(&main(), &moved);
    };
    #[test]
    fn audit_forged shows AuditForged: |c: &Clinic| {
        lines(c, |lines| lines[2] = lines[2].replace("test", "evil"));
    };
    #[test]
    fn audit_linked shows AuditLinked: |c: &Clinic| {
        let log = c.at(&c.logs().remove(0));
        fs_err::hard_link(&log, c.at(&layout::payload(&side())).join("kept")).expect("linked");
    };
    #[test]
    fn clock_skew shows ClockSkew: |c: &Clinic| {
        // By more than locks allow, and by more than half of that.
        c.jvs(&["config", "set", "lock.max_clock_skew_ms", "60000"]).ok();
        for (worktree, ahead_ms) in [(main(), HOUR_MS), (side(), 58_000)] {
            let now = SystemClock.now();
            let at = Reading { wall: WallMs(now.wall.0 + ahead_ms), ..now };
            let (state, _) = hold(c, &worktree, 0, HOUR_MS);
            let claim = state.hold.claim().expect("a claim");
            let stamp = Stamp { at, time_namespace: SystemClock.time_namespace() };
            let mut record = Record::of_grant(
                &session(1), &worktree, &state, claim, stamp, &LockPolicy::default(), None,
            );
            record.created_at = record.last_renewed_at.clone();
            put_record(c, &worktree, &record);
        }
    };
    #[test]
    fn session_stale shows SessionStale: |c: &Clinic| {
        let notes = c.home.runtime_dir().join("jvs").join("notes");
        fs_err::create_dir_all(&notes).expect("made");
        fs_err::write(notes.join("0123456789abcdef"), "lost\n").expect("written");
        let place = c.home.runtime_dir().join("jvs");
        let secret = "0123456789abcdef0123456789abcdef";
        for name in [secret.to_owned(), format!("{secret}.{OP}"), format!("{}.{OP}", &secret[1..])] {
            fs_err::write(place.join(name), [7; 32]).expect("written");
        }
    };
    #[test]
    fn filesystem_promise shows FsPromise: |c: &Clinic| {
        let verdict = serde_json::json!({
            "version": 1, "at": "2025-01-01T00:00:00.000Z", "host": "host-b",
            "filesystem": "fuse.odd", "safe": false,
            "broken": [{"subject": "rename", "message": "a rename replaced nothing",
                        "remedy": "use another filesystem"}],
        });
        c.write(&layout::probe_verdict(), verdict.to_string());
    };
}
