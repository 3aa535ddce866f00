//! Standing in line, on a real filesystem.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use jvs_lock::hold::NoTies;
use jvs_lock::queue::{Look, Queue, SleepOnly, Sleeper, Waiting, Woken, pause_ms};
use jvs_lock::{LeaseOrigin, Seams, Want};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::code::{Code, Coded};
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::layout;
use jvs_repo::next::Next;
use jvs_repo::proc::ProcessStat;
use jvs_repo::store::{DirEntry, EntryStat, RepoPath, Store, StoredFile};

use crate::counting::Counting;
use jvs_world::repository::main;

use crate::world::{TestClock, World, wait_no_longer_than};

const HOUR: u64 = 3_600_000;

/// Every process is there.
fn all_alive(_pid: u32) -> Option<ProcessStat> {
    Some(ProcessStat { start_ticks: 1, session_leader: 1, zombie: false })
}

/// No process is there.
fn none_alive(_pid: u32) -> Option<ProcessStat> {
    None
}

#[test]
fn waiters_get_the_lock_in_the_order_in_which_they_came() {
    let world = World::new();
    let holder = world.session_on("holder", &SystemClock);
    let lease = holder.acquire(&main(), Want::lease(HOUR)).expect("free");
    let queue = Queue::new(world.seams(&SystemClock), &main());
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (world, tell) = (&world, tell.clone());
            scope.spawn(move || {
                let locks = world.session_on(&format!("waiter-{n}"), &SystemClock);
                let mut sleeper = SleepOnly(&SystemClock);
                let want = Want::lease(HOUR);
                let lease = locks
                    .wait(&main(), want, 30_000, &all_alive, &mut sleeper, &NoTies)
                    .expect("no error")
                    .expect("not stopped");
                tell.send(n).expect("the test listens");
                lease.release().expect("released");
            });
            wait_no_longer_than(Duration::from_secs(20), "it stands in line", || {
                queue.list().expect("listed").len() == n + 1
            });
        }
        lease.release().expect("released");
        let order: Vec<_> =
            (0..4).map(|_| told.recv_timeout(Duration::from_secs(20)).expect("got it")).collect();
        assert_eq!(order, [0, 1, 2, 3]);
    });
    assert_eq!(world.names(&layout::queue(&main())), [""; 0], "no ticket is left behind");
}

#[test]
fn a_free_lock_is_not_taken_past_those_who_wait_but_one_s_own_is_refreshed() {
    let world = World::new();
    let (first, late) = (world.session("first"), world.session("late"));
    let queue = Queue::new(world.seams(&world.clock), &main());
    let place = queue.join(first.session(), 30_000).expect("joined");
    let error = late
        .acquire_in_turn(&main(), Want::lease(1_000), &all_alive)
        .expect_err("it is the other's turn");
    assert_eq!(error.code(), Code::LockConflict);
    assert_eq!(error.next(), Some(Next::StandInLine(main())), "{error}");
    assert_eq!(error.details().expect("told")["ahead"], 1);

    let mine = first.acquire_in_turn(&main(), Want::lease(1_000), &all_alive).expect("my turn");
    let again = first.acquire_in_turn(&main(), Want::lease(1_000), &all_alive).expect("mine");
    assert_eq!((mine.how(), again.how()), (LeaseOrigin::Acquired, LeaseOrigin::Refreshed));
    again.release().expect("released");
    drop(place);
    let lease = late.acquire_in_turn(&main(), Want::lease(1_000), &all_alive);
    assert_eq!(lease.expect("nobody waits any more").how(), LeaseOrigin::Acquired);
}

#[test]
fn a_dead_waiter_keeps_nobody_out() {
    let world = World::new();
    let (dead, next) = (world.session("dead"), world.session("next"));
    let queue = Queue::new(world.seams(&world.clock), &main());
    std::mem::forget(queue.join(dead.session(), 30_000).expect("joined"));
    let lease =
        next.acquire_in_turn(&main(), Want::lease(1_000), &none_alive).expect("passed over");
    lease.release().expect("released");

    let mut place = queue.join(next.session(), 30_000).expect("joined");
    let Look::Waiting { ahead: 0, .. } = place.look(&none_alive).expect("looked") else {
        panic!("the dead one is passed over")
    };
    assert_eq!(queue.list().expect("listed").len(), 1, "and its ticket is cleared away");
}

#[test]
fn a_waiter_of_another_host_is_passed_over_once_it_was_silent_for_long_enough() {
    let world = World::new();
    let (silent, next) = (world.session_of_host("silent", "boot-b"), world.session("next"));
    let queue = Queue::new(world.seams(&world.clock), &main());
    std::mem::forget(queue.join(silent.session(), 30_000).expect("joined"));
    let mut place = queue.join(next.session(), 30_000).expect("joined");
    let mut looks = 0;
    while let Look::Waiting { ahead: 1, .. } = place.look(&none_alive).expect("looked") {
        world.clock.pass(1_000);
        looks += 1;
        assert!(looks < 100, "passed over at some time");
    }
    assert!(looks >= 15, "but not before it was silent for fifteen seconds: {looks}");
}

