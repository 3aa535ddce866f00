//! The calls with which a program changes files, and runs of it that die or
//! stop at one of them.
//!
//! One run is recorded under `strace`. A later run of the same program on the
//! same files makes the same calls, so it can be aimed at one: the n-th of a
//! name in a thread. All of a run is on one processor, so that threads do not
//! race for who makes which call.
//!
//! # Limitations
//! `strace` counts the calls of each name in each thread, and strikes at the
//! first thread that comes to n. The calls of threads other than the first can
//! therefore be aimed at only where no other thread came to n before; the rest is
//! counted in [`Recording::out_of_reach`].

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::capability::{Capability, granted};
use super::home::Jvs;
use super::process::{DEADLINE, Outcome, Running, eventually};

/// What changes files or makes them durable, opening aside. The question mark
/// lets a machine lack one.
const CHANGING: &[&str] = &[
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "mknodat",
    "write",
    "pwrite64",
    "copy_file_range",
    "ftruncate",
    "fallocate",
    "utimensat",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchownat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
];
/// What only makes durable: for what a dead process leaves it is nothing.
const SYNCING: &[&str] = &["fsync", "fdatasync", "syncfs"];
/// What changes something now and then.
const OPENING: &[&str] = &["open", "openat", "openat2", "creat", "ioctl"];

/// Can programs be struck at a call here? If not, the test is skipped.
#[must_use = "a test without what it needs returns"]
#[track_caller]
pub fn can_be_aimed_at() -> bool {
    granted(&[Capability::Program("strace"), Capability::Program("taskset")])
}

/// One call of a recorded run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// The system call.
    pub name: String,
    /// Its arguments, as far as `strace` shows them.
    pub arguments: String,
    nth: usize,
    in_first_thread: bool,
}

impl Call {
    /// Does it only make durable what is there?
    pub fn only_syncs(&self) -> bool {
        SYNCING.contains(&self.name.as_str())
    }

    /// Does it move a name? Whatever becomes visible does so by one of these.
    pub fn renames(&self) -> bool {
        self.name.starts_with("rename")
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = if self.in_first_thread { "" } else { " in another thread" };
        write!(f, "{} #{}{thread}: {}", self.name, self.nth, self.arguments)
    }
}

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// The program is dead before the call is made.
    DiesFirst,
    /// The call is made, and the program is dead before it learns the answer.
    ThenDies,
}

/// The calls of one run that change files, in their order.
#[derive(Debug)]
pub struct Recording {
    /// What the run came to.
    pub outcome: Outcome,
    /// Those that a later run can be struck at.
    pub calls: Vec<Call>,
    /// How many others there were.
    pub out_of_reach: usize,
}

/// Runs `jvs` to its end and records what it does to files.
#[track_caller]
pub fn record(jvs: &Jvs) -> Recording {
    let dir = tempfile::tempdir().expect("a directory for the record");
    let log = dir.path().join("calls");
    let names = CHANGING.iter().chain(SYNCING).chain(OPENING);
    let traced: Vec<String> = names.map(|name| format!("?{name}")).collect();
    let trace = format!("trace={}", traced.join(","));
    let outcome = under(jvs, &["-f", "-e", &trace], &log).run();
    let text = fs_err::read_to_string(&log).expect("strace wrote a record");
    let (calls, out_of_reach) = read(&text);
    Recording { outcome, calls, out_of_reach }
}

/// Starts `jvs` so that it meets its end at `call`.
#[track_caller]
pub fn strike(jvs: &Jvs, call: &Call, blow: Blow) -> Outcome {
    // The first comes instead of the call. The other is delivered when the call
    // is over; nobody handles it.
    let signal = match blow {
        Blow::DiesFirst => "KILL",
        Blow::ThenDies => "USR1",
    };
    aimed(jvs, call, signal, Path::new("/dev/null")).run()
}

/// A program that stopped at a call, which was made.
#[derive(Debug)]
pub struct Stopped {
    running: Running,
    _dir: TempDir,
}

impl Stopped {
    /// Lets it go on to its end.
    #[track_caller]
    pub fn go_on(mut self) -> Outcome {
        // Another thread that comes to the same number later stops once more.
        eventually("the program goes on to its end", DEADLINE, || {
            self.running.signal(rustix::process::Signal::CONT);
            self.running.ended()
        });
        self.running.wait(DEADLINE)
    }
}

