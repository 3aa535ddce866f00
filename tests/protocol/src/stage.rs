//! The worlds that actors meet in.

use jvs_kit::sim::{Explorer, PowerCuts, Solo};
use jvs_lock::hold;
use jvs_lock::mutation::Rule;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::RepoPath;
use jvs_world::repository::repository as make_repository;

use crate::actor::{self, Actor};
use crate::holder::{self, Holder};
use crate::invariant;

/// A repository with worktree `main`, and the actors that meet in it.
pub struct Stage;

impl Stage {
    /// A world in which nothing goes wrong yet, with every invariant in force.
    /// `off` is the rule that does not hold in it, if any.
    pub fn fine(actors: &[Actor], off: Option<Rule>) -> Explorer<'static> {
        Stage::world(actors, off)
            .private(|path| is_audit(path) || is_of_other_tools(path))
            .forget_private()
    }

    /// As [`Stage::fine`], but nobody comes between two calls on the lock record.
    /// No decision rests on the record, so little is lost, and far more faults
    /// at once can be explored.
    pub fn coarse(actors: &[Actor], off: Option<Rule>) -> Explorer<'static> {
        Stage::world(actors, off).private(|path| is_audit(path) || is_record(path))
    }

    /// As [`Stage::coarse`], with holders that may be overruled by policy while they
    /// believe: commits are fenced all the same.
    pub fn with_policy(actors: &[Actor], off: Option<Rule>) -> Explorer<'static> {
        Explorer::new()
            .setup(repository)
            .processes(actors.iter().map(|actor| actor.process(off)))
            .private(|path| is_audit(path) || is_record(path))
            .each_step(invariant::register_moves_by_the_rules)
            .each_step(invariant::commits_are_fenced)
            .always(invariant::everybody_was_told_the_truth)
    }

    /// Processes of session `a` that share a hold, and its rivals. Nobody comes
    /// between two calls on the lock record.
    fn of_one_session(
        holders: &[Holder],
        rivals: &[Actor],
        off: Option<hold::rule::HoldRule>,
    ) -> Explorer<'static> {
        let processes = holders.iter().map(|holder| holder.process(off));
        Explorer::new()
            .setup(|solo| {
                repository(solo);
                holder::prepare(solo, "a");
            })
            .processes(processes.chain(rivals.iter().map(|rival| rival.process(None))))
            .private(|path| is_audit(path) || is_record(path))
            .forget_private()
            .each_step(invariant::register_moves_by_the_rules)
            .each_step(invariant::commits_are_fenced)
    }

    /// Processes of one session, whose rivals take only what they may take.
    pub fn holding(
        holders: &[Holder],
        rivals: &[Actor],
        off: Option<hold::rule::HoldRule>,
    ) -> Explorer<'static> {
        Self::of_one_session(holders, rivals, off)
            .each_step(invariant::told_is_true_when_it_is_told)
            .always(invariant::belief_is_true)
            .always(invariant::a_run_has_its_hold_to_itself)
            .always(invariant::nobody_is_sent_away_for_ever)
            .always(invariant::nothing_is_published_over_a_successor)
    }

    /// As [`Stage::holding`], with rivals that may overrule by policy whoever believes.
    pub fn overruled(
        holders: &[Holder],
        rivals: &[Actor],
        off: Option<hold::rule::HoldRule>,
    ) -> Explorer<'static> {
        Self::of_one_session(holders, rivals, off)
            .each_step(invariant::told_is_true_unless_overruled)
            .always(invariant::belief_is_true_unless_overruled)
            .always(invariant::a_run_has_its_hold_to_itself)
            .always(invariant::nobody_is_sent_away_for_ever)
            .always(invariant::nothing_is_published_over_a_successor)
    }

    /// Runs of session `a`, which has an open hold, asked about nothing but whether they
    /// run at once.
    pub fn runs(holders: &[Holder], off: Option<hold::rule::HoldRule>) -> Explorer<'static> {
        Explorer::new()
            .setup(|solo| {
                repository(solo);
                holder::prepare(solo, "a");
                holder::left_open(solo, "a");
            })
            .processes(holders.iter().map(|holder| holder.process(off)))
            .private(|path| is_audit(path) || is_record(path))
            .forget_private()
            .always(invariant::a_run_has_its_hold_to_itself)
    }

    /// Processes of session `a`, which was taken over and does not know yet.
    pub fn after_a_takeover(
        holders: &[Holder],
        off: Option<hold::rule::HoldRule>,
    ) -> Explorer<'static> {
        Explorer::new()
            .setup(|solo| {
                repository(solo);
                holder::prepare(solo, "a");
                holder::taken_over(solo, "a", "b");
            })
            .processes(holders.iter().map(|holder| holder.process(off)))
            .private(|path| is_audit(path) || is_record(path))
            .forget_private()
            .each_step(invariant::register_moves_by_the_rules)
            .each_step(invariant::told_is_true_when_it_is_told)
            .always(invariant::belief_is_true)
            .always(invariant::nobody_is_sent_away_for_ever)
            .always(invariant::nobody_publishes_before_somebody_knows)
    }

    /// A world whose power may go: what was not synced may be gone, so the
    /// register may go back, and only what somebody was told binds.
    pub fn with_power_cut(actors: &[Actor], off: Option<Rule>) -> Explorer<'static> {
        Explorer::new()
            .setup(repository)
            .processes(actors.iter().map(|actor| actor.process(off)))
            .power_cuts(1, PowerCuts::EveryPrefix)
            .always(invariant::no_token_is_granted_twice)
            .always(invariant::what_was_told_survives)
    }

    fn world(actors: &[Actor], off: Option<Rule>) -> Explorer<'static> {
        Explorer::new()
            .setup(repository)
            .processes(actors.iter().map(|actor| actor.process(off)))
            .each_step(invariant::register_moves_by_the_rules)
            .each_step(invariant::commits_are_fenced)
            .each_step(invariant::freezes_stand)
            .always(invariant::belief_is_true)
            .always(invariant::everybody_was_told_the_truth)
    }
}

/// Puts a fresh repository there.
pub fn repository(solo: &Solo) {
    make_repository(&actor::alone(solo, "maker", 99), Isolation::Exclusive);
}

/// Nobody writes it in these worlds.
fn is_of_other_tools(path: &RepoPath) -> bool {
    *path == layout::legacy_lock(&WorktreeName::main())
}

/// Each process writes its own audit log, and nobody reads it in these worlds.
fn is_audit(path: &RepoPath) -> bool {
    path.as_str().starts_with(layout::audit().as_str())
}

/// The lock record, what is about to become one, and where other tools' would be.
fn is_record(path: &RepoPath) -> bool {
    let record = layout::lock_record(&WorktreeName::main());
    let tmp = layout::lock_tmp(&WorktreeName::main(), "");
    *path == record || is_of_other_tools(path) || path.as_str().starts_with(tmp.as_str())
}
