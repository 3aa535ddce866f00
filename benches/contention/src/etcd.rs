//! A private etcd, the peer that also stands its waiters in line.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jvs_kit::live::process::{Running, eventually};

use crate::crowd::run;
use crate::say;

const CLIENTS: &str = "http://127.0.0.1:23790";
const PEERS: &str = "http://127.0.0.1:23800";

/// A running server; gone on drop.
pub(crate) struct Etcd {
    _server: Running,
}

impl Etcd {
    /// Starts one with its data in `dir`; nothing where it is not installed.
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        if Command::new("etcdctl").arg("version").output().is_err() {
            say("etcd is not installed: not compared with");
            return None;
        }
        let mut command = Command::new("etcd");
        command
            .arg("--data-dir")
            .arg(dir.join("etcd"))
            .args(["--listen-client-urls", CLIENTS, "--advertise-client-urls", CLIENTS])
            .args(["--listen-peer-urls", PEERS, "--log-level", "error"]);
        let server = Running::start(command);
        eventually("etcd answers", Duration::from_secs(30), || {
            let health = etcdctl(&["endpoint", "health"]).output();
            health.is_ok_and(|health| health.status.success())
        });
        Some(Etcd { _server: server })
    }

    /// One turn; how long it took.
    pub(crate) fn turn(&self) -> Duration {
        let start = Instant::now();
        run(etcdctl(&["lock", "x", "true"]));
        start.elapsed()
    }
}

fn etcdctl(words: &[&str]) -> Command {
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").args(["--endpoints", CLIENTS]).args(words);
    command
}
