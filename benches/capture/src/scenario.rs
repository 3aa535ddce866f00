//! What is measured, where, and beside what.

use std::cell::Cell;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_snapshot::hash;

use super::repository::Repository;
use super::rival::{
    Restic, bare_clone, change_one_percent, find, git_commit, git_init, juicefs, make_tree, run,
    text,
};
use super::table::Table;

/// Name and measurement.
pub(crate) const ALL: &[(&str, fn())] = &[
    ("ext4", ext4),
    ("xfs", || reflink(Kind::Xfs)),
    ("btrfs", || reflink(Kind::Btrfs)),
    ("juicefs", juicefs_volume),
    ("restore", restore),
    ("bulk", juicefs_in_bulk),
    ("large", large),
    ("many", many),
    ("history", history),
    ("memory", memory),
    ("million", || of_many(1_000_000)),
    ("crowded", crowded),
    ("before", before_on_disks),
    ("before-juicefs", before_on_juicefs),
];

const ROUNDS: usize = 5;
const GIB: u64 = 1 << 30;

fn settle(place: &Path) {
    run("sync", &["-f", text(place)], place);
}

/// A tree on a filesystem that copies.
fn on_ext4(place: &Path, files: usize, size: usize, rounds: usize) {
    let title = format!("ext4, {files} x {size} B");
    let repository = Repository::new(place, "copy");
    let tree = repository.files();
    make_tree(&tree, files, size);
    let git = place.join("git");
    run("cp", &["-a", text(&tree), "git"], place);
    // A tree of its own: a hard link changes its original's change time.
    let linked = place.join("linked");
    run("cp", &["-a", text(&tree), "linked"], place);
    let backed_up = place.join("backed-up");
    run("cp", &["-a", text(&tree), "backed-up"], place);
    settle(place);
    let mut table = Table::new(format!("{title}: first snapshot"));
    table.row("cp -a + sync -f", |round| {
        run("cp", &["-a", text(&tree), &format!("cp-{round}")], place);
        settle(place);
    });
    table.row("jvs snapshot", |_| repository.first_snapshot());
    table.run(rounds, |_| {}, || settle(place));
    repository.say_phases();

    git_init(&git);
    let restic = Restic::of(place, &backed_up);
    repository.snapshot();
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
    if let Some(restic) = &restic {
        table.row("restic backup", |_| restic.backup(&backed_up));
    }
    table.row("jvs snapshot", |_| repository.snapshot());
    let change = |round| {
        for tree in [&tree, &git, &linked, &backed_up] {
            change_one_percent(tree, files, size, round);
        }
    };
    table.run(rounds, change, || settle(place));
    repository.say_phases();

    let mut table = Table::new(format!("{title}: status, 1 % changed"));
    table.row("git status", |_| run("git", &["status", "--short"], &git));
    table.row("jvs status", |_| drop(repository.jvs(&["status"])));
    table.run(2 * rounds, |_| {}, || {});
}

fn ext4() {
    let dir = tempfile::tempdir().expect("a directory");
    on_ext4(dir.path(), 10_000, 4096, ROUNDS);
}

/// Back to what was there before 1 % changed: all of it in snapshots or commits.
fn back_on_ext4(place: &Path, files: usize, size: usize, rounds: usize) {
    let title = format!("ext4, {files} x {size} B");
    let repository = Repository::new(place, "copy");
    let (tree, git) = (repository.files(), place.join("git"));
    make_tree(&tree, files, size);
    run("cp", &["-a", text(&tree), "git"], place);
    git_init(&git);
    run("git", &["tag", "base"], &git);
    repository.snapshot();
    drop(repository.jvs(&["tag", "@", "base"]));
    let restore = ["restore", "base", "--in-place", "--reason", "bench"];
    let change = |round| {
        for tree in [&tree, &git] {
            change_one_percent(tree, files, size, round);
        }
        repository.snapshot();
        git_commit(&git);
    };
    let mut table = Table::new(format!("{title}: back, 1 % changed"));
    table.row("git reset --hard", |_| run("git", &["reset", "-q", "--hard", "base"], &git));
    table.row("jvs restore --in-place", |_| drop(repository.jvs(&restore)));
    table.row("git status, right after", |_| run("git", &["status", "--short"], &git));
    table.row("jvs status, right after", |_| drop(repository.jvs(&["status"])));
    table.run(rounds, change, || settle(place));
    let mut table = Table::new(format!("{title}: back, all at once"));
    table.row("jvs restore --in-place --atomic", |_| {
        drop(repository.jvs(&[&restore[..], &["--atomic"]].concat()));
    });
    table.run(rounds.min(3), change, || settle(place));
}

