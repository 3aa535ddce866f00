//! The book: what everybody did and was told, in the order in which it was written.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fs_err::File;
use serde::{Deserialize, Serialize};

use super::survey::Ending;

/// One line of the book. All times are milliseconds of boot time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
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
pub(crate) enum Outcome {
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
pub(crate) struct Entry {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) host: usize,
    pub(crate) session: String,
    pub(crate) worktree: String,
    pub(crate) words: String,
    pub(crate) outcome: Outcome,
    /// What it said, for people.
    #[serde(default)]
    pub(crate) message: String,
    #[serde(flatten)]
    pub(crate) told: Told,
}

/// What of an answer can be compared with something.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Told {
    /// The token that the session was granted.
    pub(crate) granted: Option<u64>,
    /// The token that the register was seen to have.
    pub(crate) seen: Option<u64>,
    /// The note of the snapshot that was asked for.
    pub(crate) note: Option<String>,
    /// The snapshot that was published.
    pub(crate) snapshot: Option<String>,
    /// The token under which it was.
    pub(crate) under: Option<u64>,
    /// What the session's mark is in it, if nobody else can have changed it.
    pub(crate) mark: Option<String>,
    /// The mark that was read in a snapshot of this session.
    pub(crate) read: Option<(String, String)>,
}

/// A hold as its session was told of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) session: String,
    pub(crate) worktree: String,
    pub(crate) token: u64,
    pub(crate) from: u64,
    pub(crate) until: u64,
}

/// When a command under `jvs run` was seen to be alive, by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) session: String,
    pub(crate) worktree: String,
    pub(crate) token: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

/// A fault, from when to when.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) kind: String,
    pub(crate) what: String,
    pub(crate) from: u64,
    pub(crate) until: u64,
}

/// The book while it is written.
pub(crate) struct Book {
    dir: PathBuf,
    file: Mutex<File>,
    program: PathBuf,
}

impl Book {
    pub(crate) fn create(dir: &Path, program: &Path) -> Self {
        fs_err::create_dir_all(dir.join("beats")).expect("a directory for the beats");
        // The commands that write them are other users' too.
        let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o1777);
        fs_err::set_permissions(dir.join("beats"), open).expect("opened");
        let file = File::create(dir.join("book.jsonl")).expect("the book");
        let program = program.to_owned();
        Self { dir: dir.to_owned(), file: Mutex::new(file), program }
    }

    pub(crate) fn write(&self, line: &Line) {
        let mut text = serde_json::to_string(line).expect("a line is JSON");
        text.push('\n');
        let mut file = self.file.lock().expect("nobody panics while writing");
        file.write_all(text.as_bytes()).expect("the book takes a line");
    }

    /// Where a command under `jvs run` tells that it lives.
    pub(crate) fn beats(&self, name: &str) -> PathBuf {
        self.dir.join("beats").join(name)
    }

    /// This program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Keeps a copy of the control plane, for whoever wants to know why.
    pub(crate) fn keep(&self, control: &Path) {
        let mut copy = std::process::Command::new("cp");
        copy.arg("-r").arg(control).arg(self.dir.join("control"));
        let _ = copy.status();
    }

    pub(crate) fn read(&self) -> Vec<Line> {
        read(&self.dir).expect("the book was written here")
    }
}

/// All that is in the book of a directory.
pub(crate) fn read(dir: &Path) -> std::io::Result<Vec<Line>> {
    let text = fs_err::read_to_string(dir.join("book.jsonl"))?;
    let lines = text.lines().map(|line| serde_json::from_str(line).map_err(std::io::Error::from));
    lines.collect()
}
