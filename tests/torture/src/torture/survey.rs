//! What is there in the end, once nothing fails any more: read from the files, with
//! none of the code that wrote them.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use jvs_repo::layout::CONTROL_DIR;
use jvs_repo::record::ledger::{self, Tombstone};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ask::{Answer, Asker};
use super::book::{Book, Line, Outcome};
use super::ground::Ground;
use super::host::Host;
use super::worker::{MARKS, mark_text};
use super::{CALM, OPEN, ROUGH, nemesis};
use crate::clock::boot_ms;

/// What is there in the end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ending {
    /// Who came afterwards, alone: where, how long it took, and what came of it.
    pub(crate) newcomers: Vec<Newcomer>,
    /// Every worktree that is there, and the entries of its register.
    pub(crate) registers: BTreeMap<String, Vec<String>>,
    pub(crate) snapshots: Vec<Snapshot>,
    /// Commands that must succeed when all is well, and what they complained about.
    pub(crate) examined: Vec<(String, Outcome, String)>,
    /// Files and processes that nobody needs any more.
    pub(crate) left: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Newcomer {
    pub(crate) host: usize,
    pub(crate) worktree: String,
    pub(crate) took_ms: u64,
    pub(crate) outcome: Outcome,
}

/// A snapshot or the tombstone of one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    pub(crate) worktree: String,
    pub(crate) parent: Option<String>,
    /// Nothing where only a ledger knows of it.
    #[serde(default)]
    pub(crate) note: String,
    pub(crate) epoch: u64,
    pub(crate) token: u64,
    pub(crate) seq: u64,
    pub(crate) is_ready: bool,
    pub(crate) is_gone: bool,
    /// Whose marks are in it, and what they say.
    pub(crate) marks: BTreeMap<String, String>,
}

const HELD: [&str; 2] = [CALM, ROUGH];

/// Waits until everybody is gone, lets newcomers in, has the repository examined, and
/// looks.
pub(crate) fn end(hosts: &[Host], ground: &Ground, book: &Book) -> Ending {
    let mut ending = Ending::default();
    let janitor = Asker { host: &hosts[0], book, session: "janitor".into(), is_root: true };
    for host in hosts {
        for worktree in HELD {
            ending.newcomers.push(newcomer(&Asker { host, ..janitor.clone() }, worktree));
        }
    }
    let there = examine(&janitor, &["worktree", "list"], &mut ending);
    for name in names(&there).iter().filter(|name| ![CALM, ROUGH, OPEN].contains(&name.as_str())) {
        // Somebody who was killed in the middle of it has it until a lease is over.
        let had = janitor.ask(name, &["lock", "acquire", "--wait=60s", "--no-keeper"]);
        book.write(&Line::Did(had.entry));
        remove(&janitor, hosts, name, &mut ending);
    }
    ending.left = processes_left(&hosts[0]);
    examine(&janitor, &["gc", "--keep-last", "8", "--keep-within", "0s"], &mut ending);
    // What is repaired is no failure; what is not is found by the next one. That a waiter
    // is dead can be proven only where it was alive.
    repair(hosts, &janitor);
    for words in [&["doctor", "--strict"], &["audit", "--verify"], &["verify", "--all"]] {
        examine(&janitor, words, &mut ending);
    }
    let control = ground.place(0).join("repository").join(CONTROL_DIR);
    ending.left.extend(files_left(&control));
    book.keep(&control);
    ending.registers = registers(&control);
    ending.snapshots = snapshots(&control);
    ending
}

/// Removes a worktree. One that was killed while it was renamed or removed is settled by
/// doctor first, if only that is in the way.
fn remove(janitor: &Asker<'_>, hosts: &[Host], name: &str, ending: &mut Ending) {
    let words = ["worktree", "remove", name, "--force"];
    let answer = janitor.ask(CALM, &words);
    if answer.entry.outcome != Outcome::Failed("E_NOT_FOUND".into()) {
        record(janitor, &words, answer, ending);
        return;
    }
    janitor.book.write(&Line::Did(answer.entry));
    repair(hosts, janitor);
    let there = janitor.ask(CALM, &["worktree", "list"]);
    if names(&there.data).iter().any(|it| it == name) {
        examine(janitor, &words, ending);
    }
}

fn repair(hosts: &[Host], janitor: &Asker<'_>) {
    for host in hosts {
        let _ = Asker { host, ..janitor.clone() }.ask(CALM, &["doctor", "--strict", "--repair"]);
    }
}

/// Has something done that must succeed, and returns what was answered.
fn examine(janitor: &Asker<'_>, words: &[&str], ending: &mut Ending) -> Value {
    record(janitor, words, janitor.ask(CALM, words), ending)
}

fn record(janitor: &Asker<'_>, words: &[&str], answer: Answer, ending: &mut Ending) -> Value {
    let outcome = answer.entry.outcome.clone();
    let complaint = match outcome {
        Outcome::Ok => String::new(),
        _ => format!("{}\n{}", answer.entry.message, complaints(&answer.data)),
    };
    janitor.book.write(&Line::Did(answer.entry));
    ending.examined.push((words.join(" "), outcome, complaint));
    answer.data
}

