//! What a run starts ends with it, however it tries to get away: each way of escaping,
//! under each way of ending, for each way of containing, as root and as another user.
//!
//! By default each pair of container and user tries every ending once, with escapes in
//! turn; `JVS_LONG=1` tries all. With `JVS_ESCAPES=TEXT` only those with that in their
//! names are tried, five times each.
#![allow(clippy::print_stderr, reason = "how much was tried is worth seeing")]

mod corpus;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use jvs_kit::live::capability::{Capability, granted, skip};
use jvs_kit::live::home::Jvs;
use jvs_kit::live::process::{Running, eventually};
use jvs_lock::State;
use rustix::process::{Pid, Signal, kill_process};

use self::corpus::{BOMB, ESCAPES, Escape};
use crate::world::{PATIENCE, World};

/// How a run comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The command exits.
    Exit,
    /// Its keeper is stopped, so that the lease runs out.
    Lost,
    /// Somebody takes the lock over.
    Stolen,
    /// `jvs run` is killed.
    RunKilled,
    /// The keeper is killed; then the command exits.
    KeeperKilled,
    /// Both are killed.
    BothKilled,
}

const ENDINGS: [Ending; 6] = [
    Ending::Exit,
    Ending::Lost,
    Ending::Stolen,
    Ending::RunKilled,
    Ending::KeeperKilled,
    Ending::BothKilled,
];

/// Nobody on the machine, and not root.
const ANOTHER: u32 = 61_234;

/// A repository of some user, and what a command in it does.
struct Case {
    world: World,
    contain: &'static str,
    uid: Option<u32>,
    /// A cgroup that is the user's own, where one is needed.
    cgroup: Option<PathBuf>,
}

impl Case {
    fn new(contain: &'static str, uid: Option<u32>) -> Option<Self> {
        let world = World::new();
        world.ok("ann", "config set reclaim.emergency_override true");
        if let Some(uid) = uid {
            // Some programs do not run for a user without an account.
            let mut accounts = fs_err::read_to_string("/etc/passwd").expect("accounts");
            accounts += &format!("another:x:{uid}:{uid}::/:/bin/sh\n");
            fs_err::write(world.outside("passwd"), accounts).expect("written");
            world.give_to(uid);
        }
        let cgroup = match (uid, contain) {
            (Some(uid), "cgroup") => Some(delegated_cgroup(&world, uid)?),
            _ => None,
        };
        Some(Case { world, contain, uid, cgroup })
    }

    /// As the user, and where the user may make cgroups.
    fn jvs(&self, jvs: Jvs) -> Jvs {
        let jvs = match &self.cgroup {
            Some(cgroup) => jvs.env("CGROUP", cgroup).under([
                "sh",
                "-c",
                "echo $$ > \"$CGROUP/cgroup.procs\"; exec \"$0\" \"$@\"",
            ]),
            None => jvs,
        };
        match self.uid {
            Some(uid) => {
                let ids = [format!("--reuid={uid}"), format!("--regid={uid}")];
                let known = "mount --bind \"$PASSWD\" /etc/passwd && exec \"$0\" \"$@\"";
                jvs.env("PASSWD", self.world.outside("passwd"))
                    .under(["unshare", "--mount", "sh", "-c", known])
                    .under(["setpriv", &ids[0], &ids[1], "--clear-groups"])
            }
            None => jvs,
        }
    }

    /// A mark that no other process of this machine has.
    fn mark(&self) -> String {
        let name = self.world.outside("x");
        let dir = name.parent().and_then(|dir| dir.file_name()).expect("a directory");
        let digest = dir
            .to_string_lossy()
            .bytes()
            .fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        format!("{digest:020}")
    }

    fn log(&self) -> PathBuf {
        self.world.outside(&format!("log-{}", self.mark()))
    }

    fn written(&self) -> u64 {
        self.log().metadata().map_or(0, |meta| meta.len())
    }

    /// When the last write was made.
    fn last_written(&self) -> SystemTime {
        self.log().metadata().and_then(|meta| meta.modified()).expect("it was written")
    }

    /// The end of the last lease that the run was told of: what its last state in the
    /// register says, which whoever moved the register on has written down.
    fn last_lease_ended(&self) -> SystemTime {
        let answer = self.world.json("onlooker", "audit");
        let events = answer["data"]["events"].as_array().expect("events").clone();
        let mut ends = Vec::new();
        let mut holder = None;
        for event in events {
            let state = |key: &str| event[key].as_str()?.parse::<State>().ok();
            if event["kind"] == "acquire" && event["session_id"] == "ci" {
                holder = state("to").and_then(|state| state.holder());
            }
            let states = [state("from"), state("to")].into_iter().flatten();
            let of_the_run = states.filter(|state| holder.is_some() && state.holder() == holder);
            ends.extend(of_the_run.filter_map(|state| Some(state.hold.claim()?.expires.0)));
        }
        let last = ends.into_iter().max().expect("the run held it");
        SystemTime::UNIX_EPOCH + Duration::from_millis(last)
    }

