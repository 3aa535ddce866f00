//! A command that dies at any of its calls, alone: the next command has the name at
//! once, or doctor brings back what was begun.

use jvs_kit::sim::{Solo, Way};
use jvs_lock::{Locks, worktrees};
use jvs_protocol_tests::stage::repository;
use jvs_repo::record::worktree::Isolation;
use jvs_world::sim::{seams_of, ward};

use crate::world::{name, with_old};

fn locks_of<'s>(solo: &'s Solo, id: &str) -> Locks<'s> {
    ward::locks_of(seams_of(solo), id)
}

/// A world in which `act` died before its `n`th call; `None` if it has not so many.
fn dead_at(n: usize, act: impl Fn(&Locks<'_>)) -> Option<Solo> {
    let solo = Solo::new();
    repository(&solo);
    with_old(&solo);
    solo.inject(n, Way::DiesFirst);
    let ended = solo.run(|| act(&locks_of(&solo, "dead"))).is_some();
    solo.clear_injected();
    (!ended).then_some(solo)
}

#[test]
fn an_interrupted_making_keeps_nobody_from_the_name() {
    let create = |locks: &Locks<'_>| {
        let _ = worktrees::create(locks, &name("new"), Isolation::Exclusive);
    };
    let (mut deaths, mut ended) = (0, 0);
    while let Some(solo) = dead_at(deaths, create) {
        deaths += 1;
        let next = locks_of(&solo, "next");
        if worktrees::create(&next, &name("new"), Isolation::Exclusive).is_err() {
            // It was confirmed: it is ended, not taken over.
            worktrees::unfinished::end(&next, &name("new")).expect("ended");
            ended += 1;
        }
        assert!(next.acquire(&name("new"), jvs_lock::Want::lease(30_000)).is_ok(), "{deaths}");
    }
    assert!(deaths > 20 && ended < deaths, "{ended} of {deaths}");
}

#[test]
fn an_interrupted_rename_is_finished_by_the_same_command() {
    let rename = |locks: &Locks<'_>| {
        let _ = worktrees::rename(locks, &name("old"), &name("new"));
    };
    let mut deaths = 0;
    while let Some(solo) = dead_at(deaths, rename) {
        deaths += 1;
        let next = locks_of(&solo, "next");
        let again = worktrees::rename(&next, &name("old"), &name("new"));
        let gone = again
            .as_ref()
            .is_err_and(|error| matches!(error, worktrees::WorktreeError::NotFound { .. }));
        assert!(again.is_ok() || gone, "{deaths}: {again:?}");
        assert!(next.acquire(&name("new"), jvs_lock::Want::lease(30_000)).is_ok(), "{deaths}");
        assert!(solo.image().exists(&crate::world::kept("new")), "{deaths}");
    }
    assert!(deaths > 30, "{deaths}");
}
