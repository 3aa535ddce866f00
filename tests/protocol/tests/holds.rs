//! One hold, many processes: the real code of `jvs_lock::hold` with commands, runs
//! and a keeper of one session and a rival, every interleaving within the budgets
//! that each test names. Each prints how many states it visited.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_kit::sim::{Explorer, Report, Solo};
use jvs_lock::Hold;
use jvs_lock::hold::rule::{HoldRule, without};
use jvs_lock::hold::{HoldState, Stake, Viewpoint};
use jvs_protocol_tests::actor::{HEIR, LEASE_AND_MARGIN_MS, RENEWAL_MS};
use jvs_protocol_tests::necessity::{broken, needed};
use jvs_protocol_tests::stage::repository;
use jvs_protocol_tests::{Actor, Does, Holder, Stage, Step, holder as session, invariant, kept};
use jvs_repo::clock::BootMs;
use jvs_repo::code::{Code, Coded};
use jvs_repo::proc::ProcessStat;

const RUN: &[Does] = &[Does::Run];
const JOIN: &[Does] = &[Does::RunJoining];
const ACQUIRE: &[Does] = &[Does::Acquire];
const KEEP: &[Does] = &[Does::Keep];
const SNAPSHOT: &[Does] = &[Does::Snapshot];
const RELEASE: &[Does] = &[Does::Release];
const TAKE: &[Step] = &[Step::Acquire];
const RECLAIM: &[Step] = &[Step::Reclaim];
const WORK: &[Step] = &[Step::Acquire, Step::Commit, Step::Release];

#[track_caller]
fn all_of(what: &str, world: Explorer<'_>) -> Report {
    let report = world.run();
    eprintln!("{what}: {report}");
    report.holds()
}

fn holder(does: &'static [Does]) -> Holder {
    Holder::new("a", does)
}

fn rival(script: &'static [Step]) -> Actor {
    Actor::new("b", script).on_host(1)
}

#[test]
fn two_runs_of_one_session_and_a_rival() {
    let world = Stage::holding(&[holder(JOIN), holder(JOIN)], &[rival(TAKE)], None);
    all_of("two runs and a rival", world.preemptions(2).early_wakes(1));
}

/// One who hands its hold over to one who stops waiting at that moment.
fn handing_to_a_leaver(off: Option<HoldRule>) -> Explorer<'static> {
    let giver = holder(&[Does::AcquireForGood, Does::HandOver]);
    let heir = Holder::new(HEIR, &[Does::WaitInVain]);
    Stage::holding(&[giver, heir], &[], off).at_end(invariant::the_lock_is_free)
}

#[test]
fn what_is_handed_to_one_who_leaves_the_line_is_free() {
    all_of("a transfer to a leaver", handing_to_a_leaver(None).preemptions(3));
}

#[test]
fn who_stops_waiting_gives_back_what_it_was_handed() {
    needed(HoldRule::LeaverGivesBack, "nobody gave it back", |off| {
        handing_to_a_leaver(off).preemptions(2)
    });
}

#[test]
fn who_hands_over_looks_whether_anybody_is_there() {
    needed(HoldRule::GiverLooksForTheHeir, "nobody gave it back", |off| {
        handing_to_a_leaver(off).preemptions(2)
    });
}

