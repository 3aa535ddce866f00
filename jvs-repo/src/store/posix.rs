//! The real filesystem: `openat`-style calls below one directory descriptor.
//!
//! Guarantees relied on, by call: `renameat` is atomic and answers ENOENT only
//! if the source is not there (what its other answers mean is the register's
//! business); `O_CREAT|O_EXCL` creates or fails; `fsync` of a directory makes
//! its entries durable; `openat2` with `RESOLVE_NO_SYMLINKS|RESOLVE_BENEATH`
//! follows nothing.

mod denied;
mod durable;
mod listed;
mod patience;
mod remembered;
mod tree;

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::{
    self, AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, Statx, StatxFlags,
};
use rustix::io::Errno;

pub use self::denied::Denied;
pub(crate) use self::denied::explain_outside;
use self::denied::{Asked, explain, explain_published};
pub use self::listed::TreeListing;
pub use self::remembered::{FileMemory, WhenAsked};
use super::{DirEntry, DirEntryKind, EntryStat, RepoPath, Store, StoredFile, own};

/// Directories are made with this mode, less the umask or what a default ACL allows.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);
/// Files are made with this mode, less the umask or what a default ACL allows.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// Of an open file, what the kernel knows of it.
const ASK_NOBODY: AtFlags = AtFlags::EMPTY_PATH.union(AtFlags::STATX_DONT_SYNC);
/// Of an open file, and no more than what is asked for: a network filesystem is asked whenever
/// anything else that one wants to know may have changed, such as when it was last read.
const OF_IT: AtFlags = AtFlags::EMPTY_PATH;
/// All that [`EntryStat`] tells.
const ENTRY: StatxFlags = StatxFlags::BASIC_STATS.difference(StatxFlags::ATIME);
/// The stack of a thread that waits for a disk and does nothing else.
const SYNC_STACK: usize = 64 * 1024;

/// A repository's root, held open.
#[derive(Debug)]
pub struct PosixStore {
    /// Only a place to start from (`O_PATH`): not opened for reading, which on a
    /// network filesystem would be two requests that no command needs.
    root: OwnedFd,
    /// What the claim on the root hangs on, if there is one.
    claim: OnceLock<OwnedFd>,
    root_path: PathBuf,
    /// Kernels before 5.6 and some sandboxes have no `openat2`.
    no_openat2: AtomicBool,
    /// Is a change of names durable once its call has answered?
    names_are_durable: OnceLock<bool>,
    /// What is remembered of small files, where that spares requests.
    memory: OnceLock<Box<dyn FileMemory>>,
}

/// How much room a filesystem has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Nothing can be written.
    pub read_only: bool,
    /// Bytes altogether.
    pub bytes: u64,
    /// Bytes that this user may still use.
    pub bytes_free: u64,
    /// Files altogether; 0 if there is no limit.
    pub inodes: u64,
    /// Files that this user may still make.
    pub inodes_free: u64,
}

impl PosixStore {
    /// Opens the repository at `root`. The path up to it may contain symlinks:
    /// it is the user's own word; nothing below it is.
    pub fn open(root: &Path) -> io::Result<Self> {
        Self::reached(root, root)
    }

    /// The same by another way to the root, such as one from the current directory.
    pub(crate) fn reached(reach: &Path, root: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::PATH;
        let fd = fs::open(reach, flags, Mode::empty())?;
        Ok(PosixStore {
            root: fd,
            claim: OnceLock::new(),
            root_path: root.to_owned(),
            no_openat2: AtomicBool::new(false),
            names_are_durable: OnceLock::new(),
            memory: OnceLock::new(),
        })
    }

    /// Makes the directory that is to be a repository's root, and nothing
    /// above it.
    pub(crate) fn make_root(root: &Path) -> io::Result<()> {
        Ok(fs::mkdir(root, DIRECTORY_MODE)?)
    }

    /// Removes a root that is empty.
    pub(crate) fn remove_root(root: &Path) -> io::Result<()> {
        Ok(fs::rmdir(root)?)
    }

    /// Where the repository is, as the user named it.
    pub fn root_path(&self) -> &Path {
        &self.root_path
    }

