//! Sessions that wait for each other, on a real filesystem and a clock of the test's.

use std::io;

use jvs_lock::hold::Ties;
use jvs_lock::queue::{Queue, QueuePlace, Sleeper, WatchBegun, Woken};
use jvs_lock::{Lease, Locks, TurnError, Want, worktrees};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::code::{Code, Coded};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_repo::proc::ProcessStat;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{PosixStore, RepoPath};

use crate::counting::Counting;
use crate::world::{TestClock, World};

const HOUR: Want<'static> = Want::lease(3_600_000);
const WAIT_MS: u64 = 60_000;

fn name(name: &str) -> WorktreeName {
    name.parse().expect("a name")
}

fn all_alive(_pid: u32) -> Option<ProcessStat> {
    Some(ProcessStat { start_ticks: 1, session_leader: 1, zombie: false })
}

/// The session keeps these until its wait is over.
struct Keeps(&'static [&'static str]);

impl Ties for Keeps {
    fn now(&self) -> io::Result<Vec<WorktreeName>> {
        Ok(self.0.iter().map(|kept| name(kept)).collect())
    }
}

/// Sleeps on the test's clock; something happens before each sleep.
struct Meanwhile<'b> {
    clock: &'b TestClock,
    happens: &'b mut dyn FnMut(u64),
    slept_ms: u64,
}

impl Sleeper for Meanwhile<'_> {
    fn watch(&mut self, _what: &RepoPath) -> WatchBegun {
        WatchBegun::Impossible
    }

    fn sleep(&mut self, ms: u64) -> Woken {
        (self.happens)(self.slept_ms);
        self.slept_ms += ms;
        self.clock.sleep_ms(ms);
        Woken::Time
    }
}

/// A repository with worktrees a, b and c.
fn world() -> World {
    let world = World::new();
    let maker = world.session("maker");
    for worktree in ["a", "b", "c"] {
        worktrees::create(&maker, &name(worktree), Isolation::Exclusive).expect("made");
    }
    drop(maker);
    world
}

/// `who` has stood in the line of `worktree` for a second.
fn stands<'w>(world: &'w World, who: &Locks<'_>, worktree: &str) -> QueuePlace<'w> {
    let queue = Queue::new(world.seams(&world.clock), &name(worktree));
    let place = queue.join(who.session(), 1_000).expect("joined");
    world.clock.pass(1_000);
    place
}

fn holds<'r>(who: &Locks<'r>, worktree: &str) -> Lease<'r> {
    who.acquire(&name(worktree), HOUR).expect("free")
}

/// Waits for `worktree` while keeping `kept`, and `happens`.
fn waits<'r>(
    world: &World,
    who: &Locks<'r>,
    worktree: &str,
    kept: &'static [&'static str],
    happens: &mut dyn FnMut(u64),
) -> Result<Lease<'r>, TurnError> {
    let mut sleeper = Meanwhile { clock: &world.clock, happens, slept_ms: 0 };
    let ties = Keeps(kept);
    let got = who.wait(&name(worktree), HOUR, WAIT_MS, &all_alive, &mut sleeper, &ties);
    got.map(|lease| lease.expect("not stopped"))
}

#[track_caller]
fn is_in_vain(got: Result<Lease<'_>, TurnError>) {
    let error = got.expect_err("somebody has it");
    assert!(matches!(error, TurnError::InLine { .. }), "{error}");
}

