use jvs_kit::sim::{Errno, Explorer, PowerCuts};

use crate::world::{Task, heals, world};

#[allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]
fn holds(what: &str, world: Explorer<'_>) {
    let report = world.run();
    eprintln!("{what}: {report}");
    report.holds();
}

fn is_long() -> bool {
    std::env::var_os("JVS_LONG").is_some()
}

/// Undisturbed, with a death, with an answer that was lost, with one that was lost
/// and a rename that lands late, each with so many preemptions.
fn holds_whatever_happens(what: &str, tasks: &[Task]) {
    holds(what, world(tasks, None).preemptions(4));
    holds(
        &format!("{what}, and one dies"),
        world(tasks, None).preemptions(2).crashes(1).at_end(heals),
    );
    holds(
        &format!("{what}, and an answer is lost"),
        world(tasks, None).preemptions(2).ambiguous_renames(1),
    );
    holds(
        &format!("{what}, and a rename lands late"),
        world(tasks, None).preemptions(1).late_renames(1),
    );
    holds(
        &format!("{what}, and a make or a removal is denied though it was done"),
        world(tasks, None).preemptions(1).ambiguous_makes(1).ambiguous_removals(1),
    );
}

#[test]
fn two_who_make_one_worktree_at_once() {
    let tasks = [Task::Create("new"), Task::Create("new")];
    holds("create, create, as they like", world(&tasks, None));
    holds_whatever_happens("create, create", &tasks);
}

#[test]
fn whoever_fails_to_make_a_worktree_clears_up_before_it_gives_the_name_up() {
    let tasks = [Task::Create("new"), Task::Create("new")];
    let world = world(&tasks, None).errors(1, &[Errno::ACCESS]).preemptions(2);
    holds("create, create, and a call fails", world);
}

#[test]
fn one_who_makes_a_worktree_and_one_who_renames_another_to_it() {
    holds_whatever_happens("create, rename", &[Task::Create("new"), Task::Rename("old", "new")]);
}

#[test]
fn two_who_rename_one_worktree_at_once() {
    holds_whatever_happens("rename, rename", &[Task::Rename("old", "x"), Task::Rename("old", "y")]);
}

#[test]
fn two_who_restore_into_one_worktree_at_once() {
    holds_whatever_happens("restore, restore", &[Task::Restore("new"), Task::Restore("new")]);
}

#[test]
fn one_who_restores_into_a_worktree_and_one_who_makes_it() {
    holds_whatever_happens("restore, create", &[Task::Restore("new"), Task::Create("new")]);
}

#[test]
fn one_who_removes_a_worktree_and_one_who_publishes_to_it() {
    holds_whatever_happens("remove, publish", &[Task::Remove("old"), Task::Publish("old")]);
}

#[test]
fn three_who_want_one_name() {
    let tasks = [Task::Create("new"), Task::Rename("old", "new"), Task::Restore("new")];
    let world = world(&tasks, None).early_wakes(0);
    holds("create, rename, restore", world.preemptions(if is_long() { 4 } else { 3 }));
}

#[test]
fn two_who_rename_a_worktree_and_one_who_makes_what_they_rename_it_to() {
    let tasks = [Task::Rename("old", "x"), Task::Create("x"), Task::Rename("old", "y")];
    let world = world(&tasks, None).early_wakes(0);
    holds("rename, create, rename", world.preemptions(if is_long() { 4 } else { 3 }));
}

#[test]
fn what_was_told_survives_a_power_cut() {
    for task in [Task::Create("new"), Task::Restore("new"), Task::Rename("old", "new")] {
        let world = world(&[task], None).power_cuts(1, PowerCuts::EveryPrefix).at_end(heals);
        holds(&format!("{task:?}, and the power goes"), world);
    }
    let world = world(&[Task::Remove("old")], None).power_cuts(1, PowerCuts::EveryPrefix);
    holds("remove, and the power goes", world.at_end(heals));
}
