//! Looks at a clone beside its original, makes by hand what the clone lost, and
//! hashes what is new.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::build::{Maker, places};
use super::super::copy::Copy;
use super::super::{Built, PAYLOAD, Work};
use crate::capture_error::CaptureError;
use crate::fidelity::{Named, differences, same_substance};
use crate::hash;
use crate::manifest::TreePath;
use crate::progress::Phase;
use crate::tree::{self, Kind, Names, Stat};
use crate::walk::{Branch, Visitor, walk};
use crate::workers;

/// Names of one directory that are looked into by one task.
const CHUNK: usize = 64;

pub(super) fn inspect(work: &Work<'_>) -> Result<Built, CaptureError> {
    let opened = CaptureError::whole("open the clone of");
    let payload = tree::open_directory(work.staging, PAYLOAD.as_bytes()).map_err(&opened)?;
    let findings = compare(work, &payload)?;
    let maker = Maker::new(work, &Copy);
    let touched = mend(work, &payload, &maker, &findings)?;
    work.phases.begin(Phase::Hash);
    read_what_is_new(work, &payload, &maker)?;
    // Deepest first: a directory may be about to lock us out.
    for &branch in touched.iter().rev() {
        maker.finish_late(branch)?;
    }
    let mut built = maker.into_built()?;
    // Acknowledged metadata is durable with the metadata engine; what was made by
    // hand is data of our own.
    built.durable = touched.is_empty();
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
}

struct Look<'t> {
    work: &'t Work<'t>,
    findings: Mutex<Findings>,
}

