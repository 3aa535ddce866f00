//! The copy of one name that is not a directory.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{FileCopier, TreeBuilder};
use crate::capture_error::CaptureError;
use crate::fidelity::{
    ByName, CopyTarget, LossKind, Open, differences, dress, is_full, note, same_substance,
};
use crate::hash::{self, Digest};
use crate::manifest::{TreePath, Xattr};
use crate::tree::{self, NodeKind};
use crate::walk::{Item, vanished};

/// A directory's original, its copy and its copy in the parent snapshot.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Sides<'d> {
    pub(in crate::engine) source: &'d OwnedFd,
    pub(in crate::engine) target: &'d OwnedFd,
    pub(in crate::engine) parent: Option<&'d OwnedFd>,
}

fn failed<'i>(item: Item<'i>, doing: &'static str) -> impl FnOnce(io::Error) -> CaptureError + 'i {
    move |error| CaptureError::io(item.path(), doing, error)
}

impl<'w, C: FileCopier> TreeBuilder<'w, C> {
    pub(in crate::engine) fn make(
        &self,
        sides: Sides<'_>,
        item: Item<'_>,
    ) -> Result<(), CaptureError> {
        match item.kind() {
            NodeKind::Directory => Ok(()),
            NodeKind::File => match self.share(sides, item)? {
                true => {
                    self.work.progress.advance(1, item.stat().size);
                    Ok(())
                }
                false => self.make_file(sides, item),
            },
            NodeKind::Symlink => self.make_symlink(sides, item),
            kind => match tree::make_special(sides.target, item.name(), kind, item.stat().device) {
                Ok(()) => self.dress_named(sides, item),
                Err(error) if is_full(&error) => Err(failed(item, "make")(error)),
                Err(_) => {
                    let mut learned = self.learned();
                    learned.facts.missing.insert(item.number);
                    note(&mut learned.degraded, &item.path(), LossKind::Special);
                    Ok(())
                }
            },
        }
    }

    fn make_symlink(&self, sides: Sides<'_>, item: Item<'_>) -> Result<(), CaptureError> {
        let known = self.learned().facts.targets.get(&item.number).cloned();
        let text = match known {
            Some(text) => text,
            None => match tree::read_link(sides.source, item.name()) {
                Ok(text) => text,
                Err(error) => {
                    self.miss(item.number, &item.path(), error);
                    return Ok(());
                }
            },
        };
        tree::make_symlink(&text, sides.target, item.name())
            .map_err(failed(item, "make the symlink"))?;
        self.learned().facts.targets.insert(item.number, text);
        self.dress_named(sides, item)
    }

    fn dress_named(&self, sides: Sides<'_>, item: Item<'_>) -> Result<(), CaptureError> {
        let xattrs = match self.known_xattrs(item.number) {
            Some(xattrs) => xattrs,
            None => tree::xattrs(sides.source, item.name()).unwrap_or_else(|error| {
                self.miss(item.number, &item.path(), error);
                Vec::new()
            }),
        };
        let dressed = dress(&ByName(sides.target, item.name()), &item.stat(), xattrs)
            .map_err(failed(item, "set the attributes of"))?;
        self.learned().note(item.number, &item.path(), dressed);
        self.work.progress.advance(1, 0);
        Ok(())
    }

