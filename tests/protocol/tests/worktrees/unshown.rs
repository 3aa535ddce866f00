//! A publisher that dies at any of its calls, and then its worktree goes: what it
//! committed is a snapshot for ever, whether or not anybody saw it before.

use jvs_doctor::mutation::Rule as Repair;
use jvs_kit::sim::{Errno, Solo, Way};
use jvs_lock::mutation::Rule;
use jvs_lock::{Hold, Locks, State, Want, worktrees};
use jvs_protocol_tests::stage::repository;
use jvs_repo::config::Retention;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::mutation::Switch;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::RepoPath;
use jvs_snapshot::{Catalog, Snapshots, gc};
use jvs_world::sim::{LEASE_MS, LONG_MS, SimTrees, seams_of, snapshot, ward};

use crate::world::{name, with_old};

/// How a worktree's name comes to another life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Going {
    Removed,
    Renamed,
    /// By a version that knew nothing of heads that nobody has seen.
    RemovedLongAgo,
}

const GOINGS: [Going; 3] = [Going::Removed, Going::Renamed, Going::RemovedLongAgo];

fn publish(solo: &Solo) {
    let locks = ward::locks_of(seams_of(solo), "dead");
    let mut lease = locks.acquire(&name("old"), Want::lease(LEASE_MS)).expect("free");
    drop(snapshot(solo, &mut lease, "precious"));
}

fn state_of(solo: &Solo, of: &str) -> State {
    ward::locks_of(seams_of(solo), "reader").inspect(&name(of)).expect("readable").state
}

/// A world whose publisher died before its `n`th call, and the head that it left;
/// `None` if it has not so many.
fn dead_at(n: usize) -> Option<(Solo, Option<SnapshotId>)> {
    let solo = Solo::new();
    repository(&solo);
    with_old(&solo);
    solo.inject(n, Way::DiesFirst);
    let ended = solo.run(|| publish(&solo)).is_some();
    solo.clear_injected();
    solo.pass_ms(LONG_MS);
    let head = state_of(&solo, "old").head;
    (!ended).then_some((solo, head))
}

/// The world whose publisher died before its `n`th call, if it had committed by then
/// what nobody has seen.
fn unshown_at(n: usize) -> Option<(Solo, SnapshotId)> {
    let (solo, head) = dead_at(n)?;
    Some((solo, head?)).filter(|(solo, head)| !is_shown(solo, *head))
}

/// All calls before which a death leaves such a world.
fn deaths() -> Vec<usize> {
    let all = (0..).take_while(|n| dead_at(*n).is_some());
    all.filter(|n| unshown_at(*n).is_some()).collect()
}

fn unshown() -> Vec<(Solo, SnapshotId)> {
    deaths().into_iter().filter_map(unshown_at).collect()
}

fn ready(id: SnapshotId) -> RepoPath {
    layout::ready(&layout::snapshot(id))
}

/// Visible, and nothing of the draft is left.
fn is_shown(solo: &Solo, id: SnapshotId) -> bool {
    let draft = layout::ready_staged(&layout::snapshot(id));
    let whole = Catalog::new(solo.store()).open(id).is_ok();
    whole && solo.image().exists(&ready(id)) && !solo.image().exists(&draft)
}

fn goes(solo: &Solo, going: Going) {
    let locks = ward::locks_of(seams_of(solo), "next");
    let old = name("old");
    match going {
        Going::Removed => drop(worktrees::remove(&locks, &old, true).expect("removed")),
        Going::Renamed => worktrees::rename(&locks, &old, &name("new")).expect("renamed"),
        Going::RemovedLongAgo => {
            let remove = |locks: &Locks<'_>| drop(worktrees::remove(locks, &old, true));
            without(Rule::ShownBeforeRetired, || remove(&locks));
            assert_eq!(state_of(solo, "old").hold, Hold::Retired);
        }
    }
}

fn without<R: Switch>(rule: R, mut act: impl FnMut()) {
    rule.switched_off(&mut act);
}

fn collect(solo: &Solo) {
    let trees = SimTrees(solo.store());
    let at = Snapshots::new(seams_of(solo), &trees);
    let plan = gc::plan(&at, Retention::default()).expect("planned");
    let locks = ward::locks_of(seams_of(solo), "collector");
    gc::run(&at, &locks, &plan, &mut |_, _| {}).expect("collected");
}

