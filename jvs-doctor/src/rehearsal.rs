//! A repository on which repairs are rehearsed: what is read is what is on disk,
//! what is written stays in memory. The code that repairs cannot tell the
//! difference, so what it does here is what it would do.
//!
//! **Must not know.** What a repair is.
//!
//! # Limitations
//! A directory whose content was changed here is as it was when the first change
//! was made: what others do to it meanwhile is not seen. What the filesystem would
//! refuse (no permission, no room) is not foreseen, and what it refuses to show
//! until a mode is mended stays unseen.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jvs_repo::store::{DirEntry, Kind, Listing, RepoPath, Stat, Store, StoredFile};
use jvs_snapshot::chosen::Chosen;
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::trees::Trees;
use jvs_snapshot::{Ready, SnapshotError};
use rustix::io::Errno;

use crate::patient::Payloads;

const ROOT: usize = 0;
/// Inodes from here on were made in a rehearsal; no filesystem counts so far.
const FIRST_INODE: u64 = 1 << 62;

/// A store that keeps what is written to itself.
pub struct Rehearsal<'r> {
    store: &'r dyn Store,
    payloads: &'r dyn Payloads,
    stage: Mutex<Stage>,
}

struct Stage {
    nodes: Vec<Node>,
}

struct Node {
    what: What,
    /// Permissions that were given to it here.
    mode: Option<u32>,
}

enum What {
    /// Whatever is there on disk, and all below it.
    Real(RepoPath),
    /// A directory whose entries were changed, or that was made here.
    Directory { real: Option<RepoPath>, entries: BTreeMap<OsString, usize> },
    /// A file that was written to.
    File(Arc<Mutex<Content>>),
    /// Something with a name that no control file has: it can only be listed.
    Unspeakable,
}

/// A file's bytes: those on disk, and what was written over them.
struct Content {
    real: Option<Box<dyn StoredFile>>,
    inode: u64,
    links: u64,
    writes: Vec<(u64, Vec<u8>)>,
}

/// What a path leads to.
enum Place {
    Disk(RepoPath),
    Node(usize),
}

impl<'r> Rehearsal<'r> {
    /// A rehearsal that begins with what is on disk.
    pub fn new(store: &'r dyn Store, payloads: &'r dyn Payloads) -> Self {
        let root = Node { what: What::Real(RepoPath::root()), mode: None };
        Rehearsal { store, payloads, stage: Mutex::new(Stage { nodes: vec![root] }) }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, stage: &Stage, path: &RepoPath) -> io::Result<Place> {
        let mut at = ROOT;
        let mut rest = components(path);
        loop {
            match &stage.nodes[at].what {
                What::Real(real) => {
                    let Some(name) = rest.next() else { return Ok(Place::Node(at)) };
                    let mut real = real.child(name)?;
                    for name in rest {
                        real = real.child(name)?;
                    }
                    return Ok(Place::Disk(real));
                }
                What::Directory { entries, .. } => {
                    let Some(name) = rest.next() else { return Ok(Place::Node(at)) };
                    at = *entries.get(OsStr::new(name)).ok_or(Errno::NOENT)?;
                }
                What::File(_) | What::Unspeakable => {
                    return match rest.next() {
                        None => Ok(Place::Node(at)),
                        Some(_) => Err(Errno::NOTDIR.into()),
                    };
                }
            }
        }
    }

    /// The path on disk, if nothing about it was changed here but its place.
    fn on_disk(&self, stage: &Stage, path: &RepoPath) -> io::Result<Result<RepoPath, usize>> {
        Ok(match self.find(stage, path)? {
            Place::Disk(real) => Ok(real),
            Place::Node(at) => match &stage.nodes[at].what {
                What::Real(real) => Ok(real.clone()),
                _ => Err(at),
            },
        })
    }

