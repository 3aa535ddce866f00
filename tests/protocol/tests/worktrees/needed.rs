//! Each rule of worktrees, switched off: the exploration must then find what the
//! rule prevents.

use jvs_kit::sim::PowerCuts;
use jvs_lock::mutation::Rule;
use jvs_protocol_tests::necessity::needed;

use crate::world::{Task, world};

#[test]
fn a_register_is_born_by_renaming_a_ready_directory() {
    needed(Rule::BornByRename, "entries", |off| {
        world(&[Task::Create("new"), Task::Create("new")], off).preemptions(3)
    });
}

#[test]
fn a_name_is_confirmed_before_anything_else_of_it_is_touched() {
    needed(Rule::ConfirmedBeforeTouched, "was told that it made", |off| {
        world(&[Task::Rename("old", "new"), Task::Create("new")], off).preemptions(3)
    });
}

#[test]
fn whoever_loses_a_name_removes_nothing_of_whoever_has_it() {
    needed(Rule::LoserRemovesNothing, "was told that it made", |off| {
        world(&[Task::Create("new"), Task::Create("new")], off).preemptions(3)
    });
}

#[test]
fn a_rename_reserves_its_target_before_it_retires_its_source() {
    needed(Rule::TargetReservedFirst, "nobody was told old is gone", |off| {
        world(&[Task::Rename("old", "new"), Task::Create("new")], off).preemptions(3)
    });
}

#[test]
fn a_retirement_is_done_only_if_it_is_ones_own() {
    needed(Rule::RetiredByItself, "is left", |off| {
        world(&[Task::Rename("old", "x"), Task::Rename("old", "y")], off).preemptions(3)
    });
}

#[test]
fn a_rename_that_fails_gives_its_source_a_new_life() {
    needed(Rule::RenameTakenBack, "nobody was told old is gone", |off| {
        world(&[Task::Rename("old", "new"), Task::Create("new")], off).preemptions(3)
    });
}

#[test]
fn what_was_made_is_durable_before_anyone_is_told() {
    needed(Rule::MadeDurably, "has no record", |off| {
        world(&[Task::Create("new")], off).power_cuts(1, PowerCuts::EveryPrefix)
    });
}
