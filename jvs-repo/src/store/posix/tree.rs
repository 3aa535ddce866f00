//! Whole payload trees: names of any bytes, any depth, any number of entries.
//!
//! One directory is open at a time, however deep the tree: going up again is
//! `..`, believed only if it leads to the very directory that was left, since a
//! tree may be moved while we are in it. No symlink is followed and no mount
//! point crossed: what is mounted inside a worktree is not the worktree's.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;
use rustix::process::geteuid;

/// How often one directory that others write into is swept before giving up.
const SWEEPS_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

fn identity(fd: BorrowedFd<'_>) -> rustix::io::Result<FileIdentity> {
    let stat = fs::fstat(fd)?;
    #[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
    Ok(FileIdentity { device: stat.st_dev as u64, inode: stat.st_ino as u64 })
}

/// A directory that was entered from another one.
struct Above {
    identity: FileIdentity,
    /// Its subdirectories that are still to be entered.
    pending: Vec<OsString>,
    /// The one we are in.
    entered: OsString,
}

/// A walk through a tree, seen from the directory it has come to.
pub(super) struct Descent {
    pub(super) here: OwnedFd,
    pub(super) identity: FileIdentity,
    pub(super) pending: Vec<OsString>,
    above: Vec<Above>,
    entering: Entering,
}

/// What a directory is entered for. Where files are remote, one that is not read need not
/// be opened by their server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entering {
    ToRead,
    /// Only to reach what is in it by name.
    ToReach,
}

impl Entering {
    fn flags(self) -> OFlags {
        let how = if self == Entering::ToRead { OFlags::RDONLY } else { OFlags::PATH };
        how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
    }
}

fn open_child(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    entering: Entering,
) -> rustix::io::Result<OwnedFd> {
    let flags = entering.flags();
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    match fs::openat2(dir, name, flags, Mode::empty(), inside) {
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {
            let fd = fs::openat(dir, name, flags, Mode::empty())?;
            // Without openat2 a bind mount of the same filesystem goes unnoticed
            // here; its removal then fails with EBUSY.
            if identity(fd.as_fd())?.device != identity(dir)?.device {
                return Err(Errno::XDEV);
            }
            Ok(fd)
        }
        answer => answer,
    }
}

impl Descent {
    pub(super) fn begin(
        dir: BorrowedFd<'_>,
        name: &OsStr,
        entering: Entering,
    ) -> rustix::io::Result<Self> {
        let here = open_child(dir, name, entering)?;
        let identity = identity(here.as_fd())?;
        Ok(Descent { here, identity, pending: Vec::new(), above: Vec::new(), entering })
    }

    pub(super) fn enter(&mut self, name: OsString) -> rustix::io::Result<()> {
        let child = open_child(self.here.as_fd(), &name, self.entering)?;
        let identity = identity(child.as_fd())?;
        self.above.push(Above {
            identity: std::mem::replace(&mut self.identity, identity),
            pending: std::mem::take(&mut self.pending),
            entered: name,
        });
        self.here = child;
        Ok(())
    }

    /// Goes up one directory and tells the name of the one that was left;
    /// `None` at the top. What it has come to has been read, and is only reached.
    pub(super) fn leave(&mut self) -> io::Result<Option<OsString>> {
        let Some(above) = self.above.pop() else { return Ok(None) };
        let up = fs::openat(&self.here, "..", Entering::ToReach.flags(), Mode::empty())?;
        if identity(up.as_fd())? != above.identity {
            return Err(io::Error::other(format!(
                "{:?} was moved away meanwhile",
                self.path().join(above.entered)
            )));
        }
        (self.here, self.identity, self.pending) = (up, above.identity, above.pending);
        Ok(Some(above.entered))
    }

    /// The directory that the walk has come back to, to be read once more.
    fn reopen(&mut self) -> rustix::io::Result<()> {
        self.here = fs::openat(&self.here, ".", self.entering.flags(), Mode::empty())?;
        Ok(())
    }