    /// The entries of a directory, for changing them.
    fn open_up<'s>(
        &self,
        stage: &'s mut Stage,
        dir: &RepoPath,
    ) -> io::Result<&'s mut BTreeMap<OsString, usize>> {
        let mut at = ROOT;
        self.open_node(stage, at)?;
        for name in components(dir) {
            let What::Directory { entries, .. } = &stage.nodes[at].what else {
                return Err(Errno::NOTDIR.into());
            };
            at = *entries.get(OsStr::new(name)).ok_or(Errno::NOENT)?;
            self.open_node(stage, at)?;
        }
        match &mut stage.nodes[at].what {
            What::Directory { entries, .. } => Ok(entries),
            _ => Err(Errno::NOTDIR.into()),
        }
    }

    fn open_node(&self, stage: &mut Stage, at: usize) -> io::Result<()> {
        let What::Real(real) = &stage.nodes[at].what else { return Ok(()) };
        let real = real.clone();
        let mut entries = BTreeMap::new();
        for entry in self.store.list(&real)? {
            let what = match entry.name.to_str().map(|name| real.child(name)) {
                Some(Ok(child)) => What::Real(child),
                _ => What::Unspeakable,
            };
            entries.insert(entry.name, stage.add(what));
        }
        stage.nodes[at].what = What::Directory { real: Some(real), entries };
        Ok(())
    }

    /// The node that `path` leads to, for moving or changing it.
    fn node(&self, stage: &mut Stage, path: &RepoPath) -> io::Result<usize> {
        let (dir, name) = path.split();
        let entries = self.open_up(stage, &dir)?;
        Ok(*entries.get(OsStr::new(name)).ok_or(Errno::NOENT)?)
    }

    fn stat_of(&self, stage: &Stage, at: usize) -> io::Result<Stat> {
        let node = &stage.nodes[at];
        let (kind, size, inode, usual) = match &node.what {
            What::Real(real) | What::Directory { real: Some(real), .. } => {
                let stat = self.store.stat(real)?;
                return Ok(Stat { mode: node.mode.unwrap_or(stat.mode), ..stat });
            }
            What::Directory { real: None, .. } => {
                (Kind::Directory, 0, FIRST_INODE + at as u64, 0o755)
            }
            What::File(content) => {
                let content = content.lock().unwrap_or_else(PoisonError::into_inner);
                (Kind::File, content.size()?, content.inode, 0o644)
            }
            What::Unspeakable => return Err(Errno::NOENT.into()),
        };
        let root = self.store.stat(&RepoPath::root())?;
        let mode = node.mode.unwrap_or(usual);
        Ok(Stat { kind, size, inode, mode, ..root })
    }

    fn is_empty(&self, stage: &Stage, at: usize) -> io::Result<bool> {
        match &stage.nodes[at].what {
            What::Real(real) => Ok(self.store.list(real)?.is_empty()),
            What::Directory { entries, .. } => Ok(entries.is_empty()),
            What::File(_) | What::Unspeakable => Err(Errno::NOTDIR.into()),
        }
    }

    /// A file that was written to, or that is now going to be.
    fn written(&self, stage: &mut Stage, at: usize) -> io::Result<Arc<Mutex<Content>>> {
        let real = match &stage.nodes[at].what {
            What::File(content) => return Ok(content.clone()),
            What::Real(real) if self.store.stat(real)?.kind == Kind::Directory => {
                return Err(Errno::ISDIR.into());
            }
            What::Real(real) => self.store.open(real)?,
            What::Directory { .. } | What::Unspeakable => return Err(Errno::ISDIR.into()),
        };
        let inode = real.inode()?;
        // Its permissions stay those that it has on disk.
        let mode = self.stat_of(stage, at)?.mode;
        let content = Content { real: Some(real), inode, links: 1, writes: Vec::new() };
        let content = Arc::new(Mutex::new(content));
        stage.nodes[at] = Node { what: What::File(content.clone()), mode: Some(mode) };
        Ok(content)
    }

    fn rename_to(&self, from: &RepoPath, to: &RepoPath, replace: bool) -> io::Result<()> {
        let mut stage = self.stage();
        self.open_up(&mut stage, &from.parent())?;
        self.open_up(&mut stage, &to.parent())?;
        let source = self.node(&mut stage, from)?;
        if is_inside(to, from) {
            return Err(Errno::INVAL.into());
        }
        let (dir, name) = to.split();
        let there = self.open_up(&mut stage, &dir)?.get(OsStr::new(name)).copied();
        if let Some(there) = there {
            if !replace {
                return Err(Errno::EXIST.into());
            }
            if there == source {
                return Ok(());
            }
            let is_dir = |at| Ok::<_, io::Error>(self.stat_of(&stage, at)?.kind == Kind::Directory);
            match (is_dir(source)?, is_dir(there)?) {
                (false, true) => return Err(Errno::ISDIR.into()),
                (true, false) => return Err(Errno::NOTDIR.into()),
                (true, true) if !self.is_empty(&stage, there)? => {
                    return Err(Errno::NOTEMPTY.into());
                }
                _ => stage.unlinked(there),
            }
        }
        self.remove_entry(&mut stage, from)?;
        self.open_up(&mut stage, &dir)?.insert(name.into(), source);
        Ok(())
    }

    fn remove_entry(&self, stage: &mut Stage, path: &RepoPath) -> io::Result<usize> {
        let (dir, name) = path.split();
        let removed = self.open_up(stage, &dir)?.remove(OsStr::new(name));
        Ok(removed.ok_or(Errno::NOENT)?)
    }

    fn add_entry(&self, stage: &mut Stage, path: &RepoPath, what: What) -> io::Result<()> {
        let (dir, name) = path.split();
        if self.open_up(stage, &dir)?.contains_key(OsStr::new(name)) {
            return Err(Errno::EXIST.into());
        }
        let made = stage.add(what);
        self.open_up(stage, &dir)?.insert(name.into(), made);
        Ok(())
    }

    fn find_below(&self, stage: &Stage, at: usize, name: &str) -> io::Result<Option<PathBuf>> {
        let entries = match &stage.nodes[at].what {
            What::Real(real) => return self.payloads.find_directory(real, name),
            What::Directory { entries, .. } => entries,
            What::File(_) | What::Unspeakable => return Err(Errno::NOTDIR.into()),
        };
        for (entry, child) in entries {
            if self.stat_of(stage, *child).is_ok_and(|stat| stat.kind == Kind::Directory) {
                if entry == name {
                    return Ok(Some(PathBuf::from(entry)));
                }
                if let Some(found) = self.find_below(stage, *child, name)? {
                    return Ok(Some(Path::new(entry).join(found)));
                }
            }
        }
        Ok(None)
    }
}

