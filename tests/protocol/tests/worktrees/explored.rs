use jvs_kit::sim::Explorer;

use crate::world::{Task, world};

fn holds(what: &str, world: Explorer<'_>) {
    let report = world.run();
    #[allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]
    {
        eprintln!("{what}: {report}");
    }
    report.holds();
}

#[test]
fn two_who_make_one_worktree_at_once() {
    let tasks = [Task::Create("new"), Task::Create("new")];
    holds("create, create", world(&tasks, None));
}

#[test]
fn one_who_makes_a_worktree_and_one_who_renames_another_to_it() {
    let tasks = [Task::Create("new"), Task::Rename("old", "new")];
    holds("create, rename", world(&tasks, None).preemptions(3));
}

#[test]
fn two_who_rename_one_worktree_at_once() {
    let tasks = [Task::Rename("old", "x"), Task::Rename("old", "y")];
    holds("rename, rename", world(&tasks, None).preemptions(3));
}

#[test]
fn two_who_restore_into_one_worktree_at_once() {
    let tasks = [Task::Restore("new"), Task::Restore("new")];
    holds("restore, restore", world(&tasks, None).preemptions(3));
}

#[test]
fn one_who_removes_a_worktree_and_one_who_publishes_to_it() {
    let tasks = [Task::Remove("old"), Task::Publish("old")];
    holds("remove, publish", world(&tasks, None).preemptions(3));
}
