//! Files with several names: one copy, with as many names.

use std::io;
use std::os::fd::OwnedFd;

use jvs_repo::layout::PAYLOAD;

use super::{FileCopier, TreeBuilder};
use crate::capture_error::CaptureError;
use crate::fidelity::{ByName, LossKind, Open, dress, is_full, note};
use crate::tree::{self, NodeKind};
use crate::walk::{Branch, Item};

/// A name in a directory of the copy that is open.
#[derive(Clone, Copy)]
struct Entry<'e>(&'e OwnedFd, Item<'e>);

impl<C: FileCopier> TreeBuilder<'_, C> {
    /// Gives the first name's copy its other names.
    pub(in crate::engine) fn link_groups(&self) -> Result<(), CaptureError> {
        let groups = &self.work.groups.members;
        if groups.is_empty() {
            return Ok(());
        }
        let payload = tree::open_directory(self.work.staging, PAYLOAD.as_bytes())
            .map_err(CaptureError::whole("open the copy of"))?;
        groups.iter().try_for_each(|members| self.link_group(&payload, members))
    }

    fn link_group(&self, payload: &OwnedFd, members: &[usize]) -> Result<(), CaptureError> {
        let first = self.work.tree.item(members[0]);
        let others = members[1..].iter().map(|&member| self.work.tree.item(member));
        let missing = self.learned().facts.missing.contains(&first.number);
        if missing || self.is_missing_above(&first.branch.path) {
            // The others are not there either; a change, or a lost special.
            let mut learned = self.learned();
            for member in others {
                learned.facts.missing.insert(member.number);
                if first.kind() != NodeKind::File {
                    note(&mut learned.degraded, &member.path(), LossKind::Special);
                }
            }
            return Ok(());
        }
        let open = |branch: &Branch| tree::open_below(payload, branch.path.components());
        let from =
            open(first.branch).map_err(|error| CaptureError::io(first.path(), "open", error))?;
        for member in others {
            if self.is_missing_above(&member.branch.path) {
                self.learned().facts.missing.insert(member.number);
                continue;
            }
            open(member.branch)
                .and_then(|to| self.join(Entry(&from, first), Entry(&to, member)))
                .map_err(|error| CaptureError::io(member.path(), "link", error))?;
        }
        Ok(())
    }

    fn join(&self, copied: Entry<'_>, new: Entry<'_>) -> io::Result<()> {
        let (Entry(from, first), Entry(to, member)) = (copied, new);
        match tree::link(from, first.name(), to, member.name()) {
            Ok(()) => self.learned().spread(first.number, member.number),
            Err(error) if is_full(&error) => return Err(error),
            // A filesystem without hard links, or one that has no more for this
            // file: a file of its own, and said so.
            Err(_) => self.part(copied, new)?,
        }
        self.work.progress.advance(1, 0);
        Ok(())
    }

    /// Makes a second file of what was one with two names.
    fn part(&self, copied: Entry<'_>, new: Entry<'_>) -> io::Result<()> {
        let (Entry(from, first), Entry(to, member)) = (copied, new);
        let (name, stat) = (member.name(), &member.stat());
        let xattrs = self.learned().facts.xattrs.get(&first.number).cloned().unwrap_or_default();
        let mut digest = None;
        let dressed = match stat.kind {
            NodeKind::File => {
                let from = tree::open_file(from, first.name())?;
                let to = tree::create_file(to, name)?;
                let (size, threads) = (tree::stat_open(&from)?.size, self.work.threads);
                digest = Some(self.content.fill(&from, &to, size, None, threads, &|_| Ok(()))?);
                dress(&Open(&to), stat, xattrs)?
            }
            NodeKind::Symlink => {
                tree::make_symlink(&tree::read_link(from, first.name())?, to, name)?;
                dress(&ByName(to, name), stat, xattrs)?
            }
            kind => {
                tree::make_special(to, name, kind, stat.device)?;
                dress(&ByName(to, name), stat, xattrs)?
            }
        };
        let (number, path) = (member.number, member.path());
        let mut learned = self.learned();
        learned.spread(first.number, number);
        learned.note(number, &path, dressed);
        if let Some(digest) = digest {
            // The first name may not have been read yet.
            learned.facts.hashes.set(number, digest);
        }
        learned.facts.parted.insert(number);
        note(&mut learned.degraded, &path, LossKind::HardLink);
        Ok(())
    }
}
