//! Everything about a tree, read from the tree itself: for a copy that was made
//! while somebody wrote, where nothing that is known of the original counts.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::capture_error::CaptureError;
use crate::hash;
use crate::plan::{Facts, Plan};
use crate::progress::Progress;
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
