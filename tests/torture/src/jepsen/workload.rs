//! The workload: processes that want the lock, a nemesis, and the verdict.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fs_err::OpenOptions;
use jvs_kit::live::process::Running;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::contender::{LEASE_MS, Servers, Tool};
use super::history::{self, Op, line};
use super::{batch, linear, set};
use crate::clock::{boot_ms, boot_ns};
use crate::dice::Dice;
use crate::torture::ask::{Asker, Outcome};
use crate::torture::{Ground, Host, Kind, TAG, book, nemesis};

/// How many numbers there are for one hold.
const FOR_A_HOLD: u64 = 50_000;
/// How many additions are in one hold whose additions count once a snapshot has them.
const IN_A_SNAPSHOT: u64 = 500;
/// How long a command that holds or waits may take before it is killed.
const LIMIT: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Debug)]
pub struct Wish {
    /// Who locks.
    pub tool: Tool,
    /// Where the files are.
    pub kind: Kind,
    /// How long.
    pub time: Duration,
    /// What repeats the plan.
    pub seed: u64,
    /// How many hosts or mounts, with two processes each.
    pub hosts: usize,
    /// This program.
    pub program: PathBuf,
}

/// What came of it.
#[derive(Debug)]
pub struct Verdict {
    /// Of the set.
    pub set: set::SetVerdict,
    /// Of the register; nothing where the tool has none.
    pub register: Option<linear::Verdict>,
    /// Operations on the register.
    pub register_calls: usize,
    /// What the nemesis did.
    pub killed: usize,
    /// The same.
    pub stopped: usize,
}

impl Verdict {
    /// Whether nothing was lost or invented, and the register was one.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let is_register = matches!(self.register, None | Some(linear::Verdict::Linearizable));
        self.set.lost.is_empty() && self.set.invented.is_empty() && is_register
    }

    /// One line of the table.
    #[must_use]
    pub fn row(&self, tool: Tool) -> String {
        let set = &self.set;
        let register = match self.register {
            None => "-".to_owned(),
            Some(linear::Verdict::Linearizable) => format!("{} ok", self.register_calls),
            Some(linear::Verdict::Stuck(at)) => {
                format!("{}, not linearizable: call {at}", self.register_calls)
            }
            Some(linear::Verdict::Undecided) => format!("{}, undecided", self.register_calls),
        };
        format!(
            "| {} | {} | {} | {} | {}, {} | {register} | {}, {} |",
            tool.name(),
            set.acknowledged,
            set.lost.len(),
            set.invented.len(),
            set.unknown_there,
            set.unknown_gone,
            self.killed,
            self.stopped,
        )
    }
}

/// All that the processes share.
struct Arena<'a> {
    wish: &'a Wish,
    ground: &'a Ground,
    hosts: &'a [Host],
    book: &'a book::Book,
    servers: Servers,
    histories: PathBuf,
    stop: AtomicBool,
    /// Numbers and names of processes, each used once.
    next: AtomicU64,
}

/// Has a tool lock a set and a register, or returns nothing where that cannot be done.
#[must_use]
pub fn work(wish: &Wish) -> Option<Verdict> {
    let ground = Ground::lay(wish.kind, wish.hosts)?;
    let dir = tempfile::Builder::new().prefix("jvs-jepsen-").tempdir().expect("a directory");
    let hosts: Vec<Host> = (0..wish.hosts).map(|n| Host::new(n, &ground, dir.path())).collect();
    // Clocks that differ, by less than is promised to be borne.
    hosts.iter().skip(1).zip([200, -200]).for_each(|(host, ms)| host.set_clock(ms));
    let book = book::Book::create(&dir.path().join("book"), &wish.program);
    let arena = Arena {
        wish,
        ground: &ground,
        hosts: &hosts,
        book: &book,
        servers: Servers::start(wish.tool, dir.path()),
        histories: dir.path().join("histories"),
        stop: AtomicBool::new(false),
        next: AtomicU64::new(1),
    };
    fs_err::create_dir(&arena.histories).expect("a directory for the histories");
    if matches!(wish.tool, Tool::JvsRun | Tool::JvsFenced) {
        crate::torture::settle(&hosts[0], &book);
    }
    fs_err::create_dir_all(arena.files(0)).expect("a directory for the files");
    let (killed, stopped) = thread::scope(|scope| {
        for number in 0..2 * wish.hosts {
            let arena = &arena;
            scope.spawn(move || arena.process(number));
        }
        let hit = arena.nemesis();
        arena.stop.store(true, Ordering::SeqCst);
        hit
    });
    // What other mounts remember of a file is over by then.
    thread::sleep(Duration::from_secs(if wish.kind == Kind::Local { 0 } else { 3 }));
    let there = arena.end();
    let calls = history::read_all(&arena.histories);
    let register_calls = calls.iter().filter(|call| !matches!(call.op, Op::Add(_))).count();
    let register = (wish.tool != Tool::JvsFenced).then(|| {
        let mut calls = calls.clone();
        calls.sort_by_key(|call| call.invoked);
        linear::check(&calls, 0, linear::BOUND)
    });
    Some(Verdict { set: set::check(&calls, &there), register, register_calls, killed, stopped })
}

