//! Thirty-two processes at once, killed and stopped at random moments: whatever
//! happens to them, every token is granted once, no two hold at a time, the
//! audit log adds up, and the next to come gets the lock.
//!
//! First through the command, a process for every step, most of them standing
//! in line; then through the library, as fast as it goes (`hammer`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use jvs_kit::live::home::Home;
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::process::{DEADLINE, Outcome, Running, eventually};
use jvs_lock::history;
use jvs_repo::clock::{Clock as _, SystemClock};
use jvs_repo::name::WorktreeName;
use jvs_repo::store::PosixStore;
use rustix::process::Signal;

const WORKERS: u64 = 32;
const LEASE_MS: u64 = 1_000;
/// Stand in line, but not for ever.
const WAIT: &str = "--wait=5s";

/// How many grants of the command are enough, and for how long each of the two
/// may go on.
struct Bounds {
    grants: u64,
    time: Duration,
}

impl Bounds {
    /// So many grants or seconds; `JVS_LONG=N` makes it N times as many, for
    /// whoever has the time.
    fn of(grants: u64, seconds: u64) -> Self {
        let times = std::env::var("JVS_LONG").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
        Bounds { grants: grants * times, time: Duration::from_secs(seconds * times) }
    }
}

/// A hold as its session saw it, in boot time: from when it was told until it
/// let go, but no longer than its lease.
struct Held {
    who: String,
    token: u64,
    from: u64,
    until: u64,
}

#[derive(Default)]
struct Tally {
    grants: AtomicU64,
    conflicts: AtomicU64,
    steals: AtomicU64,
    lost: AtomicU64,
    killed: AtomicU64,
    stopped: AtomicU64,
    stumbles: AtomicU64,
    hammered: AtomicU64,
}

impl Tally {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

/// A small generator: what happens is random, but not because of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Where the processes meet: the worktree as each host sees it.
struct Arena<'a> {
    homes: Vec<Home>,
    mains: Vec<PathBuf>,
    /// A network filesystem may stumble; a local one may not.
    may_stumble: bool,
    bounds: Bounds,
    tally: &'a Tally,
    held: &'a Mutex<Vec<Held>>,
}

fn boot_ms() -> u64 {
    SystemClock.now().boot.0
}

fn session(worker: u64) -> String {
    format!("worker-{worker}")
}

