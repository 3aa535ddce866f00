//! A JuiceFS volume of one's own, mounted as often as a test has hosts.
//!
//! Each mount is a client process in the foreground with its own cache, as on
//! its own machine: what one mount writes, another learns from the metadata
//! engine only.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use super::capability::{Capability, granted, juicefs_program};
use super::held_back::HeldBack;
use super::mount::MountPoint;
use super::process::{Running, eventually, run};
use super::redis::Redis;

/// How long a volume may take to be formatted, mounted or unmounted.
const DEADLINE: Duration = Duration::from_secs(60);

/// Where the volume keeps its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A file that all clients open.
    Sqlite,
    /// A private server.
    Redis,
}

impl Engine {
    /// Both, for tests that must hold on either.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Redis];
}

/// A formatted volume and its mounts. On drop all of it goes away: mounts
/// first, then the metadata engine, then the files.
#[derive(Debug)]
pub struct Volume {
    mounts: Vec<Client>,
    redis: Option<Redis>,
    metadata: String,
    dir: TempDir,
}

impl Volume {
    /// Formats a volume, or skips the test where that cannot be done.
    #[track_caller]
    pub fn format(engine: Engine) -> Option<Self> {
        let mut wanted = vec![Capability::Root, Capability::Fuse, Capability::JuiceFs];
        if engine == Engine::Redis {
            wanted.push(Capability::Program("redis-server"));
        }
        if !granted(&wanted) {
            return None;
        }

        let dir = tempfile::Builder::new().prefix("jvs-juicefs-").tempdir().expect("a directory");
        let redis = (engine == Engine::Redis).then(|| Redis::start(dir.path()));
        let metadata = match &redis {
            Some(redis) => format!("unix://{}?db=0", redis.socket().display()),
            None => format!("sqlite3://{}", dir.path().join("metadata.db").display()),
        };
        Some(Self::formatted(dir, redis, metadata))
    }

    /// Formats a volume whose metadata is with a server of the caller's, at this address.
    #[track_caller]
    pub fn format_at(metadata: String) -> Option<Self> {
        if !granted(&[Capability::Root, Capability::Fuse, Capability::JuiceFs]) {
            return None;
        }
        let dir = tempfile::Builder::new().prefix("jvs-juicefs-").tempdir().expect("a directory");
        Some(Self::formatted(dir, None, metadata))
    }

    #[track_caller]
    fn formatted(dir: TempDir, redis: Option<Redis>, metadata: String) -> Self {
        let mut format = Command::new(juicefs_program());
        format
            .args(["format", "--storage", "file", "--trash-days", "0", "--bucket"])
            .arg(dir.path().join("objects/"))
            .args([&metadata, "volume"]);
        run(format, DEADLINE).ok();
        Self { mounts: Vec::new(), redis, metadata, dir }
    }

    /// Lets files have access control lists on all mounts from now on.
    pub fn allow_lists(&self) {
        let mut config = Command::new(juicefs_program());
        config.args(["config", "--yes", "--enable-acl", &self.metadata]);
        run(config, DEADLINE).ok();
    }

    /// Formats a volume and mounts it `hosts` times with the client's defaults.
    #[track_caller]
    pub fn mounted(engine: Engine, hosts: usize) -> Option<Self> {
        let mut volume = Self::format(engine)?;
        for _ in 0..hosts {
            volume.mount(&[]);
        }
        Some(volume)
    }

    /// Mounts the volume once more, with these options of `juicefs mount`, and
    /// returns where.
    #[track_caller]
    pub fn mount(&mut self, options: &[&str]) -> PathBuf {
        let metadata = self.metadata.clone();
        self.mount_through(&metadata, options)
    }

