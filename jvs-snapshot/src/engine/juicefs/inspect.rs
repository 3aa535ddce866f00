//! Looks at a clone beside its original, makes by hand what the clone lost, and
//! hashes what is new.
//!
//! # The clone as the second look
//! JuiceFS clones a file in one transaction of its metadata: attributes, change
//! time included, and the list of its data. So the clone of a file says what
//! `statx` would have said of the file at the moment T_i at which it was cloned,
//! and its inode is new: the kernel remembers nothing of it. The walk saw the file
//! at t_i, the clone was asked for at T, and t_i < T < T_i. If the clone shows the
//! change time of the walk, the file was the same from t_i to T_i, and so at T.
//! If all do, and the names are those of the walk, the clone is the tree at T.
//!
//! What a walk was told from the kernel's memory was true at some time before
//! t_i: the argument is the same, and where it was not true any more the clone
//! differs.
//!
//! As soon as anything at all differs, or was made by hand from the original
//! after T, the clone proves nothing ([`Built::proves_quiet`]) and the original is
//! looked at again. That also covers a JuiceFS that does not keep change times.
//! Hard links, which a clone parts, are joined again within the clone. Names that are
//! ignored are removed from it: they say nothing of what is captured, but the directory that
//! they were in is made as it was by hand.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jvs_repo::layout::PAYLOAD;

use super::super::build::{Sides, TreeBuilder};
use super::super::copy::Copy;
use super::super::{Built, Work};
use crate::capture_error::CaptureError;
use crate::fidelity::{ByName, differences, same_substance};
use crate::hash;
use crate::ignore::Ignoring;
use crate::manifest::TreePath;
use crate::plan::TreeFacts;
use crate::progress::CapturePhase;
use crate::tree::{self, Names, NodeKind, NodeStat};
use crate::walk::{Branch, Item, Scope, Visitor, walk};
use crate::workers;

/// Names of one directory that are looked into by one task.
const CHUNK: usize = 64;

pub(super) fn inspect(work: &Work<'_>, known: TreeFacts) -> Result<Built, CaptureError> {
    let opened = CaptureError::whole("open the clone of");
    let payload = tree::open_directory(work.staging, PAYLOAD.as_bytes()).map_err(&opened)?;
    let findings = compare(work, &payload)?;
    for path in &findings.ignored {
        remove_ignored(&payload, path)
            .map_err(|error| CaptureError::io(path.clone(), "remove the clone of", error))?;
    }
    let maker = TreeBuilder::new(work, &Copy, known);
    let touched = mend(work, &payload, &maker, &findings)?;
    work.phases.begin(CapturePhase::Hash);
    let mended = read_what_is_new(work, &payload, &maker)?;
    // Deepest first: a directory may be about to lock us out.
    maker.finish_late(touched.iter().rev().copied())?;
    let mut built = maker.into_built()?;
    // Acknowledged metadata is durable with the metadata engine; what was made by
    // hand is data of our own.
    built.durable = touched.is_empty() && !mended;
    built.proves_quiet = findings.is_none() && !mended;
    Ok(built)
}

/// What a clone has otherwise than its original.
#[derive(Default)]
struct Findings {
    /// Branch and position of names that are missing or have other content.
    lost: BTreeSet<(u32, usize)>,
    /// Of names whose owner, mode or time differ.
    undressed: BTreeSet<(u32, usize)>,
    /// Directories whose own owner, mode or time differ.
    undressed_directories: BTreeSet<u32>,
    /// Something that the original has not.
    surplus: Option<TreePath>,
    /// What is ignored, and was cloned with the directory that it is in.
    ignored: Vec<TreePath>,
    /// Those directories.
    relieved: BTreeSet<u32>,
    /// Something changed between the walk and its clone, or change times are not
    /// cloned.
    aged: bool,
}

impl Findings {
    fn is_none(&self) -> bool {
        self.lost.is_empty()
            && self.undressed.is_empty()
            && self.undressed_directories.is_empty()
            && self.surplus.is_none()
            && self.ignored.is_empty()
            && !self.aged
    }
}

struct Look<'t> {
    work: &'t Work<'t>,
    scope: Scope<'t>,
    findings: Mutex<Findings>,
}