impl Stage {
    fn add(&mut self, what: What) -> usize {
        self.nodes.push(Node { what, mode: None });
        self.nodes.len() - 1
    }

    fn unlinked(&mut self, at: usize) {
        if let What::File(content) = &self.nodes[at].what {
            content.lock().unwrap_or_else(PoisonError::into_inner).links = 0;
        }
    }
}

/// Nothing can be moved into itself.
fn is_inside(path: &RepoPath, dir: &RepoPath) -> bool {
    path.as_str().strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

fn components(path: &RepoPath) -> impl Iterator<Item = &str> {
    path.as_str().split('/').filter(|name| !name.is_empty())
}

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

    fn stat(&self, path: &RepoPath) -> io::Result<Stat> {
        let stage = self.stage();
        match self.find(&stage, path)? {
            Place::Disk(real) => self.store.stat(&real),
            Place::Node(at) => self.stat_of(&stage, at),
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
        let content = Content { real: None, inode, links: 1, writes: Vec::new() };
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
        if self.stat_of(&stage, at)?.kind == Kind::Directory {
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
        if self.stat_of(&stage, at)?.kind != Kind::Directory {
            return Err(Errno::NOTDIR.into());
        }
        if !self.is_empty(&stage, at)? {
            return Err(Errno::NOTEMPTY.into());
        }
        self.remove_entry(&mut stage, path).map(drop)
    }

    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()> {
        match self.stat(dir)?.kind {
            Kind::Directory => Ok(()),
            Kind::Symlink => Err(Errno::LOOP.into()),
            Kind::File | Kind::Other => Err(Errno::NOTDIR.into()),
        }
    }
}

fn not_a_file(path: &RepoPath) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not a regular file"))
}

impl Trees for Rehearsal<'_> {
    fn remove(&self, tree: &RepoPath) -> io::Result<()> {
        self.remove_entry(&mut self.stage(), tree).map(drop)
    }

    /// Nothing is removed in truth, so nothing need be remembered.
    fn listing(&self, tree: &RepoPath) -> io::Result<Listing> {
        self.stat(tree).map(|_| Listing::default())
    }

    fn remove_listed(&self, tree: &RepoPath, _: &Listing) -> io::Result<()> {
        Trees::remove(self, tree)
    }

    fn strays(
        &self,
        tree: &RepoPath,
        chosen: Option<&Chosen>,
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
            Place::Disk(real) => self.payloads.find_directory(&real, name),
            Place::Node(at) => self.find_below(&stage, at, name),
        }
    }

    fn set_mode(&self, path: &RepoPath, mode: u32) -> io::Result<()> {
        let mut stage = self.stage();
        let at = self.node(&mut stage, path)?;
        if self.stat_of(&stage, at)?.kind == Kind::Symlink {
            return Err(Errno::LOOP.into());
        }
        stage.nodes[at].mode = Some(mode);
        Ok(())
    }

    fn copy_access(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        // Whatever is made here belongs to the owner of the root.
        self.set_mode(to, self.stat(from)?.mode)
    }
}

impl Content {
    fn size(&self) -> io::Result<u64> {
        let real = self.real.as_ref().map_or(Ok(0), |real| real.size())?;
        let ends = self.writes.iter().map(|(offset, bytes)| offset + bytes.len() as u64);
        Ok(ends.fold(real, u64::max))
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = match &self.real {
            Some(real) => real.read_range(offset, length)?,
            None => Vec::new(),
        };
        let whole = usize::try_from(self.size()?.saturating_sub(offset)).unwrap_or(usize::MAX);
        bytes.resize(length.min(whole), 0);
        let end = offset + bytes.len() as u64;
        for (at, written) in &self.writes {
            let (from, to) = (offset.max(*at), end.min(at + written.len() as u64));
            if from < to {
                let index = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
                bytes[index(from - offset)..index(to - offset)]
                    .copy_from_slice(&written[index(from - at)..index(to - at)]);
            }
        }
        Ok(bytes)
    }
}

/// A file that was written to, held open.
struct Opened(Arc<Mutex<Content>>);

impl Opened {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoredFile for Opened {
    fn inode(&self) -> io::Result<u64> {
        Ok(self.content().inode)
    }

    fn read_up_to(&self, limit: usize) -> io::Result<Vec<u8>> {
        self.content().read(0, limit.saturating_add(1))
    }

    fn read_range(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.content().read(offset, length)
    }

    fn size(&self) -> io::Result<u64> {
        self.content().size()
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.content().links)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.content().writes.push((offset, bytes.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
