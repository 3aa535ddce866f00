//! What a command under the lock costs, and what its keeper does: of this build, and of
//! the one that `JVS_BENCH_BEFORE` names, if any, in turns.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::race::{Lane, paired, race, say};
use jvs_kit::live::binary;
use jvs_kit::live::home::{Home, Jvs};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

/// A build of the command, and a repository that it made.
struct Build {
    name: &'static str,
    program: PathBuf,
    home: Home,
    root: PathBuf,
}

impl Build {
    fn new(name: &'static str, program: PathBuf, dir: &Path) -> Self {
        let (home, root) = (Home::new(), dir.join(name));
        home.jvs(["init"]).program(&program).arg(&root).run().ok();
        Build { name, program, home, root }
    }

    fn jvs(&self, words: &str) -> Jvs {
        self.home.jvs(words.split(' ')).program(&self.program).cwd(self.root.join("main"))
    }

    fn lane(&self, words: &str) -> Lane<'static> {
        let mut command: Command = self.jvs(words).command();
        Lane::new(format!("jvs {words}, {}", self.name), move || {
            crate::processes::done(&mut command)
        })
    }
}

/// The builds that are compared: this one last.
fn builds(dir: &Path) -> Vec<Build> {
    let before = std::env::var_os("JVS_BENCH_BEFORE").map(PathBuf::from);
    let before = before.map(|program| Build::new("before", program, dir));
    before.into_iter().chain([Build::new("now", binary::jvs(), dir)]).collect()
}

/// Measures in repositories made in `dir`, which is `what`.
pub(crate) fn on(dir: &Path, what: &str, rounds: usize) {
    let builds = builds(dir);
    let title = format!("a command under the lock, {what}");
    let words = "run -- true";
    match &builds[..] {
        [before, now] => paired(&title, rounds, before.lane(words), now.lane(words)),
        others => race(&title, rounds, others.iter().map(|build| build.lane(words)).collect()),
    }
    for build in &builds {
        keeper(build);
    }
}

/// What the keeper of a lock that nobody touches takes and does, over ten renewals.
fn keeper(build: &Build) {
    const RENEWALS: u64 = 10;
    build.jvs("lock acquire --lease 3s").run().ok();
    let status = build.jvs("lock status --json").run().ok().json();
    let pid = status["data"]["keeper"]["pid"].as_u64().expect("it is kept");
    let process = PathBuf::from(format!("/proc/{pid}"));
    let first = renewed(build) + 2;
    wait_until(build, first);
    let began = switches(&process);
    wait_until(build, first + RENEWALS);
    say(&format!("\nthe keeper, {}, in {RENEWALS} renewals", build.name));
    for ((name, before), (_, after)) in began.iter().zip(switches(&process)) {
        say(&format!("  thread {name}: switched to {} times", after - before));
    }
    let memory = read(&process.join("smaps_rollup"));
    let kb = |key: &str| number(&memory, key);
    say(&format!(
        "  {} kB resident, {} kB proportionally, {} kB of its own",
        kb("Rss:"),
        kb("Pss:"),
        kb("Private_Clean:") + kb("Private_Dirty:")
    ));
    build.jvs("lock release").run().ok();
}

/// How often the register was moved: its fourth field counts.
fn renewed(build: &Build) -> u64 {
    let register = build.root.join(layout::register(&WorktreeName::main()).as_str());
    loop {
        let entry = fs_err::read_dir(&register).expect("a register").flatten().next();
        let name = entry.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let seq = name.and_then(|name| name.split('.').nth(3)?.parse().ok());
        if let Some(seq) = seq {
            return seq;
        }
    }
}

fn wait_until(build: &Build, seq: u64) {
    while renewed(build) < seq {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Of each thread, how often it was switched to.
fn switches(process: &Path) -> Vec<(String, u64)> {
    let tasks = fs_err::read_dir(process.join("task")).expect("its threads").flatten();
    let mut tasks: Vec<PathBuf> = tasks.map(|task| task.path()).collect();
    tasks.sort();
    let of = |(at, task): (usize, &PathBuf)| {
        let status = read(&task.join("status"));
        let count = number(&status, "voluntary_ctxt_switches:")
            + number(&status, "nonvoluntary_ctxt_switches:");
        ((at + 1).to_string(), count)
    };
    tasks.iter().enumerate().map(of).collect()
}

fn read(path: &Path) -> String {
    fs_err::read_to_string(path).expect("a file of /proc")
}

/// The number on the line that begins with `key`.
fn number(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}