impl Arena<'_> {
    /// Runs `jvs lock …` as a worker, unless it is made to die: then nothing is
    /// known of what it did.
    fn run(&self, worker: u64, dice: &mut Dice, args: &[&str]) -> Option<Outcome> {
        let host = (worker as usize) % self.homes.len();
        let jvs = self.homes[host].jvs(["lock"]).cwd(&self.mains[host]).session(&session(worker));
        let jvs = args.iter().fold(jvs, |jvs, arg| jvs.arg(arg));
        let running = jvs.arg("--json").start();
        // In the middle of its work, or of its waiting.
        let waits = args.contains(&WAIT) && dice.below(2) == 0;
        let moment = Duration::from_micros(dice.below(if waits { 1_000_000 } else { 40_000 }));
        match dice.below(40) {
            0 => {
                thread::sleep(moment);
                running.signal(Signal::KILL);
                let outcome = running.wait(DEADLINE);
                Tally::count(&self.tally.killed);
                // It may have ended before.
                outcome.status.code().map(|_| outcome)
            }
            1 => {
                thread::sleep(moment);
                running.signal(Signal::STOP);
                thread::sleep(Duration::from_millis(dice.below(2 * LEASE_MS)));
                running.signal(Signal::CONT);
                Tally::count(&self.tally.stopped);
                Some(running.wait(DEADLINE))
            }
            _ => Some(running.wait(DEADLINE)),
        }
    }

    fn held(&self, hold: Held) {
        self.held.lock().expect("no worker panicked").push(hold);
    }

    fn stumbled(&self, outcome: &Outcome) {
        assert!(self.may_stumble, "{outcome}");
        let code = outcome.json()["error"]["code"].clone();
        assert!(code == "E_IO" || code == "E_OUTCOME_UNKNOWN", "{outcome}");
        Tally::count(&self.tally.stumbles);
    }

    /// Takes the lock, maybe renews it, gives it back; again and again.
    fn work(&self, worker: u64) {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (worker + 1));
        let end = boot_ms() + u64::try_from(self.bounds.time.as_millis()).expect("short");
        while boot_ms() < end && self.tally.grants.load(Ordering::SeqCst) < self.bounds.grants {
            // Most stand in line, some try their luck now and then.
            let tries = worker.is_multiple_of(4);
            let wait = if tries { &[][..] } else { &[WAIT][..] };
            let acquire = [&["acquire", "--lease", "1s", "--no-keeper"][..], wait].concat();
            let Some(acquired) = self.run(worker, &mut dice, &acquire) else { continue };
            match acquired.code() {
                0 => {}
                2 => {
                    Tally::count(&self.tally.conflicts);
                    thread::sleep(Duration::from_millis(dice.below(500)));
                    continue;
                }
                _ => {
                    self.stumbled(&acquired);
                    continue;
                }
            }
            // Clocks are cut to whole milliseconds: round against the claim.
            let from = boot_ms() + 1;
            let data = acquired.json()["data"].clone();
            Tally::count(&self.tally.grants);
            if data["how"] == "stolen" {
                Tally::count(&self.tally.steals);
            }
            let token = data["fencing_token"].as_u64().expect("a token");
            if dice.below(4) == 0 {
                self.let_go_of(worker, &mut dice, "renew");
            }
            let counted_from = data["record"]["renewed_boot_ms"].as_u64().unwrap_or(0);
            let until = boot_ms().min(counted_from + LEASE_MS);
            self.held(Held { who: session(worker), token, from, until });
            // Now and then it is forgotten, and simply expires.
            if dice.below(30) > 0 {
                self.let_go_of(worker, &mut dice, "release");
            }
        }
    }

    /// One hammer after the other, each for as long as it lives. Every now and
    /// then one is stopped for a while, or killed and replaced.
    fn hammer(&self, worker: u64) {
        let mut dice = Dice(0x2545_f491_4f6c_dd1d ^ (worker + 1));
        let root = self.mains[(worker as usize) % self.mains.len()].parent().expect("a root");
        let end = boot_ms() + u64::try_from(self.bounds.time.as_millis()).expect("short");
        while let left @ 1.. = end.saturating_sub(boot_ms()) {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hammer"));
            command.arg(root).arg(format!("hammer-{worker}")).arg(left.to_string());
            let mut running = Running::start(command);
            let outcome = loop {
                if running.ends_within(Duration::from_millis(dice.below(2_000))) {
                    break running.wait(DEADLINE);
                }
                match dice.below(4) {
                    0 => {
                        running.signal(Signal::KILL);
                        Tally::count(&self.tally.killed);
                        break running.wait(DEADLINE);
                    }
                    1 => {
                        running.signal(Signal::STOP);
                        thread::sleep(Duration::from_millis(dice.below(2 * LEASE_MS)));
                        running.signal(Signal::CONT);
                        Tally::count(&self.tally.stopped);
                    }
                    _ => {}
                }
            };
            assert!(outcome.status.success() || outcome.signal().is_some(), "{outcome}");
            self.told(worker, outcome.stdout());
        }
    }

    /// What a hammer said. Its last line may be cut short by its death.
    fn told(&self, worker: u64, said: &str) {
        let whole = said.rfind('\n').map_or("", |end| &said[..end]);
        for line in whole.lines() {
            if line.starts_with("stumble ") {
                assert!(self.may_stumble, "{line}");
                Tally::count(&self.tally.stumbles);
                continue;
            }
            let numbers: Vec<u64> =
                line.split(' ').map(|word| word.parse().expect("a number")).collect();
            let [token, from, until] = numbers[..] else { panic!("not a hold: {line}") };
            Tally::count(&self.tally.hammered);
            self.held(Held { who: format!("hammer-{worker}"), token, from, until });
        }
    }

    /// Renews or releases, and is told if the hold is gone.
    fn let_go_of(&self, worker: u64, dice: &mut Dice, command: &str) {
        let Some(outcome) = self.run(worker, dice, &[command]) else { return };
        match outcome.code() {
            0 => {}
            // Not held, fenced, expired: it was stopped for too long.
            4..=6 => Tally::count(&self.tally.lost),
            _ => self.stumbled(&outcome),
        }
    }
}

/// No two sessions were told that they hold at one moment, and none was told a
/// token that another was told.
fn nobody_held_at_the_same_time(held: &mut [Held]) {
    held.sort_by_key(|hold| hold.from);
    let mut owners: BTreeMap<u64, &str> = BTreeMap::new();
    let mut last: Option<&Held> = None;
    for hold in held.iter() {
        let owner = *owners.entry(hold.token).or_insert(&hold.who);
        assert_eq!(owner, hold.who, "token {} was granted to two sessions", hold.token);
        if hold.until <= hold.from {
            continue;
        }
        if let Some(last) = last {
            assert!(
                last.who == hold.who || last.until <= hold.from,
                "{} (token {}) and {} (token {}) held at the same time",
                last.who,
                last.token,
                hold.who,
                hold.token
            );
        }
        last = Some(hold);
    }
}

