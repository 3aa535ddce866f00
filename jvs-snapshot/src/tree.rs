//! The system calls on payload trees: the only module of this crate that makes
//! them.
//!
//! **Responsibility.** Every call takes a directory's descriptor and one name,
//! in whatever bytes, and follows no symlink: nothing outside the tree can be
//! reached, and a path longer than the kernel takes does not matter.
//!
//! **Architecture Invariant:** payloads do not go through the control plane's
//! `Store`. Its paths are UTF-8 and short, its calls are steps of the protocol
//! that a simulated world may crash between; a payload is millions of names in
//! any bytes, and is either complete under a published snapshot or garbage.
//!
//! **Must not know.** What is captured, compared or restored, and why.

mod descend;
mod movable;
mod remove;

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    self as fs, AtFlags, FileType, Gid, Mode, OFlags, RawDir, RawMode, RenameFlags, SeekFrom,
    StatxFlags, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::manifest::{Device, MAX_XATTR_VALUE_BYTES, Timestamp, Xattr};

pub use descend::{find_below, open_below, reach_below};
pub use movable::{copy_is_movable, movable};
pub use remove::remove;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl NodeKind {
    fn from_mode(mode: RawMode) -> io::Result<Self> {
        Ok(match FileType::from_raw_mode(mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharDevice,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Unknown => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "unknown file type"));
            }
        })
    }
}

/// What `statx` tells of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeStat {
    /// File type.
    pub kind: NodeKind,
    /// Permission bits, setuid, setgid and sticky included.
    pub mode: u32,
    /// Owning user.
    pub uid: u32,
    /// Owning group.
    pub gid: u32,
    /// Number of names.
    pub links: u32,
    /// Size in bytes.
    pub size: u64,
    /// Inode number.
    pub inode: u64,
    /// Filesystem, or subvolume.
    pub filesystem: u64,
    /// When the content last changed, as anyone may have set it.
    pub mtime: Timestamp,
    /// When anything last changed, as nobody can set it.
    pub ctime: Timestamp,
    /// Which device, if it is one.
    pub device: Device,
    /// Which mount, where the kernel says so; else the filesystem.
    pub mount: u64,
}

impl NodeStat {
    /// Which file this is, whatever its name.
    pub fn identity(&self) -> (u64, u64) {
        (self.filesystem, self.inode)
    }
}

fn stat_from(raw: fs::Statx) -> io::Result<NodeStat> {
    let filesystem = u64::from(raw.stx_dev_major) << 32 | u64::from(raw.stx_dev_minor);
    let names_mount = StatxFlags::from_bits_retain(raw.stx_mask).contains(StatxFlags::MNT_ID);
    let time = |t: fs::StatxTimestamp| Timestamp { seconds: t.tv_sec, nanos: t.tv_nsec };
    Ok(NodeStat {
        kind: NodeKind::from_mode(u32::from(raw.stx_mode))?,
        mode: u32::from(raw.stx_mode) & 0o7777,
        uid: raw.stx_uid,
        gid: raw.stx_gid,
        links: raw.stx_nlink,
        size: raw.stx_size,
        inode: raw.stx_ino,
        filesystem,
        mtime: time(raw.stx_mtime),
        ctime: time(raw.stx_ctime),
        device: Device { major: raw.stx_rdev_major, minor: raw.stx_rdev_minor },
        mount: if names_mount { raw.stx_mnt_id } else { filesystem },
    })
}

fn wanted() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::MNT_ID
}

/// `lstat` of `name` in `dir`.
pub fn stat(dir: impl AsFd, name: &[u8]) -> io::Result<NodeStat> {
    stat_from(fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, wanted())?)
}

/// As [`stat`], asked of the server of the file and not of the kernel's memory: a
/// remote file's attributes may be remembered for seconds. The same where files
/// are local.
pub fn stat_afresh(dir: impl AsFd, name: &[u8]) -> io::Result<NodeStat> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
    stat_from(fs::statx(dir, name, flags, wanted())?)
}

/// [`stat`], and the blocks of 512 bytes that it takes up.
pub fn stat_with_blocks(dir: impl AsFd, name: &[u8]) -> io::Result<(NodeStat, u64)> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    let raw = fs::statx(dir, name, flags, wanted())?;
    let blocks = raw.stx_blocks;
    Ok((stat_from(raw)?, blocks))
}

