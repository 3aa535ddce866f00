//! A filesystem that breaks one promise, to see the probe find it out.

use std::ffi::OsString;
use std::io;
use std::sync::Mutex;

use rustix::io::Errno;

use crate::store::{DirEntry, DirEntryKind, EntryStat, PosixStore, RepoPath, Store, StoredFile};

/// Which promise is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    None,
    RenameOfNothingSucceeds,
    RenameLeavesTheSource,
    RenameIsNotApplied,
    TwoRenamesOfOneSourceWin,
    AppliedRenameSaysNotFound,
    CreateNewOpensWhatIsThere,
    RenameNewReplaces,
    RenameNewIsUnsupported,
    DirectoryReplacesFullDirectory,
    FileSyncIsUnsupported,
    DirSyncIsUnsupported,
    NamesAreShort,
    NamesAreCut,
    ListingIsStale,
    ListingShowsTwo,
    ReadOnly,
}

pub(super) struct Liar {
    inner: PosixStore,
    lie: Lie,
    /// What each directory showed when it was first listed.
    first_seen: Mutex<Vec<(RepoPath, Vec<OsString>)>>,
    /// The source of the last rename that was applied.
    last_source: Mutex<Option<RepoPath>>,
}

impl Liar {
    pub(super) fn new(inner: PosixStore, lie: Lie) -> Self {
        let (first_seen, last_source) = (Mutex::default(), Mutex::default());
        Liar { inner, lie, first_seen, last_source }
    }

    fn cut(path: &RepoPath) -> RepoPath {
        let (parent, name) = path.split();
        parent.plain_child(&name[..name.len().min(143)])
    }

    fn kind(&self, path: &RepoPath) -> Option<DirEntryKind> {
        self.inner.stat(path).ok().map(|stat| stat.kind)
    }
}

struct NoSync(Box<dyn StoredFile>);

impl StoredFile for NoSync {
    fn inode(&self) -> io::Result<u64> {
        self.0.inode()
    }
    fn links(&self) -> io::Result<u64> {
        self.0.links()
    }
    fn read_up_to(&self, limit: usize) -> io::Result<Vec<u8>> {
        self.0.read_up_to(limit)
    }
    fn read_range(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.0.read_range(offset, length)
    }
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        Err(Errno::INVAL.into())
    }
}

impl Store for Liar {
    fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<OsString>> {
        let mut names = self.inner.first_batch(dir)?;
        match self.lie {
            Lie::ListingShowsTwo => names.push("ghost".into()),
            Lie::ListingIsStale => {
                let mut seen = self.first_seen.lock().expect("no panic while locked");
                match seen.iter().find(|(path, _)| path == dir) {
                    Some((_, first)) => names = first.clone(),
                    None => seen.push((dir.clone(), names.clone())),
                }
            }
            _ => {}
        }
        Ok(names)
    }

    fn list(&self, dir: &RepoPath) -> io::Result<Vec<DirEntry>> {
        self.inner.list(dir)
    }

    fn stat(&self, path: &RepoPath) -> io::Result<EntryStat> {
        self.inner.stat(path)
    }

    fn open(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.inner.open(path)
    }

    fn open_writable(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.inner.open_writable(path)
    }

    fn create_new(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        match self.lie {
            Lie::NamesAreShort if path.split().1.len() > 143 => Err(Errno::NAMETOOLONG.into()),
            Lie::NamesAreCut => self.inner.create_new(&Self::cut(path)),
            Lie::FileSyncIsUnsupported => {
                self.inner.create_new(path).map(|file| Box::new(NoSync(file)) as _)
            }
            Lie::CreateNewOpensWhatIsThere => {
                self.inner.create_new(path).or_else(|_| self.inner.open_writable(path))
            }
            _ => self.inner.create_new(path),
        }
    }

    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        match self.lie {
            Lie::RenameOfNothingSucceeds => self.inner.rename(from, to).or(Ok(())),
            Lie::RenameLeavesTheSource if self.kind(from) == Some(DirEntryKind::File) => {
                self.inner.create_new(to).map(drop)
            }
            Lie::RenameIsNotApplied if self.kind(from) == Some(DirEntryKind::File) => Ok(()),
            Lie::TwoRenamesOfOneSourceWin => {
                // Honest one after the other; lies only to those who race, whom
                // it recognises by the names they choose.
                let mut last = self.last_source.lock().expect("no panic while locked");
                let answer = self.inner.rename(from, to);
                let racing = to.split().1.contains('-');
                if answer.is_ok() {
                    *last = Some(from.clone());
                } else if racing && last.as_ref() == Some(from) {
                    return Ok(());
                }
                answer
            }
            Lie::AppliedRenameSaysNotFound => {
                self.inner.rename(from, to)?;
                if self.kind(to) == Some(DirEntryKind::File) {
                    Err(Errno::NOENT.into())
                } else {
                    Ok(())
                }
            }
            Lie::DirectoryReplacesFullDirectory
                if self.kind(to) == Some(DirEntryKind::Directory) =>
            {
                self.inner.remove_payload_tree(to)?;
                self.inner.rename(from, to)
            }
            _ => self.inner.rename(from, to),
        }
    }

    fn rename_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        match self.lie {
            Lie::RenameNewReplaces => self.inner.rename(from, to),
            Lie::RenameNewIsUnsupported => Err(Errno::INVAL.into()),
            _ => self.inner.rename_new(from, to),
        }
    }

    fn exchange(&self, a: &RepoPath, b: &RepoPath) -> io::Result<()> {
        self.inner.exchange(a, b)
    }

    fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        self.inner.unlink(path)
    }

    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        match self.lie {
            Lie::ReadOnly => Err(Errno::ROFS.into()),
            _ => self.inner.make_dir(path),
        }
    }

    fn remove_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.inner.remove_dir(path)
    }

    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()> {
        match self.lie {
            Lie::DirSyncIsUnsupported => Err(Errno::INVAL.into()),
            _ => self.inner.sync_dir(dir),
        }
    }
}
