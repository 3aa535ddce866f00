//! Clocks that are wrong, that are set, that are read with a pause in between, and
//! that are not the clock they seem to be: the real code under every interleaving,
//! and each rule about clocks switched off.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_kit::sim::{Explorer, Report, Solo};
use jvs_lock::judge::{Facts, Standing, judge};
use jvs_lock::mutation::{self, Rule};
use jvs_lock::record::{Meaning, Record, Stamp};
use jvs_lock::session::Session;
use jvs_lock::state::{Claim, Hold, State};
use jvs_lock::{AcquireError, TakeOverError, Want};
use jvs_protocol_tests::actor::{self, LEASE_AND_MARGIN_MS, LEASE_MS, alone};
use jvs_protocol_tests::necessity::needed;
use jvs_protocol_tests::{Actor, Stage, Step, stage};
use jvs_repo::clock::{BootMs, Clock, Discipline, Reading, WallMs};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::{Epoch, OpNonce};
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_world::sim::seams_of;

const TAKE: &[Step] = &[Step::Acquire];
/// Holds, and renews in time, as a keeper does.
const KEEP: &[Step] =
    &[Step::AcquireToKeep, Step::Sleep, Step::Renew, Step::Sleep, Step::Renew, Step::Release];
const FREEZE: &[Step] = &[Step::Freeze];

/// Further apart than any lease: v6.3's own numbers.
const APART_MS: [i64; 4] = [40_000, -40_000, 3_600_000, -3_600_000];

#[track_caller]
fn all_of(what: &str, world: Explorer<'_>) -> Report {
    let report = world.run();
    eprintln!("{what}: {report}");
    report.holds()
}

/// A keeper here and a thief there, whose clock is so far ahead. Sleepers wake in
/// time: the keeper lives and renews.
fn keeper_and_thief(off: Option<Rule>, thief_ahead_ms: i64) -> Explorer<'static> {
    let actors = [Actor::new("a", KEEP).on_host(0), Actor::new("b", TAKE).on_host(1).watching()];
    Stage::coarse(&actors, off).wall_offset_ms(1, thief_ahead_ms).early_wakes(0)
}

#[test]
fn what_looks_abandoned_by_a_wall_clock_is_watched_before_it_is_taken() {
    needed(Rule::WatchedBeforeSteal, "believes in token", |off| keeper_and_thief(off, 40_000));
}

#[test]
fn no_clock_of_a_thief_or_a_holder_robs_one_who_renews() {
    for apart in APART_MS {
        all_of(&format!("thief {apart} ms ahead"), keeper_and_thief(None, apart));
    }
}

#[test]
fn a_wall_clock_that_jumps_robs_nobody_who_renews() {
    let jumps = [(0, -3_600_000), (0, 40_000), (1, 3_600_000), (1, -40_000)];
    let world = keeper_and_thief(None, 0).wall_jumps(1, jumps).preemptions(4);
    all_of("a keeper, a thief, a clock that is set", world);
}

#[test]
fn what_a_dead_keeper_held_is_taken_by_one_who_watches() {
    const HOLD: &[Step] = &[Step::AcquireToKeep, Step::Sleep, Step::Renew];
    let actors = [Actor::new("a", HOLD), Actor::lone_survivor()];
    for apart in APART_MS {
        let world = Stage::coarse(&actors, None).wall_offset_ms(1, apart).crashes(1);
        all_of(&format!("a dead keeper, {apart} ms behind"), world);
    }
}

/// Nor where the wall clock was set by as much as they differ, so that the two clocks
/// seem to have gone the same way.
#[test]
fn boot_times_of_two_time_namespaces_are_not_compared() {
    const APART_MS: u64 = 100_000_000;
    needed(Rule::OneBootTimeClock, "believes in token", |off| {
        let thief = Actor::new("b", TAKE).on_host(0).in_time_namespace(2, APART_MS).watching();
        let actors = [Actor::new("a", KEEP).on_host(0), thief];
        Stage::coarse(&actors, off)
            .wall_jumps(1, [(0, APART_MS as i64)])
            .preemptions(2)
            .early_wakes(0)
    });
}

/// A copy of a machine has its boot id and the ids of its namespaces, and another clock.
#[test]
fn boot_times_of_clocks_that_parted_are_not_compared() {
    const FIRST_OF_ANY_KERNEL: u64 = 1;
    needed(Rule::ClocksGoTogether, "believes in token", |off| {
        let actors = [
            Actor::new("a", &[Step::Acquire, Step::Commit]).on_host(0),
            Actor::new("b", TAKE).on_host(0).in_time_namespace(FIRST_OF_ANY_KERNEL, 100_000_000),
        ];
        Stage::coarse(&actors, off)
    });
}

