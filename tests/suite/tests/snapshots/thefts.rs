//! A snapshot that is paused at any of its calls while somebody else takes the
//! lock: it is fenced, nothing of it is seen or left, and what the new holder
//! wrote stays as it is.

use jvs_kit::live::calls::{self, Call};
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::loopfs::Kind;
use jvs_repo::layout;

use crate::places::Place;
use crate::strikes::long;
use crate::user::User;

/// Of the calls that are no renames one in so many is taken.
const ONE_IN: usize = 5;

/// From the grant of the lock up to the commit, which both are renames of the
/// register: its name says who holds it.
fn before_the_commit(calls: &[Call]) -> &[Call] {
    let held = |call: &Call| call.arguments.matches(".held.").count();
    let granted = calls.iter().position(|call| call.renames() && held(call) == 1);
    let committed = calls.iter().position(|call| call.renames() && held(call) == 2);
    let (Some(granted), Some(committed)) = (granted, committed) else {
        panic!("a snapshot takes the lock and commits: {calls:#?}")
    };
    &calls[granted..committed]
}

/// `here` takes snapshots; `there`, of another session, robs it of the lock.
fn paused_and_robbed(here: &User, there: &User) {
    let command = here.command("snapshot --json");
    let prepare = |n: usize| {
        for file in 0..4 {
            here.write(&format!("mine/{file}"), &n.to_string());
        }
    };
    // So that it need not wait for the end of a lease.
    there.jvs("config set reclaim.emergency_override true").ok();
    prepare(0);
    here.snapshot();
    prepare(1);
    let recorded = calls::record(&command);
    recorded.outcome.ok();
    let mut known = here.history();

    let window = before_the_commit(&recorded.calls);
    let wanted = |(n, call): &(usize, &Call)| long() || call.renames() || n.is_multiple_of(ONE_IN);
    let points = window.iter().enumerate().filter(wanted).map(|(_, call)| call);
    let (mut robbed, mut missed) = (0, Vec::new());
    for (n, call) in points.enumerate() {
        prepare(n + 2);
        let paused = match calls::stop(&command, call) {
            Ok(paused) => paused,
            Err(outcome) => {
                outcome.ok();
                known = here.history();
                missed.push(call.to_string());
                continue;
            }
        };
        there.jvs("lock freeze --for 1m --force --reason test").ok();
        there.jvs("lock unfreeze --reason test").ok();
        there.jvs("lock acquire --no-keeper").ok();
        there.write("theirs", &n.to_string());

        let outcome = paused.go_on().exits(5);
        let error = &outcome.json()["error"];
        assert_eq!(error["code"], "E_FENCING_MISMATCH", "{call}: {outcome}");
        assert_eq!(here.names(&layout::staging()), [""; 0], "{call}: nothing is left behind");
        assert_eq!(here.snapshot_dirs().len(), known.len(), "{call}: nothing is left behind");
        assert_eq!(there.history(), known, "{call}: nothing of it is seen");
        assert_eq!(there.read("theirs"), n.to_string(), "{call}");
        // The new holder is none the worse for it.
        let theirs = there.snapshot();
        assert_eq!(there.read_in(&theirs, "theirs"), n.to_string(), "{call}");
        there.jvs("lock release").ok();
        known.insert(0, theirs);
        assert_eq!(here.history(), known, "{call}");
        here.says_it_knows();
        robbed += 1;
    }
    eprintln!(
        "snapshot: robbed at {robbed} of {} calls between grant and commit; {} more calls \
         cannot be aimed at",
        window.len(),
        recorded.out_of_reach
    );
    assert!(missed.len() * 5 <= robbed, "most runs stop where they should: {missed:#?}");
    assert_eq!(there.data("verify --all")["tamper_detected"], false);
    assert_eq!(there.data("audit --verify")["verified"], true);
    here.jvs("doctor --strict").ok();
}

#[test]
fn a_snapshot_robbed_of_its_lock_at_any_call_is_fenced_and_nothing_of_it_is_seen() {
    let Some(place) = Place::on(Kind::Ext4).filter(|_| calls::can_be_aimed_at()) else { return };
    let here = User::with_new_repository(&place.dir.join("r"));
    let there = User::of(&place.dir.join("r")).session("thief");
    paused_and_robbed(&here, &there);
}

#[test]
fn a_snapshot_robbed_of_its_lock_by_another_host_at_any_call_is_fenced() {
    if !calls::can_be_aimed_at() {
        return;
    }
    let Some(volume) = Volume::mounted(Engine::Sqlite, 2) else { return };
    let here = User::with_new_repository(&volume.host(0).join("r"));
    let there = User::of(&volume.host(1).join("r")).session("thief");
    paused_and_robbed(&here, &there);
}
