//! One user on one host: a home, a runtime directory, and nothing inherited
//! from whoever runs the tests.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::binary;
use super::process::{DEADLINE, Outcome, Running, run};

/// The session of a command that was not given another one.
pub const SESSION: &str = "test";

/// A private home directory and runtime directory; sessions' secrets land here.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
}

impl Home {
    /// An empty home.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("jvs-home-").tempdir().expect("a home");
        for part in ["home", "run"] {
            fs_err::create_dir(dir.path().join(part)).expect("a directory of the home");
        }
        Self { dir }
    }

    /// The user's `$HOME`.
    pub fn home_dir(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The user's `$XDG_RUNTIME_DIR`.
    pub fn runtime_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    /// Gives all of it, and `also`, to another user.
    pub fn give_to(&self, uid: u32, also: &Path) {
        let mut chown = Command::new("chown");
        chown.arg("-R").arg(format!("{uid}:{uid}")).args([self.dir.path(), also]);
        run(chown, DEADLINE).ok();
    }

    /// `jvs` with these arguments, as this user.
    pub fn jvs<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Jvs {
        Jvs {
            program: binary::jvs(),
            wrapper: Vec::new(),
            args: args.into_iter().map(|arg| arg.as_ref().to_owned()).collect(),
            cwd: self.home_dir(),
            env: vec![
                ("HOME".into(), self.home_dir().into()),
                ("XDG_RUNTIME_DIR".into(), self.runtime_dir().into()),
                ("JVS_SESSION_ID".into(), SESSION.into()),
                (
                    "PATH".into(),
                    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
                ),
                ("LANG".into(), "C.UTF-8".into()),
                // No keeper outlives the test that had it started.
                ("JVS_KEEP_WHILE".into(), std::process::id().to_string().into()),
            ],
            deadline: DEADLINE,
        }
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

/// One run of `jvs`, to be described and then started.
#[derive(Debug, Clone)]
#[must_use = "nothing runs before `run` or `start`"]
pub struct Jvs {
    program: PathBuf,
    wrapper: Vec<OsString>,
    args: Vec<OsString>,
    cwd: PathBuf,
    env: Vec<(OsString, OsString)>,
    deadline: Duration,
}

impl Jvs {
    /// Runs in this directory instead of the home.
    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Self {
        self.cwd = dir.as_ref().to_owned();
        self
    }

    /// Runs this build of the command instead of the one under test.
    pub fn program(mut self, program: &Path) -> Self {
        self.program = program.to_owned();
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Runs as this session instead of [`SESSION`].
    pub fn session(self, id: &str) -> Self {
        self.env("JVS_SESSION_ID", id)
    }

    /// Sets or replaces an environment variable.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self = self.env_remove(&key);
        self.env.push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Removes an environment variable.
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.env.retain(|(name, _)| name != key.as_ref());
        self
    }

    /// Starts through another program (`strace …`), outermost first.
    pub fn under<A: AsRef<OsStr>>(mut self, wrapper: impl IntoIterator<Item = A>) -> Self {
        self.wrapper.extend(wrapper.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Kills and fails the test after this long instead of [`DEADLINE`].
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The command as it will be started.
    pub fn command(&self) -> Command {
        let mut words = self.wrapper.iter().cloned().chain([self.program.clone().into_os_string()]);
        let mut command = Command::new(words.next().expect("the program itself is a word"));
        command
            .args(words)
            .args(&self.args)
            .current_dir(&self.cwd)
            .env_clear()
            .envs(self.env.iter().map(|(key, value)| (key, value)));
        command
    }

    /// Starts it and does not wait.
    #[track_caller]
    pub fn start(&self) -> Running {
        Running::start(self.command())
    }

    /// Runs it to its end, or kills it at the deadline and fails the test.
    #[track_caller]
    pub fn run(&self) -> Outcome {
        self.start().wait(self.deadline)
    }
}
