//! Two hundred random accidents, each on a copy of a repository with history:
//! doctor neither panics nor hangs, finds what was broken, mends it or says why
//! not, and never costs a snapshot.
//!
//! The accidents follow from a seed: `JVS_SEED` repeats a run.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use jvs_doctor::{
    Care, Depth, Examination, Patient, Rehearsal, Surroundings, Tense, examine, treat,
};
use jvs_lock::session::Purpose;
use jvs_lock::{Identity, Locks, Seams};
use jvs_repo::clock::{Clock as _, SystemClock};
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::probe::Filesystem;
use jvs_repo::proc;
use jvs_repo::store::PosixStore;
use jvs_snapshot::{Catalog, verify};
use jvs_world::session;
use jvs_world::sim::ward::told;

use crate::clinic::{Clinic, directory, readable};

const ACCIDENTS: u64 = 200;

/// A small deterministic generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % below.max(1)
    }

    fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.roll(of.len())]
    }
}

#[derive(Debug, Clone, Copy)]
enum Accident {
    Delete,
    Truncate,
    Flip,
    Swap,
    Duplicate,
    Symlink,
    Chmod,
    Kill,
}

const KINDS: [Accident; 8] = [
    Accident::Delete,
    Accident::Truncate,
    Accident::Flip,
    Accident::Swap,
    Accident::Duplicate,
    Accident::Symlink,
    Accident::Chmod,
    Accident::Kill,
];