#[test]
fn the_boot_time_clock_is_read_before_the_wall_clock() {
    use jvs_repo::mutation::Rule;
    needed(Rule::BootBeforeWall, "believes in token", |off| {
        let actors = [
            // It sleeps while the thief comes, so that nobody need be preempted.
            Actor::new("a", &[Step::Acquire, Step::Sleep]).on_host(0).without_rule_of_seams(off),
            Actor::new("b", TAKE).on_host(1).without_rule_of_seams(off),
        ];
        // A pause between the readings, and then almost a lease.
        Stage::coarse(&actors, None)
            .clocks_are_read_apart()
            .time_jumps(2, [8_000, 25_500])
            .preemptions(0)
            .early_wakes(0)
    });
}

#[test]
fn whoever_freezes_asks_what_a_thief_asks() {
    needed(Rule::OneTakeOver, "believes in token", |off| {
        let actors = [Actor::new("a", KEEP).on_host(0), Actor::new("b", FREEZE).on_host(1)];
        Stage::coarse(&actors, off).wall_offset_ms(1, 40_000).early_wakes(0).preemptions(4)
    });
}

#[test]
fn a_freeze_after_waiting_takes_nobody_else_s_hold() {
    const WAITED: &[Step] = &[Step::AcquireBriefly, Step::FreezeOwn];
    needed(Rule::FreezeFromOwnHold, "believes in token", |off| {
        let actors = [
            Actor::new("op", WAITED).on_host(0),
            Actor::new("b", &[Step::Acquire, Step::Commit]).on_host(1),
        ];
        Stage::coarse(&actors, off).time_jumps(1, [4_002])
    });
}

#[test]
fn a_repair_lifts_the_freeze_that_it_saw_and_no_other() {
    shown_needed(Rule::LiftWhatWasSeen, || {
        let solo = Solo::new();
        stage::repository(&solo);
        let main = WorktreeName::main();
        let freeze = |id: &str, pid| {
            let locks = alone(&solo, id, pid);
            locks.freeze(&main, 1_000, "maintenance", false).expect("frozen")
        };
        let seen = freeze("first", 7).term();
        solo.pass_ms(4_002);
        // Surveyed, and frozen anew before it is mended.
        freeze("op", 8);
        let lifted = alone(&solo, "doctor", 9).lift(&main, seen, "it was over");
        let state = alone(&solo, "reader", 10).inspect(&main).expect("read").state;
        lifted.is_err() && matches!(state.hold, Hold::Frozen(_))
    });
}

#[test]
fn a_freeze_of_another_host_is_over_by_a_clock_that_something_steers_or_once_it_was_seen() {
    shown_needed(Rule::FreezeEndsBySteeredClock, || {
        let solo = Solo::new();
        stage::repository(&solo);
        let main = WorktreeName::main();
        let frozen = alone(&solo, "op", 7).freeze(&main, 60_000, "maintenance", false);
        frozen.expect("frozen");
        // Another host, whose clock somebody set wrong by 100 s.
        solo.power_cut(solo.crash_images() - 1);
        solo.move_wall_ms(100_000);
        solo.set_discipline(Discipline::Unsynchronised);
        let thief = alone(&solo, "thief", 8);
        let refused = thief.acquire(&main, Want::lease(LEASE_MS));
        let is_frozen = matches!(refused, Err(AcquireError::Take(TakeOverError::Frozen(_))));
        solo.pass_ms(60_000 + LockPolicy::default().steal_grace_ms);
        is_frozen && thief.acquire(&main, Want::lease(LEASE_MS)).is_ok()
    });
}

#[test]
fn freezes_repairs_and_policy_beside_a_thief() {
    const OVERRULE: &[Step] = &[Step::Reclaim, Step::Commit];
    const KEEP_SHORT: &[Step] = &[Step::AcquireToKeep, Step::Commit, Step::Sleep, Step::Renew];
    for (what, script) in [
        ("a freeze and its end", &[Step::Freeze, Step::Unfreeze][..]),
        ("a repair", &[Step::Freeze, Step::Lift]),
        ("a reclaim", OVERRULE),
        ("a freeze from the own hold", &[Step::AcquireBriefly, Step::FreezeOwn]),
    ] {
        let actors = [
            Actor::new("a", KEEP_SHORT).on_host(0),
            Actor::new("b", &[Step::Acquire, Step::Commit]).on_host(1).watching(),
            Actor::new("op", script).on_host(2),
        ];
        let world = Stage::with_policy(&actors, None)
            .wall_offset_ms(1, 40_000)
            .time_jumps(1, [LEASE_AND_MARGIN_MS])
            .early_wakes(0)
            .preemptions(1);
        all_of(what, world);
    }
}

