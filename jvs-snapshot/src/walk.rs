//! Walks a tree in parallel: lists each directory, looks at each name once, and
//! follows nothing. What a walk found of a whole tree is kept `in_memory`.

mod in_memory;
mod in_order;
mod node;
mod scope;

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use jvs_repo::record::ignore_rules::FILE_NAME;

pub(crate) use in_memory::{Branch, Freshness, Item, Tree};
pub(crate) use scope::Scope;

use crate::ignore::RuleTrouble;
use crate::manifest::{MAX_DEPTH, MAX_PATH_BYTES, PathError, TreePath};
use crate::open_dirs::{KeptOpen, OpenDirs};
use crate::tree::{self, Names, NodeStat};
use crate::workers;

/// Names looked at in one task: large directories are shared between threads.
const CHUNK: usize = 256;
/// Enough to see the pattern; the rest is a number.
const NAMED_FAILURES: usize = 10;

/// Why a tree cannot be captured whole.
#[derive(Debug)]
pub enum WalkError {
    /// Some names cannot be read.
    Unreadable {
        /// The first of them, and why.
        first: Vec<(TreePath, io::Error)>,
        /// How many in all.
        count: usize,
    },
    /// Deeper than [`MAX_DEPTH`], or of a path longer than [`MAX_PATH_BYTES`].
    TooDeep {
        /// The first directory that is too deep.
        path: TreePath,
    },
    /// Another filesystem is mounted in the tree.
    MountPoint {
        /// The path of the mount point.
        path: TreePath,
    },
}

impl WalkError {
    pub(crate) fn at_root(error: io::Error) -> Self {
        Self::Unreadable { first: vec![(TreePath::root(), error)], count: 1 }
    }

    /// What a user can do about it.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Unreadable { first, .. } if first.iter().any(|(_, why)| RuleTrouble::is(why)) => {
                "rules are read from regular files of text that you may read: repair it, or move it \
                 away"
                    .to_owned()
            }
            Self::Unreadable { .. } => {
                "make them readable, or move them out of the worktree".to_owned()
            }
            Self::TooDeep { .. } => "move such deep directories up".to_owned(),
            Self::MountPoint { path } => format!("unmount {path}, or move it out of the worktree"),
        }
    }

    /// The first of the names that cannot be read, and why; itself if it is not that.
    pub(crate) fn into_unread(self) -> Result<(TreePath, io::Error), Self> {
        match self {
            Self::Unreadable { mut first, .. }
                if !first.is_empty() && !first.iter().any(|(_, why)| RuleTrouble::is(why)) =>
            {
                Ok(first.swap_remove(0))
            }
            other => Err(other),
        }
    }
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { first, count } => {
                f.write_str("cannot read ")?;
                for (at, (path, error)) in first.iter().enumerate() {
                    write!(f, "{}{path} ({error})", if at > 0 { ", " } else { "" })?;
                }
                match count - first.len() {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::TooDeep { path } => {
                // The path has hundreds of components: its beginning will do.
                let start: Vec<_> = path.components().take(4).collect();
                let start = TreePath::new(start.join(&b'/')).unwrap_or_default();
                write!(
                    f,
                    "{start}/… is nested more than {MAX_DEPTH} levels or {MAX_PATH_BYTES} bytes deep"
                )
            }
            Self::MountPoint { path } => {
                write!(f, "{path} is a mount point: a snapshot has one filesystem's files")
            }
        }
    }
}

impl std::error::Error for WalkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { first, .. } => first.first().map(|(_, error)| error as _),
            _ => None,
        }
    }
}

/// Failures of many threads, the first few with their names.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    inner: Mutex<(Vec<(TreePath, io::Error)>, usize)>,
}

