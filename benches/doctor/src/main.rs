//! How long doctor takes on a large repository.
//!
//! `jvs-bench-doctor [SNAPSHOTS] [WORKTREES] [DIR]`: makes one in DIR, by writing
//! what the library would have written, and times the built `jvs`.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench: makes files, reads a clock and prints"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use jvs_kit::live::binary;
use jvs_lock::State;
use jvs_repo::audit::{Alone, Event, EventKind, EventPhase, Log, WriterId};
use jvs_repo::clock::WallMs;
use jvs_repo::config::Consistency;
use jvs_repo::id::{Epoch, HolderNonce, OpNonce, SnapshotId};
use jvs_repo::json;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{Isolation, WorktreeRecord};
use jvs_repo::store::{PosixStore, RepoPath};
use jvs_snapshot::descriptor::{About, Content, Quiescence};
use jvs_snapshot::hash::Digest;
use jvs_snapshot::staging_name::SnapshotBound;
use jvs_snapshot::{Descriptor, ready};

type Outcome<T> = Result<T, Box<dyn Error>>;

const START_MS: u64 = 1_700_000_000_000;
const RUNS: u32 = 5;

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| args.next().map_or(Ok(default), |text| text.parse());
    let (snapshots, worktrees) = (number(10_000)?, number(1_000)?);
    let place = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(place)?;
    let root = dir.path().join("r");
    run(&root, &["init", &root.to_string_lossy()])?;
    let began = Instant::now();
    let events = build(&root, snapshots, worktrees)?;
    println!(
        "{snapshots} snapshots, {worktrees} worktrees, {events} events, made in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    for args in [&["doctor"] as &[&str], &["doctor", "--strict"]] {
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let began = Instant::now();
            run(&root.join(layout::MAIN_DIR), args)?;
            best = best.min(began.elapsed().as_secs_f64());
        }
        println!("{:16} {:8.1} ms, best of {RUNS}", args.join(" "), best * 1000.0);
    }
    Ok(())
}

fn run(cwd: &Path, args: &[&str]) -> Outcome<()> {
    let cwd = if cwd.is_dir() { cwd } else { cwd.parent().ok_or("no parent")? };
    let out = Command::new(binary::jvs()).args(args).current_dir(cwd).output()?;
    if !out.status.success() {
        return Err(format!("{args:?}: {}", String::from_utf8_lossy(&out.stdout)).into());
    }
    Ok(())
}

/// Fills the repository; the number of events.
fn build(root: &Path, snapshots: u64, worktrees: u64) -> Outcome<u64> {
    let store = PosixStore::open(root)?;
    let at = |path: &RepoPath| store.absolute(path);
    let mut log = Log::new(&store, &Alone, WriterId::derive(b"bench", 0));
    let mut events = 0;
    let mut id = 0;
    for number in 0..worktrees {
        let name: WorktreeName = format!("w{number}").parse()?;
        fs_err::create_dir_all(at(&layout::payload(&name)))?;
        let record = WorktreeRecord::new(Isolation::Exclusive, WallMs(START_MS));
        fs_err::write(at(&layout::worktree_record(&name)), json::canonical(&record))?;
        let mut op = 0_u64;
        let mut fresh = || {
            op += 1;
            OpNonce((number << 32 | op).to_be_bytes())
        };
        let mut state = State::birth(Epoch { counter: 1, salt: 7 }, fresh());
        let mut note = |kind, from: Option<&State>, to: &State| -> Outcome<()> {
            for phase in [EventPhase::Intent, EventPhase::Done] {
                events += 1;
                log.append(&Event {
                    kind,
                    phase,
                    at: WallMs(START_MS).rfc3339(),
                    op: to.op,
                    worktree: Some(name.clone()),
                    session_id: "bench".into(),
                    holder_id: "host:ann:1:1".into(),
                    uid: None,
                    from: from.map(State::to_string),
                    to: Some(to.to_string()),
                    reason: None,
                    details: None,
                })?;
            }
            Ok(())
        };
        note(EventKind::Create, None, &state)?;
        for _ in 0..snapshots / worktrees {
            id += 1;
            let held = state.granted(HolderNonce([1; 16]), 30_000, WallMs(START_MS), fresh());
            note(EventKind::Acquire, Some(&state), &held)?;
            let bound = SnapshotBound {
                worktree: name.clone(),
                term: held.term(),
                parent: held.head,
                generation: held.generation,
                id: SnapshotId { created_ms: START_MS + id, random: id as u32 },
            };
            snapshot(&store, &bound)?;
            let moved = held.with_head(bound.id, fresh());
            note(EventKind::Publish, Some(&held), &moved)?;
            state = moved.released(fresh());
            note(EventKind::Release, Some(&moved), &state)?;
        }
        let register = at(&layout::register(&name));
        fs_err::create_dir(&register)?;
        fs_err::write(register.join(state.to_string()), "")?;
    }
    Ok(events)
}

fn snapshot(store: &PosixStore, bound: &SnapshotBound) -> Outcome<()> {
    let dir = layout::snapshot(bound.id);
    let at = |path: &RepoPath| store.absolute(path);
    fs_err::create_dir_all(at(&layout::snapshot_payload(&dir)))?;
    let manifest = vec![7; 2_000];
    fs_err::write(at(&layout::manifest(&dir)), &manifest)?;
    let about = About {
        created_at: WallMs(START_MS),
        note: Some("nightly".into()),
        tags: Vec::new(),
        holder_id: "host:ann:1:1".into(),
        session_id: "bench".into(),
    };
    let content = Content {
        consistency: Consistency::Quiesced,
        files: 20,
        bytes: 20_000,
        payload_root_hash: Digest::of(b"tree"),
        manifest_hash: Digest::of(&manifest),
        engine: "copy".into(),
        degraded: Vec::new(),
        quiescence: Quiescence {
            proven: true,
            compared: 20,
            attempts: 1,
            changed: Vec::new(),
            digest: Digest::of(b"quiet"),
        },
        boot_id: None,
        id_map: None,
        risk: None,
    };
    let (bytes, checksum) = Descriptor::new(bound, about, content).seal();
    fs_err::write(at(&layout::descriptor(&dir)), bytes)?;
    Ok(fs_err::write(at(&layout::ready(&dir)), ready::bytes(bound.id, checksum))?)
}