/// Of what is open.
pub fn stat_open(file: impl AsFd) -> io::Result<NodeStat> {
    stat_from(fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted())?)
}

/// Opens the root of a tree by its path. Its last component may not be a symlink.
pub fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::open(path, flags, Mode::empty())?)
}

/// As [`open_root`], where the path is a user's own word, symlinks and all.
pub fn open_root_by_any_path(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(fs::open(path, flags, Mode::empty())?)
}

/// Opens the directory `name` in `dir`.
pub fn open_directory(dir: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::openat(dir, name, flags, Mode::empty())?)
}

/// Finds the directory `name` in `dir`, only to reach what is in it by name: a server of
/// the files is asked to open nothing.
pub fn reach(dir: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::openat(dir, name, flags, Mode::empty())?)
}

/// Opens the regular file `name` in `dir` for reading.
pub fn open_file(dir: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    // O_NONBLOCK: what was a file a moment ago may be a FIFO now.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::openat(dir, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(fs::fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(Errno::NXIO.into());
    }
    Ok(file)
}

/// Creates the file `name` in `dir`, open for reading and writing. Only its owner
/// may touch it until it gets its mode.
pub fn create_file(dir: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    create(dir, name, Mode::from_raw_mode(0o600))
}

fn create(dir: impl AsFd, name: &[u8], mode: Mode) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::openat(dir, name, flags, mode)?)
}

/// Creates a control file, as open as the umask lets it be, in a directory of one's own
/// and of a name that is made once there: an empty file that is found after an error is
/// the one whose answer was lost.
pub fn create_own_file(dir: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    let error = match create(&dir, name, Mode::from_raw_mode(0o666)) {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = fs::openat(dir, name, flags, Mode::empty()) else { return Err(error) };
    let found = fs::fstat(&file)?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if is_file && found.st_size == 0 && found.st_nlink == 1 { Ok(file) } else { Err(error) }
}

/// Makes the directory `name` in `dir`, for its owner only until it gets its mode.
pub fn make_directory(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    Ok(fs::mkdirat(dir, name, Mode::from_raw_mode(0o700))?)
}

/// The same for the root of a copy: whatever access control lists the directory that it is
/// in hands on, it has none, and hands none on to what is made in it. They would be in the
/// copy and not in its original.
pub fn make_bare_directory(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    make_directory(&dir, name)?;
    let made = open_directory(&dir, name)?;
    for list in [c"system.posix_acl_default", c"system.posix_acl_access"] {
        match fs::fremovexattr(&made, list) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Makes a symlink.
pub fn make_symlink(target: &[u8], dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    Ok(fs::symlinkat(target, dir, name)?)
}

/// Makes a FIFO, a socket's name or a device.
pub fn make_special(dir: impl AsFd, name: &[u8], kind: NodeKind, device: Device) -> io::Result<()> {
    let (kind, number) = match kind {
        NodeKind::Fifo => (FileType::Fifo, 0),
        NodeKind::Socket => (FileType::Socket, 0),
        NodeKind::CharDevice => {
            (FileType::CharacterDevice, fs::makedev(device.major, device.minor))
        }
        NodeKind::BlockDevice => (FileType::BlockDevice, fs::makedev(device.major, device.minor)),
        NodeKind::File | NodeKind::Directory | NodeKind::Symlink => return Err(Errno::INVAL.into()),
    };
    Ok(fs::mknodat(dir, name, kind, Mode::from_raw_mode(0o600), number)?)
}

/// Gives a file a second name.
pub fn link(dir: impl AsFd, name: &[u8], to_dir: impl AsFd, to_name: &[u8]) -> io::Result<()> {
    Ok(fs::linkat(dir, name, to_dir, to_name, AtFlags::empty())?)
}

/// Renames within one tree.
pub fn rename(dir: impl AsFd, name: &[u8], to_dir: impl AsFd, to_name: &[u8]) -> io::Result<()> {
    Ok(fs::renameat(dir, name, to_dir, to_name)?)
}

/// Swaps two names in one step.
pub fn exchange(dir: impl AsFd, name: &[u8], to_dir: impl AsFd, to_name: &[u8]) -> io::Result<()> {
    Ok(fs::renameat_with(dir, name, to_dir, to_name, RenameFlags::EXCHANGE)?)
}

/// Renames to a name that is not there.
pub fn rename_new(
    dir: impl AsFd,
    name: &[u8],
    to_dir: impl AsFd,
    to_name: &[u8],
) -> io::Result<()> {
    Ok(fs::renameat_with(dir, name, to_dir, to_name, RenameFlags::NOREPLACE)?)
}

/// Removes a name that is not a directory.
pub fn unlink(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    Ok(fs::unlinkat(dir, name, AtFlags::empty())?)
}

/// What a symlink says.
pub fn read_link(dir: impl AsFd, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(fs::readlinkat(dir, name, Vec::new())?.into_bytes())
}

/// Names of a directory, sorted bytewise, in one allocation: a million names are
/// not a million allocations.
#[derive(Debug, Default)]
pub struct Names {
    bytes: Vec<u8>,
    spans: Vec<(u32, u8)>,
}

impl Names {
    /// The number of names.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Are there no names?
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The `index`-th name.
    pub fn get(&self, index: usize) -> &[u8] {
        let (start, length) = self.spans[index];
        &self.bytes[start as usize..start as usize + usize::from(length)]
    }

    /// All names in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Where `name` is.
    pub fn position(&self, name: &[u8]) -> Option<usize> {
        self.spans
            .binary_search_by(|&(start, length)| {
                self.bytes[start as usize..start as usize + usize::from(length)].cmp(name)
            })
            .ok()
    }

    /// Some names, whatever their order.
    pub fn of(some: &[&[u8]]) -> io::Result<Self> {
        let mut names = Names::default();
        some.iter().try_for_each(|name| names.push(name))?;
        names.sort();
        Ok(names)
    }

    fn push(&mut self, name: &[u8]) -> io::Result<()> {
        let start = u32::try_from(self.bytes.len()).map_err(|_| Errno::OVERFLOW)?;
        let length = u8::try_from(name.len()).map_err(|_| Errno::NAMETOOLONG)?;
        self.bytes.extend_from_slice(name);
        self.spans.push((start, length));
        Ok(())
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let name = |(start, length): &(u32, u8)| {
            &bytes[*start as usize..*start as usize + usize::from(*length)]
        };
        self.spans.sort_unstable_by(|a, b| name(a).cmp(name(b)));
        // A filesystem may show a name twice while it changes.
        self.spans.dedup_by(|a, b| name(a) == name(b));
        self.bytes.shrink_to_fit();
        self.spans.shrink_to_fit();
    }
}

/// All names in an open directory that was not listed before.
pub fn list(dir: impl AsFd) -> io::Result<Names> {
    let mut names = Names::default();
    let mut buffer = [MaybeUninit::<u8>::uninit(); 32 * 1024];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name)?;
        }
    }
    names.sort();
    Ok(names)
}