    /// As [`Volume::mount`], by a client that reaches the metadata engine at another
    /// address: through a proxy, say.
    #[track_caller]
    pub fn mount_through(&mut self, metadata: &str, options: &[&str]) -> PathBuf {
        let host = self.mounts.len();
        let point = MountPoint::create(self.dir.path().join(format!("host-{host}")));
        let path = point.path().to_owned();
        let mut words = vec!["mount", "--no-usage-report", "--no-syslog", "--backup-meta", "0"];
        // However full the disk is: a cache without room uploads at once, whatever else
        // the options say.
        words.extend(["--free-space-ratio", "0.001", "--metrics", "127.0.0.1:0"]);
        words.extend(options);
        let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        words.extend(["--cache-dir".into(), self.dir.path().join(format!("cache-{host}")).into()]);
        words.extend([metadata.into(), path.clone().into()]);
        self.mounts.push(Client::start(words, point));
        path
    }

    /// Mounts the volume again where the `host`-th mount was, with the same options. The
    /// client that was there is killed; what it had not handed in is lost, as with its
    /// host.
    #[track_caller]
    pub fn remount(&mut self, host: usize) {
        let client = &mut self.mounts[host];
        client.process.signal(Signal::KILL);
        assert!(client.process.ends_within(DEADLINE), "a killed client ends");
        client.forget_socket();
        client.point.detach();
        client.process = Client::process(&client.words);
        client.wait_until_mounted();
    }

    /// Lets a directory below the volume's root, which is made if it is not
    /// there, have at most so many files. Mounts of later know it at once.
    #[track_caller]
    pub fn limit_files(&self, dir: &str, files: u64) {
        let mut quota = Command::new(juicefs_program());
        quota
            .args(["quota", "set", &self.metadata, "--create", "--path", &format!("/{dir}")])
            .args(["--inodes", &files.to_string()]);
        run(quota, DEADLINE).ok();
    }

    /// Gives the volume room for so many GiB. Mounts of later know it.
    #[track_caller]
    pub fn limit_room(&self, gib: u64) {
        let mut config = Command::new(juicefs_program());
        config.args(["config", &self.metadata, "--yes", "--capacity", &gib.to_string()]);
        run(config, DEADLINE).ok();
    }

    /// Where the `host`-th mount is, counted from 0.
    #[track_caller]
    pub fn host(&self, host: usize) -> &Path {
        self.mounts[host].point.path()
    }

    /// Sends a signal to the client behind the `host`-th mount: SIGKILL is that
    /// host's death, SIGSTOP and SIGCONT a mount that hangs for a while.
    #[track_caller]
    pub fn signal_host(&self, host: usize, signal: Signal) {
        self.mounts[host].process.signal(signal);
    }

    /// Keeps what is stored into the mapped `file` on its way to the `host`-th mount.
    #[track_caller]
    pub fn hold_back(&self, host: usize, file: &Path) -> HeldBack {
        // In memory from now on: a store into a page that has to be fetched first would
        // wait for what is held back.
        fs_err::read(file).expect("the file");
        let control = self.dir.path().join(format!("held-back-{host}"));
        HeldBack::at(&self.host(host).join(".stats"), control)
    }

    /// Where the volume's data is, once it is uploaded.
    pub fn objects(&self) -> PathBuf {
        self.dir.path().join("objects")
    }

    /// The metadata server, if the engine is one.
    pub fn redis(&self) -> Option<&Redis> {
        self.redis.as_ref()
    }
}

/// One mount and the process that serves it.
#[derive(Debug)]
struct Client {
    process: Running,
    point: MountPoint,
    words: Vec<OsString>,
}

impl Client {
    #[track_caller]
    fn start(words: Vec<OsString>, point: MountPoint) -> Self {
        let mut client = Self { process: Self::process(&words), point, words };
        client.wait_until_mounted();
        client
    }

    #[track_caller]
    fn process(words: &[OsString]) -> Running {
        let mut command = Command::new(juicefs_program());
        command.args(words);
        Running::start(command)
    }

    #[track_caller]
    fn wait_until_mounted(&mut self) {
        eventually("the volume is mounted", DEADLINE, || {
            assert!(!self.process.ended(), "juicefs ended: {}", self.process.said());
            self.point.is_mounted()
        });
    }

