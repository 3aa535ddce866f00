//! Walks a tree in parallel: lists each directory, looks at each name once, and
//! follows nothing.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::chosen::Chosen;
use crate::manifest::{MAX_DEPTH, TreePath};
use crate::tree::{self, Kind, Names, Stat};
use crate::workers;

/// Names looked at in one task: large directories are shared between threads.
const CHUNK: usize = 256;
/// How long to wait for the kernel to forget a name, and how often in one walk.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const LOOKS_AGAIN: u32 = 60;
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
    /// Deeper than [`MAX_DEPTH`].
    TooDeep {
        /// The first directory that is too deep.
        path: TreePath,
    },
    /// Another filesystem is mounted in the tree.
    MountPoint {
        /// Where.
        path: TreePath,
    },
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
                write!(f, "{start}/… is nested more than {MAX_DEPTH} levels deep")
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
    fn look(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<Stat> {
        tree::stat(dir, name)
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
        found: Vec<(usize, Stat)>,
    ) -> Vec<(usize, Self::Place)>;
}

struct Directory<P> {
    fd: OwnedFd,
    path: TreePath,
    place: P,
    names: Arc<Names>,
}

enum Task<P> {
    Enter { parent: Option<Arc<OwnedFd>>, fd: Option<OwnedFd>, path: TreePath, place: P },
    Look { directory: Arc<Directory<P>>, part: Range<usize> },
}

/// Walks everything below `root`, which the visitor knows as `place`.
pub(crate) fn walk<V: Visitor>(
    threads: usize,
    root: OwnedFd,
    place: V::Place,
    visitor: &V,
) -> Result<(), WalkError> {
    let failures = Failures::default();
    let refused: Mutex<Option<WalkError>> = Mutex::new(None);
    let refuse = |error| {
        refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    };
    let mount = match tree::stat_open(&root) {
        Ok(stat) => stat.mount,
        Err(error) => {
            return Err(WalkError::Unreadable { first: vec![(TreePath::root(), error)], count: 1 });
        }
    };
    let first = Task::Enter { parent: None, fd: Some(root), path: TreePath::root(), place };
    // Directories below are opened by the name they have in this one: the
    // descriptor is shared by the tasks that still need it and closed with the
    // last of them.
    workers::run(threads, vec![first], |task, new| match task {
        Task::Enter { parent, fd, path, place } => {
            let opened = match (fd, &parent, path.split()) {
                (Some(fd), ..) => Ok(fd),
                (None, Some(parent), Some((_, name))) => tree::open_directory(parent, name),
                _ => return,
            };
            let entered = opened.and_then(|fd| visitor.names(&path, &fd).map(|names| (fd, names)));
            match entered {
                Ok((fd, names)) => {
                    let names = Arc::new(names);
                    visitor.listed(&place, &path, &names);
                    let parts = chunks(names.len());
                    let directory = Arc::new(Directory { fd, path, place, names });
                    new.extend(parts.map(|part| Task::Look { directory: directory.clone(), part }));
                }
                Err(error) if vanished(&error) => {}
                Err(error) => failures.add(path, error),
            }
        }
        Task::Look { directory, part } => {
            look(&directory, part, mount, visitor, &failures, &refuse, new);
        }
    });
    if let Some(error) = refused.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    failures.result().map_err(|(first, count)| WalkError::Unreadable { first, count })
}

fn chunks(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length.div_ceil(CHUNK)).map(move |at| at * CHUNK..((at + 1) * CHUNK).min(length))
}

/// What is not there any more is no failure of the walk: it is a change, and
/// whoever must know of changes compares two walks.
fn vanished(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

fn look<V: Visitor>(
    directory: &Arc<Directory<V::Place>>,
    part: Range<usize>,
    mount: u64,
    visitor: &V,
    failures: &Failures,
    refuse: &impl Fn(WalkError),
    new: &mut Vec<Task<V::Place>>,
) {
    let mut found = Vec::with_capacity(part.len());
    for index in part {
        let name = directory.names.get(index);
        match visitor.look(&directory.fd, name) {
            Ok(stat) => found.push((index, stat)),
            Err(error) if vanished(&error) => {
                visitor.gone(&directory.place, &directory.names, index);
            }
            Err(error) => {
                if let Ok(path) = directory.path.child(name) {
                    failures.add(path, error);
                }
            }
        }
    }
    for (index, stat) in &found {
        if stat.mount != mount
            && let Ok(path) = directory.path.child(directory.names.get(*index))
        {
            refuse(WalkError::MountPoint { path });
            return;
        }
    }
    let enter = visitor.found(&directory.place, &directory.path, &directory.names, found);
    if enter.is_empty() {
        return;
    }
    // One more descriptor for this directory, only where it has directories: the
    // tasks below outlive this one.
    let parent = match directory.fd.try_clone() {
        Ok(fd) => Arc::new(fd),
        Err(error) => return failures.add(directory.path.clone(), error),
    };
    for (index, place) in enter {
        match directory.path.child(directory.names.get(index)) {
            Ok(path) => {
                new.push(Task::Enter { parent: Some(parent.clone()), fd: None, path, place });
            }
            Err(_) => return refuse(WalkError::TooDeep { path: directory.path.clone() }),
        }
    }
}

/// One name of a [`Tree`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    name: u32,
    /// Which of the tree's directories this is, if it is one.
    pub(crate) directory: Option<u32>,
    pub(crate) stat: Stat,
}

