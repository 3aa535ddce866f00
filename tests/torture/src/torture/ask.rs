//! Asking `jvs` something, and understanding what it answers.

use std::time::Duration;

use jvs_kit::live::home::Jvs;
use rustix::process::Signal;
use serde_json::Value;

pub(crate) use super::book::Outcome;
use super::book::{Book, Entry, Hold, Told};
use super::host::Host;
use super::worker::lease_end;
use crate::clock::boot_ms;

/// How long any command may take, whatever fails meanwhile.
const LIMIT: Duration = Duration::from_secs(180);

/// Who asks, and where.
#[derive(Clone)]
pub(crate) struct Asker<'a> {
    pub(crate) host: &'a Host,
    pub(crate) book: &'a Book,
    pub(crate) session: String,
    pub(crate) is_root: bool,
}

/// What is made of an exit status and two streams: the outcome, what came with it, and
/// what it says.
type Read = (Outcome, Value, String);

/// What was answered.
pub(crate) struct Answer {
    pub(crate) entry: Entry,
    pub(crate) data: Value,
}

impl Asker<'_> {
    /// Asks about a worktree.
    pub(crate) fn ask(&self, worktree: &str, words: &[&str]) -> Answer {
        let root = self.host.root().to_string_lossy();
        let all = [&["--json", "--repo", &root, "-w", worktree], words].concat();
        self.asked(self.host.jvs(self.is_root, &self.session, &all), worktree, words, read_json)
    }

    /// Asks as a child of whoever holds a worktree under a token does: under that one or
    /// not at all.
    pub(crate) fn ask_under(
        &self,
        worktree: &str,
        (token, epoch): (u64, &str),
        words: &[&str],
    ) -> Answer {
        let root = self.host.root().to_string_lossy();
        let all = [&["--json", "--repo", &root, "-w", worktree], words].concat();
        let jvs = self.host.jvs(self.is_root, &self.session, &all);
        let jvs = jvs.env("JVS_WORKTREE", worktree).env("JVS_FENCING_EPOCH", epoch);
        let jvs = jvs.env("JVS_FENCING_TOKEN", token.to_string());
        self.asked(jvs, worktree, words, read_json)
    }

    /// Asks about no repository that is there.
    pub(crate) fn ask_anywhere(&self, words: &[&str]) -> Answer {
        let all = [&["--json"], words].concat();
        self.asked(self.host.jvs(self.is_root, &self.session, &all), "", words, read_json)
    }

    /// Asks for something that is printed as it is.
    pub(crate) fn ask_plainly(&self, worktree: &str, words: &[&str]) -> Answer {
        let root = self.host.root().to_string_lossy();
        let all = [&["--repo", &root, "-w", worktree], words].concat();
        self.asked(self.host.jvs(self.is_root, &self.session, &all), worktree, words, read_plain)
    }

    /// The hold that an answer tells of, if it tells of one.
    pub(crate) fn held(&self, answer: &Answer, worktree: &str) -> Option<Hold> {
        let token = answer.entry.told.granted?;
        Some(Hold {
            session: self.session.clone(),
            worktree: worktree.to_owned(),
            token,
            // Clocks are cut to whole milliseconds: round against the claim.
            from: answer.entry.ended + 1,
            until: lease_end(&answer.data)?,
        })
    }

    fn asked(
        &self,
        jvs: Jvs,
        worktree: &str,
        words: &[&str],
        read: fn(i32, &[u8], &[u8]) -> Read,
    ) -> Answer {
        let begun = boot_ms();
        let mut running = jvs.start();
        let in_time = running.ends_within(limit(words));
        let ended = boot_ms();
        let (outcome, data, message) = if in_time {
            let told = running.wait(LIMIT);
            match (told.status.code(), told.signal()) {
                (Some(code), _) => read(code, &told.stdout, &told.stderr),
                (None, Some(9)) => (Outcome::Unknown("killed".into()), Value::Null, String::new()),
                _ => (Outcome::Broke(told.to_string()), Value::Null, String::new()),
            }
        } else {
            running.signal(Signal::KILL);
            (Outcome::Hung, Value::Null, running.said())
        };
        let told = told(&outcome, &data, words);
        let entry = Entry {
            begun,
            ended,
            host: self.host.number(),
            session: self.session.clone(),
            worktree: worktree.to_owned(),
            words: words.join(" "),
            outcome,
            message,
            told,
        };
        Answer { entry, data }
    }
}

/// How long a command may take. Collecting takes as long as there is something to collect,
/// which after a long torture of a busy machine is much.
fn limit(words: &[&str]) -> Duration {
    if words.first() == Some(&"gc") { 10 * LIMIT } else { LIMIT }
}

/// What all answers may have in common.
fn told(outcome: &Outcome, data: &Value, words: &[&str]) -> Told {
    let mut told = Told::default();
    if *outcome != Outcome::Ok {
        return told;
    }
    let token = data["fencing_token"].as_u64();
    match words {
        ["lock", "acquire" | "renew" | "steal" | "reclaim", ..] => told.granted = token,
        ["lock", "status" | "release" | "freeze" | "unfreeze", ..] => told.seen = token,
        ["snapshot", ..] => {
            told.snapshot = data["snapshot_id"].as_str().map(str::to_owned);
            told.under = token;
        }
        _ => {}
    }
    told
}

fn read_json(code: i32, stdout: &[u8], stderr: &[u8]) -> Read {
    let Ok(answer) = serde_json::from_slice::<Value>(stdout) else {
        return (broke(code, stdout, stderr), Value::Null, String::new());
    };
    if answer["ok"] == true {
        return (Outcome::Ok, answer["data"].clone(), String::new());
    }
    let error = &answer["error"];
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    let outcome = match text("code").as_str() {
        "" => broke(code, stdout, stderr),
        "E_OUTCOME_UNKNOWN" => Outcome::Unknown("E_OUTCOME_UNKNOWN".into()),
        code => Outcome::Failed(code.to_owned()),
    };
    // What doctor found is its answer, also where it is a failure.
    let told = if answer["data"].is_null() { &error["details"] } else { &answer["data"] };
    (outcome, told.clone(), text("message"))
}

fn read_plain(code: i32, stdout: &[u8], stderr: &[u8]) -> Read {
    let said = String::from_utf8_lossy(stderr).into_owned();
    if code == 0 {
        let text = String::from_utf8_lossy(stdout).into_owned();
        return (Outcome::Ok, Value::String(text), said);
    }
    let named = said.split(['[', ']']).nth(1).filter(|word| word.starts_with("E_"));
    match named {
        Some(named) => (Outcome::Failed(named.to_owned()), Value::Null, said),
        None => (broke(code, stdout, stderr), Value::Null, said),
    }
}

fn broke(code: i32, stdout: &[u8], stderr: &[u8]) -> Outcome {
    let text = |bytes| String::from_utf8_lossy(bytes).chars().take(2000).collect::<String>();
    Outcome::Broke(format!("exit {code}\n{}\n{}", text(stdout), text(stderr)))
}
