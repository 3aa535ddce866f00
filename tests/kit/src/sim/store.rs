//! The filesystem seam of one simulated process on one simulated mount.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use jvs_repo::store::{DirEntry, DirEntryKind, EntryStat, RepoPath, Store, StoredFile};

use super::call::{Answer, Call, Effect, Handle};
use super::line::Line;

/// A simulated filesystem, as one process sees it.
#[derive(Clone)]
pub struct SimStore {
    line: Arc<dyn Line>,
}

impl SimStore {
    pub(crate) fn new(line: Arc<dyn Line>) -> Self {
        SimStore { line }
    }

    fn ask(&self, call: Call) -> io::Result<Answer> {
        ask(&*self.line, call)
    }

    fn opened(&self, call: Call) -> io::Result<Box<dyn StoredFile>> {
        let path = call.paths().0.clone();
        match self.ask(call)? {
            Answer::Opened(fd) => {
                Ok(Box::new(SimFile { line: self.line.clone(), handle: Handle { fd, path } }))
            }
            other => unreachable!("a descriptor was asked for, not {other}"),
        }
    }
}

fn ask(line: &dyn Line, call: Call) -> io::Result<Answer> {
    match line.call(call) {
        Answer::Failed(failure) => Err(failure.into()),
        answer => Ok(answer),
    }
}

impl Store for SimStore {
    fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<OsString>> {
        Ok(self.ask(Call::FirstBatch(dir.clone()))?.names())
    }

    fn list(&self, dir: &RepoPath) -> io::Result<Vec<DirEntry>> {
        let names = match self.ask(Call::List(dir.clone()))? {
            Answer::FirstOf(inode, names) => {
                self.ask(Call::ListRest(dir.clone(), inode, names))?.names()
            }
            whole => whole.names(),
        };
        Ok(names.into_iter().map(|name| DirEntry { name }).collect())
    }

    fn stat(&self, path: &RepoPath) -> io::Result<EntryStat> {
        match self.ask(Call::Stat(path.clone()))? {
            Answer::Stat { kind, device, inode, size } => {
                let mode = if kind == DirEntryKind::Directory { 0o755 } else { 0o644 };
                // One modification time for all: it is never decided on, and
                // real ones would only make equal states look different.
                Ok(EntryStat { kind, device, inode, size, mode, uid: 1000, mtime_ns: 0 })
            }
            other => unreachable!("a stat was asked for, not {other}"),
        }
    }

    fn open(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.opened(Call::Open(path.clone()))
    }

    fn open_writable(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.opened(Call::OpenWritable(path.clone()))
    }

    fn create_new(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.opened(Call::CreateNew(path.clone()))
    }

    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.ask(Call::Rename(from.clone(), to.clone())).map(drop)
    }

    fn rename_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.ask(Call::RenameNew(from.clone(), to.clone())).map(drop)
    }

    fn exchange(&self, a: &RepoPath, b: &RepoPath) -> io::Result<()> {
        self.ask(Call::Exchange(a.clone(), b.clone())).map(drop)
    }

    fn link_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.ask(Call::Link(from.clone(), to.clone())).map(drop)
    }

    fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        self.ask(Call::Unlink(path.clone())).map(drop)
    }

    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.ask(Call::MakeDir(path.clone())).map(drop)
    }

    fn remove_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.ask(Call::RemoveDir(path.clone())).map(drop)
    }

    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()> {
        self.ask(Call::SyncDir(dir.clone())).map(drop)
    }
}

/// An open simulated file.
struct SimFile {
    line: Arc<dyn Line>,
    handle: Handle,
}

impl SimFile {
    fn ask(&self, call: impl FnOnce(Handle) -> Call) -> io::Result<Answer> {
        ask(&*self.line, call(self.handle.clone()))
    }

    fn number(&self, call: impl FnOnce(Handle) -> Call) -> io::Result<u64> {
        match self.ask(call)? {
            Answer::Number(n) => Ok(n),
            other => unreachable!("a number was asked for, not {other}"),
        }
    }
}

impl StoredFile for SimFile {
    fn inode(&self) -> io::Result<u64> {
        self.number(Call::Inode)
    }

    fn read_up_to(&self, limit: usize) -> io::Result<Vec<u8>> {
        self.read_range(0, limit.saturating_add(1))
    }

    fn read_range(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        match self.ask(|handle| Call::ReadRange(handle, offset, length))? {
            Answer::Bytes(bytes) => Ok(bytes.to_vec()),
            other => unreachable!("bytes were asked for, not {other}"),
        }
    }

    fn size(&self) -> io::Result<u64> {
        self.number(Call::Size)
    }

    fn links(&self) -> io::Result<u64> {
        self.number(Call::Links)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.ask(|handle| Call::WriteAt(handle, offset, bytes.into())).map(drop)
    }

    fn sync(&self) -> io::Result<()> {
        self.ask(Call::Sync).map(drop)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.line.effect(Effect::Close(self.handle.fd));
    }
}