#[test]
fn the_newest_of_a_circle_is_told_who_waits_for_whom_and_leaves_the_line() {
    let world = world();
    let (one, two, three) = (world.session("one"), world.session("two"), world.session("three"));
    let _held = (holds(&one, "a"), holds(&two, "b"), holds(&three, "c"));
    let _two = stands(&world, &two, "c");
    let _three = stands(&world, &three, "a");
    let mut slept = 0;
    let told = waits(&world, &one, "b", &["a"], &mut |ms| slept = ms).expect_err("a circle");
    assert_eq!(told.code(), Code::Deadlock);
    assert!(slept < 2_000, "told after {slept} ms");
    assert_eq!(
        told.to_string(),
        "waiting for worktree 'b' would never end: session two holds it and waits for worktree \
         'c'; session three holds that and waits for worktree 'a', which this session holds"
    );
    assert_eq!(told.next(), Some(Next::TakeBoth(name("a"), name("b"))));
    let details = told.details().expect("told");
    let cycle = &details["cycle"];
    assert_eq!(cycle.as_array().map(Vec::len), Some(3));
    assert_eq!(cycle[0]["session_id"], "one");
    assert_eq!(cycle[0]["waits_for"], "b");
    assert_eq!(cycle[0]["held_by"], "two");
    assert_eq!(cycle[2]["held_by"], "one");
    let queue = Queue::new(world.seams(&world.clock), &name("b"));
    assert!(queue.list().expect("listed").is_empty());
}

#[test]
fn an_older_one_of_a_circle_goes_on_and_gets_the_lock_when_it_is_given_back() {
    let world = world();
    let (one, two) = (world.session("one"), world.session("two"));
    let (_a, b) = (holds(&one, "a"), holds(&two, "b"));
    // Two comes, is told, gives up, and gives back what it has a while later.
    let (mut b, mut second) = (Some(b), None);
    let got = waits(&world, &one, "b", &["a"], &mut |slept_ms| match slept_ms {
        0..2_000 => {}
        2_000..8_000 => {
            second.get_or_insert_with(|| stands(&world, &two, "a"));
        }
        _ => {
            second.take();
            if let Some(b) = b.take() {
                b.release().expect("released");
            }
        }
    });
    assert_eq!(got.expect("the other gave up").token().0, 2);
}

#[test]
fn whoever_comes_at_the_end_of_a_line_is_told_too() {
    let world = world();
    let (one, two, other) = (world.session("one"), world.session("two"), world.session("other"));
    let _held = (holds(&one, "a"), holds(&two, "b"));
    let mut ahead = stands(&world, &other, "b");
    let _two = stands(&world, &two, "a");
    let told = waits(&world, &one, "b", &["a"], &mut |_| drop(ahead.look(&all_alive)));
    assert_eq!(told.expect_err("a circle").code(), Code::Deadlock);
}

#[test]
fn nobody_gives_up_for_a_waiter_that_is_gone_or_silent_or_has_left() {
    let world = world();
    let (one, two) = (world.session("one"), world.session("two"));
    let elsewhere = world.session_of_host("two", "elsewhere");
    let _held = (holds(&one, "a"), holds(&two, "b"));
    // Of this host: its process is gone.
    let ticket = stands(&world, &two, "a");
    let mut sleeper = Meanwhile { clock: &world.clock, happens: &mut |_| {}, slept_ms: 0 };
    let gone = |_| None;
    is_in_vain(
        one.wait(&name("b"), HOUR, WAIT_MS, &gone, &mut sleeper, &Keeps(&["a"]))
            .map(|lease| lease.expect("not stopped")),
    );
    drop(ticket);
    // Of another host: no sign of life for a while before, and none since.
    let ticket = stands(&world, &elsewhere, "a");
    world.clock.pass(20_000);
    is_in_vain(waits(&world, &one, "b", &["a"], &mut |_| {}));
    drop(ticket);
    // It leaves between two looks.
    let mut ticket = Some(stands(&world, &two, "a"));
    is_in_vain(waits(&world, &one, "b", &["a"], &mut |_| drop(ticket.take())));
}

#[test]
fn a_wrong_clock_only_delays_until_a_sign_of_life_is_seen() {
    let world = world();
    let (one, two) = (world.session("one"), world.session_of_host("two", "elsewhere"));
    let _held = (holds(&one, "a"), holds(&two, "b"));
    let mut ticket = stands(&world, &two, "a");
    world.clock.pass(30_000);
    let mut slept = 0;
    let told = waits(&world, &one, "b", &["a"], &mut |ms| {
        slept = ms;
        if ms > 10_000 {
            drop(ticket.look(&all_alive));
        }
    });
    assert_eq!(told.expect_err("a circle").code(), Code::Deadlock);
    assert!(slept > 10_000, "told after {slept} ms");
}

