//! What a rehearsal answers to the calls on a repository: as the filesystem would.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use jvs_repo::store::{
    DirEntry, DirEntryKind, EntryStat, RepoPath, Store, StoredFile, TreeListing,
};
use jvs_snapshot::chosen::ChosenPaths;
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::trees::{Spots, Trees};
use jvs_snapshot::{Ready, SnapshotError};
use rustix::io::Errno;

use super::content::{Opened, RehearsedBytes};
use super::{FIRST_INODE, Rehearsal, Resolved, What, is_inside};
use crate::patient::Payloads;

impl Store for Rehearsal<'_> {
    fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<OsString>> {
        let stage = self.stage();
        match self.on_disk(&stage, dir)? {
            Ok(real) => self.store.first_batch(&real),
            Err(at) => match &stage.nodes[at].what {
                What::Directory { entries, .. } => Ok(entries.keys().cloned().collect()),
                _ => Err(Errno::NOTDIR.into()),
            },
        }
    }

    fn list(&self, dir: &RepoPath) -> io::Result<Vec<DirEntry>> {
        let stage = self.stage();
        match self.on_disk(&stage, dir)? {
            Ok(real) => self.store.list(&real),
            Err(at) => match &stage.nodes[at].what {
                What::Directory { entries, .. } => {
                    Ok(entries.keys().map(|name| DirEntry { name: name.clone() }).collect())
                }
                _ => Err(Errno::NOTDIR.into()),
            },
        }
    }

    fn stat(&self, path: &RepoPath) -> io::Result<EntryStat> {
        let stage = self.stage();
        match self.find(&stage, path)? {
            Resolved::Disk(real) => self.store.stat(&real),
            Resolved::Node(at) => self.stat_of(&stage, at),
        }
    }

    fn open(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        let stage = self.stage();
        match self.on_disk(&stage, path)? {
            Ok(real) => self.store.open(&real),
            Err(at) => match &stage.nodes[at].what {
                What::File(content) => Ok(Box::new(Opened(content.clone()))),
                _ => Err(not_a_file(path)),
            },
        }
    }

    fn open_writable(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        let mut stage = self.stage();
        let at = self.node(&mut stage, path)?;
        Ok(Box::new(Opened(self.written(&mut stage, at)?)))
    }

    fn create_new(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        let mut stage = self.stage();
        let inode = FIRST_INODE + stage.nodes.len() as u64;
        let content = RehearsedBytes { real: None, inode, links: 1, writes: Vec::new() };
        let content = Arc::new(Mutex::new(content));
        self.add_entry(&mut stage, path, What::File(content.clone()))?;
        Ok(Box::new(Opened(content)))
    }

    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.rename_to(from, to, true)
    }

    fn rename_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.rename_to(from, to, false)
    }

    fn exchange(&self, a: &RepoPath, b: &RepoPath) -> io::Result<()> {
        let mut stage = self.stage();
        self.open_up(&mut stage, &a.parent())?;
        self.open_up(&mut stage, &b.parent())?;
        let (first, second) = (self.node(&mut stage, a)?, self.node(&mut stage, b)?);
        if is_inside(a, b) || is_inside(b, a) {
            return Err(Errno::INVAL.into());
        }
        for (path, node) in [(a, second), (b, first)] {
            let (dir, name) = path.split();
            self.open_up(&mut stage, &dir)?.insert(name.into(), node);
        }
        Ok(())
    }

    fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        let mut stage = self.stage();
        let at = self.node(&mut stage, path)?;
        if self.stat_of(&stage, at)?.kind == DirEntryKind::Directory {
            return Err(Errno::ISDIR.into());
        }
        stage.unlinked(at);
        self.remove_entry(&mut stage, path).map(drop)
    }

    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        let what = What::Directory { real: None, entries: BTreeMap::new() };
        self.add_entry(&mut self.stage(), path, what)
    }

    fn remove_dir(&self, path: &RepoPath) -> io::Result<()> {
        let mut stage = self.stage();
        let at = self.node(&mut stage, path)?;
        if self.stat_of(&stage, at)?.kind != DirEntryKind::Directory {
            return Err(Errno::NOTDIR.into());
        }
        if !self.is_empty(&stage, at)? {
            return Err(Errno::NOTEMPTY.into());
        }
        self.remove_entry(&mut stage, path).map(drop)
    }

    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()> {
        match self.stat(dir)?.kind {
            DirEntryKind::Directory => Ok(()),
            DirEntryKind::Symlink => Err(Errno::LOOP.into()),
            DirEntryKind::File | DirEntryKind::Other => Err(Errno::NOTDIR.into()),
        }
    }
}

fn not_a_file(path: &RepoPath) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not a regular file"))
}

impl Trees for Rehearsal<'_> {
    /// Nothing is written there in a rehearsal.
    fn absolute(&self, tree: &RepoPath) -> PathBuf {
        self.payloads.absolute(tree)
    }

    fn remove(&self, tree: &RepoPath) -> io::Result<()> {
        self.remove_entry(&mut self.stage(), tree).map(drop)
    }

    /// Nothing is removed in truth, so nothing need be remembered.
    fn listing(&self, tree: &RepoPath) -> io::Result<TreeListing> {
        self.stat(tree).map(|_| TreeListing::default())
    }

    fn remove_listed(&self, tree: &RepoPath, _: &TreeListing) -> io::Result<()> {
        Trees::remove(self, tree)
    }

    fn strays(
        &self,
        tree: &RepoPath,
        chosen: Option<&ChosenPaths>,
        snapshots: &[Ready],
    ) -> Result<Vec<TreePath>, SnapshotError> {
        let real = self.on_disk(&self.stage(), tree);
        let changed = || io::Error::other("it was changed in this rehearsal");
        match real.and_then(|real| real.map_err(|_| changed())) {
            Ok(real) => self.payloads.strays(&real, chosen, snapshots),
            Err(source) => Err(SnapshotError::Io { doing: format!("compare {tree}"), source }),
        }
    }
}

impl Payloads for Rehearsal<'_> {
    fn find_directory(&self, dir: &RepoPath, name: &str) -> io::Result<Option<PathBuf>> {
        let stage = self.stage();
        match self.find(&stage, dir)? {
            Resolved::Disk(real) => self.payloads.find_directory(&real, name),
            Resolved::Node(at) => self.find_below(&stage, at, name),
        }
    }

    fn set_mode(&self, path: &RepoPath, mode: u32) -> io::Result<()> {
        let mut stage = self.stage();
        let at = self.node(&mut stage, path)?;
        if self.stat_of(&stage, at)?.kind == DirEntryKind::Symlink {
            return Err(Errno::LOOP.into());
        }
        stage.nodes[at].mode = Some(mode);
        Ok(())
    }

    fn copy_access(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        // Whatever is made here belongs to the owner of the root.
        self.set_mode(to, self.stat(from)?.mode)
    }

    fn spots(&self) -> Option<&dyn Spots> {
        None
    }
}