/// Reads at `offset` until `into` is full or the file ends.
pub fn read_at(file: impl AsFd, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match rustix::io::pread(&file, &mut into[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(got) => done += got,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// From now on, what is read from an open file comes from its filesystem, not from
/// the kernel's memory of it.
pub fn bypass_memory(file: impl AsFd) -> io::Result<()> {
    let flags = fs::fcntl_getfl(&file)?;
    Ok(fs::fcntl_setfl(file, flags | OFlags::DIRECT)?)
}

/// Writes all of `bytes` at `offset`.
pub fn write_at(file: impl AsFd, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(&file, &bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Lets the kernel, or the server, copy a part; how much it did.
pub fn copy_part(from: impl AsFd, to: impl AsFd, offset: u64, length: u64) -> io::Result<u64> {
    let (mut from_offset, mut to_offset) = (offset, offset);
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(1 << 30);
    let (from_offset, to_offset) = (Some(&mut from_offset), Some(&mut to_offset));
    Ok(fs::copy_file_range(from, from_offset, to, to_offset, length)? as u64)
}

/// Shares the content of one file with another (`FICLONE`).
pub fn clone_content(from: impl AsFd, to: impl AsFd) -> io::Result<()> {
    Ok(fs::ioctl_ficlone(to, from)?)
}

/// The next part at or after `offset` that is not a hole: where it begins and
/// ends. Filesystems that know no holes say that all is data.
pub fn next_data(file: impl AsFd, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    if offset >= size {
        return Ok(None);
    }
    match fs::seek(&file, SeekFrom::Data(offset)) {
        Ok(start) if start >= size => Ok(None),
        Ok(start) => Ok(Some((start, fs::seek(&file, SeekFrom::Hole(start))?.min(size)))),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some((offset, size))),
        Err(error) => Err(error.into()),
    }
}

/// Makes a file this long; what is added is a hole.
pub fn set_size(file: impl AsFd, size: u64) -> io::Result<()> {
    Ok(fs::ftruncate(file, size)?)
}

/// Owner and group; also of a symlink. Removes setuid and setgid, so it comes
/// before the mode.
pub fn set_owner(dir: impl AsFd, name: &[u8], uid: u32, gid: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    Ok(fs::chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// As [`set_owner`], for what is open.
pub fn set_owner_open(file: impl AsFd, uid: u32, gid: u32) -> io::Result<()> {
    Ok(fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
}

/// Permission bits of anything but a symlink. The caller made or just looked at
/// `name`, in a directory that nobody else may touch.
pub fn set_mode(dir: impl AsFd, name: &[u8], mode: u32) -> io::Result<()> {
    Ok(fs::chmodat(dir, name, Mode::from_raw_mode(mode), AtFlags::empty())?)
}

/// As [`set_mode`], for what is open.
pub fn set_mode_open(file: impl AsFd, mode: u32) -> io::Result<()> {
    Ok(fs::fchmod(file, Mode::from_raw_mode(mode))?)
}

fn only_mtime(mtime: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT },
        last_modification: Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanos.into() },
    }
}

/// Modification time; also of a symlink.
pub fn set_mtime(dir: impl AsFd, name: &[u8], mtime: Timestamp) -> io::Result<()> {
    Ok(fs::utimensat(dir, name, &only_mtime(mtime), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// As [`set_mtime`], for what is open.
pub fn set_mtime_open(file: impl AsFd, mtime: Timestamp) -> io::Result<()> {
    Ok(fs::futimens(file, &only_mtime(mtime))?)
}

/// A path that means `name` in `dir` whatever the directory is called, for the
/// calls that know no descriptors.
fn path_of(dir: impl AsFd, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", dir.as_fd().as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    path
}

/// Whether the filesystem of an open file keeps extended attributes at all.
pub fn supports_xattrs(file: impl AsFd) -> io::Result<bool> {
    match fs::flistxattr(file, &mut [0_u8; 0][..]) {
        Ok(_) | Err(Errno::RANGE) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether extended attributes can change without a trace in any time: JuiceFS is
/// so, and no other remote filesystem is known not to be.
pub fn has_timeless_xattrs(at: impl AsFd) -> io::Result<bool> {
    Ok(is_remote(&at) && supports_xattrs(at)?)
}

/// Extended attributes of `name`, sorted; none where there can be none.
pub fn xattrs(dir: impl AsFd, name: &[u8]) -> io::Result<Vec<Xattr>> {
    let path = path_of(dir, name);
    let list = |buffer: &mut [u8]| fs::llistxattr(&path, buffer);
    let get = |name: &CStr, buffer: &mut [u8]| fs::lgetxattr(&path, name, buffer);
    read_xattrs(list, get)
}

/// As [`xattrs`], for what is open.
pub fn xattrs_open(file: impl AsFd) -> io::Result<Vec<Xattr>> {
    let list = |buffer: &mut [u8]| fs::flistxattr(&file, buffer);
    let get = |name: &CStr, buffer: &mut [u8]| fs::fgetxattr(&file, name, buffer);
    read_xattrs(list, get)
}

fn read_xattrs(
    list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
    get: impl Fn(&CStr, &mut [u8]) -> rustix::io::Result<usize>,
) -> io::Result<Vec<Xattr>> {
    let mut small = [0; 256];
    let mut large = Vec::new();
    let names = match list(&mut small) {
        Ok(length) => &small[..length],
        Err(Errno::RANGE) => {
            large.resize(MAX_XATTR_VALUE_BYTES, 0);
            let length = list(&mut large)?;
            &large[..length]
        }
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    for name in names.split_inclusive(|&byte| byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        let mut value = vec![0; 256];
        let length = match get(name, &mut value) {
            Err(Errno::RANGE) => {
                value.resize(MAX_XATTR_VALUE_BYTES, 0);
                get(name, &mut value)
            }
            answer => answer,
        };
        match length {
            Ok(length) => value.truncate(length),
            // Removed in between, or shown to some and readable by fewer.
            Err(Errno::NODATA) => continue,
            Err(error) => return Err(error.into()),
        }
        found.push(Xattr { name: name.to_bytes().to_vec(), value });
    }
    found.sort_unstable();
    Ok(found)
}

/// Sets one attribute of `name`.
pub fn set_xattr(dir: impl AsFd, name: &[u8], xattr: &Xattr) -> io::Result<()> {
    let path = path_of(dir, name);
    Ok(fs::lsetxattr(&path, &xattr.name, &xattr.value, XattrFlags::empty())?)
}

/// As [`set_xattr`], for what is open.
pub fn set_xattr_open(file: impl AsFd, xattr: &Xattr) -> io::Result<()> {
    Ok(fs::fsetxattr(file, &xattr.name, &xattr.value, XattrFlags::empty())?)
}

/// Removes one attribute of what is open.
pub fn remove_xattr_open(file: impl AsFd, name: &[u8]) -> io::Result<()> {
    Ok(fs::fremovexattr(file, name)?)
}

/// An open file from its start to its end, to read or to write.
#[derive(Debug)]
pub struct FileStream {
    file: OwnedFd,
    offset: u64,
}

impl FileStream {
    /// At the start of `file`.
    pub fn new(file: OwnedFd) -> Self {
        Self { file, offset: 0 }
    }

    /// The file again.
    pub fn into_inner(self) -> OwnedFd {
        self.file
    }
}

impl AsFd for FileStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl io::Read for FileStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = rustix::io::pread(&self.file, into, self.offset)?;
        self.offset += got as u64;
        Ok(got)
    }
}

impl io::Write for FileStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = rustix::io::pwrite(&self.file, bytes, self.offset)?;
        self.offset += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Everything written to this filesystem so far is on its disk.
pub fn sync_filesystem(at: impl AsFd) -> io::Result<()> {
    Ok(fs::syncfs(at)?)
}

/// A file's content, or a directory's entries, are on the disk.
pub fn sync(file: impl AsFd) -> io::Result<()> {
    Ok(fs::fsync(file)?)
}

/// What was written to a file, by anyone, is with whatever stores it.
pub fn sync_content(file: impl AsFd) -> io::Result<()> {
    Ok(fs::fdatasync(file)?)
}

/// Where an open directory is at this moment, for programs that want a path.
pub fn path_of_open(dir: impl AsFd) -> io::Result<std::path::PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let link = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
    let path = fs::readlink(link, Vec::new())?.into_bytes();
    Ok(std::ffi::OsString::from_vec(path).into())
}

/// Opens a filesystem's control file, to talk to the server of it.
pub fn open_control(mount_point: &Path, name: &str) -> io::Result<OwnedFd> {
    let dir = open_root(mount_point)?;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::openat(dir, name, flags, Mode::empty())?)
}

/// Whether the files are nowhere but in memory: tmpfs, ramfs, huge pages.
pub fn is_in_memory(at: impl AsFd) -> bool {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    const HUGETLBFS: u32 = 0x9584_58f6;
    fs::fstatfs(at).is_ok_and(|answer| [TMPFS, RAMFS, HUGETLBFS].contains(&(answer.f_type as u32)))
}

/// Is it certain that no two files share content here, so that what a file takes up is its
/// own? Others may clone what is copied.
pub fn shares_no_content(at: impl AsFd) -> bool {
    const EXT: u32 = 0xef53;
    const TMPFS: u32 = 0x0102_1994;
    fs::fstatfs(at).is_ok_and(|answer| [EXT, TMPFS].contains(&(answer.f_type as u32)))
}

/// Whether the files are somewhere else, so that waiting for answers costs more
/// than working: FUSE, NFS, CIFS and their like.
pub fn is_remote(at: impl AsFd) -> bool {
    const FUSE: u32 = 0x6573_5546;
    const NFS: u32 = 0x6969;
    const CIFS: u32 = 0xff53_4d42;
    const SMB2: u32 = 0xfe53_4d42;
    const CEPH: u32 = 0x00c3_6400;
    fs::fstatfs(at)
        .is_ok_and(|answer| [FUSE, NFS, CIFS, SMB2, CEPH].contains(&(answer.f_type as u32)))
}