impl Failures {
    pub(crate) fn add(&self, path: TreePath, error: io::Error) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.0.len() < NAMED_FAILURES {
            inner.0.push((path, error));
        }
        inner.1 += 1;
    }

    /// Nothing failed, or what did.
    pub(crate) fn result(self) -> Result<(), (Vec<(TreePath, io::Error)>, usize)> {
        let (mut first, count) = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.sort_by(|a, b| a.0.cmp(&b.0));
        if count == 0 { Ok(()) } else { Err((first, count)) }
    }
}

/// Who is told what a walk finds. Called by several threads at once.
pub(crate) trait Visitor: Sync {
    /// What the visitor remembers of a directory.
    type Place: Send + Sync;

    /// Looks at one name. What the kernel remembers is good enough for most.
    fn look(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<NodeStat> {
        tree::stat(dir, name)
    }

    /// Are the names of the directory `path` read from it? If not, they are known, and it
    /// is only reached.
    fn lists(&self, _path: &TreePath) -> bool {
        true
    }

    /// Which names of the open directory `path` there are to look at.
    fn names(&self, _path: &TreePath, dir: &OwnedFd) -> io::Result<Names> {
        tree::list(dir)
    }

    /// All names of a directory, before any of them is looked at.
    fn listed(&self, place: &Self::Place, path: &TreePath, names: &Arc<Names>);

    /// One of those names, by its position, is listed and not there: it vanished in
    /// between, or the kernel remembers under it what another host has replaced.
    fn gone(&self, _place: &Self::Place, _names: &Arc<Names>, _index: usize) {}

    /// Some of those names, by their position, in order, without those that are
    /// gone. Answers with the directories among them to enter.
    fn found(
        &self,
        place: &Self::Place,
        path: &TreePath,
        names: &Arc<Names>,
        found: Vec<(usize, NodeStat)>,
    ) -> Vec<(usize, Self::Place)>;
}

struct Directory<P> {
    fd: OwnedFd,
    path: TreePath,
    place: P,
    names: Arc<Names>,
    _open: KeptOpen,
}

/// A directory that is kept open for those in it.
type Parent = Arc<(OwnedFd, KeptOpen)>;

enum Task<P> {
    /// Without a parent it is opened by its path.
    Enter {
        parent: Option<Parent>,
        path: TreePath,
        place: P,
    },
    Look {
        directory: Arc<Directory<P>>,
        part: Range<usize>,
    },
}

/// Walks everything below `root`, which the visitor knows as `place`.
pub(crate) fn walk<V: Visitor>(
    threads: usize,
    root: OwnedFd,
    place: V::Place,
    visitor: &V,
) -> Result<(), WalkError> {
    walk_with(threads, root, place, visitor, &OpenDirs::of(1))
}

fn walk_with<V: Visitor>(
    threads: usize,
    root: OwnedFd,
    place: V::Place,
    visitor: &V,
    open_dirs: &OpenDirs,
) -> Result<(), WalkError> {
    let mount = tree::stat_open(&root).map_err(WalkError::at_root)?.mount;
    let walk = Walk { root: &root, mount, visitor, open_dirs, failures: Failures::default() };
    let first = Task::Enter { parent: None, path: TreePath::root(), place };
    workers::try_each(threads, vec![first], |task, new| match task {
        Task::Enter { parent, path, place } => {
            walk.enter(parent, path, place, new);
            Ok(())
        }
        Task::Look { directory, part } => walk.look(&directory, part, new),
    })?;
    walk.failures.result().map_err(|(first, count)| WalkError::Unreadable { first, count })
}

/// What is not there any more is no failure of the walk: it is a change, and
/// the process that must know of changes compares two walks.
pub(crate) fn vanished(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

struct Walk<'w, V> {
    root: &'w OwnedFd,
    mount: u64,
    visitor: &'w V,
    open_dirs: &'w OpenDirs,
    failures: Failures,
}

impl<V: Visitor> Walk<'_, V> {
    fn open(&self, parent: Option<&Parent>, path: &TreePath) -> io::Result<OwnedFd> {
        match (parent, path.split(), self.visitor.lists(path)) {
            (_, None, _) => self.root.try_clone(),
            (Some(parent), Some((_, name)), true) => tree::open_directory(&parent.0, name),
            (Some(parent), Some((_, name)), false) => tree::reach(&parent.0, name),
            (None, _, true) => tree::open_below(self.root, path.components()),
            (None, _, false) => tree::reach_below(self.root, path.components()),
        }
    }