    /// A run whose command starts the escape, says so, and waits to be let go.
    fn start(&self, escape: &Escape) -> Running {
        let [writer, bomb] = ["writer", "bomb"].map(|name| self.world.outside(name));
        fs_err::write(&writer, "while :; do echo x >> \"$1\"; sleep 0.05; done\n")
            .expect("written");
        fs_err::write(&bomb, BOMB).expect("written");
        let [up, go] = ["up", "go"].map(|name| self.world.outside(name).display().to_string());
        let script = format!(
            "W='/bin/sh {} {log}'; B='/bin/sh {} {log} {}'; DIR={}; MARK={}\n{}\n\
             until [ -s {log} ]; do sleep 0.02; done\n\
             touch {up}; until [ -e {go} ]; do sleep 0.05; done; exit 7",
            writer.display(),
            bomb.display(),
            self.world.outside("count").display(),
            self.world.outside("s").display(),
            self.mark(),
            escape.script,
            log = self.log().display(),
        );
        // Without the kernel's help a crowd has to be found before it can be ended, and on a
        // busy machine that takes longer than a short lease sets aside.
        let lease = if self.contain == "reap" && escape.multiplies() { "9s" } else { "3s" };
        let options = format!("run --lease {lease} --contain {}", self.contain);
        let running = self.jvs(self.world.run("ci", &options, &script)).start();
        let up = PathBuf::from(up);
        eventually(&format!("{} is up: {}", escape.name, running.said()), PATIENCE, || up.exists());
        running
    }

    /// The processes of the tree that are there, by what they were started with.
    fn survivors(&self) -> Vec<String> {
        let mark = self.mark();
        let mut found = Vec::new();
        for process in jvs_repo::proc::processes() {
            let line = fs_err::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let of_jvs = process.name == "jvs" || process.name == "jvs-guardian";
            if line.contains(&mark) && !process.zombie && !of_jvs {
                found.push(format!("{} {}: {line}", process.pid, process.name));
            }
        }
        found
    }

    fn try_escape(&self, escape: &Escape, ending: Ending) {
        let what = format!("{} / {ending:?} / {} / {:?}", escape.name, self.contain, self.uid);
        let running = self.start(escape);
        let keeper = self.world.keeper();
        let rival =
            self.jvs(self.world.jvs("rival", "lock acquire --no-keeper --lease 1h --wait=60s"));
        let rival = (ending != Ending::Stolen).then(|| rival.start());
        let kill = |process: Pid, signal| kill_process(process, signal).expect("it is there");
        let go = || fs_err::write(self.world.outside("go"), "").expect("told to go on");
        let exit = match ending {
            Ending::Exit => {
                go();
                Some(7)
            }
            Ending::Lost => {
                // Nor can another keeper begin: it would not know who it is.
                fs_err::rename(self.secrets(), self.secrets_away()).expect("moved");
                kill(keeper, Signal::STOP);
                Some(5)
            }
            Ending::Stolen => {
                let words = "lock reclaim --emergency --reason x --no-keeper";
                self.jvs(self.world.jvs("rival", words)).run().ok();
                Some(5)
            }
            Ending::RunKilled => {
                kill(running.pid(), Signal::KILL);
                None
            }
            Ending::KeeperKilled => {
                kill(keeper, Signal::KILL);
                eventually(&format!("{what}: kept again"), PATIENCE, || {
                    let status = self.world.status();
                    status["keeper"]["alive"] == true
                        && status["keeper"]["pid"] != keeper.as_raw_nonzero().get()
                });
                go();
                Some(7)
            }
            Ending::BothKilled => {
                kill(running.pid(), Signal::KILL);
                kill(keeper, Signal::KILL);
                None
            }
        };
        // Whoever has the lock next is alone: now, and from now on.
        if let Some(rival) = rival {
            rival.wait(PATIENCE * 2).ok();
            let (left, written) = (self.survivors(), self.written());
            assert!(left.is_empty(), "{what}: beside the next holder: {left:#?}");
            std::thread::sleep(Duration::from_millis(150));
            assert_eq!(self.written(), written, "{what}: written beside the next holder");
        }
        let outcome = running.wait(PATIENCE);
        let _ = fs_err::rename(self.secrets_away(), self.secrets());
        if let Some(exit) = exit {
            let outcome = outcome.exits(exit);
            let left = self.survivors();
            assert!(left.is_empty(), "{what}: {left:#?}");
            if exit == 5 {
                assert!(
                    outcome.stderr().contains("so the command was stopped"),
                    "{what}: {outcome}"
                );
            }
        }
        let (written, ended) = (self.last_written(), self.last_lease_ended());
        assert!(
            written <= ended,
            "{what}: written after the lease: {:?}",
            written.duration_since(ended)
        );
        eventually(&format!("{what}: no guardian and no keeper is left"), PATIENCE, || {
            self.helpers().is_empty()
        });
    }

    /// The private directory.
    fn secrets(&self) -> PathBuf {
        self.world.home.runtime_dir().join("jvs")
    }