impl Look<'_> {
    fn note(&self, add: impl FnOnce(&mut Findings)) {
        add(&mut self.findings.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Visitor for Look<'_> {
    type Place = u32;

    fn lists(&self, path: &TreePath) -> bool {
        self.scope.lists(path)
    }

    fn names(&self, path: &TreePath, dir: &OwnedFd) -> io::Result<Names> {
        self.scope.names(path, dir)
    }

    fn listed(&self, place: &u32, path: &TreePath, names: &Arc<Names>) {
        let branch = &self.work.tree.branches[*place as usize];
        for (at, node) in branch.nodes.iter().enumerate() {
            if names.position(branch.name(node)).is_none() {
                self.note(|findings| {
                    findings.lost.insert((*place, at));
                });
            }
        }
        if let Some(name) = names.iter().find(|name| branch.find(name).is_none()) {
            let path = path.child(name).unwrap_or_default();
            self.note(|findings| findings.surplus = Some(path));
        }
    }

    fn found(
        &self,
        place: &u32,
        _path: &TreePath,
        names: &Arc<Names>,
        found: Vec<(usize, NodeStat)>,
    ) -> Vec<(usize, u32)> {
        let branch = &self.work.tree.branches[*place as usize];
        let mut enter = Vec::new();
        for (index, stat) in found {
            let Some((at, node)) = branch.find(names.get(index)) else { continue };
            let before = branch.stat_of(node);
            if !same_substance(&before, &stat) {
                self.note(|findings| {
                    findings.lost.insert((*place, at));
                });
                continue;
            }
            if before.ctime != stat.ctime {
                self.note(|findings| findings.aged = true);
            }
            let differs = !differences(&before, &stat).is_empty();
            if let Some(directory) = node.directory() {
                enter.push((index, directory));
                if differs {
                    self.note(|findings| {
                        findings.undressed_directories.insert(directory);
                    });
                }
            } else if differs {
                self.note(|findings| {
                    findings.undressed.insert((*place, at));
                });
            }
        }
        enter
    }
}

fn compare(work: &Work<'_>, payload: &OwnedFd) -> Result<Findings, CaptureError> {
    let opened = CaptureError::whole("look at the clone of");
    let root = tree::open_directory(payload, b".").map_err(&opened)?;
    let stat = tree::stat_open(&root).map_err(&opened)?;
    // What is above chosen paths was made by hand: nothing else is in it.
    let scope = work.tree.scope();
    let look = Look { work, scope, findings: Mutex::default() };
    walk(work.threads, root, 0, &look)?;
    let mut findings = look.findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ignored = look.scope.ignoring.map(Ignoring::into_ignored).unwrap_or_default();
    findings.ignored = ignored.paths.into_iter().map(|ignored| ignored.path).collect();
    let above: BTreeSet<&[u8]> = findings.ignored.iter().filter_map(TreePath::parent).collect();
    let holds_some = |branch: &Branch| above.contains(branch.path.as_bytes());
    findings.relieved = (0..)
        .zip(&work.tree.branches)
        .filter_map(|(number, branch)| holds_some(branch).then_some(number))
        .collect();
    if !differences(&work.tree.root, &stat).is_empty() {
        findings.undressed_directories.insert(0);
    }
    findings.aged |= work.tree.root.ctime != stat.ctime;
    Ok(findings)
}

/// Makes by hand what the clone lost. Answers with the directories that must get
/// their times again.
fn mend(
    work: &Work<'_>,
    payload: &OwnedFd,
    maker: &TreeBuilder<'_, Copy>,
    findings: &Findings,
) -> Result<BTreeSet<u32>, CaptureError> {
    if let Some(path) = &findings.surplus {
        maker.learned().facts.surplus = Some(path.clone());
    }
    let mut touched: BTreeSet<u32> =
        findings.undressed_directories.union(&findings.relieved).copied().collect();
    for &(number, at) in &findings.lost {
        let item = work.tree.branches[number as usize].item(at);
        if item.kind() == NodeKind::Directory {
            // A directory that was cloned not at all was removed meanwhile.
            maker.learned().facts.missing.insert(item.number);
            continue;
        }
        if work.groups.leader(item.number).is_some() {
            continue;
        }
        touched.insert(number);
        let Some((source, target)) = open_both(work, payload, item.branch)? else { continue };
        remove_clone(&target, item)?;
        maker.make(Sides { source: &source, target: &target, parent: None }, item)?;
    }
    for &(number, at) in &findings.undressed {
        let item = work.tree.branches[number as usize].item(at);
        let Some((source, target)) = open_both(work, payload, item.branch)? else { continue };
        maker.redress(&ByName(&target, item.name()), &source, item)?;
    }
    for &member in work.groups.members.iter().flat_map(|members| &members[1..]) {
        let item = work.tree.item(member);
        let target = tree::open_below(payload, item.branch.path.components())
            .map_err(|error| CaptureError::io(item.path(), "replace the clone of", error))?;
        remove_clone(&target, item)?;
        touched.insert(work.tree.branch_of(member));
    }
    maker.link_groups()?;
    Ok(touched)
}

fn remove_ignored(payload: &OwnedFd, path: &TreePath) -> io::Result<()> {
    let Some((above, name)) = path.split() else { return Ok(()) };
    tree::remove(&tree::open_below(payload, above.components())?, name)
}

fn remove_clone(dir: &OwnedFd, item: Item<'_>) -> Result<(), CaptureError> {
    tree::remove(dir, item.name())
        .map_err(|error| CaptureError::io(item.path(), "replace the clone of", error))
}

/// A directory's original and its clone; nothing if one is gone, which the proof
/// of quiet will tell.
fn open_both(
    work: &Work<'_>,
    payload: &OwnedFd,
    branch: &Branch,
) -> Result<Option<(OwnedFd, OwnedFd)>, CaptureError> {
    let open = |root: &OwnedFd| match tree::open_below(root, branch.path.components()) {
        Ok(fd) => Ok(Some(fd)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CaptureError::io(branch.path.clone(), "open", error)),
    };
    Ok(open(work.source)?.zip(open(payload)?))
}

/// Reads the clones of what changed since the parent: contents are hashed, texts
/// of symlinks and attributes remembered. Says whether it had to mend some.
///
/// JuiceFS gives a file no new time when its extended attributes change. Where a
/// mount keeps some, those of every clone are read: most mounts keep none, and
/// asking costs one round trip a file.
fn read_what_is_new(
    work: &Work<'_>,
    payload: &OwnedFd,
    maker: &TreeBuilder<'_, Copy>,
) -> Result<bool, CaptureError> {
    let tasks = work.tree.in_parts(CHUNK, |branch, at| {
        let number = branch.first + at;
        let readable =
            matches!(branch.kind_of(&branch.nodes[at]), NodeKind::File | NodeKind::Symlink);
        (work.timeless_xattrs || (readable && !work.plan.unchanged(number)))
            && work.groups.leader(number).is_none()
    });
    let (mut files, mut bytes) = (0, 0);
    for (branch, at) in tasks.iter().flat_map(|(branch, part)| part.iter().map(|&at| (*branch, at)))
    {
        let stat = branch.stat_of(&branch.nodes[at]);
        if stat.kind == NodeKind::File && !work.plan.unchanged(branch.first + at) {
            files += 1;
            bytes += stat.size;
        }
    }
    work.progress.total(files, bytes);
    if work.timeless_xattrs {
        let xattrs =
            tree::xattrs_open(payload).map_err(CaptureError::whole("read the clone of"))?;
        maker.learned().facts.set_xattrs(0, xattrs);
    }
    let mended = AtomicBool::new(false);
    workers::try_each(work.threads, tasks, |(branch, part), _| {
        let some = read_part(work, payload, maker, branch, &part)?;
        mended.fetch_or(some, Ordering::Relaxed);
        Ok::<_, CaptureError>(())
    })?;
    let mut learned = maker.learned();
    for members in &work.groups.members {
        for &member in &members[1..] {
            if !learned.facts.parted.contains(&member) {
                learned.spread(members[0], member);
            }
        }
    }
    drop(learned);
    Ok(mended.into_inner())
}

fn read_part(
    work: &Work<'_>,
    payload: &OwnedFd,
    maker: &TreeBuilder<'_, Copy>,
    branch: &Branch,
    part: &[usize],
) -> Result<bool, CaptureError> {
    if !work.progress.keep_going() {
        return Err(CaptureError::Stopped);
    }
    let Some((source, target)) = open_both(work, payload, branch)? else { return Ok(false) };
    let mut mended = false;
    for &at in part {
        let item = branch.item(at);
        let (name, number) = (item.name(), item.number);
        let failed = |error| CaptureError::io(item.path(), "read the clone of", error);
        // Lost, and not made by hand: the original is gone as well.
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        if !maker.learned().has_read(number) {
            match read_one(work, &target, maker, item) {
                Err(error) if gone(&error) => continue,
                // Made by hand from an original that became shorter meanwhile: a
                // change, which the second look will see.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    maker.learned().facts.missing.insert(number);
                    continue;
                }
                read => read.map_err(failed)?,
            }
        }
        if !work.timeless_xattrs {
            continue;
        }
        let both = tree::xattrs(&target, name).and_then(|there| {
            let as_in_parent = work.plan.unchanged(number)
                && maker.learned().facts.xattrs.get(&number).map_or(&[][..], Vec::as_slice)
                    == there;
            Ok(if as_in_parent { None } else { Some((tree::xattrs(&source, name)?, there)) })
        });
        match both {
            Ok(None) => {}
            Ok(Some((wanted, there))) if wanted == there => {
                maker.learned().facts.set_xattrs(number, there);
            }
            Ok(Some(_)) => {
                maker.redress(&ByName(&target, name), &source, item)?;
                mended = true;
            }
            Err(error) if gone(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(mended)
}

fn read_one(
    work: &Work<'_>,
    target: &OwnedFd,
    maker: &TreeBuilder<'_, Copy>,
    item: Item<'_>,
) -> io::Result<()> {
    let (number, size) = (item.number, item.stat().size);
    match item.kind() {
        NodeKind::File => {
            let file = tree::open_file(target, item.name())?;
            let digest = hash::of_file(&file, size, work.threads)?;
            maker.learned().facts.hashes.set(number, digest);
            work.progress.advance(1, size);
        }
        NodeKind::Symlink => {
            let text = tree::read_link(target, item.name())?;
            maker.learned().facts.targets.insert(number, text);
        }
        _ => {}
    }
    Ok(())
}
