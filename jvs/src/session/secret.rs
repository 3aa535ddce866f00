//! The session's secret: 32 random bytes in a file that only this user can
//! read, on this host, outside any repository.
//!
//! Two processes of one session that start at once must agree on one secret:
//! each writes its own candidate whole and then links it to the one name; the
//! first link wins, everybody reads the winner.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use jvs_lock::session::{Secret, SessionId};
use jvs_repo::audit::{AppendTurn, NoTurn, Reach, Turn, WriterId};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::entropy::Entropy;
use jvs_repo::id::{OpNonce, hex};
use jvs_repo::name::ShownName;
use jvs_repo::store::PosixStore;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{Unusable, home, known};
use crate::context::Env;
use crate::fail::{Failure, Stuck};

pub(super) const DIR: &str = "jvs";
const LENGTH: usize = 32;

/// The secret of session `id`, made if this is its first process.
pub(super) fn of(
    id: &SessionId,
    env: Env<'_>,
    entropy: &dyn Entropy,
) -> Result<(Secret, Turns), Failure> {
    let base = base(env)?;
    let place = base.join(DIR);
    // There but for the very first time, so look before making anything.
    let dir = match open_private_dir(&place, Keeps::Secret)? {
        Some(dir) => dir,
        None => {
            make_private_dir(&base, &place, Keeps::Secret)?;
            open_private_dir(&place, Keeps::Secret)?
                .ok_or_else(|| Keeps::Secret.not_usable(&place, Errno::NOENT.into()))?
        }
    };
    let file = SecretFile::new(dir, place, id);
    let secret = match file.read()? {
        Some(secret) => secret,
        None => {
            file.make(entropy).map_err(|error| file.stuck("make", error))?;
            file.tell_whose(id);
            file.read()?.ok_or_else(|| file.stuck("find", Errno::NOENT.into()))?
        }
    };
    Ok((secret, Turns { file, in_vain: AtomicBool::new(false) }))
}

/// Where the private directory is, or will be.
pub(super) fn place(env: Env<'_>) -> Result<PathBuf, Failure> {
    Ok(base(env)?.join(DIR))
}

/// The private directory, if there is one. Makes nothing.
pub(super) fn shared_private_dir(env: Env<'_>) -> Result<Option<OwnedFd>, Failure> {
    open_private_dir(&base(env)?.join(DIR), Keeps::Secret)
}

/// Can nobody else read or replace it?
pub(super) fn is_private(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o077 == 0
}

/// The secret of session `id`, if it has one. Makes nothing.
pub(super) fn peek(id: &SessionId, env: Env<'_>) -> Result<Option<Secret>, Failure> {
    // Where there is no place for secrets, none was ever kept.
    let Ok(base) = base(env) else { return Ok(None) };
    let place = base.join(DIR);
    match open_private_dir(&place, Keeps::Secret)? {
        Some(dir) => SecretFile::new(dir, place, id).read(),
        None => Ok(None),
    }
}

/// The private directory as a filesystem of its own if it is there, and where. Makes
/// nothing.
pub(super) fn peek_store(env: Env<'_>) -> Result<Option<(PosixStore, PathBuf)>, Failure> {
    let place = place(env)?;
    if open_private_dir(&place, Keeps::Secret)?.is_none() {
        return Ok(None);
    }
    let store =
        PosixStore::open(&place).map_err(|error| Keeps::Secret.not_usable(&place, error))?;
    Ok(Some((store, place)))
}