    fn secrets_away(&self) -> PathBuf {
        self.world.home.runtime_dir().join("away")
    }

    /// Processes of jvs that have the mark of this case.
    fn helpers(&self) -> Vec<u32> {
        let (mark, root) = (self.mark(), self.world.root().display().to_string());
        let of_this = |process: &jvs_repo::proc::Process| {
            let line = fs_err::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            !process.zombie && (line.contains(&mark) || line.contains(&root))
        };
        let all = jvs_repo::proc::processes().into_iter().filter(of_this);
        all.map(|process| process.pid).collect()
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        // A stopped keeper ends with its run; one that a failed test left must not stay.
        for pid in self.helpers() {
            if let Some(pid) = Pid::from_raw(i32::try_from(pid).unwrap_or(0)) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if let Some(cgroup) = &self.cgroup {
            let _ = fs_err::write(cgroup.join("cgroup.kill"), "1");
            for _ in 0..200 {
                // A failed test may have left that of a run below it.
                for below in cgroup.read_dir().into_iter().flatten().flatten() {
                    let _ = fs_err::remove_dir(below.path());
                }
                if fs_err::remove_dir(cgroup).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// A cgroup that belongs to the user, as a login manager would give it. `None` where the
/// host has no unified hierarchy in which root may make one.
fn delegated_cgroup(world: &World, uid: u32) -> Option<PathBuf> {
    let elsewhere = World::new();
    let said = elsewhere.run("ann", "run -v --contain cgroup", "true").run();
    let line = said.stderr().lines().find(|line| line.contains("contained by the cgroup "))?;
    let made = PathBuf::from(line.split("the cgroup ").nth(1)?.split(" (").next()?);
    let name = world.outside("x").parent()?.file_name()?.to_string_lossy().into_owned();
    let cgroup = made.parent()?.join(name);
    fs_err::create_dir(&cgroup).expect("root may make a cgroup where it just did");
    for path in [cgroup.clone(), cgroup.join("cgroup.procs"), cgroup.join("cgroup.subtree_control")]
    {
        fs_err::os::unix::fs::chown(path, Some(uid), Some(uid)).expect("root may give it away");
    }
    Some(cgroup)
}

/// Can this container be made here, by this user? If not, that is said.
fn is_possible(contain: &'static str, uid: Option<u32>) -> bool {
    let Some(case) = Case::new(contain, uid) else {
        skip(&format!("no cgroup can be made here for user {uid:?}"));
        return false;
    };
    let outcome = case.jvs(case.world.run("ci", &format!("run --contain {contain}"), "true")).run();
    if !outcome.status.success() {
        skip(&format!("--contain {contain} as {uid:?}: {}", outcome.stderr().trim()));
    }
    outcome.status.success()
}

fn nobody_escapes(contain: &'static str, uid: Option<u32>, offset: usize) {
    if !granted(&[Capability::Root]) || !is_possible(contain, uid) {
        return;
    }
    let usable: Vec<&Escape> = ESCAPES
        .iter()
        .filter(|escape| escape.needs.iter().all(|it| granted(&[Capability::Program(it)])))
        .collect();
    let long = std::env::var_os("JVS_LONG").is_some();
    let wanted = std::env::var("JVS_ESCAPES").ok();
    let mut cases = Vec::new();
    for (number, ending) in ENDINGS.into_iter().enumerate() {
        for (place, escape) in usable.iter().enumerate() {
            let times = match &wanted {
                Some(text) if format!("{} / {ending:?}", escape.name).contains(text) => 5,
                Some(_) => 0,
                None => (long || (offset * ENDINGS.len() + number) % usable.len() == place).into(),
            };
            cases.extend(std::iter::repeat_n((*escape, ending), times));
        }
    }
    let (ways, tried) = (usable.len(), cases.len());
    eprintln!("{contain} as {uid:?}: {ways} escapes under {} endings: {tried}", ENDINGS.len());
    // Most of each case is waiting: some at a time.
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((escape, ending)) =
                    cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let case = Case::new(contain, uid).expect("it was possible before");
                    case.try_escape(escape, *ending);
                }
            });
        }
    });
}

#[test]
fn nobody_escapes_from_a_cgroup() {
    nobody_escapes("cgroup", None, 0);
}

#[test]
fn nobody_escapes_from_a_pid_namespace() {
    nobody_escapes("pidns", None, 1);
}

#[test]
fn nobody_escapes_from_a_guardian() {
    nobody_escapes("reap", None, 2);
}

#[test]
fn nobody_escapes_from_a_cgroup_of_another_user() {
    nobody_escapes("cgroup", Some(ANOTHER), 3);
}

#[test]
fn nobody_escapes_from_a_pid_namespace_of_another_user() {
    nobody_escapes("pidns", Some(ANOTHER), 4);
}

#[test]
fn nobody_escapes_from_a_guardian_of_another_user() {
    nobody_escapes("reap", Some(ANOTHER), 5);
}
