//! A payload tree that others may still write into, removed by a list: nothing
//! goes that was not in it, or is no longer as it was when the list was made.
//!
//! A process that compares a tree and then removes it makes the list first. What is as it
//! is listed when its name goes was so while it was compared.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::tree::{Descent, Entering, FileIdentity, Removing, for_each_entry, unlink_inside, walk};

/// What a name stood for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fact {
    kind: FileType,
    identity: FileIdentity,
    size: u64,
    links: u32,
    modified: (i64, u32),
    changed: (i64, u32),
}

impl Fact {
    /// Asked of the server of the file, not of the kernel's memory of it.
    fn of(dir: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<Self> {
        Fact::at(dir, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn of_open(file: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        Fact::at(file, OsStr::new(""), AtFlags::EMPTY_PATH)
    }

    fn at(dir: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> rustix::io::Result<Self> {
        let flags = flags | AtFlags::STATX_FORCE_SYNC;
        let raw = fs::statx(dir, name, flags, StatxFlags::BASIC_STATS)?;
        #[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
        let device = fs::makedev(raw.stx_dev_major, raw.stx_dev_minor) as u64;
        Ok(Fact {
            kind: FileType::from_raw_mode(raw.stx_mode.into()),
            identity: FileIdentity { device, inode: raw.stx_ino },
            size: raw.stx_size,
            links: raw.stx_nlink,
            modified: (raw.stx_mtime.tv_sec, raw.stx_mtime.tv_nsec),
            changed: (raw.stx_ctime.tv_sec, raw.stx_ctime.tv_nsec),
        })
    }

    /// Is it still so? The kernel notes a change of a file too when another of its
    /// names goes, by another removal of what was listed with it.
    fn still_holds(&self, now: &Fact) -> bool {
        let lost_a_name = now.links < self.links;
        (now.kind, now.identity, now.size, now.modified)
            == (self.kind, self.identity, self.size, self.modified)
            && (now.changed == self.changed || lost_a_name)
    }
}

/// What was in a tree.
#[derive(Debug, Default)]
pub struct TreeListing {
    top: Option<Fact>,
    directories: HashMap<FileIdentity, Vec<(OsString, Fact)>>,
}

impl TreeListing {
    /// Lists the directory that the walk is in and returns its subdirectories.
    fn add(&mut self, descent: &Descent) -> rustix::io::Result<Vec<OsString>> {
        let (dir, mut entries, mut inside) = (descent.here.as_fd(), Vec::new(), Vec::new());
        for_each_entry(dir, |name, _| {
            match Fact::of(dir, name) {
                Ok(fact) => {
                    if fact.kind == FileType::Directory {
                        inside.push(name.to_owned());
                    }
                    entries.push((name.to_owned(), fact));
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            Ok(())
        })?;
        self.directories.insert(descent.identity, entries);
        Ok(inside)
    }
}

fn is_not_as_listed(path: &Path) -> io::Error {
    let problem = format!("somebody wrote to {} meanwhile", path.display());
    io::Error::new(io::ErrorKind::DirectoryNotEmpty, problem)
}

/// What is at `name` in `parent`, and all below it; no symlink is followed and no
/// mount point crossed.
pub(super) fn list(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<TreeListing> {
    let top = Fact::of(parent, name)?;
    let mut listing = TreeListing { top: Some(top), directories: HashMap::new() };
    if top.kind != FileType::Directory {
        return Ok(listing);
    }
    let mut descent = Descent::begin(parent, name, Entering::ToRead)?;
    loop {
        descent.pending = listing.add(&descent)?;
        loop {
            match descent.pending.pop() {
                Some(child) => match descent.enter(child) {
                    Ok(()) => break,
                    // The removal will show it.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
                    Err(error) => return Err(error.into()),
                },
                None if descent.leave()?.is_none() => return Ok(listing),
                None => {}
            }
        }
    }
}

/// Removes what is listed of `name` in `parent`. Ends at the first name that is not
/// as it was, and at a directory with a name that is not listed
/// (`DirectoryNotEmpty`): what is left then is as its writer left it.
pub(super) fn remove(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    listing: &TreeListing,
) -> io::Result<()> {
    let now = Fact::of(parent, name)?;
    let Some(top) = listing.top else { return Err(is_not_as_listed(name.as_ref())) };
    if top.kind != FileType::Directory {
        if !top.still_holds(&now) {
            return Err(is_not_as_listed(name.as_ref()));
        }
        return Ok(fs::unlinkat(parent, name, AtFlags::empty())?);
    }
    walk(parent, name, &AsListed { listing, top: name, shortened: RefCell::default() })
}

/// Removes what is as it is listed, and nothing else.
struct AsListed<'l> {
    listing: &'l TreeListing,
    top: &'l OsStr,
    /// Files of which this removal has taken a name, as they were right after that:
    /// the process that writes to one between two of its names is seen by the time of it.
    shortened: RefCell<HashMap<FileIdentity, Fact>>,
}

impl AsListed<'_> {
    /// Removes a name of a file, if it is as it is listed. Answers whether it was.
    fn remove(&self, dir: BorrowedFd<'_>, name: &OsStr, fact: &Fact) -> rustix::io::Result<bool> {
        if fact.links == 1 {
            let is_listed = fact.still_holds(&Fact::of(dir, name)?);
            if is_listed {
                unlink_inside(dir, name, AtFlags::empty())?;
            }
            return Ok(is_listed);
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(dir, name, flags, Mode::empty())?;
        let now = Fact::of_open(file.as_fd())?;
        let is_listed = match self.shortened.borrow().get(&fact.identity) {
            Some(left) => *left == now,
            None => fact.still_holds(&now),
        };
        if is_listed {
            unlink_inside(dir, name, AtFlags::empty())?;
            let left = Fact::of_open(file.as_fd())?;
            self.shortened.borrow_mut().insert(fact.identity, left);
        }
        Ok(is_listed)
    }
}

impl Removing for AsListed<'_> {
    /// The list says what is in it.
    fn entering(&self) -> Entering {
        Entering::ToReach
    }

    fn sweep(&self, descent: &Descent) -> io::Result<Vec<OsString>> {
        let (dir, here) = (descent.here.as_fd(), || descent.path_below(self.top));
        let Some(entries) = self.listing.directories.get(&descent.identity) else {
            return Err(is_not_as_listed(&here()));
        };
        let mut inside = Vec::new();
        for (name, fact) in entries {
            if fact.kind == FileType::Directory {
                inside.push(name.clone());
                continue;
            }
            match self.remove(dir, name, fact) {
                Ok(true) | Err(Errno::NOENT) => {}
                Ok(false) => return Err(is_not_as_listed(&here().join(name))),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(inside)
    }

    fn replaced(&self, path: PathBuf) -> io::Result<()> {
        Err(is_not_as_listed(&path))
    }

    /// Never once more: nobody has compared what is in there.
    fn stayed(&self, path: PathBuf, _error: Errno, _n: usize) -> io::Result<()> {
        Err(is_not_as_listed(&path))
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests do what any process does")]
mod tests {
    use std::fs as real;

    use super::*;
    use crate::store::{PosixStore, RepoPath};

    /// A tree, what happens to it after it was listed, and what is left of it.
    fn after(meanwhile: impl Fn(&std::path::Path)) -> (tempfile::TempDir, Result<(), String>) {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        let tree = RepoPath::root().child("tree").expect("plain");
        let top = dir.path().join("tree");
        real::DirBuilder::new().recursive(true).create(top.join("a/b")).expect("mkdir -p");
        for file in ["one", "a/two", "a/b/three"] {
            real::write(top.join(file), file).expect("written");
        }
        real::hard_link(top.join("one"), top.join("a/one")).expect("linked");
        std::os::unix::fs::symlink("nowhere", top.join("a/link")).expect("symlink");
        let listing = store.list_payload_tree(&tree).expect("listed");
        // Longer than a tick of the clock that files are stamped with.
        std::thread::sleep(std::time::Duration::from_millis(20));
        meanwhile(&top);
        let told = store.remove_listed_tree(&tree, &listing);
        (dir, told.map_err(|error| error.to_string()))
    }

    #[test]
    fn what_is_as_it_was_listed_is_removed() {
        let (dir, told) = after(|_| {});
        assert_eq!(told, Ok(()));
        assert!(!dir.path().join("tree").exists());
        let (dir, told) = after(|top| real::remove_file(top.join("a/two")).expect("removed"));
        assert_eq!(told, Ok(()), "what is gone is gone");
        assert!(!dir.path().join("tree").exists());
    }

    #[test]
    fn what_was_made_after_the_list_is_not_removed() {
        for new in ["new", "a/new", "a/b/new"] {
            let (dir, told) = after(|top| real::write(top.join(new), "new").expect("written"));
            assert!(told.expect_err("not empty").contains("meanwhile"));
            assert_eq!(real::read(dir.path().join("tree").join(new)).expect("kept"), b"new");
        }
        let (dir, told) = after(|top| {
            real::rename(top.join("a/b"), top.join("a/c")).expect("renamed");
            real::DirBuilder::new().create(top.join("a/b")).expect("made");
            real::write(top.join("a/b/three"), "another").expect("written");
        });
        assert!(told.is_err());
        let kept = dir.path().join("tree/a/b/three");
        assert_eq!(real::read(kept).expect("kept"), b"another");
    }

    #[test]
    fn what_is_written_between_two_names_of_a_file_is_not_removed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        real::write(&one, "text").expect("written");
        real::hard_link(&one, &two).expect("linked");
        let open = real::File::open(dir.path()).expect("a directory");
        let fact = Fact::of(open.as_fd(), OsStr::new("one")).expect("listed");
        let listing = TreeListing::default();
        let top = OsStr::new("tree");
        let removal = AsListed { listing: &listing, top, shortened: RefCell::default() };
        assert_eq!(removal.remove(open.as_fd(), OsStr::new("one"), &fact), Ok(true));
        let modified = real::metadata(&two).and_then(|now| now.modified()).expect("a time");
        std::thread::sleep(std::time::Duration::from_millis(20));
        real::write(&two, "TEXT").expect("written");
        let file = real::File::options().write(true).open(&two).expect("opened");
        file.set_modified(modified).expect("the time put back");
        assert_eq!(removal.remove(open.as_fd(), OsStr::new("two"), &fact), Ok(false));
        assert_eq!(real::read(&two).expect("kept"), b"TEXT");
    }

    #[test]
    fn what_was_changed_after_the_list_is_not_removed() {
        for (file, text) in [("one", "ONE"), ("a/two", "longer than before"), ("a/b/three", "")] {
            let (dir, told) = after(|top| real::write(top.join(file), text).expect("written"));
            let told = told.expect_err("changed");
            assert!(told.contains("meanwhile"), "{told}");
            let kept = real::read(dir.path().join("tree").join(file)).expect("kept");
            assert_eq!(kept, text.as_bytes());
        }
    }
}
