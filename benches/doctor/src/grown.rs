//! What is left of many locks and snapshots that are over, and what it costs.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use jvs_lock::{Locks, Seams, Want};
use jvs_repo::clock::{BootId, BootMs, Clock, Discipline, Reading, SystemClock, WallMs};
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::PosixStore;
use jvs_world::session::locks_of;

use crate::{LEFT, Outcome, best_of, build, files_in, run as jvs};

/// What the fresh one has had, too.
const FEW: u64 = 10;
/// Who takes turns.
const SESSIONS: [&str; 4] = ["ann", "bob", "ci", "dan"];
/// How far apart locks are taken: of many, the last hour has had six.
const APART_MS: u64 = 10 * 60_000;

pub(crate) fn run(cycles: u64, snapshots: u64, place: &Path) -> Outcome<()> {
    let dir = tempfile::tempdir_in(place)?;
    let [fresh, old] = ["fresh", "old"].map(|name| dir.path().join(name));
    let mut made = Vec::new();
    for (root, cycles, snapshots) in [(&fresh, FEW, LEFT), (&old, cycles, snapshots + LEFT)] {
        let began = Instant::now();
        jvs(root, &["init", &root.to_string_lossy()])?;
        build(root, snapshots, 1)?;
        take_and_release(root, cycles)?;
        let keep = LEFT.to_string();
        let gc = ["--session", "bench", "gc", "--keep-last", &keep, "--keep-within", "0s"];
        jvs(&root.join(layout::MAIN_DIR), &gc)?;
        made.push(began.elapsed().as_secs_f64());
    }
    println!("{cycles} locks, {snapshots} snapshots collected, in {:.1} s", made[1]);
    for args in [
        &["history", "-w", "w0"] as &[&str],
        &["audit", "--since", "1h"],
        &["audit"],
        &["audit", "--verify"],
        &["doctor"],
        &["doctor", "--strict"],
    ] {
        let [fresh, old] = [best_of(&fresh, args)?, best_of(&old, args)?];
        let name = args.join(" ");
        println!("{name:16} fresh {fresh:8.2} ms, old {old:8.2} ms, {:5.2} ×", old / fresh);
    }
    for part in [layout::control_dir(), layout::audit(), layout::snapshots(), layout::locks()] {
        let [fresh, old] = [&fresh, &old].map(|root| files_in(&root.join(part.as_str())));
        let ((fresh_files, fresh_kib), (old_files, old_kib)) = (fresh?, old?);
        println!(
            "{part:16} fresh {fresh_files} files, {fresh_kib} KiB; old {old_files}, {old_kib} KiB"
        );
    }
    Ok(())
}

fn take_and_release(root: &Path, cycles: u64) -> Outcome<()> {
    let store = PosixStore::open(root)?;
    let clock = LongAgo { by: AtomicU64::new(cycles * APART_MS) };
    let seams = Seams { store: &store, clock: &clock, entropy: &SystemEntropy };
    let locks: Vec<Locks<'_>> = SESSIONS.iter().map(|id| locks_of(seams, id)).collect();
    let main = WorktreeName::main();
    for locks in locks.iter().cycle().take(usize::try_from(cycles)?) {
        locks.acquire(&main, Want::lease(60_000))?.release().map_err(|failed| failed.error)?;
        clock.by.fetch_sub(APART_MS, Ordering::Relaxed);
    }
    Ok(())
}

/// The system's clocks as they were some time ago.
struct LongAgo {
    by: AtomicU64,
}

impl Clock for LongAgo {
    fn now(&self) -> Reading {
        let Reading { wall, boot } = SystemClock.now();
        // Both as if they had always run on: far from their beginning, so that it is none.
        let by = self.by.load(Ordering::Relaxed);
        Reading { wall: WallMs(wall.0 - by), boot: BootMs(boot.0 + u64::MAX / 2 - by) }
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
