//! Metadata servers of one's own: a private directory, a port on the loopback, and gone
//! on drop.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::{Running, eventually, run};
use jvs_kit::live::redis::Redis;
use rustix::process::Signal;

use super::proxy::Upstream;

const DEADLINE: Duration = Duration::from_secs(120);

/// A kind of metadata server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Redis, without anything on disk.
    Redis,
    /// PostgreSQL, with trust in whoever reaches its port.
    Postgres,
    /// MariaDB, with InnoDB as it comes.
    MariaDb,
    /// A cluster of one etcd.
    Etcd,
}

/// A server that runs.
pub(super) enum Server {
    Redis(Redis),
    Other(Running, u16),
}

impl Engine {
    /// Starts one in `dir`, or returns nothing where it is not installed.
    pub(super) fn start(self, dir: &Path) -> Option<Server> {
        let program = match self {
            Self::Redis => "redis-server",
            Self::Postgres => "pg_ctlcluster",
            Self::MariaDb => "mariadbd",
            Self::Etcd => "etcd",
        };
        if !granted(&[Capability::Program(program)]) {
            return None;
        }
        let dir = dir.join("server");
        fs_err::create_dir(&dir).expect("a directory for the server");
        Some(match self {
            Self::Redis => Server::Redis(Redis::start(&dir)),
            Self::Postgres => postgres(&dir),
            Self::MariaDb => mariadb(&dir),
            Self::Etcd => etcd(&dir),
        })
    }

    /// Where a client finds it on this port.
    pub(super) fn address(self, port: u16) -> String {
        match self {
            Self::Redis => format!("redis://127.0.0.1:{port}/0"),
            Self::Postgres => {
                format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable")
            }
            Self::MariaDb => format!("mysql://root@(127.0.0.1:{port})/volume"),
            Self::Etcd => format!("etcd://127.0.0.1:{port}/volume"),
        }
    }
}

impl Server {
    pub(super) fn upstream(&self) -> Upstream {
        match self {
            Self::Redis(redis) => Upstream::Socket(redis.socket().to_owned()),
            Self::Other(_, port) => Upstream::Port(*port),
        }
    }

    /// To all of its processes.
    pub(super) fn signal(&self, signal: Signal) {
        match self {
            Self::Redis(redis) => redis.server().signal(signal),
            Self::Other(server, _) => server.signal(signal),
        }
    }
}

impl Drop for Server {
    /// One that is stopped would not end.
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        if let Self::Other(server, _) = self {
            server.signal(Signal::TERM);
            server.ends_within(Duration::from_secs(5));
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a port").port()
}

/// A program as the user that its package made: some refuse to run as root.
fn as_user(user: &str, dir: &Path, program: &str) -> Command {
    let mut give = Command::new("chown");
    give.arg("-R").arg(format!("{user}:{user}")).arg(dir);
    run(give, DEADLINE).ok();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups", program]);
    command.current_dir(dir);
    command
}

fn until_it_answers(what: &str, server: &mut Running, mut ask: impl FnMut() -> Command) {
    eventually(&format!("{what} answers"), DEADLINE, || {
        assert!(!server.ended(), "{what} ended: {}", server.said());
        let mut asking = ask();
        asking.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        asking.status().is_ok_and(|status| status.success())
    });
}

/// Debian keeps its programs in a directory of their version.
fn postgres_program(name: &str) -> String {
    let versions = fs_err::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let newest = versions.filter_map(|entry| Some(entry.ok()?.path())).max();
    let program = newest.expect("a version of it").join("bin").join(name);
    program.to_str().expect("a path in UTF-8").to_owned()
}

fn postgres(dir: &Path) -> Server {
    let data = dir.join("data");
    let mut make = as_user("postgres", dir, &postgres_program("initdb"));
    make.arg("-D").arg(&data).args(["--auth", "trust", "--no-sync", "--encoding", "UTF8"]);
    run(make, DEADLINE).ok();
    let port = free_port();
    let mut command = as_user("postgres", dir, &postgres_program("postgres"));
    command.arg("-D").arg(&data).args(["-p", &port.to_string(), "-k"]).arg(dir);
    command.args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
    let mut server = Running::start(command);
    until_it_answers("PostgreSQL", &mut server, || {
        let mut ask = Command::new(postgres_program("pg_isready"));
        ask.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        ask
    });
    Server::Other(server, port)
}

fn mariadb(dir: &Path) -> Server {
    let (data, socket) = (dir.join("data"), dir.join("socket"));
    let mut make = as_user("mysql", dir, "mariadb-install-db");
    make.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    make.args(["--skip-test-db", "--auth-root-authentication-method=normal"]);
    run(make, DEADLINE).ok();
    let port = free_port();
    let mut command = as_user("mysql", dir, "/usr/sbin/mariadbd");
    command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    command.arg(format!("--socket={}", socket.display())).arg(format!("--port={port}"));
    // Nobody but this machine can reach it, and it has no secrets.
    command.args(["--bind-address=127.0.0.1", "--skip-grant-tables"]);
    command.arg("--innodb-flush-log-at-trx-commit=0");
    let mut server = Running::start(command);
    until_it_answers("MariaDB", &mut server, || {
        let mut ask = Command::new("mariadb");
        ask.arg("--no-defaults").arg(format!("--socket={}", socket.display()));
        ask.args(["-e", "CREATE DATABASE IF NOT EXISTS volume"]);
        ask
    });
    Server::Other(server, port)
}

fn etcd(dir: &Path) -> Server {
    let port = free_port();
    let (clients, peers) =
        (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{}", free_port()));
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(dir.join("data"));
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("default={peers}")]);
    let mut server = Running::start(command);
    until_it_answers("etcd", &mut server, || {
        let mut ask = Command::new("etcdctl");
        ask.env("ETCDCTL_API", "3").args(["--endpoints", &clients, "get", "x"]);
        ask
    });
    Server::Other(server, port)
}
