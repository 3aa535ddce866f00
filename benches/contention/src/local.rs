//! A line on a local filesystem, beside `flock(1)` and, where they are installed, etcd.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jvs_kit::live::home::Home;

use crate::crowd::{Measured, exponent, measure, run};
use crate::durable;
use crate::etcd::Etcd;
use crate::say;

/// Waiters and turns of each: few, the crowd that is compared with peers, many.
const CROWDS: [(usize, usize); 5] = [(4, 40), (8, 30), (16, 20), (32, 20), (100, 8)];

/// A repository in which sessions take one lock in turns.
pub(crate) struct Arena {
    home: Home,
    main: std::path::PathBuf,
}

impl Arena {
    pub(crate) fn new(dir: &Path) -> Self {
        let home = Home::new();
        let root = dir.join("repository");
        home.jvs(["init"]).arg(&root).run().ok();
        Arena { home, main: root.join("main") }
    }

    fn jvs(&self, worker: usize, words: &[&str]) -> Command {
        self.home.jvs(words).session(&format!("worker-{worker}")).cwd(&self.main).command()
    }

    /// Stands in line, takes the lock, gives it back. How long it waited.
    pub(crate) fn turn(&self, worker: usize) -> Duration {
        let start = Instant::now();
        run(self.jvs(worker, &["lock", "acquire", "--wait=5m", "--no-keeper", "--lease", "5m"]));
        let waited = start.elapsed();
        run(self.jvs(worker, &["lock", "release"]));
        waited
    }

    /// Takes the lock and keeps it.
    pub(crate) fn hold(&self) {
        run(self.jvs(usize::MAX, &["lock", "acquire", "--no-keeper", "--lease", "10m"]));
    }

    /// Gives it back.
    pub(crate) fn let_go(&self) {
        run(self.jvs(usize::MAX, &["lock", "release"]));
    }

    /// Every link of the audit log holds.
    pub(crate) fn verify(&self) {
        let verified = self.home.jvs(["audit", "--verify", "--json"]).cwd(&self.main);
        let answer = verified.run().ok().json();
        say(&format!("audit: {} events, every link holds", answer["data"]["events"]));
    }
}

/// The table of one directory.
pub(crate) fn on(dir: &Path) {
    let arena = Arena::new(dir);
    let (file, written) = (dir.join("flock"), dir.join("durable"));
    let flock = |_| {
        let mut command = Command::new("flock");
        command.arg(&file).arg("true");
        timed(command)
    };
    let durable = |_| timed(durable::under_flock(&file, &written));
    let etcd = Etcd::start(dir);
    say("| waiters × turns | | turns/s | longest wait / mean | CPU ms a turn |");
    say("|---|---|---|---|---|");
    row("1 × 60", "jvs, nobody else", &measure(1, 60, &|worker| arena.turn(worker)));
    let mut costs = Vec::new();
    for (workers, turns) in CROWDS {
        let crowd = format!("{workers} × {turns}");
        let jvs = measure(workers, turns, &|worker| arena.turn(worker));
        row(&crowd, "`jvs lock acquire --wait` + `release`", &jvs);
        costs.push((workers, jvs.cpu_ms_a_turn()));
        let by_flock = measure(workers, turns, &flock);
        row(&crowd, "`flock FILE true`", &by_flock);
        let to_flock = jvs.per_second() / by_flock.per_second();
        say(&format!("| | of flock's turns/s | {to_flock:.2} | | |"));
        let as_durable = measure(workers, turns, &durable);
        row(&crowd, "`flock`, and our fsyncs under it", &as_durable);
        let to_durable = jvs.per_second() / as_durable.per_second();
        say(&format!("| | of its turns/s | {to_durable:.2} | | |"));
        if let Some(etcd) = etcd.as_ref().filter(|_| workers == 32) {
            let by_etcd = measure(workers, turns / 4, &|_| etcd.turn());
            row(&format!("{workers} × {}", turns / 4), "`etcdctl lock x true`", &by_etcd);
            let to_etcd = jvs.per_second() / by_etcd.per_second();
            say(&format!("| | of etcd's turns/s | {to_etcd:.2} | | |"));
        }
    }
    let grows = exponent(costs[0], costs[costs.len() - 1]);
    say(&format!("CPU a turn grows with the power {grows:.2} of the waiters, from 4 to 100"));
    arena.verify();
}

fn timed(command: Command) -> Duration {
    let start = Instant::now();
    run(command);
    start.elapsed()
}

/// One row of a table.
pub(crate) fn row(crowd: &str, what: &str, measured: &Measured) {
    let (turns, cpu) = (measured.per_second(), measured.cpu_ms_a_turn());
    let longest = measured.longest_to_mean();
    say(&format!("| {crowd} | {what} | {turns:.0} | {longest:.2} | {cpu:.1} |"));
}
