//! What was tried and what came of it, as a page of text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Wish;
use super::book::{Line, Outcome};
use super::check::Found;

/// The report.
pub(super) fn report(wish: &Wish, lines: &[Line], found: &Found) -> String {
    let (mut verbs, mut codes, mut faults) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let (mut told, mut snapshots, mut unknown, mut runs) = (0, 0, 0, 0);
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines {
        match line {
            Line::Did(entry) => {
                told += 1;
                snapshots += usize::from(entry.told.snapshot.is_some());
                let verb = verb(&entry.words);
                let outcome = match &entry.outcome {
                    Outcome::Ok => "ok",
                    Outcome::Failed(code) => code.as_str(),
                    Outcome::Unknown(_) => "unknown",
                    Outcome::Hung => "hung",
                    Outcome::Broke(_) => "broke",
                };
                unknown += usize::from(outcome == "unknown");
                let counts: &mut (usize, usize) = verbs.entry(verb).or_default();
                counts.0 += 1;
                counts.1 += usize::from(outcome == "ok");
                *codes.entry(outcome).or_insert(0) += 1;
                let token = entry.told.granted.or(entry.told.under).unwrap_or(0);
                let known = highest.entry(&entry.worktree).or_default();
                *known = token.max(*known);
            }
            Line::Fault(fault) => *faults.entry(fault.kind.as_str()).or_insert(0) += 1,
            Line::Ran(_) => runs += 1,
            _ => {}
        }
    }
    let load = fs_err::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut page = format!(
        "{:?}, {} hosts, {} workers, {} s, seed {}\n{told} operations, {} faults, {} tokens, \
         {snapshots} snapshots, {runs} runs, {unknown} unknown outcomes, {} violations; \
         {} pairs compared, {} excused; load {load}",
        wish.kind,
        wish.hosts,
        wish.workers,
        wish.time.as_secs(),
        wish.seed,
        faults.values().sum::<i32>(),
        highest.values().sum::<u64>(),
        found.violations.len(),
        found.compared,
        found.excused,
    );
    let _ = writeln!(page, "faults: {}", list(faults.iter()));
    let _ = writeln!(page, "answers: {}", list(codes.iter()));
    let each = verbs.iter().map(|(verb, (all, ok))| (verb, format!("{ok}/{all}")));
    let _ = writeln!(page, "ok of all: {}", list(each));
    for violation in &found.violations {
        let _ = writeln!(page, "VIOLATION {violation}");
    }
    page
}

/// The words of a command that say what it is.
fn verb(words: &str) -> String {
    let groups = ["lock", "worktree", "session", "config"];
    let mut words = words.split(' ');
    let first = words.next().unwrap_or_default();
    let second = words.next().filter(|_| groups.contains(&first));
    second.map_or(first.to_owned(), |second| format!("{first} {second}"))
}

fn list<K: std::fmt::Display, V: std::fmt::Display>(of: impl Iterator<Item = (K, V)>) -> String {
    of.map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", ")
}
