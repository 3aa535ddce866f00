//! Locks that change hands in another way than by running out, beside one who takes
//! what has run out: handed over, reclaimed by policy, frozen, unfrozen, repaired.
//! Each prints how many states it visited.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_kit::sim::{Explorer, Report, Solo, View};
use jvs_lock::mutation::Rule;
use jvs_lock::{Locks, Want};
use jvs_protocol_tests::actor::{self, HEIR, LEASE_AND_MARGIN_MS, LEASE_MS};
use jvs_protocol_tests::necessity::needed;
use jvs_protocol_tests::{Actor, Stage, Step, invariant};
use jvs_repo::name::WorktreeName;
use jvs_world::session::locks_with_log;
use jvs_world::sim::seams_of;

const PUBLISH: &[Step] = &[Step::Acquire, Step::Commit];
const TAKE: &[Step] = &[Step::Acquire];
/// A freeze of a second is over after this, skew and grace included.
const SECOND_AND_MARGIN_MS: u64 = 4_002;

#[track_caller]
fn all_of(what: &str, world: Explorer<'_>) -> Report {
    let report = world.run();
    eprintln!("{what}: {report}");
    report.holds()
}

/// What `id` did on the first host before the others came.
fn earlier(id: &'static str, act: impl Fn(&Locks<'_>)) -> impl Fn(&Solo) {
    move |solo| {
        let session = actor::session(id, 98, solo.clock());
        act(&locks_with_log(seams_of(solo), session, 98));
    }
}

fn frozen_for_a_second(locks: &Locks<'_>) {
    let main = WorktreeName::main();
    let state = locks.freeze(&main, 1_000, "earlier", false).expect("frozen");
    assert!(state.hold.claim().is_some(), "{state}");
}

fn held(locks: &Locks<'_>) {
    let lease = locks.acquire(&WorktreeName::main(), Want::lease(LEASE_MS)).expect("free");
    assert_eq!(lease.token().0, 1);
}

/// One who hands over what its session holds, its heir in line, and a thief.
fn handing_over() -> Explorer<'static> {
    let actors = [
        Actor::new("a", &[Step::Resume, Step::HandOver]).on_host(0),
        Actor::new(HEIR, &[Step::Wait, Step::Commit]).on_host(0),
        Actor::new("b", TAKE).on_host(1),
    ];
    Stage::coarse(&actors, None)
        .setup(earlier("a", held))
        .always(invariant::what_is_handed_over_arrives)
        .always(invariant::no_token_is_granted_twice)
        .time_jumps(1, [LEASE_AND_MARGIN_MS])
        .early_wakes(0)
}

/// Or the worlds below would show nothing.
#[test]
fn the_heir_gets_what_it_is_handed_and_goes_on_with_it() {
    let heir_committed = |view: &View<'_>| {
        let told = |who: &str, key: &str| {
            view.processes().any(|p| p.text("session") == Some(who) && p.get(key).is_some())
        };
        match told("a", "handed_over") && told(HEIR, "committed") {
            true => Err("handed over".into()),
            false => Ok(()),
        }
    };
    let found = handing_over().preemptions(1).always(heir_committed).run().violation();
    assert_eq!(found.message, "handed over");
}

#[test]
fn a_transfer_beside_a_thief_and_a_crash() {
    all_of("a transfer, a crash", handing_over().preemptions(3).crashes(1));
}

#[test]
fn a_transfer_beside_a_thief_and_a_rename_applied_without_saying_so() {
    all_of("a transfer, an ambiguous rename", handing_over().preemptions(3).ambiguous_renames(1));
}

/// A holder that is overruled by policy while it believes, and a thief.
fn reclaiming() -> Explorer<'static> {
    let actors = [
        Actor::new("a", &[Step::Resume, Step::Commit]).on_host(0),
        Actor::new("b", TAKE).on_host(1),
        Actor::new("op", &[Step::Reclaim, Step::Commit]).on_host(2),
    ];
    Stage::with_policy(&actors, None)
        .setup(earlier("a", held))
        .always(invariant::belief_is_true_unless_overruled)
        .always(invariant::no_token_is_granted_twice)
        .time_jumps(1, [LEASE_AND_MARGIN_MS])
        .early_wakes(0)
}

#[test]
fn a_reclaim_beside_a_thief_and_a_crash() {
    all_of("a reclaim, a crash", reclaiming().preemptions(3).crashes(1));
}

#[test]
fn a_reclaim_beside_a_thief_and_a_rename_applied_without_saying_so() {
    all_of("a reclaim, an ambiguous rename", reclaiming().preemptions(2).ambiguous_renames(1));
}

#[test]
fn a_freeze_is_lifted_beside_a_thief_and_another_operator() {
    let actors = [
        Actor::new("op", &[Step::Unfreeze]).on_host(0),
        Actor::new("b", PUBLISH).on_host(0),
        Actor::new("admin", &[Step::Freeze]).on_host(0),
    ];
    let world = Stage::coarse(&actors, None)
        .setup(earlier("first", frozen_for_a_second))
        .time_jumps(1, [SECOND_AND_MARGIN_MS])
        .early_wakes(0)
        .preemptions(3)
        .crashes(1)
        .ambiguous_renames(1);
    all_of("an unfreeze, a crash, an ambiguous rename", world);
}

/// One who repairs, an operator, and perhaps a thief, where a freeze is over soon.
fn repair_beside(others: &[Actor], off: Option<Rule>) -> Explorer<'static> {
    let doctor = Actor::new("doctor", &[Step::Lift]).on_host(0);
    let actors: Vec<Actor> = others.iter().copied().chain([doctor]).collect();
    Stage::coarse(&actors, off)
        .setup(earlier("first", frozen_for_a_second))
        .time_jumps(1, [SECOND_AND_MARGIN_MS])
}

#[test]
fn a_repair_beside_an_operator_lifts_only_what_it_saw() {
    needed(Rule::LiftWhatWasSeen, "was told that it froze it", |off| {
        repair_beside(&[Actor::new("op", &[Step::Freeze]).on_host(0)], off)
    });
}

#[test]
fn a_repair_beside_an_operator_and_a_thief() {
    let others = [
        Actor::new("op", &[Step::Freeze, Step::Unfreeze]).on_host(0),
        Actor::new("b", PUBLISH).on_host(0),
    ];
    let world = repair_beside(&others, None).early_wakes(0).preemptions(2);
    all_of("a repair, a crash, an ambiguous rename", world.crashes(1).ambiguous_renames(1));
}
