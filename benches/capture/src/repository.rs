//! A repository whose snapshots are timed: the built command, start to end.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use jvs_kit::live::home::Home;
use jvs_repo::layout;
use serde_json::Value;

/// A repository, somebody who works in it, and what the last snapshot said.
pub(crate) struct Repository {
    home: Home,
    root: PathBuf,
    engine: &'static str,
    /// Instead of the command that was just built.
    program: Option<PathBuf>,
    last: RefCell<Value>,
}

impl Repository {
    /// A new one in `place`, whose snapshots are made by `engine`.
    pub(crate) fn new(place: &Path, engine: &'static str) -> Self {
        Repository::by(None, place, engine)
    }

    /// As [`Repository::new`], made and worked in by another build of the command.
    pub(crate) fn by(program: Option<PathBuf>, place: &Path, engine: &'static str) -> Self {
        let (home, root) = (Home::new(), place.join("repository"));
        let mut init = home.jvs([Path::new("init"), &root]);
        if let Some(program) = &program {
            init = init.program(program);
        }
        init.run().ok();
        Repository { home, root, engine, program, last: RefCell::default() }
    }

    /// Where its files are.
    pub(crate) fn files(&self) -> PathBuf {
        self.root.join(layout::MAIN_DIR)
    }

    /// Runs `jvs` among its files.
    pub(crate) fn jvs(&self, words: &[&str]) -> Value {
        let output = self.command(words).output().expect("jvs is built");
        let mut said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert!(output.status.success(), "{words:?}: {said}");
        said["data"].take()
    }

    /// Runs `jvs` among its files; the most memory it had, in kilobytes.
    pub(crate) fn peak_memory_kb(&self, words: &[&str]) -> u64 {
        let mut child = self.command(words).stdout(Stdio::null()).spawn().expect("jvs is built");
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        while child.try_wait().expect("our own child").is_none() {
            let now = fs_err::read_to_string(&status).unwrap_or_default();
            let line = now.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kb = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            peak = peak.max(kb.unwrap_or(0));
            std::thread::sleep(Duration::from_millis(1));
        }
        peak
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut jvs = self.home.jvs(words.iter().chain(&["--json"])).cwd(self.files());
        if let Some(program) = &self.program {
            jvs = jvs.program(program);
        }
        jvs.command()
    }

    /// A snapshot that reads and copies everything, as the first one does.
    pub(crate) fn first_snapshot(&self) {
        *self.last.borrow_mut() = self.jvs(&["snapshot", "--full", "--engine", self.engine]);
    }

    /// A snapshot on top of the last.
    pub(crate) fn snapshot(&self) {
        *self.last.borrow_mut() = self.jvs(&["snapshot", "--engine", self.engine]);
    }

    /// Prints where the time of the last snapshot went.
    pub(crate) fn say_phases(&self) {
        let last = self.last.borrow();
        let phases: Vec<String> = last["phases_ms"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(phase, ms)| format!("{phase} {ms}"))
            .collect();
        let (reused, files) = (&last["reused"], &last["files"]);
        let engine = last["engine"].as_str().unwrap_or_default();
        println!(
            "  its phases in ms: {} ({engine}, {reused} of {files} files not read)",
            phases.join(", ")
        );
    }
}