    /// Where the walk is, relative to where it began.
    fn path(&self) -> PathBuf {
        self.above.iter().map(|above| above.entered.as_os_str()).collect()
    }

    pub(super) fn path_below(&self, top: &OsStr) -> PathBuf {
        PathBuf::from(top).join(self.path())
    }
}

/// Calls `each` with every entry of the open directory and whether it is a
/// directory itself.
pub(super) fn for_each_entry(
    dir: BorrowedFd<'_>,
    mut each: impl FnMut(&OsStr, bool) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 32 * 1024];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            },
            known => known,
        };
        each(name, kind == FileType::Directory)?;
    }
    Ok(())
}

/// Removes an entry of a directory that is itself to be removed, whatever its
/// mode says.
pub(super) fn unlink_inside(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: AtFlags,
) -> rustix::io::Result<()> {
    match fs::unlinkat(dir, name, flags) {
        Err(Errno::ACCESS) => {
            // Only its owner may; a process that may not is told of the removal.
            open_up(dir).map_err(|_| Errno::ACCESS)?;
            fs::unlinkat(dir, name, flags)
        }
        answer => answer,
    }
}

/// Lets its owner do anything in a directory, also in one that is only reached.
fn open_up(dir: BorrowedFd<'_>) -> rustix::io::Result<()> {
    match fs::fchmod(dir, Mode::RWXU) {
        Err(Errno::BADF) => {
            let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
            fs::chmodat(fs::CWD, link, Mode::RWXU, AtFlags::empty())
        }
        answer => answer,
    }
}

pub(super) fn is_a_mount_point(path: PathBuf) -> io::Error {
    io::Error::new(
        io::ErrorKind::ResourceBusy,
        format!("{} is a mount point; unmount it first", path.display()),
    )
}

/// What a walk that removes a tree does with the directories that it comes to, and what
/// it makes of what others did there meanwhile.
pub(super) trait Removing {
    /// What a sweep enters a directory for.
    fn entering(&self) -> Entering;

    /// Removes the files of the directory that the walk is in and returns the
    /// subdirectories that are to be entered.
    fn sweep(&self, descent: &Descent) -> io::Result<Vec<OsString>>;

    /// A directory that was to be entered is none any more. `Ok`: go on without it.
    fn replaced(&self, path: PathBuf) -> io::Result<()>;

    /// A directory that was swept cannot be removed (`error`): it has names again, or is
    /// none any more. This is the `n`th time in a row. `Ok`: sweep it once more.
    fn stayed(&self, path: PathBuf, error: Errno, n: usize) -> io::Result<()>;
}

/// Removes the directory `name` in `parent` and what is in it, as `how` says.
pub(super) fn walk(parent: BorrowedFd<'_>, name: &OsStr, how: &dyn Removing) -> io::Result<()> {
    let mut descent = match Descent::begin(parent, name, how.entering()) {
        Err(Errno::XDEV) => return Err(is_a_mount_point(name.into())),
        Err(error @ (Errno::NOTDIR | Errno::LOOP)) => {
            how.replaced(name.into())?;
            return Err(error.into());
        }
        answer => answer?,
    };
    let sweep = |descent: &Descent| how.sweep(descent).map_err(|error| whose(descent, name, error));
    descent.pending = sweep(&descent)?;
    let mut stayed = 0;
    loop {
        if let Some(child) = descent.pending.pop() {
            match descent.enter(child.clone()) {
                Ok(()) => descent.pending = sweep(&descent)?,
                Err(Errno::NOENT) => {}
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    how.replaced(descent.path_below(name).join(child))?;
                }
                Err(Errno::XDEV) => {
                    return Err(is_a_mount_point(descent.path_below(name).join(child)));
                }
                Err(error) => return Err(error.into()),
            }
            continue;
        }
        let left = descent.leave()?;
        let removed = match &left {
            Some(left) => unlink_inside(descent.here.as_fd(), left, AtFlags::REMOVEDIR),
            None => fs::unlinkat(parent, name, AtFlags::REMOVEDIR),
        };
        match (removed, left) {
            (Ok(()) | Err(Errno::NOENT), None) => return Ok(()),
            (Ok(()) | Err(Errno::NOENT), Some(_)) => stayed = 0,
            (Err(error @ (Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR)), left) => {
                stayed += 1;
                let path = descent.path_below(name);
                match left {
                    Some(left) => {
                        how.stayed(path.join(&left), error, stayed)?;
                        descent.pending.push(left);
                    }
                    None => {
                        how.stayed(path, error, stayed)?;
                        descent.reopen()?;
                        descent.pending = sweep(&descent)?;
                    }
                }
            }
            (Err(error), _) => return Err(whose(&descent, name, error.into())),
        }
    }
}