fn restore() {
    for (files, size) in [(10_000, 4096), (100_000, 100)] {
        let dir = tempfile::tempdir().expect("a directory");
        back_on_ext4(dir.path(), files, size, ROUNDS);
    }
}

/// Ten times the files, and a tenth of them in the same run, so that the two are
/// measured at the same load.
fn many() {
    for files in [10_000, 100_000] {
        let dir = tempfile::tempdir().expect("a directory");
        on_ext4(dir.path(), files, 100, 3);
    }
}

/// Whether the newest are found without reading the rest.
fn history() {
    let dir = tempfile::tempdir().expect("a directory");
    let repository = Repository::new(dir.path(), "copy");
    let git = dir.path().join("git");
    fs_err::create_dir(&git).expect("a directory");
    git_init(&git);
    let mut taken = 0;
    for count in [20, 1_000, 10_000] {
        for n in taken..count {
            for tree in [&repository.files(), &git] {
                fs_err::write(tree.join("file"), n.to_string()).expect("a file");
            }
            repository.snapshot();
            git_commit(&git);
        }
        taken = count;
        let mut table = Table::new(format!("the newest 20 of {count}"));
        table.row("git log -n 20", |_| run("git", &["log", "-n", "20"], &git));
        table.row("jvs history -n 20", |_| drop(repository.jvs(&["history", "-n", "20"])));
        table.run(21, |_| {}, || {});
    }
}

/// How much memory each command takes at its peak, by the file, and how long it takes.
fn memory() {
    of_many(200_000);
}

fn of_many(files: usize) {
    let dir = tempfile::tempdir().expect("a directory");
    let repository = Repository::new(dir.path(), "copy");
    let tree = repository.files();
    make_tree(&tree, files, 100);
    println!("\n{files} files of 100 B: time, and memory at its peak");
    let told = |what: &str, words: &[&str]| {
        let begin = std::time::Instant::now();
        let kb = repository.peak_memory_kb(words);
        let (seconds, a_file) = (begin.elapsed().as_secs_f64(), kb as f64 * 1024.0 / files as f64);
        println!("  {what:<24} {seconds:>8.2} s {:>7} MB {a_file:>6.0} B a file", kb / 1000);
    };
    told("first snapshot", &["snapshot"]);
    drop(repository.jvs(&["tag", "@", "base"]));
    told("status", &["status"]);
    change_one_percent(&tree, files, 100, 1);
    told("second snapshot", &["snapshot"]);
    told("verify", &["verify"]);
    told("restore --into", &["restore", "base", "--into", "copy"]);
    told("restore --in-place", &["restore", "base", "--in-place", "--reason", "bench"]);
    drop(repository.jvs(&["tag", "--delete", "base"]));
    told("snapshot after it", &["snapshot"]);
    told("gc", &["gc", "--keep-last", "1", "--keep-within", "0s"]);
}

/// All files in one directory, and four times as many: is it linear?
fn crowded() {
    for files in [50_000, 200_000] {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path();
        let repository = Repository::new(place, "copy");
        let tree = repository.files();
        for n in 0..files {
            fs_err::write(tree.join(format!("{n:07}")), n.to_string()).expect("a file");
        }
        run("cp", &["-a", text(&tree), "git"], place);
        let git = place.join("git");
        settle(place);
        let mut table = Table::new(format!("{files} files in one directory"));
        table.row("git init, add and commit", |_| git_init(&git));
        table.row("jvs snapshot, the first", |_| repository.snapshot());
        table.row("git status", |_| run("git", &["status", "--short"], &git));
        table.row("jvs status", |_| drop(repository.jvs(&["status"])));
        table.run(1, |_| {}, || settle(place));
    }
}