fn newcomer(asker: &Asker<'_>, worktree: &str) -> Newcomer {
    let words = ["lock", "acquire", "--wait=120s", "--no-keeper", "--lease", "5s"];
    let begun = boot_ms();
    let mut answer = asker.ask(worktree, &words);
    let outcome = answer.entry.outcome.clone();
    // What it holds is not compared: it gives it back at once.
    answer.entry.told.mark = None;
    asker.book.write(&Line::Did(answer.entry));
    let released = asker.ask(worktree, &["lock", "release"]);
    asker.book.write(&Line::Did(released.entry));
    let host = asker.host.number();
    Newcomer { host, worktree: worktree.to_owned(), took_ms: boot_ms() - begun, outcome }
}

fn names(list: &Value) -> Vec<String> {
    let rows = list["worktrees"].as_array().cloned().unwrap_or_default();
    let name = |row: &Value| {
        let name = row["name"].as_str().or_else(|| row["worktree"].as_str());
        name.or_else(|| row.as_str()).map(str::to_owned)
    };
    rows.iter().filter_map(name).collect()
}

/// What an examination found, without what is said of every machine like this one.
fn complaints(data: &Value) -> String {
    let found = data["findings"].as_array().or_else(|| data["problems"].as_array());
    let Some(found) = found else { return data.to_string().chars().take(2000).collect() };
    let worth = found.iter().filter(|finding| finding["severity"] != "notice");
    worth.map(|finding| finding.to_string()).collect::<Vec<_>>().join("\n")
}

/// Keepers end with the time that they were given; nothing else may be there.
fn processes_left(host: &Host) -> Vec<String> {
    let end = boot_ms() + 20_000;
    loop {
        let left = nemesis::tagged(host.tag());
        if left.is_empty() || boot_ms() > end {
            let said = |one: &nemesis::Tagged| {
                format!("process {}: {}", one.pid.as_raw_nonzero(), one.words.join(" "))
            };
            return left.iter().map(said).collect();
        }
        thread::sleep(Duration::from_millis(200));
    }
}

fn entries(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs_err::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn files_left(control: &Path) -> Vec<String> {
    let mut left = Vec::new();
    left.extend(
        entries(&control.join("staging")).into_iter().map(|name| format!("staging/{name}")),
    );
    // Not tags: whose tag was being written cannot be proven dead, and doctor says so.
    for part in ["", "locks", "snapshots", "worktrees", "audit"] {
        let odd = |name: &String| name.contains(".tmp") || name.contains(".queue");
        let there = entries(&control.join(part)).into_iter().filter(odd);
        left.extend(
            there
                .filter(|name| {
                    // A line in which nobody stands is there for the next one.
                    !name.contains(".queue") || !entries(&control.join(part).join(name)).is_empty()
                })
                .map(|name| format!("{part}/{name}")),
        );
    }
    left
}

fn registers(control: &Path) -> BTreeMap<String, Vec<String>> {
    let worktrees = entries(&control.join("worktrees"));
    let names = worktrees.iter().filter_map(|name| name.strip_suffix(".json"));
    let register = |name: &str| {
        let states = entries(&control.join("locks").join(format!("{name}.fence")));
        (name.to_owned(), states.into_iter().filter(|state| !state.starts_with('.')).collect())
    };
    names.map(register).collect()
}

fn snapshots(control: &Path) -> Vec<Snapshot> {
    let dir = control.join("snapshots");
    let mut found = Vec::new();
    for name in entries(&dir) {
        if name.starts_with("ledger-") {
            let text = fs_err::read(dir.join(&name)).unwrap_or_default();
            found.extend(ledger::parse(&text).into_iter().flatten().map(collected));
            continue;
        }
        let is_gone = name.ends_with(".gone");
        let path = dir.join(&name);
        let file = if is_gone { path.clone() } else { path.join("descriptor.json") };
        let text = fs_err::read(&file).unwrap_or_default();
        let Ok(told) = serde_json::from_slice::<Value>(&text) else { continue };
        let text = |field: &str| told[field].as_str().unwrap_or_default().to_owned();
        let epoch = text("epoch");
        found.push(Snapshot {
            id: text("snapshot_id"),
            worktree: text("worktree_id"),
            parent: told["parent"].as_str().map(str::to_owned),
            note: text("note"),
            epoch: epoch.split('-').next().and_then(|n| n.parse().ok()).unwrap_or(0),
            token: told["fencing_token"].as_u64().unwrap_or(0),
            seq: told["commit_seq"].as_u64().unwrap_or(0),
            is_ready: !is_gone && path.join("READY").exists(),
            is_gone,
            marks: marks(&path.join("payload").join(MARKS)),
        });
    }
    found
}

/// One of many that were collected; what its note was is not kept.
fn collected(one: Tombstone) -> Snapshot {
    Snapshot {
        id: one.snapshot_id.to_string(),
        worktree: one.worktree_id.to_string(),
        parent: one.parent.map(|id| id.to_string()),
        epoch: u64::from(one.term.epoch.counter),
        token: one.term.token.0,
        seq: one.commit_seq.0,
        is_gone: true,
        ..Snapshot::default()
    }
}

fn marks(dir: &Path) -> BTreeMap<String, String> {
    let read = |name: String| {
        let text = fs_err::read_to_string(dir.join(&name)).unwrap_or_default();
        let note = text.lines().next().unwrap_or_default().to_owned();
        let is_whole = !text.is_empty() && mark_text(&note) == text;
        (name, if is_whole { note } else { format!("torn: {} bytes of {note}", text.len()) })
    };
    entries(dir).into_iter().map(read).collect()
}
