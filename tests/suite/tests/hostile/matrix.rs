//! Whatever somebody who may write there puts in the place of a file or directory of the
//! control plane, or of a session's private directory: every command says what it found,
//! ends, stays within its memory and writes nothing outside.
//!
//! Each case is one path, one object in its place and one command. In the normal run a
//! spread of the pairs of path and object meets some of the commands, each pair others;
//! with `JVS_LONG=1` all meet all.

mod mould;
mod object;

use std::path::Path;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::Outcome;

use mould::{Actor, Mould, Victim};
use object::{OBJECTS, Object};

/// What is run, those that change little first.
const COMMANDS: &[&str] = &[
    "status",
    "diff",
    "history",
    "info",
    "verify --all",
    "tag --list",
    "worktree list",
    "worktree path main",
    "lock status",
    "lock list",
    "lock why",
    "audit",
    "audit --verify",
    "session show",
    "session list",
    "config list",
    "gc --dry-run",
    "doctor",
    "doctor --strict --dry-run",
    "lock acquire --no-keeper",
    "lock renew",
    "snapshot two",
    "tag @ v2",
    "restore @ --into y",
    "worktree create z",
    "worktree rename z w",
    "worktree remove w",
    "config set retention.keep_last 3",
    "lock release",
    "run -- true",
    "lock freeze --for 1m --reason x",
    "lock unfreeze --reason x",
    "gc",
    "doctor --strict",
    "doctor --strict --repair",
    "lock acquire --no-keeper",
];

/// One of so many pairs is tried in the normal run, with one of so many commands.
const STRIDE: usize = 41;
const FEW: usize = 4;

/// The exit statuses that are promised.
const EXITS: &[i32] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 64];

/// What is never said, whatever is found.
const NEVER: &[&str] = &["E_INTERNAL", "panicked", "bug in jvs", "RUST_BACKTRACE"];

/// What is never said of something that is only not permitted.
const NEVER_OF_A_REFUSAL: &[&str] =
    &["CORRUPT", "not what was published", "from a backup", "FORGED", "TORN", "MISMATCH"];

/// What is wrong with what a command said about an object, if anything is.
fn wrong(said: &Outcome, object: &Object, actor: Actor) -> Option<String> {
    let words = [&said.stdout, &said.stderr].map(|stream| String::from_utf8_lossy(stream));
    if let Some(signal) = said.signal() {
        return Some(format!("died of signal {signal}"));
    }
    let exit = said.code();
    if !EXITS.contains(&exit) {
        return Some(format!("exit status {exit}"));
    }
    let says = |word: &&&str| words.iter().any(|text| text.contains(**word));
    if let Some(word) = NEVER.iter().find(says) {
        return Some(format!("says {word}"));
    }
    let refused = object.is_a_refusal && actor != Actor::Root;
    if let Some(word) = NEVER_OF_A_REFUSAL.iter().find(says).filter(|_| refused) {
        return Some(format!("says {word} of what is not permitted"));
    }
    let told = words[1].contains("error[E_") || words[0].contains("healthy");
    (exit != 0 && !told).then(|| format!("exit status {exit} without a word"))
}

/// All the pairs of one part, met by every command as one of the users.
fn play(actor: Actor, part: usize, parts: usize) {
    if !granted(&[
        Capability::Root,
        Capability::Program("setpriv"),
        Capability::Program("prlimit"),
        Capability::Program("chattr"),
    ]) {
        return;
    }
    let mould = Mould::new(actor);
    let paths = mould.paths();
    let all = std::env::var_os("JVS_LONG").is_some();
    let (mut pairs, mut cases, mut problems) = (0, 0, Vec::new());
    for (row, path) in paths.iter().enumerate() {
        for (column, object) in OBJECTS.iter().enumerate() {
            let number = row * OBJECTS.len() + column;
            // A prime: each path and each object has its turn.
            let due = if all { number } else { number / STRIDE };
            if (!all && !number.is_multiple_of(STRIDE)) || due % parts != part {
                continue;
            }
            mould.pour();
            let victim = Victim::new(&mould.outside());
            if !object.put(&mould.at(path), &victim, actor.attacker()) {
                continue;
            }
            pairs += 1;
            let met = |turn: &usize| all || (turn + pairs).is_multiple_of(FEW);
            for turn in (0..COMMANDS.len()).filter(met) {
                let said = mould.command(COMMANDS[turn]).run();
                cases += 1;
                let problem = wrong(&said, object, actor).map(|why| format!("{why}: {said}"));
                problems.extend(problem.map(|it| told(object, path, &it)));
            }
            problems.extend(victim.harm().map(|harm| told(object, path, &harm)));
            object.take_away(&mould.at(path));
        }
    }
    let of = (paths.len(), OBJECTS.len(), COMMANDS.len());
    println!("{actor:?}, part {part} of {parts}: {cases} cases, {pairs} pairs, of {of:?}");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// At once: there may be an hour to go.
fn told(object: &Object, path: &Path, problem: &str) -> String {
    let told = format!("{} at {}: {problem}", object.name, path.display());
    println!("{told}");
    told
}

#[test]
fn nothing_in_the_control_plane_harms_root_first_part() {
    play(Actor::Root, 0, 2);
}

#[test]
fn nothing_in_the_control_plane_harms_root_second_part() {
    play(Actor::Root, 1, 2);
}

#[test]
fn nothing_in_the_control_plane_harms_its_owner() {
    play(Actor::Owner, 0, 1);
}

#[test]
fn nothing_in_the_control_plane_harms_a_member_of_its_group() {
    play(Actor::Member, 0, 1);
}