/// Time may pass a lease's end once, anywhere.
fn with_expiry(world: Explorer<'static>) -> Explorer<'static> {
    world.time_jumps(1, [LEASE_AND_MARGIN_MS]).early_wakes(1)
}

#[test]
fn the_last_of_several_runs_gives_the_lock_back() {
    let world = Stage::holding(&[holder(JOIN), holder(JOIN), holder(RUN)], &[], None);
    let world = world.preemptions(1).at_end(invariant::the_lock_is_free);
    all_of("three runs", world);
}

#[test]
fn a_terminal_a_run_a_keeper_and_a_rival() {
    let holders = [holder(ACQUIRE), holder(RUN), holder(KEEP)];
    let world = || Stage::holding(&holders, &[rival(TAKE)], None);
    all_of("terminal, run, keeper, rival", world().early_wakes(1).preemptions(1));
    all_of("the same, and time passes", with_expiry(world()).preemptions(0));
}

#[test]
fn a_terminal_a_run_and_a_keeper_with_a_crash_anywhere() {
    let last = Holder::new("a", &[Does::AcquireInTheEnd]).last();
    let holders = [holder(ACQUIRE), holder(JOIN), holder(KEEP), last];
    let world = Stage::holding(&holders, &[], None).crashes(1).early_wakes(1);
    all_of("terminal, run, keeper, crash", world.preemptions(0));
}

#[test]
fn a_terminal_a_run_a_keeper_and_a_rival_with_a_crash_anywhere() {
    let holders = [holder(ACQUIRE), holder(JOIN), holder(KEEP)];
    let world = || Stage::holding(&holders, &[rival(TAKE)], None).crashes(1);
    all_of("terminal, run, keeper, rival, crash", world().early_wakes(1).preemptions(1));
    all_of("the same, and time passes", with_expiry(world()).preemptions(0));
}

#[test]
fn a_release_a_run_a_keeper_and_a_rival_with_a_crash_anywhere() {
    let holders = [holder(&[Does::AcquireForGood, Does::Release]), holder(JOIN), holder(KEEP)];
    let world = || Stage::holding(&holders, &[rival(TAKE)], None).crashes(1);
    all_of("release, run, keeper, rival, crash", world().early_wakes(1).preemptions(1));
    all_of("the same, and time passes", with_expiry(world()).preemptions(0));
}

#[test]
fn a_release_beside_those_who_come_and_a_rival() {
    let holders = [holder(&[Does::AcquireForGood, Does::Release]), holder(JOIN), holder(RELEASE)];
    let world = Stage::holding(&holders, &[rival(TAKE)], None);
    all_of("release, run, release, rival", world.preemptions(1).early_wakes(1));
}

#[test]
fn a_register_that_answers_late_or_not_at_all() {
    let holders = [holder(ACQUIRE), holder(JOIN), holder(KEEP)];
    let world = Stage::holding(&holders, &[], None).early_wakes(1).preemptions(0);
    all_of("lost answers", world.ambiguous_renames(1));
    let holders = [holder(ACQUIRE), holder(JOIN)];
    let world = Stage::holding(&holders, &[rival(TAKE)], None).early_wakes(1).preemptions(1);
    all_of("late answers", world.late_renames(1));
}

/// Whoever died and wherever: when the last one has ended and a keeper came by, the lock
/// is not held for nobody.
#[test]
fn nothing_is_held_for_nobody() {
    let keeper = holder(&[Does::KeepToTheEnd]).last();
    let end = |holders: &[Holder]| {
        let world = Stage::holding(holders, &[], None).early_wakes(1);
        world.at_end(invariant::nothing_is_held_for_nobody)
    };
    let world = end(&[holder(ACQUIRE), holder(JOIN), keeper]);
    all_of("terminal, run, keeper at the end, crash", world.crashes(1).preemptions(1));
    let world = end(&[holder(FOR_A_WHILE), holder(JOIN), keeper]);
    all_of("--for, run, keeper at the end, crash", world.crashes(1).preemptions(1));
    let world = end(&[holder(FOR_A_WHILE), holder(JOIN), holder(RELEASE), keeper]);
    all_of("--for, run, release, keeper at the end", world.preemptions(1));
    let world = end(&[holder(FOR_A_WHILE), holder(JOIN), keeper]);
    all_of(
        "--for, run, keeper at the end, lost answers",
        world.ambiguous_renames(1).preemptions(0),
    );
}

/// A stop is a preemption in which time passes: any of them may be stopped for longer
/// than the lease.
#[test]
fn a_time_a_run_and_a_keeper_one_of_them_stopped_and_a_rival() {
    let holders = [holder(FOR_A_WHILE), holder(JOIN), holder(KEEP)];
    let world = Stage::holding(&holders, &[rival(TAKE)], None);
    all_of("--for, run, keeper, rival, stop", with_expiry(world).preemptions(0));
    let world = Stage::holding(&[holder(FOR_A_WHILE), holder(KEEP)], &[rival(TAKE)], None);
    all_of("--for, keeper, rival, stop", with_expiry(world).preemptions(1));
}

#[test]
fn a_lock_that_is_handed_over_beside_runs_and_a_keeper() {
    let heir = Actor::new(HEIR, &[Step::Wait, Step::Commit, Step::Release]).on_host(1);
    let holders = [holder(&[Does::AcquireForGood, Does::HandOver]), holder(JOIN), holder(KEEP)];
    let world = Stage::holding(&holders, &[heir], None);
    all_of("transfer, run, keeper, heir", world.preemptions(1).early_wakes(1));
    let world = Stage::holding(&holders[..2], &[heir], None);
    all_of("transfer, run, heir, crash", world.crashes(1).preemptions(0).early_wakes(1));
}

#[test]
fn a_lock_that_is_reclaimed_beside_runs_and_a_keeper() {
    let reclaims = rival(&[Step::Reclaim, Step::Commit, Step::Release]);
    let holders = [holder(FOR_GOOD), holder(SNAPSHOT), holder(KEEP)];
    let world = Stage::overruled(&holders, &[reclaims], None);
    all_of("acquire, snapshot, keeper, reclaim", world.preemptions(1).early_wakes(1));
    let world = Stage::overruled(&holders[..2], &[reclaims], None);
    all_of("acquire, snapshot, reclaim, crash", world.crashes(1).preemptions(1).early_wakes(0));
}

/// That somebody may overrule by policy excuses nothing else.
#[test]
fn what_is_told_and_believed_is_asked_beside_one_who_may_overrule_too() {
    let world = |off| {
        let world = Stage::overruled(&[holder(JOIN), holder(JOIN)], &[rival(RECLAIM)], Some(off));
        world.preemptions(2).early_wakes(1)
    };
    broken(HoldRule::StakesKeepAHold, "believes", world(HoldRule::StakesKeepAHold));
    broken(HoldRule::LookAfterRead, "told that it holds", world(HoldRule::LookAfterRead));
}

#[test]
fn snapshots_of_a_session_that_was_taken_over() {
    let held = holder(&[Does::AcquireForGood, Does::Snapshot]);
    let world = Stage::holding(&[held, holder(SNAPSHOT)], &[rival(WORK)], None);
    all_of("snapshots after a takeover", with_expiry(world).preemptions(1));
}

/// A keeper that begins when a renewal is about to be due, and is then stopped until the
/// lease that its starter was told of is over, and one that began with it would not be.
#[test]
fn what_a_keeper_goes_on_with_lasts_as_long_as_it_was_confirmed() {
    let world = |off| {
        let world = Stage::holding(&[holder(&[Does::RunKept])], &[rival(TAKE)], off);
        world
            .time_jumps(1, [LEASE_AND_MARGIN_MS - RENEWAL_MS + 1_000])
            .early_wakes(1)
            .preemptions(1)
    };
    all_of("run with a keeper that goes on, rival, stop", world(None));
    needed(HoldRule::InheritedAsConfirmed, "believes", world);
}

#[test]
fn a_keeper_that_goes_on_beside_others_of_its_session_and_a_rival() {
    let kept = holder(&[Does::RunKept]);
    let world = || Stage::holding(&[kept, holder(JOIN), holder(KEEP)], &[rival(TAKE)], None);
    all_of(
        "run with a keeper that goes on, run, keeper, rival",
        world().early_wakes(1).preemptions(0),
    );
    let world = Stage::holding(&[kept, holder(RELEASE)], &[rival(TAKE)], None);
    all_of(
        "run with a keeper that goes on, release, rival, crash",
        world.crashes(1).early_wakes(1).preemptions(1),
    );
}

/// Two commands of one session that share.
fn two(off: Option<HoldRule>) -> Explorer<'static> {
    Stage::holding(&[holder(JOIN), holder(JOIN)], &[], off).preemptions(2).early_wakes(1)
}

