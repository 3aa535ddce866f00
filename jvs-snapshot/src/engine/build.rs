//! Makes a tree like another, file by file, in parallel.
//!
//! A directory is a task; its files are tasks of a few hundred, so that one large
//! directory keeps all threads busy. The last of them gives the directory its
//! time and mode, because every new name changes a directory's time. Two kinds of
//! directories wait until everything else is done: those whose mode would lock us
//! out, and those with hard links, which are made last.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Built, PAYLOAD, Work};
use crate::capture_error::CaptureError;
use crate::fidelity::{
    Copied, Degraded, Dressed, LossKind, Named, Open, differences, dress, same_substance,
};
use crate::hash::{self, Digest};
use crate::manifest::{TreePath, Xattr};
use crate::plan::{Doubted, Facts};
use crate::tree::{self, Kind};
use crate::walk::{Branch, Failures, Node, WalkError};
use crate::workers;

const CHUNK: usize = 128;

/// How one file's content gets there.
pub(super) trait Content: Sync {
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
        told: Told<'_>,
    ) -> io::Result<Digest>;
}

/// Who is told how many bytes more of a large file are there, and may say that it
/// is to end: `Interrupted`.
pub(super) type Told<'t> = &'t dyn Fn(u64) -> io::Result<()>;

/// What is learned while files are made.
struct Learned {
    facts: Facts,
    degraded: Degraded,
}

pub(super) struct Maker<'w, C> {
    work: &'w Work<'w>,
    content: &'w C,
    learned: Mutex<Learned>,
    unreadable: Failures,
    fatal: Mutex<Option<CaptureError>>,
    stop: AtomicBool,
    /// Directories that get their time and mode last.
    late: BTreeSet<u32>,
}

/// A directory being filled.
struct Site {
    branch: u32,
    source: OwnedFd,
    target: OwnedFd,
    parent: Option<OwnedFd>,
    unfinished: AtomicUsize,
}

enum Task {
    Directory { branch: u32, above: Option<Arc<Site>> },
    Files { site: Arc<Site>, part: Range<usize> },
}

pub(super) fn build<C: Content>(work: &Work<'_>, content: &C) -> Result<Built, CaptureError> {
    let maker = Maker::new(work, content);
    let first = Task::Directory { branch: 0, above: None };
    workers::run(work.threads, vec![first], |task, new| maker.step(task, new));
    maker.check()?;
    maker.link_groups()?;
    for &branch in maker.late.iter().rev() {
        maker.finish_late(branch)?;
    }
    maker.into_built()
}

