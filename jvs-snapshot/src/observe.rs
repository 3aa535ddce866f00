//! Everything about a tree, read from the tree itself: for a copy that was made
//! while somebody wrote, where nothing that is known of the original counts, and for
//! an original whose changes leave no trace but themselves.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use crate::capture_error::CaptureError;
use crate::hash;
use crate::hashes::Hashes;
use crate::plan::{ReusePlan, TreeFacts};
use crate::progress::Progress;
use crate::quiesce::{ChangeKind, Changes};
use crate::tree::{self, NodeKind};
use crate::walk::{Branch, Tree};
use crate::workers;

const CHUNK: usize = 64;

/// Walks and reads the whole tree.
pub(crate) fn observe(
    threads: usize,
    root: &OwnedFd,
    progress: &dyn Progress,
) -> Result<(Tree, TreeFacts), CaptureError> {
    let tree = Tree::read(threads, root)?;
    let facts = Mutex::new(ReusePlan::everything(&tree).facts);
    let mut tasks: Vec<(&Branch, Option<Range<usize>>)> = Vec::new();
    for branch in &tree.branches {
        tasks.push((branch, None));
        tasks.extend(workers::parts(branch.nodes.len(), CHUNK).map(|part| (branch, Some(part))));
    }
    workers::try_each(threads, tasks, |(branch, part), _| {
        if !progress.keep_going() {
            return Err(CaptureError::Stopped);
        }
        let failed = |error| CaptureError::io(branch.path.clone(), "read the copy of", error);
        let dir = tree::open_below(root, branch.path.components()).map_err(failed)?;
        let Some(part) = part else {
            let xattrs = tree::xattrs_open(&dir).map_err(failed)?;
            learn(&facts, |facts| facts.set_xattrs(branch.number, xattrs));
            return Ok(());
        };
        part.into_iter().try_for_each(|at| read_one(threads, &dir, branch, at, &facts, progress))
    })?;
    let facts = facts.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((tree, facts))
}

/// Reads every file of a tree once more and says which have not the content that was
/// copied. Where nothing else tells: a change that was taken back in between is not
/// seen.
pub(crate) fn reread(
    threads: usize,
    root: &OwnedFd,
    tree: &Tree,
    hashes: &Hashes,
    progress: &dyn Progress,
) -> Result<Changes, CaptureError> {
    let tasks: Vec<&Branch> = tree.branches.iter().collect();
    let changes = Mutex::new(Changes::default());
    workers::try_each(threads, tasks, |branch, _| {
        let Ok(dir) = tree::open_below(root, branch.path.components()) else { return Ok(()) };
        for (number, node) in (branch.first..).zip(&branch.nodes) {
            if !progress.keep_going() {
                return Err(CaptureError::Stopped);
            }
            let (NodeKind::File, Some(copied)) = (branch.kind_of(node), hashes.get(number)) else {
                continue;
            };
            let size = branch.stat_of(node).size;
            let now = tree::open_file(&dir, branch.name(node))
                .and_then(|file| hash::of_file(&file, size, threads));
            if now.ok() != Some(copied) {
                let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
                changes.add(branch.child(node), ChangeKind::Changed);
            }
        }
        Ok(())
    })?;
    let mut changes = changes.into_inner().unwrap_or_else(PoisonError::into_inner);
    changes.first.sort();
    Ok(changes)
}

fn learn(facts: &Mutex<TreeFacts>, learned: impl FnOnce(&mut TreeFacts)) {
    learned(&mut facts.lock().unwrap_or_else(PoisonError::into_inner));
}

fn read_one(
    threads: usize,
    dir: &OwnedFd,
    branch: &Branch,
    at: usize,
    facts: &Mutex<TreeFacts>,
    progress: &dyn Progress,
) -> Result<(), CaptureError> {
    let (node, number) = (&branch.nodes[at], branch.first + at);
    let name = branch.name(node);
    let failed = |error| CaptureError::io(branch.child(node), "read the copy of", error);
    let stat = branch.stat_of(node);
    match stat.kind {
        NodeKind::Directory => return Ok(()),
        NodeKind::File => {
            let file = tree::open_file(dir, name).map_err(failed)?;
            let digest = hash::of_file(&file, stat.size, threads).map_err(failed)?;
            let xattrs = tree::xattrs_open(&file).map_err(failed)?;
            learn(facts, |facts| {
                facts.hashes.set(number, digest);
                facts.set_xattrs(number, xattrs);
            });
        }
        kind => {
            if kind == NodeKind::Symlink {
                let text = tree::read_link(dir, name).map_err(failed)?;
                learn(facts, |facts| drop(facts.targets.insert(number, text)));
            }
            let xattrs = tree::xattrs(dir, name).map_err(failed)?;
            learn(facts, |facts| facts.set_xattrs(number, xattrs));
        }
    }
    progress.advance(1, stat.size);
    Ok(())
}