impl Look<'_> {
    fn note(&self, add: impl FnOnce(&mut Findings)) {
        add(&mut self.findings.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Visitor for Look<'_> {
    type Place = u32;

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
        found: Vec<(usize, Stat)>,
    ) -> Vec<(usize, u32)> {
        let branch = &self.work.tree.branches[*place as usize];
        let mut enter = Vec::new();
        for (index, stat) in found {
            let Some((at, node)) = branch.find(names.get(index)) else { continue };
            if !same_substance(&node.stat, &stat) {
                self.note(|findings| {
                    findings.lost.insert((*place, at));
                });
                continue;
            }
            let differs = !differences(&node.stat, &stat).is_empty();
            if let Some(directory) = node.directory {
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
    let look = Look { work, findings: Mutex::default() };
    walk(work.threads, root, 0, &look)?;
    let mut findings = look.findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !differences(&work.tree.root, &stat).is_empty() {
        findings.undressed_directories.insert(0);
    }
    Ok(findings)
}

/// Makes by hand what the clone lost. Answers with the directories that must get
/// their times again.
fn mend(
    work: &Work<'_>,
    payload: &OwnedFd,
    maker: &Maker<'_, Copy>,
    findings: &Findings,
) -> Result<BTreeSet<u32>, CaptureError> {
    if let Some(path) = &findings.surplus {
        maker.doubt(path.clone());
    }
    let mut touched = findings.undressed_directories.clone();
    for &(number, at) in &findings.lost {
        let branch = &work.tree.branches[number as usize];
        let node = &branch.nodes[at];
        if node.stat.kind == Kind::Directory {
            // A directory that was cloned not at all was removed meanwhile.
            maker.lose(branch.first + at);
            continue;
        }
        if work.groups.leader(branch.first + at).is_some() {
            continue;
        }
        touched.insert(number);
        let sites = open_both(work, payload, branch)?;
        let Some((source, target)) = sites else { continue };
        let failed = |error| CaptureError::io(branch.child(node), "replace the clone of", error);
        tree::remove(&target, branch.name(node)).map_err(failed)?;
        maker.make_one(&source, &target, None, branch, node, branch.first + at)?;
    }
    for &(number, at) in &findings.undressed {
        let branch = &work.tree.branches[number as usize];
        let node = &branch.nodes[at];
        let Some((source, target)) = open_both(work, payload, branch)? else { continue };
        let name = branch.name(node);
        maker.redress(&Named(&target, name), &source, branch, node, branch.first + at)?;
    }
    let places = places(work, &work.groups.members);
    for members in &work.groups.members {
        for &member in &members[1..] {
            let (branch, node) = places[&member];
            let failed =
                |error| CaptureError::io(branch.child(node), "replace the clone of", error);
            let target = tree::open_below(payload, branch.path.components()).map_err(failed)?;
            tree::remove(&target, branch.name(node)).map_err(failed)?;
            touched.insert(branch_number(work, branch));
        }
    }
    maker.link_groups()?;
    Ok(touched)
}

fn branch_number(work: &Work<'_>, branch: &Branch) -> u32 {
    let found = work.tree.branches.iter().position(|candidate| std::ptr::eq(candidate, branch));
    found.unwrap_or(0) as u32
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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CaptureError::io(branch.path.clone(), "open", error)),
    };
    Ok(open(work.source)?.zip(open(payload)?))
}

/// Reads the clones of what changed since the parent: contents are hashed, texts
/// of symlinks and attributes remembered.
fn read_what_is_new(
    work: &Work<'_>,
    payload: &OwnedFd,
    maker: &Maker<'_, Copy>,
) -> Result<(), CaptureError> {
    // Most mounts keep none, and asking costs one round trip a file.
    let keeps_xattrs = tree::supports_xattrs(work.source).map_err(CaptureError::whole("read"))?;
    let mut tasks = Vec::new();
    let (mut files, mut bytes) = (0, 0);
    for (number, branch) in work.tree.branches.iter().enumerate() {
        let new: Vec<usize> = (0..branch.nodes.len())
            .filter(|&at| {
                let node = &branch.nodes[at];
                let unknown = !work.plan.unchanged(branch.first + at);
                unknown && (keeps_xattrs || matches!(node.stat.kind, Kind::File | Kind::Symlink))
            })
            .filter(|&at| work.groups.leader(branch.first + at).is_none())
            .collect();
        for &at in &new {
            if branch.nodes[at].stat.kind == Kind::File {
                files += 1;
                bytes += branch.nodes[at].stat.size;
            }
        }
        tasks.extend(new.chunks(CHUNK).map(|part| (number, part.to_vec())));
    }
    work.progress.total(files, bytes);
    let stop = AtomicBool::new(false);
    let failure = Mutex::new(None);
    workers::run(work.threads, tasks, |(number, part), _| {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = read_part(work, payload, maker, number, &part, keeps_xattrs) {
            stop.store(true, Ordering::Relaxed);
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    maker.spread_to_groups();
    Ok(())
}

fn read_part(
    work: &Work<'_>,
    payload: &OwnedFd,
    maker: &Maker<'_, Copy>,
    number: usize,
    part: &[usize],
    keeps_xattrs: bool,
) -> Result<(), CaptureError> {
    if !work.progress.keep_going() {
        return Err(CaptureError::Stopped);
    }
    let branch = &work.tree.branches[number];
    let Some((source, target)) = open_both(work, payload, branch)? else { return Ok(()) };
    for &at in part {
        let (node, number) = (&branch.nodes[at], branch.first + at);
        let name = branch.name(node);
        if maker.has_read(number) {
            continue;
        }
        let failed = |error| CaptureError::io(branch.child(node), "read the clone of", error);
        match node.stat.kind {
            Kind::File => {
                let file = match tree::open_file(&target, name) {
                    Ok(file) => file,
                    // Lost, and not made by hand: the original is gone as well.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(failed(error)),
                };
                let digest = hash::of_file(&file, node.stat.size, work.threads).map_err(failed)?;
                maker.learn_hash(number, digest);
                work.progress.advance(1, node.stat.size);
            }
            Kind::Symlink => match tree::read_link(&target, name) {
                Ok(text) => maker.learn_target(number, text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            },
            _ => {}
        }
        if keeps_xattrs {
            let wanted = match tree::xattrs(&source, name) {
                Ok(wanted) => wanted,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            let there = tree::xattrs(&target, name).map_err(failed)?;
            if wanted == there {
                maker.learn_xattrs(number, there);
            } else {
                maker.redress(&Named(&target, name), &source, branch, node, number)?;
            }
        }
    }
    Ok(())
}