#[test]
fn a_waiter_that_gives_signs_keeps_its_place_however_long_it_waits() {
    let world = World::new();
    let (first, second) = (world.session_of_host("first", "boot-b"), world.session("second"));
    let queue = Queue::new(world.seams(&world.clock), &main());
    let mut front = queue.join(first.session(), 30_000).expect("joined");
    let mut back = queue.join(second.session(), 30_000).expect("joined");
    for _ in 0..200 {
        world.clock.pass(4_000);
        assert!(matches!(front.look(&none_alive), Ok(Look::Waiting { ahead: 0, .. })));
        assert!(matches!(back.look(&none_alive), Ok(Look::Waiting { ahead: 1, .. })));
    }
}

#[test]
fn a_stopped_waiter_that_was_given_up_goes_to_the_end_of_the_line() {
    let world = World::new();
    let (stopped, other) = (world.session("stopped"), world.session("other"));
    let queue = Queue::new(world.seams(&world.clock), &main());
    let mut front = queue.join(stopped.session(), 30_000).expect("joined");
    let mut back = queue.join(other.session(), 30_000).expect("joined");
    back.look(&all_alive).expect("looked");
    world.clock.pass(20_000);
    assert!(matches!(back.look(&all_alive), Ok(Look::Waiting { ahead: 0, .. })));
    assert_eq!(front.look(&all_alive).expect("looked"), Look::Gone);
}

#[test]
fn a_wait_that_is_over_names_the_holder_and_leaves_no_ticket() {
    let world = World::new();
    let lease = world.session("holder").acquire(&main(), Want::lease(HOUR)).expect("free");
    let waiter = world.session("waiter");
    let mut sleeper = SleepOnly(&world.clock);
    let error = waiter
        .wait(&main(), Want::lease(1_000), 5_000, &all_alive, &mut sleeper, &NoTies)
        .expect_err("still held");
    assert_eq!(error.code(), Code::LockConflict);
    let details = error.details().expect("told");
    assert_eq!(details["session_id"], "holder");
    assert!(details["waited_ms"].as_u64().is_some_and(|ms| ms >= 5_000), "{details}");
    assert_eq!(world.names(&layout::queue(&main())), [""; 0]);
    lease.release().expect("released");
}

/// Stops the wait at its third sleep.
struct Impatient {
    sleeps: u32,
}

impl Sleeper for Impatient {
    fn watch(&mut self, _what: &RepoPath) -> bool {
        false
    }

    fn sleep(&mut self, _ms: u64) -> Woken {
        self.sleeps += 1;
        if self.sleeps < 3 { Woken::Again } else { Woken::Stop }
    }
}

#[test]
fn a_wait_that_the_user_stops_leaves_no_ticket() {
    let world = World::new();
    let lease = world.session("holder").acquire(&main(), Want::lease(HOUR)).expect("free");
    let waiter = world.session("waiter");
    let mut sleeper = Impatient { sleeps: 0 };
    let got = waiter.wait(&main(), Want::lease(1_000), HOUR, &all_alive, &mut sleeper, &NoTies);
    assert!(got.expect("no error").is_none());
    assert_eq!(world.names(&layout::queue(&main())), [""; 0]);
    lease.release().expect("released");
}

/// Sleeps on the test's clock and remembers what it was told.
struct Telling<'c> {
    clock: &'c TestClock,
    told: RefCell<Vec<Waiting>>,
}

impl Sleeper for Telling<'_> {
    fn watch(&mut self, _what: &RepoPath) -> bool {
        false
    }

    fn sleep(&mut self, ms: u64) -> Woken {
        self.clock.sleep_ms(ms);
        Woken::Again
    }

    fn tell(&mut self, waiting: &Waiting) {
        self.told.borrow_mut().push(waiting.clone());
    }
}

#[test]
fn the_first_in_line_takes_over_a_lease_that_ran_out_while_it_waited() {
    let world = World::new();
    let forgotten = world.session("holder").acquire(&main(), Want::lease(10_000)).expect("free");
    let waiter = world.session("waiter");
    let mut sleeper = Telling { clock: &world.clock, told: RefCell::new(Vec::new()) };
    let lease = waiter
        .wait(&main(), Want::lease(1_000), HOUR, &all_alive, &mut sleeper, &NoTies)
        .expect("no error")
        .expect("not stopped");
    assert_eq!(lease.how(), LeaseOrigin::Stolen);
    assert_eq!(lease.token().0, forgotten.token().0 + 1);
    let told = sleeper.told.into_inner();
    let seen = told.last().and_then(|waiting| waiting.view.as_ref()).expect("it saw the holder");
    assert_eq!(seen.record().map(|record| record.session_id.as_str()), Some("holder"));
}

