//! A store that counts what is asked of the metadata engine.

use std::ffi::OsString;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use jvs_repo::store::{DirEntry, EntryStat, PosixStore, RepoPath, Store, StoredFile};

pub(crate) struct Counting {
    pub(crate) inner: PosixStore,
    count: AtomicU64,
}

impl Counting {
    pub(crate) fn new(inner: PosixStore) -> Self {
        Counting { inner, count: AtomicU64::new(0) }
    }

    /// Calls since the last time it was asked.
    pub(crate) fn take(&self) -> u64 {
        self.count.swap(0, Ordering::SeqCst)
    }

    fn one(&self) -> &PosixStore {
        self.count.fetch_add(1, Ordering::SeqCst);
        &self.inner
    }
}

impl Store for Counting {
    fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<OsString>> {
        self.one().first_batch(dir)
    }

    fn list(&self, dir: &RepoPath) -> io::Result<Vec<DirEntry>> {
        self.one().list(dir)
    }

    fn stat(&self, path: &RepoPath) -> io::Result<EntryStat> {
        self.one().stat(path)
    }

    fn open(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.one().open(path)
    }

    fn open_writable(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.one().open_writable(path)
    }

    fn create_new(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.one().create_new(path)
    }

    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.one().rename(from, to)
    }

    fn rename_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.one().rename_new(from, to)
    }

    fn exchange(&self, a: &RepoPath, b: &RepoPath) -> io::Result<()> {
        self.one().exchange(a, b)
    }

    fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        self.one().unlink(path)
    }

    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.one().make_dir(path)
    }

    fn remove_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.one().remove_dir(path)
    }

    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()> {
        self.one().sync_dir(dir)
    }
}
