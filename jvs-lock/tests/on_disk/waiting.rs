//! Standing in line, on a real filesystem.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use jvs_lock::hold::NoTies;
use jvs_lock::queue::{
    Look, Queue, QueuePlace, SleepOnly, Sleeper, Waiting, WatchBegun, Woken, pause_ms,
};
use jvs_lock::{Lease, LeaseOrigin, Seams, Want};
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
    fn watch(&mut self, _what: &RepoPath) -> WatchBegun {
        WatchBegun::Impossible
    }

    fn sleep(&mut self, _ms: u64) -> Woken {
        self.sleeps += 1;
        if self.sleeps < 3 { Woken::Time } else { Woken::Stop }
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

/// The process in front ends just before it is followed, and takes its ticket along.
struct TooLate<'b, 'r> {
    clock: &'b TestClock,
    front: Option<QueuePlace<'r>>,
}

impl Sleeper for TooLate<'_, '_> {
    fn watch(&mut self, _what: &RepoPath) -> WatchBegun {
        WatchBegun::Impossible
    }

    fn follow(&mut self, _pid: u32) -> WatchBegun {
        self.front = None;
        WatchBegun::NotThere
    }

    fn sleep(&mut self, ms: u64) -> Woken {
        self.clock.sleep_ms(ms);
        Woken::Time
    }
}

#[test]
fn a_neighbour_that_goes_before_it_can_be_followed_is_missed_at_once() {
    let world = World::new();
    let (first, second) = (world.session("first"), world.session("second"));
    let queue = Queue::new(world.seams(&world.clock), &main());
    let front = Some(queue.join(first.session(), 30_000).expect("joined"));
    let began = world.clock.now().boot;
    let mut sleeper = TooLate { clock: &world.clock, front };
    let got = second.wait(&main(), Want::lease(1_000), HOUR, &all_alive, &mut sleeper, &NoTies);
    assert!(got.expect("no error").is_some());
    let waited_ms = world.clock.now().boot.since(began);
    assert!(waited_ms < 100, "{waited_ms} ms of the test's clock: it slept as if it had heard");
}

/// Sleeps on the test's clock and remembers what it was told.
struct Telling<'c> {
    clock: &'c TestClock,
    told: RefCell<Vec<Waiting>>,
}