/// Candidates that their makers left when they died, of secrets that are there:
/// nobody can still need them.
pub(crate) fn leftovers(env: Env<'_>) -> Vec<PathBuf> {
    let Ok(place) = base(env).map(|base| base.join(DIR)) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(&place) else { return Vec::new() };
    let is_left = |name: &str| {
        let (secret, op) = name.split_once('.')?;
        op.parse::<OpNonce>().ok()?;
        place.join(secret).is_file().then(|| place.join(name))
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut left: Vec<PathBuf> = names.filter_map(|name| is_left(&name)).collect();
    left.sort();
    left
}

/// The private directory, and the name under which session `id` has its files
/// there. `None` before any session had one. Makes nothing.
pub(super) fn private_dir(
    id: &SessionId,
    env: Env<'_>,
) -> Result<Option<(OwnedFd, String)>, Failure> {
    let Ok(base) = base(env) else { return Ok(None) };
    Ok(open_private_dir(&base.join(DIR), Keeps::Secret)?.map(|dir| (dir, file_name(id))))
}

/// Where words to the next commands of sessions lie; it is there only while
/// there are any.
pub(crate) fn notes_dir(env: Env<'_>) -> Result<PathBuf, Failure> {
    Ok(base(env)?.join(DIR).join("notes"))
}

/// The file with a word to the next command of session `id` in the repository `repo`:
/// what was lost there is nobody's business elsewhere.
pub(super) fn note_path(id: &SessionId, env: Env<'_>, repo: &str) -> Result<PathBuf, Failure> {
    Ok(notes_dir(env)?.join(format!("{}.{repo}", file_name(id))))
}

/// The directory that holds ours: one that the system empties at logout if
/// there is one. The order is fixed, so that all processes look in one place.
pub(super) fn base(env: Env<'_>) -> Result<PathBuf, Failure> {
    if let Some(runtime) = env.path("XDG_RUNTIME_DIR") {
        // Under sudo it may be somebody else's, whose files we must not make.
        let me = rustix::process::geteuid().as_raw();
        if std::fs::metadata(&runtime).is_ok_and(|meta| meta.is_dir() && meta.uid() == me) {
            return Ok(runtime);
        }
    }
    home::state(env).ok_or_else(|| {
        Unusable::new(
            "there is no place for the session's secret",
            "set XDG_RUNTIME_DIR or HOME to a directory that is yours",
        )
        .into()
    })
}

/// What a private directory keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    /// What nobody else may know.
    Secret,
    /// What sessions hold, and what was taken from them.
    Memory,
}

impl Keeps {
    const fn words(self) -> &'static str {
        match self {
            Keeps::Secret => "the session's secret",
            Keeps::Memory => "the memory of this user's sessions",
        }
    }

    /// What it costs to begin anew.
    const fn costs(self) -> &'static str {
        match self {
            Keeps::Secret => "locks held by this session will expire",
            Keeps::Memory => "sessions then do not know what was taken from them",
        }
    }

    pub(super) fn not_usable(self, place: &Path, error: io::Error) -> Failure {
        let doing = format!("use {} for {}", ShownName::new(place), self.words());
        Stuck::new(doing, error).into()
    }

    fn suspicious(self, place: &Path, why: &str) -> Failure {
        let (shown, typed) = (ShownName::new(place), ShownName::new(place).typed());
        Unusable::new(
            format!("{} cannot be trusted: {shown} {why}", self.words()),
            format!("see who made it, then `rm -r {typed}`; {}", self.costs()),
        )
        .into()
    }
}

pub(super) fn make_private_dir(base: &Path, place: &Path, keeps: Keeps) -> Result<(), Failure> {
    let above = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(base);
    above.map_err(|error| keeps.not_usable(base, error))?;
    match rustix::fs::mkdir(place, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(keeps.not_usable(place, error.into())),
    }
}

pub(super) fn open_private_dir(place: &Path, keeps: Keeps) -> Result<Option<OwnedFd>, Failure> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let dir = match rustix::fs::open(place, flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(keeps.suspicious(place, "is not a directory"));
        }
        Err(error) => return Err(keeps.not_usable(place, error.into())),
    };
    let stat = rustix::fs::fstat(&dir).map_err(|error| keeps.not_usable(place, error.into()))?;
    require_private(place, &stat, keeps)?;
    Ok(Some(dir))
}

/// What others can read or replace is no secret.
fn require_private(place: &Path, stat: &Stat, keeps: Keeps) -> Result<(), Failure> {
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(keeps.suspicious(place, "belongs to another user"));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(keeps.suspicious(place, "is open to other users"));
    }
    Ok(())
}

fn suspicious(place: &Path, why: &str) -> Failure {
    Keeps::Secret.suspicious(place, why)
}

/// A hash, so that no session id, however hostile, names another file.
pub(super) fn file_name(id: &SessionId) -> String {
    let digest = blake3::derive_key("jvs session file v1", id.as_str().as_bytes());
    hex(&digest[..16])
}

#[derive(Debug)]
struct SecretFile {
    dir: OwnedFd,
    name: String,
    place: PathBuf,
}

impl SecretFile {
    fn new(dir: OwnedFd, place: PathBuf, id: &SessionId) -> Self {
        SecretFile { dir, name: file_name(id), place }
    }

    fn path(&self) -> PathBuf {
        self.place.join(&self.name)
    }

    fn stuck(&self, doing: &str, error: io::Error) -> Failure {
        let path = self.path();
        Stuck::new(format!("{doing} the session's secret {}", path.display()), error).into()
    }

