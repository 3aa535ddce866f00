//! A transcript is a text file of commands and of what they answered:
//!
//! ```text
//! # a remark
//! $ jvs worktree path main
//! DIR/r/main
//! $ jvs worktree path nowhere
//! ! error[E_NOT_FOUND]: …
//! = 3
//! ```
//!
//! `! ` marks standard error and `= N` an exit code other than 0; `> ` comes
//! before output that would look like one of these. A JSON document is shown
//! indented. What differs from run to run is a placeholder.
//! Each command is run by `sh` in a directory of its own; `cd` is remembered.
//!
//! To renew the answers after a wanted change: `JVS_BLESS=1 cargo test -p
//! jvs-suite --test cli`, then read the difference.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use jvs_kit::live::binary;
use jvs_kit::live::home::Home;
use jvs_kit::live::process::{DEADLINE, Outcome, run};
use jvs_repo::layout;
use serde_json::Value;

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/transcript")
}

/// Where the payloads are that agents' harnesses send.
fn payloads() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/payload")
}

/// The names of all transcripts.
pub(crate) fn on_disk() -> Vec<String> {
    let files = dir().read_dir().expect("the transcripts are there");
    let names = files.map(|file| file.expect("listed").path());
    names.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

/// Runs a transcript's commands and compares every answer.
#[track_caller]
pub(crate) fn play(name: &str) {
    let file = dir().join(format!("{name}.txt"));
    let expected = fs_err::read_to_string(&file).expect("the transcript can be read");
    let actual = Stage::new().replay(&expected);
    if std::env::var_os("JVS_BLESS").is_some() {
        fs_err::write(&file, actual).expect("the transcript can be written");
        return;
    }
    if let Some((line, (want, got))) =
        expected.lines().zip(actual.lines()).enumerate().find(|(_, (want, got))| want != got)
    {
        panic!("{name}.txt:{}\n  expected: {want}\n       got: {got}\n\n{actual}", line + 1);
    }
    assert_eq!(expected, actual, "{name}.txt: one is longer");
}

/// One user's home, and a directory in which the transcript plays.
pub(crate) struct Stage {
    home: Home,
    dir: tempfile::TempDir,
    cwd: PathBuf,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("jvs-cli-").tempdir().expect("a directory");
        let cwd = dir.path().canonicalize().expect("it has a path");
        Stage { home: Home::new(), dir, cwd }
    }

    pub(crate) fn replay(&mut self, transcript: &str) -> String {
        let mut actual = String::new();
        for line in transcript.lines() {
            let Some(command) = line.strip_prefix("$ ") else {
                if line.is_empty() || line.starts_with("# ") {
                    let _ = writeln!(actual, "{line}");
                }
                continue;
            };
            let _ = writeln!(actual, "{line}");
            if let Some(to) = command.strip_prefix("cd ") {
                self.cwd = self.cwd.join(to).canonicalize().expect("cd goes to a directory");
                continue;
            }
            actual += &self.answer(command);
        }
        actual
    }

    fn answer(&self, command: &str) -> String {
        let outcome = self.run(command);
        let mut answer = String::new();
        for line in indented(outcome.stdout()).lines() {
            let ambiguous = line.is_empty() || line.starts_with(['#', '$', '!', '=', '>']);
            let _ = writeln!(
                answer,
                "{}",
                format!("{}{line}", if ambiguous { "> " } else { "" }).trim_end()
            );
        }
        for line in outcome.stderr().lines() {
            let _ = writeln!(answer, "{}", format!("! {line}").trim_end());
        }
        if outcome.code() != 0 {
            let _ = writeln!(answer, "= {}", outcome.code());
        }
        self.with_placeholders(&answer)
    }

    fn run(&self, command: &str) -> Outcome {
        let program = binary::jvs();
        let bin = program.parent().expect("a program lies in a directory").display().to_string();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).current_dir(&self.cwd).env_clear();
        // The home's own variables; who and where is said, so that it is the
        // same on every machine; our program before any other `jvs`.
        for (key, value) in self.home.jvs([""; 0]).command().get_envs() {
            shell.env(key, value.expect("variables are set, not removed"));
        }
        shell.env("JVS_USER", "ann").env("JVS_ENVIRONMENT", "local");
        shell.env("PAYLOADS", payloads());
        shell.env("PATH", format!("{bin}:/usr/bin:/bin"));
        run(shell, DEADLINE)
    }

    fn with_placeholders(&self, text: &str) -> String {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let here = self.dir.path().canonicalize().expect("it has a path");
        let text = text
            .replace(&*here.to_string_lossy(), "DIR")
            .replace(&*self.home.home_dir().to_string_lossy(), "HOME")
            .replace(&*self.home.runtime_dir().to_string_lossy(), "RUN")
            .replace(&format!(" on {host} ("), " on HOST (")
            .replace(&format!(" on {host},"), " on HOST,")
            .replace(&format!(" on {host}\n"), " on HOST\n");
        placeholders(&text, &self.snapshots())
    }

    /// The random parts of the ids of all snapshots there are or were, by which short names
    /// of them are told from other words.
    fn snapshots(&self) -> Vec<String> {
        let below = |dir: &Path| -> Vec<PathBuf> {
            let entries = dir.read_dir().into_iter().flatten();
            entries.map(|entry| entry.expect("listed").path()).collect()
        };
        let repositories = below(self.dir.path());
        let all =
            repositories.iter().flat_map(|root| below(&root.join(layout::snapshots().as_str())));
        let names = all.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let random = |name: String| Some(name.split_once('-')?.1.get(..8)?.to_owned());
        names.filter_map(random).collect()
    }
}