    /// The absolute path of something in the repository, to show to people and
    /// to hand to other programs.
    pub fn absolute(&self, path: &RepoPath) -> PathBuf {
        self.root_path.join(path.as_str())
    }

    /// Removes a payload: whatever is at `path` and all below it, names of any
    /// bytes, no symlink followed, no mount point crossed.
    pub fn remove_payload_tree(&self, path: &RepoPath) -> io::Result<()> {
        let (parent, name) = self.open_parent(path)?;
        tree::remove(parent.as_fd(), OsStr::new(name))
    }

    /// What is in a payload now, to be removed by [`Self::remove_listed_tree`].
    pub fn list_payload_tree(&self, path: &RepoPath) -> io::Result<TreeListing> {
        let (parent, name) = self.open_parent(path)?;
        listed::list(parent.as_fd(), OsStr::new(name))
    }

    /// Removes what is listed of a payload, as far as it is as it was then; what
    /// is not, and a name that is not listed, ends it (`DirectoryNotEmpty`).
    pub fn remove_listed_tree(&self, path: &RepoPath, listing: &TreeListing) -> io::Result<()> {
        let (parent, name) = self.open_parent(path)?;
        listed::remove(parent.as_fd(), OsStr::new(name), listing)
    }

    /// Is this directory empty?
    pub fn is_empty_dir(&self, dir: &RepoPath) -> io::Result<bool> {
        let fd = self.open_dir(dir)?;
        let mut empty = true;
        while empty && read_batch::<BATCH>(&fd, |_| empty = false)? {}
        Ok(empty)
    }

    /// The first directory called `name` anywhere below `dir`, relative to it.
    pub fn find_directory(&self, dir: &RepoPath, name: &str) -> io::Result<Option<PathBuf>> {
        tree::find_directory(self.open_dir(dir)?, OsStr::new(name))
    }

    /// Moves the entry `name`, of any bytes, from one directory into another
    /// without replacing anything there.
    pub fn move_entry(&self, from: &RepoPath, name: &OsStr, to: &RepoPath) -> io::Result<()> {
        let (from, to) = (self.open_dir(from)?, self.open_dir(to)?);
        Ok(fs::renameat_with(&from, name, &to, name, RenameFlags::NOREPLACE)?)
    }

