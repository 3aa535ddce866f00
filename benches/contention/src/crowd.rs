//! Workers that take one lock in turns, all at once, and what that cost.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// What a crowd took.
pub(crate) struct Measured {
    /// Waits by worker.
    waits: Vec<Vec<Duration>>,
    total: Duration,
    /// Processor time of everything that was started, in milliseconds.
    cpu_ms: f64,
}

/// `workers` at once, each `turns` turns one after the other. A turn answers how long it
/// waited.
pub(crate) fn measure(
    workers: usize,
    turns: usize,
    turn: &(dyn Fn(usize) -> Duration + Sync),
) -> Measured {
    let start = Barrier::new(workers + 1);
    let cpu_before = cpu_of_children_ms();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|worker| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    (0..turns).map(|_| turn(worker)).collect::<Vec<_>>()
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        let waits: Vec<_> =
            workers.into_iter().map(|worker| worker.join().expect("a worker works")).collect();
        let total = began.elapsed();
        Measured { waits, total, cpu_ms: cpu_of_children_ms() - cpu_before }
    })
}

/// Runs a command to its end. Not through the kit, which looks only now and then whether
/// it has ended: a turn is shorter than that.
pub(crate) fn run(mut command: Command) {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().expect("it starts");
    assert!(status.success(), "{command:?}: {status}");
}

impl Measured {
    pub(crate) fn turns(&self) -> usize {
        self.waits.iter().map(Vec::len).sum()
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.turns() as f64 / self.total.as_secs_f64()
    }

    pub(crate) fn cpu_ms_a_turn(&self) -> f64 {
        self.cpu_ms / self.turns() as f64
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.total.as_secs_f64()
    }

    fn mean(&self) -> Duration {
        let all: Duration = self.waits.iter().flatten().sum();
        all / u32::try_from(self.turns()).expect("few")
    }

    /// The longest wait as a multiple of the mean.
    pub(crate) fn longest_to_mean(&self) -> f64 {
        let longest = self.waits.iter().flatten().max().copied().unwrap_or_default();
        longest.as_secs_f64() / self.mean().as_secs_f64()
    }
}

/// By which power of the number of waiters something grows between two measurements.
pub(crate) fn exponent((few, at_few): (usize, f64), (many, at_many): (usize, f64)) -> f64 {
    (at_many / at_few).ln() / (many as f64 / few as f64).ln()
}

/// Processor time of the children that were waited for.
fn cpu_of_children_ms() -> f64 {
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = fs_err::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let field = |n| fields.split_ascii_whitespace().nth(n).and_then(|f| f.parse::<f64>().ok());
    let ticks = field(13).zip(field(14)).map_or(0.0, |(user, system)| user + system);
    ticks * 1_000.0 / TICKS_A_SECOND
}