impl<'w, C: Content> Maker<'w, C> {
    pub(super) fn new(work: &'w Work<'w>, content: &'w C) -> Self {
        let facts = Facts {
            hashes: work.plan.facts.hashes.clone(),
            xattrs: work.plan.facts.xattrs.clone(),
            targets: work.plan.facts.targets.clone(),
            ..Facts::default()
        };
        Maker {
            work,
            content,
            learned: Mutex::new(Learned { facts, degraded: Degraded::default() }),
            unreadable: Failures::default(),
            fatal: Mutex::new(None),
            stop: AtomicBool::new(false),
            late: late(work),
        }
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: CaptureError) {
        self.stop.store(true, Ordering::Relaxed);
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn check(&self) -> Result<(), CaptureError> {
        match self.fatal.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub(super) fn into_built(self) -> Result<Built, CaptureError> {
        self.check()?;
        self.unreadable
            .result()
            .map_err(|(first, count)| WalkError::Unreadable { first, count })?;
        let Learned { facts, mut degraded } =
            self.learned.into_inner().unwrap_or_else(PoisonError::into_inner);
        degraded.examples.sort_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
        Ok(Built { facts, degraded, durable: false, proves_quiet: false })
    }

    fn branch(&self, number: u32) -> &'w Branch {
        &self.work.tree.branches[number as usize]
    }

    fn step(&self, task: Task, new: &mut Vec<Task>) {
        if self.stop.load(Ordering::Relaxed) {
            return;
        }
        if !self.work.progress.keep_going() {
            return self.fail(CaptureError::Stopped);
        }
        match task {
            Task::Directory { branch, above } => self.directory(branch, above.as_deref(), new),
            Task::Files { site, part } => {
                let branch = self.branch(site.branch);
                for at in part {
                    let node = &branch.nodes[at];
                    if let Err(error) = self.make(&site, branch, node, branch.first + at) {
                        return self.fail(error);
                    }
                }
                self.leave(&site);
            }
        }
    }

    fn directory(&self, number: u32, above: Option<&Site>, new: &mut Vec<Task>) {
        let branch = self.branch(number);
        match self.enter(number, branch, above) {
            Ok(Some(site)) => {
                let files = branch.nodes.len();
                let parts = files.div_ceil(CHUNK);
                // One more: this task is not done before the directories below
                // have their names.
                site.unfinished.store(parts + 1, Ordering::Relaxed);
                let site = Arc::new(site);
                for node in &branch.nodes {
                    let Some(below) = node.directory else { continue };
                    if let Err(error) = tree::make_directory(&site.target, branch.name(node)) {
                        let path = branch.child(node);
                        return self.fail(CaptureError::io(path, "make the directory", error));
                    }
                    new.push(Task::Directory { branch: below, above: Some(site.clone()) });
                }
                for part in 0..parts {
                    let part = part * CHUNK..((part + 1) * CHUNK).min(files);
                    new.push(Task::Files { site: site.clone(), part });
                }
                self.leave(&site);
            }
            Ok(None) => {}
            Err(error) => self.fail(error),
        }
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
        let name = branch.path.split().map(|(_, name)| name.to_vec()).unwrap_or_default();
        let source = match above {
            Some(site) => tree::open_directory(&site.source, &name),
            None => tree::open_directory(self.work.source, b"."),
        };
        let source = match source {
            Ok(source) => source,
            Err(error) => {
                self.miss(branch.number, &branch.path, error);
                return Ok(None);
            }
        };
        let target = match above {
            Some(site) => tree::open_directory(&site.target, &name),
            None => tree::make_directory(self.work.staging, PAYLOAD.as_bytes())
                .and_then(|()| tree::open_directory(self.work.staging, PAYLOAD.as_bytes())),
        }
        .map_err(failed("open the copy of"))?;
        let parent = if !self.content.shares_with_parent() {
            None
        } else if let Some(site) = above {
            site.parent.as_ref().and_then(|dir| tree::open_directory(dir, &name).ok())
        } else {
            self.work.parent.and_then(|dir| tree::open_directory(dir, b".").ok())
        };
        let unfinished = AtomicUsize::new(0);
        Ok(Some(Site { branch: number, source, target, parent, unfinished }))
    }

    /// One part of a directory is done; after the last, so is the directory.
    fn leave(&self, site: &Site) {
        if site.unfinished.fetch_sub(1, Ordering::AcqRel) > 1 || self.late.contains(&site.branch) {
            return;
        }
        if let Err(error) = self.finish(site.branch, &site.source, &site.target) {
            self.fail(error);
        }
    }

    fn finish(&self, number: u32, source: &OwnedFd, target: &OwnedFd) -> Result<(), CaptureError> {
        let branch = self.branch(number);
        let failed = |doing| move |error| CaptureError::io(branch.path.clone(), doing, error);
        let xattrs = self
            .known_xattrs(branch.number)
            .map_or_else(|| tree::xattrs_open(source), Ok)
            .map_err(failed("read the attributes of"))?;
        let dressed =
            dress(&Open(target), &branch.stat, xattrs).map_err(failed("set the attributes of"))?;
        self.note(branch.number, &branch.path, dressed);
        Ok(())
    }

    pub(super) fn finish_late(&self, number: u32) -> Result<(), CaptureError> {
        let branch = self.branch(number);
        if self.is_missing_above(&branch.path) {
            return Ok(());
        }
        let failed = |error| CaptureError::io(branch.path.clone(), "open the copy of", error);
        let payload =
            tree::open_directory(self.work.staging, PAYLOAD.as_bytes()).map_err(failed)?;
        let target = tree::open_below(&payload, branch.path.components()).map_err(failed)?;
        match tree::open_below(self.work.source, branch.path.components()) {
            Ok(source) => self.finish(number, &source, &target),
            Err(error) => {
                self.miss(branch.number, &branch.path, error);
                Ok(())
            }
        }
    }

    fn is_missing_above(&self, path: &TreePath) -> bool {
        let learned = self.learned();
        !learned.facts.missing.is_empty()
            && self.work.tree.branches.iter().any(|branch| {
                learned.facts.missing.contains(&branch.number)
                    && path.as_path().starts_with(branch.path.as_path())
            })
    }

    fn known_xattrs(&self, number: usize) -> Option<Vec<Xattr>> {
        let plan = self.work.plan;
        let known = plan.unchanged(number) && !self.work.timeless_xattrs;
        known.then(|| plan.facts.xattrs.get(&number).cloned().unwrap_or_default())
    }

    /// Whether the file `name` still has the attributes that it had in the parent.
    fn has_the_parent_s_xattrs(&self, source: &OwnedFd, name: &[u8], number: usize) -> bool {
        let before = self.work.plan.facts.xattrs.get(&number).map_or(&[][..], Vec::as_slice);
        !self.work.timeless_xattrs || tree::xattrs(source, name).is_ok_and(|now| now == before)
    }

    /// The parent's file that this one looks like, if it has that content too. Read
    /// for its hash alone: a second copy of what did not change would take its room
    /// in every snapshot after a boot.
    fn is_as_doubted(
        &self,
        source: &OwnedFd,
        node: &Node,
        name: &[u8],
        number: usize,
    ) -> Option<&'w Doubted> {
        let doubted = self.work.plan.doubted(number)?;
        let file = tree::open_file(source, name).ok()?;
        let same = hash::of_file(&file, node.stat.size, self.work.threads).ok()? == doubted.hash
            && tree::xattrs_open(&file).ok()? == doubted.xattrs;
        same.then_some(doubted)
    }

