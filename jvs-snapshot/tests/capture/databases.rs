//! SQLite databases that are written in place, in both ways of keeping a journal:
//! every snapshot is a database as a reader saw it, also after a power cut.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_kit::live::process::{Running, eventually, run};
use jvs_repo::clock::SystemClock;
use jvs_repo::code::{Code, Coded as _};
use jvs_snapshot::progress::Silent;
use jvs_snapshot::stage::Captured;
use tempfile::TempDir;

use super::support::{Rebooted, World};

/// Snapshots of each kind; a hundred beside a busy database with `JVS_LONG`.
const ROUNDS: u32 = 3;
const DEADLINE: Duration = Duration::from_secs(30);

/// Commits one transaction per word, and goes on keeping the database open. Without a
/// word, all the time.
const WRITER: &str = r"
import os, sqlite3, sys, time
path, journal, control, always = sys.argv[1:]
db = sqlite3.connect(path, isolation_level=None)
db.execute(f'pragma journal_mode={journal}')
db.execute('pragma synchronous=extra')
db.execute('create table if not exists t (k integer primary key, v text)')
open(control + '/ready', 'w').close()
n = 0
while True:
    if always != 'always' and not os.path.exists(f'{control}/{n}'):
        time.sleep(0.002)
        continue
    db.execute('begin immediate')
    for k in range(40):
        db.execute('insert or replace into t values (?, ?)', (k, f'{n:06}' * 50))
    db.execute('commit')
    open(f'{control}/{n}.done', 'w').close()
    n += 1
";

/// Says which transaction a database is at, if it is whole.
const READER: &str = r"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
whole = db.execute('pragma integrity_check').fetchone()[0]
values = {v for (v,) in db.execute('select v from t')}
print(whole, len(values), int(values.pop()[:6]))
";

struct Database {
    process: Running,
    control: TempDir,
    committed: u32,
}

impl Database {
    fn open(path: &Path, journal: &str, always: bool) -> Self {
        let control = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("python3");
        let always = if always { "always" } else { "asked" };
        command.args(["-c", WRITER]).arg(path).arg(journal).arg(control.path()).arg(always);
        let mut database = Database { process: Running::start(command), control, committed: 0 };
        database.wait_for("ready");
        database
    }

    /// One transaction more; its number.
    fn commit(&mut self) -> u32 {
        let n = self.committed;
        fs_err::write(self.control.path().join(n.to_string()), "").expect("a word");
        self.wait_for(&format!("{n}.done"));
        self.committed += 1;
        n
    }

    fn wait_for(&mut self, name: &str) {
        let path = self.control.path().join(name);
        eventually("the database answers", DEADLINE, || {
            assert!(!self.process.ended(), "it ended: {}", self.process.said());
            path.exists()
        });
    }
}

/// Which transaction the database in a directory is at. Read in a copy: opening it
/// replays a journal.
#[track_caller]
fn transaction_in(files: &Path) -> u32 {
    let dir = tempfile::tempdir().expect("a directory");
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(files).arg(dir.path().join("files"));
    run(copy, DEADLINE).ok();
    let mut read = Command::new("python3");
    read.args(["-c", READER]).arg(dir.path().join("files/data.db"));
    let said = run(read, DEADLINE).ok();
    let words: Vec<&str> = said.stdout().split_whitespace().collect();
    assert_eq!(words[..2], ["ok", "1"], "a database of one moment: {said}");
    words[2].parse().expect("a number")
}

/// Commits, and is idle while snapshots are taken: each has the last transaction.
fn each_snapshot_has_what_was_committed(world: &World, journal: &str) -> (Database, Captured) {
    let mut database = Database::open(&world.path("data.db"), journal, false);
    let mut parent: Option<(String, Captured)> = None;
    for round in 0..ROUNDS {
        let n = database.commit();
        let name = format!("{journal}-{round}");
        let before = parent.as_ref().map(|(name, captured)| (name.as_str(), captured));
        let captured = world.try_capture(&name, before, &Silent).expect("an idle database");
        world.check_manifest(&name, &captured);
        assert_eq!(transaction_in(&world.payload(&name)), n, "{journal}");
        parent = Some((name, captured));
    }
    (database, parent.expect("some").1)
}

/// Commits all the time: what is published is a database of one moment.
fn no_snapshot_is_torn(world: &World, journal: &str) {
    let database = Database::open(&world.path("data.db"), journal, true);
    let rounds = if std::env::var_os("JVS_LONG").is_some() { 100 } else { ROUNDS };
    for round in 0..rounds {
        let name = format!("{journal}-busy-{round}");
        match world.try_capture(&name, None, &Silent) {
            Ok(captured) => {
                world.check_manifest(&name, &captured);
                transaction_in(&world.payload(&name));
            }
            Err(error) => assert_eq!(error.code(), Code::ConsistencyUnavailable, "{error}"),
        }
    }
    drop(database);
}

fn worlds(root: &Path) -> Vec<(World, &'static str)> {
    let at = |journal: &'static str| {
        let place: PathBuf = root.join(journal);
        fs_err::create_dir(&place).expect("a directory");
        (World::at(&place, &place), journal)
    };
    vec![at("wal"), at("delete")]
}

fn can_run() -> bool {
    granted(&[Capability::Program("python3")])
}

#[test]
fn databases_are_captured_as_a_reader_saw_them_and_survive_a_power_cut() {
    let Some(small) = SmallFs::on_loop_of(Kind::Ext4, 256 << 20).filter(|_| can_run()) else {
        return;
    };
    for (world, journal) in worlds(small.path()) {
        let (mut database, last) = each_snapshot_has_what_was_committed(&world, journal);
        let n = database.commit();
        let cut = small.after_a_power_cut();
        let place = cut.path().join(journal);
        let mut after = World::found(&place, &place);
        after.clock = Box::new(Rebooted("after the cut"));
        let parent = format!("{journal}-{}", ROUNDS - 1);
        let captured = after.try_capture("cut", Some((&parent, &last)), &Silent).expect("captured");
        after.check_manifest("cut", &captured);
        assert_eq!(transaction_in(&after.source), n, "{journal}: committed is committed");
        assert_eq!(transaction_in(&after.payload("cut")), n, "{journal}: as a reader sees it");
        after.clock = Box::new(SystemClock);
        drop(database);
        no_snapshot_is_torn(&world, journal);
    }
}

#[test]
fn databases_are_captured_as_a_reader_saw_them_on_juicefs() {
    let Some(volume) = Volume::mounted(Metadata::Redis, 1).filter(|_| can_run()) else { return };
    for (world, journal) in worlds(volume.host(0)) {
        drop(each_snapshot_has_what_was_committed(&world, journal));
        no_snapshot_is_torn(&world, journal);
    }
}