#[test]
fn a_hundred_waiters_are_a_bounded_load() {
    const WAITERS: usize = 100;
    const MINUTE: u64 = 60_000;
    let world = World::new();
    let store = Counting::new(
        jvs_repo::store::PosixStore::open(world.dir.path()).expect("the same repository"),
    );
    let seams = Seams { store: &store, clock: &world.clock, entropy: &SystemEntropy };
    let queue = Queue::new(seams, &main());
    let sessions: Vec<_> =
        (0..WAITERS).map(|n| world.session_of_host(&format!("w-{n}"), "elsewhere")).collect();
    let mut places: Vec<_> =
        sessions.iter().map(|locks| queue.join(locks.session(), 30_000).expect("joined")).collect();
    // Each waiter wakes at its own time; the clock goes from one to the next.
    let start = world.clock.now().boot.0;
    let mut next: BinaryHeap<_> = (0..WAITERS).map(|n| Reverse((start, n, 0_u32))).collect();
    store.take();
    let mut counted = 0;
    while let Some(Reverse((at, n, looks))) = next.pop() {
        if at > start + MINUTE {
            break;
        }
        world.clock.pass(at.saturating_sub(world.clock.now().boot.0));
        let Look::Waiting { ahead, .. } = places[n].look(&all_alive).expect("looked") else {
            panic!("waiter {n} lost its place")
        };
        assert_eq!(ahead, n, "nobody overtakes");
        if ahead == 0 {
            use jvs_repo::store::Store as _;
            store.first_batch(&layout::register(&main())).expect("the first looks at the lock");
        }
        counted += store.take();
        let jitter = u8::try_from(n * 7 % 256).expect("a byte");
        next.push(Reverse((at + pause_ms(ahead, looks, jitter).max(1), n, looks + 1)));
    }
    let per_second = counted / (MINUTE / 1_000);
    assert!(per_second <= 80, "{per_second} operations a second with {WAITERS} waiters");
}

/// A line whose listings never show anything: a cache that does not end.
struct Blind<'s>(&'s dyn Store);

impl Store for Blind<'_> {
    fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<OsString>> {
        self.0.first_batch(dir)
    }
    fn list(&self, dir: &RepoPath) -> io::Result<Vec<DirEntry>> {
        match *dir == layout::queue(&main()) {
            true => Ok(Vec::new()),
            false => self.0.list(dir),
        }
    }
    fn stat(&self, path: &RepoPath) -> io::Result<EntryStat> {
        self.0.stat(path)
    }
    fn open(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.0.open(path)
    }
    fn open_writable(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.0.open_writable(path)
    }
    fn create_new(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.0.create_new(path)
    }
    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn rename_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.0.rename_new(from, to)
    }
    fn exchange(&self, a: &RepoPath, b: &RepoPath) -> io::Result<()> {
        self.0.exchange(a, b)
    }
    fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        self.0.unlink(path)
    }
    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.0.make_dir(path)
    }
    fn remove_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.0.remove_dir(path)
    }
    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
}

#[test]
fn a_wait_that_never_sees_its_own_ticket_ends_with_its_time() {
    let world = World::new();
    let _lease = world.session("holder").acquire(&main(), Want::lease(HOUR)).expect("free");
    let blind = Blind(&world.store);
    let waiter = world.session_through("waiter", &blind);
    let mut sleeper = SleepOnly(&world.clock);
    let error = waiter
        .wait(&main(), Want::lease(1_000), 5_000, &all_alive, &mut sleeper, &NoTies)
        .expect_err("its time is over");
    assert_eq!(error.code(), Code::LockConflict, "{error}");
}

#[test]
fn a_free_lock_is_not_stolen_past_those_who_wait() {
    let world = World::new();
    let (first, thief) = (world.session("first"), world.session("thief"));
    let queue = Queue::new(world.seams(&world.clock), &main());
    let place = queue.join(first.session(), 30_000).expect("joined");
    let error = thief.steal(&main(), Want::lease(1_000), &all_alive).expect_err("not its turn");
    assert!(matches!(error, jvs_lock::LockError::InLine { .. }), "{error}");
    drop(place);
    drop(thief.steal(&main(), Want::lease(1_000), &all_alive).expect("nobody waits"));
}

#[test]
fn a_transferred_lease_is_as_long_as_the_waiter_asked() {
    let world = World::new();
    let (giver, receiver) = (world.session("giver"), world.session("receiver"));
    let lease = giver.acquire(&main(), Want::lease(HOUR)).expect("free");
    let queue = Queue::new(world.seams(&world.clock), &main());
    let _place = queue.join(receiver.session(), 2_000).expect("joined");
    let waiter = giver.waiter(&main(), receiver.session().id(), &all_alive).expect("in line");
    let asked = waiter.lease_ms.expect("its ticket says");
    let state = lease.transfer(&waiter, asked, "handed over").expect("handed over");
    assert_eq!(state.hold.claim().map(|claim| claim.lease_ms), Some(2_000));
}