/// What is done with whole trees on JuiceFS, beside the client's own commands.
fn juicefs_in_bulk() {
    let Some(volume) = Volume::mounted(Metadata::Redis, 1) else { return };
    let (place, files, size) = (volume.host(0), 10_000, 4096);
    let repository = Repository::new(place, "juicefs");
    let tree = repository.files();
    make_tree(&tree, files, size);
    repository.snapshot();
    let title = format!("JuiceFS on Redis, {files} x {size} B");
    let program = juicefs();
    let mut table = Table::new(format!("{title}: into a new tree"));
    table.row("juicefs clone", |round| {
        run(text(&program), &["clone", "-p", text(&tree), &format!("copy-{round}")], place);
    });
    table.row("jvs restore --into", |round| {
        drop(repository.jvs(&["restore", "@", "--into", &format!("restored-{round}")]));
    });
    table.run(3, |_| {}, || {});

    let mut table = Table::new(format!("{title}: every byte read"));
    // Of a clone that nobody has read: no page of it is in memory.
    table.row("16 x cat", |round| {
        let read = "find copy-$0 -type f -print0 | xargs -0 -P 16 -n 64 cat > /dev/null";
        run("sh", &["-c", read, &round.to_string()], place);
    });
    table.row("jvs verify", |_| drop(repository.jvs(&["verify"])));
    let snapshot = |round| {
        change_one_percent(&tree, files, size, round);
        repository.snapshot();
    };
    table.run(3, snapshot, || {});

    let mut table = Table::new(format!("{title}: the removal of one of them"));
    table.row("juicefs rmr", |round| {
        run(text(&program), &["rmr", &format!("copy-{round}")], place);
    });
    table.row("jvs gc of one snapshot", |_| {
        drop(repository.jvs(&["gc", "--keep-last", "2", "--keep-within", "0s"]));
    });
    // What is there already goes first, so that each round has one snapshot to remove.
    drop(repository.jvs(&["gc", "--keep-last", "2", "--keep-within", "0s"]));
    table.run(3, snapshot, || {});

    drop(repository.jvs(&["tag", "@", "base"]));
    let mut table = Table::new(format!("{title}: back, 1 % changed"));
    let before = Cell::new(0);
    table.row("write of what differs", |round| {
        before.set(requests(place));
        change_one_percent(&tree, files, size, round + 50);
        println!("  {} requests: 1 % written again", requests(place) - before.get());
        repository.snapshot();
    });
    table.row("jvs restore --in-place", |_| {
        before.set(requests(place));
        drop(repository.jvs(&["restore", "base", "--in-place", "--reason", "bench"]));
        println!("  {} requests: jvs restore --in-place", requests(place) - before.get());
    });
    table.run(3, |_| {}, || {});
}

/// How many requests a mount has served.
fn requests(mount: &Path) -> u64 {
    let stats = fs_err::read_to_string(mount.join(".stats")).expect("counters");
    let count = |line: &str| {
        let rest = line.strip_prefix("juicefs_fuse_ops_durations_histogram_seconds_total ")?;
        rest.trim().parse().ok()
    };
    stats.lines().find_map(count).unwrap_or(0)
}

fn reflink(kind: Kind) {
    let Some(small) = SmallFs::on_loop_of(kind, 4 * GIB) else { return };
    let place = small.path();
    let (files, size) = (10_000, 4096);
    let repository = Repository::new(place, "reflink");
    let tree = repository.files();
    make_tree(&tree, files, size);
    settle(place);
    let clone = |name: &str| {
        run("cp", &["-a", "--reflink=always", text(&tree), name], place);
    };
    let title = format!("{kind:?}, {files} x {size} B");
    let mut table = Table::new(format!("{title}: first snapshot"));
    table.row("cp -a --reflink=always", |round| clone(&format!("cp-{round}")));
    table.row("cp -a --reflink=always + sync -f", |round| {
        clone(&format!("cps-{round}"));
        settle(place);
    });
    table.row("jvs snapshot", |_| repository.first_snapshot());
    table.run(ROUNDS, |_| {}, || settle(place));
    repository.say_phases();
    repository.snapshot();
    let mut table = Table::new(format!("{title}: second snapshot, 1 % changed"));
    let again = Cell::new(0);
    table.row("cp -a --reflink=always + sync -f", |_| {
        again.set(again.get() + 1);
        clone(&format!("again-{}", again.get()));
        settle(place);
    });
    table.row("jvs snapshot", |_| repository.snapshot());
    let change = |round| change_one_percent(&tree, files, size, round);
    table.run(ROUNDS, change, || settle(place));
    repository.say_phases();
}

