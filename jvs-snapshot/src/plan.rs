//! What need not be done again: the tree beside the parent snapshot's manifest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;

use jvs_repo::sabotage;

use crate::hashes::Hashes;
use crate::manifest::{
    Entry, EntryKind, Hints, ManifestError, ManifestReader, Summary, Timestamp, TreePath, Xattr,
};
use crate::mutation::capturing::CaptureRule;
use crate::tree::{NodeKind, NodeStat};
use crate::walk::Tree;

/// What is known of the names of a tree, by their numbers, beyond what the walk
/// saw.
#[derive(Debug, Default)]
pub(crate) struct TreeFacts {
    /// Of the content of regular files.
    pub(crate) hashes: Hashes,
    /// Only where there are some.
    pub(crate) xattrs: BTreeMap<usize, Vec<Xattr>>,
    /// What symlinks say.
    pub(crate) targets: BTreeMap<usize, Vec<u8>>,
    /// How the copy looks, where it does not look like the original.
    pub(crate) truth: BTreeMap<usize, NodeStat>,
    /// Not in the copy.
    pub(crate) missing: BTreeSet<usize>,
    /// Second names that became files of their own.
    pub(crate) parted: BTreeSet<usize>,
    /// Something in the copy that the original had not.
    pub(crate) surplus: Option<TreePath>,
}

impl TreeFacts {
    pub(crate) fn set_xattrs(&mut self, number: usize, xattrs: Vec<Xattr>) {
        if xattrs.is_empty() {
            self.xattrs.remove(&number);
        } else {
            self.xattrs.insert(number, xattrs);
        }
    }
}

/// Facts that the parent's manifest already has.
#[derive(Debug, Default)]
pub(crate) struct ReusePlan {
    pub(crate) facts: TreeFacts,
    /// Which names are as they were; empty if none is known to be.
    unchanged: Vec<bool>,
    /// The attributes that the parent has of files that look as they were, where a look is
    /// not believed: their content says whether they are. Only where there are some.
    doubted_xattrs: BTreeMap<usize, Vec<Xattr>>,
}

impl ReusePlan {
    /// A plan to read everything.
    pub(crate) fn everything(tree: &Tree) -> Self {
        let facts = TreeFacts { hashes: Hashes::unknown(tree.nodes), ..TreeFacts::default() };
        ReusePlan { facts, ..ReusePlan::default() }
    }

    /// Is this name as it was in the parent?
    pub(crate) fn unchanged(&self, number: usize) -> bool {
        self.unchanged.get(number).copied().unwrap_or(false)
    }

    /// The attributes of the parent's file that this one looks like.
    pub(crate) fn doubted_xattrs(&self, number: usize) -> &[Xattr] {
        self.doubted_xattrs.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Goes through tree and manifest side by side, both being sorted. Answers
    /// also with what the manifest turned out to be: a plan made from another
    /// one than expected is worth nothing. What looks as it was is so only as far as
    /// looks count.
    pub(crate) fn make(
        tree: &Tree,
        manifest: impl Read,
        looks: Looks,
    ) -> Result<(Self, Summary), ManifestError> {
        let mut plan = Self::everything(tree);
        plan.unchanged = vec![false; tree.nodes];
        let mut reader = ManifestReader::open(manifest)?;
        let mut next = reader.read()?;
        if let Some((entry, Some(hints))) = &next
            && entry.path.is_root()
            && is_as_it_was(&tree.root, entry, *hints, looks)
        {
            plan.keep(0, entry, looks);
        }
        let mut path = Vec::new();
        for item in tree.in_order() {
            path.clear();
            path.extend_from_slice(item.branch.path.as_bytes());
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(item.name());
            while let Some((entry, _)) = &next
                && entry.path.as_bytes() < path.as_slice()
            {
                next = reader.read()?;
            }
            if let Some((entry, Some(hints))) = &next
                && entry.path.as_bytes() == path
                && is_as_it_was(&item.stat(), entry, *hints, looks)
            {
                plan.keep(item.number, entry, looks);
            }
        }
        Ok((plan, reader.finish()?))
    }

    fn keep(&mut self, number: usize, entry: &Entry, looks: Looks) {
        if looks == Looks::Doubted {
            if let EntryKind::File { hash, .. } = &entry.kind {
                self.facts.hashes.doubt(number, *hash);
                if !entry.xattrs.is_empty() {
                    self.doubted_xattrs.insert(number, entry.xattrs.clone());
                }
            }
            return;
        }
        self.unchanged[number] = true;
        match &entry.kind {
            EntryKind::File { hash, .. } => self.facts.hashes.set(number, *hash),
            EntryKind::Symlink { target } => {
                self.facts.targets.insert(number, target.clone());
            }
            _ => {}
        }
        if !entry.xattrs.is_empty() {
            self.facts.xattrs.insert(number, entry.xattrs.clone());
        }
    }
}

/// What it means that a file looks as a manifest says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// It is as it was.
    Believed,
    /// Its content says whether it is.
    Doubted,
    /// As [`Looks::Believed`], of clones of the files that the manifest remembers, which
    /// have their change times and other inodes.
    OfClones,
}