    /// Something of the source could not be opened. That it is gone or became
    /// something else is a change, and the proof of quiet will say so.
    fn miss(&self, number: usize, path: &TreePath, error: io::Error) {
        if error.kind() == io::ErrorKind::PermissionDenied {
            return self.unreadable.add(path.clone(), error);
        }
        let gone = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            || matches!(
                rustix::io::Errno::from_io_error(&error),
                Some(rustix::io::Errno::NXIO | rustix::io::Errno::LOOP)
            );
        if gone {
            self.learned().facts.missing.insert(number);
        } else {
            self.unreadable.add(path.clone(), error);
        }
    }

    /// Remembers what a finished copy has and has not.
    fn note(&self, number: usize, path: &TreePath, dressed: Dressed) {
        let mut learned = self.learned();
        if !dressed.xattrs.is_empty() {
            learned.facts.xattrs.insert(number, dressed.xattrs);
        } else if self.work.plan.facts.xattrs.contains_key(&number) {
            learned.facts.xattrs.remove(&number);
        }
        if !dressed.lost.is_empty() {
            learned.facts.truth.insert(number, dressed.stat);
            for kind in dressed.lost {
                learned.degraded.add(path, kind);
            }
        }
    }

    fn make(
        &self,
        site: &Site,
        branch: &Branch,
        node: &Node,
        number: usize,
    ) -> Result<(), CaptureError> {
        if node.stat.kind == Kind::Directory || self.work.groups.leader(number).is_some() {
            return Ok(());
        }
        self.make_one(&site.source, &site.target, site.parent.as_ref(), branch, node, number)
    }

