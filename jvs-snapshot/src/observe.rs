//! Everything about a tree, read from the tree itself: for a copy that was made
//! while somebody wrote, where nothing that is known of the original counts, and for
//! an original whose changes leave no trace but themselves.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::capture_error::CaptureError;
use crate::hash::{self, Digest};
use crate::plan::{Facts, Plan};
use crate::progress::Progress;
use crate::quiesce::{ChangeKind, Changes};
use crate::tree::{self, Kind};
use crate::walk::Tree;
use crate::workers;

const CHUNK: usize = 64;

/// Walks and reads the whole tree.
pub(crate) fn observe(
    threads: usize,
    root: &OwnedFd,
    progress: &dyn Progress,
) -> Result<(Tree, Facts), CaptureError> {
    let tree = Tree::read(threads, root)?;
    let facts = Mutex::new(Plan::everything(&tree).facts);
    let failure = Mutex::new(None);
    let mut tasks: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
    for (number, branch) in tree.branches.iter().enumerate() {
        let length = branch.nodes.len();
        tasks.push((number, 0..length.min(CHUNK)));
        tasks.extend(
            (1..length.div_ceil(CHUNK)).map(|n| (number, n * CHUNK..length.min((n + 1) * CHUNK))),
        );
    }
    workers::run(threads, tasks, |(number, part), _| {
        let done = if progress.keep_going() {
            read_part(threads, root, &tree, number, part, &facts, progress)
        } else {
            Err(CaptureError::Stopped)
        };
        if let Err(error) = done {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok((tree, facts.into_inner().unwrap_or_else(PoisonError::into_inner))),
    }
}

/// Reads every file of a tree once more and says which have not the content that was
/// copied. Where nothing else tells: a change that was taken back in between is not
/// seen.
pub(crate) fn reread(
    threads: usize,
    root: &OwnedFd,
    tree: &Tree,
    hashes: &[Option<Digest>],
    progress: &dyn Progress,
) -> Result<Changes, CaptureError> {
    let tasks: Vec<usize> = (0..tree.branches.len()).collect();
    let changes = Mutex::new(Changes::default());
    let stopped = AtomicBool::new(false);
    workers::run(threads, tasks, |number, _| {
        let branch = &tree.branches[number];
        let Ok(dir) = tree::open_below(root, branch.path.components()) else { return };
        for (number, node) in (branch.first..).zip(&branch.nodes) {
            if !progress.keep_going() {
                return stopped.store(true, Ordering::Relaxed);
            }
            let (Kind::File, Some(copied)) = (node.stat.kind, hashes[number]) else { continue };
            let now = tree::open_file(&dir, branch.name(node))
                .and_then(|file| hash::of_file(&file, node.stat.size, threads));
            if now.ok() != Some(copied) {
                let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
                changes.add(branch.child(node), ChangeKind::Changed);
            }
        }
    });
    let mut changes = changes.into_inner().unwrap_or_else(PoisonError::into_inner);
    changes.first.sort();
    if stopped.into_inner() { Err(CaptureError::Stopped) } else { Ok(changes) }
}

fn read_part(
    threads: usize,
    root: &OwnedFd,
    tree: &Tree,
    number: usize,
    part: std::ops::Range<usize>,
    facts: &Mutex<Facts>,
    progress: &dyn Progress,
) -> Result<(), CaptureError> {
    let branch = &tree.branches[number];
    let failed = |error| CaptureError::io(branch.path.clone(), "read the copy of", error);
    let dir = tree::open_below(root, branch.path.components()).map_err(failed)?;
    if part.start == 0 {
        let xattrs = tree::xattrs_open(&dir).map_err(failed)?;
        if !xattrs.is_empty() {
            let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
            facts.xattrs.insert(branch.number, xattrs);
        }
    }
    for at in part {
        let (node, number) = (&branch.nodes[at], branch.first + at);
        let name = branch.name(node);
        let failed = |error| CaptureError::io(branch.child(node), "read the copy of", error);
        let mut digest = None;
        let mut text = None;
        let mut xattrs = Vec::new();
        match node.stat.kind {
            Kind::Directory => continue,
            Kind::File => {
                let file = tree::open_file(&dir, name).map_err(failed)?;
                digest = Some(hash::of_file(&file, node.stat.size, threads).map_err(failed)?);
                xattrs = tree::xattrs_open(&file).map_err(failed)?;
            }
            kind => {
                if kind == Kind::Symlink {
                    text = Some(tree::read_link(&dir, name).map_err(failed)?);
                }
                xattrs.extend(tree::xattrs(&dir, name).map_err(failed)?);
            }
        }
        let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.hashes[number] = digest;
        if let Some(text) = text {
            facts.targets.insert(number, text);
        }
        if !xattrs.is_empty() {
            facts.xattrs.insert(number, xattrs);
        }
        drop(facts);
        progress.advance(1, node.stat.size);
    }
    Ok(())
}