/// Hints are only there if every later change would have changed them.
fn is_as_it_was(stat: &NodeStat, entry: &Entry, hints: Hints, looks: Looks) -> bool {
    let same_kind = match (&entry.kind, stat.kind) {
        (EntryKind::File { size, .. }, NodeKind::File) => *size == stat.size,
        (EntryKind::Directory, NodeKind::Directory)
        | (EntryKind::Symlink { .. }, NodeKind::Symlink)
        | (EntryKind::Fifo, NodeKind::Fifo)
        | (EntryKind::Socket, NodeKind::Socket) => true,
        (EntryKind::CharDevice(device), NodeKind::CharDevice)
        | (EntryKind::BlockDevice(device), NodeKind::BlockDevice) => *device == stat.device,
        _ => false,
    };
    same_kind
        && match looks {
            Looks::OfClones => is_its_clone(stat, hints),
            Looks::Believed | Looks::Doubted => {
                hints == (Hints { inode: stat.inode, ctime: stat.ctime })
            }
        }
        && entry.mtime == stat.mtime
        && entry.mode == stat.mode
        && (entry.uid, entry.gid) == (stat.uid, stat.gid)
}

/// Is this the clone of a file with these hints, and nobody has changed it since?
fn is_its_clone(stat: &NodeStat, hints: Hints) -> bool {
    sabotage!(CaptureRule::ClonesHaveTheirTimes => true);
    hints.ctime == stat.ctime
}

/// The time-dependent half of a hint: see [`crate::quiesce::settled`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    pub(crate) margin_ns: i64,
}

/// Names that are one file, in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct LinkGroups {
    /// Each has two members or more. Numbered in order of their first members.
    pub(crate) members: Vec<Vec<usize>>,
    of: HashMap<usize, usize>,
}

impl LinkGroups {
    /// By identity; names outside the tree do not count.
    pub(crate) fn find(tree: &Tree) -> Self {
        let shared = tree.shared_identities();
        if shared.is_empty() {
            return LinkGroups::default();
        }
        let mut by_identity: HashMap<(u64, u64), usize> = HashMap::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for item in tree.in_order().filter(|item| shared.contains(&item.stat().identity())) {
            let group = *by_identity.entry(item.stat().identity()).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(item.number);
        }
        let of = groups
            .iter()
            .enumerate()
            .flat_map(|(group, members)| members.iter().map(move |&member| (member, group)))
            .collect();
        LinkGroups { members: groups, of }
    }

    /// Which group a name belongs to.
    pub(crate) fn of(&self, number: usize) -> Option<usize> {
        self.of.get(&number).copied()
    }

    /// The first name of the same file, if this is another one.
    pub(crate) fn leader(&self, number: usize) -> Option<usize> {
        let leader = self.members[self.of(number)?][0];
        (leader != number).then_some(leader)
    }
}