/// Of a removal that was not permitted: whose the directory is that the walk is in.
fn whose(descent: &Descent, top: &OsStr, error: io::Error) -> io::Error {
    let Ok(stat) = fs::fstat(&descent.here) else { return error };
    if error.kind() != io::ErrorKind::PermissionDenied || stat.st_uid == geteuid().as_raw() {
        return error;
    }
    let path = descent.path_below(top);
    let text = format!(
        "{} belongs to user {}: only that user or root can remove what is in it",
        path.display(),
        stat.st_uid
    );
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// Removes whatever there is, also what others put there meanwhile.
struct Whatever;

impl Removing for Whatever {
    fn entering(&self) -> Entering {
        Entering::ToRead
    }

    fn sweep(&self, descent: &Descent) -> io::Result<Vec<OsString>> {
        let dir = descent.here.as_fd();
        let mut directories = Vec::new();
        for_each_entry(dir, |name, is_directory| {
            if is_directory {
                directories.push(name.to_owned());
                return Ok(());
            }
            match unlink_inside(dir, name, AtFlags::empty()) {
                // Gone already, or made into a directory since: the next sweep sees.
                Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
                Err(error) => Err(error),
            }
        })?;
        Ok(directories)
    }

    /// The next sweep removes what it was replaced by.
    fn replaced(&self, _path: PathBuf) -> io::Result<()> {
        Ok(())
    }

    /// Somebody wrote into it, or the listing skipped an entry while others were being
    /// removed.
    fn stayed(&self, _path: PathBuf, error: Errno, n: usize) -> io::Result<()> {
        match error {
            Errno::NOTEMPTY | Errno::EXIST if n <= SWEEPS_MAX => Ok(()),
            error => Err(error.into()),
        }
    }
}

/// Removes `name` in `parent` and everything below it.
pub(super) fn remove(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let stat = fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(fs::unlinkat(parent, name, AtFlags::empty())?);
    }
    walk(parent, name, &Whatever)
}

