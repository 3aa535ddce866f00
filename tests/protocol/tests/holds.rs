//! One hold, many processes: the real code of `jvs_lock::hold` with commands, runs
//! and a keeper of one session and a rival, every interleaving within the budgets
//! that each test names. Each prints how many states it visited.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_kit::sim::{Explorer, Report};
use jvs_lock::hold::rule::{Rule, without};
use jvs_lock::hold::{Stake, Viewpoint};
use jvs_protocol_tests::actor::LEASE_AND_MARGIN_MS;
use jvs_protocol_tests::necessity::needed;
use jvs_protocol_tests::{Actor, Does, Holder, Stage, Step, invariant};
use jvs_repo::clock::BootMs;
use jvs_repo::proc::ProcessStat;

const RUN: &[Does] = &[Does::Run];
const JOIN: &[Does] = &[Does::RunJoining];
const ACQUIRE: &[Does] = &[Does::Acquire];
const KEEP: &[Does] = &[Does::Keep];
const SNAPSHOT: &[Does] = &[Does::Snapshot];
const RELEASE: &[Does] = &[Does::Release];
const TAKE: &[Step] = &[Step::Acquire];
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

#[test]
fn snapshots_of_a_session_that_was_taken_over() {
    let held = holder(&[Does::AcquireForGood, Does::Snapshot]);
    let world = Stage::holding(&[held, holder(SNAPSHOT)], &[rival(WORK)], None);
    all_of("snapshots after a takeover", with_expiry(world).preemptions(1));
}

/// Two commands of one session that share.
fn two(off: Option<Rule>) -> Explorer<'static> {
    Stage::holding(&[holder(JOIN), holder(JOIN)], &[], off).preemptions(2).early_wakes(1)
}

const FOR_GOOD: &[Does] = &[Does::AcquireForGood];

#[test]
fn a_stake_comes_first() {
    needed(Rule::StakeComesFirst, "told that it holds", two);
}

#[test]
fn who_joins_moves_the_name() {
    needed(Rule::JoinMovesTheName, "believes", two);
}

#[test]
fn a_read_does_not_confirm() {
    needed(Rule::ConfirmedByOwnCas, "a lease that is over", |off| {
        let world = Stage::holding(&[holder(FOR_GOOD), holder(JOIN)], &[], off);
        world.time_jumps(1, [LEASE_AND_MARGIN_MS]).preemptions(1).early_wakes(0)
    });
}

#[test]
fn a_grant_does_not_confirm_beside_others() {
    needed(Rule::OthersAreAskedFor, "holds token", two);
}

#[test]
fn a_hold_that_ends_is_never_resumed() {
    needed(Rule::EndingIsNotResumed, "believes", two);
}

#[test]
fn the_hold_is_looked_at_after_the_read() {
    needed(Rule::LookAfterRead, "told that it holds", two);
}

#[test]
fn a_hold_with_a_live_stake_is_not_given_back() {
    needed(Rule::StakesKeepAHold, "believes", two);
}

#[test]
fn who_finds_a_hold_gone_marks_it_lost() {
    needed(Rule::FinderMarksTheLoss, "sent away", |off| {
        let comes_back = holder(FOR_GOOD).last();
        let world = Stage::holding(&[holder(FOR_GOOD), comes_back], &[rival(TAKE)], off);
        world.time_jumps(1, [LEASE_AND_MARGIN_MS]).preemptions(1).early_wakes(0)
    });
}

#[test]
fn only_a_confirmed_release_is_remembered_as_one() {
    needed(Rule::OnlyConfirmedIsReleased, "without a word", |off| {
        let world = Stage::holding(&[holder(JOIN), holder(SNAPSHOT).last()], &[rival(WORK)], off);
        with_expiry(world).crashes(1).preemptions(1)
    });
}

#[test]
fn nobody_releases_under_a_command_of_its_own_session() {
    needed(Rule::ReleaseAsksTheOthers, "believes", |off| {
        let world = Stage::holding(&[holder(JOIN), holder(RELEASE)], &[], off);
        world.preemptions(1).early_wakes(1)
    });
}

#[test]
fn that_a_run_has_it_to_itself_is_in_its_stake() {
    needed(Rule::ExclusiveIsInTheStake, "two runs", |off| {
        let world = Stage::holding(&[holder(RUN), holder(FOR_GOOD), holder(RUN)], &[], off);
        world.preemptions(1).early_wakes(1)
    });
}

#[test]
fn a_session_remembers_what_was_taken_from_it() {
    needed(Rule::SessionsRemember, "without a word", |off| {
        let world =
            Stage::holding(&[holder(FOR_GOOD), holder(SNAPSHOT).last()], &[rival(WORK)], off);
        with_expiry(world).preemptions(1)
    });
}

#[test]
fn a_loss_is_kept_until_who_knows_is_answered() {
    needed(Rule::LossIsKeptUntilAnswered, "without a word", |off| {
        let holders = [holder(FOR_GOOD), holder(FOR_GOOD), holder(SNAPSHOT).last()];
        let world = Stage::holding(&holders, &[rival(WORK)], off);
        world.time_jumps(1, [LEASE_AND_MARGIN_MS]).early_wakes(0).crashes(1).preemptions(0)
    });
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
    assert!(without(Rule::StakesTellPidsApart, alive), "without the rule it is renewed for ever");
}

/// Every rule that can be switched off is switched off by a test above.
#[test]
fn no_rule_is_left_out() {
    let tests = include_str!("holds.rs");
    for rule in Rule::ALL {
        let off = ["needed", "without"].map(|how| format!("{how}(Rule::{rule:?}"));
        assert!(off.iter().any(|off| tests.contains(off)), "{rule:?} is never switched off");
    }
}
