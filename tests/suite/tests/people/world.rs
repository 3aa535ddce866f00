//! A repository, its user, and the sessions that work in it.

use std::path::PathBuf;
use std::time::Duration;

use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::process::{Outcome, eventually};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) home: Home,
    /// Somebody else's.
    other: Home,
    /// Two mounts of one volume, ours and that of the others.
    volume: Option<Volume>,
    dir: tempfile::TempDir,
}

impl World {
    /// A repository with worktree `main`.
    pub(crate) fn new() -> Self {
        World::with(None)
    }

    /// The same on a JuiceFS volume that is mounted twice, as on two hosts.
    pub(crate) fn on_two_mounts() -> Option<Self> {
        Some(World::with(Some(Volume::mounted(Engine::Redis, 2)?)))
    }

    fn with(volume: Option<Volume>) -> Self {
        let dir = tempfile::Builder::new().prefix("jvs-people-").tempdir().expect("a directory");
        let world = World { home: Home::new(), other: Home::new(), volume, dir };
        world.home.jvs(["init"]).arg(world.root()).cwd(world.dir.path()).run().ok();
        // Clocks here are one clock: a lease that is over is soon stealable.
        world.ok("ann", "config set lock.max_clock_skew_ms 50");
        world.ok("ann", "config set lock.steal_grace_ms 50");
        world
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root_on(0)
    }

    /// Sends a signal to the client behind a mount: one that is stopped hangs.
    pub(crate) fn signal_mount(&self, host: usize, signal: Signal) {
        self.volume.as_ref().expect("there are mounts").signal_host(host, signal);
    }

    /// `jvs` of this user on one of two hosts, not yet started.
    pub(crate) fn jvs_on(&self, host: usize, words: &str) -> Jvs {
        let home = if host == 0 { &self.home } else { &self.other };
        home.jvs(words.split(' ')).cwd(self.root_on(host).join("main"))
    }

    pub(crate) fn root_on(&self, host: usize) -> PathBuf {
        let place = self.volume.as_ref().map_or(self.dir.path(), |volume| volume.host(host));
        place.join("r")
    }

    /// `jvs` as somebody else, where there are two mounts on the other one.
    pub(crate) fn rival(&self, words: &str) -> Jvs {
        self.other.jvs(words.split(' ')).session("rival").cwd(self.root_on(1).join("main"))
    }

    /// A directory outside the repository.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Gives the repository and the home to another user.
    pub(crate) fn give_to(&self, uid: u32) {
        self.home.give_to(uid, self.dir.path());
    }

    /// The record on disk.
    pub(crate) fn record_path(&self) -> PathBuf {
        self.root().join(layout::lock_record(&WorktreeName::main()).as_str())
    }

    pub(crate) fn record(&self) -> Value {
        let text = fs_err::read_to_string(self.record_path()).expect("there is a record");
        serde_json::from_str(&text).expect("a record is JSON")
    }

    /// The tickets of those who wait.
    pub(crate) fn tickets(&self) -> usize {
        let queue = self.root().join(layout::queue(&WorktreeName::main()).as_str());
        queue.read_dir().map_or(0, Iterator::count)
    }

    /// `jvs` as a session, not yet started. Words are split at spaces.
    pub(crate) fn jvs(&self, session: &str, words: &str) -> Jvs {
        self.home.jvs(words.split(' ')).session(session).cwd(self.root().join("main"))
    }

    /// `jvs run` of a shell script.
    pub(crate) fn run(&self, session: &str, options: &str, script: &str) -> Jvs {
        let program = jvs_kit::live::binary::jvs();
        let bin = program.parent().expect("a program lies in a directory").display().to_string();
        self.jvs(session, options)
            .arg("--")
            .arg("sh")
            .arg("-c")
            .arg(script)
            .env("PATH", format!("{bin}:/usr/bin:/bin"))
    }

    #[track_caller]
    pub(crate) fn ok(&self, session: &str, words: &str) -> Outcome {
        self.jvs(session, words).run().ok()
    }

    #[track_caller]
    pub(crate) fn json(&self, session: &str, words: &str) -> Value {
        self.jvs(session, words).arg("--json").run().json()
    }

    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.json("onlooker", "lock status")["data"].clone()
    }

    /// The process that keeps the lock.
    #[track_caller]
    pub(crate) fn keeper(&self) -> Pid {
        let status = self.status();
        let pid = status["keeper"]["pid"].as_i64().unwrap_or_else(|| panic!("kept: {status}"));
        Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not zero")
    }

    #[track_caller]
    pub(crate) fn signal(&self, process: Pid, signal: Signal) {
        kill_process(process, signal).expect("it is there to be signalled");
    }

    /// The same of one that may have ended already.
    pub(crate) fn signal_if_there(&self, process: Pid, signal: Signal) {
        if !is_gone(process) {
            let _ = kill_process(process, signal);
        }
    }

    #[track_caller]
    pub(crate) fn eventually_free(&self) {
        eventually("the lock is free", PATIENCE, || self.status()["state"] == "free");
    }

    /// The events of a kind that were done, oldest first.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let answer = self.json("onlooker", "audit");
        let events = answer["data"]["events"].as_array().expect("events").clone();
        events.into_iter().filter(|e| e["kind"] == kind && e["phase"] == "done").collect()
    }

    /// Whether all events and the register agree.
    #[track_caller]
    pub(crate) fn audit_holds(&self) {
        self.ok("onlooker", "audit --verify");
    }
}

/// Has the process ended?
pub(crate) fn is_gone(process: Pid) -> bool {
    let stat = jvs_repo::proc::process_stat(process.as_raw_nonzero().get().unsigned_abs());
    stat.is_none_or(|stat| stat.zombie)
}
