//! How long doctor takes on a large repository.
//!
//! `jvs-bench-doctor [SNAPSHOTS] [WORKTREES] [DIR]`: makes one in DIR, by writing
//! what the library would have written, and times the built `jvs`.
//!
//! `jvs-bench-doctor collected [SNAPSHOTS] [DIR]`: how much is left of snapshots that were
//! collected, and what it costs, beside a repository that never had them.
//!
//! `jvs-bench-doctor grown [CYCLES] [SNAPSHOTS] [DIR]`: the same after so many locks were
//! taken and released as well, logs and all.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench: makes files, reads a clock and prints"
)]

mod grown;

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
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if(|word| word == "collected").is_some() {
        let snapshots = args.next().map_or(Ok(10_000), |text| text.parse())?;
        return collected(snapshots, &args.next().map_or_else(std::env::temp_dir, PathBuf::from));
    }
    if args.next_if(|word| word == "grown").is_some() {
        let cycles = args.next().map_or(Ok(5_000), |text| text.parse())?;
        let snapshots = args.next().map_or(Ok(500), |text| text.parse())?;
        let place = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
        return grown::run(cycles, snapshots, &place);
    }
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
        let best = best_of(&root, args)?;
        println!("{:16} {best:8.1} ms, best of {RUNS}", args.join(" "));
    }
    Ok(())
}

/// In milliseconds.
fn best_of(root: &Path, args: &[&str]) -> Outcome<f64> {
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let began = Instant::now();
        run(&root.join(layout::MAIN_DIR), args)?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(best * 1000.0)
}

/// How many snapshots are left.
const LEFT: u64 = 10;

fn collected(snapshots: u64, place: &Path) -> Outcome<()> {
    let dir = tempfile::tempdir_in(place)?;
    let [fresh, old] = ["fresh", "old"].map(|name| dir.path().join(name));
    for (root, snapshots) in [(&fresh, LEFT), (&old, snapshots)] {
        run(root, &["init", &root.to_string_lossy()])?;
        build(root, snapshots, 1)?;
    }
    let (keep, began) = (LEFT.to_string(), Instant::now());
    let gc = ["--session", "bench", "gc", "--keep-last", &keep, "--keep-within", "0s"];
    run(&old.join(layout::MAIN_DIR), &gc)?;
    println!(
        "{} of {snapshots} collected in {:.1} s",
        snapshots - LEFT,
        began.elapsed().as_secs_f64()
    );
    // What is in the log is another matter: without it doctor has less to read, and says so.
    for root in [&fresh, &old] {
        for log in fs_err::read_dir(root.join(layout::audit().as_str()))? {
            fs_err::remove_file(log?.path())?;
        }
    }
    for args in [&["history", "-w", "w0"] as &[&str], &["gc", "--dry-run"], &["doctor", "--strict"]]
    {
        let [fresh, old] = [best_of(&fresh, args)?, best_of(&old, args)?];
        let name = args.join(" ");
        println!("{name:16} fresh {fresh:8.2} ms, old {old:8.2} ms, {:5.2} ×", old / fresh);
    }
    let [fresh, old] =
        [&fresh, &old].map(|root| files_in(&root.join(layout::snapshots().as_str())));
    let ((fresh_files, fresh_kib), (old_files, old_kib)) = (fresh?, old?);
    println!(
        "snapshots/: fresh {fresh_files} files, {fresh_kib} KiB; old {old_files}, {old_kib} KiB"
    );
    Ok(())
}

/// How many files are in a directory and below, and how many KiB they take.
fn files_in(dir: &Path) -> Outcome<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let (mut files, mut kib) = (0, 0);
    for entry in fs_err::read_dir(dir)? {
        let (path, stat) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        kib += stat.blocks() / 2;
        match stat.is_dir() {
            true => {
                let (more, room) = files_in(&path)?;
                (files, kib) = (files + more, kib + room);
            }
            false => files += 1,
        }
    }
    Ok((files, kib))
}

fn run(cwd: &Path, args: &[&str]) -> Outcome<()> {
    let cwd = if cwd.is_dir() { cwd } else { cwd.parent().ok_or("no parent")? };
    let out = Command::new(binary::jvs()).args(args).current_dir(cwd).output()?;
    // That doctor found something is an answer, too.
    if !out.status.success() && out.status.code() != Some(12) {
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
        line: None,
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
        ignore_rules: Vec::new(),
        risk: None,
    };
    let (bytes, checksum) = Descriptor::new(bound, about, content).seal();
    fs_err::write(at(&layout::descriptor(&dir)), bytes)?;
    Ok(fs_err::write(at(&layout::ready(&dir)), ready::bytes(bound.id, checksum))?)
}
