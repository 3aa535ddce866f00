//! A whole tree as a walk found it.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Scope, Visitor, WalkError, vanished, walk};
use crate::chosen::ChosenPaths;
use crate::ignore::{Ignored, Ignoring};
use crate::manifest::TreePath;
use crate::tree::{self, Names, NodeKind, NodeStat};

/// How long to wait for the kernel to forget a name, and how often in one walk.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const LOOKS_AGAIN: u32 = 60;

/// One name of a [`Tree`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    name: u32,
    /// Which of the tree's directories this is, if it is one.
    pub(crate) directory: Option<u32>,
    pub(crate) stat: NodeStat,
}

/// A node with its directory and its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'t> {
    pub(crate) branch: &'t Branch,
    pub(crate) node: &'t Node,
    pub(crate) number: usize,
}

impl<'t> Item<'t> {
    pub(crate) fn name(&self) -> &'t [u8] {
        self.branch.name(self.node)
    }

    pub(crate) fn path(&self) -> TreePath {
        self.branch.child(self.node)
    }

    pub(crate) fn stat(&self) -> &'t NodeStat {
        &self.node.stat
    }
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
    pub(crate) stat: NodeStat,
}

impl Branch {
    pub(crate) fn name(&self, node: &Node) -> &[u8] {
        self.names.get(node.name as usize)
    }

    /// The node at a position.
    pub(crate) fn item(&self, at: usize) -> Item<'_> {
        Item { branch: self, node: &self.nodes[at], number: self.first + at }
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
    pub(crate) root: NodeStat,
    /// The root first, the others in no order.
    pub(crate) branches: Vec<Branch>,
    /// Names in all, the root included.
    pub(crate) nodes: usize,
    /// See [`Tree::in_order`].
    order: Vec<(u32, u32)>,
    /// Nothing else was looked at, if not all of it was.
    pub(crate) chosen: Option<ChosenPaths>,
    /// Nor was this.
    pub(crate) ignored: Ignored,
}

struct Collector<'c> {
    scope: Scope<'c>,
    branches: Mutex<Vec<Collected>>,
    freshness: Freshness,
    /// How often, in all, to look again for what is listed and not there.
    patience: AtomicU32,
}

/// How old an answer about a file may be: what the kernel remembers of a remote file
/// may be seconds old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// As the kernel remembers it.
    Cached,
    /// Asked of the filesystem again.
    Fresh,
}

