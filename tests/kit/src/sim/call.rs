//! What a process asks of its world, and what it can be answered.
//!
//! Both are plain values that can be compared and hashed: a process is nothing
//! but the function from the answers it got to the next thing it asks.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::sync::Arc;

use jvs_repo::store::{DirEntryKind, RepoPath};
use rustix::io::Errno;

use super::board::Value;

/// A descriptor, with the path it was opened by so that traces can be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) fd: u32,
    pub(crate) path: RepoPath,
}

/// One call of the filesystem seam.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the method of Store or StoredFile of its name")]
pub enum Call {
    FirstBatch(RepoPath),
    List(RepoPath),
    /// The second batch of a listing of this inode, whose first showed these names.
    ListRest(RepoPath, u64, Arc<[String]>),
    Stat(RepoPath),
    Open(RepoPath),
    OpenWritable(RepoPath),
    CreateNew(RepoPath),
    Rename(RepoPath, RepoPath),
    RenameNew(RepoPath, RepoPath),
    Exchange(RepoPath, RepoPath),
    Link(RepoPath, RepoPath),
    Unlink(RepoPath),
    MakeDir(RepoPath),
    RemoveDir(RepoPath),
    SyncDir(RepoPath),
    Inode(Handle),
    ReadRange(Handle, u64, usize),
    Size(Handle),
    Links(Handle),
    WriteAt(Handle, u64, Arc<[u8]>),
    Sync(Handle),
}

impl Call {
    /// The method's name: what operation-count tests count by.
    pub fn name(&self) -> &'static str {
        match self {
            Call::FirstBatch(_) => "first_batch",
            Call::List(_) => "list",
            Call::ListRest(..) => "list_rest",
            Call::Stat(_) => "stat",
            Call::Open(_) => "open",
            Call::OpenWritable(_) => "open_writable",
            Call::CreateNew(_) => "create_new",
            Call::Rename(..) => "rename",
            Call::RenameNew(..) => "rename_new",
            Call::Exchange(..) => "exchange",
            Call::Link(..) => "link",
            Call::Unlink(_) => "unlink",
            Call::MakeDir(_) => "make_dir",
            Call::RemoveDir(_) => "remove_dir",
            Call::SyncDir(_) => "sync_dir",
            Call::Inode(_) => "inode",
            Call::ReadRange(..) => "read",
            Call::Size(_) => "size",
            Call::Links(_) => "links",
            Call::WriteAt(..) => "write_at",
            Call::Sync(_) => "sync",
        }
    }

    /// The path it is about, and the second one of the calls that have two.
    pub fn paths(&self) -> (&RepoPath, Option<&RepoPath>) {
        match self {
            Call::FirstBatch(p)
            | Call::List(p)
            | Call::ListRest(p, ..)
            | Call::Stat(p)
            | Call::Open(p)
            | Call::OpenWritable(p)
            | Call::CreateNew(p)
            | Call::Unlink(p)
            | Call::MakeDir(p)
            | Call::RemoveDir(p)
            | Call::SyncDir(p) => (p, None),
            Call::Rename(a, b)
            | Call::RenameNew(a, b)
            | Call::Exchange(a, b)
            | Call::Link(a, b) => (a, Some(b)),
            Call::Inode(h)
            | Call::ReadRange(h, ..)
            | Call::Size(h)
            | Call::Links(h)
            | Call::WriteAt(h, ..)
            | Call::Sync(h) => (&h.path, None),
        }
    }

    /// Is it one of the three renames, whose answers may lie?
    pub fn is_rename(&self) -> bool {
        matches!(self, Call::Rename(..) | Call::RenameNew(..) | Call::Exchange(..))
    }

    /// As which error an applied call may be answered: what servers and kernels
    /// were seen to say when a reply was lost and the request was made again.
    pub(crate) fn ambiguous_answers(&self) -> &'static [Errno] {
        match self {
            Call::Rename(..) | Call::Exchange(..) => &[Errno::IO, Errno::NOENT],
            Call::RenameNew(..) => &[Errno::IO, Errno::NOENT, Errno::EXIST],
            Call::CreateNew(_) | Call::MakeDir(_) | Call::Link(..) => {
                &[Errno::EXIST, Errno::IO, Errno::INTR]
            }
            Call::Unlink(_) | Call::RemoveDir(_) => &[Errno::NOENT, Errno::IO, Errno::INTR],
            Call::Sync(_) | Call::SyncDir(_) => &[Errno::IO],
            _ => &[],
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Call::ReadRange(h, at, n) if *at == 0 => write!(f, "{name}({}, {n})", h.path),
            Call::ReadRange(h, at, n) => write!(f, "{name}({}, {n} at {at})", h.path),
            Call::WriteAt(h, 0, bytes) => write!(f, "{name}({}, {})", h.path, Shown(bytes)),
            Call::WriteAt(h, at, bytes) => {
                write!(f, "{name}({}, {} at {at})", h.path, Shown(bytes))
            }
            _ => match self.paths() {
                (a, Some(b)) => write!(f, "{name}({a} -> {b})"),
                (a, None) => write!(f, "{name}({a})"),
            },
        }
    }
}