const FOR_GOOD: &[Does] = &[Does::AcquireForGood];
const FOR_A_WHILE: &[Does] = &[Does::AcquireForAWhile];

#[test]
fn a_stake_comes_first() {
    needed(HoldRule::StakeComesFirst, "told that it holds", two);
}

#[test]
fn who_joins_moves_the_name() {
    needed(HoldRule::JoinMovesTheName, "believes", two);
}

#[test]
fn a_read_does_not_confirm() {
    needed(HoldRule::ConfirmedByOwnCas, "a lease that is over", |off| {
        let world = Stage::holding(&[holder(FOR_GOOD), holder(JOIN)], &[], off);
        world.time_jumps(1, [LEASE_AND_MARGIN_MS]).preemptions(1).early_wakes(0)
    });
}

#[test]
fn a_grant_does_not_confirm_beside_others() {
    needed(HoldRule::OthersAreAskedFor, "holds token", two);
}

/// Trace S3: each of two runs that share nothing looked before the other was there.
#[test]
fn two_runs_that_share_nothing_claim_their_place_first() {
    needed(HoldRule::JoinMovesTheName, "two runs", |off| {
        Stage::runs(&[holder(RUN), holder(RUN)], off).preemptions(2).early_wakes(1)
    });
}

/// Trace S5: whoever marked it ending was killed.
#[test]
fn a_hold_that_ends_keeps_nobody_waiting() {
    needed(HoldRule::EndingIsBurnt, "for ever", |off| {
        let holders = [holder(&[Does::AcquireForGood, Does::Release]), holder(FOR_GOOD)];
        Stage::holding(&holders, &[], off).crashes(1).preemptions(1).early_wakes(0)
    });
}

