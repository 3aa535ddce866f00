//! One call of the command `jvs`, which decides and does everything: words in, one JSON
//! document out.
//!
//! A command that fails, crashes or hangs takes nothing else along. It is bound to this
//! process: it ends with it, and so do the locks that it takes.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::handle::Handle;

/// Longest answer that is passed on.
const ANSWER_MAX: u64 = 8 * 1024 * 1024;
/// As much of a command's complaints as is looked at.
const COMPLAINT_MAX: u64 = 4096;
/// How long a command may take to end when it is asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long it may take when it is made to.
const DIES_WITHIN: Duration = Duration::from_secs(2);

/// What the command is told by the environment, and must not inherit from whoever started
/// this server: the term of a hold comes from a handle and from nowhere else.
const HANDED_DOWN: [&str; 4] =
    ["JVS_WORKTREE", "JVS_FENCING_TOKEN", "JVS_FENCING_EPOCH", "JVS_FENCING_TOKENS"];

/// The command, and what is the same in every call of it.
#[derive(Debug, Clone)]
pub(crate) struct Jvs {
    pub(crate) program: PathBuf,
    pub(crate) repo: Option<PathBuf>,
    /// The directory that this server was started in.
    pub(crate) here: PathBuf,
    pub(crate) session: String,
}

/// What the command answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CommandAnswer {
    /// It was done. What is said besides is in `warnings`.
    Done { data: Value, warnings: Vec<Value> },
    /// It was not: a code, a sentence, a hint.
    Failed(Value),
}

/// There is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nobody wants it any more.
    Stopped,
    /// It is longer than anybody would read.
    TooLong,
    /// The command could not be run, or said something else.
    Unusable(String),
}

impl Jvs {
    /// A call as a person types it for this session, from anywhere.
    pub(crate) fn typed(&self, words: &[String]) -> String {
        let path = |path: &PathBuf| quoted(&path.display().to_string());
        let mut line = vec![
            "cd".to_owned(),
            path(&self.here),
            "&&".to_owned(),
            format!("JVS_SESSION_ID={}", quoted(&self.session)),
            format!("JVS_KEEP_WHILE={}", std::process::id()),
            "jvs".to_owned(),
        ];
        if let Some(repo) = &self.repo {
            line.extend(["--repo".to_owned(), path(repo)]);
        }
        line.extend(words.iter().map(|word| quoted(word)));
        line.join(" ")
    }

    /// Runs one command. When `stop` is done first, the command is asked to end, and then
    /// made to; it is answered what came of it if it still says so.
    pub(crate) async fn run(
        &self,
        words: &[String],
        handle: Option<&Handle>,
        stop: impl Future<Output = ()>,
    ) -> Result<CommandAnswer, Trouble> {
        let mut child = tokio::process::Command::from(self.command(words, handle))
            .spawn()
            .map_err(|error| unusable(&format!("{}: {error}", self.program.display())))?;
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let work = async {
            let (said, complaint, _) =
                tokio::join!(read(out, ANSWER_MAX + 1), read(err, COMPLAINT_MAX), child.wait());
            (said, complaint)
        };
        tokio::pin!(work);
        let mut stopped = false;
        let told = tokio::select! {
            told = &mut work => Some(told),
            () = stop => {
                stopped = true;
                signal(pid, Signal::TERM);
                match tokio::time::timeout(ENDS_WITHIN, &mut work).await {
                    Ok(told) => Some(told),
                    Err(_) => {
                        signal(pid, Signal::KILL);
                        // One that hangs in the kernel ends when that lets go of it.
                        tokio::time::timeout(DIES_WITHIN, &mut work).await.ok()
                    }
                }
            }
        };
        let Some((said, complaint)) = told else { return Err(Trouble::Stopped) };
        if said.len() as u64 > ANSWER_MAX {
            return Err(Trouble::TooLong);
        }
        match document(&said) {
            Some(answer) => Ok(answer),
            None if stopped => Err(Trouble::Stopped),
            None => Err(unusable(&String::from_utf8_lossy(&complaint))),
        }
    }

    fn command(&self, words: &[String], handle: Option<&Handle>) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(repo) = &self.repo {
            command.arg("--repo").arg(repo);
        }
        command.arg("--json").args(words);
        for name in HANDED_DOWN {
            command.env_remove(name);
        }
        command.env("JVS_SESSION_ID", &self.session);
        command.env("JVS_KEEP_WHILE", std::process::id().to_string());
        command.envs(handle.into_iter().flat_map(Handle::environment));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        jvs_kernel::program::end_with_this_process(&mut command);
        command
    }
}

fn unusable(why: &str) -> Trouble {
    Trouble::Unusable(format!("jvs could not be run, or did not answer: {}", why.trim()))
}

/// Reads to the end, or as much as that. What comes after it is not waited for.
async fn read(from: Option<impl AsyncRead + Unpin>, at_most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What was read before an error is looked at as it is.
        let _ = from.take(at_most).read_to_end(&mut bytes).await;
    }
    bytes
}

fn signal(pid: Option<Pid>, signal: Signal) {
    // It was not waited for yet, so the pid is still its own.
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The one document that a command prints with `--json`.
fn document(bytes: &[u8]) -> Option<CommandAnswer> {
    let mut document: Value = serde_json::from_slice(bytes).ok()?;
    match document["ok"].as_bool()? {
        true => {
            let warnings = document["warnings"].as_array().cloned().unwrap_or_default();
            Some(CommandAnswer::Done { data: document["data"].take(), warnings })
        }
        false => Some(CommandAnswer::Failed(document["error"].take())),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/=:@,+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_answers_one_document_or_none() {
        let done = document(br#"{"schema":"jvs/1","ok":true,"data":{"a":1},"warnings":["w"]}"#);
        let warnings = vec![json!("w")];
        assert_eq!(done, Some(CommandAnswer::Done { data: json!({ "a": 1 }), warnings }));
        let failed = document(br#"{"schema":"jvs/1","ok":false,"error":{"code":"E_X"}}"#);
        assert_eq!(failed, Some(CommandAnswer::Failed(json!({ "code": "E_X" }))));
        for nothing in ["", "{}", "null", "[]", "{\"ok\":1}", "{\"ok\":true}{"] {
            assert_eq!(document(nothing.as_bytes()), None, "{nothing}");
        }
    }

    #[test]
    fn a_shell_takes_a_quoted_word_as_it_is() {
        for (word, typed) in [
            ("main", "main"),
            ("--reason=a b", "'--reason=a b'"),
            ("", "''"),
            ("it's $HOME", r"'it'\''s $HOME'"),
        ] {
            assert_eq!(quoted(word), typed);
        }
    }
}
