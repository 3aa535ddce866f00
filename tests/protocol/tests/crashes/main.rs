//! The crash matrix of the simulated world: every command that changes a repository × its
//! every call × {dead before it, dead after it, told that it failed, the power gone after
//! it with each subset of what was not durable}, and whoever comes next finds what was
//! promised, gets the lock and leaves nothing for doctor to find. The commands are the
//! library calls of which they consist; `tests/suite` has the matrix of real processes.
//!
//! A sample of the points is tried; `JVS_LONG=1` tries all.
#![allow(clippy::print_stderr, reason = "how much was tried is worth seeing")]

mod dying;
mod next;
mod rows;
mod standing;

use std::collections::BTreeSet;

use jvs_world::commands::{Effect, of};

use crate::dying::{Point, Tried, every_point_of, these_points_of};
use crate::rows::{Row, locking, snapshots, trees};

fn all_of(rows: &[Row]) {
    let mut all = Tried::default();
    for row in rows {
        let tried = every_point_of(row);
        eprintln!("{}{}: {tried}", row.command, row.with);
        all.add(&tried);
    }
    eprintln!("all of these: {all}");
}

#[test]
fn whatever_call_of_a_lock_command_is_the_last_the_next_command_recovers() {
    all_of(locking::ROWS);
}

#[test]
fn whatever_call_of_a_worktree_command_is_the_last_the_next_command_recovers() {
    all_of(trees::ROWS);
}

#[test]
fn whatever_call_of_a_restore_is_the_last_the_next_command_recovers() {
    all_of(trees::RESTORES);
}

#[test]
fn whatever_call_of_a_snapshot_or_a_run_is_the_last_the_next_command_recovers() {
    all_of(snapshots::ROWS);
}

#[test]
fn whatever_call_of_a_collection_or_a_repair_is_the_last_the_next_command_recovers() {
    all_of(snapshots::CARE);
}

#[test]
fn every_command_that_changes_a_repository_has_a_row_in_the_simulated_matrix() {
    let rows: BTreeSet<&str> = rows::all().map(|row| row.command).collect();
    assert_eq!(rows, of(Effect::Changes).collect(), "rows.rs, against jvs-world's commands.rs");
}

#[test]
fn the_first_worktree_survives_a_power_cut_with_the_directory_that_it_is_in() {
    let told = |point: &Point| matches!(point, Point::PowerCut(None, _));
    these_points_of(&trees::CREATE, told);
    these_points_of(&trees::RESTORE_INTO, told);
}

#[test]
fn what_a_removal_moved_away_has_its_last_name_before_the_record_goes() {
    let cut = |point: &Point| matches!(point, Point::PowerCut(Some(_), _));
    these_points_of(&trees::REMOVE, cut);
}

#[test]
fn a_tag_or_a_setting_that_is_there_was_not_told_to_have_failed() {
    let denied = |point: &Point| matches!(point, Point::Denied(_));
    for row in [snapshots::TAG, snapshots::UNTAG, snapshots::CONFIGURE] {
        these_points_of(&row, denied);
    }
}
