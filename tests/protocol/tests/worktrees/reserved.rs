//! A name that was reserved and is nobody's: whatever failed and whoever died, it can be
//! had again, and nobody takes the lock of what is not made yet.

use jvs_kit::sim::{Ctx, Explorer, Process, Solo, View, Way};
use jvs_lock::mutation::Rule;
use jvs_lock::worktrees::{self, WorktreeError};
use jvs_lock::{Hold, Locks, State, Want};
use jvs_protocol_tests::necessity::{needed, where_off};
use jvs_protocol_tests::stage::repository;
use jvs_repo::code::{Code, Coded};
use jvs_repo::layout;
use jvs_repo::record::worktree::Isolation;
use jvs_world::sim::{seams_of, ward};
use rustix::io::Errno;

use crate::world::{Task, is_audit, locks_of, name, restore_tree, with_old, world};

type Act = fn(&Solo, &Locks<'_>) -> Result<(), WorktreeError>;

const ACTS: [(&str, Act); 3] = [
    ("create", |_, locks| create(locks, "new")),
    ("restore", |solo, locks| restore_tree(solo.store(), locks, "new", "me")),
    ("rename", |_, locks| worktrees::rename(locks, &name("old"), &name("new"))),
];

fn create(locks: &Locks<'_>, new: &str) -> Result<(), WorktreeError> {
    worktrees::create(locks, &name(new), Isolation::Exclusive).map(drop)
}

fn solo_locks<'s>(solo: &'s Solo, id: &str) -> Locks<'s> {
    ward::locks_of(seams_of(solo), id)
}

fn begin() -> Solo {
    let solo = Solo::new();
    repository(&solo);
    with_old(&solo);
    solo
}

fn calls_of(act: Act) -> usize {
    let solo = begin();
    let calls = solo.call_count();
    act(&solo, &solo_locks(&solo, "me")).expect("nothing fails");
    solo.call_count() - calls
}

/// A world in which call `first` of `act` failed and call `then` went that way, and what
/// was told; `None` if it has not so many calls. Who died was told nothing.
fn after(act: Act, first: usize, then: usize, way: Way) -> Option<(Solo, Option<Code>)> {
    let solo = begin();
    let calls = solo.call_count();
    solo.inject(first, Way::Fails(Errno::IO));
    solo.inject(then, way);
    let told = solo.run(|| act(&solo, &solo_locks(&solo, "me")));
    solo.clear_injected();
    if told.is_some() && solo.call_count() - calls <= then {
        return None;
    }
    Some((solo, told.and_then(Result::err).map(|error| error.code())))
}

/// Every pair of calls of every act.
fn pairs(way: Way, mut judge: impl FnMut(&str, &Solo, Option<Code>) -> Result<(), String>) {
    let (mut cases, mut found) = (0, Vec::new());
    for (what, act) in ACTS {
        for first in 0..calls_of(act) {
            for then in first + 1.. {
                let Some((solo, told)) = after(act, first, then, way) else { break };
                cases += 1;
                if let Err(wrong) = judge(what, &solo, told) {
                    found.push(format!("{what}, {first} fails, {then} {way:?}: {wrong}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} of {cases}:\n{}", found.len(), found.join("\n"));
    assert!(cases > 1_000, "{cases}");
}

#[test]
fn a_name_can_be_had_again_whatever_failed_before_its_maker_died() {
    pairs(Way::DiesFirst, |_, solo, _| {
        ward::doctor(seams_of(solo), solo.store(), "doctor");
        let next = solo_locks(solo, "next");
        for of in ["old", "new"] {
            if !solo.image().exists(&layout::worktree_record(&name(of))) {
                create(&next, of).map_err(|error| format!("{of} cannot be had: {error}"))?;
            }
            let held = next.acquire(&name(of), Want::lease(30_000));
            held.map(drop).map_err(|error| format!("{of}: {error}"))?;
        }
        Ok(())
    });
}

#[test]
fn whoever_is_told_failed_can_have_the_name_at_once() {
    pairs(Way::Fails(Errno::NOSPC), |_, solo, told| match told {
        None | Some(Code::OutcomeUnknown) => Ok(()),
        Some(code) => {
            let next = solo_locks(solo, "next");
            create(&next, "new").map_err(|error| format!("{code:?}, and then: {error}"))
        }
    });
}

#[test]
fn whoever_is_told_failed_has_given_its_reservation_up() {
    let create = ACTS[0].1;
    for n in 0..calls_of(create) {
        let solo = begin();
        solo.fail_call(n, Errno::IO);
        let told = create(&solo, &solo_locks(&solo, "me"));
        if told.is_ok() || told.is_err_and(|error| error.code() == Code::OutcomeUnknown) {
            continue;
        }
        let entries = solo.image().list(&layout::register(&name("new")));
        let is_free =
            |entry: &String| entry.parse::<State>().is_ok_and(|state| state.hold != Hold::Retired);
        assert!(!entries.iter().any(is_free), "{}: {entries:?}", solo.calls()[n]);
    }
}

#[test]
fn what_is_taken_apart_is_its_makers_until_it_has_ended() {
    needed(Rule::WithdrawnUnderItsNote, "was told that it made", |off| {
        let tasks = [Task::Create("new"), Task::Create("new")];
        world(&tasks, off).errors(1, &[jvs_kit::sim::Errno::ACCESS]).preemptions(2)
    });
}

/// One who makes a worktree and one who takes its lock.
fn maker_and_taker(take: fn(&Ctx), off: Option<Rule>) -> Explorer<'static> {
    let body = move |act: fn(&Ctx)| move |ctx: &Ctx| where_off(off, || act(ctx));
    let make = |ctx: &Ctx| match create(&locks_of(ctx), "new") {
        Ok(()) => ctx.claim("has", "new"),
        Err(error) => ctx.claim("failed", error.to_string()),
    };
    Explorer::new()
        .setup(repository)
        .setup(with_old)
        .process(Process::new("maker", body(make)))
        .process(Process::new("taker", body(take)))
        .private(is_audit)
        .forget_private()
        .early_wakes(1)
        .always(what_is_held_is_made)
}

fn what_is_held_is_made(view: &View<'_>) -> Result<(), String> {
    let is_made = view.live().exists(&layout::worktree_record(&name("new")));
    if view.process(1).number("holds").is_some() && !is_made {
        return Err("the lock of a worktree without a record was taken".to_owned());
    }
    match view.process(0).text("failed") {
        Some(error) => Err(format!("whoever makes it was told: {error}")),
        None => Ok(()),
    }
}

fn acquire(ctx: &Ctx) {
    if locks_of(ctx).acquire(&name("new"), Want::lease(30_000)).is_ok() {
        ctx.claim("holds", 1);
    }
}

fn freeze(ctx: &Ctx) {
    if locks_of(ctx).freeze(&name("new"), 30_000, "not now", true).is_ok() {
        ctx.claim("holds", 1);
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]
fn nobody_takes_the_lock_of_a_worktree_that_is_not_made_yet() {
    for take in [acquire, freeze] {
        let report = maker_and_taker(take, None).preemptions(4).run();
        eprintln!("create, take: {report}");
        report.holds();
    }
}

#[test]
fn a_reservation_without_a_record_is_not_taken() {
    for take in [acquire, freeze] {
        needed(Rule::ReservedIsNotTaken, "without a record was taken", |off| {
            maker_and_taker(take, off).preemptions(3)
        });
    }
}
