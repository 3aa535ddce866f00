//! A whole tree as a walk found it.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::in_order::InOrder;
use super::node::{Alike, AlikeTable, Node};
use super::{Scope, Visitor, WalkError, vanished, walk};
use crate::chosen::ChosenPaths;
use crate::ignore::{Ignored, Ignoring};
use crate::manifest::TreePath;
use crate::tree::{self, Names, NodeKind, NodeStat};

/// How long to wait for the kernel to forget a name, and how often in one walk.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const LOOKS_AGAIN: u32 = 60;

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

    pub(crate) fn stat(&self) -> NodeStat {
        self.branch.stat_of(self.node)
    }

    pub(crate) fn kind(&self) -> NodeKind {
        self.branch.kind_of(self.node)
    }
}

/// A directory of a [`Tree`].
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) path: TreePath,
    names: Arc<Names>,
    alike: Arc<[Alike]>,
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
        self.names.get(node.name())
    }

    /// What the walk saw of a node.
    pub(crate) fn stat_of(&self, node: &Node) -> NodeStat {
        node.stat(&self.alike)
    }

    fn stats(&self) -> impl Iterator<Item = NodeStat> {
        self.nodes.iter().map(|node| self.stat_of(node))
    }

    pub(crate) fn kind_of(&self, node: &Node) -> NodeKind {
        node.kind(&self.alike)
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

/// A whole tree as a walk found it: about sixty bytes a name, and the name.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: NodeStat,
    /// The root first, the others in no order.
    pub(crate) branches: Vec<Branch>,
    /// Names in all, the root included.
    pub(crate) nodes: usize,
    /// Nothing else was looked at, if not all of it was.
    pub(crate) chosen: Option<ChosenPaths>,
    /// Nor was this.
    pub(crate) ignored: Ignored,
}

struct Collector<'c> {
    scope: Scope<'c>,
    found: Mutex<Found>,
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
struct Found {
    branches: Vec<Collected>,
    alike: AlikeTable,
}

#[derive(Default)]
struct Collected {
    path: TreePath,
    names: Arc<Names>,
    parts: Vec<Vec<Node>>,
}

impl Visitor for Collector<'_> {
    type Place = u32;

    fn lists(&self, path: &TreePath) -> bool {
        self.scope.lists(path)
    }

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
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let branch = &mut all.branches[*place as usize];
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
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let Found { branches, alike } = &mut *all;
        let mut nodes: Vec<_> =
            found.iter().map(|(name, stat)| Node::new(*name as u32, stat, alike)).collect();
        for (node, (name, stat)) in nodes.iter_mut().zip(&found) {
            if stat.kind == NodeKind::Directory {
                let number = branches.len() as u32;
                node.set_directory(number);
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
        let first = Found { branches: vec![Collected::default()], ..Found::default() };
        let (found, patience) = (Mutex::new(first), AtomicU32::new(LOOKS_AGAIN));
        let collector = Collector { scope, found, freshness, patience };
        walk(threads, fd, 0, &collector)?;
        let found = collector.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (branches, nodes) = numbered(found, stat);
        let Scope { chosen, ignoring } = collector.scope;
        let ignored = ignoring.map(Ignoring::into_ignored).unwrap_or_default();
        Ok(Tree { root: stat, branches, nodes, chosen: chosen.cloned(), ignored })
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
        let may_share = |stat: &NodeStat| stat.links > 1 && stat.kind != NodeKind::Directory;
        let mut all = Vec::with_capacity(self.stats().filter(may_share).count());
        all.extend(self.stats().filter(may_share).map(|stat| stat.identity()));
        all.sort_unstable();
        all.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
    }

    /// What the walk saw of each node, the root's aside, in no order.
    pub(crate) fn stats(&self) -> impl Iterator<Item = NodeStat> {
        self.branches.iter().flat_map(Branch::stats)
    }

    /// Every node in the bytewise order of paths.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder::of(&self.branches)
    }
}

/// Puts together what was found of each directory, and numbers all names.
fn numbered(found: Found, root: NodeStat) -> (Vec<Branch>, usize) {
    let alike: Arc<[Alike]> = found.alike.into_all().into();
    let mut nodes = 1;
    let mut branches: Vec<Branch> = found
        .branches
        .into_iter()
        .map(|mut branch| {
            branch.parts.sort_by_key(|part| part.first().map(Node::name));
            let first = nodes;
            let merged = match branch.parts.len() {
                1 => branch.parts.swap_remove(0),
                _ => {
                    let mut merged = Vec::with_capacity(branch.parts.iter().map(Vec::len).sum());
                    branch.parts.into_iter().for_each(|part| merged.extend(part));
                    merged
                }
            };
            nodes += merged.len();
            let (path, names, alike) = (branch.path, branch.names, alike.clone());
            Branch { path, names, alike, nodes: merged, first, number: 0, stat: root }
        })
        .collect();
    for parent in 0..branches.len() {
        let parent = &branches[parent];
        let directories: Vec<_> = (parent.first..)
            .zip(&parent.nodes)
            .filter_map(|(number, node)| Some((node.directory()?, number, parent.stat_of(node))))
            .collect();
        for (directory, number, stat) in directories {
            let branch = &mut branches[directory as usize];
            (branch.number, branch.stat) = (number, stat);
        }
    }
    (branches, nodes)
}