impl Freshness {
    pub(crate) fn stat(self, dir: &OwnedFd, name: &[u8]) -> io::Result<NodeStat> {
        match self {
            Self::Cached => tree::stat(dir, name),
            Self::Fresh => tree::stat_afresh(dir, name),
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
        self.scope.names(path, dir)
    }

    /// The kernel also remembers which file a name stands for, and there is no way
    /// to ask it not to. Where another host has put a new file in its place, the
    /// old one is not there any more: it is forgotten after a second.
    fn look(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<NodeStat> {
        loop {
            let answer = self.freshness.stat(dir, name);
            let stale = self.freshness == Freshness::Fresh
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
        found: Vec<(usize, NodeStat)>,
    ) -> Vec<(usize, u32)> {
        let mut enter = Vec::new();
        let mut nodes: Vec<_> = found
            .iter()
            .map(|(name, stat)| Node { name: *name as u32, directory: None, stat: *stat })
            .collect();
        let mut branches = self.branches.lock().unwrap_or_else(PoisonError::into_inner);
        for (node, (name, stat)) in nodes.iter_mut().zip(&found) {
            if stat.kind == NodeKind::Directory {
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
    /// The wanted names of each directory, by their positions, in parts of at most
    /// `most`.
    pub(crate) fn in_parts(
        &self,
        most: usize,
        wanted: impl Fn(&Branch, usize) -> bool,
    ) -> Vec<(&Branch, Vec<usize>)> {
        let mut parts = Vec::new();
        for branch in &self.branches {
            let all: Vec<usize> =
                (0..branch.nodes.len()).filter(|&at| wanted(branch, at)).collect();
            parts.extend(all.chunks(most).map(|part| (branch, part.to_vec())));
        }
        parts
    }

    /// Walks the tree below `root`.
    pub(crate) fn read(threads: usize, root: impl AsFd) -> Result<Self, WalkError> {
        Self::read_some(threads, root, Scope::default())
    }

    /// As [`Tree::read`], but only what is meant: nothing else is looked at.
    pub(crate) fn read_some(
        threads: usize,
        root: impl AsFd,
        scope: Scope<'_>,
    ) -> Result<Self, WalkError> {
        Self::read_with(threads, root, scope, Freshness::Cached)
    }

    pub(crate) fn read_with(
        threads: usize,
        root: impl AsFd,
        scope: Scope<'_>,
        freshness: Freshness,
    ) -> Result<Self, WalkError> {
        let fd = tree::open_directory(root, b".").map_err(WalkError::at_root)?;
        let stat = freshness.stat(&fd, b".").map_err(WalkError::at_root)?;
        let branches = Mutex::new(vec![Collected::default()]);
        let collector =
            Collector { scope, branches, freshness, patience: AtomicU32::new(LOOKS_AGAIN) };
        walk(threads, fd, 0, &collector)?;
        let collected = collector.branches.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (branches, nodes) = numbered(collected, stat);
        let order = order(&branches, nodes);
        let Scope { chosen, ignoring } = collector.scope;
        let ignored = ignoring.map(Ignoring::into_ignored).unwrap_or_default();
        Ok(Tree { root: stat, branches, nodes, order, chosen: chosen.cloned(), ignored })
    }

    /// The same part of it, by the rules that were in force.
    pub(crate) fn scope(&self) -> Scope<'_> {
        let rules = &self.ignored.rules;
        let ignoring = (!rules.is_empty()).then(|| Ignoring::by(rules));
        Scope { chosen: self.chosen.as_ref(), ignoring }
    }

    /// Which directory has the node of this number, which is not the root's: branches
    /// are numbered one after the other.
    pub(crate) fn branch_of(&self, number: usize) -> u32 {
        (self.branches.partition_point(|branch| branch.first <= number) - 1) as u32
    }

    /// The node of this number.
    pub(crate) fn item(&self, number: usize) -> Item<'_> {
        let branch = &self.branches[self.branch_of(number) as usize];
        branch.item(number - branch.first)
    }

    /// Which files have several names *in this tree*: a snapshot's file may have more of
    /// them in other snapshots. Few bytes a name, whatever all names of them are.
    pub(crate) fn shared_identities(&self) -> HashSet<(u64, u64)> {
        let nodes = || self.branches.iter().flat_map(|branch| &branch.nodes);
        let may_share = |node: &&Node| node.stat.links > 1 && node.stat.kind != NodeKind::Directory;
        let mut all = Vec::with_capacity(nodes().filter(may_share).count());
        all.extend(nodes().filter(may_share).map(|node| node.stat.identity()));
        all.sort_unstable();
        all.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
    }

    /// Every node in the bytewise order of paths.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = Item<'_>> {
        self.order.iter().map(|&(branch, at)| self.branches[branch as usize].item(at as usize))
    }
}

/// Puts together what was found of each directory, and numbers all names.
fn numbered(collected: Vec<Collected>, root: NodeStat) -> (Vec<Branch>, usize) {
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
            Branch { path, names, nodes: merged, first, number: 0, stat: root }
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
    (branches, nodes)
}

/// Branch and position of every node, in the bytewise order of paths.
fn order(branches: &[Branch], nodes: usize) -> Vec<(u32, u32)> {
    // A directory's content comes after the directory itself, but not at once: `a`,
    // `a-b`, `a/c`. So a directory has two places among its siblings: its name, and
    // its name with a slash.
    enum Step {
        Node(u32, u32),
        Content(u32),
    }
    let steps = |number: u32| {
        let branch = &branches[number as usize];
        let mut steps = Vec::with_capacity(branch.nodes.len());
        for (at, node) in (0..).zip(&branch.nodes) {
            let name = branch.name(node);
            steps.push((name, None, Step::Node(number, at)));
            if let Some(directory) = node.directory {
                steps.push((name, Some(&b'/'), Step::Content(directory)));
            }
        }
        // Sorted by name already: only directories' contents have to move.
        steps.sort_by(|(a, a_slash, _), (b, b_slash, _)| {
            let common = a.len().min(b.len());
            a[..common].cmp(&b[..common]).then_with(|| {
                let (a, b) =
                    (a[common..].iter().chain(*a_slash), b[common..].iter().chain(*b_slash));
                a.cmp(b)
            })
        });
        steps.into_iter().map(|(_, _, step)| step)
    };
    let mut order = Vec::with_capacity(nodes);
    let mut stack = vec![steps(0)];
    while let Some(top) = stack.last_mut() {
        match top.next() {
            None => drop(stack.pop()),
            Some(Step::Node(branch, at)) => order.push((branch, at)),
            Some(Step::Content(directory)) => stack.push(steps(directory)),
        }
    }
    order
}
