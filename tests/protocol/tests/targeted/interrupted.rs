//! A store in which the world goes on right before one call of its process: the
//! moment between a check and the act that rests on it, chosen by hand.

use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use jvs_kit::sim::SimStore;
use jvs_repo::store::{DirEntry, EntryStat, RepoPath, Store, StoredFile};

use crate::world::World;

type Meanwhile = Box<dyn FnOnce() + Send>;

struct Moment {
    call: &'static str,
    path: &'static str,
    then: Meanwhile,
}

/// The filesystem of a process that is held up once.
#[derive(Clone)]
pub(crate) struct Interrupted {
    inner: SimStore,
    next: Arc<Mutex<Option<Moment>>>,
}

impl Interrupted {
    pub(crate) fn new(world: &World) -> Self {
        Interrupted { inner: world.solo.store().clone(), next: Arc::default() }
    }

    /// Right before the next `call` on a path that contains `path`, `meanwhile`
    /// happens.
    pub(crate) fn before(
        &self,
        call: &'static str,
        path: &'static str,
        meanwhile: impl FnOnce() + Send + 'static,
    ) {
        let moment = Moment { call, path, then: Box::new(meanwhile) };
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(moment);
    }

    /// Fails the test if the moment never came.
    #[track_caller]
    pub(crate) fn happened(&self) {
        let left = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(left.is_none(), "the moment never came");
    }

    fn about_to(&self, call: &str, path: &RepoPath) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let come = next
            .as_ref()
            .is_some_and(|moment| moment.call == call && path.as_str().contains(moment.path));
        let moment = if come { next.take() } else { None };
        drop(next);
        if let Some(moment) = moment {
            (moment.then)();
        }
    }

    fn watch(&self, path: &RepoPath, file: Box<dyn StoredFile>) -> Box<dyn StoredFile> {
        Box::new(InterruptedFile { store: self.clone(), path: path.clone(), inner: file })
    }
}

impl Store for Interrupted {
    fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<OsString>> {
        self.about_to("first_batch", dir);
        self.inner.first_batch(dir)
    }

    fn list(&self, dir: &RepoPath) -> io::Result<Vec<DirEntry>> {
        self.about_to("list", dir);
        self.inner.list(dir)
    }

    fn stat(&self, path: &RepoPath) -> io::Result<EntryStat> {
        self.about_to("stat", path);
        self.inner.stat(path)
    }

    fn open(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.about_to("open", path);
        Ok(self.watch(path, self.inner.open(path)?))
    }

    fn open_writable(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.about_to("open_writable", path);
        Ok(self.watch(path, self.inner.open_writable(path)?))
    }

    fn create_new(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.about_to("create_new", path);
        Ok(self.watch(path, self.inner.create_new(path)?))
    }

    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.about_to("rename", to);
        self.inner.rename(from, to)
    }

    fn rename_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.about_to("rename_new", to);
        self.inner.rename_new(from, to)
    }

    fn exchange(&self, a: &RepoPath, b: &RepoPath) -> io::Result<()> {
        self.about_to("exchange", b);
        self.inner.exchange(a, b)
    }

    fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        self.about_to("unlink", path);
        self.inner.unlink(path)
    }

    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.about_to("make_dir", path);
        self.inner.make_dir(path)
    }

    fn remove_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.about_to("remove_dir", path);
        self.inner.remove_dir(path)
    }

    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()> {
        self.about_to("sync_dir", dir);
        self.inner.sync_dir(dir)
    }
}

struct InterruptedFile {
    store: Interrupted,
    path: RepoPath,
    inner: Box<dyn StoredFile>,
}

impl StoredFile for InterruptedFile {
    fn inode(&self) -> io::Result<u64> {
        self.inner.inode()
    }

    fn read_up_to(&self, limit: usize) -> io::Result<Vec<u8>> {
        self.inner.read_up_to(limit)
    }

    fn read_range(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.inner.read_range(offset, length)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn links(&self) -> io::Result<u64> {
        self.inner.links()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.store.about_to("write_at", &self.path);
        self.inner.write_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}
