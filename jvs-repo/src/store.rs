//! The narrow seam through which every filesystem call of the control plane
//! goes, so that tests can crash, delay, reorder and lie.
//!
//! A method is one decision of the protocol, not one convenience: what must be
//! a single step for the argument to hold is a single method, and what may be
//! interrupted in between is two.

mod own;
mod posix;
mod remove_tree;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

pub(crate) use own::InDoubt;
pub use own::{Removal, in_doubt};
pub use posix::{Denied, FileMemory, PosixStore, Space, TreeListing, WhenAsked};
pub(crate) use posix::{NoFlaggedRename, explain_outside};
pub use remove_tree::remove_tree;

use crate::name::ShownName;

/// A path below the repository's root: relative, normal, UTF-8. Made by the
/// layout module only, so no other code spells where things are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(String);

impl RepoPath {
    /// The repository's root.
    pub const fn root() -> Self {
        RepoPath(String::new())
    }

    /// This path with one more component. Refuses what would leave it.
    pub fn child(&self, name: &str) -> io::Result<Self> {
        let plain = !name.is_empty()
            && name != "."
            && name != ".."
            && !name.contains(['/', '\0'])
            && name.len() <= 255;
        if !plain {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} cannot be the name of a file in the repository"),
            ));
        }
        Ok(self.plain_child(name))
    }

    /// [`RepoPath::child`] for names that are known to be plain: those that the
    /// layout spells and those that typed ids print.
    pub(crate) fn plain_child(&self, name: &str) -> Self {
        if self.0.is_empty() {
            RepoPath(name.to_owned())
        } else {
            RepoPath(format!("{}/{name}", self.0))
        }
    }

    /// The directory that holds this path, and its last component.
    pub fn split(&self) -> (RepoPath, &str) {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => (RepoPath(parent.to_owned()), name),
            None => (RepoPath::root(), &self.0),
        }
    }

    /// The directory that holds this path.
    pub fn parent(&self) -> RepoPath {
        self.split().0
    }

    /// The path as text, relative to the root; empty for the root itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// As it is to be shown: what others put there has the names that they gave it.
impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ShownName::new(if self.0.is_empty() { "." } else { &self.0 }).fmt(f)
    }
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DirEntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link: never followed.
    Symlink,
    /// A FIFO, a socket or a device.
    Other,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirEntry {
    /// Its name, whatever bytes it has.
    pub name: OsString,
}

/// What `lstat` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryStat {
    /// File type.
    pub kind: DirEntryKind,
    /// Device: tells two mounts apart.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owning user.
    pub uid: u32,
    /// Modification time in nanoseconds: shown to people, never decided on.
    pub mtime_ns: i64,
}

/// A file held open: goes on meaning the same inode whatever happens to its name.
pub trait StoredFile: Send {
    /// Which inode this is.
    fn inode(&self) -> io::Result<u64>;

    /// Reads from the start, at most `limit + 1` bytes: one byte too many tells
    /// the caller that the file is larger than it may be.
    fn read_up_to(&self, limit: usize) -> io::Result<Vec<u8>>;

    /// As [`StoredFile::read_up_to`], but given up with `TimedOut` after `ms`: for
    /// what is told about a lock and is never needed.
    fn read_within(&self, limit: usize, _ms: u64) -> io::Result<Vec<u8>> {
        self.read_up_to(limit)
    }

    /// Reads up to `length` bytes from `offset`; short at the end of the file.
    fn read_range(&self, offset: u64, length: usize) -> io::Result<Vec<u8>>;

    /// Size in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Size in bytes as far as this host knows it: what was written through this mount is
    /// in it, and nobody is asked. For files that nobody else writes.
    fn size_known_here(&self) -> io::Result<u64> {
        self.size()
    }

    /// How many names the file has; zero once it was removed or replaced.
    fn links(&self) -> io::Result<u64>;

    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// `fsync`: content and size survive a power cut after this.
    fn sync(&self) -> io::Result<()>;

