//! Many processes, one lock: is the line fair, and what does it cost?
//!
//! 32 workers take the lock 20 times each with `jvs lock acquire --wait` and
//! give it back, every command a process of its own. In the same run the same
//! workers do the same with `flock(1)`, which promises no order and dies with
//! its host. Printed: how many acquisitions each worker got, the longest wait
//! against the mean, both totals, and what a turn costs against one that nobody
//! contends for.
//!
//! `cargo run --release -p jvs-bench-contention`, after `cargo build --release
//! -p jvs`.
//!
//! # Limitations
//! One host. What a second mount adds is the time until it looks again, which is
//! a setting (half a second for the first in line) and no measurement.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "measures real processes by the wall and prints what it found"
)]

use std::process::{Command, ExitCode};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use jvs_kit::live::home::Home;
use jvs_kit::live::process::run;

const WORKERS: usize = 32;
const TURNS: usize = 20;
const DEADLINE: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let home = Home::new();
    let dir = tempfile::tempdir().expect("a directory");
    home.jvs(["init", "r"]).cwd(dir.path()).run().ok();
    let main = dir.path().join("r/main");

    let pair = |worker: usize| {
        let session = format!("worker-{worker}");
        let start = Instant::now();
        home.jvs(["lock", "acquire", "--wait=5m", "--no-keeper", "--lease", "5m"])
            .session(&session)
            .cwd(&main)
            .deadline(DEADLINE)
            .run()
            .ok();
        let waited = start.elapsed();
        home.jvs(["lock", "release"]).session(&session).cwd(&main).run().ok();
        waited
    };
    let alone = measure(1, &pair);
    let jvs = measure(WORKERS, &pair);
    let file = dir.path().join("flock");
    let flock = measure(WORKERS, &|_| {
        let start = Instant::now();
        let mut command = Command::new("flock");
        command.arg(&file).arg("true");
        run(command, DEADLINE).ok();
        start.elapsed()
    });

    alone.print("jvs, nobody else");
    jvs.print("jvs lock acquire --wait");
    flock.print("flock(1)");
    println!("total: {:.1} x flock", jvs.total.as_secs_f64() / flock.total.as_secs_f64());
    println!("a turn in line: {:.2} x a turn without one", jvs.turn() / alone.turn());
    let answer = home.jvs(["audit", "--verify", "--json"]).cwd(&main).run().ok().json();
    println!("audit: {} events, every link holds", answer["data"]["events"]);
    let fair = jvs.longest().as_secs_f64() <= 2.0 * jvs.mean().as_secs_f64();
    let complete = jvs.waits.iter().all(|turns| turns.len() == TURNS);
    println!("every worker got its {TURNS}: {complete}; longest at most 2 x mean: {fair}");
    if fair && complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Measured {
    /// Waits by worker.
    waits: Vec<Vec<Duration>>,
    total: Duration,
}

/// All workers at once, each its turns one after the other.
fn measure(workers: usize, turn: &(dyn Fn(usize) -> Duration + Sync)) -> Measured {
    let start = Barrier::new(workers + 1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|worker| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    (0..TURNS).map(|_| turn(worker)).collect::<Vec<_>>()
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        let waits: Vec<_> =
            workers.into_iter().map(|worker| worker.join().expect("a worker works")).collect();
        Measured { waits, total: began.elapsed() }
    })
}

impl Measured {
    fn mean(&self) -> Duration {
        let all: Vec<_> = self.waits.iter().flatten().collect();
        all.iter().copied().sum::<Duration>() / u32::try_from(all.len()).expect("few")
    }

    fn longest(&self) -> Duration {
        self.waits.iter().flatten().copied().max().unwrap_or_default()
    }

    /// Milliseconds from one turn to the next.
    fn turn(&self) -> f64 {
        self.total.as_secs_f64() * 1_000.0 / (self.waits.len() * TURNS) as f64
    }

    fn print(&self, name: &str) {
        let (mean, longest) = (self.mean(), self.longest());
        println!(
            "{name}: {} x {TURNS} in {:.2} s ({:.2} ms each); wait mean {:.0} ms, longest {:.0} ms ({:.2} x)",
            self.waits.len(),
            self.total.as_secs_f64(),
            self.turn(),
            mean.as_secs_f64() * 1_000.0,
            longest.as_secs_f64() * 1_000.0,
            longest.as_secs_f64() / mean.as_secs_f64(),
        );
    }
}
