//! `jvs audit --tla DIR`: what the logs tell, for a checker that shares no code with this
//! one: TLC, with the register's specification in TLA+.
//!
//! Invariants: a directory that has anything else in it is left alone; a part has so many
//! items at most, however long a log is; no name is written as anything but plain letters.

use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use jvs_lock::history::{self, Behaviour, Said, TraceItem};
use jvs_lock::{Hold, NameFormat, State};
use jvs_repo::code::{Code, Coded};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_repo::repo::Repo;
use jvs_repo::store::{PosixStore, RepoPath, Store};

use super::verify::witness;
use crate::answer;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::{Done, shown};

/// The checker reads a part as a whole, so it is small.
const ITEMS_IN_A_PART: usize = 2_000;

/// What is written beside the parts.
const FIXED: [(&str, &str); 4] = [
    ("README.txt", include_str!("tla/README.txt")),
    ("Register.tla", include_str!("tla/Register.tla")),
    ("Trace.cfg", include_str!("tla/Trace.cfg")),
    ("Trace.tla", include_str!("tla/Trace.tla")),
];

pub(super) fn run(context: &Context<'_>, repo: &Repo, dir: &Path) -> Result<Done, Failure> {
    let only = context.given_worktree()?;
    let (registers, logs) = witness(context, repo)?;
    let report = history::check(&registers, &logs);
    let mut told = history::behaviours(&registers, &logs, &report);
    told.retain(|one| only.as_ref().is_none_or(|only| *only == one.worktree));

    let stuck = |error| Stuck::new(format!("write a trace to {}", shown(dir)), error);
    let store = into_dir(dir).map_err(stuck)?;
    let there = names_in(&store).map_err(stuck)?;
    if let Some(name) = there.iter().find(|name| !is_ours(name)) {
        return Err(NotOurs { dir: dir.to_owned(), name: name.clone() }.into());
    }
    let parts = write(&store, &there, &told).map_err(stuck)?;

    let items: usize = told.iter().map(|one| one.items.len()).sum();
    let worktrees: Vec<&WorktreeName> = told.iter().map(|one| &one.worktree).collect();
    let text = format!(
        "Wrote {items} items of {} worktrees to {} ({parts} parts); its README.txt says how to \
         check them\n",
        worktrees.len(),
        shown(dir),
    );
    let worktrees = worktrees.into_iter().cloned().collect();
    let (dir, dir_bytes) = answer::path(dir);
    let done = Done::new(&answer::audit::Trace { worktrees, items, parts, dir, dir_bytes })
        .with_text(text);
    Ok(match report.first_bad_link() {
        Some(_) => {
            done.with_warning("the hash chains do not hold, whatever is in the trace".into())
        }
        None => done,
    })
}

fn into_dir(dir: &Path) -> io::Result<PosixStore> {
    match std::fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => PosixStore::open(dir),
    }
}

fn names_in(store: &PosixStore) -> io::Result<Vec<String>> {
    let entries = store.list(&RepoPath::root())?;
    Ok(entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect())
}

/// Does an earlier trace have a file of this name?
fn is_ours(name: &str) -> bool {
    let number = name.strip_prefix("Part").and_then(|rest| rest.strip_suffix(".tla"));
    let is_part = number.is_some_and(|it| it.len() >= 4 && it.bytes().all(|b| b.is_ascii_digit()));
    is_part || name == "Data.tla" || FIXED.iter().any(|(fixed, _)| *fixed == name)
}

/// Writes all of it, and answers how many parts there are.
fn write(store: &PosixStore, there: &[String], told: &[Behaviour]) -> io::Result<usize> {
    let put = |name: &str, text: &str| {
        let at = |name: &str| RepoPath::root().child(name);
        let tmp = format!("{name}.tmp-{}", std::process::id());
        store.write_over(&at(&tmp)?, &at(name)?, text.as_bytes())
    };
    for name in there.iter().filter(|name| name.starts_with("Part")) {
        store.remove(&RepoPath::root().child(name)?)?;
    }
    for (name, text) in FIXED {
        put(name, text)?;
    }
    let mut part = Part::default();
    let mut parts = 0;
    let mut finish = |part: &mut Part| {
        parts += 1;
        put(&format!("Part{parts:04}.tla"), &std::mem::take(part).module())
    };
    for behaviour in told {
        let mut first = behaviour.first;
        let mut rest = behaviour.items.as_slice();
        while !rest.is_empty() {
            if part.items >= ITEMS_IN_A_PART {
                finish(&mut part)?;
            }
            let (now, later) = rest.split_at(rest.len().min(ITEMS_IN_A_PART - part.items));
            part.add(&behaviour.worktree, first, now);
            let moved = now.iter().rfind(|item| moves(item.said));
            first = moved.map_or(first, |item| item.to);
            rest = later;
        }
    }
    finish(&mut part)?;
    Ok(parts)
}

/// Is the register elsewhere after such an item?
fn moves(said: Said) -> bool {
    matches!(said, Said::Step | Said::Untold | Said::Shows)
}

