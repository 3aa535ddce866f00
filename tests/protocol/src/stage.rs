//! The worlds that actors meet in.

use jvs_kit::sim::{Explorer, PowerCuts, Solo};
use jvs_lock::mutation::Rule;
use jvs_lock::{Locks, Seams, worktrees};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::config::LockPolicy;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{RepoPath, Store};

use crate::actor::{self, Actor};
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
    let store = solo.store();
    store.make_dir(&layout::control_dir()).expect("an empty world");
    for part in layout::skeleton() {
        store.make_dir(&part).expect("an empty world");
    }
    let seams = Seams { store, clock: solo.clock(), entropy: solo.entropy() };
    let log = Log::new(store, &Alone, WriterId::derive(b"maker", 0));
    let maker = actor::session("maker", 99, solo.clock());
    let locks = Locks::new(seams, maker, LockPolicy::default(), log);
    worktrees::create(&locks, &WorktreeName::main(), Isolation::Exclusive).expect("main is made");
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