#[test]
fn nobody_gives_up_for_a_lease_that_is_over() {
    let world = world();
    let (one, two) = (world.session("one"), world.session("two"));
    let _a = holds(&one, "a");
    let _b = two.acquire(&name("b"), Want::lease(500)).expect("free");
    let mut ticket = stands(&world, &two, "a");
    let got = waits(&world, &one, "b", &["a"], &mut |_| drop(ticket.look(&all_alive)));
    assert_eq!(got.expect("it is taken over").token().0, 2);
}

#[test]
fn nobody_gives_up_for_what_its_session_gives_back_anyway() {
    let world = world();
    let (one, two) = (world.session("one"), world.session("two"));
    let _held = (holds(&one, "a"), holds(&two, "b"));
    let mut ticket = stands(&world, &two, "a");
    is_in_vain(waits(&world, &one, "b", &[], &mut |_| drop(ticket.look(&all_alive))));
}

/// Operations on the repository in a minute of waiting, besides those of a waiter that
/// never looks for a circle.
fn cost(kept: &'static [&'static str], waited_for: bool) -> u64 {
    let counted = |kept| {
        let world = world();
        let store = Counting::new(PosixStore::open(world.dir.path()).expect("the repository"));
        let (one, two) = (world.session_through("one", &store), world.session("two"));
        let (_a, _b) = (holds(&world.session("one"), "a"), holds(&two, "b"));
        let other = world.session("other");
        let mut ticket = waited_for.then(|| stands(&world, &other, "a"));
        let mut happens = |_| {
            if let Some(ticket) = &mut ticket {
                drop(ticket.look(&all_alive));
            }
        };
        store.take();
        is_in_vain(waits(&world, &one, "b", kept, &mut happens));
        store.take()
    };
    counted(kept).saturating_sub(counted(&[]))
}

#[test]
fn looking_for_a_circle_costs_nothing_to_one_who_keeps_nothing_and_little_to_others() {
    // One listing a second: the line of what it keeps.
    let kept = cost(&["a"], false);
    assert!((30..=75).contains(&kept), "{kept} operations a minute");
    // And where somebody waits: all lines, two here, and their registers.
    let waited_for = cost(&["a"], true);
    assert!((150..=400).contains(&waited_for), "{waited_for} operations a minute");
}

#[test]
fn two_who_look_at_once_do_not_both_give_up() {
    let world = world();
    std::thread::scope(|scope| {
        let wait = |id: &'static str, own: &'static str, other: &'static str| {
            let (world, clock) = (&world, &SystemClock);
            move || {
                let locks = world.session_on(id, clock);
                let lease = locks.acquire(&name(own), HOUR).expect("free");
                let mut sleeper = jvs_lock::queue::SleepOnly(clock);
                let kept: &'static [&'static str] = if own == "a" { &["a"] } else { &["b"] };
                // Both hold before either waits.
                while locks.inspect(&name(other)).expect("seen").is_takeable() {
                    clock.sleep_ms(5);
                }
                let ties = Keeps(kept);
                let got = locks.wait(&name(other), HOUR, 20_000, &all_alive, &mut sleeper, &ties);
                lease.release().expect("released");
                match got {
                    Ok(lease) => {
                        lease.expect("not stopped").release().expect("released");
                        None
                    }
                    Err(error) => Some(error.code()),
                }
            }
        };
        let (one, two) = (scope.spawn(wait("one", "a", "b")), scope.spawn(wait("two", "b", "a")));
        let mut told = [one.join().expect("no panic"), two.join().expect("no panic")];
        told.sort_by_key(Option::is_some);
        assert_eq!(told, [None, Some(Code::Deadlock)]);
    });
}