/// One module: so many items, of one worktree or several.
#[derive(Default)]
struct Part {
    histories: Vec<String>,
    items: usize,
}

impl Part {
    fn add(&mut self, worktree: &WorktreeName, first: Option<State>, items: &[TraceItem]) {
        let mut states = States::default();
        let first = states.index(first);
        let items_of: Vec<String> = items.iter().map(|item| states.item(item)).collect();
        self.items += items.len();
        self.histories.push(format!(
            "<<{}, <<\n{}>>,\n{first}, <<\n{}>>>>",
            word(worktree.as_str()),
            states.lines.join(",\n"),
            items_of.join(",\n"),
        ));
    }

    fn module(self) -> String {
        let histories = self.histories.join(",\n");
        format!("---- MODULE Data ----\nHistories == <<\n{histories}\n>>\n====\n")
    }
}

/// The states of one history, each written once.
#[derive(Default)]
struct States {
    known: HashMap<State, usize>,
    lines: Vec<String>,
}

impl States {
    /// Which one it is, counted from 1; 0 is none.
    fn index(&mut self, state: Option<State>) -> usize {
        let Some(state) = state else { return 0 };
        let (known, lines) = (&mut self.known, &mut self.lines);
        *known.entry(state).or_insert_with(|| {
            lines.push(spelled(&state));
            lines.len()
        })
    }

    fn item(&mut self, item: &TraceItem) -> String {
        let said = match item.said {
            Said::Lost => "lost",
            Said::Tried => "tried",
            Said::Step if item.from.is_none() => "born",
            Said::Step => "step",
            Said::Untold => "untold",
            Said::Shows => "shows",
            Said::Unreadable => "unreadable",
        };
        let kind = item.kind.map_or_else(String::new, |kind| kind.to_string());
        let place = item.place.map_or_else(|| "the register".to_owned(), |it| it.to_string());
        let (from, to) = (self.index(item.from), self.index(item.to));
        format!("<<{}, {}, {from}, {to}, {}>>", word(said), word(&kind), word(&place))
    }
}

fn spelled(state: &State) -> String {
    let format = match state.format {
        NameFormat::One => 1,
        NameFormat::Two => 2,
    };
    let (hold, claim) = match &state.hold {
        Hold::Free => ("free", None),
        Hold::Held(claim) => ("held", Some(claim)),
        Hold::Frozen(claim) => ("frozen", Some(claim)),
        Hold::Retired => ("retired", None),
    };
    let name = |text: Option<String>| word(text.as_deref().unwrap_or("-"));
    format!(
        "<<{format}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}>>",
        number(state.epoch.counter.into()),
        word(&format!("{:04x}", state.epoch.salt)),
        number(state.token.0),
        number(state.seq.0),
        word(hold),
        name(claim.map(|claim| claim.holder.to_string())),
        number(claim.map_or(0, |claim| claim.lease_ms)),
        number(claim.map_or(0, |claim| claim.expires.0)),
        number(state.generation.0),
        name(state.head.map(|head| head.to_string())),
        word(&state.chain.to_string()),
        word(&state.op.to_string()),
    )
}

/// A number as its digits to the base of 10⁹: the checker's own numbers have 32 bits.
fn number(n: u64) -> String {
    const BASE: u64 = 1_000_000_000;
    format!("<<{}, {}, {}>>", n / BASE / BASE, n / BASE % BASE, n % BASE)
}

/// A string. What might end it, or what the checker cannot read, is written as its bytes.
fn word(text: &str) -> String {
    let mut word = String::from("\"");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b" ._-".contains(&byte) {
            word.push(char::from(byte));
        } else {
            let _ = write!(word, "%{byte:02X}");
        }
    }
    word.push('"');
    word
}

/// A directory with something else in it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} has '{}' in it, which is not part of a trace; nothing was written",
    shown(dir),
    jvs_repo::name::ShownName::new(name)
)]
struct NotOurs {
    dir: PathBuf,
    name: String,
}

impl Coded for NotOurs {
    fn code(&self) -> Code {
        Code::Exists
    }

    fn next(&self) -> Option<Next> {
        Some("name a directory that is empty or does not exist".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_digits_that_the_checker_has() {
        assert_eq!(number(0), "<<0, 0, 0>>");
        assert_eq!(number(1_999_999_999), "<<0, 1, 999999999>>");
        assert_eq!(number(u64::MAX), "<<18, 446744073, 709551615>>");
    }

    #[test]
    fn no_name_ends_the_string_that_it_is_in() {
        assert_eq!(word("main-1.x_y"), "\"main-1.x_y\"");
        assert_eq!(word("a\"b\\c\n\u{e9}"), "\"a%22b%5Cc%0A%C3%A9\"");
    }

    #[test]
    fn only_files_of_a_trace_are_ours() {
        for ours in ["Part0001.tla", "Part12345.tla", "Trace.tla", "Trace.cfg", "README.txt"] {
            assert!(is_ours(ours), "{ours}");
        }
        for other in ["Part1.tla", "Part00x1.tla", "Part0001.tla.old", "Lock.tla", "notes", ""] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
