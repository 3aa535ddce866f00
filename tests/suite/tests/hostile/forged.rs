//! The journal of a restore, forged to cost others their memory: whoever examines or
//! collects reads the journals of all.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::PathBuf;

use jvs_kit::live::capability::{Capability, granted};
use jvs_lock::State;
use jvs_repo::digest::Digest;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::layout::staging::StagingName;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::patch;
use jvs_repo::term::Term;

use crate::world::World;

/// As much memory as any command may have, in bytes: as in the matrix.
const MEMORY: u64 = 600 << 20;

/// A journal of so many directories that no larger one is read: all that is true of it is
/// that it is spelled as it would be written.
fn as_large_as_may_be() -> String {
    let mut text = "{\n  \"version\": 1,\n  \"steps\": [],\n  \"directories\": [".to_owned();
    let bytes = || b'a'..=0xff;
    'full: for one in bytes() {
        for (two, three) in bytes().flat_map(|two| bytes().map(move |three| (two, three))) {
            if text.len() + 200 > patch::LIMITS.size {
                break 'full;
            }
            write!(text, "\n    \"{one:02x}{two:02x}{three:02x}\",").expect("text");
        }
    }
    assert_eq!(text.pop(), Some(','));
    text += "\n  ]";
    let sum = Digest::of(format!("{text}\n}}\n").as_bytes());
    text += &format!(",\n  \"checksum\": \"{sum}\"\n}}\n");
    text
}

fn term_of_now(world: &World) -> Term {
    let register = world.at(&layout::register(&WorktreeName::main()));
    let mut names = fs_err::read_dir(register).expect("listed");
    let name = names.next().expect("a state").expect("listed").file_name();
    name.to_str().expect("text").parse::<State>().expect("a state").term()
}

/// Where a journal is of a restore of somebody whose hold is over.
fn journal(world: &World, term: Term, source: SnapshotId) -> PathBuf {
    let (worktree, op) = (WorktreeName::main(), OpNonce([7; 8]));
    let dir = StagingName::Swap { worktree, term, source, kept: None, op }.path();
    fs_err::create_dir_all(world.at(&layout::snapshot_payload(&dir))).expect("made");
    world.at(&layout::journal(&dir))
}

#[test]
fn a_forged_journal_of_a_restore_costs_nobody_their_memory() {
    if !granted(&[Capability::Program("prlimit")]) {
        return;
    }
    // What cannot be read is set aside; what says of nothing that it was touched is deleted.
    a_journal_costs_little(
        &[&["status"], &["doctor", "--strict", "--dry-run"], &["gc"]],
        1,
        |at| {
            fs_err::File::create(at).expect("made").set_len(50 << 30).expect("sparse");
        },
    );
    a_journal_costs_little(&[&["gc"]], 0, |at| {
        fs_err::write(at, as_large_as_may_be()).expect("written");
    });
}

fn a_journal_costs_little(commands: &[&[&str]], kept: usize, forge: impl FnOnce(PathBuf)) {
    let world = World::named(OsStr::new("plain"));
    let id = world.jvs(&["snapshot", "one", "--json"]).ok().json()["data"]["snapshot_id"].clone();
    let id: SnapshotId = id.as_str().expect("an id").parse().expect("an id");
    let term = term_of_now(&world);
    world.jvs(&["lock", "acquire", "--no-keeper"]).ok();
    world.jvs(&["lock", "release"]).ok();
    forge(journal(&world, term, id));
    let limit = format!("--as={MEMORY}");
    for words in commands {
        let said = world.command(words).under(["prlimit", &limit]).run();
        assert_eq!(said.signal(), None, "{words:?}: {said}");
        assert!([0, 12].contains(&said.code()), "{words:?}: {said}");
    }
    let quarantine = world.at(&layout::quarantine());
    assert_eq!(fs_err::read_dir(quarantine).expect("listed").count(), kept);
}

/// A restore that nobody began, of which nobody can know what it was to do, keeps the lock
/// from all until it is moved away: which is said.
#[test]
fn a_restore_that_was_forged_is_told_with_what_takes_it_away() {
    let world = World::named(OsStr::new("plain"));
    let id = world.jvs(&["snapshot", "one", "--json"]).ok().json()["data"]["snapshot_id"].clone();
    let source: SnapshotId = id.as_str().expect("an id").parse().expect("an id");
    let (worktree, op, term) = (WorktreeName::main(), OpNonce([7; 8]), term_of_now(&world));
    let mark = world.at(&layout::restore_mark(&worktree, op));
    let dir = StagingName::Patch { worktree, term, source, kept: None, op }.path();
    fs_err::create_dir_all(world.at(&layout::snapshot_payload(&dir))).expect("made");
    let journal = fs_err::File::create(world.at(&layout::journal(&dir))).expect("made");
    journal.set_len(1 << 30).expect("sparse");
    fs_err::write(mark, "").expect("written");
    let told = world.jvs(&["lock", "acquire", "--no-keeper", "--json"]).exits(11).json();
    let hint = told["error"]["hint"].as_str().expect("text");
    let doctor = world.jvs(&["doctor", "--strict"]).exits(12);
    assert!(doctor.stdout().contains(hint), "{doctor}");
    let (_, command) = hint.rsplit_once(": ").expect("a command");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", command]).current_dir(world.root());
    assert!(shell.status().expect("typed").success(), "{command}");
    world.jvs(&["lock", "acquire", "--no-keeper"]).ok();
    world.jvs(&["doctor", "--strict"]).ok();
}