/// The first directory called `wanted` below `top`, at any depth, relative to
/// `top`. What may not be read and what is mounted there is passed over.
pub(super) fn find_directory(top: OwnedFd, wanted: &OsStr) -> io::Result<Option<PathBuf>> {
    let identity = identity(top.as_fd())?;
    let (pending, above, entering) = (Vec::new(), Vec::new(), Entering::ToRead);
    let mut descent = Descent { here: top, identity, pending, above, entering };
    loop {
        let mut directories = Vec::new();
        for_each_entry(descent.here.as_fd(), |name, is_directory| {
            if is_directory {
                directories.push(name.to_owned());
            }
            Ok(())
        })?;
        if directories.iter().any(|name| name == wanted) {
            return Ok(Some(descent.path().join(wanted)));
        }
        descent.pending = directories;
        loop {
            match descent.pending.pop() {
                Some(child) => match descent.enter(child) {
                    Ok(()) => break,
                    Err(
                        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::ACCESS,
                    ) => {}
                    Err(error) => return Err(error.into()),
                },
                None if descent.leave()?.is_none() => return Ok(None),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;
    use crate::store::{PosixStore, RepoPath};

    fn store() -> (tempfile::TempDir, PosixStore, RepoPath) {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        let tree = RepoPath::root().child("tree").expect("plain");
        (dir, store, tree)
    }

    fn make_dirs(path: &Path) {
        std::fs::DirBuilder::new().recursive(true).create(path).expect("mkdir -p");
    }

    fn touch(path: &Path) {
        std::fs::OpenOptions::new().create_new(true).write(true).open(path).expect("create");
    }

    #[test]
    fn a_tree_of_everything_is_removed_and_nothing_outside_is_touched() {
        let (dir, store, tree) = store();
        let outside = tempfile::tempdir().expect("tempdir");
        touch(&outside.path().join("precious"));
        let top = dir.path().join("tree");
        make_dirs(&top.join("a/b/c"));
        make_dirs(&top.join("empty"));
        make_dirs(&top.join(OsStr::from_bytes(b"\xff\xfe")).join("x"));
        touch(&top.join("a/b").join(OsStr::from_bytes(b"not utf-8 \xff\n")));
        for n in 0..3000 {
            touch(&top.join("a/b/c").join(format!("many-{n}")));
        }
        symlink(outside.path(), top.join("a/way-out")).expect("symlink");
        symlink(outside.path().join("precious"), top.join("a/b/file-out")).expect("symlink");
        std::os::unix::net::UnixListener::bind(top.join("socket")).expect("bind");
        let closed = std::fs::Permissions::from_mode(0o555);
        std::fs::set_permissions(top.join("a/b"), closed).expect("chmod");

        store.remove_payload_tree(&tree).expect("removed");
        assert!(!top.exists());
        assert!(outside.path().join("precious").exists());
        let gone = store.remove_payload_tree(&tree).expect_err("nothing there");
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_symlink_or_file_in_the_place_of_a_tree_is_removed_itself() {
        let (dir, store, tree) = store();
        let outside = tempfile::tempdir().expect("tempdir");
        touch(&outside.path().join("precious"));
        symlink(outside.path(), dir.path().join("tree")).expect("symlink");
        store.remove_payload_tree(&tree).expect("removed");
        assert!(outside.path().join("precious").exists());
        touch(&dir.path().join("tree"));
        store.remove_payload_tree(&tree).expect("removed");
        assert!(store.is_empty_dir(&RepoPath::root()).expect("listed"));
    }

    #[test]
    fn a_tree_deeper_than_any_path_or_descriptor_limit_is_searched_and_removed() {
        const DEPTH: usize = 3000;
        let (dir, store, tree) = store();
        make_dirs(&dir.path().join("tree"));
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let mut at = fs::open(dir.path().join("tree"), flags, Mode::empty()).expect("open");
        for _ in 0..DEPTH {
            fs::mkdirat(&at, "deep", Mode::RWXU).expect("mkdir");
            at = fs::openat(&at, "deep", flags, Mode::empty()).expect("open");
        }
        assert_eq!(store.find_directory(&tree, "wanted").expect("searched"), None);
        fs::mkdirat(&at, "wanted", Mode::RWXU).expect("mkdir");
        let found = store.find_directory(&tree, "wanted").expect("searched").expect("found");
        assert_eq!(found.components().count(), DEPTH + 1);
        store.remove_payload_tree(&tree).expect("removed");
        assert!(store.is_empty_dir(&RepoPath::root()).expect("listed"));
    }

    #[test]
    fn a_directory_that_is_only_reached_can_be_opened_up() {
        let (dir, _, _) = store();
        let closed = dir.path().join("closed");
        make_dirs(&closed);
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).expect("chmod");
        let reached = fs::open(&closed, Entering::ToReach.flags(), Mode::empty()).expect("reached");
        open_up(reached.as_fd()).expect("opened up");
        assert_eq!(closed.metadata().expect("there").permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn emptiness_is_told_of_directories_only() {
        let (dir, store, tree) = store();
        assert!(store.is_empty_dir(&RepoPath::root()).expect("listed"));
        assert!(store.is_empty_dir(&tree).is_err(), "not there");
        symlink("nowhere", dir.path().join("tree")).expect("symlink");
        assert!(!store.is_empty_dir(&RepoPath::root()).expect("listed"));
        assert!(store.is_empty_dir(&tree).is_err(), "a symlink is not looked through");
    }
}