/// The name is used again, and whoever may remove something has a look.
fn used_again(solo: &Solo) {
    let locks = ward::locks_of(seams_of(solo), "next");
    worktrees::create(&locks, &name("old"), Isolation::Exclusive).expect("made");
    collect(solo);
    drop(ward::doctor(seams_of(solo), solo.store(), "doctor"));
}

#[test]
fn what_is_committed_outlives_its_worktree_wherever_its_publisher_died() {
    for going in GOINGS {
        let worlds = unshown();
        assert!(worlds.len() > 3, "{}", worlds.len());
        for (solo, head) in worlds {
            goes(&solo, going);
            let now = is_shown(&solo, head);
            assert_eq!(now, going != Going::RemovedLongAgo, "{going:?}: {head}");
            used_again(&solo);
            assert!(is_shown(&solo, head), "{going:?}: {head} is lost");
        }
    }
}

/// Whoever retires and whoever comes next die as well.
#[test]
fn what_is_committed_outlives_the_deaths_of_those_who_use_its_name() {
    let first = deaths()[0];
    for next in [Going::Removed, Going::Renamed] {
        for n in 0.. {
            let (solo, head) = unshown_at(first).expect("committed");
            solo.inject(n, Way::DiesFirst);
            let all = || {
                goes(&solo, next);
                used_again(&solo);
            };
            let ended = solo.run(all).is_some();
            solo.clear_injected();
            solo.pass_ms(LONG_MS);
            collect(&solo);
            drop(ward::doctor(seams_of(&solo), solo.store(), "doctor"));
            collect(&solo);
            assert!(is_shown(&solo, head), "{next:?} {n}: {head} is lost");
            if ended {
                assert!(n > 50, "{n}");
                break;
            }
        }
    }
}

#[test]
fn without_the_next_life_showing_the_head_it_is_lost() {
    let (solo, head) = unshown().swap_remove(0);
    goes(&solo, Going::RemovedLongAgo);
    without(Rule::ShownBeforeNextLife, || used_again(&solo));
    assert!(!solo.image().exists(&layout::snapshot(head)), "the rule is not needed");
}

/// Nothing is changed if the head cannot be shown.
#[test]
fn a_worktree_whose_head_cannot_be_shown_stays() {
    let first = deaths()[0];
    for going in [Going::Removed, Going::Renamed] {
        let mut refused = 0;
        for n in 0.. {
            let (solo, head) = unshown_at(first).expect("committed");
            let before = state_of(&solo, "old");
            let locks = ward::locks_of(seams_of(&solo), "next");
            // Each call but the first `n`: the mount has stopped to answer.
            (n..n + 40).for_each(|call| solo.inject(call, Way::Fails(Errno::IO)));
            let ended = match going {
                Going::Renamed => worktrees::rename(&locks, &name("old"), &name("new")),
                _ => worktrees::remove(&locks, &name("old"), true).map(drop),
            };
            solo.clear_injected();
            match state_of(&solo, "old") {
                state if state == before => refused += usize::from(ended.is_err()),
                state => assert!(is_shown(&solo, head), "{going:?} {n}: {state}"),
            }
            if ended.is_ok() {
                break;
            }
        }
        assert!(refused > 5, "{refused}");
    }
}

/// What older versions left is made visible with the draft of READY that is there.
#[test]
fn doctor_shows_what_a_removed_worktree_left_unseen() {
    for (solo, head) in unshown() {
        goes(&solo, Going::RemovedLongAgo);
        let healed = ward::doctor(seams_of(&solo), solo.store(), "doctor");
        assert!(is_shown(&solo, head), "{:?}", ward::told(&healed));
    }
    let (solo, head) = unshown().swap_remove(0);
    goes(&solo, Going::RemovedLongAgo);
    let repair = || drop(ward::doctor(seams_of(&solo), solo.store(), "doctor"));
    without(Repair::DraftOfReadyIsUsed, repair);
    assert!(solo.image().exists(&ready(head)) && !is_shown(&solo, head), "the rule is not needed");
}