    /// Makes the copy of one name that is not a directory.
    pub(super) fn make_one(
        &self,
        source: &OwnedFd,
        target: &OwnedFd,
        parent: Option<&OwnedFd>,
        branch: &Branch,
        node: &Node,
        number: usize,
    ) -> Result<(), CaptureError> {
        let name = branch.name(node);
        let failed = |doing| move |error| CaptureError::io(branch.child(node), doing, error);
        match node.stat.kind {
            Kind::Directory => Ok(()),
            Kind::File => {
                if let Some(parent) = parent {
                    let known = self.work.plan.unchanged(number)
                        && self.has_the_parent_s_xattrs(source, name, number);
                    let same =
                        if known { None } else { self.is_as_doubted(source, node, name, number) };
                    if (known || same.is_some())
                        && self.share(parent, target, name, node).map_err(failed("link"))?
                    {
                        if let Some(same) = same {
                            self.learn_hash(number, same.hash);
                            self.learn_xattrs(number, same.xattrs.clone());
                        }
                        self.work.progress.advance(1, node.stat.size);
                        return Ok(());
                    }
                }
                self.make_file(source, target, branch, node, number)
            }
            Kind::Symlink => {
                let text = match self.work.plan.facts.targets.get(&number) {
                    Some(text) => text.clone(),
                    None => match tree::read_link(source, name) {
                        Ok(text) => text,
                        Err(error) => {
                            self.miss(number, &branch.child(node), error);
                            return Ok(());
                        }
                    },
                };
                tree::make_symlink(&text, target, name).map_err(failed("make the symlink"))?;
                self.learned().facts.targets.insert(number, text);
                self.dress_named(source, target, branch, node, number)
            }
            kind => match tree::make_special(target, name, kind, node.stat.device) {
                Ok(()) => self.dress_named(source, target, branch, node, number),
                Err(error) if crate::fidelity::is_full(&error) => Err(failed("make")(error)),
                Err(_) => {
                    let mut learned = self.learned();
                    learned.facts.missing.insert(number);
                    learned.degraded.add(&branch.child(node), LossKind::Special);
                    Ok(())
                }
            },
        }
    }

    fn dress_named(
        &self,
        source: &OwnedFd,
        target: &OwnedFd,
        branch: &Branch,
        node: &Node,
        number: usize,
    ) -> Result<(), CaptureError> {
        let name = branch.name(node);
        let failed = |doing| move |error| CaptureError::io(branch.child(node), doing, error);
        let xattrs = match self.known_xattrs(number) {
            Some(xattrs) => xattrs,
            None => match tree::xattrs(source, name) {
                Ok(xattrs) => xattrs,
                Err(error) => {
                    self.miss(number, &branch.child(node), error);
                    Vec::new()
                }
            },
        };
        let dressed = dress(&Named(target, name), &node.stat, xattrs)
            .map_err(failed("set the attributes of"))?;
        self.note(number, &branch.child(node), dressed);
        self.work.progress.advance(1, 0);
        Ok(())
    }

    /// Tries to make the parent snapshot's file the new one too. No if it is not
    /// there, not what it should be, or has as many names as it can.
    fn share(
        &self,
        parent: &OwnedFd,
        target: &OwnedFd,
        name: &[u8],
        node: &Node,
    ) -> io::Result<bool> {
        if tree::link(parent, name, target, name).is_err() {
            return Ok(false);
        }
        // The link is looked at, not the name in the parent: what was published
        // long ago may have been tampered with, and must not spread.
        let linked = tree::stat(target, name)?;
        if same_substance(&node.stat, &linked) && differences(&node.stat, &linked).is_empty() {
            return Ok(true);
        }
        tree::unlink(target, name)?;
        Ok(false)
    }

