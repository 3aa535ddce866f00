//! The torture of one repository, from its plan to its verdict.

pub(crate) mod ask;
mod beat;
pub(crate) mod book;
mod check;
mod engine;
mod ground;
mod host;
pub(crate) mod nemesis;
mod proxy;
mod report;
mod survey;
mod worker;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::clock::boot_ms;
use book::{Book, Line};
use worker::Worker;

pub use beat::beat;
pub use engine::Engine;
pub(crate) use ground::Ground;
pub use ground::Kind;
pub(crate) use host::{Host, TAG};
pub(crate) use worker::settle;

/// Worktrees that are there from beginning to end.
const CALM: &str = "main";
/// Where whoever may overrule others does so.
const ROUGH: &str = "rough";
/// Where several write at once.
const OPEN: &str = "open";

/// What is asked for.
#[derive(Debug)]
pub struct Wish {
    /// Where the repository is.
    pub kind: Kind,
    /// How long the nemesis is at work.
    pub time: Duration,
    /// What repeats the plan.
    pub seed: u64,
    /// How many mounts or hosts.
    pub hosts: usize,
    /// How many sessions work at once.
    pub workers: usize,
    /// This program, which the commands under `jvs run` are.
    pub program: PathBuf,
    /// Where the book is kept, if it is to be kept.
    pub keep: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug)]
pub struct Verdict {
    /// What was tried, in words.
    pub report: String,
    /// What must not be; empty if all is well.
    pub violations: Vec<String>,
    /// How many commands were answered.
    pub operations: usize,
    /// How many faults were made.
    pub faults: usize,
    /// How many pairs of holds and of runs were compared.
    pub compared: usize,
}

/// Tortures a repository, or returns nothing where this machine cannot.
#[must_use]
pub fn torture(wish: &Wish) -> Option<Verdict> {
    let ground = Ground::lay(wish.kind, wish.hosts)?;
    let dir = tempfile::Builder::new().prefix("jvs-torture-").tempdir().expect("a directory");
    let kept = wish.keep.clone().unwrap_or_else(|| dir.path().join("book"));
    fs_err::create_dir_all(&kept).expect("a directory for the book");
    let book = Book::create(&kept, &wish.program);
    let hosts: Vec<Host> = (0..wish.hosts).map(|n| Host::new(n, &ground, dir.path())).collect();
    worker::settle(&hosts[0], &book);

    let stop = AtomicBool::new(false);
    let plan = nemesis::plan(wish, &ground);
    thread::scope(|scope| {
        let crowd: Vec<_> = (0..wish.workers)
            .map(|number| {
                let worker = Worker::new(number, wish, &hosts, &book, &stop);
                scope.spawn(move || worker.work())
            })
            .collect();
        nemesis::strike(wish, &plan, &ground, &hosts, &book);
        stop.store(true, Ordering::SeqCst);
        for worker in crowd {
            worker.join().expect("a worker does not panic");
        }
    });

    ground.heal();
    let ending = survey::end(&hosts, &ground, &book);
    book.write(&Line::Ending(ending));
    let lines = book.read();
    let found = check::check(&lines);
    let report = report::report(wish, &lines, &found);
    fs_err::write(kept.join("report.txt"), &report).expect("the report is kept");
    Some(Verdict {
        report,
        operations: lines.iter().filter(|line| matches!(line, Line::Did(_))).count(),
        faults: lines.iter().filter(|line| matches!(line, Line::Fault(_))).count(),
        compared: found.compared,
        violations: found.violations,
    })
}

/// Judges a book that was kept.
///
/// # Errors
/// If there is none.
pub fn judge(dir: &std::path::Path) -> std::io::Result<Vec<String>> {
    let lines = book::read(dir)?;
    Ok(check::check(&lines).violations)
}

/// When a time that begins now is over, in boot time.
fn in_ms(time: Duration) -> u64 {
    boot_ms() + u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
