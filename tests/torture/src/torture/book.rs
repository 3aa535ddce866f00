//! The book: what everybody did and was told, in the order in which it was written.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fs_err::File;
use serde::{Deserialize, Serialize};

use super::Wish;
use super::survey::Ending;

/// One line of the book. All times are milliseconds of boot time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// A command that was answered, or not.
    Did(Entry),
    /// A session was told that it holds.
    Held(Hold),
    /// A command under `jvs run` was alive.
    Ran(Run),
    /// Something was made to fail.
    Fault(Fault),
    /// What is there in the end.
    Ending(Ending),
}

/// What a command came to, as far as its caller was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Ok,
    /// Refused or failed, with this code.
    Failed(String),
    /// Killed, or it said itself that it does not know.
    Unknown(String),
    /// Not over when it had to be.
    Hung,
    /// It broke: a panic, a signal that nobody sent, an answer that is none.
    Broke(String),
}

/// One command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) begun: u64,
    pub(super) ended: u64,
    pub(super) host: usize,
    pub(super) session: String,
    pub(super) worktree: String,
    pub(super) words: String,
    pub(super) outcome: Outcome,
    /// What it said, for people.
    #[serde(default)]
    pub(super) message: String,
    #[serde(flatten)]
    pub(super) told: Told,
}

/// What of an answer can be compared with something.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    /// The token that the session was granted.
    pub(super) granted: Option<u64>,
    /// The token that the register was seen to have.
    pub(super) seen: Option<u64>,
    /// The note of the snapshot that was asked for.
    pub(super) note: Option<String>,
    /// The snapshot that was published.
    pub(super) snapshot: Option<String>,
    /// The token under which it was.
    pub(super) under: Option<u64>,
    /// What the session's mark is in it, if nobody else can have changed it.
    pub(super) mark: Option<String>,
    /// The mark that was read in a snapshot of this session.
    pub(super) read: Option<(String, String)>,
}

/// A hold as its session was told of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hold {
    pub(super) session: String,
    pub(super) worktree: String,
    pub(super) token: u64,
    pub(super) from: u64,
    pub(super) until: u64,
}

/// When a command under `jvs run` was seen to be alive, by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) session: String,
    pub(super) worktree: String,
    pub(super) token: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

/// A fault, from when to when.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Fault {
    pub(super) kind: String,
    pub(super) what: String,
    pub(super) from: u64,
    pub(super) until: u64,
}

/// The book while it is written.
pub(super) struct Book {
    dir: PathBuf,
    file: Mutex<File>,
    program: PathBuf,
}

impl Book {
    pub(super) fn create(dir: &Path, wish: &Wish) -> Self {
        fs_err::create_dir_all(dir.join("beats")).expect("a directory for the beats");
        // The commands that write them are other users' too.
        let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o1777);
        fs_err::set_permissions(dir.join("beats"), open).expect("opened");
        let file = File::create(dir.join("book.jsonl")).expect("the book");
        let program = wish.program.clone();
        Self { dir: dir.to_owned(), file: Mutex::new(file), program }
    }

    pub(super) fn write(&self, line: &Line) {
        let mut text = serde_json::to_string(line).expect("a line is JSON");
        text.push('\n');
        let mut file = self.file.lock().expect("nobody panics while writing");
        file.write_all(text.as_bytes()).expect("the book takes a line");
    }

    /// Where a command under `jvs run` tells that it lives.
    pub(super) fn beats(&self, name: &str) -> PathBuf {
        self.dir.join("beats").join(name)
    }

    /// This program.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Keeps a copy of the control plane, for whoever wants to know why.
    pub(super) fn keep(&self, control: &Path) {
        let mut copy = std::process::Command::new("cp");
        copy.arg("-r").arg(control).arg(self.dir.join("control"));
        let _ = copy.status();
    }

    pub(super) fn read(&self) -> Vec<Line> {
        read(&self.dir).expect("the book was written here")
    }
}

/// All that is in the book of a directory.
pub(super) fn read(dir: &Path) -> std::io::Result<Vec<Line>> {
    let text = fs_err::read_to_string(dir.join("book.jsonl"))?;
    let lines = text.lines().map(|line| serde_json::from_str(line).map_err(std::io::Error::from));
    lines.collect()
}