/// A directory of a [`Tree`].
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) path: TreePath,
    names: Arc<Names>,
    /// Sorted by name.
    pub(crate) nodes: Vec<Node>,
    /// The number of the first node; the others follow. The root is number 0.
    pub(crate) first: usize,
    /// The number of the directory itself.
    pub(crate) number: usize,
    /// What it is itself.
    pub(crate) stat: Stat,
}

impl Branch {
    pub(crate) fn name(&self, node: &Node) -> &[u8] {
        self.names.get(node.name as usize)
    }

    /// The node called `name`, and its position.
    pub(crate) fn find(&self, name: &[u8]) -> Option<(usize, &Node)> {
        let at = self.nodes.binary_search_by(|node| self.name(node).cmp(name)).ok()?;
        Some((at, &self.nodes[at]))
    }

    pub(crate) fn child(&self, node: &Node) -> TreePath {
        // A walk enters nothing whose path could not be made.
        self.path.child(self.name(node)).unwrap_or_default()
    }
}

/// A whole tree as a walk found it: about a hundred bytes a name.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: Stat,
    /// The root first, the others in no order.
    pub(crate) branches: Vec<Branch>,
    /// Names in all, the root included.
    pub(crate) nodes: usize,
    /// Nothing else was looked at, if not all of it was.
    pub(crate) chosen: Option<Chosen>,
}

struct Collector<'c> {
    chosen: Option<&'c Chosen>,
    branches: Mutex<Vec<Collected>>,
    memory: Memory,
    /// How often, in all, to look again for what is listed and not there.
    patience: AtomicU32,
}

/// Whether what the kernel remembers of a file will do. Of a remote file it may
/// be seconds old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    WillDo,
    IsNotAsked,
}

impl Memory {
    pub(crate) fn stat(self, dir: &OwnedFd, name: &[u8]) -> io::Result<Stat> {
        match self {
            Self::WillDo => tree::stat(dir, name),
            Self::IsNotAsked => tree::stat_afresh(dir, name),
        }
    }
}

#[derive(Default)]
struct Collected {
    path: TreePath,
    names: Arc<Names>,
    parts: Vec<Vec<Node>>,
}