/// Trace S6: whoever has the mutex is stopped.
#[test]
fn nobody_waits_for_one_who_may_be_stopped() {
    needed(HoldRule::NobodyWaits, "for ever", |off| {
        let holders = [holder(JOIN), holder(FOR_GOOD)];
        Stage::holding(&holders, &[], off).preemptions(1).early_wakes(0)
    });
}

/// Trace S7.
#[test]
fn nobody_releases_under_an_acquire_that_has_not_answered() {
    needed(HoldRule::ReleaseAsksTheOthers, "told that it holds", |off| {
        let holders = [holder(FOR_GOOD), holder(RELEASE)];
        Stage::holding(&holders, &[], off).preemptions(1).early_wakes(0)
    });
}

#[test]
fn a_hold_that_ends_is_never_resumed() {
    needed(HoldRule::EndingIsNotResumed, "believes", two);
}

#[test]
fn the_hold_is_looked_at_after_the_read() {
    needed(HoldRule::LookAfterRead, "told that it holds", two);
}

#[test]
fn a_hold_with_a_live_stake_is_not_given_back() {
    needed(HoldRule::StakesKeepAHold, "believes", two);
}

#[test]
fn who_finds_a_hold_gone_marks_it_lost() {
    needed(HoldRule::FinderMarksTheLoss, "sent away", |off| {
        let comes_back = holder(FOR_GOOD).last();
        let world = Stage::holding(&[holder(FOR_GOOD), comes_back], &[rival(TAKE)], off);
        world.time_jumps(1, [LEASE_AND_MARGIN_MS]).preemptions(1).early_wakes(0)
    });
}

#[test]
fn only_a_confirmed_release_is_remembered_as_one() {
    needed(HoldRule::OnlyConfirmedIsReleased, "without a word", |off| {
        let world = Stage::holding(&[holder(JOIN), holder(SNAPSHOT).last()], &[rival(WORK)], off);
        with_expiry(world).crashes(1).preemptions(1)
    });
}

#[test]
fn nobody_releases_under_a_command_of_its_own_session() {
    needed(HoldRule::ReleaseAsksTheOthers, "believes", |off| {
        let world = Stage::holding(&[holder(JOIN), holder(RELEASE)], &[], off);
        world.preemptions(1).early_wakes(1)
    });
}

#[test]
fn nobody_gives_back_a_later_hold_than_it_meant() {
    needed(HoldRule::BoundToItsHold, "meant token 1", |off| {
        let holders = [holder(JOIN), holder(&[Does::ReleaseWhatWasSeen]), holder(FOR_GOOD)];
        let world = Stage::holding(&holders, &[], off).preemptions(2).early_wakes(0);
        world.at_end(invariant::what_was_given_back_was_meant)
    });
}

#[test]
fn that_a_run_has_it_to_itself_is_in_its_stake() {
    needed(HoldRule::ExclusiveIsInTheStake, "two runs", |off| {
        let world = Stage::holding(&[holder(RUN), holder(FOR_GOOD), holder(RUN)], &[], off);
        world.preemptions(1).early_wakes(1)
    });
}

#[test]
fn a_session_remembers_what_was_taken_from_it() {
    needed(HoldRule::SessionsRemember, "without a word", |off| {
        let world =
            Stage::holding(&[holder(FOR_GOOD), holder(SNAPSHOT).last()], &[rival(WORK)], off);
        with_expiry(world).preemptions(1)
    });
}

#[test]
fn a_loss_is_kept_until_who_knows_is_answered() {
    needed(HoldRule::LossIsKeptUntilAnswered, "without a word", |off| {
        let holders = [holder(FOR_GOOD), holder(FOR_GOOD), holder(SNAPSHOT).last()];
        let world = Stage::holding(&holders, &[rival(WORK)], off);
        world.time_jumps(1, [LEASE_AND_MARGIN_MS]).early_wakes(0).crashes(1).preemptions(0)
    });
}

#[test]
fn the_end_of_a_time_is_no_word_of_the_session() {
    needed(HoldRule::TimeIsNoWord, "without a word", |off| {
        let timed = holder(&[Does::AcquireForAWhile, Does::Keep]);
        // Comes when the time is over.
        let later = &[Step::Sleep, Step::Sleep, Step::Acquire, Step::Commit, Step::Release];
        let world = Stage::holding(&[timed, holder(SNAPSHOT).last()], &[rival(later)], off);
        world.preemptions(1).early_wakes(1)
    });
}