/// The register's whole history: tokens go up one by one, each with one holder.
/// How many there were.
fn every_token_was_granted_once(root: &Path, held: &[Held]) -> u64 {
    let store = PosixStore::open(root).expect("the repository");
    let main = WorktreeName::main();
    let (seen, logs) =
        history::witness(&store, &SystemClock, [main], |_| false).expect("one entry");
    let state = seen[0].state;
    let report = history::check(&seen, &logs.expect("the logs"));
    assert!(report.first_bad_link().is_none(), "{:#?}", report.problems);
    let [life] = &report.lives[..] else { panic!("one register, one life") };
    let mut holders = BTreeMap::new();
    for pair in life.states.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        assert!(after.seq > before.seq, "{before} -> {after}");
        let raised = after.token.0 - before.token.0;
        assert!(raised <= 1, "a token was left out: {before} -> {after}");
        if let Some(holder) = after.holder() {
            let known = *holders.entry(after.token.0).or_insert(holder);
            assert_eq!(known, holder, "token {} had two holders", after.token);
        }
    }
    let told: BTreeSet<u64> = held.iter().map(|hold| hold.token).collect();
    for token in &told {
        assert!(holders.contains_key(token), "token {token} was told, but never granted");
    }
    state.token.0
}

#[expect(clippy::print_stderr, reason = "how much was tried is part of the answer")]
fn thirty_two_at_once(what: &str, roots: &[PathBuf], may_stumble: bool, bounds: Bounds) {
    let (tally, held) = (Tally::default(), Mutex::default());
    let arena = Arena {
        homes: roots.iter().map(|_| Home::new()).collect(),
        mains: roots.iter().map(|root| root.join("main")).collect(),
        may_stumble,
        bounds,
        tally: &tally,
        held: &held,
    };
    let (home, main) = (&arena.homes[0], &arena.mains[0]);
    home.jvs(["init"]).arg(&roots[0]).run().ok();
    // Every token that was told is looked for in the logs.
    home.jvs(["config", "set", "audit.keep_kib", "65536"]).cwd(&roots[0]).run().ok();
    // All run on one machine and so on one clock: no margin is needed, and dead
    // holders keep nobody out for long.
    for (key, value) in [("lock.max_clock_skew_ms", "0"), ("lock.steal_grace_ms", "50")] {
        home.jvs(["config", "set", key, value]).cwd(main).run().ok();
    }
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let arena = &arena;
            scope.spawn(move || arena.work(worker));
        }
    });
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let arena = &arena;
            scope.spawn(move || arena.hammer(worker));
        }
    });

    // Nobody is left holding for ever.
    eventually("a newcomer gets the lock", DEADLINE, || {
        let newcomer = home
            .jvs(["lock", "acquire", "--lease", "1s", "--no-keeper", "--json"])
            .cwd(main)
            .session("newcomer")
            .run();
        newcomer.code() == 0
    });
    let verified = home.jvs(["audit", "--verify", "--json"]).cwd(main).run().ok().json();
    assert_eq!(verified["data"]["verified"], true, "{verified}");
    let mut held = held.lock().expect("all workers ended");
    nobody_held_at_the_same_time(&mut held);
    let tokens = every_token_was_granted_once(&roots[0], &held);

    let counted = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    eprintln!(
        "{what}: {} + {} grants told, {tokens} tokens, {} steals, {} conflicts, {} lost holds, {} \
         killed, {} stopped, {} stumbles",
        counted(&tally.grants),
        counted(&tally.hammered),
        counted(&tally.steals),
        counted(&tally.conflicts),
        counted(&tally.lost),
        counted(&tally.killed),
        counted(&tally.stopped),
        counted(&tally.stumbles),
    );
    // A machine so slow that nothing happened has shown nothing.
    assert!(counted(&tally.grants) >= 10, "too few to say anything");
    assert!(counted(&tally.hammered) >= 20, "too few to say anything");
    assert!(counted(&tally.killed) >= 5 && counted(&tally.stopped) >= 1);
}

#[test]
fn thirty_two_at_once_on_a_local_filesystem() {
    let dir = tempfile::tempdir().expect("a directory");
    let bounds = Bounds::of(500, 11);
    thirty_two_at_once("local", &[dir.path().join("repository")], false, bounds);
}

fn thirty_two_at_once_on_two_mounts(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 2) else { return };
    let roots = [0, 1].map(|host| volume.host(host).join("repository"));
    let bounds = Bounds::of(500, 15);
    thirty_two_at_once(&format!("{engine:?}"), &roots, true, bounds);
}

#[test]
fn thirty_two_at_once_on_two_mounts_on_sqlite() {
    thirty_two_at_once_on_two_mounts(Engine::Sqlite);
}

#[test]
fn thirty_two_at_once_on_two_mounts_on_redis() {
    thirty_two_at_once_on_two_mounts(Engine::Redis);
}