impl Visitor for Collector<'_> {
    type Place = u32;

    fn names(&self, path: &TreePath, dir: &OwnedFd) -> io::Result<Names> {
        self.chosen.map_or_else(|| tree::list(dir), |chosen| chosen.names(path, dir))
    }

    /// The kernel also remembers which file a name stands for, and there is no way
    /// to ask it not to. Where another host has put a new file in its place, the
    /// old one is not there any more: it is forgotten after a second.
    fn look(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<Stat> {
        loop {
            let answer = self.memory.stat(dir, name);
            let stale = self.memory == Memory::IsNotAsked
                && answer.as_ref().is_err_and(vanished)
                && self
                    .patience
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok();
            if !stale {
                return answer;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn listed(&self, place: &u32, path: &TreePath, names: &Arc<Names>) {
        let mut branches = self.branches.lock().unwrap_or_else(PoisonError::into_inner);
        let branch = &mut branches[*place as usize];
        branch.path = path.clone();
        branch.names = names.clone();
    }

    fn found(
        &self,
        place: &u32,
        _path: &TreePath,
        _names: &Arc<Names>,
        found: Vec<(usize, Stat)>,
    ) -> Vec<(usize, u32)> {
        let mut enter = Vec::new();
        let mut nodes: Vec<_> = found
            .iter()
            .map(|(name, stat)| Node { name: *name as u32, directory: None, stat: *stat })
            .collect();
        let mut branches = self.branches.lock().unwrap_or_else(PoisonError::into_inner);
        for (node, (name, stat)) in nodes.iter_mut().zip(&found) {
            if stat.kind == Kind::Directory {
                let number = branches.len() as u32;
                node.directory = Some(number);
                enter.push((*name, number));
                branches.push(Collected::default());
            }
        }
        branches[*place as usize].parts.push(nodes);
        enter
    }
}

impl Tree {
    /// Walks the tree below `root`.
    pub(crate) fn read(threads: usize, root: impl AsFd) -> Result<Self, WalkError> {
        Self::read_some(threads, root, None)
    }

    /// As [`Tree::read`], but only what is chosen and the directories above it:
    /// nothing else is listed or looked at.
    pub(crate) fn read_some(
        threads: usize,
        root: impl AsFd,
        chosen: Option<&Chosen>,
    ) -> Result<Self, WalkError> {
        Self::read_with(threads, root, chosen, Memory::WillDo)
    }

    pub(crate) fn read_with(
        threads: usize,
        root: impl AsFd,
        chosen: Option<&Chosen>,
        memory: Memory,
    ) -> Result<Self, WalkError> {
        let unreadable =
            |error| WalkError::Unreadable { first: vec![(TreePath::root(), error)], count: 1 };
        let fd = tree::open_directory(root, b".").map_err(unreadable)?;
        let stat = memory.stat(&fd, b".").map_err(unreadable)?;
        let branches = Mutex::new(vec![Collected::default()]);
        let collector =
            Collector { chosen, branches, memory, patience: AtomicU32::new(LOOKS_AGAIN) };
        walk(threads, fd, 0, &collector)?;
        let collected = collector.branches.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut nodes = 1;
        let mut branches: Vec<Branch> = collected
            .into_iter()
            .map(|mut branch| {
                branch.parts.sort_by_key(|part| part.first().map(|node| node.name));
                let first = nodes;
                let mut all = branch.parts.into_iter();
                let mut merged = all.next().unwrap_or_default();
                merged.extend(all.flatten());
                nodes += merged.len();
                let (path, names) = (branch.path, branch.names);
                Branch { path, names, nodes: merged, first, number: 0, stat }
            })
            .collect();
        for parent in 0..branches.len() {
            let parent = &branches[parent];
            let directories: Vec<_> = (parent.first..)
                .zip(&parent.nodes)
                .filter_map(|(number, node)| Some((node.directory?, number, node.stat)))
                .collect();
            for (directory, number, stat) in directories {
                let branch = &mut branches[directory as usize];
                (branch.number, branch.stat) = (number, stat);
            }
        }
        Ok(Tree { root: stat, branches, nodes, chosen: chosen.cloned() })
    }

    /// Every node in the bytewise order of paths, with its number.
    pub(crate) fn in_order<E>(
        &self,
        mut each: impl FnMut(&Branch, &Node, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        // A directory's content comes after the directory itself, but not at
        // once: `a`, `a-b`, `a/c`. So a directory has two places among its
        // siblings: its name, and its name with a slash.
        enum Step<'t> {
            Node(&'t Branch, usize),
            Content(u32),
        }
        let steps = |number: u32| {
            let branch = &self.branches[number as usize];
            let mut steps: Vec<(&[u8], bool, Step<'_>)> = Vec::with_capacity(branch.nodes.len());
            for (at, node) in branch.nodes.iter().enumerate() {
                let name = branch.name(node);
                steps.push((name, false, Step::Node(branch, at)));
                if let Some(directory) = node.directory {
                    steps.push((name, true, Step::Content(directory)));
                }
            }
            let key = |name: &[u8], slash: bool, at: usize| match name.get(at) {
                Some(&byte) => Some(byte),
                None => (slash && at == name.len()).then_some(b'/'),
            };
            // Sorted by name already: only directories' contents have to move.
            steps.sort_by(|(a, a_slash, _), (b, b_slash, _)| {
                let common = a.len().min(b.len());
                a[..common].cmp(&b[..common]).then_with(|| {
                    let mut at = common;
                    loop {
                        match (key(a, *a_slash, at), key(b, *b_slash, at)) {
                            (None, None) => return std::cmp::Ordering::Equal,
                            (a, b) if a != b => return a.cmp(&b),
                            _ => at += 1,
                        }
                    }
                })
            });
            steps.into_iter()
        };
        let mut stack = vec![steps(0)];
        while let Some(top) = stack.last_mut() {
            match top.next() {
                None => {
                    stack.pop();
                }
                Some((_, _, Step::Node(branch, at))) => {
                    each(branch, &branch.nodes[at], branch.first + at)?;
                }
                Some((_, _, Step::Content(directory))) => stack.push(steps(directory)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
