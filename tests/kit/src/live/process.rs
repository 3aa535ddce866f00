//! Running a program so that it cannot hang the test: standard streams are
//! files, never pipes (a daemon that outlives its parent would keep a pipe
//! open for ever), and every wait has a deadline.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fs_err::File;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tempfile::TempDir;

use super::schema;

/// How long a program may run unless the test says otherwise.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// What a program did.
#[derive(Debug)]
pub struct Outcome {
    /// The command line, for messages.
    pub line: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: Vec<u8>,
}

impl Outcome {
    /// The exit code; a death by signal fails the test.
    #[track_caller]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("killed by a signal: {self}"))
    }

    /// The signal that ended it, if one did.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Standard output, which must be UTF-8.
    #[track_caller]
    pub fn stdout(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap_or_else(|e| panic!("stdout: {e}: {self}"))
    }

    /// Standard error, which must be UTF-8.
    #[track_caller]
    pub fn stderr(&self) -> &str {
        std::str::from_utf8(&self.stderr).unwrap_or_else(|e| panic!("stderr: {e}: {self}"))
    }

    /// The one JSON document on standard output.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|e| panic!("stdout is not one JSON document: {e}: {self}"))
    }

    /// Fails the test unless the exit code is `code`.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "wrong exit code: {self}");
        self
    }

    /// Fails the test unless the program succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.exits(0)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (out, err) =
            (String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr));
        write!(f, "`{}`: {}\nstdout: {out}\nstderr: {err}", self.line, self.status)
    }
}

/// A program that runs in its own process group, with its streams in files.
/// Dropped while running, the whole group is killed and the program reaped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    line: String,
    streams: TempDir,
}

impl Running {
    /// Starts `command` with no input.
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        let streams = tempfile::tempdir().expect("a directory for the streams");
        let create = |path: PathBuf| File::create(path).expect("a file for a stream").into_file();
        let line = line(&command);
        let child = command
            .stdin(Stdio::null())
            .stdout(create(streams.path().join("stdout")))
            .stderr(create(streams.path().join("stderr")))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start `{line}`: {e}"));
        Self { child, line, streams }
    }

    /// The process id, which is also the id of its process group.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the whole process group. A group that is gone is fine:
    /// the test raced with the program's end.
    pub fn signal(&self, signal: Signal) {
        match kill_process_group(self.pid(), signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(e) => panic!("cannot signal `{}`: {e}", self.line),
        }
    }

    /// Whether the program has ended. Never blocks.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked about").is_some()
    }

    /// Waits for the end and says whether it came. Kills nothing and never
    /// panics, so that it may be used while cleaning up.
    pub fn ends_within(&mut self, deadline: Duration) -> bool {
        self.ended() || wait_until_ended(&mut self.child, deadline).is_some()
    }

    /// What it printed and complained about so far, for messages.
    pub fn said(&self) -> String {
        let [out, err] = ["stdout", "stderr"].map(|name| self.stream(name));
        format!(
            "`{}`\nstdout: {}\nstderr: {}",
            self.line,
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(&err)
        )
    }

    /// What it answered so far.
    pub fn answered(&self) -> String {
        String::from_utf8_lossy(&self.stream("stdout")).into_owned()
    }

    /// Waits for the end; past the deadline the group is killed and the test fails.
    #[track_caller]
    pub fn wait(mut self, deadline: Duration) -> Outcome {
        let status = wait_until_ended(&mut self.child, deadline);
        if status.is_none() {
            self.signal(Signal::KILL);
        }
        let reaped = self.child.wait().expect("a killed or ended child can be reaped");
        let outcome = Outcome {
            line: self.line.clone(),
            status: reaped,
            stdout: self.stream("stdout"),
            stderr: self.stream("stderr"),
        };
        assert!(status.is_some(), "still running after {deadline:?}, killed: {outcome}");
        if let Some(fault) = schema::documents(&outcome.stdout).find_map(|it| schema::fault(&it)) {
            panic!("an answer is not what its schema says: {fault}\n{outcome}");
        }
        outcome
    }

    /// What one stream holds so far.
    fn stream(&self, name: &str) -> Vec<u8> {
        fs_err::read(self.streams.path().join(name)).expect("a stream's file is ours")
    }

    /// Where the standard error goes, for programs that daemonise.
    pub fn stderr_path(&self) -> PathBuf {
        self.streams.path().join("stderr")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = wait_until_ended(&mut self.child, Duration::from_secs(10));
        }
    }
}

/// Runs a program to its end, or kills it and fails the test.
#[track_caller]
pub fn run(command: Command, deadline: Duration) -> Outcome {
    Running::start(command).wait(deadline)
}

/// Waits until `done` says so, looking again every few milliseconds.
#[track_caller]
pub fn eventually(what: &str, deadline: Duration, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + deadline;
    while !done() {
        assert!(Instant::now() < end, "after {deadline:?} still not: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Blocks on a pidfd, so that the wait ends the moment the process does.
fn wait_until_ended(child: &mut Child, deadline: Duration) -> Option<ExitStatus> {
    if let Some(status) = child.try_wait().expect("a child can be asked about") {
        return Some(status);
    }
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .expect("an unreaped child has a pidfd");
    let end = Instant::now() + deadline;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be asked about") {
            return Some(status);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let left = Timespec::try_from(left).expect("a deadline fits a timespec");
        let _ = poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&left));
    }
}

fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| Path::new(word).display().to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_streams_and_the_exit_code_come_back() {
        let outcome = run(shell("echo out; echo err >&2; exit 7"), DEADLINE).exits(7);
        assert_eq!((outcome.stdout(), outcome.stderr()), ("out\n", "err\n"));
    }

    #[test]
    #[should_panic(expected = "still running after")]
    fn a_program_past_its_deadline_is_killed_and_fails_the_test() {
        run(shell("sleep 1000"), Duration::from_millis(100));
    }

    #[test]
    fn a_daemon_left_behind_does_not_hold_up_its_starter() {
        let outcome = run(shell("sleep 1000 & echo $!"), DEADLINE).ok();
        let daemon = outcome.stdout().trim().parse().expect("the daemon's pid");
        let daemon = Pid::from_raw(daemon).expect("a pid is not zero");
        rustix::process::kill_process(daemon, Signal::KILL).expect("the daemon outlived its shell");
    }

    #[test]
    fn a_program_that_ended_long_ago_still_ends_within_any_deadline() {
        let mut running = Running::start(shell("echo out"));
        assert!(running.ends_within(DEADLINE));
        assert!(running.ended() && running.ends_within(Duration::ZERO), "it was reaped before");
        assert!(running.said().contains("stdout: out"), "{}", running.said());
        assert_eq!(running.wait(DEADLINE).stdout(), "out\n");
    }

    #[test]
    fn dropping_a_running_program_ends_its_whole_group() {
        let running = Running::start(shell("sleep 1000 & sleep 1000"));
        let group = running.pid();
        drop(running);
        eventually("the group is gone", DEADLINE, || {
            rustix::process::test_kill_process_group(group) == Err(rustix::io::Errno::SRCH)
        });
    }
}
