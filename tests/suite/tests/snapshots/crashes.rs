//! The crash matrix of real processes: every command × every call with which it moves,
//! removes or makes a name, or makes something durable × {dead before it, dead after it},
//! on ext4 and on JuiceFS. After each somebody else gets the lock, doctor leaves nothing
//! to be found, the same command works or is refused for what has happened already, and
//! all that was promised before is there. The matrix of the simulated world, where the
//! power goes, too, is in `tests/protocol/tests/crashes`.
//!
//! A sample of the calls is struck; `JVS_LONG=1` strikes at all.

mod lookers;
mod rows;
mod scene;

use std::collections::BTreeSet;

use jvs_kit::live::calls::{self, Blow, Call};
use jvs_kit::live::juicefs::Engine;
use jvs_kit::live::loopfs::Kind;
use jvs_kit::live::process::Outcome;
use jvs_world::commands::{Effect, of};

use crate::places::Place;
use crate::strikes::long;
use rows::{ROWS, Row};
use scene::Scene;

/// How many tests share the rows of a filesystem.
const SHARES: usize = 4;
/// How many calls of a row a sample has.
const SAMPLE: usize = 4;

/// The status of a run whose blow is a signal that it passes on.
const TOLD_TO_END: i32 = 128 + 10;

/// Is it one that the matrix strikes at?
fn counts(call: &Call) -> bool {
    let names = ["rename", "link", "unlink", "mkdir", "rmdir"];
    call.only_syncs() || names.iter().any(|name| call.name.starts_with(name))
}

fn blows(calls: &[Call]) -> Vec<(&Call, Blow)> {
    let calls: Vec<&Call> = calls.iter().filter(|call| counts(call)).collect();
    let both = |call| [(call, Blow::DiesFirst), (call, Blow::ThenDies)];
    let all: Vec<(&Call, Blow)> = calls.into_iter().flat_map(both).collect();
    // An odd step meets both ways.
    let step = if long() { 1 } else { (all.len() / SAMPLE) | 1 };
    all.into_iter().step_by(step).collect()
}

/// Strikes at the calls of a row; how many died, at how many.
fn every_death_of(scene: &Scene, row: &Row) -> (usize, usize) {
    let prepared = || {
        scene.clear();
        (row.prepare)(scene);
        scene.command(row)
    };
    // The first run of a home makes what later ones find.
    for _ in 0..2 {
        let outcome = prepared().run().ok();
        recovers(scene, row, &outcome, "a whole run");
    }
    let recorded = calls::record(&prepared());
    let outcome = recorded.outcome.ok();
    recovers(scene, row, &outcome, "a whole run");
    let blows = blows(&recorded.calls);
    let mut died = 0;
    for (call, blow) in &blows {
        let command = prepared();
        let outcome = calls::strike(&command, call, *blow);
        let what = format!("{}: {blow:?} at {call}", row.words);
        match outcome.signal() {
            Some(_) => died += 1,
            // A run ends in the way of what it is told: it passes the signal on, and dies
            // of nothing that it can hand over.
            None if outcome.code() == TOLD_TO_END => died += 1,
            // Some calls depend on the moment: a probe that is not made again, a retry.
            None => assert_eq!(outcome.code(), 0, "{what}: {outcome}"),
        }
        recovers(scene, row, &outcome, &what);
    }
    assert!(died * 2 >= blows.len(), "{}: most runs die where they should", row.words);
    (died, recorded.calls.iter().filter(|call| counts(call)).count())
}

/// Everybody who comes next finds what was promised.
fn recovers(scene: &Scene, row: &Row, outcome: &Outcome, what: &str) {
    // It says so when it is done, and only then.
    if outcome.signal().is_none() && outcome.code() == 0
        || row.says_when_done && !outcome.stdout().is_empty()
    {
        assert!((row.done)(scene), "{what}: told done, and it is not: {outcome}");
    }
    scene.everything_promised_is_there(what);
    scene.a_survivor_gets_the_lock(what);
    scene.doctor_leaves_nothing(what);
    scene.everything_promised_is_there(what);
    let again = scene.command(row).run();
    match again.code() {
        0 => assert!((row.done)(scene), "{what}: again told done, and it is not: {again}"),
        _ => assert!(
            row.refusals.iter().any(|code| again.stderr().contains(code)),
            "{what}: again: {again}"
        ),
    }
    scene.everything_promised_is_there(what);
}

fn deaths(place: Option<Place>, share: usize) {
    let Some(place) = place.filter(|_| calls::can_be_aimed_at()) else { return };
    let scene = Scene::at(&place.dir);
    let (mut struck, mut calls) = (0, 0);
    for row in ROWS.iter().skip(share).step_by(SHARES) {
        let (died, of) = every_death_of(&scene, row);
        eprintln!("{}: {died} deaths at {of} calls", row.words);
        (struck, calls) = (struck + died, calls + of);
    }
    scene.clear();
    scene.doctor_leaves_nothing("in the end");
    assert_eq!(scene.user.data("audit --verify")["verified"], true);
    assert_eq!(scene.user.data("verify --all")["tamper_detected"], false);
    eprintln!("{struck} deaths at {calls} calls in all");
}

fn on_ext4() -> Option<Place> {
    Place::on(Kind::Ext4)
}

fn on_juicefs() -> Option<Place> {
    Place::on_juicefs(Engine::Sqlite)
}

#[test]
fn commands_die_anywhere_on_ext4_and_the_next_recovers_first() {
    deaths(on_ext4(), 0);
}

#[test]
fn commands_die_anywhere_on_ext4_and_the_next_recovers_second() {
    deaths(on_ext4(), 1);
}

#[test]
fn commands_die_anywhere_on_ext4_and_the_next_recovers_third() {
    deaths(on_ext4(), 2);
}

#[test]
fn commands_die_anywhere_on_ext4_and_the_next_recovers_fourth() {
    deaths(on_ext4(), 3);
}

#[test]
fn commands_die_anywhere_on_juicefs_and_the_next_recovers_first() {
    deaths(on_juicefs(), 0);
}

#[test]
fn commands_die_anywhere_on_juicefs_and_the_next_recovers_second() {
    deaths(on_juicefs(), 1);
}

#[test]
fn commands_die_anywhere_on_juicefs_and_the_next_recovers_third() {
    deaths(on_juicefs(), 2);
}

#[test]
fn commands_die_anywhere_on_juicefs_and_the_next_recovers_fourth() {
    deaths(on_juicefs(), 3);
}

#[test]
fn every_command_that_changes_something_has_a_row_in_the_matrix_of_processes() {
    let rows: BTreeSet<&str> = ROWS.iter().map(|row| row.command).collect();
    let changing: BTreeSet<&str> = of(Effect::Changes).chain(of(Effect::ChangesOutside)).collect();
    assert_eq!(rows, changing, "rows.rs, against jvs-world's commands.rs");
    let looking: BTreeSet<&str> = lookers::WORDS.iter().map(|(command, _)| *command).collect();
    assert_eq!(looking, of(Effect::Looks).collect(), "lookers.rs, against commands.rs");
}