    fn make_file(
        &self,
        source: &OwnedFd,
        target: &OwnedFd,
        branch: &Branch,
        node: &Node,
        number: usize,
    ) -> Result<(), CaptureError> {
        let name = branch.name(node);
        let failed = |doing| move |error| CaptureError::io(branch.child(node), doing, error);
        let from = match tree::open_file(source, name) {
            Ok(from) => from,
            Err(error) => {
                self.miss(number, &branch.child(node), error);
                return Ok(());
            }
        };
        let to = tree::create_file(target, name).map_err(failed("create the copy of"))?;
        let known = self.work.plan.facts.hashes[number];
        let counted = Cell::new(0);
        let told = |bytes: u64| {
            counted.set(counted.get() + bytes);
            self.work.progress.advance(0, bytes);
            match self.work.progress.keep_going() {
                true => Ok(()),
                false => Err(io::ErrorKind::Interrupted.into()),
            }
        };
        let filled = self.content.fill(&from, &to, node.stat.size, known, self.work.threads, &told);
        let digest = match filled {
            Ok(digest) => digest,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Err(CaptureError::Stopped);
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                // Shorter than a moment ago: a change, which the proof will see.
                self.learned().facts.missing.insert(number);
                return Ok(());
            }
            Err(error) => return Err(failed("copy")(error)),
        };
        let xattrs = self
            .known_xattrs(number)
            .map_or_else(|| tree::xattrs_open(&from), Ok)
            .map_err(failed("read the attributes of"))?;
        let dressed =
            dress(&Open(&to), &node.stat, xattrs).map_err(failed("set the attributes of"))?;
        self.learned().facts.hashes[number] = Some(digest);
        if !dressed.lost.is_empty() || !dressed.xattrs.is_empty() || known.is_some() {
            self.note(number, &branch.child(node), dressed);
        }
        self.work.progress.advance(1, node.stat.size.saturating_sub(counted.get()));
        Ok(())
    }

    /// Gives the first name's copy its other names.
    pub(super) fn link_groups(&self) -> Result<(), CaptureError> {
        let groups = &self.work.groups.members;
        if groups.is_empty() {
            return Ok(());
        }
        let payload = tree::open_directory(self.work.staging, PAYLOAD.as_bytes())
            .map_err(CaptureError::whole("open the copy of"))?;
        let places = places(self.work, groups);
        for members in groups {
            let (leader_branch, leader) = places[&members[0]];
            let leader_path = leader_branch.child(leader);
            let leader_missing = self.learned().facts.missing.contains(&members[0]);
            if leader_missing || self.is_missing_above(&leader_branch.path) {
                // The others are not there either; a change, or a lost special.
                let mut learned = self.learned();
                for &member in &members[1..] {
                    learned.facts.missing.insert(member);
                    if leader.stat.kind != Kind::File {
                        let (branch, node) = places[&member];
                        learned.degraded.add(&branch.child(node), LossKind::Special);
                    }
                }
                continue;
            }
            let open = |branch: &Branch| tree::open_below(&payload, branch.path.components());
            let from = open(leader_branch)
                .map_err(|error| CaptureError::io(leader_path.clone(), "open", error))?;
            for &member in &members[1..] {
                let (branch, node) = places[&member];
                if self.is_missing_above(&branch.path) {
                    self.learned().facts.missing.insert(member);
                    continue;
                }
                let failed = |error| CaptureError::io(branch.child(node), "link", error);
                let to = open(branch).map_err(failed)?;
                self.join(&from, leader_branch.name(leader), &to, branch, node, member, members[0])
                    .map_err(failed)?;
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "two names, each with its directory and number")]
    fn join(
        &self,
        from: &OwnedFd,
        leader: &[u8],
        to: &OwnedFd,
        branch: &Branch,
        node: &Node,
        member: usize,
        first: usize,
    ) -> io::Result<()> {
        match tree::link(from, leader, to, branch.name(node)) {
            Ok(()) => self.spread(first, member),
            Err(error) if crate::fidelity::is_full(&error) => return Err(error),
            // A filesystem without hard links, or one that has no more for this
            // file: a file of its own, and said so.
            Err(_) => self.part(from, leader, to, branch, node, member, first)?,
        }
        self.work.progress.advance(1, 0);
        Ok(())
    }

    /// Makes a second file of what was one with two names.
    #[expect(clippy::too_many_arguments, reason = "as for `join`")]
    fn part(
        &self,
        from: &OwnedFd,
        leader: &[u8],
        to: &OwnedFd,
        branch: &Branch,
        node: &Node,
        member: usize,
        first: usize,
    ) -> io::Result<()> {
        let name = branch.name(node);
        let facts = |number| self.learned().facts.xattrs.get(&number).cloned().unwrap_or_default();
        let mut digest = None;
        let dressed = match node.stat.kind {
            Kind::File => {
                let (from, to) = (tree::open_file(from, leader)?, tree::create_file(to, name)?);
                let (size, threads) = (tree::stat_open(&from)?.size, self.work.threads);
                digest = Some(self.content.fill(&from, &to, size, None, threads, &|_| Ok(()))?);
                dress(&Open(&to), &node.stat, facts(first))?
            }
            Kind::Symlink => {
                tree::make_symlink(&tree::read_link(from, leader)?, to, name)?;
                dress(&Named(to, name), &node.stat, facts(first))?
            }
            kind => {
                tree::make_special(to, name, kind, node.stat.device)?;
                dress(&Named(to, name), &node.stat, facts(first))?
            }
        };
        self.spread(first, member);
        let path = branch.child(node);
        self.note(member, &path, dressed);
        let mut learned = self.learned();
        if digest.is_some() {
            // The first name may not have been read yet.
            learned.facts.hashes[member] = digest;
        }
        learned.facts.parted.insert(member);
        learned.degraded.add(&path, LossKind::HardLink);
        Ok(())
    }

    /// What is known of one name of a file is true of its other names.
    fn spread(&self, first: usize, member: usize) {
        let mut learned = self.learned();
        let facts = &mut learned.facts;
        facts.hashes[member] = facts.hashes[first];
        match facts.xattrs.get(&first).cloned() {
            Some(xattrs) => facts.xattrs.insert(member, xattrs),
            None => facts.xattrs.remove(&member),
        };
        if let Some(text) = facts.targets.get(&first).cloned() {
            facts.targets.insert(member, text);
        }
        if let Some(stat) = facts.truth.get(&first).copied() {
            facts.truth.insert(member, stat);
        }
    }

    /// As above, for all groups.
    pub(super) fn spread_to_groups(&self) {
        for members in &self.work.groups.members {
            for &member in &members[1..] {
                if !self.learned().facts.parted.contains(&member) {
                    self.spread(members[0], member);
                }
            }
        }
    }

    /// Whether a file's content was read, or a symlink, since this began.
    pub(super) fn has_read(&self, number: usize) -> bool {
        let learned = self.learned();
        learned.facts.hashes[number].is_some() || learned.facts.targets.contains_key(&number)
    }

    pub(super) fn learn_hash(&self, number: usize, digest: Digest) {
        self.learned().facts.hashes[number] = Some(digest);
    }

    pub(super) fn learn_target(&self, number: usize, text: Vec<u8>) {
        self.learned().facts.targets.insert(number, text);
    }

    pub(super) fn learn_xattrs(&self, number: usize, xattrs: Vec<Xattr>) {
        let known = &mut self.learned().facts.xattrs;
        if xattrs.is_empty() {
            known.remove(&number);
        } else {
            known.insert(number, xattrs);
        }
    }

    /// Whether these are the attributes that are known already.
    pub(super) fn knows_xattrs(&self, number: usize, xattrs: &[Xattr]) -> bool {
        self.learned().facts.xattrs.get(&number).map_or(&[][..], Vec::as_slice) == xattrs
    }

    /// A name is not in the copy.
    pub(super) fn lose(&self, number: usize) {
        self.learned().facts.missing.insert(number);
    }

    /// The copy has a name that the original had not.
    pub(super) fn doubt(&self, path: TreePath) {
        self.learned().facts.surplus = Some(path);
    }

    /// Gives a finished copy what its original has, as far as it takes it.
    pub(super) fn redress(
        &self,
        copy: &impl Copied,
        source: &OwnedFd,
        branch: &Branch,
        node: &Node,
        number: usize,
    ) -> Result<(), CaptureError> {
        let failed = |error| CaptureError::io(branch.child(node), "mend", error);
        let xattrs = match tree::xattrs(source, branch.name(node)) {
            Ok(xattrs) => xattrs,
            Err(error) => {
                self.miss(number, &branch.child(node), error);
                return Ok(());
            }
        };
        let dressed = dress(copy, &node.stat, xattrs).map_err(failed)?;
        self.note(number, &branch.child(node), dressed);
        Ok(())
    }
}

/// Where the members of link groups are.
pub(super) fn places<'w>(
    work: &Work<'w>,
    groups: &[Vec<usize>],
) -> std::collections::HashMap<usize, (&'w Branch, &'w Node)> {
    let wanted: BTreeSet<usize> = groups.iter().flatten().copied().collect();
    let mut places = std::collections::HashMap::with_capacity(wanted.len());
    for branch in &work.tree.branches {
        for &number in wanted.range(branch.first..branch.first + branch.nodes.len()) {
            places.insert(number, (branch, &branch.nodes[number - branch.first]));
        }
    }
    places
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
