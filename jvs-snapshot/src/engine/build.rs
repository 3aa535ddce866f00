//! Makes a tree like another, file by file, in parallel.
//!
//! A directory is a task; its files are tasks of a few hundred, so that one large
//! directory keeps all threads busy. The last of them gives the directory its
//! time and mode, because every new name changes a directory's time. Two kinds of
//! directories wait until everything else is done: those whose mode would lock us
//! out, and those with hard links, which are made last.

mod files;
mod learned;
mod links;

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) use files::Sides;
use learned::Learned;

use jvs_repo::layout::PAYLOAD;

use super::{Built, Work};
use crate::capture_error::CaptureError;
use crate::fidelity::{self, ByName, Open, dress};
use crate::hash::Digest;
use crate::manifest::TreePath;
use crate::open_dirs::{KeptOpen, OpenDirs};
use crate::plan::TreeFacts;
use crate::tree;
use crate::walk::{Branch, Failures, WalkError};
use crate::workers;

const CHUNK: usize = 128;

/// How one file's content gets there.
pub(super) trait FileCopier: Sync {
    /// Whether an unchanged file may be the parent snapshot's file itself.
    fn shares_with_parent(&self) -> bool;

    /// Fills the new file `to` with the first `size` bytes of `from` and says
    /// what they hash to; `UnexpectedEof` if there are fewer. `known` is what an
    /// unchanged file hashes to.
    fn fill(
        &self,
        from: &OwnedFd,
        to: &OwnedFd,
        size: u64,
        known: Option<Digest>,
        threads: usize,
        told: OnBytes<'_>,
    ) -> io::Result<Digest>;
}

/// Who is told how many bytes more of a large file are there, and may say that it
/// is to end: `Interrupted`.
pub(super) type OnBytes<'t> = &'t (dyn Fn(u64) -> io::Result<()> + Sync);

pub(super) struct TreeBuilder<'w, C> {
    work: &'w Work<'w>,
    content: &'w C,
    learned: Mutex<Learned>,
    unreadable: Failures,
    /// Directories that get their time and mode last.
    late: BTreeSet<u32>,
    open_dirs: OpenDirs,
}

/// How many descriptors a [`Site`] has.
const SITE_DESCRIPTORS: u64 = 3;

/// A directory being filled.
struct Site {
    branch: u32,
    source: OwnedFd,
    target: OwnedFd,
    parent: Option<OwnedFd>,
    unfinished: AtomicUsize,
    _open: KeptOpen,
}

impl Site {
    fn sides(&self) -> Sides<'_> {
        Sides { source: &self.source, target: &self.target, parent: self.parent.as_ref() }
    }
}

enum Task {
    /// Without the directory above it, it is opened by its path.
    Directory {
        branch: u32,
        above: Option<Arc<Site>>,
    },
    Files {
        site: Arc<Site>,
        part: Range<usize>,
    },
}

pub(super) fn build<C: FileCopier>(
    work: &Work<'_>,
    content: &C,
    known: TreeFacts,
) -> Result<Built, CaptureError> {
    let maker = TreeBuilder::new(work, content, known);
    let first = Task::Directory { branch: 0, above: None };
    workers::try_each(work.threads, vec![first], |task, new| maker.step(task, new))?;
    maker.link_groups()?;
    maker.finish_late(maker.late.iter().rev().copied())?;
    maker.into_built()
}

impl<'w, C: FileCopier> TreeBuilder<'w, C> {
    pub(super) fn new(work: &'w Work<'w>, content: &'w C, known: TreeFacts) -> Self {
        TreeBuilder {
            work,
            content,
            learned: Mutex::new(Learned::from(known)),
            unreadable: Failures::default(),
            late: late(work),
            open_dirs: OpenDirs::of(SITE_DESCRIPTORS),
        }
    }

    pub(super) fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn into_built(self) -> Result<Built, CaptureError> {
        self.unreadable
            .result()
            .map_err(|(first, count)| WalkError::Unreadable { first, count })?;
        let Learned { facts, mut degraded } =
            self.learned.into_inner().unwrap_or_else(PoisonError::into_inner);
        fidelity::sort(&mut degraded);
        Ok(Built { facts, degraded, durable: false, proves_quiet: false })
    }