    fn open(&self) -> Result<Option<OwnedFd>, Failure> {
        // O_NONBLOCK: a FIFO planted here must not hang us.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = match rustix::fs::openat(&self.dir, self.name.as_str(), flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(suspicious(&self.path(), "is a symlink")),
            Err(error) => return Err(self.stuck("open", error.into())),
        };
        let stat = rustix::fs::fstat(&fd).map_err(|error| self.stuck("read", error.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(suspicious(&self.path(), "is not a regular file"));
        }
        require_private(&self.path(), &stat, Keeps::Secret)?;
        Ok(Some(fd))
    }

    fn read(&self) -> Result<Option<Secret>, Failure> {
        let Some(fd) = self.open()? else { return Ok(None) };
        // One byte more than there should be, to notice that there is more.
        let mut bytes = [0; LENGTH + 1];
        let got = rustix::io::pread(&fd, &mut bytes, 0)
            .map_err(|error| self.stuck("read", error.into()))?;
        let mut secret = [0; LENGTH];
        secret.copy_from_slice(&bytes[..LENGTH]);
        if got == LENGTH {
            Ok(Some(Secret(secret)))
        } else {
            Err(suspicious(&self.path(), "does not have its 32 bytes"))
        }
    }

    /// Says whose it is, for the process that lists sessions. Best effort: nobody needs it.
    fn tell_whose(&self, id: &SessionId) {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!("{}{}", self.name, known::ID);
        let mode = Mode::RUSR | Mode::WUSR;
        if let Ok(fd) = rustix::fs::openat(&self.dir, name, flags | OFlags::NONBLOCK, mode) {
            let _ = rustix::io::pwrite(&fd, id.as_str().as_bytes(), 0);
        }
    }

    fn make(&self, entropy: &dyn Entropy) -> io::Result<()> {
        let mut secret = [0; LENGTH];
        entropy.fill(&mut secret);
        let candidate = format!("{}.{}", self.name, OpNonce::random(entropy));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = rustix::fs::openat(&self.dir, candidate.as_str(), flags, mode)?;
        let linked = write_whole(&fd, &secret).and_then(|()| {
            let (from, to) = (candidate.as_str(), self.name.as_str());
            match rustix::fs::linkat(&self.dir, from, &self.dir, to, AtFlags::empty()) {
                // Another was first; or somebody saw that, and removed ours.
                Ok(()) | Err(Errno::EXIST | Errno::NOENT) => Ok(()),
                Err(error) => Err(error.into()),
            }
        });
        let _ = rustix::fs::unlinkat(&self.dir, candidate.as_str(), AtFlags::empty());
        linked
    }
}

fn write_whole(fd: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    if rustix::io::pwrite(fd, bytes, 0)? != bytes.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(rustix::fs::fsync(fd)?)
}

/// The processes of a session on this host append to its audit log one after the
/// other: a process that has locked the file of that log's turn. It lies on a local
/// filesystem, where `flock` means what it says; and each repository's log has its
/// own, so that a mount that hangs costs no other repository its turn.
#[derive(Debug)]
pub(crate) struct Turns {
    file: SecretFile,
    /// Was the last turn waited for in vain?
    in_vain: AtomicBool,
}

/// How long a turn is waited for: a process stopped in the middle of its own
/// must not stop the whole session for ever.
const PATIENCE_MS: u64 = 10_000;
/// And how long after that was in vain: a repair wants a turn for each thing it repairs.
const PATIENCE_LEFT_MS: u64 = 50;
const LOOK_AGAIN_MS: u64 = 2;

impl Turns {
    fn open(&self, writer: &WriterId) -> io::Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let name = format!("{TURN}{writer}");
        rustix::fs::openat(&self.file.dir, &name, flags | OFlags::NONBLOCK, mode)
            .map_err(|error| NoTurn::at(self.file.place.join(name), error.into()))
    }
}

/// What the names of turns begin with.
const TURN: &str = "turn-";

