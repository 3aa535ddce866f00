//! Each rule of a restore in place that goes path by path, switched off: the exploration
//! must then find what the rule prevents. The worlds are those in which `jvs-snapshot` is
//! tested without the switches. Each test prints the states it visited and the way it
//! found.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_kit::sim::{Explorer, PowerCuts};
use jvs_protocol_tests::necessity::{needed, process};
use jvs_snapshot::mutation::Rule;
use jvs_world::sim::restoring::{nobody_sees_a_mixture, onlooker, restorer, successor, world};

fn a_restore_and_a_successor(off: Option<Rule>) -> Explorer<'static> {
    let (world, two) = world();
    world
        .process(process("restorer", off, move |ctx| restorer(ctx, two)))
        .process(process("successor", off, successor))
        .at_end(nobody_sees_a_mixture)
}

#[test]
fn what_is_to_be_done_is_on_disk_before_a_restore_is_committed() {
    needed(Rule::JournalIsDurable, "/journal", |off| {
        let (world, two) = world();
        world
            .process(process("restorer", off, move |ctx| restorer(ctx, two)))
            .time_jumps(0, [])
            .power_cuts(1, PowerCuts::EveryPrefix)
            .at_end(nobody_sees_a_mixture)
    });
}

#[test]
fn what_was_not_committed_is_taken_away_by_the_next_holder() {
    needed(Rule::UncommittedTakenAway, "the next holder", |off| {
        a_restore_and_a_successor(off).preemptions(2)
    });
}

#[test]
fn the_next_holder_finishes_what_was_begun_before_it_uses_the_files() {
    needed(Rule::FinishedBeforeUse, "the next holder saw", |off| {
        a_restore_and_a_successor(off).preemptions(1)
    });
}

#[test]
fn the_commit_of_a_restore_is_durable_before_somebody_else_finishes_it() {
    needed(Rule::CommitDurableBeforeFinished, "after the next command", |off| {
        let (world, two) = world();
        world
            .process(process("restorer", off, move |ctx| restorer(ctx, two)))
            .process(process("onlooker", off, |ctx| onlooker(ctx, "onlooker").map(drop)))
            .preemptions(1)
            .power_cuts(1, PowerCuts::Extremes)
            .at_end(nobody_sees_a_mixture)
    });
}

#[test]
fn a_process_that_finishes_a_restore_works_from_names_of_its_own() {
    needed(Rule::ClaimedFirst, "the next holder saw", |off| {
        let (world, two) = world();
        world
            .process(process("restorer", off, move |ctx| restorer(ctx, two)))
            .process(process("onlooker", off, |ctx| onlooker(ctx, "onlooker").map(drop)))
            .preemptions(2)
            .at_end(nobody_sees_a_mixture)
    });
}