    fn branch(&self, number: u32) -> &'w Branch {
        &self.work.tree.branches[number as usize]
    }

    fn step(&self, task: Task, new: &mut Vec<Task>) -> Result<(), CaptureError> {
        if !self.work.progress.keep_going() {
            return Err(CaptureError::Stopped);
        }
        match task {
            Task::Directory { branch, above } => self.directory(branch, above.as_deref(), new),
            Task::Files { site, part } => {
                let branch = self.branch(site.branch);
                for at in part {
                    let item = branch.item(at);
                    if self.work.groups.leader(item.number).is_none() {
                        self.make(site.sides(), item)?;
                    }
                }
                self.leave(&site)
            }
        }
    }

    fn directory(
        &self,
        number: u32,
        above: Option<&Site>,
        new: &mut Vec<Task>,
    ) -> Result<(), CaptureError> {
        let branch = self.branch(number);
        let Some(site) = self.enter(number, branch, above)? else { return Ok(()) };
        let parts = workers::parts(branch.nodes.len(), CHUNK);
        // One more: this task is not done before the directories below have their
        // names.
        site.unfinished.store(branch.nodes.len().div_ceil(CHUNK) + 1, Ordering::Relaxed);
        let site = Arc::new(site);
        let above = self.open_dirs.has_room().then_some(&site);
        for node in &branch.nodes {
            let Some(below) = node.directory() else { continue };
            tree::make_directory(&site.target, branch.name(node)).map_err(|error| {
                CaptureError::io(branch.child(node), "make the directory", error)
            })?;
            new.push(Task::Directory { branch: below, above: above.cloned() });
        }
        new.extend(parts.map(|part| Task::Files { site: site.clone(), part }));
        self.leave(&site)
    }

    /// Opens a directory's original, its copy and its copy in the parent
    /// snapshot. Nothing if the original cannot be opened.
    fn enter(
        &self,
        number: u32,
        branch: &Branch,
        above: Option<&Site>,
    ) -> Result<Option<Site>, CaptureError> {
        let failed = |doing| move |error| CaptureError::io(branch.path.clone(), doing, error);
        let source = self.opened(branch, above.map(|site| &site.source), self.work.source);
        let source = match source {
            Ok(source) => source,
            Err(error) => {
                self.miss(branch.number, &branch.path, error);
                return Ok(None);
            }
        };
        if branch.path.is_root() {
            tree::make_bare_directory(self.work.staging, PAYLOAD.as_bytes())
                .map_err(failed("make the copy of"))?;
        }
        let target = match above {
            Some(site) => self.opened(branch, Some(&site.target), self.work.staging),
            None => tree::open_directory(self.work.staging, PAYLOAD.as_bytes())
                .and_then(|payload| self.opened(branch, None, &payload)),
        }
        .map_err(failed("open the copy of"))?;
        let parent = match (above, self.work.parent) {
            _ if !self.content.shares_with_parent() => None,
            (Some(site), Some(root)) => {
                site.parent.as_ref().and_then(|dir| self.opened(branch, Some(dir), root).ok())
            }
            (None, Some(root)) => self.opened(branch, None, root).ok(),
            (_, None) => None,
        };
        let (unfinished, open) = (AtomicUsize::new(0), self.open_dirs.keep());
        Ok(Some(Site { branch: number, source, target, parent, unfinished, _open: open }))
    }

    /// A directory of one of the trees: in the one above it, if that is open.
    fn opened(
        &self,
        branch: &Branch,
        above: Option<&OwnedFd>,
        root: &OwnedFd,
    ) -> io::Result<OwnedFd> {
        match (above, branch.path.split()) {
            (Some(above), Some((_, name))) => tree::open_directory(above, name),
            _ => tree::open_below(root, branch.path.components()),
        }
    }

    /// One part of a directory is done; after the last, so is the directory.
    fn leave(&self, site: &Site) -> Result<(), CaptureError> {
        if site.unfinished.fetch_sub(1, Ordering::AcqRel) > 1 || self.late.contains(&site.branch) {
            return Ok(());
        }
        let branch = self.branch(site.branch);
        let failed = |doing| move |error| CaptureError::io(branch.path.clone(), doing, error);
        let xattrs = self
            .known_xattrs(branch.number)
            .map_or_else(|| tree::xattrs_open(&site.source), Ok)
            .map_err(failed("read the attributes of"))?;
        let dressed = dress(&Open(&site.target), &branch.stat, xattrs)
            .map_err(failed("set the attributes of"))?;
        self.learned().note(branch.number, &branch.path, dressed);
        Ok(())
    }

    /// Gives these directories their times and modes, in this order.
    pub(super) fn finish_late(
        &self,
        branches: impl ExactSizeIterator<Item = u32>,
    ) -> Result<(), CaptureError> {
        if branches.len() == 0 {
            return Ok(());
        }
        let payload = tree::open_directory(self.work.staging, PAYLOAD.as_bytes())
            .map_err(CaptureError::whole("open the copy of"))?;
        branches.into_iter().try_for_each(|number| self.finish_one_late(&payload, number))
    }

    fn finish_one_late(&self, payload: &OwnedFd, number: u32) -> Result<(), CaptureError> {
        let branch = self.branch(number);
        if self.is_missing_above(&branch.path) {
            return Ok(());
        }
        let failed = |doing| move |error| CaptureError::io(branch.path.clone(), doing, error);
        let xattrs = match self.known_xattrs(branch.number) {
            Some(xattrs) => xattrs,
            None => match tree::open_below(self.work.source, branch.path.components()) {
                Ok(source) => {
                    tree::xattrs_open(&source).map_err(failed("read the attributes of"))?
                }
                Err(error) => {
                    self.miss(branch.number, &branch.path, error);
                    return Ok(());
                }
            },
        };
        let dressed = match branch.path.split() {
            None => dress(&Open(payload), &branch.stat, xattrs),
            // Nothing in it is read: a server of the files need not open it.
            Some((above, name)) => tree::reach_below(payload, above.components())
                .and_then(|above| dress(&ByName(&above, name), &branch.stat, xattrs)),
        };
        let dressed = dressed.map_err(failed("set the attributes of"))?;
        self.learned().note(branch.number, &branch.path, dressed);
        Ok(())
    }

    fn is_missing_above(&self, path: &TreePath) -> bool {
        let learned = self.learned();
        !learned.facts.missing.is_empty()
            && self.work.tree.branches.iter().any(|branch| {
                learned.facts.missing.contains(&branch.number)
                    && path.as_path().starts_with(branch.path.as_path())
            })
    }
}

/// Directories that get their time and mode last, so that none is before one
/// that it holds when read backwards: a walk numbers a directory before those in
/// it.
fn late(work: &Work<'_>) -> BTreeSet<u32> {
    let locks_out = |branch: &Branch| branch.stat.mode & 0o700 != 0o700;
    let linked = |branch: &Branch| {
        !work.groups.members.is_empty()
            && (branch.first..branch.first + branch.nodes.len())
                .any(|number| work.groups.leader(number).is_some())
    };
    (0..)
        .zip(&work.tree.branches)
        .filter(|(_, branch)| locks_out(branch) || linked(branch))
        .map(|(number, _)| number)
        .collect()
}