/// The turn, if nobody has it. Closing the descriptor ends it.
fn try_lock(fd: &OwnedFd) -> io::Result<bool> {
    match rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A turn: the lock on the writer's file, in which stands how far its log was written to.
struct Held(OwnedFd);

/// As long as what [`reach_line`] makes.
const REACH_LENGTH: usize = 40;

fn reach_line(reach: Reach) -> String {
    format!("reach {:016x} {:016x}\n", reach.inode, reach.end)
}

fn reach_of(line: &[u8]) -> Option<Reach> {
    let text = std::str::from_utf8(line).ok()?;
    let (inode, end) = text.strip_prefix("reach ")?.strip_suffix('\n')?.split_once(' ')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let reach = Reach { inode: number(inode)?, end: number(end)? };
    (reach_line(reach) == text).then_some(reach)
}

impl Turn for Held {
    fn reached(&self) -> Option<Reach> {
        let mut line = [0; REACH_LENGTH];
        let length = rustix::io::pread(&self.0, &mut line, 0).ok()?;
        reach_of(&line[..length])
    }

    /// Best effort: without it a log is judged by what its mount shows, as if this were the
    /// first process of the session.
    fn will_reach(&self, reach: Reach) {
        let _ = rustix::io::pwrite(&self.0, reach_line(reach).as_bytes(), 0);
    }

    fn remembers(&self) -> bool {
        true
    }
}

impl AppendTurn for Turns {
    fn take(&self, writer: &WriterId) -> io::Result<Box<dyn Turn>> {
        let fd = self.open(writer)?;
        let start = SystemClock.now().boot;
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        let patience_ms = if in_vain { PATIENCE_LEFT_MS } else { PATIENCE_MS };
        while !try_lock(&fd)? {
            if SystemClock.now().boot.since(start) > patience_ms {
                self.in_vain.store(true, Ordering::Relaxed);
                let why = "another process of this session is stuck while it writes its log";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            SystemClock.sleep_ms(LOOK_AGAIN_MS);
        }
        self.in_vain.store(false, Ordering::Relaxed);
        Ok(Box::new(Held(fd)))
    }

    fn take_now(&self, writer: &WriterId) -> io::Result<Option<Box<dyn Turn>>> {
        let fd = self.open(writer)?;
        Ok(try_lock(&fd)?.then(|| Box::new(Held(fd)) as Box<dyn Turn>))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests play the vandal")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use jvs_repo::entropy::SystemEntropy;

    use super::*;

    struct Host {
        dir: tempfile::TempDir,
    }

    impl Host {
        fn new() -> Self {
            Host { dir: tempfile::tempdir().expect("tempdir") }
        }

        fn secret(&self, id: &str) -> Result<[u8; LENGTH], Failure> {
            let runtime = self.dir.path().as_os_str().to_owned();
            let get = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone());
            let id = id.parse().expect("a session id");
            of(&id, Env::new(&get), &SystemEntropy).map(|(secret, _)| secret.0)
        }

        /// The one secret, beside which lies only whose it is.
        fn only_file(&self) -> PathBuf {
            let entries = self.dir.path().join(DIR).read_dir().expect("the directory");
            let mut files: Vec<_> = entries.map(|it| it.expect("readable").path()).collect();
            files.sort();
            let [file, whose] = &files[..] else { panic!("a candidate is left: {files:?}") };
            assert_eq!(*whose, PathBuf::from(format!("{}{}", file.display(), known::ID)));
            file.clone()
        }

        fn refuses(&self, why: &str) {
            let failure = self.secret("s").expect_err(why);
            assert_eq!(failure.code().as_str(), "E_SESSION_INVALID");
            assert!(failure.message().contains(why), "{}", failure.message());
            assert!(failure.hint().is_some());
        }
    }

    #[test]
    fn a_session_keeps_its_secret_and_shares_it_with_no_other() {
        let host = Host::new();
        let first = host.secret("a").expect("made");
        assert_eq!(host.secret("a").expect("read"), first);
        assert_ne!(host.secret("b").expect("made"), first);
        assert_ne!(host.secret("../../b").expect("made inside"), first);
        assert_eq!(host.dir.path().read_dir().expect("listed").count(), 1);
    }

    #[test]
    fn processes_that_start_at_once_agree_on_one_secret() {
        for _ in 0..50 {
            let host = Host::new();
            let secrets: Vec<_> = std::thread::scope(|scope| {
                let start = || host.secret("s").expect("a secret");
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            assert!(secrets.iter().all(|secret| *secret == secrets[0]));
            host.only_file();
        }
    }

    #[test]
    fn a_look_makes_nothing_and_finds_what_was_made() {
        let host = Host::new();
        let runtime = host.dir.path().as_os_str().to_owned();
        let get = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone());
        let id = "s".parse().expect("a session id");
        assert!(peek(&id, Env::new(&get)).expect("no failure").is_none());
        assert_eq!(host.dir.path().read_dir().expect("listed").count(), 0);
        let made = host.secret("s").expect("made");
        assert_eq!(peek(&id, Env::new(&get)).expect("read").map(|secret| secret.0), Some(made));
    }

    #[test]
    fn all_processes_look_in_one_place() {
        let host = Host::new();
        let dir = host.dir.path().to_str().expect("text");
        let place = |variables: &[(&str, &str)]| {
            let get = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| std::ffi::OsString::from(value))
            };
            base(Env::new(&get)).ok()
        };
        let (in_state, in_home) = (format!("{dir}/state"), format!("{dir}/home/ann"));
        let (runtime, state) = (("XDG_RUNTIME_DIR", dir), ("XDG_STATE_HOME", in_state.as_str()));
        let home = ("HOME", in_home.as_str());
        assert_eq!(place(&[home, state, runtime]), Some(dir.into()));
        assert_eq!(place(&[home, state]), Some(in_state.clone().into()));
        assert_eq!(place(&[home]), None, "a home that is not there is not made");
        std::fs::create_dir_all(&in_home).expect("made");
        assert_eq!(place(&[home]), Some(format!("{in_home}/.local/state").into()));
        assert_eq!(place(&[]), None);
        // Gone, relative, or somebody else's.
        assert_eq!(place(&[home, ("XDG_RUNTIME_DIR", "/nowhere")]), place(&[home]));
        assert_eq!(place(&[home, ("XDG_RUNTIME_DIR", "run")]), place(&[home]));
        if rustix::process::geteuid().is_root() {
            let others = format!("{dir}/others");
            std::fs::create_dir(&others).expect("made");
            std::os::unix::fs::chown(&others, Some(1), None).expect("root may give away");
            for variable in ["XDG_RUNTIME_DIR", "XDG_STATE_HOME"] {
                assert_eq!(place(&[home, (variable, &others)]), place(&[home]));
            }
            assert_eq!(place(&[("HOME", &others)]), None);
        }
    }

    #[test]
    fn only_the_user_can_read_it() {
        let host = Host::new();
        host.secret("s").expect("made");
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&host.only_file()), 0o600);
        assert_eq!(mode(&host.dir.path().join(DIR)), 0o700);
    }

    #[test]
    fn what_others_could_have_read_or_replaced_is_refused() {
        let set_mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
        };
        let host = Host::new();
        host.secret("s").expect("made");
        let file = host.only_file();
        set_mode(&file, 0o640);
        host.refuses("is open to other users");
        set_mode(&file, 0o600);
        std::fs::rename(&file, host.dir.path().join("elsewhere")).expect("moved");
        std::os::unix::fs::symlink("../elsewhere", &file).expect("symlink");
        host.refuses("is a symlink");
        set_mode(&host.dir.path().join(DIR), 0o755);
        host.refuses("is open to other users");
    }

    #[test]
    fn a_torn_or_foreign_file_is_refused_and_not_replaced() {
        let host = Host::new();
        host.secret("s").expect("made");
        let file = host.only_file();
        for bytes in [&b""[..], b"short", &[7; LENGTH + 1]] {
            std::fs::write(&file, bytes).expect("vandalised");
            host.refuses("does not have its 32 bytes");
            assert_eq!(std::fs::read(&file).expect("still there"), bytes);
        }
    }

    #[test]
    fn turns_at_one_log_do_not_overlap_and_those_at_two_do_not_wait() {
        let host = Host::new();
        host.secret("s").expect("made");
        let runtime = host.dir.path().as_os_str().to_owned();
        let get = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone());
        let id = "s".parse().expect("a session id");
        let (_, turns) = of(&id, Env::new(&get), &SystemEntropy).expect("read");
        let (one, other) = (WriterId([1; 12]), WriterId([2; 12]));
        let first = turns.take(&one).expect("free");
        assert!(turns.take_now(&one).expect("asked").is_none(), "taken");
        assert!(turns.take_now(&other).expect("asked").is_some(), "another repository's");
        drop(first);
        assert!(turns.take_now(&one).expect("asked").is_some());
        assert!(turns.take(&one).is_ok());
    }

    #[test]
    fn what_is_said_in_a_turn_is_known_in_the_next_and_what_is_torn_says_nothing() {
        let host = Host::new();
        host.secret("s").expect("made");
        let runtime = host.dir.path().as_os_str().to_owned();
        let get = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone());
        let id = "s".parse().expect("a session id");
        let (_, turns) = of(&id, Env::new(&get), &SystemEntropy).expect("read");
        let writer = WriterId([1; 12]);
        let next = || turns.take(&writer).expect("free");
        assert_eq!(next().reached(), None);
        for reach in [Reach { inode: 7, end: 500 }, Reach { inode: u64::MAX, end: 3 }] {
            next().will_reach(reach);
            assert_eq!(next().reached(), Some(reach));
        }
        let fd = turns.open(&writer).expect("opened");
        for torn in 0..REACH_LENGTH {
            next().will_reach(Reach { inode: 7, end: 500 });
            rustix::io::pwrite(&fd, &vec![0; REACH_LENGTH - torn], torn as u64)
                .expect("vandalised");
            assert_eq!(next().reached(), None, "{torn}");
        }
        assert_eq!(reach_of(b"reach +000000000000007 0000000000000003\n"), None);
    }
}
