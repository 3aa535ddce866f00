//! What is measured, where, and beside what.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_repo::clock::SystemClock;
use jvs_repo::config::Engine;
use jvs_snapshot::hash;
use jvs_snapshot::progress::Silent;
use jvs_snapshot::stage::{Captured, Options, Parent, capture};

use super::rival::{change_one_percent, git_commit, git_init, juicefs, make_tree, run, text};
use super::table::Table;

/// Name and measurement.
pub(crate) const ALL: &[(&str, fn())] = &[
    ("ext4", ext4),
    ("xfs", || reflink(Kind::Xfs)),
    ("btrfs", || reflink(Kind::Btrfs)),
    ("juicefs", juicefs_volume),
    ("large", large),
    ("many", many),
    ("memory", memory),
];

const ROUNDS: usize = 5;
const GIB: u64 = 1 << 30;

/// A source tree and a row of snapshots of it.
struct Line {
    source: PathBuf,
    snapshots: PathBuf,
    options: Options,
    count: Cell<usize>,
    head: RefCell<Option<(PathBuf, Captured)>>,
}

impl Line {
    fn new(place: &Path, name: &str) -> Self {
        let snapshots = place.join(format!("{name}-snapshots"));
        std::fs::create_dir(&snapshots).expect("a directory");
        Line {
            source: place.join(name),
            snapshots,
            options: Options { juicefs_program: Some(juicefs()), ..Options::default() },
            count: Cell::new(0),
            head: RefCell::default(),
        }
    }

    /// Takes the next snapshot, with or without its parent.
    fn capture(&self, incremental: bool) {
        self.count.set(self.count.get() + 1);
        let staging = self.snapshots.join(self.count.get().to_string());
        std::fs::create_dir(&staging).expect("staging");
        let head = self.head.borrow();
        let parent = head.as_ref().filter(|_| incremental).map(|(directory, captured)| Parent {
            directory: directory.clone(),
            manifest_hash: captured.manifest_hash,
        });
        let options = &self.options;
        let taken =
            capture(&self.source, &staging, parent.as_ref(), options, &SystemClock, &Silent)
                .expect("captured");
        drop(head);
        *self.head.borrow_mut() = Some((staging, taken));
    }

    fn say(&self, what: &str) {
        if let Some((_, captured)) = &*self.head.borrow() {
            let phases: Vec<_> = captured
                .phases
                .iter()
                .map(|(phase, ms)| format!("{} {ms}", phase.as_str()))
                .collect();
            let reused = format!("{} of {} files reused", captured.reused, captured.totals.files);
            println!(
                "  phases of {what} in ms: {} ({}, {reused})",
                phases.join(", "),
                captured.engine
            );
        }
    }
}

fn settle(place: &Path) {
    run("sync", &["-f", text(place)], place);
}

/// A tree on a filesystem that copies.
fn on_ext4(place: &Path, files: usize, size: usize, rounds: usize) {
    let title = format!("ext4, {files} x {size} B");
    let tree = Line::new(place, "tree");
    make_tree(&tree.source, files, size);
    let git = place.join("git");
    run("cp", &["-a", "tree", "git"], place);
    // A tree of its own: a hard link changes its original's change time.
    let linked = place.join("linked");
    run("cp", &["-a", "tree", "linked"], place);
    settle(place);
    let mut table = Table::new(format!("{title}: first snapshot"));
    table.row("cp -a + sync -f", |round| {
        run("cp", &["-a", "tree", &format!("cp-{round}")], place);
        settle(place);
    });
    table.row("first snapshot", |_| tree.capture(false));
    table.run(rounds, |_| settle(place));
    tree.say("the first");

    git_init(&git);
    tree.capture(true);
    let again = Cell::new(0);
    let mut table = Table::new(format!("{title}: second snapshot, 1 % changed"));
    table.row("git add -A && git commit", |_| git_commit(&git));
    table.row("cp -al", |_| {
        again.set(again.get() + 1);
        run("cp", &["-al", "linked", &format!("al-{}", again.get())], place);
    });
    table.row("cp -al + sync -f", |_| {
        again.set(again.get() + 1);
        run("cp", &["-al", "linked", &format!("al-{}", again.get())], place);
        settle(place);
    });
    table.row("second snapshot", |_| tree.capture(true));
    let changes = Cell::new(0);
    table.run(rounds, |_| {
        changes.set(changes.get() + 1);
        change_one_percent(&tree.source, files, size, changes.get());
        change_one_percent(&git, files, size, changes.get());
        change_one_percent(&linked, files, size, changes.get());
        settle(place);
    });
    tree.say("the second");
}

fn ext4() {
    let dir = tempfile::tempdir().expect("a directory");
    on_ext4(dir.path(), 10_000, 4096, ROUNDS);
}

fn many() {
    let dir = tempfile::tempdir().expect("a directory");
    on_ext4(dir.path(), 100_000, 100, 3);
}

/// How much a capture of many files keeps in memory.
fn memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let tree = Line::new(dir.path(), "tree");
    make_tree(&tree.source, 100_000, 100);
    for (which, incremental) in [("the first", false), ("the second", true)] {
        tree.capture(incremental);
        tree.say(which);
    }
    println!("  peak memory with 100,000 files: {} MB", peak_memory_mb());
}

fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("our own status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    let kb: u64 = line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0);
    kb / 1000
}

fn reflink(kind: Kind) {
    let Some(small) = SmallFs::on_loop_of(kind, 4 * GIB) else { return };
    let place = small.path();
    let (files, size) = (10_000, 4096);
    let tree = Line::new(place, "tree");
    make_tree(&tree.source, files, size);
    settle(place);
    let title = format!("{kind:?}, {files} x {size} B");
    let mut table = Table::new(format!("{title}: first snapshot"));
    table.row("cp -a --reflink=always", |round| {
        run("cp", &["-a", "--reflink=always", "tree", &format!("cp-{round}")], place);
    });
    table.row("cp -a --reflink=always + sync -f", |round| {
        run("cp", &["-a", "--reflink=always", "tree", &format!("cps-{round}")], place);
        settle(place);
    });
    table.row("first snapshot", |_| tree.capture(false));
    table.run(ROUNDS, |_| settle(place));
    tree.say("the first");
    tree.capture(true);
    let mut table = Table::new(format!("{title}: second snapshot, 1 % changed"));
    let again = Cell::new(0);
    table.row("cp -a --reflink=always + sync -f", |_| {
        again.set(again.get() + 1);
        let name = format!("again-{}", again.get());
        run("cp", &["-a", "--reflink=always", "tree", &name], place);
        settle(place);
    });
    table.row("second snapshot", |_| tree.capture(true));
    let changes = Cell::new(0);
    table.run(ROUNDS, |_| {
        changes.set(changes.get() + 1);
        change_one_percent(&tree.source, files, size, changes.get());
        settle(place);
    });
    tree.say("the second");
}

fn juicefs_volume() {
    for (files, rounds) in [(1_000, 9), (10_000, 3)] {
        let Some(volume) = Volume::mounted(Metadata::Redis, 1) else { return };
        let (place, size) = (volume.host(0), 4096);
        let tree = Line::new(place, "tree");
        make_tree(&tree.source, files, size);
        let title = format!("JuiceFS on Redis, {files} x {size} B");
        let program = juicefs();
        let mut table = Table::new(format!("{title}: first snapshot"));
        table.row("juicefs clone", |round| {
            run(text(&program), &["clone", "-p", "tree", &format!("first-{round}")], place);
        });
        // What a first snapshot cannot avoid: every file of a fresh clone, once.
        table.row("8 x cat of a fresh clone", |round| {
            let read = "find first-$0 -type f -print0 | xargs -0 -P 8 -n 64 cat > /dev/null";
            run("sh", &["-c", read, &round.to_string()], place);
        });
        table.row("first snapshot", |_| tree.capture(false));
        table.run(rounds.min(3), |_| {});
        tree.say("the first");
        tree.capture(true);
        let mut table = Table::new(format!("{title}: second snapshot, 1 % changed"));
        let again = Cell::new(0);
        table.row("juicefs clone", |_| {
            again.set(again.get() + 1);
            run(text(&program), &["clone", "-p", "tree", &format!("c-{}", again.get())], place);
        });
        table.row("second snapshot", |_| tree.capture(true));
        let changes = Cell::new(0);
        table.run(rounds, |_| {
            changes.set(changes.get() + 1);
            change_one_percent(&tree.source, files, size, changes.get());
        });
        tree.say("the second");
    }
}

fn large() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = dir.path();
    let mut tree = Line::new(place, "tree");
    std::fs::create_dir(&tree.source).expect("the tree");
    let file = tree.source.join("large");
    let mut content = Vec::with_capacity(GIB as usize);
    for n in 0..GIB / 8 {
        content.extend_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    std::fs::write(&file, &content).expect("the file");
    settle(place);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let open = std::fs::File::open(&file).expect("open");
    let mut table = Table::new("one file of 1 GiB: hashing");
    if let Some(b3sum) = find("b3sum") {
        table.row("b3sum", move |_| run(&b3sum, &[text(&file)], Path::new("/")));
    }
    table.row(format!("BLAKE3 in memory, {threads} threads"), |_| {
        std::thread::scope(|scope| {
            for part in content.chunks(content.len().div_ceil(threads)) {
                scope.spawn(|| std::hint::black_box(jvs_snapshot::hash::Digest::of(part)));
            }
        });
    });
    table.row("hash of the file", |_| {
        hash::of_file(&open, GIB, threads).expect("hashed");
    });
    table.run(ROUNDS, |_| {});

    tree.options.engine = Engine::Copy;
    let mut table = Table::new("ext4, one file of 1 GiB: snapshots");
    table.row("cp -a + sync -f", |round| {
        run("cp", &["-a", "tree", &format!("cp-{round}")], place);
        settle(place);
        std::fs::remove_dir_all(place.join(format!("cp-{round}"))).expect("removed");
    });
    table.row("first snapshot", |_| tree.capture(false));
    table.run(3, |_| settle(place));
    tree.say("the first");
    let mut table = Table::new("ext4, one file of 1 GiB: second snapshot, unchanged");
    table.row("second snapshot", |_| tree.capture(true));
    table.run(ROUNDS, |_| {});
    tree.say("the second");
}

fn find(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
        .map(|path| text(&path).to_owned())
}