fn juicefs_volume() {
    for (files, rounds) in [(1_000, 9), (10_000, 5)] {
        let Some(volume) = Volume::mounted(Metadata::Redis, 1) else { return };
        let (place, size) = (volume.host(0), 4096);
        let repository = Repository::new(place, "juicefs");
        let tree = repository.files();
        make_tree(&tree, files, size);
        let title = format!("JuiceFS on Redis, {files} x {size} B");
        let program = juicefs();
        let clone = |name: &str| run(text(&program), &["clone", "-p", text(&tree), name], place);
        let mut table = Table::new(format!("{title}: first snapshot"));
        table.row("juicefs clone", |round| clone(&format!("first-{round}")));
        // What a first snapshot cannot avoid: every file of a fresh clone, once.
        table.row("8 x cat of a fresh clone", |round| {
            let read = "find first-$0 -type f -print0 | xargs -0 -P 8 -n 64 cat > /dev/null";
            run("sh", &["-c", read, &round.to_string()], place);
        });
        table.row("jvs snapshot", |_| repository.first_snapshot());
        table.run(rounds.min(3), |_| {}, || {});
        repository.say_phases();
        repository.snapshot();
        let mut table = Table::new(format!("{title}: second snapshot, 1 % changed"));
        let again = Cell::new(0);
        table.row("clone by the control file", |_| {
            again.set(again.get() + 1);
            bare_clone(place, &tree, place, &format!("b-{}", again.get()));
        });
        table.row("juicefs clone", |_| {
            again.set(again.get() + 1);
            clone(&format!("c-{}", again.get()));
        });
        table.row("jvs snapshot", |_| repository.snapshot());
        table.run(rounds, |round| change_one_percent(&tree, files, size, round), || {});
        repository.say_phases();
    }
}

/// Another build of the command, to compare with: an older one.
const BEFORE: &str = "JVS_BENCH_BEFORE";

/// Two builds of the command, each in a repository of its own on the same filesystem.
struct Builds<'b> {
    title: String,
    place: &'b Path,
    older: Repository,
    newer: Repository,
    changes: Cell<usize>,
}

impl<'b> Builds<'b> {
    const FILES: usize = 10_000;
    const SIZE: usize = 4096;

    /// `None` if the other one is not named.
    fn at(title: &str, place: &'b Path, engine: &'static str) -> Option<Self> {
        let program = std::env::var_os(BEFORE).map(std::path::PathBuf::from)?;
        let [older, newer] = ["older", "newer"].map(|name| {
            let place = place.join(name);
            fs_err::create_dir(&place).expect("a directory");
            place
        });
        let older = Repository::by(Some(program), &older, engine);
        let newer = Repository::new(&newer, engine);
        for repository in [&older, &newer] {
            make_tree(&repository.files(), Self::FILES, Self::SIZE);
            repository.first_snapshot();
            repository.snapshot();
        }
        let title = format!("{title}, {} x {} B", Self::FILES, Self::SIZE);
        Some(Builds { title, place, older, newer, changes: Cell::new(0) })
    }

    /// Times both in turns; `ahead` comes right before each snapshot.
    fn compare(&self, what: &str, ahead: impl Fn()) {
        let title = format!("{}: second snapshot, 1 % changed, {what}", self.title);
        let mut table = Table::new(title);
        table.row("jvs snapshot, before", |_| self.older.snapshot());
        table.row("jvs snapshot", |_| self.newer.snapshot());
        // Ahead of each snapshot and not of each round: on JuiceFS what the one
        // before left in the mount would slow down the one after.
        let change = || {
            self.changes.set(self.changes.get() + 1);
            for repository in [&self.older, &self.newer] {
                let files = repository.files();
                change_one_percent(&files, Self::FILES, Self::SIZE, self.changes.get());
            }
            ahead();
        };
        table.run(2 * ROUNDS + 1, |_| {}, change);
        self.older.say_phases();
        self.newer.say_phases();
    }