    /// Sets the permissions of a file or directory.
    pub fn set_mode(&self, path: &RepoPath, mode: u32) -> io::Result<()> {
        // Through a descriptor that needs no permission on the file itself, and
        // that no rename can lead elsewhere.
        let fd = self.open_at(path.as_str(), OFlags::PATH, Mode::empty())?;
        if FileType::from_raw_mode(fs::fstat(&fd)?.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP.into());
        }
        let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
        fs::chmodat(fs::CWD, name, Mode::from_raw_mode(mode), AtFlags::empty())
            .map_err(|error| self.explained(path.as_str(), Asked::Own, error))
    }

    /// How much room the filesystem of the root has.
    pub fn space(&self) -> io::Result<Space> {
        let stat = fs::fstatvfs(&self.root)?;
        Ok(Space {
            read_only: stat.f_flag.contains(fs::StatVfsMountFlags::RDONLY),
            bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
            bytes_free: stat.f_bavail.saturating_mul(stat.f_frsize),
            inodes: stat.f_files,
            inodes_free: stat.f_favail,
        })
    }

    /// Claims the root for as long as this store is open; false if another
    /// store has. A hint between well-meaning processes and nothing more: where
    /// the filesystem has no such claims, everybody gets one.
    pub(crate) fn claim_root(&self) -> io::Result<bool> {
        if self.claim.get().is_some() {
            return Ok(true);
        }
        let root = self.open_dir(&RepoPath::root())?;
        match fs::flock(&root, fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOLCK) => {
                // Closing the descriptor would end the claim.
                let _ = self.claim.set(root);
                Ok(true)
            }
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the directory `to` the owner and mode of the directory `from`, so
    /// that a process that could use the one can use the other.
    pub fn copy_access(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        let stat = fs::fstat(self.open_dir(from)?)?;
        let to = self.open_dir(to)?;
        let (uid, gid) = (fs::Uid::from_raw(stat.st_uid), fs::Gid::from_raw(stat.st_gid));
        match fs::fchown(&to, Some(uid), Some(gid)) {
            // Only root gives away; then it stays with the process that is at work.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fs::fchmod(&to, Mode::from_raw_mode(stat.st_mode & 0o7777))?)
    }

    /// Is this a filesystem of which it is known that a change of names is durable once its
    /// call has answered, and that each look is a request over a network?
    pub(crate) fn names_are_durable(&self) -> bool {
        *self.names_are_durable.get_or_init(|| durable::names_are_durable(self.root.as_fd()))
    }

    fn open_at(&self, path: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { "." } else { path };
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if !self.no_openat2.load(Ordering::Relaxed) {
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match fs::openat2(&self.root, path, flags, mode, beneath) {
                Err(Errno::NOSYS | Errno::PERM) => self.no_openat2.store(true, Ordering::Relaxed),
                // A rename somewhere on the way makes the kernel doubt itself.
                Err(Errno::AGAIN) => {}
                // It leads out; what is between two filesystems is no matter of opening.
                Err(Errno::XDEV) => return Err(self.refused(path, flags, Errno::LOOP)),
                Err(error) => return Err(self.refused(path, flags, error)),
                Ok(fd) => return Ok(fd),
            }
        }
        self.open_step_by_step(path, flags, mode).map_err(|error| self.refused(path, flags, error))
    }

    fn refused(&self, path: &str, flags: OFlags, error: Errno) -> io::Error {
        let asked = match flags {
            _ if flags.contains(OFlags::CREATE) => Asked::Change,
            _ if flags.contains(OFlags::RDWR) => Asked::Write,
            _ => Asked::Read,
        };
        self.explained(path, asked, self.told_apart(path, error))
    }

    /// An errno, with all that is behind a bare "permission denied".
    fn explained(&self, path: &str, asked: Asked, error: Errno) -> io::Error {
        explain(&self.root, &self.root_path, Path::new(path), asked, error)
    }

    /// Why `path` in the `tree` of a snapshot could not be read: whose it is and what
    /// helps, if that was a refusal. For trees that are not read through the store.
    pub fn unread(&self, tree: &RepoPath, path: &Path, error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::PermissionDenied || Denied::of(&error).is_some() {
            return error;
        }
        explain_published(&self.root, &self.root_path, Path::new(tree.as_str()), path)
    }

    /// A symlink where a directory is asked for without following is ENOTDIR to
    /// the kernel; to us it is a way out of the repository, so it gets the
    /// errno that says so.
    fn told_apart(&self, path: &str, error: Errno) -> Errno {
        if error != Errno::NOTDIR {
            return error;
        }
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for prefix in ends.map(|end| &path[..end]) {
            // The shortest prefix that is a symlink: nothing was followed yet.
            match fs::statat(&self.root, prefix, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                    return Errno::LOOP;
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        error
    }

    /// The same without `openat2`: one `openat` a component, none of them
    /// through a symlink.
    fn open_step_by_step(
        &self,
        path: &str,
        flags: OFlags,
        mode: Mode,
    ) -> rustix::io::Result<OwnedFd> {
        let on_the_way = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::PATH;
        let mut components = path.split('/').peekable();
        let mut current: Option<OwnedFd> = None;
        while let Some(component) = components.next() {
            let at = current.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            if components.peek().is_none() {
                return fs::openat(at, component, flags, mode);
            }
            let next = fs::openat(at, component, on_the_way, Mode::empty())?;
            current = Some(next);
        }
        Err(Errno::INVAL)
    }

    fn open_dir(&self, dir: &RepoPath) -> io::Result<OwnedFd> {
        self.open_at(dir.as_str(), OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
    }

    /// The directory of `path`, to act on its last component.
    fn open_parent<'p>(&self, path: &'p RepoPath) -> io::Result<(OwnedFd, &'p str)> {
        let (parent, name) = path.split();
        let fd = self.open_at(parent.as_str(), OFlags::DIRECTORY | OFlags::PATH, Mode::empty())?;
        Ok((fd, name))
    }

    fn open_file(&self, path: &RepoPath, flags: OFlags) -> io::Result<Box<dyn StoredFile>> {
        // O_NONBLOCK: a FIFO planted in the control plane must not hang us.
        let fd = self.open_at(path.as_str(), flags | OFlags::NONBLOCK, Mode::empty())?;
        if FileType::from_raw_mode(mode_of(&fd)?) != FileType::RegularFile {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{path} is not a regular file"),
            ));
        }
        Ok(Box::new(PosixFile { fd: Arc::new(fd) }))
    }

    fn rename_flagged(&self, from: &RepoPath, to: &RepoPath, flags: RenameFlags) -> io::Result<()> {
        let (from_dir, from_name) = self.open_parent(from)?;
        let renamed = if from.parent() == to.parent() {
            let to_name = to.split().1;
            rename_between(from_dir.as_fd(), from_name, from_dir.as_fd(), to_name, flags)
        } else {
            let (to_dir, to_name) = self.open_parent(to)?;
            rename_between(from_dir.as_fd(), from_name, to_dir.as_fd(), to_name, flags)
        };
        renamed.map_err(|errno| match errno {
            // A directory does not go below itself, whatever the filesystem knows.
            Errno::INVAL if is_below(from, to) || is_below(to, from) => errno.into(),
            Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP if !flags.is_empty() => {
                io::Error::new(io::ErrorKind::Unsupported, NoFlaggedRename(errno))
            }
            // The source's directory, if that is the one; or the source, whose `..` changes
            // if it is a directory; else the target's directory.
            Errno::ACCESS | Errno::PERM => {
                let moves = from.parent() != to.parent()
                    && self.stat(from).is_ok_and(|it| it.kind == DirEntryKind::Directory);
                let asked = [Asked::Change, Asked::Write].into_iter().take(1 + usize::from(moves));
                let by_mode =
                    |error: &io::Error| Denied::of(error).is_some_and(|denied| denied.is_by_mode());
                asked
                    .map(|asked| self.explained(from.as_str(), asked, errno))
                    .find(by_mode)
                    .unwrap_or_else(|| self.explained(to.as_str(), Asked::Change, errno))
            }
            errno => errno.into(),
        })
    }
}

/// The filesystem does not know a rename that refuses to replace or that swaps.
#[derive(Debug, thiserror::Error)]
#[error("this filesystem has no rename that refuses to replace ({0})")]
pub(crate) struct NoFlaggedRename(Errno);

/// Is `path` somewhere below `above`?
fn is_below(path: &RepoPath, above: &RepoPath) -> bool {
    path.as_str().strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

fn rename_between(
    from: BorrowedFd<'_>,
    from_name: &str,
    to: BorrowedFd<'_>,
    to_name: &str,
    flags: RenameFlags,
) -> rustix::io::Result<()> {
    if flags.is_empty() {
        return fs::renameat(from, from_name, to, to_name);
    }
    fs::renameat_with(from, from_name, to, to_name, flags)
}

/// Room for a batch of any directory.
const BATCH: usize = 32 * 1024;
/// Room for a register's one entry, and for several where there must be one.
/// Small, because every lock command touches every page of it.
const REGISTER_BATCH: usize = 4 * 1024;

/// One `getdents64` call's worth of names, at most `ROOM` bytes of them, handed
/// to `each`; false at the end.
fn read_batch<const ROOM: usize>(fd: &OwnedFd, mut each: impl FnMut(&OsStr)) -> io::Result<bool> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); ROOM];
    let mut batch = RawDir::new(fd, &mut buffer);
    let mut any = false;
    // The first `next` makes the call; the batch is over when its buffer is.
    while let Some(entry) = batch.next() {
        any = true;
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            each(name);
        }
        if batch.is_buffer_empty() {
            break;
        }
    }
    Ok(any)
}

