//! The manifest of a copy: every name, what it is now, and what the next capture may
//! believe about the original.

use std::os::fd::OwnedFd;

use crate::capture_error::CaptureError;
use crate::manifest::{Entry, EntryKind, Hints, ManifestWriter, Summary, TreePath};
use crate::plan::{LinkGroups, Moment, TreeFacts};
use crate::quiesce::settled;
use crate::tree::{FileStream, NodeKind, NodeStat};
use crate::walk::Tree;

/// Writes the manifest of a copy. `moment` is there if the original's looks may
/// be used as hints.
pub(super) fn write(
    file: OwnedFd,
    tree: &Tree,
    facts: &TreeFacts,
    groups: &LinkGroups,
    moment: Option<Moment>,
) -> Result<(OwnedFd, Summary), CaptureError> {
    let mut writer = ManifestWriter::new(FileStream::new(file));
    let mut numbering = Numbering { groups, facts, given: Default::default() };
    let hints = |stat: &NodeStat, number: usize| {
        // A copy that lost something says nothing about a file that is as it was:
        // the next snapshot would lose it without a word.
        let moment = moment.filter(|_| !facts.truth.contains_key(&number))?;
        settled(stat.ctime, moment.now, moment.margin_ns)
            .then_some(Hints { inode: stat.inode, ctime: stat.ctime })
    };
    let root = entry(TreePath::root(), 0, &tree.root, facts, None)?;
    writer.write(&root, hints(&tree.root, 0))?;
    for item in tree.in_order().filter(|item| !facts.missing.contains(&item.number)) {
        let (group, stat) = (numbering.of(item.number), item.stat());
        let entry = entry(item.path(), item.number, &stat, facts, group)?;
        writer.write(&entry, hints(&stat, item.number))?;
    }
    let (stream, summary) = writer.finish()?;
    Ok((stream.into_inner(), summary))
}

/// Numbers of link groups in order of appearance, of those that still are groups
/// in the copy.
struct Numbering<'f> {
    groups: &'f LinkGroups,
    facts: &'f TreeFacts,
    given: std::collections::HashMap<usize, u64>,
}

impl Numbering<'_> {
    fn of(&mut self, number: usize) -> Option<u64> {
        let there = |number: &usize| {
            !self.facts.missing.contains(number) && !self.facts.parted.contains(number)
        };
        let group = self.groups.of(number)?;
        let together = self.groups.members[group].iter().filter(|member| there(member)).count();
        if together < 2 || !there(&number) {
            return None;
        }
        let next = self.given.len() as u64;
        Some(*self.given.entry(group).or_insert(next))
    }
}

fn entry(
    path: TreePath,
    number: usize,
    original: &NodeStat,
    facts: &TreeFacts,
    link_group: Option<u64>,
) -> Result<Entry, CaptureError> {
    let stat = facts.truth.get(&number).unwrap_or(original);
    let kind = match stat.kind {
        NodeKind::Directory => EntryKind::Directory,
        NodeKind::File => match facts.hashes.get(number) {
            Some(hash) => EntryKind::File { size: stat.size, hash },
            None => {
                let unread = std::io::Error::other("its content was not read");
                return Err(CaptureError::io(path, "describe", unread));
            }
        },
        NodeKind::Symlink => {
            EntryKind::Symlink { target: facts.targets.get(&number).cloned().unwrap_or_default() }
        }
        NodeKind::Fifo => EntryKind::Fifo,
        NodeKind::Socket => EntryKind::Socket,
        NodeKind::CharDevice => EntryKind::CharDevice(stat.device),
        NodeKind::BlockDevice => EntryKind::BlockDevice(stat.device),
    };
    Ok(Entry {
        path,
        kind,
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        mtime: stat.mtime,
        link_group,
        xattrs: facts.xattrs.get(&number).cloned().unwrap_or_default(),
    })
}