impl Sleeper for Telling<'_> {
    fn watch(&mut self, _what: &RepoPath) -> WatchBegun {
        WatchBegun::Impossible
    }

    fn sleep(&mut self, ms: u64) -> Woken {
        self.clock.sleep_ms(ms);
        Woken::Time
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

/// 100 waiters of another host in line for a while, each looking when it is due. Every
/// `turn_ms`, if that is given, the first leaves, the next is woken, and another joins.
/// How many operations those who wait make; joining and leaving belong to a turn.
fn operations_within(ms: u64, turn_ms: Option<u64>) -> u64 {
    const WAITERS: usize = 100;
    let world = World::new();
    let store = Counting::new(
        jvs_repo::store::PosixStore::open(world.dir.path()).expect("the same repository"),
    );
    let seams = Seams { store: &store, clock: &world.clock, entropy: &SystemEntropy };
    let queue = Queue::new(seams, &main());
    let session = world.session_of_host("waiter", "elsewhere");
    let join = || queue.join(session.session(), 30_000).expect("joined");
    let mut places: VecDeque<_> = (0..WAITERS).map(|n| (n, join())).collect();
    // Each waiter wakes at its own time; the clock goes from one to the next.
    let start = world.clock.now().boot.0;
    let mut due: BinaryHeap<_> = (0..WAITERS).map(|n| Reverse((start, n))).collect();
    let (mut counted, mut came) = (0, WAITERS);
    let mut turn_at = turn_ms.map(|turn_ms| start + turn_ms);
    while let Some(Reverse((at, n))) = due.pop() {
        if at > start + ms {
            break;
        }
        world.clock.pass(at.saturating_sub(world.clock.now().boot.0));
        if let Some(turn_ms) = turn_ms.filter(|_| turn_at.is_some_and(|turn_at| turn_at <= at)) {
            turn_at = turn_at.map(|turn_at| turn_at + turn_ms);
            places.pop_front();
            places.push_back((came, join()));
            due.extend([Reverse((at, places[0].0)), Reverse((at, came))]);
            came += 1;
        }
        store.take();
        let Some(ahead) = places.iter().position(|(id, _)| *id == n) else { continue };
        let Look::Waiting { ahead: seen, .. } = places[ahead].1.look(&all_alive).expect("looked")
        else {
            panic!("waiter {n} lost its place")
        };
        assert_eq!(seen, ahead, "nobody overtakes");
        if ahead == 0 {
            store.first_batch(&layout::register(&main())).expect("the first looks at the lock");
        }
        counted += store.take();
        let jitter = u8::try_from(n * 7 % 256).expect("a byte");
        due.push(Reverse((at + pause_ms(ahead, at - start, jitter), n)));
    }
    counted
}

#[test]
fn a_hundred_waiters_are_a_bounded_load() {
    let per_second = operations_within(60_000, None) / 60;
    assert!(per_second <= 80, "{per_second} operations a second");
}

#[test]
fn a_line_that_moves_costs_those_who_wait_hardly_more_than_one_that_stands_still() {
    let [still, moving] = [None, Some(100)].map(|turn_ms| operations_within(20_000, turn_ms));
    assert!(moving * 2 <= still * 3, "{moving} operations instead of {still}");
}

#[test]
fn a_turn_costs_the_same_however_many_wait() {
    let costs = [4, 32, 100].map(|waiters| {
        let world = World::new();
        let store = Counting::new(
            jvs_repo::store::PosixStore::open(world.dir.path()).expect("the same repository"),
        );
        let seams = Seams { store: &store, clock: &world.clock, entropy: &SystemEntropy };
        let queue = Queue::new(seams, &main());
        let session = world.session("waiter");
        let looked_up = Cell::new(0);
        let lookup = |pid| {
            looked_up.set(looked_up.get() + 1);
            all_alive(pid)
        };
        let come = || {
            let mut place = queue.join(session.session(), 30_000).expect("joined");
            place.look(&lookup).expect("looked");
            place
        };
        let mut line: VecDeque<_> = (0..waiters).map(|_| come()).collect();
        store.take();
        looked_up.set(0);
        for _ in 0..10 {
            drop(line.pop_front());
            let next = line[0].look(&lookup).expect("looked");
            assert!(matches!(next, Look::Waiting { ahead: 0, .. }), "{next:?}");
            line.push_back(come());
        }
        (store.take(), looked_up.get())
    });
    assert_eq!(costs[0], costs[1], "with 4 and with 32");
    assert_eq!(costs[0], costs[2], "with 4 and with 100");
}

/// Has the holder give its lock back in the first sleep, and counts what comes after that.
struct GivingBack<'g, 'r> {
    lease: Option<Lease<'r>>,
    store: &'g Counting,
}

impl Sleeper for GivingBack<'_, '_> {
    fn watch(&mut self, _what: &RepoPath) -> WatchBegun {
        WatchBegun::Impossible
    }

    fn sleep(&mut self, _ms: u64) -> Woken {
        let lease = self.lease.take().expect("one sleep is enough");
        lease.release().expect("released");
        self.store.take();
        Woken::Change
    }
}

#[test]
fn who_takes_the_lock_from_the_front_of_the_line_reads_it_once() {
    let world = World::new();
    let store = Counting::new(
        jvs_repo::store::PosixStore::open(world.dir.path()).expect("the same repository"),
    );
    let alone = world.session_through("alone", &store);
    alone.acquire(&main(), Want::lease(HOUR)).expect("free").release().expect("released");
    store.take();
    let lease = alone.acquire(&main(), Want::lease(HOUR)).expect("free");
    let takes = store.take();

    let waiter = world.session_through("waiter", &store);
    let mut sleeper = GivingBack { lease: Some(lease), store: &store };
    let got = waiter.wait(&main(), Want::lease(HOUR), HOUR, &all_alive, &mut sleeper, &NoTies);
    assert!(got.expect("no error").is_some());
    assert_eq!(store.take(), takes + 1, "as one alone, and its ticket is taken away");
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
    assert!(matches!(error, jvs_lock::TurnError::InLine { .. }), "{error}");
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
    let found = giver.waiter(&main(), receiver.session().id(), &all_alive).expect("read");
    let waiter = found.expect("in line");
    let asked = waiter.lease_ms.expect("its ticket says");
    let state = lease.transfer(&waiter, asked, "handed over").expect("handed over");
    assert_eq!(state.hold.claim().map(|claim| claim.lease_ms), Some(2_000));
}