/// Every control file, no payloads, and not the room, whose content says nothing.
fn control_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.join(layout::CONTROL_DIR)];
    while let Some(dir) = pending.pop() {
        for entry in fs_err::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let room = root.join(layout::room().as_str());
            if path == room || path.file_name().is_some_and(|name| name == "payload") {
                continue;
            }
            if path.is_dir() {
                pending.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs");
    assert!(copied.success(), "the repository can be copied");
}

fn remove(path: &Path) {
    let _ = if path.is_dir() { fs_err::remove_dir_all(path) } else { fs_err::remove_file(path) };
}

/// Breaks something; what was broken, for the message.
fn strike(dice: &mut Dice, kind: Accident, root: &Path, clinic: &Clinic) -> String {
    let files = control_files(root);
    let victim = dice.pick(&files).clone();
    let shown = victim.strip_prefix(root).unwrap_or(&victim).display().to_string();
    match kind {
        Accident::Delete => remove(&victim),
        Accident::Truncate | Accident::Flip => {
            let regular: Vec<_> = files
                .iter()
                .filter(|f| f.metadata().is_ok_and(|m| m.is_file() && m.len() > 0))
                .collect();
            let victim = dice.pick(&regular);
            let mut bytes = fs_err::read(victim).expect("read");
            let at = dice.roll(bytes.len());
            match kind {
                Accident::Truncate => bytes.truncate(at),
                _ => bytes[at] ^= 1 << dice.roll(8),
            }
            fs_err::write(victim, bytes).expect("written");
            return format!("{kind:?} {} at {at}", victim.display());
        }
        Accident::Swap => {
            let other = dice.pick(&files).clone();
            let aside = root.join("aside");
            // One inside the other cannot be swapped; then nothing happens.
            if !other.starts_with(&victim) && !victim.starts_with(&other) {
                fs_err::rename(&victim, &aside).expect("moved");
                fs_err::rename(&other, &victim).expect("moved");
                fs_err::rename(&aside, &other).expect("moved");
            }
            return format!("{kind:?} {shown} and {}", other.display());
        }
        Accident::Duplicate => {
            let mut name = victim.file_name().expect("a name").to_owned();
            name.push("0");
            copy(&victim, &victim.with_file_name(name));
        }
        Accident::Symlink => {
            remove(&victim);
            fs_err::os::unix::fs::symlink("/etc/hostname", &victim).expect("linked");
        }
        Accident::Chmod => {
            let mode = *dice.pick(&[0o000, 0o222, 0o777, 0o444]);
            fs_err::set_permissions(&victim, std::fs::Permissions::from_mode(mode)).expect("chmod");
        }
        Accident::Kill => {
            // A snapshot that is killed at some moment of its life.
            fs_err::write(root.join("main/more"), vec![7; 100_000]).expect("a file");
            let mut child = clinic
                .home
                .jvs(["snapshot", "killed"])
                .cwd(root.join("main"))
                .command()
                .stdin(std::process::Stdio::null())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("jvs starts");
            std::thread::sleep(std::time::Duration::from_millis(dice.roll(40) as u64));
            let _ = child.kill();
            child.wait().expect("it ends");
        }
    }
    format!("{kind:?} {shown}")
}

fn on<T>(root: &Path, then: impl FnOnce(&Patient<'_>, &Locks<'_>) -> T) -> T {
    let store = PosixStore::open(root).expect("the root is there");
    let seams = Seams { store: &store, clock: &SystemClock, entropy: &SystemEntropy };
    let me = Identity {
        pid: std::process::id(),
        start_time: 0,
        pid_namespace: proc::pid_namespace(),
        purpose: Purpose::Automated,
        ..session::identity(SystemClock.boot_id())
    };
    let locks = session::locks(seams, session::session("doctor", me));
    let patient = Patient {
        seams,
        payloads: &store,
        surroundings: Surroundings {
            filesystem: Filesystem::at(root).expect("a filesystem"),
            space: None,
            pid_namespace: proc::pid_namespace(),
            lookup: proc::process_stat,
        },
        chosen_head: None,
    };
    then(&patient, &locks)
}

/// The visible snapshots whose every byte is what was published.
fn verified(root: &Path) -> Vec<SnapshotId> {
    let store = PosixStore::open(root).expect("the root is there");
    let Ok(listing) = Catalog::new(&store).list() else { return Vec::new() };
    let whole = |id: &SnapshotId| {
        verify::verify(&store, *id, &jvs_snapshot::progress::Silent)
            .is_ok_and(|verdict| verdict.is_valid())
    };
    listing.snapshots.into_iter().filter(whole).collect()
}

/// What a repair that nobody sees comes to.
fn rehearsed(patient: &Patient<'_>, locks: &Locks<'_>, first: &Examination) -> Vec<String> {
    let store = Rehearsal::new(patient.seams.store, patient.payloads);
    let seams = Seams { store: &store, ..patient.seams };
    let me = locks.session().clone();
    let patient = Patient { seams, payloads: &store, ..patient.clone() };
    steps(&treat(&patient, &session::locks(seams, me), Care::Repair, first.clone()))
}

/// The remedies that were applied, without what differs from run to run.
fn steps(examination: &Examination) -> Vec<String> {
    let step = |f: &jvs_doctor::Finding| {
        let does = f.remedy.as_ref().map(|remedy| remedy.sentence(Tense::Does)).unwrap_or_default();
        readable(&format!("{} {}: {does}", f.check, f.path))
    };
    examination.applied.iter().map(step).collect()
}

#[test]
fn no_accident_makes_doctor_panic_hang_or_cost_a_snapshot() {
    let seed = std::env::var("JVS_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut dice = Dice(seed.unwrap_or(0x9e37_79b9_7f4a_7c15));
    let clinic = Clinic::new();
    clinic.jvs(&["worktree", "create", "fork", "--from", "@"]).ok();
    let patients = directory();
    let healthy = examine_of(&clinic.root);
    let nothing_to_find: Vec<String> = told(&healthy);
    let (mut found, mut mended) = (0, 0);
    for number in 0..ACCIDENTS {
        let root = patients.path().join(number.to_string());
        copy(&clinic.root, &root);
        let kind = KINDS[usize::try_from(number).unwrap_or(0) % KINDS.len()];
        let what = strike(&mut dice, kind, &root, &clinic);
        let context = format!("seed {seed:?}, accident {number}: {what}");

        let quick = on(&root, |patient, _| examine(patient, Depth::Quick));
        for finding in &quick.findings {
            assert_eq!(finding.check.depth(), Depth::Quick, "{context}: {}", finding.check);
        }
        let first = examine_of(&root);
        let sees = told(&first) != nothing_to_find;
        // A kill may come before or after everything, a swap may be of equals,
        // and a mode may be as good as the old one.
        let certain = matches!(
            kind,
            Accident::Delete | Accident::Truncate | Accident::Flip | Accident::Symlink
        );
        assert!(sees || !certain || is_harmless(&what), "{context} is not found");
        found += u64::from(sees);

        let before = verified(&root);
        let planned = on(&root, |patient, locks| rehearsed(patient, locks, &first));
        let after = on(&root, |patient, locks| treat(patient, locks, Care::Repair, first));
        for finding in after.findings.iter().filter(|f| f.counts()) {
            let says = finding.advice.is_some() || finding.outcome.is_some();
            assert!(says, "{context}: {} stays, and nothing is said", finding.check);
        }
        assert_eq!(planned, steps(&after), "{context}");
        mended += u64::from(after.is_healthy());
        let still = verified(&root);
        let kept = quarantined(&root);
        for id in before {
            assert!(still.contains(&id) || kept.contains(&id), "{context}: {id} was lost");
        }
        // Once more changes nothing.
        let again = on(&root, |patient, locks| {
            let first = examine(patient, Depth::Full);
            treat(patient, locks, Care::Repair, first)
        });
        assert!(again.cleaned.is_empty(), "{context}: {:?}", told(&again));
        assert_eq!(again.is_healthy(), after.is_healthy(), "{context}: {:?}", told(&again));
        remove(&root);
    }
    assert!(found > ACCIDENTS / 2 && mended > ACCIDENTS / 4, "{found} found, {mended} mended");
}

/// What leaves no trace: a configuration of comments that says something else.
fn is_harmless(what: &str) -> bool {
    what.contains("config.toml")
}

fn quarantined(root: &Path) -> Vec<SnapshotId> {
    let dir = root.join(layout::quarantine().as_str());
    let repairs = fs_err::read_dir(dir).into_iter().flatten().flatten();
    let inside = repairs.flat_map(|repair| fs_err::read_dir(repair.path()).into_iter().flatten());
    inside.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn examine_of(root: &Path) -> Examination {
    on(root, |patient, _| examine(patient, Depth::Full))
}
