//! The program that a user wants run for each change of a lock.
//!
//! It is named in the user's own configuration, and nowhere else: nothing in a repository
//! makes anybody run anything.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use toml_edit::Document;

use crate::answer::events::LockChange;
use crate::context::Context;
use crate::fail::{Failure, WrongUsage};
use crate::render::AnswerStream;
use crate::trust;

/// How long it may take for one change.
const ENDS_WITHIN_MS: u32 = 10_000;
/// How often it is asked whether it has ended.
const ASKED_EVERY: Duration = Duration::from_millis(5);

const NAME_ONE: &str =
    "write in your own configuration, ~/.config/jvs/config.toml: events.exec = \"/the/program\"";

/// A program with its words.
pub(super) struct Program {
    words: Vec<String>,
    repository: String,
}

impl Program {
    /// The one that the user's configuration names.
    pub(super) fn of_user(context: &Context<'_>) -> Result<Self, Failure> {
        let text = trust::read_own_configuration(context.env());
        let wrong = |why: String| Failure::from(WrongUsage::new(why, NAME_ONE));
        let text = text.map_err(wrong)?;
        let words = words_in(text.as_deref().unwrap_or_default());
        let words = words.map_err(|why| wrong(why.to_owned()))?;
        Ok(Program { words, repository: crate::render::shown(&context.root()?) })
    }

    /// Runs it for one change. What goes wrong is told, and is nobody else's trouble.
    pub(super) fn run(&self, change: &LockChange, line: &str, stream: AnswerStream) {
        if let Err(why) = self.run_once(change, line) {
            let program = &self.words[0];
            stream.complain(&format!("{program} for this change of {}: {why}", change.worktree));
        }
    }

    fn run_once(&self, change: &LockChange, line: &str) -> Result<(), String> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        let kind = json!(change.kind);
        command.env("JVS_EVENT", kind.as_str().unwrap_or_default());
        command.env("JVS_EVENT_WORKTREE", change.worktree.as_str());
        command.env("JVS_EVENT_REPOSITORY", &self.repository);
        // It acts on no hold that somebody else handed down.
        for name in ["JVS_WORKTREE", "JVS_FENCING_TOKEN", "JVS_FENCING_EPOCH", "JVS_FENCING_TOKENS"]
        {
            command.env_remove(name);
        }
        // The answer of this command is its own.
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.process_group(0);
        jvs_kernel::program::end_with_this_process(&mut command);
        let mut child = command.spawn().map_err(|error| format!("it cannot be run: {error}"))?;
        // A line fits into a pipe that nobody has read from yet, and one who does not want it is
        // no trouble.
        if let Some(mut input) = child.stdin.take() {
            let _ = input.write_all(line.as_bytes());
        }
        ended(&mut child)
    }
}

/// Waits for its end, for as long as it may take.
fn ended(child: &mut Child) -> Result<(), String> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let rounds = u128::from(ENDS_WITHIN_MS) / ASKED_EVERY.as_millis();
    for _ in 0..rounds {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(ASKED_EVERY),
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it failed: {status}")),
            Err(error) => return Err(error.to_string()),
        }
    }
    // It was not waited for yet, so the pid is still its own.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    Err(format!("it did not end within {} s, and was killed", ENDS_WITHIN_MS / 1000))
}

/// The words under `events.exec`: one program by its absolute path, or a list that begins
/// with one.
fn words_in(text: &str) -> Result<Vec<String>, &'static str> {
    let document = Document::parse(text).map_err(|_| "your configuration is no TOML")?;
    let none = "your configuration names no program for events";
    let exec = document.get("events").and_then(|events| events.get("exec")).ok_or(none)?;
    let words: Option<Vec<String>> = match (exec.as_str(), exec.as_array()) {
        (Some(program), _) => Some(vec![program.to_owned()]),
        (_, Some(list)) => list.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    let words = words.ok_or("events.exec in your configuration is no text and no list of text")?;
    let absolute = words.first().is_some_and(|program| program.starts_with('/'));
    let plain = words.iter().all(|word| !word.contains('\0'));
    match absolute && plain {
        true => Ok(words),
        false => Err("events.exec in your configuration does not begin with the path of a program"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_by_its_path() {
        for (text, words) in [
            ("[events]\nexec = \"/bin/true\"", vec!["/bin/true"]),
            ("[events]\nexec = [\"/bin/echo\", \"a b\"]", vec!["/bin/echo", "a b"]),
        ] {
            assert_eq!(words_in(text).expect("words"), words);
        }
        for text in [
            "",
            "[events]",
            "events = 1",
            "[events]\nexec = \"true\"",
            "[events]\nexec = \"hooks/x\"",
            "[events]\nexec = []",
            "[events]\nexec = [\"/bin/echo\", 1]",
            "[events]\nexec = true",
            "[events]\nexec = \"/bin/\\u0000\"",
            "[events",
        ] {
            assert!(words_in(text).is_err(), "{text}");
        }
    }
}