/// The loss is told by a name, then by a file, then by nobody: whoever looked at the
/// files early and at the name late must not see it fall between them.
#[test]
fn memory_is_asked_after_the_read() {
    needed(HoldRule::MemoryAfterRead, "without a word", |off| {
        let holders = [holder(SNAPSHOT), holder(FOR_GOOD), holder(KEEP)];
        Stage::after_a_takeover(&holders, off).crashes(1).preemptions(1).early_wakes(1)
    });
}

#[test]
fn what_a_joiner_is_told_survives_a_power_cut() {
    let forgotten = || {
        let each = (0..).map_while(session::remembers_through_a_power_cut);
        each.filter(|known| !known).count()
    };
    assert_eq!(forgotten(), 0);
    assert_ne!(without(HoldRule::JoinersMakeItDurable, forgotten), 0, "the rule is needed");
}

#[test]
fn a_hold_that_cannot_be_made_durable_is_given_back_and_told() {
    for directory in [0, 1] {
        let (told, register, hold) = session::enters_what_cannot_be_made_durable(directory);
        assert_eq!(told.code(), Code::OutcomeUnknown, "{told}");
        assert!(told.to_string().contains("released"), "{told}");
        assert_eq!(register.hold, Hold::Free);
        assert_eq!((hold.term, hold.state), (register.term(), HoldState::Released));
    }
}

/// A holder that was born after the reboot knows what the one before it knew.
#[test]
fn a_session_remembers_after_a_reboot() {
    let told = || {
        let solo = Solo::new();
        repository(&solo);
        session::prepare(&solo, "a");
        session::taken_over(&solo, "a", "b");
        session::writes_after_a_reboot(&solo, "a").map_err(|error| error.code())
    };
    assert_eq!(told(), Err(Code::FencingMismatch));
    assert_eq!(
        without(HoldRule::MemoryOutlivesTheBoot, told),
        Ok(()),
        "without the rule it forgets"
    );
}

/// Whoever is about to be told for how long it holds is stopped for longer than that.
#[test]
fn a_time_counts_from_when_somebody_was_told() {
    needed(HoldRule::TimeCountsWhenTold, "told that it holds", |off| {
        let world = Stage::holding(&[holder(FOR_A_WHILE), holder(KEEP)], &[], off);
        with_expiry(world).preemptions(2)
    });
}

/// Whoever may write the repository has put a process of the holder into the record.
#[test]
fn the_record_does_not_choose_who_is_signalled() {
    let signalled = || kept::whom_a_forged_record_has_signalled().map(|keeper| keeper.pid);
    assert_eq!(signalled(), Some(kept::KEEPER), "the one that wrote itself down");
    let forged = without(HoldRule::PrivateWordAlone, signalled);
    assert_eq!(forged, Some(kept::VICTIM), "the rule is needed");
}

#[test]
fn a_holder_whose_keeper_has_died_is_not_dead_while_a_command_runs() {
    let reclaimed = |runs| kept::reclaims_from_one_whose_keeper_has_died(runs);
    let refused = reclaimed(true).map_err(|error| error.code());
    assert_eq!(refused, Err(Code::LockConflict));
    assert_eq!(reclaimed(false).expect("nobody needs it").0, 2);
    let robbed = without(HoldRule::DeadIfNothingRests, || reclaimed(true));
    assert_eq!(robbed.expect("the rule is needed").0, 2);
}

/// A process whose pid was used again is not the one whose stake it was.
#[test]
fn a_reused_pid_keeps_nothing() {
    let stake: Stake =
        "0101010101010101.1-a3f0.7.run.shared.10.100.1.1.-.-.-".parse().expect("one");
    let lookup = |_: u32| Some(ProcessStat { start_ticks: 101, session_leader: 1, zombie: false });
    let alive = || {
        let (pid_namespace, time_namespace, now) = (Some(1), Some(1), BootMs(0));
        stake.is_alive(Viewpoint { pid_namespace, time_namespace, now, lookup: &lookup })
    };
    assert!(!alive());
    assert!(
        without(HoldRule::StakesTellPidsApart, alive),
        "without the rule it is renewed for ever"
    );
}

/// Every rule that can be switched off is switched off by a test above.
#[test]
fn no_rule_is_left_out() {
    let tests = include_str!("holds.rs");
    for rule in HoldRule::ALL {
        let off = ["needed", "without"].map(|how| format!("{how}(HoldRule::{rule:?}"));
        assert!(off.iter().any(|off| tests.contains(off)), "{rule:?} is never switched off");
    }
}
