//! A private Redis: its own directory, its own socket, no network port, nothing
//! written to disk, and gone on drop.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::process::{Running, eventually};

/// A running server.
#[derive(Debug)]
pub struct Redis {
    server: Running,
    socket: PathBuf,
}

impl Redis {
    /// Starts a server in `dir` and waits until it answers.
    #[track_caller]
    pub fn start(dir: &Path) -> Self {
        let socket = dir.join("redis.sock");
        let mut command = Command::new("redis-server");
        command
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"])
            .args(["--maxmemory-policy", "noeviction"])
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(dir);
        let mut redis = Self { server: Running::start(command), socket };
        eventually("redis answers", Duration::from_secs(30), || {
            assert!(!redis.server.ended(), "redis-server ended: {}", redis.server.said());
            redis.answers()
        });
        redis
    }

    /// Where clients connect.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The server, to pause or kill it.
    pub fn server(&self) -> &Running {
        &self.server
    }

    fn answers(&self) -> bool {
        let ask = || -> std::io::Result<bool> {
            let mut stream = UnixStream::connect(&self.socket)?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.write_all(b"PING\r\n")?;
            let mut answer = [0; 7];
            stream.read_exact(&mut answer)?;
            Ok(&answer == b"+PONG\r\n")
        };
        ask().unwrap_or(false)
    }
}
