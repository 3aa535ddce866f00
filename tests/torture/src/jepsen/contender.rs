//! The tools that are asked for a lock, each as its documentation says.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jvs_kit::live::process::{Running, eventually};
use jvs_kit::live::redis::Redis;

use crate::dice::Dice;

/// How long every lease is, where there is one.
pub(super) const LEASE_MS: u64 = 2_000;

/// A tool that locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// flock(1), by the kernel.
    Flock,
    /// `etcdctl lock`, with a lease that its process keeps alive.
    Etcd,
    /// `SET NX PX`, and a script that deletes only its own.
    Redis,
    /// `SoftFileLease` of the Python package `filelock`.
    Filelock,
    /// `jvs run`.
    JvsRun,
    /// `jvs lock acquire`, and what is written counts once `jvs snapshot` published it.
    JvsFenced,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Flock, Self::Etcd, Self::Redis, Self::Filelock, Self::JvsRun, Self::JvsFenced];

    /// What it is called in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Flock => "flock",
            Self::Etcd => "etcdctl lock",
            Self::Redis => "redis SET NX PX",
            Self::Filelock => "filelock SoftFileLease",
            Self::JvsRun => "jvs run",
            Self::JvsFenced => "jvs lock + snapshot",
        }
    }

    /// Whether a loss is a defect, and not what the tool is known for.
    #[must_use]
    pub fn must_lose_nothing(self) -> bool {
        matches!(self, Self::JvsRun | Self::JvsFenced)
    }

    /// What it needs beyond this program: a program on the path, or a variable.
    #[must_use]
    pub fn is_missing(self) -> Option<String> {
        let on_path = |name: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let found = std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
            (!found).then(|| format!("no {name}"))
        };
        match self {
            Self::Flock => on_path("flock"),
            Self::Etcd => on_path("etcd").or_else(|| on_path("etcdctl")),
            Self::Redis => on_path("redis-server"),
            Self::Filelock => {
                let python = python();
                let mut import = Command::new(&python);
                import.args(["-c", "from filelock import SoftFileLease"]);
                import.stderr(std::process::Stdio::null());
                let is_there = import.status().is_ok_and(|status| status.success());
                (!is_there).then(|| format!("{} has no filelock.SoftFileLease", python.display()))
            }
            Self::JvsRun | Self::JvsFenced => None,
        }
    }
}

fn python() -> PathBuf {
    std::env::var_os("JVS_PYTHON").unwrap_or_else(|| "python3".into()).into()
}

/// The servers that some tools need, ended on drop.
pub(super) struct Servers {
    redis: Option<Redis>,
    etcd: Option<(Running, String)>,
}

/// A script for the shell's `python`: a lease around a command.
const LEASE: &str = "
import subprocess, sys
from filelock import SoftFileLease
path, seconds, words = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
with SoftFileLease(path, lease_duration=seconds, heartbeat_interval=seconds / 4):
    sys.exit(subprocess.call(words))
";

impl Servers {
    pub(super) fn start(tool: Tool, dir: &Path) -> Self {
        let redis = (tool == Tool::Redis).then(|| Redis::start(dir));
        let etcd = (tool == Tool::Etcd).then(|| etcd(dir));
        Self { redis, etcd }
    }

    /// The command that runs `words` under the lock, for tools that are programs.
    pub(super) fn around(&self, tool: Tool, place: &Path, words: &[String]) -> Command {
        let lease = (LEASE_MS as f64 / 1000.0).to_string();
        let lock = place.join("lock");
        let mut command;
        match (tool, &self.etcd) {
            (Tool::Etcd, Some((_, endpoint))) => {
                command = Command::new("etcdctl");
                command.env("ETCDCTL_API", "3").args(["--endpoints", endpoint, "lock", "--ttl"]);
                command.args([&(LEASE_MS / 1000).to_string(), "torture"]);
            }
            (Tool::Filelock, _) => {
                command = Command::new(python());
                command.args(["-c", LEASE]).arg(lock).arg(lease);
            }
            _ => {
                command = Command::new("flock");
                command.arg(lock);
            }
        }
        command.args(words);
        command
    }

    /// Takes the lock in Redis, as its documentation says: with a value of one's own.
    pub(super) fn take(&self, dice: &mut Dice) -> Option<String> {
        let mine = dice.next().to_string();
        let lease = LEASE_MS.to_string();
        let words = ["SET", "lock", &mine, "NX", "PX", &lease];
        (self.say(&words).as_deref() == Some("+OK")).then_some(mine)
    }

    /// Deletes it, if it is still the same.
    pub(super) fn give_back(&self, mine: &str) {
        let script = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) \
                      else return 0 end";
        let _ = self.say(&["EVAL", script, "1", "lock", mine]);
    }

    /// The first line of what Redis answers.
    fn say(&self, words: &[&str]) -> Option<String> {
        let mut stream = UnixStream::connect(self.redis.as_ref()?.socket()).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let mut text = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| text += &format!("${}\r\n{word}\r\n", word.len()));
        stream.write_all(text.as_bytes()).ok()?;
        let mut answer = [0; 64];
        let length = stream.read(&mut answer).ok()?;
        let text = String::from_utf8_lossy(&answer[..length]).into_owned();
        text.lines().next().map(str::to_owned)
    }
}

/// An etcd of its own, on ports that were free a moment ago.
fn etcd(dir: &Path) -> (Running, String) {
    let [clients, peers] = [0, 0].map(|_| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a port").port();
        format!("http://127.0.0.1:{port}")
    });
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(dir.join("etcd"));
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("default={peers}")]);
    let mut server = Running::start(command);
    eventually("etcd answers", Duration::from_secs(60), || {
        assert!(!server.ended(), "etcd ended: {}", server.said());
        let mut ask = Command::new("etcdctl");
        ask.env("ETCDCTL_API", "3").args(["--endpoints", &clients, "get", "x"]);
        ask.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        ask.status().is_ok_and(|status| status.success())
    });
    (server, clients)
}