    /// Makes the file that long. Only to give up room.
    fn truncate(&self, size: u64) -> io::Result<()> {
        let _ = size;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file under a name that nobody but its writer uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftFile {
    path: RepoPath,
    /// Tells it from whatever others may put where it goes.
    inode: u64,
}

impl DraftFile {
    /// `file`, which was created at `path`.
    pub fn of(path: &RepoPath, file: &dyn StoredFile) -> io::Result<Self> {
        Ok(DraftFile { path: path.clone(), inode: file.inode()? })
    }

    /// Where it is until it is placed.
    pub fn path(&self) -> &RepoPath {
        &self.path
    }
}

/// The control plane's filesystem. No method follows a symlink.
pub trait Store: Send + Sync {
    /// Names in the first `getdents64` batch of a freshly opened descriptor,
    /// without `.` and `..`: how the register is read. A full `readdir` may show
    /// an entry twice under two names while renames go on; the first batch of
    /// a fresh descriptor is what the metadata engine answered at one moment.
    fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<OsString>>;

    /// All names in a directory, without `.` and `..`, in no order.
    fn list(&self, dir: &RepoPath) -> io::Result<Vec<DirEntry>>;

    /// Metadata of `path`, as by `lstat`.
    fn stat(&self, path: &RepoPath) -> io::Result<EntryStat>;

    /// Which inode is at `path`. Nothing else is asked for.
    fn inode(&self, path: &RepoPath) -> io::Result<u64> {
        self.stat(path).map(|stat| stat.inode)
    }

    /// Opens an existing regular file for reading.
    fn open(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>>;

    /// Opens an existing regular file for reading and writing.
    fn open_writable(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>>;

    /// Creates a file that was not there (`O_CREAT|O_EXCL`), open for reading
    /// and writing.
    fn create_new(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>>;

    /// Creates an empty file that is claimed from the first moment at which it can be
    /// seen, for as long as the descriptor is open: the kernel ends the claim with the
    /// process, no matter who can see that. Nothing where there are no such claims.
    fn create_claimed(&self, path: &RepoPath) -> io::Result<Option<OwnedFd>> {
        self.create_new(path).map(|_| None)
    }

    /// Does a process still claim the file? `None` if that cannot be told.
    fn is_claimed(&self, path: &RepoPath) -> Option<bool> {
        let _ = path;
        None
    }

    /// `rename`: replaces what is at `to`. Within a register's directory this
    /// is the compare-and-swap.
    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()>;

    /// `rename` that fails with `EEXIST` if `to` is there.
    fn rename_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()>;

    /// Swaps two paths in one step.
    fn exchange(&self, a: &RepoPath, b: &RepoPath) -> io::Result<()>;

    /// Gives a file a second name, `EEXIST` if that is there. Takes no room, which
    /// copying its content would. Not every filesystem can.
    fn link_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file.
    fn unlink(&self, path: &RepoPath) -> io::Result<()>;

    /// Makes a directory.
    fn make_dir(&self, path: &RepoPath) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &RepoPath) -> io::Result<()>;

    /// `fsync` of a directory: its entries survive a power cut after this.
    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()>;

    /// [`Store::sync_dir`], and `meanwhile` what waits for a disk as well. Which of the
    /// two is done first is not said.
    fn sync_dir_beside(&self, dir: &RepoPath, meanwhile: &mut dyn FnMut()) -> io::Result<()> {
        meanwhile();
        self.sync_dir(dir)
    }

    /// Reads a whole small file. `InvalidData` if it has more than `limit` bytes.
    fn read(&self, path: &RepoPath, limit: usize) -> io::Result<Vec<u8>> {
        own::read(self, path, limit)
    }

    /// Is anything at `path`? A look-up that denies it is not believed alone: the
    /// directory is listed.
    fn is_there(&self, path: &RepoPath) -> io::Result<bool> {
        own::is_there(self, path)
    }

    /// [`Store::create_new`] under a name with a nonce of the caller's own. Whatever
    /// is there after an answer that leaves it open is the caller's.
    fn create_own(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        own::create(self, path)
    }

    /// Makes a directory, or finds it made: under a name with a nonce of the caller's
    /// own by a call whose answer was lost, under another perhaps by somebody else.
    fn ensure_dir(&self, path: &RepoPath) -> io::Result<()> {
        own::ensure_dir(self, path)
    }

    /// Moves a draft to a name that must not be there. `AlreadyExists` only if another
    /// file was seen to be there.
    fn place_new(&self, draft: &DraftFile, to: &RepoPath) -> io::Result<()> {
        own::place(self, draft, to, false)
    }

    /// Moves a draft over what is at `to`.
    fn place_over(&self, draft: &DraftFile, to: &RepoPath) -> io::Result<()> {
        own::place(self, draft, to, true)
    }

    /// Removes a file; done if it is gone.
    fn remove(&self, path: &RepoPath) -> io::Result<()> {
        own::remove(self, path)
    }

    /// Removes a file whose name others may make, too, if its content is what is meant.
    /// `aside` is a name with a nonce of the caller's own.
    fn remove_meant(
        &self,
        path: &RepoPath,
        aside: &RepoPath,
        limit: usize,
        is_meant: &dyn Fn(&[u8]) -> bool,
    ) -> io::Result<Removal> {
        own::remove_meant(self, path, aside, limit, is_meant)
    }

    /// As [`Store::remove_meant`], but only the very file `inode`, whatever is in it.
    fn remove_inode(&self, path: &RepoPath, aside: &RepoPath, inode: u64) -> io::Result<Removal> {
        own::remove_inode(self, path, aside, inode)
    }

    /// Writes a file that is complete or absent: written under `tmp`, a name that
    /// nobody else uses, fsynced, renamed to `to` (which must not be there),
    /// directory fsynced. An error whose code is `E_OUTCOME_UNKNOWN` leaves it there.
    fn write_new(&self, tmp: &RepoPath, to: &RepoPath, bytes: &[u8]) -> io::Result<()> {
        let draft = self.write_tmp(tmp, bytes)?;
        self.place_new(&draft, to)?;
        self.settle(&to.parent())
    }

    /// As [`Store::write_new`], but replaces what is at `to`.
    fn write_over(&self, tmp: &RepoPath, to: &RepoPath, bytes: &[u8]) -> io::Result<()> {
        let draft = self.write_tmp(tmp, bytes)?;
        self.place_over(&draft, to)?;
        self.settle(&to.parent())
    }

    /// Makes durable what was done to names in `dir`. If that fails it is done
    /// nevertheless, and the outcome is unknown.
    fn settle(&self, dir: &RepoPath) -> io::Result<()> {
        own::settle(self, dir)
    }

    /// Creates `tmp`, a name that nobody else uses, with its content on disk, or
    /// nothing.
    fn write_tmp(&self, tmp: &RepoPath, bytes: &[u8]) -> io::Result<DraftFile> {
        let file = self.create_own(tmp)?;
        let written = file.write_at(0, bytes).and_then(|()| file.sync());
        match written.and_then(|()| DraftFile::of(tmp, file.as_ref())) {
            Ok(draft) => Ok(draft),
            Err(error) => {
                let _ = self.unlink(tmp);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_be_made_to_leave_its_parent() {
        let dir = RepoPath::root().child("a").expect("plain");
        for name in ["", ".", "..", "b/c", "/", "b\0", &"x".repeat(256)] {
            assert!(dir.child(name).is_err(), "{name:?}");
        }
        assert_eq!(dir.child("b").expect("plain").as_str(), "a/b");
    }

    #[test]
    fn a_path_splits_into_parent_and_name() {
        let path = RepoPath::root().child("a").and_then(|a| a.child("b")).expect("plain");
        assert_eq!(path.split(), (RepoPath("a".into()), "b"));
        assert_eq!(path.parent().split(), (RepoPath::root(), "a"));
    }
}