    fn make_file(&self, sides: Sides<'_>, item: Item<'_>) -> Result<(), CaptureError> {
        let (number, size) = (item.number, item.stat().size);
        let from = match tree::open_file(sides.source, item.name()) {
            Ok(from) => from,
            Err(error) => {
                self.miss(number, &item.path(), error);
                return Ok(());
            }
        };
        let to = tree::create_file(sides.target, item.name())
            .map_err(failed(item, "create the copy of"))?;
        let counted = AtomicU64::new(0);
        let told = |bytes: u64| {
            counted.fetch_add(bytes, Ordering::Relaxed);
            self.work.progress.advance(0, bytes);
            match self.work.progress.keep_going() {
                true => Ok(()),
                false => Err(io::ErrorKind::Interrupted.into()),
            }
        };
        let known = self.learned().facts.hashes.get(number);
        let digest = match self.content.fill(&from, &to, size, known, self.work.threads, &told) {
            Ok(digest) => digest,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Err(CaptureError::Stopped);
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                // Shorter than a moment ago: a change, which the proof will see.
                self.learned().facts.missing.insert(number);
                return Ok(());
            }
            Err(error) => return Err(failed(item, "copy")(error)),
        };
        let xattrs = self
            .known_xattrs(number)
            .map_or_else(|| tree::xattrs_open(&from), Ok)
            .map_err(failed(item, "read the attributes of"))?;
        let dressed = dress(&Open(&to), &item.stat(), xattrs)
            .map_err(failed(item, "set the attributes of"))?;
        let path = item.path();
        let mut learned = self.learned();
        learned.facts.hashes.set(number, digest);
        learned.note(number, &path, dressed);
        drop(learned);
        self.work.progress.advance(1, size.saturating_sub(counted.into_inner()));
        Ok(())
    }

    /// Tries to make the parent snapshot's file the new one too. No if it is not
    /// there, not what it should be, or has as many names as it can.
    fn share(&self, sides: Sides<'_>, item: Item<'_>) -> Result<bool, CaptureError> {
        let Some(parent) = sides.parent else { return Ok(false) };
        let known = self.work.plan.unchanged(item.number)
            && self.has_the_xattrs_of_the_parent(sides.source, item);
        let same = if known { None } else { self.is_as_doubted(sides.source, item) };
        if (!known && same.is_none())
            || !shared(parent, sides.target, item).map_err(failed(item, "link"))?
        {
            return Ok(false);
        }
        if let Some(same) = same {
            let mut learned = self.learned();
            learned.facts.hashes.set(item.number, same);
            let xattrs = self.work.plan.doubted_xattrs(item.number).to_vec();
            learned.facts.set_xattrs(item.number, xattrs);
        }
        Ok(true)
    }

    pub(super) fn known_xattrs(&self, number: usize) -> Option<Vec<Xattr>> {
        let known = self.work.plan.unchanged(number) && !self.work.timeless_xattrs;
        known.then(|| self.learned().facts.xattrs.get(&number).cloned().unwrap_or_default())
    }

    fn has_the_xattrs_of_the_parent(&self, source: &OwnedFd, item: Item<'_>) -> bool {
        let is_before = |now: Vec<Xattr>| {
            let learned = self.learned();
            now == learned.facts.xattrs.get(&item.number).map_or(&[][..], Vec::as_slice)
        };
        !self.work.timeless_xattrs || tree::xattrs(source, item.name()).is_ok_and(is_before)
    }

    /// The parent's file that this one looks like, if it has that content too. Read
    /// for its hash alone: a second copy of what did not change would take its room
    /// in every snapshot after a boot.
    fn is_as_doubted(&self, source: &OwnedFd, item: Item<'_>) -> Option<Digest> {
        let doubted = self.learned().facts.hashes.doubted(item.number)?;
        let file = tree::open_file(source, item.name()).ok()?;
        let digest = hash::of_file(&file, item.stat().size, self.work.threads).ok()?;
        let xattrs = self.work.plan.doubted_xattrs(item.number);
        (digest == doubted && tree::xattrs_open(&file).ok()? == xattrs).then_some(digest)
    }

    /// Something of the source could not be opened. That it is gone or became
    /// something else is a change, and the proof of quiet will say so.
    pub(super) fn miss(&self, number: usize, path: &TreePath, error: io::Error) {
        let is_a_socket = Some(rustix::io::Errno::NXIO);
        if vanished(&error) || rustix::io::Errno::from_io_error(&error) == is_a_socket {
            self.learned().facts.missing.insert(number);
        } else {
            self.unreadable.add(path.clone(), error);
        }
    }

    /// Gives a finished copy what its original has, as far as it takes it.
    pub(in crate::engine) fn redress(
        &self,
        copy: &impl CopyTarget,
        source: &OwnedFd,
        item: Item<'_>,
    ) -> Result<(), CaptureError> {
        let xattrs = match tree::xattrs(source, item.name()) {
            Ok(xattrs) => xattrs,
            Err(error) => {
                self.miss(item.number, &item.path(), error);
                return Ok(());
            }
        };
        let dressed =
            dress(copy, &item.stat(), xattrs).map_err(failed(item, "set the attributes of"))?;
        self.learned().note(item.number, &item.path(), dressed);
        Ok(())
    }
}

/// Whether the parent's file could be made the new one.
fn shared(parent: &OwnedFd, target: &OwnedFd, item: Item<'_>) -> io::Result<bool> {
    let (name, original) = (item.name(), &item.stat());
    if tree::link(parent, name, target, name).is_err() {
        return Ok(false);
    }
    // The link is looked at, not the name in the parent: what was published long
    // ago may have been tampered with, and must not spread.
    let linked = tree::stat(target, name)?;
    if same_substance(original, &linked) && differences(original, &linked).is_empty() {
        return Ok(true);
    }
    tree::unlink(target, name)?;
    Ok(false)
}