#[test]
fn rivals_of_one_host_whose_records_are_current_or_stale() {
    // Between the rename and the write of the record the old one is there.
    const REFRESH: &[Step] = &[Step::Acquire, Step::AcquireBriefly];
    let actors = [Actor::new("a", REFRESH).on_host(0), Actor::new("b", TAKE).on_host(0)];
    let world = Stage::fine(&actors, None)
        .wall_jumps(1, [(0, -3_600_000), (0, -1_500)])
        .time_jumps(1, [LEASE_MS - 5_000])
        .preemptions(2)
        .early_wakes(0);
    all_of("rivals of one host", world);
}

/// A lease of thirty seconds, granted at boot 1,000 s of this host, and its record.
fn granted(holder: &Session, clock: &dyn Clock) -> (State, Record) {
    let op = OpNonce([1; 8]);
    let born = State::birth(Epoch { counter: 1, salt: 0 }, OpNonce([0; 8]));
    let state = born.granted(holder.nonce(), LEASE_MS, WallMs(GRANTED_MS), op);
    let claim = *state.hold.claim().expect("held");
    let at = Reading { wall: WallMs(GRANTED_MS), boot: BootMs(1_000_000) };
    let stamp = Stamp { at, time_namespace: clock.time_namespace() };
    let main = WorktreeName::main();
    let policy = LockPolicy::default();
    (state, Record::of_grant(holder, &main, &state, &claim, stamp, &policy, None))
}

const GRANTED_MS: u64 = 1_735_689_600_000;

/// With the rule `holds` is true, without it it is not.
fn shown_needed(rule: Rule, holds: impl Fn() -> bool) {
    assert!(holds(), "with {rule:?}");
    assert!(!mutation::without(rule, holds), "without {rule:?}");
}

/// Each of the two rules hides what the other prevents, so both are shown by the
/// state that a single mistake leaves.
#[test]
fn a_record_that_missed_a_renewal_never_passes_for_a_current_one() {
    let solo = Solo::new();
    let holder = actor::session("a", 1, solo.clock());
    let (state, record) = granted(&holder, solo.clock());
    // The clock was set back, so nothing but the end could tell the renewal.
    shown_needed(Rule::RenewalChangesTheEnd, || {
        [-3_600_000_i64, -20_000, -1, 0].iter().all(|set| {
            let wall = WallMs(GRANTED_MS.saturating_add_signed(*set));
            !record.is_current(&state.extended(LEASE_MS, wall, OpNonce([2; 8])))
        })
    });
    // Refreshed for less, by a version that kept the end; twenty seconds of the
    // thirty are over.
    let Hold::Held(claim) = state.hold else { panic!("held") };
    let refreshed = State { hold: Hold::Held(Claim { lease_ms: 10_000, ..claim }), ..state };
    let now = Reading { wall: WallMs(GRANTED_MS + 20_000), boot: BootMs(1_000_000 + 20_000) };
    shown_needed(Rule::CurrentByLength, || {
        let judged = judge(Facts {
            state: &refreshed,
            record: Some(&record),
            now,
            clock: &solo.clock().boot_clock(),
            discipline: Discipline::Unknown,
            watch: None,
            policy: &LockPolicy::default(),
        });
        judged.is_some_and(|judged| judged.standing == Standing::Live)
    });
}

#[test]
fn a_waiter_that_was_stopped_keeps_nobody_out_of_a_free_lock() {
    shown_needed(Rule::SignsOfLife, || {
        let solo = Solo::new();
        stage::repository(&solo);
        let queue = jvs_lock::queue::Queue::new(seams_of(&solo), &WorktreeName::main());
        let stopped = alone(&solo, "stopped", 7);
        let _place = queue.join(stopped.session(), LEASE_MS).expect("in line");
        let all_there =
            |_: u32| Some(ProcessStat { start_ticks: 1, session_leader: 1, zombie: false });
        let want = Want::lease(LEASE_MS);
        let main = WorktreeName::main();
        // It has just given a sign: it is next.
        assert!(alone(&solo, "b", 8).acquire_in_turn(&main, want, &all_there).is_err());
        solo.pass_ms(15_001);
        alone(&solo, "c", 9).acquire_in_turn(&main, want, &all_there).is_ok()
    });
}