impl Arena<'_> {
    /// Where the set and the register are, as a host sees them: beside the repository,
    /// so that nothing restores or captures them.
    fn files(&self, host: usize) -> PathBuf {
        self.ground.place(host).join("jepsen")
    }

    fn process(&self, number: usize) {
        let mut dice = Dice::new(self.wish.seed, 100 + number as u64);
        let host = number % self.hosts.len();
        while !self.stop.load(Ordering::SeqCst) {
            let first = self.next.fetch_add(FOR_A_HOLD, Ordering::SeqCst);
            match self.wish.tool {
                Tool::JvsFenced => self.fenced(host, first, &mut dice),
                Tool::Redis => self.under_redis(host, first, &mut dice),
                Tool::JvsRun => {
                    let words = self.words(host, first);
                    let lease = format!("{LEASE_MS}ms");
                    let mut all = vec!["run", "--wait=10s", "--lease", &lease, "--"];
                    all.extend(words.iter().map(String::as_str));
                    let _ = self.asker(host, first).ask("main", &all);
                }
                tool => {
                    let words = self.words(host, first);
                    let mut command = self.servers.around(tool, &self.files(host), &words);
                    command.env(TAG, self.hosts[0].tag());
                    finished(Running::start(command));
                }
            }
        }
    }

    /// Each hold is by a session of its own, as each of Jepsen's processes that died is
    /// replaced.
    fn asker(&self, host: usize, first: u64) -> Asker<'_> {
        let host = &self.hosts[host];
        Asker { host, book: self.book, session: format!("j{first}"), is_root: true }
    }

    /// The command that does one hold's operations.
    fn words(&self, host: usize, first: u64) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let history = self.histories.join(first.to_string());
        let program = text(&self.wish.program);
        let pause = (LEASE_MS * 3 / 2).to_string();
        let (first, count) = (first.to_string(), FOR_A_HOLD.to_string());
        let (history, files) = (text(&history), text(&self.files(host)));
        vec![program, "batch".into(), history, files, first.clone(), first, count, pause]
    }

    fn under_redis(&self, host: usize, first: u64, dice: &mut Dice) {
        let Some(mine) = self.servers.take(dice) else {
            return thread::sleep(Duration::from_millis(20));
        };
        let words = self.words(host, first);
        let mut command = std::process::Command::new(&words[0]);
        command.args(&words[1..]).env(TAG, self.hosts[0].tag());
        finished(Running::start(command));
        self.servers.give_back(&mine);
    }

    /// One hold, whose additions are acknowledged when a snapshot that has them is
    /// published. The set is in a file of the hold's own: whoever wakes up late writes
    /// into one that nobody reads any more.
    fn fenced(&self, host: usize, first: u64, dice: &mut Dice) {
        let asker = self.asker(host, first);
        let lease = format!("{LEASE_MS}ms");
        let words = ["lock", "acquire", "--wait=10s", "--no-keeper", "--lease", &lease];
        let answer = asker.ask("main", &words);
        let Some(token) = answer.entry.told.granted else { return };
        let Some(before) = before(&asker, &answer.data) else { return };
        let history = self.histories.join(first.to_string());
        let Ok(mut history) = OpenOptions::new().create(true).append(true).open(&history) else {
            return;
        };
        let mut tell = |kind: &str| {
            use std::io::Write as _;
            let lines = (first..first + IN_A_SNAPSHOT)
                .map(|number| line(boot_ns(), number, kind, Op::Add(number)));
            let lines: String = lines.collect();
            history.write_all(lines.as_bytes()).expect("the history takes lines");
        };
        tell("invoke");
        let paused = dice.hits(1, 8).then(|| dice.between(first, first + IN_A_SNAPSHOT - 1));
        let pause_ms = |number| if paused == Some(number) { LEASE_MS * 3 / 2 } else { 0 };
        let files = self.hosts[host].root().join("main");
        let added = batch::open(files.join(format!("set.{token}"))).and_then(|file| {
            file.file().write_all_at(&before, 0)?;
            batch::add_to(&file, first..first + IN_A_SNAPSHOT, pause_ms)
        });
        if added.is_err() {
            return;
        }
        let _ = fs_err::remove_file(files.join(format!("set.{}", token.saturating_sub(20))));
        // Under this hold or not at all: a snapshot that takes the lock again would be
        // under a token whose file is not there.
        let epoch = answer.data["record"]["epoch"].as_str().unwrap_or_default();
        let words = ["snapshot", "more", "--consistency", "best_effort"];
        let taken = asker.ask_under("main", (token, epoch), &words);
        match taken.entry.outcome {
            Outcome::Ok if taken.entry.told.under == Some(token) => tell("ok"),
            Outcome::Failed(_) => tell("fail"),
            _ => {}
        }
        let _ = asker.ask("main", &["lock", "release"]);
    }

    /// Kills and stops one process of those that lock or are locked, at a time. How many.
    fn nemesis(&self) -> (usize, usize) {
        let mut dice = Dice::new(self.wish.seed, 1);
        let end = boot_ms() + u64::try_from(self.wish.time.as_millis()).unwrap_or(u64::MAX);
        let (mut killed, mut stopped) = (0, 0);
        while boot_ms() < end {
            thread::sleep(Duration::from_millis(dice.below(1500)));
            let all = nemesis::tagged(self.hosts[0].tag());
            let Some(one) = dice.pick(&all) else { continue };
            if dice.hits(1, 3) {
                killed += usize::from(kill_process(one.pid, Signal::KILL).is_ok());
            } else if kill_process(one.pid, Signal::STOP).is_ok() {
                thread::sleep(Duration::from_millis(dice.between(100, 2 * LEASE_MS)));
                let _ = kill_process(one.pid, Signal::CONT);
                stopped += 1;
            }
        }
        (killed, stopped)
    }

    /// What is in the set in the end.
    fn end(&self) -> BTreeSet<u64> {
        if self.wish.tool != Tool::JvsFenced {
            return batch::numbers(&self.files(0));
        }
        let asker = self.asker(0, 0);
        let status = asker.ask("main", &["lock", "status"]);
        let set = before(&asker, &status.data).expect("nobody is in the way any more");
        batch::numbers_in(&set)
    }
}

fn finished(mut running: Running) {
    if !running.ends_within(LIMIT) {
        running.signal(Signal::KILL);
    }
}

/// The file of the set at the head that an answer tells of: that of the hold that
/// published it.
fn before(asker: &Asker<'_>, data: &Value) -> Option<Vec<u8>> {
    let head = data["head"].as_str()?;
    let info = asker.ask("main", &["info", head]);
    if info.entry.outcome != Outcome::Ok {
        return None;
    }
    let token = info.data["fencing_token"].as_u64()?;
    let told = asker.ask_plainly("main", &["cat", head, &format!("set.{token}")]);
    match told.entry.outcome {
        Outcome::Ok => {}
        // The first snapshot of all has no set in it.
        Outcome::Failed(code) if code == "E_NOT_FOUND" && info.data["parent"].is_null() => {
            return Some(Vec::new());
        }
        _ => return None,
    }
    Some(told.data.as_str().unwrap_or_default().into())
}