/// What is asked for in `wanted` of an entry or an open file, and nothing else.
fn stat_at(
    dir: BorrowedFd<'_>,
    name: &str,
    flags: AtFlags,
    wanted: StatxFlags,
) -> rustix::io::Result<Statx> {
    fs::statx(dir, name, flags, wanted)
}

fn mode_of(fd: &OwnedFd) -> rustix::io::Result<u32> {
    stat_at(fd.as_fd(), "", OF_IT, StatxFlags::TYPE).map(|stat| stat.stx_mode.into())
}

fn entry_stat(stat: &Statx) -> EntryStat {
    let mode = u32::from(stat.stx_mode);
    EntryStat {
        kind: kind_of(mode),
        device: fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
        size: stat.stx_size,
        mode: mode & 0o7777,
        uid: stat.stx_uid,
        mtime_ns: stat
            .stx_mtime
            .tv_sec
            .saturating_mul(1_000_000_000)
            .saturating_add(stat.stx_mtime.tv_nsec.into()),
    }
}

fn kind_of(mode: u32) -> DirEntryKind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => DirEntryKind::File,
        FileType::Directory => DirEntryKind::Directory,
        FileType::Symlink => DirEntryKind::Symlink,
        _ => DirEntryKind::Other,
    }
}

impl Store for PosixStore {
    fn read(&self, path: &RepoPath, limit: usize) -> io::Result<Vec<u8>> {
        match self.memory.get() {
            Some(memory) => remembered::read(self, memory.as_ref(), path, limit),
            None => own::read(self, path, limit),
        }
    }

    fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<std::ffi::OsString>> {
        let fd = self.open_dir(dir)?;
        let mut names = Vec::new();
        read_batch::<REGISTER_BATCH>(&fd, |name| names.push(name.to_owned()))?;
        Ok(names)
    }

    fn list(&self, dir: &RepoPath) -> io::Result<Vec<DirEntry>> {
        let fd = self.open_dir(dir)?;
        let mut entries = Vec::new();
        while read_batch::<BATCH>(&fd, |name| entries.push(DirEntry { name: name.to_owned() }))? {}
        Ok(entries)
    }

    fn stat(&self, path: &RepoPath) -> io::Result<EntryStat> {
        if path.as_str().is_empty() {
            return Ok(entry_stat(&stat_at(self.root.as_fd(), "", OF_IT, ENTRY)?));
        }
        let (dir, name) = self.open_parent(path)?;
        let stat = stat_at(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW, ENTRY);
        stat.map(|stat| entry_stat(&stat))
            .map_err(|error| self.explained(path.as_str(), Asked::Read, error))
    }

    fn inode(&self, path: &RepoPath) -> io::Result<u64> {
        let (dir, name) = self.open_parent(path)?;
        let stat = stat_at(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO);
        stat.map(|stat| stat.stx_ino)
            .map_err(|error| self.explained(path.as_str(), Asked::Read, error))
    }

    fn open(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.open_file(path, OFlags::RDONLY)
    }

    fn open_writable(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.open_file(path, OFlags::RDWR)
    }

    fn create_new(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let fd = self.open_at(path.as_str(), flags, FILE_MODE)?;
        Ok(Box::new(PosixFile { fd: Arc::new(fd) }))
    }

