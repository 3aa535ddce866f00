//! Sessions that wait for each other: the real code of `jvs_lock::queue` with two
//! sessions and two worktrees, every interleaving within the budgets that each test
//! names. Each prints how many states it visited.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use std::io;

use jvs_kit::sim::{Ctx, Explorer, Process, Report, Solo, View};
use jvs_lock::hold::Ties;
use jvs_lock::mutation::Rule;
use jvs_lock::queue::{Queue, SleepOnly};
use jvs_lock::{Locks, TurnError, Want, worktrees};
use jvs_protocol_tests::necessity::{needed, where_off};
use jvs_protocol_tests::{actor, stage};
use jvs_repo::code::Coded;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::record::worktree::Isolation;
use jvs_world::session::locks_with_log;
use jvs_world::sim::seams;

const HOUR: Want<'static> = Want::lease(3_600_000);
/// Long enough for both looks.
const WAIT_MS: u64 = 3_000;

#[track_caller]
fn all_of(what: &str, world: Explorer<'_>) -> Report {
    let report = world.run();
    eprintln!("{what}: {report}");
    report.holds()
}

fn name(name: &str) -> WorktreeName {
    name.parse().expect("a name")
}

fn all_are_there(_pid: u32) -> Option<ProcessStat> {
    Some(ProcessStat { start_ticks: 1, session_leader: 1, zombie: false })
}

struct Keeps(&'static str);

impl Ties for Keeps {
    fn now(&self) -> io::Result<Vec<WorktreeName>> {
        Ok(vec![name(self.0)])
    }
}

fn of_solo<'s>(solo: &'s Solo, id: &str) -> Locks<'s> {
    actor::alone(solo, id, 98)
}

fn of_ctx<'c>(ctx: &'c Ctx, id: &str) -> Locks<'c> {
    let pid = u32::try_from(ctx.index()).expect("few processes");
    let session = actor::session(id, pid, ctx.clock());
    locks_with_log(seams(ctx), session, 1 + ctx.index() as u64)
}

/// Worktrees a and b, and who holds them.
fn held_by(a: &'static str, b: &'static str) -> impl Fn(&Solo) {
    move |solo| {
        stage::repository(solo);
        for (worktree, holder) in [("a", a), ("b", b)] {
            let maker = of_solo(solo, "maker");
            worktrees::create(&maker, &name(worktree), Isolation::Exclusive).expect("made");
            let lease = of_solo(solo, holder).acquire(&name(worktree), HOUR).expect("free");
            assert_eq!(lease.token().0, 1);
        }
    }
}

/// A process of `id`, in a world where `off` does not hold.
fn process(id: &'static str, off: Option<Rule>, act: fn(&Ctx, &'static str)) -> Process {
    let body = move |ctx: &Ctx| {
        ctx.claim("session", id);
        where_off(off, || act(ctx, id));
    };
    Process::new(id, body).on_host(0)
}

/// Waits for `worktree` while the session keeps `kept`; gives that back when told to.
fn wait(ctx: &Ctx, id: &'static str, worktree: &str, kept: &'static str) {
    let locks = of_ctx(ctx, id);
    let mut sleeper = SleepOnly(ctx.clock());
    let ties = Keeps(kept);
    match locks.wait(&name(worktree), HOUR, WAIT_MS, &all_are_there, &mut sleeper, &ties) {
        Ok(_) => ctx.claim("told", "got"),
        Err(error @ TurnError::Deadlock { .. }) => {
            ctx.say(error.to_string());
            ctx.claim("told", "deadlock");
            if let Ok(lease) = locks.resume(&name(kept), None) {
                let _ = lease.release();
            }
        }
        Err(error) => ctx.claim("told", error.code().as_str()),
    }
}

fn told(view: &View<'_>, what: &str) -> usize {
    view.processes().filter(|process| process.text("told") == Some(what)).count()
}

fn is_advisory(path: &jvs_repo::store::RepoPath) -> bool {
    let audit = path.as_str().starts_with(layout::audit().as_str());
    let tmp = |worktree| layout::lock_tmp(&name(worktree), "");
    audit
        || ["a", "b"].iter().any(|worktree| {
            *path == layout::lock_record(&name(worktree))
                || *path == layout::legacy_lock(&name(worktree))
                || path.as_str().starts_with(tmp(worktree).as_str())
        })
}

/// Each has what the other waits for.
fn circle(off: Option<Rule>) -> Explorer<'static> {
    Explorer::new()
        .setup(held_by("one", "two"))
        .process(process("one", off, |ctx, id| wait(ctx, id, "b", "a")))
        .process(process("two", off, |ctx, id| wait(ctx, id, "a", "b")))
        .private(is_advisory)
        .forget_private()
        .always(|view| match told(view, "deadlock") {
            0 | 1 => Ok(()),
            _ => Err("both gave up".into()),
        })
}

#[test]
fn of_two_who_wait_for_each_other_one_is_told_and_the_other_gets_it() {
    let world = || {
        circle(None).at_end(|view| match (told(view, "deadlock"), told(view, "got")) {
            (1, 1) => Ok(()),
            other => Err(format!("gave up and got: {other:?}")),
        })
    };
    all_of("two who wait for each other", world().preemptions(3).early_wakes(1));
    let listed = world().preemptions(1).early_wakes(1).torn_listings(1);
    all_of("the same, and a listing that is torn", listed);
}

#[test]
fn when_one_dies_while_it_waits_at_most_one_gives_up() {
    // Whoever is told lets go, whoever dies lets its ticket fall silent.
    let world = circle(None).preemptions(1).early_wakes(1).crashes(1);
    all_of("two who wait for each other, a crash", world);
}

#[test]
fn the_newest_gives_up_and_nobody_else() {
    needed(Rule::NewestGivesUp, "both gave up", |off| circle(off).preemptions(3).early_wakes(1));
}

/// Two waits for a and leaves; only then it gets b, from a third. At no moment does it
/// hold b and wait for a.
fn no_circle(off: Option<Rule>) -> Explorer<'static> {
    let leave_and_get = |ctx: &Ctx, id: &'static str| {
        let two = of_ctx(ctx, id);
        let queue = Queue::new(two.seams(), &name("a"));
        if let Ok(place) = queue.join(two.session(), 1_000) {
            drop(place);
        }
        let third = of_ctx(ctx, "third");
        if let Ok(lease) = third.resume(&name("b"), None)
            && lease.release().is_ok()
        {
            let _ = two.acquire(&name("b"), HOUR);
        }
    };
    Explorer::new()
        .setup(held_by("one", "third"))
        .process(process("two", off, leave_and_get))
        .process(process("one", off, |ctx, id| wait(ctx, id, "b", "a")))
        .private(is_advisory)
        .forget_private()
        .preemptions(3)
        .early_wakes(1)
        .always(|view| match told(view, "deadlock") {
            0 => Ok(()),
            _ => Err("gave up without a circle".into()),
        })
}

#[test]
fn nobody_gives_up_without_a_circle() {
    needed(Rule::CirclesAreSeenTwice, "gave up without a circle", no_circle);
}