/// A single JSON document as people can read it; anything else as it is.
fn indented(stdout: &str) -> String {
    let one_line = stdout.ends_with('\n') && stdout.lines().count() == 1;
    match serde_json::from_str::<Value>(stdout) {
        Ok(mut document) if one_line && document.is_object() => {
            hide(&mut document);
            format!("{document:#}\n")
        }
        _ => stdout.to_owned(),
    }
}

/// Members of a JSON document that differ from run to run or from machine to
/// machine, and are not text that gives itself away.
const HIDDEN: &[&str] = &[
    "created_boot_ms",
    "epoch",
    "evidence",
    "expired_since_ms",
    "gid",
    "host",
    "hostname",
    "mount_point",
    "new_uid",
    "old_uid",
    "phases_ms",
    "pid",
    "pid_namespace",
    "place",
    "time_namespace",
    "process_id",
    "remaining_ms",
    "renewed_boot_ms",
    "start_time",
    "stealable_in_ms",
    "terminal",
    "uid",
];

fn hide(document: &mut Value) {
    match document {
        Value::Object(members) => {
            let filesystem = members.contains_key("mount_point");
            for (key, value) in members {
                if HIDDEN.contains(&key.as_str()) || filesystem && key == "kind" {
                    *value = format!("<{key}>").into();
                } else {
                    hide(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}

/// Replaces what no two runs share: ids, times, processes, time left.
fn placeholders(text: &str, snapshots: &[String]) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let line = words(line, snapshots);
        let line = if line.starts_with("Lease of") { line } else { spans(&line) };
        out += &line;
    }
    out
}

fn words(line: &str, snapshots: &[String]) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-:._".contains(c);
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_word(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        out += before;
        if word.len() >= 6 && snapshots.iter().any(|random| random.starts_with(word)) {
            out += "<short>";
            rest = after;
            continue;
        }
        let is_number = word.bytes().all(|b| b.is_ascii_digit());
        out += match is_number {
            true if out.ends_with("process ") => "<pid>",
            true if out.ends_with("user id ") => "<uid>",
            _ => placeholder(word).unwrap_or(word),
        };
        rest = after;
    }
    out + rest
}

fn placeholder(word: &str) -> Option<&'static str> {
    let hex = |text: &str| text.bytes().all(|b| b"0123456789abcdef".contains(&b));
    let digits = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let groups: Vec<&str> = word.split('-').collect();
    if groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(|g| hex(g))
    {
        return Some("<uuid>");
    }
    let shape: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    if shape.trim_end_matches(':') == "0000-00-00T00:00:00.000Z" {
        return Some("<time>");
    }
    if word.starts_with("term:") {
        return Some("<terminal session>");
    }
    let parts: Vec<&str> = word.split(':').collect();
    if parts.len() == 4 && parts[2..].iter().all(digits) {
        return Some("<host:user:pid:start>");
    }
    if let [created, random] = groups.as_slice()
        && created.len() == 13
        && digits(created)
        && random.len() == 8
        && hex(random)
    {
        return Some("<snapshot>");
    }
    // A state of the register.
    if word.starts_with("2.") && word.split('.').count() == 12 {
        return Some("<state>");
    }
    match word.len() {
        16 if hex(word) => Some("<16 hex>"),
        24 if hex(word) => Some("<24 hex>"),
        32 if hex(word) => Some("<32 hex>"),
        64 if hex(word) => Some("<64 hex>"),
        _ => None,
    }
}

/// Hides lengths of time such as `47 ms` and `29 min 59 s`.
fn spans(line: &str) -> String {
    let is_number =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let unit_of = |word: &str| {
        let unit = word.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        ["ms", "s", "min", "h", "d"].contains(&unit).then(|| word[unit.len()..].to_owned())
    };
    let mut out: Vec<String> = Vec::new();
    let mut words = line.split(' ').peekable();
    while let Some(word) = words.next() {
        let number = word.strip_prefix('(').unwrap_or(word);
        let after = words.peek().and_then(|next| unit_of(next)).filter(|_| is_number(number));
        let Some(after) = after else {
            out.push(word.to_owned());
            continue;
        };
        words.next();
        match out.last_mut() {
            // The second of two units.
            Some(last) if number == word && last.ends_with("<span>") => *last += &after,
            _ => out.push(format!("{}<span>{after}", if number == word { "" } else { "(" })),
        }
    }
    out.join(" ")
}

#[test]
fn only_what_differs_from_run_to_run_is_hidden() {
    let text = "id 123e4567-e89b-12d3-a456-426614174000 at 2025-11-16T09:00:00.123Z in r-1, 30s.";
    assert_eq!(placeholders(text, &[]), "id <uuid> at <time> in r-1, 30s.");
    let text = "by s (h:u:1:2) for 1 min 59 s; ends in 1.9 s (12 ms ago)\nLease of 2.0 s\n";
    let hidden =
        "by s (<host:user:pid:start>) for <span>; ends in <span> (<span> ago)\nLease of 2.0 s\n";
    assert_eq!(placeholders(text, &[]), hidden);
}