    fn enter(
        &self,
        parent: Option<Parent>,
        path: TreePath,
        place: V::Place,
        new: &mut Vec<Task<V::Place>>,
    ) {
        let opened = self.open(parent.as_ref(), &path);
        // Closed with the last of the tasks that need it.
        drop(parent);
        let entered = opened.and_then(|fd| self.visitor.names(&path, &fd).map(|names| (fd, names)));
        match entered {
            Ok((fd, names)) => {
                let names = Arc::new(names);
                self.visitor.listed(&place, &path, &names);
                // In one part where no more may be kept open: no part of it waits while
                // what is below another is walked through.
                let most = if self.open_dirs.has_room() { CHUNK } else { names.len().max(1) };
                let parts = workers::parts(names.len(), most);
                let open = self.open_dirs.keep();
                let directory = Arc::new(Directory { fd, path, place, names, _open: open });
                new.extend(parts.map(|part| Task::Look { directory: directory.clone(), part }));
            }
            Err(error) if vanished(&error) => {}
            Err(error) if RuleTrouble::is(&error) => {
                let rules = path.child(FILE_NAME.as_bytes()).unwrap_or(path);
                self.failures.add(rules, error);
            }
            Err(error) => self.failures.add(path, error),
        }
    }

    fn look(
        &self,
        directory: &Arc<Directory<V::Place>>,
        part: Range<usize>,
        new: &mut Vec<Task<V::Place>>,
    ) -> Result<(), WalkError> {
        let mut found = Vec::with_capacity(part.len());
        for index in part {
            let name = directory.names.get(index);
            match self.visitor.look(&directory.fd, name) {
                Ok(stat) => found.push((index, stat)),
                Err(error) if vanished(&error) => {
                    self.visitor.gone(&directory.place, &directory.names, index);
                }
                Err(error) => {
                    if let Ok(path) = directory.path.child(name) {
                        self.failures.add(path, error);
                    }
                }
            }
        }
        // A path of so many levels has more bytes than that.
        let may_be_too_deep = directory.path.as_bytes().len() >= MAX_DEPTH;
        for (index, stat) in &found {
            if stat.mount == self.mount && !may_be_too_deep {
                continue;
            }
            match directory.path.child(directory.names.get(*index)) {
                Err(PathError::TooDeep) => {
                    return Err(WalkError::TooDeep { path: directory.path.clone() });
                }
                Ok(path) if stat.mount != self.mount => {
                    return Err(WalkError::MountPoint { path });
                }
                _ => {}
            }
        }
        let (names, path) = (&directory.names, &directory.path);
        let enter = self.visitor.found(&directory.place, path, names, found);
        if enter.is_empty() {
            return Ok(());
        }
        let parent = self.kept_open(&directory.fd);
        for (index, place) in enter {
            match path.child(names.get(index)) {
                Ok(path) => new.push(Task::Enter { parent: parent.clone(), path, place }),
                Err(_) => return Err(WalkError::TooDeep { path: path.clone() }),
            }
        }
        Ok(())
    }

    /// One more descriptor for a directory, only where it has directories: the tasks
    /// below outlive the one that found them.
    fn kept_open(&self, fd: &OwnedFd) -> Option<Parent> {
        if !self.open_dirs.has_room() {
            return None;
        }
        let fd = fd.try_clone().ok()?;
        Some(Arc::new((fd, self.open_dirs.keep())))
    }
}

#[cfg(test)]
mod tests;