    fn create_claimed(&self, path: &RepoPath) -> io::Result<Option<OwnedFd>> {
        let (dir, name) = path.split();
        // Under another name first: nobody may find it there and not yet claimed.
        let unborn = dir.child(&format!(".{name}"))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let fd = self.open_at(unborn.as_str(), flags, FILE_MODE)?;
        let claimed = match fs::flock(&fd, fs::FlockOperation::NonBlockingLockExclusive) {
            // Without such claims nobody can tell later either.
            Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOLCK) => Ok(()),
            Err(error) => Err(error.into()),
        };
        let born = claimed.and_then(|()| self.rename_new(&unborn, path));
        if born.is_err() {
            let _ = self.unlink(&unborn);
        }
        born.map(|()| Some(fd))
    }

    fn is_claimed(&self, path: &RepoPath) -> Option<bool> {
        let fd = self.open_at(path.as_str(), OFlags::RDONLY, Mode::empty()).ok()?;
        // Shared: those who ask must not take each other for the process that claims it.
        match fs::flock(&fd, fs::FlockOperation::NonBlockingLockShared) {
            Ok(()) => Some(false),
            Err(Errno::WOULDBLOCK) => Some(true),
            Err(_) => None,
        }
    }

    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.rename_flagged(from, to, RenameFlags::empty())
    }

    fn rename_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.rename_flagged(from, to, RenameFlags::NOREPLACE)
    }

    fn exchange(&self, a: &RepoPath, b: &RepoPath) -> io::Result<()> {
        self.rename_flagged(a, b, RenameFlags::EXCHANGE)
    }

    fn link_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        let (from_dir, from_name) = self.open_parent(from)?;
        let (to_dir, to_name) = self.open_parent(to)?;
        Ok(fs::linkat(&from_dir, from_name, &to_dir, to_name, AtFlags::empty())?)
    }

    fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        let (dir, name) = self.open_parent(path)?;
        fs::unlinkat(&dir, name, AtFlags::empty())
            .map_err(|error| self.explained(path.as_str(), Asked::Change, error))
    }

    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        let (dir, name) = self.open_parent(path)?;
        fs::mkdirat(&dir, name, DIRECTORY_MODE)
            .map_err(|error| self.explained(path.as_str(), Asked::Change, error))
    }

    fn remove_dir(&self, path: &RepoPath) -> io::Result<()> {
        let (dir, name) = self.open_parent(path)?;
        fs::unlinkat(&dir, name, AtFlags::REMOVEDIR)
            .map_err(|error| self.explained(path.as_str(), Asked::Change, error))
    }

    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()> {
        if self.names_are_durable() {
            return Ok(());
        }
        Ok(fs::fsync(self.open_dir(dir)?)?)
    }

    fn sync_dir_beside(&self, dir: &RepoPath, meanwhile: &mut dyn FnMut()) -> io::Result<()> {
        if self.names_are_durable() {
            meanwhile();
            return Ok(());
        }
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(SYNC_STACK);
            let begun = thread.spawn_scoped(scope, || self.sync_dir(dir));
            meanwhile();
            // Without a thread to spare it costs its time, and nothing else.
            let synced = begun.ok().and_then(|thread| thread.join().ok());
            synced.unwrap_or_else(|| self.sync_dir(dir))
        })
    }
}

struct PosixFile {
    /// Shared with a helper thread that reads: each descriptor that is closed is a request
    /// to a network filesystem.
    fd: Arc<OwnedFd>,
}

impl StoredFile for PosixFile {
    fn truncate(&self, size: u64) -> io::Result<()> {
        Ok(fs::ftruncate(&self.fd, size)?)
    }

    fn inode(&self) -> io::Result<u64> {
        // It stays what it is as long as the file is open, so nobody is asked.
        let stat = fs::statx(&self.fd, "", ASK_NOBODY, StatxFlags::INO);
        stat.map_or_else(|_| Ok(fs::fstat(&self.fd)?.st_ino), |stat| Ok(stat.stx_ino))
    }

    fn read_up_to(&self, limit: usize) -> io::Result<Vec<u8>> {
        self.read_range(0, limit.saturating_add(1))
    }

    fn read_within(&self, limit: usize, ms: u64) -> io::Result<Vec<u8>> {
        let length = limit.saturating_add(1);
        match patience::at_once(&self.fd, length) {
            Some(bytes) => Ok(bytes),
            None => patience::within(&self.fd, ms, move |fd| read_range(fd, 0, length)),
        }
    }

    fn read_range(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        read_range(&self.fd, offset, length)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(stat_at(self.fd.as_fd(), "", OF_IT, StatxFlags::SIZE)?.stx_size)
    }

    fn size_known_here(&self) -> io::Result<u64> {
        let stat = fs::statx(&self.fd, "", ASK_NOBODY, StatxFlags::SIZE);
        stat.map_or_else(|_| self.size(), |stat| Ok(stat.stx_size))
    }

    fn links(&self) -> io::Result<u64> {
        Ok(stat_at(self.fd.as_fd(), "", OF_IT, StatxFlags::NLINK)?.stx_nlink.into())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.fd, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fs::fsync(&self.fd)?)
    }
}