    fn compare_settled_and_not(&self) {
        self.compare("nothing left to write", || settle(self.place));
        self.compare("just written", || {});
    }
}

fn before_on_disks() {
    let dir = tempfile::tempdir().expect("a directory");
    if let Some(builds) = Builds::at("ext4", dir.path(), "copy") {
        builds.compare_settled_and_not();
    }
    for kind in [Kind::Xfs, Kind::Btrfs] {
        let Some(small) = SmallFs::on_loop_of(kind, 4 * GIB) else { continue };
        if let Some(builds) = Builds::at(&format!("{kind:?}"), small.path(), "reflink") {
            builds.compare_settled_and_not();
        }
    }
}

fn before_on_juicefs() {
    for metadata in Metadata::ALL {
        let Some(volume) = Volume::mounted(metadata, 1) else { return };
        let title = format!("JuiceFS on {metadata:?}");
        let Some(builds) = Builds::at(&title, volume.host(0), "juicefs") else { return };
        builds.compare_settled_and_not();
        // Leaves pages with the mount, so that its counter does not tell that nobody
        // has written.
        let large = volume.host(0).join("large");
        let leave_pages = || fs_err::write(&large, vec![7; 64 << 20]).expect("a large file");
        builds.compare("the mount's counter not zero", leave_pages);
        let open = fs_err::File::create(volume.host(0).join("open")).expect("a file");
        builds.compare("the same, and somebody has a file open", leave_pages);
        drop(open);
    }
}

fn large() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = dir.path();
    let repository = Repository::new(place, "copy");
    let tree = repository.files();
    let file = tree.join("large");
    let mut content = Vec::with_capacity(GIB as usize);
    for n in 0..GIB / 8 {
        content.extend_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    fs_err::write(&file, &content).expect("the file");
    settle(place);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let open = fs_err::File::open(&file).expect("open");
    let mut table = Table::new("one file of 1 GiB: hashing");
    if let Some(b3sum) = find("b3sum") {
        let file = file.clone();
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
    table.run(ROUNDS, |_| {}, || {});

    let mut table = Table::new("ext4, one file of 1 GiB: snapshots");
    table.row("cp -a + sync -f", |round| {
        run("cp", &["-a", text(&tree), &format!("cp-{round}")], place);
        settle(place);
        fs_err::remove_dir_all(place.join(format!("cp-{round}"))).expect("removed");
    });
    table.row("jvs snapshot", |_| repository.first_snapshot());
    table.run(3, |_| {}, || settle(place));
    repository.say_phases();
    let mut table = Table::new("ext4, one file of 1 GiB: second snapshot, unchanged");
    table.row("jvs snapshot", |_| repository.snapshot());
    table.run(ROUNDS, |_| {}, || {});
    repository.say_phases();

    let mut whole = fs_err::OpenOptions::new().append(true).open(&file).expect("the file");
    for _ in 1..4 {
        whole.write_all(&content).expect("longer");
    }
    drop(whole);
    repository.snapshot();
    let change = |round: usize| {
        let part = fs_err::OpenOptions::new().write(true).open(&file).expect("the file");
        let at = (round as u64 + 1) * (GIB / 2);
        part.file().write_all_at(&vec![round as u8 + 1; 1 << 20], at).expect("changed");
    };
    let mut table = Table::new("ext4, one file of 4 GiB: 1 MiB of it changed");
    table.row("cp -a + sync -f", |round| {
        run("cp", &["-a", text(&tree), &format!("cp-{round}")], place);
        settle(place);
        fs_err::remove_dir_all(place.join(format!("cp-{round}"))).expect("removed");
    });
    table.row("jvs snapshot", |_| repository.snapshot());
    // Each round keeps 4 GiB more.
    table.run(2, change, || settle(place));
    repository.say_phases();
}