/// Starts `jvs` and waits until it has stopped right after `call`. An error is
/// the outcome of a run that never came there.
#[track_caller]
pub fn stop(jvs: &Jvs, call: &Call) -> Result<Stopped, Outcome> {
    let dir = tempfile::tempdir().expect("a directory for the record");
    let log = dir.path().join("calls");
    let mut running = aimed(jvs, call, "STOP", &log).start();
    let mut stopped = false;
    eventually("the program stops or ends", DEADLINE, || {
        let text = fs_err::read_to_string(&log).unwrap_or_default();
        stopped = text.contains("--- stopped by SIGSTOP ---");
        stopped || running.ends_within(Duration::ZERO)
    });
    if stopped { Ok(Stopped { running, _dir: dir }) } else { Err(running.wait(DEADLINE)) }
}

fn aimed(jvs: &Jvs, call: &Call, signal: &str, log: &Path) -> Jvs {
    let Call { name, nth, in_first_thread, .. } = call;
    let trace = format!("trace={name}");
    let inject = format!("inject={name}:signal={signal}:when={nth}");
    let mut options = vec!["-e", &trace, "-e", &inject];
    if !in_first_thread {
        options.push("-f");
    }
    under(jvs, &options, log)
}

fn under(jvs: &Jvs, options: &[&str], log: &Path) -> Jvs {
    let log = log.to_str().expect("a temporary directory is UTF-8");
    let processor = one_processor();
    let pinned = ["taskset", "-c", &processor, "strace", "-qq", "-o", log];
    jvs.clone().under(pinned.iter().chain(options))
}

/// One that this process may use, another for each of several tests at once.
fn one_processor() -> String {
    let set = rustix::thread::sched_getaffinity(None).expect("one can ask about oneself");
    let usable: Vec<usize> =
        (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    let mine = usable[std::process::id() as usize % usable.len()];
    mine.to_string()
}

/// The calls in a record of `strace -f`, and how many more there were.
fn read(text: &str) -> (Vec<Call>, usize) {
    let mut first = None;
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    let (mut calls, mut out_of_reach) = (Vec::new(), 0);
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        // What is left are the second halves of calls and the ends of threads.
        let Some((name, arguments)) = rest.trim_start().split_once('(') else { continue };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            continue;
        }
        let first = *first.get_or_insert(thread);
        let count = counts.entry((thread, name)).or_default();
        *count += 1;
        let nth = *count;
        if !changes(name, arguments) {
            continue;
        }
        let others = counts.iter().filter(|((t, n), _)| *t != thread && *n == name);
        let in_first_thread = thread == first;
        if in_first_thread || others.map(|(_, count)| *count).all(|count| count < nth) {
            let (name, arguments) = (name.to_owned(), arguments.to_owned());
            calls.push(Call { name, arguments, nth, in_first_thread });
        } else {
            out_of_reach += 1;
        }
    }
    (calls, out_of_reach)
}

fn changes(name: &str, arguments: &str) -> bool {
    let failed = arguments.contains(" = -1 E");
    let to_people = name == "write" && ["1,", "2,"].iter().any(|fd| arguments.starts_with(fd));
    let opens = OPENING.contains(&name);
    let creates = ["O_CREAT", "O_TRUNC", "FICLONE"].iter().any(|word| arguments.contains(word));
    !failed && !to_people && (!opens || creates)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"7  openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3
7  mkdirat(3, "a", 0755) = 0
7  ioctl(1, TCGETS, 0x7fff) = -1 ENOTTY (Inappropriate ioctl for device)
9  mkdirat(3, "b", 0755 <unfinished ...>
7  fsync(3) = 0
9  <... mkdirat resumed>) = 0
9  mkdirat(3, "c", 0755) = 0
9  openat(3, "f", O_RDWR|O_CREAT|O_EXCL, 0600) = 4
9  linkat(3, "f", 3, "g", 0) = -1 EEXIST (File exists)
9  +++ exited with 0 +++
7  write(1, "done\n", 5) = 5
7  +++ exited with 0 +++
"#;

    #[test]
    fn what_changes_files_is_read_with_its_thread_and_number() {
        let (calls, out_of_reach) = read(RECORD);
        let seen: Vec<String> = calls
            .iter()
            .map(|call| call.to_string().split(':').next().unwrap_or("").into())
            .collect();
        assert_eq!(seen, ["mkdirat #1", "fsync #1", "mkdirat #2 in another thread"]);
        // `b` is the first of its thread, where the other thread was before; so
        // is `f`, after a file that was only read.
        assert_eq!(out_of_reach, 2);
        assert!(calls[1].only_syncs() && !calls[0].only_syncs());
    }
}