fn read_range(fd: &OwnedFd, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    const STEP: usize = 16 * 1024;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let start = bytes.len();
        let want = STEP.min(length - start);
        bytes.resize(start + want, 0);
        let at = offset + start as u64;
        match rustix::io::pread(fd, &mut bytes[start..], at) {
            Ok(got) => {
                bytes.truncate(start + got);
                // A short read of a regular file is its end.
                if got < want {
                    break;
                }
            }
            Err(Errno::INTR) => bytes.truncate(start),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        text.split('/').fold(RepoPath::root(), |p, c| p.child(c).expect("plain"))
    }

    fn store() -> (tempfile::TempDir, PosixStore) {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        (dir, store)
    }

    #[test]
    fn a_file_is_complete_or_absent() {
        let (_dir, store) = store();
        store.write_new(&path("a.tmp"), &path("a"), b"whole").expect("written");
        assert_eq!(store.read(&path("a"), 10).expect("read"), b"whole");
        let again = store.write_new(&path("b.tmp"), &path("a"), b"other").expect_err("is there");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(store.list(&RepoPath::root()).expect("list").len(), 1, "the tmp file is gone");
        assert_eq!(store.read(&path("a"), 10).expect("read"), b"whole");
    }

    #[test]
    fn what_is_too_large_is_refused_not_cut() {
        let (_dir, store) = store();
        store.write_new(&path("a.tmp"), &path("a"), &[7; 40_000]).expect("written");
        assert_eq!(store.read(&path("a"), 40_000).expect("fits").len(), 40_000);
        let error = store.read(&path("a"), 39_999).expect_err("one byte too many");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn no_call_goes_through_a_symlink_with_or_without_openat2() {
        let (dir, store) = store();
        let outside = tempfile::tempdir().expect("tempdir");
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).expect("symlink");
        std::os::unix::fs::symlink("/nonexistent", dir.path().join("dangling")).expect("symlink");
        for no_openat2 in [false, true] {
            store.no_openat2.store(no_openat2, Ordering::Relaxed);
            assert!(store.create_new(&path("link/x")).is_err());
            assert!(store.create_new(&path("dangling")).is_err());
            assert!(store.make_dir(&path("link/x")).is_err());
            assert!(store.list(&path("link")).is_err());
            assert!(store.open(&path("dangling")).is_err());
            for answer in [
                store.list(&path("link")).err(),
                store.list(&path("link/x")).err(),
                store.open(&path("link/x")).err(),
                store.open(&path("dangling")).err(),
                store.make_dir(&path("link/x/y")).err(),
            ] {
                let error = answer.expect("refused");
                assert_eq!(crate::code::code_of_io(&error), crate::code::Code::PathEscape);
            }
            assert_eq!(store.stat(&path("link")).expect("lstat").kind, DirEntryKind::Symlink);
        }
        assert_eq!(outside.path().read_dir().expect("read").count(), 0);
    }

    #[test]
    fn a_fifo_does_not_hang_a_reader() {
        let (dir, store) = store();
        let fifo = dir.path().join("fifo");
        fs::mknodat(fs::CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("mkfifo");
        let error = store.open(&path("fifo")).err().expect("refused");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_directory_larger_than_one_batch_is_listed_whole() {
        let (_dir, store) = store();
        for n in 0..1500 {
            store.create_new(&path(&format!("file-with-a-rather-long-name-{n:05}"))).expect("new");
        }
        assert_eq!(store.list(&RepoPath::root()).expect("list").len(), 1500);
        let first = store.first_batch(&RepoPath::root()).expect("batch").len();
        assert!(first > 0 && first < 1500, "one batch, not all of it: {first}");
    }

    #[test]
    fn an_open_file_is_its_inode_not_its_name() {
        let (_dir, store) = store();
        let mine = store.create_new(&path("lock")).expect("new");
        mine.write_at(0, b"mine").expect("write");
        store.write_over(&path("lock.tmp"), &path("lock"), b"theirs").expect("replaced");
        mine.write_at(0, b"late").expect("write");
        assert_eq!(store.read(&path("lock"), 10).expect("read"), b"theirs");
        assert_ne!(mine.inode().expect("inode"), store.stat(&path("lock")).expect("stat").inode);
    }
}
