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
//! until a mode is repaired stays unseen.

mod answers;
mod content;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jvs_repo::store::{DirEntryKind, EntryStat, RepoPath, Store};
use rustix::io::Errno;

use crate::patient::Payloads;
use content::RehearsedBytes;

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
    File(Arc<Mutex<RehearsedBytes>>),
    /// Something with a name that no control file has: it can only be listed.
    Unspeakable,
}

/// What a path leads to.
enum Resolved {
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

    fn find(&self, stage: &Stage, path: &RepoPath) -> io::Result<Resolved> {
        let mut at = ROOT;
        let mut rest = components(path);
        loop {
            match &stage.nodes[at].what {
                What::Real(real) => {
                    let Some(name) = rest.next() else { return Ok(Resolved::Node(at)) };
                    let mut real = real.child(name)?;
                    for name in rest {
                        real = real.child(name)?;
                    }
                    return Ok(Resolved::Disk(real));
                }
                What::Directory { entries, .. } => {
                    let Some(name) = rest.next() else { return Ok(Resolved::Node(at)) };
                    at = *entries.get(OsStr::new(name)).ok_or(Errno::NOENT)?;
                }
                What::File(_) | What::Unspeakable => {
                    return match rest.next() {
                        None => Ok(Resolved::Node(at)),
                        Some(_) => Err(Errno::NOTDIR.into()),
                    };
                }
            }
        }
    }

    /// The path on disk, if nothing about it was changed here but its place.
    fn on_disk(&self, stage: &Stage, path: &RepoPath) -> io::Result<Result<RepoPath, usize>> {
        Ok(match self.find(stage, path)? {
            Resolved::Disk(real) => Ok(real),
            Resolved::Node(at) => match &stage.nodes[at].what {
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

    fn stat_of(&self, stage: &Stage, at: usize) -> io::Result<EntryStat> {
        let node = &stage.nodes[at];
        let (kind, size, inode, usual) = match &node.what {
            What::Real(real) | What::Directory { real: Some(real), .. } => {
                let stat = self.store.stat(real)?;
                return Ok(EntryStat { mode: node.mode.unwrap_or(stat.mode), ..stat });
            }
            What::Directory { real: None, .. } => {
                (DirEntryKind::Directory, 0, FIRST_INODE + at as u64, 0o755)
            }
            What::File(content) => {
                let content = content.lock().unwrap_or_else(PoisonError::into_inner);
                (DirEntryKind::File, content.size()?, content.inode, 0o644)
            }
            What::Unspeakable => return Err(Errno::NOENT.into()),
        };
        let root = self.store.stat(&RepoPath::root())?;
        let mode = node.mode.unwrap_or(usual);
        Ok(EntryStat { kind, size, inode, mode, ..root })
    }

    fn is_empty(&self, stage: &Stage, at: usize) -> io::Result<bool> {
        match &stage.nodes[at].what {
            What::Real(real) => Ok(self.store.list(real)?.is_empty()),
            What::Directory { entries, .. } => Ok(entries.is_empty()),
            What::File(_) | What::Unspeakable => Err(Errno::NOTDIR.into()),
        }
    }

    /// A file that was written to, or that is now going to be.
    fn written(&self, stage: &mut Stage, at: usize) -> io::Result<Arc<Mutex<RehearsedBytes>>> {
        let real = match &stage.nodes[at].what {
            What::File(content) => return Ok(content.clone()),
            What::Real(real) if self.store.stat(real)?.kind == DirEntryKind::Directory => {
                return Err(Errno::ISDIR.into());
            }
            What::Real(real) => self.store.open(real)?,
            What::Directory { .. } | What::Unspeakable => return Err(Errno::ISDIR.into()),
        };
        let inode = real.inode()?;
        // Its permissions stay those that it has on disk.
        let mode = self.stat_of(stage, at)?.mode;
        let content = RehearsedBytes { real: Some(real), inode, links: 1, writes: Vec::new() };
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
            let is_dir =
                |at| Ok::<_, io::Error>(self.stat_of(&stage, at)?.kind == DirEntryKind::Directory);
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
            if self.stat_of(stage, *child).is_ok_and(|stat| stat.kind == DirEntryKind::Directory) {
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

#[cfg(test)]
mod tests;