/// Bytes as a person wants to see them in a trace.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 48;
        let head = &self.0[..self.0.len().min(MOST)];
        write!(f, "\"{}", head.escape_ascii())?;
        match self.0.len() - head.len() {
            0 => f.write_str("\""),
            more => write!(f, "...\" and {more} bytes more"),
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// With this errno.
    Errno(Errno),
    /// What was to be opened as a file is none.
    NotAFile,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Failure::Errno(errno)
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Errno(errno) => errno.into(),
            Failure::NotAFile => io::Error::new(io::ErrorKind::InvalidData, "not a regular file"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Errno(errno) => f.write_str(&errno_name(*errno)),
            Failure::NotAFile => f.write_str("not a regular file"),
        }
    }
}

/// The errnos that simulated calls answer with, by name.
const NAMES: [(Errno, &str); 17] = [
    (Errno::NOENT, "ENOENT"),
    (Errno::EXIST, "EEXIST"),
    (Errno::NOTEMPTY, "ENOTEMPTY"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::BUSY, "EBUSY"),
    (Errno::BADF, "EBADF"),
    (Errno::IO, "EIO"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::ACCESS, "EACCES"),
    (Errno::INTR, "EINTR"),
    (Errno::PERM, "EPERM"),
    (Errno::ROFS, "EROFS"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::XDEV, "EXDEV"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
];

pub(crate) fn errno_name(errno: Errno) -> String {
    match NAMES.iter().find(|(e, _)| *e == errno) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("errno{}", errno.raw_os_error()),
    }
}

pub(crate) fn errno_named(name: &str) -> Option<Errno> {
    if let Some((errno, _)) = NAMES.iter().find(|(_, n)| *n == name) {
        return Some(*errno);
    }
    Some(Errno::from_raw_os_error(name.strip_prefix("errno")?.parse().ok()?))
}

/// What a process was answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Started {
        boots: u32,
    },
    Done,
    Names(Arc<[String]>),
    /// The first batch of a listing of this inode; the rest must be asked for.
    FirstOf(u64, Arc<[String]>),
    Stat {
        kind: DirEntryKind,
        device: u64,
        inode: u64,
        size: u64,
    },
    Opened(u32),
    Bytes(Arc<[u8]>),
    Number(u64),
    Time {
        wall_ms: u64,
        boot_ms: u64,
    },
    Picked(usize),
    Seen(Option<Value>),
    Failed(Failure),
}

impl Answer {
    pub(crate) fn names(&self) -> Vec<OsString> {
        match self {
            Answer::Names(names) => names.iter().map(OsString::from).collect(),
            other => unreachable!("names were asked for, not {other}"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Started { boots } => write!(f, "started (boot {boots})"),
            Answer::Done => f.write_str("ok"),
            Answer::Names(names) => write!(f, "[{}]", names.join(", ")),
            Answer::FirstOf(_, names) => write!(f, "[{}], and more", names.join(", ")),
            Answer::Stat { kind, inode, size, .. } => {
                write!(f, "{kind:?} inode {inode} of {size} bytes")
            }
            Answer::Opened(fd) => write!(f, "fd {fd}"),
            Answer::Bytes(bytes) => Shown(bytes).fmt(f),
            Answer::Number(n) => write!(f, "{n}"),
            Answer::Time { wall_ms, boot_ms } => write!(f, "boot {boot_ms} wall {wall_ms}"),
            Answer::Picked(n) => write!(f, "{n}"),
            Answer::Seen(None) => f.write_str("nothing"),
            Answer::Seen(Some(value)) => write!(f, "{value}"),
            Answer::Failed(failure) => failure.fmt(f),
        }
    }
}

/// What a process asks of its world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    /// To be started: what a process asks before it does anything.
    Start,
    Call(Call),
    /// What time is it, by both clocks at once?
    Now,
    /// What does one of them say? Asked where a process may pause in between.
    Boot,
    Wall,
    Sleep {
        ms: u64,
    },
    /// A number below this.
    Pick(usize),
    /// What does the board of that process say?
    Look {
        process: usize,
        key: &'static str,
    },
    /// Nothing, but others may go first.
    Pause,
    /// It is over.
    End,
    /// The library code, or an assertion of the scenario, panicked.
    Panicked(String),
    /// It asked nothing for longer than anyone waits.
    Stuck,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Start => f.write_str("start"),
            Request::Call(call) => call.fmt(f),
            Request::Now => f.write_str("now"),
            Request::Boot => f.write_str("boot-time clock"),
            Request::Wall => f.write_str("wall clock"),
            Request::Sleep { ms } => write!(f, "sleep({ms} ms)"),
            Request::Pick(below) => write!(f, "pick(below {below})"),
            Request::Look { process, key } => write!(f, "look(process {process}, {key})"),
            Request::Pause => f.write_str("pause"),
            Request::End => f.write_str("end"),
            Request::Panicked(message) => write!(f, "panicked: {message}"),
            Request::Stuck => f.write_str("stuck"),
        }
    }
}

/// What a process does to its world on the way from one answer to its next
/// request, which nobody can come in between of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    Close(u32),
    Claim(&'static str, Value),
    Append(&'static str, Value),
    Retract(&'static str),
    Say(String),
}