    /// What a client that was killed leaves.
    fn forget_socket(&self) {
        let pid = self.process.pid().as_raw_nonzero();
        let _ = fs_err::remove_file(format!("/tmp/fuse_fd_comm.{pid}"));
    }
}

impl Drop for Client {
    /// Detached first, so that the client ends by itself and hands in what it
    /// still has. One that does not, because the test holds a file open, is
    /// killed, and then leaves its upgrade socket behind.
    fn drop(&mut self) {
        self.point.detach();
        self.process.signal(Signal::CONT);
        if !self.process.ends_within(Duration::from_secs(3)) {
            self.process.signal(Signal::KILL);
            self.process.ends_within(DEADLINE);
        }
        self.forget_socket();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::mount::mounts_below;

    /// Ids of processes whose command line names `dir`.
    fn processes_naming(dir: &Path) -> Vec<String> {
        let wanted = dir.to_str().expect("a temporary directory is UTF-8");
        fs_err::read_dir("/proc")
            .expect("the process list")
            .filter_map(Result::ok)
            .filter(|entry| {
                fs_err::read(entry.path().join("cmdline"))
                    .is_ok_and(|line| String::from_utf8_lossy(&line).contains(wanted))
            })
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    fn nothing_is_left_of(dir: &Path) {
        assert_eq!(mounts_below(dir), Vec::<PathBuf>::new(), "a mount is left");
        assert!(!dir.exists(), "files are left in {}", dir.display());
        eventually("all processes are gone", DEADLINE, || processes_naming(dir).is_empty());
    }

    fn two_mounts_are_one_volume(engine: Engine) {
        let Some(volume) = Volume::mounted(engine, 2) else { return };
        let dir = volume.dir.path().to_owned();
        fs_err::write(volume.host(0).join("note"), "written on one host").expect("a file");
        let read = fs_err::read_to_string(volume.host(1).join("note")).expect("the same file");
        assert_eq!(read, "written on one host");
        assert!(!processes_naming(&dir).is_empty(), "the look for processes finds the clients");
        drop(volume);
        nothing_is_left_of(&dir);
    }

    #[test]
    fn a_file_written_through_one_mount_is_seen_through_the_other_on_sqlite() {
        two_mounts_are_one_volume(Engine::Sqlite);
    }

    #[test]
    fn a_file_written_through_one_mount_is_seen_through_the_other_on_redis() {
        two_mounts_are_one_volume(Engine::Redis);
    }

    #[test]
    fn a_test_that_panics_leaves_nothing_behind() {
        let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
        let dir = volume.dir.path().to_owned();
        let open = fs_err::File::create(volume.host(0).join("open")).expect("a file");
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _held_while_unwinding = volume;
            panic!("as a failing test does");
        }));
        assert!(died.is_err());
        nothing_is_left_of(&dir);
        drop(open);
    }

    #[test]
    fn the_death_or_the_silence_of_a_client_does_not_hang_the_cleanup() {
        let Some(volume) = Volume::mounted(Engine::Sqlite, 2) else { return };
        let dir = volume.dir.path().to_owned();
        volume.signal_host(0, Signal::KILL);
        volume.signal_host(1, Signal::STOP);
        drop(volume);
        nothing_is_left_of(&dir);
    }

    #[test]
    fn a_client_that_was_killed_is_mounted_again_in_its_place() {
        let Some(mut volume) = Volume::mounted(Engine::Sqlite, 2) else { return };
        let dir = volume.dir.path().to_owned();
        fs_err::write(volume.host(1).join("note"), "kept").expect("a file");
        volume.signal_host(0, Signal::KILL);
        volume.remount(0);
        let read = fs_err::read_to_string(volume.host(0).join("note")).expect("mounted");
        assert_eq!(read, "kept");
        drop(volume);
        nothing_is_left_of(&dir);
    }

    #[test]
    fn a_mount_takes_extra_options() {
        let Some(mut volume) = Volume::format(Engine::Sqlite) else { return };
        let path = volume.mount(&["--read-only"]);
        let refused = fs_err::write(path.join("note"), "x").expect_err("a read-only mount");
        assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
}
