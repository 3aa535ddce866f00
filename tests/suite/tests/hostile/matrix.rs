//! Whatever somebody who may write there puts in the place of a file or directory of the
//! control plane, or of a session's private directory: every command says what it found,
//! ends, stays within its memory and writes nothing outside.
//!
//! Each case is one path, one object in its place and one command. In the normal run a
//! spread of the pairs of path and object meets some of the commands, each pair others;
//! with `JVS_LONG=1` all meet all, or those that `JVS_MATRIX` is a part of the name of
//! (`FIFO at r/.jvs/audit: gc`). The dearest cases are printed at the end.

mod cost;
mod mould;
mod object;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::Jvs;
use jvs_kit::live::process::{DEADLINE, Outcome};

use cost::Dearest;

use mould::{Actor, Mould, Victim};
use object::{OBJECTS, Object};

/// What is run, those that change little first.
const COMMANDS: &[&str] = &[
    "status",
    "diff",
    "ls",
    "path",
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
    "events",
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

/// What is wrong with a command, which is always allowed to end.
fn tried(command: &Jvs, object: &Object, actor: Actor) -> Option<String> {
    let mut running = command.start();
    if !running.ends_within(DEADLINE) {
        return Some(format!("still running after {DEADLINE:?}: {}", running.said()));
    }
    let said = running.wait(DEADLINE);
    wrong(&said, object, actor).map(|why| format!("{why}: {said}"))
}

/// Which cases are met.
struct Choice {
    all: bool,
    named: String,
}

impl Choice {
    fn of_the_environment() -> Self {
        let named = std::env::var("JVS_MATRIX").unwrap_or_default();
        Choice { all: std::env::var_os("JVS_LONG").is_some(), named }
    }

    /// Is it the turn of this pair, in this part?
    fn meets(&self, number: usize, part: usize, parts: usize) -> bool {
        // A prime: each path and each object has its turn.
        let due = if self.all { number } else { number / STRIDE };
        (self.all || number.is_multiple_of(STRIDE)) && due % parts == part
    }

    /// The commands that the pair with this name meets.
    fn commands(&self, number: usize, pair: &str) -> Vec<&'static str> {
        let turns =
            (0..COMMANDS.len()).filter(|turn| self.all || (turn + number).is_multiple_of(FEW));
        let commands = turns.map(|turn| COMMANDS[turn]);
        commands.filter(|command| named(pair, command).contains(&self.named)).collect()
    }
}

fn named(pair: &str, command: &str) -> String {
    format!("{pair}: {command}")
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
    let (paths, choice) = (mould.paths(), Choice::of_the_environment());
    let (mut pairs, mut cases, mut problems) = (0, 0, Vec::new());
    let mut dearest = Dearest::default();
    for (row, path) in paths.iter().enumerate() {
        for (column, object) in OBJECTS.iter().enumerate() {
            let pair = format!("{} at {}", object.name, path.display());
            let commands = choice.commands(pairs, &pair);
            let number = row * OBJECTS.len() + column;
            let meets = choice.meets(number, part, parts) && !commands.is_empty();
            if !meets || (object.is_a_directory_elsewhere() && mould.is_the_user_s(path)) {
                continue;
            }
            mould.pour();
            let victim = Victim::new(&mould.outside());
            if !object.put(&mould.at(path), &victim, actor.attacker()) {
                continue;
            }
            pairs += 1;
            for command in commands {
                let case = named(&pair, command);
                let problem =
                    dearest.measured(&case, || tried(&mould.command(command), object, actor));
                cases += 1;
                problems.extend(problem.map(|it| told(&case, &it)));
            }
            problems.extend(victim.harm().map(|harm| told(&pair, &harm)));
            object.take_away(&mould.at(path));
        }
    }
    let of = (paths.len(), OBJECTS.len(), COMMANDS.len());
    println!("{actor:?}, part {part} of {parts}: {cases} cases, {pairs} pairs, of {of:?}");
    println!("{dearest}");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// At once: there may be an hour to go.
fn told(case: &str, problem: &str) -> String {
    let told = format!("{case}: {problem}");
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
