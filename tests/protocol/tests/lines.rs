//! A line of waiters: the real code of `jvs_lock::queue` with a sleeper that rings, rings in
//! vain or does not ring at all, and with neighbours that die. Each prints how many states
//! it visited.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_kit::sim::{Ctx, Explorer, Process, Report, Solo, View};
use jvs_lock::hold::NoTies;
use jvs_lock::queue::{Queue, SILENT_AFTER_MS, Sleeper, WatchBegun, Woken};
use jvs_lock::{Locks, Want};
use jvs_protocol_tests::{actor, invariant, stage};
use jvs_repo::clock::Clock as _;
use jvs_repo::code::Coded as _;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::store::RepoPath;
use jvs_world::session::locks_with_log;
use jvs_world::sim::{seams, seams_of};

/// Over soon, should its holder die.
const LEASE: Want<'static> = Want::lease(1_000);
/// Longer than any neighbour's silence and any lease, one after the other.
const WAIT_MS: u64 = 120_000;
/// The pid of one who died before all others came.
const DEAD: u32 = 97;

#[track_caller]
fn all_of(what: &str, world: Explorer<'_>) -> Report {
    let report = world.run();
    eprintln!("{what}: {report}");
    report.holds()
}

fn main_worktree() -> WorktreeName {
    WorktreeName::main()
}

/// Rings when the world wakes it early, and is lost otherwise.
struct Ringing<'c>(&'c Ctx);

impl Sleeper for Ringing<'_> {
    fn watch(&mut self, _what: &RepoPath) -> WatchBegun {
        WatchBegun::Yes
    }

    fn sleep(&mut self, ms: u64) -> Woken {
        let until = self.0.clock().now().boot.plus(ms);
        self.0.clock().sleep_ms(ms);
        if self.0.clock().now().boot < until { Woken::Change } else { Woken::Time }
    }
}

fn of_ctx<'c>(ctx: &'c Ctx, id: &str) -> Locks<'c> {
    let pid = u32::try_from(ctx.index()).expect("few processes");
    let session = actor::session(id, pid, ctx.clock());
    locks_with_log(seams(ctx), session, 1 + ctx.index() as u64)
}

/// The lock is held by `holder`, which may die with it.
fn held(solo: &Solo) {
    stage::repository(solo);
    let lease = actor::alone(solo, "holder", 98).acquire(&main_worktree(), LEASE).expect("free");
    assert_eq!(lease.token().0, 1);
}

/// The same, with a ticket in line of one who was killed there.
fn held_and_waited_for_by_the_dead(solo: &Solo) {
    held(solo);
    let dead = actor::session("dead", DEAD, solo.clock());
    let queue = Queue::new(seams_of(solo), &main_worktree());
    std::mem::forget(queue.join(&dead, 1_000).expect("joined"));
}

/// Gives back what the session took before.
fn holder() -> Process {
    Process::new("holder", |ctx| {
        let locks = of_ctx(ctx, "holder");
        if let Ok(lease) = locks.resume(&main_worktree(), None) {
            let _ = lease.release();
        }
    })
    .on_host(0)
}

/// Waits in line, and gives the lock back at once.
fn waiter(id: &'static str, host: usize) -> Process {
    Process::new(id, move |ctx| {
        let locks = of_ctx(ctx, id);
        let lookup = |pid: u32| {
            let is_there = pid != DEAD && ctx.is_running(pid as usize);
            is_there.then_some(ProcessStat { start_ticks: 1, session_leader: 1, zombie: false })
        };
        let began = ctx.clock().now().boot;
        let mut sleeper = Ringing(ctx);
        match locks.wait(&main_worktree(), LEASE, WAIT_MS, &lookup, &mut sleeper, &NoTies) {
            Ok(Some(lease)) => {
                ctx.claim("waited_ms", ctx.clock().now().boot.since(began));
                ctx.claim("told", "got");
                let _ = lease.release();
            }
            Ok(None) => ctx.claim("told", "stopped"),
            Err(error) => ctx.claim("told", error.code().as_str()),
        }
    })
    .on_host(host)
}

fn is_advisory(path: &RepoPath) -> bool {
    let main = main_worktree();
    path.as_str().starts_with(layout::audit().as_str())
        || *path == layout::lock_record(&main)
        || *path == layout::legacy_lock(&main)
        || path.as_str().starts_with(layout::lock_tmp(&main, "").as_str())
}

fn line(setup: fn(&Solo), waiters: impl IntoIterator<Item = Process>) -> Explorer<'static> {
    Explorer::new()
        .setup(setup)
        .process(holder())
        .processes(waiters)
        .private(is_advisory)
        .forget_private()
        .each_step(invariant::register_moves_by_the_rules)
        .at_end(everybody_got_it)
}

/// Whoever lives got the lock, and nobody's ticket is left in front of others.
fn everybody_got_it(view: &View<'_>) -> Result<(), String> {
    let waiters = view.processes().filter(|process| process.name() != "holder");
    for waiter in waiters.filter(|waiter| !waiter.crashed()) {
        if waiter.text("told") != Some("got") {
            return Err(format!("{} was told {:?}", waiter.name(), waiter.text("told")));
        }
    }
    Ok(())
}

#[test]
fn a_line_moves_on_whether_or_not_it_is_heard_to() {
    // Without an early wake every change is missed; with one it rings at any moment,
    // also when nothing has changed.
    for rings in [0, 1] {
        let waiters = [waiter("one", 0), waiter("two", 0)];
        let world = line(held, waiters).preemptions(2 - rings).early_wakes(rings);
        all_of(&format!("two in line, {rings} rings"), world);
    }
}

#[test]
fn a_neighbour_that_dies_anywhere_is_passed_over() {
    let waiters = [waiter("one", 0), waiter("two", 0)];
    all_of("two in line, a crash", line(held, waiters).preemptions(1).early_wakes(0).crashes(1));
    let waiters = [waiter("one", 0), waiter("two", 1)];
    all_of("the same on two hosts", line(held, waiters).preemptions(0).early_wakes(0).crashes(1));
}

#[test]
fn a_neighbour_that_is_seen_to_be_dead_is_not_waited_for() {
    let at_once = |view: &View<'_>| {
        let waited = view.process(1).number("waited_ms").unwrap_or(u64::MAX);
        match waited < SILENT_AFTER_MS {
            true => Ok(()),
            false => Err(format!("waited for {waited} ms")),
        }
    };
    let world = line(held_and_waited_for_by_the_dead, [waiter("one", 0)]);
    all_of("behind a dead one", world.preemptions(1).early_wakes(1).at_end(at_once));
}

#[test]
fn a_dead_neighbour_of_another_host_is_passed_over_when_it_was_silent() {
    let world = line(held_and_waited_for_by_the_dead, [waiter("one", 1)]);
    let report = all_of("behind a dead one of another host", world.preemptions(0).early_wakes(0));
    assert!(report.runs > 0, "{report}");
}
