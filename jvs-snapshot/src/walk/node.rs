//! One name of a walked tree, in as few bytes as it takes: there may be millions. What many
//! names have alike (owner, mode, filesystem) is kept once for all of them.

use std::collections::HashMap;

use crate::manifest::{Device, Timestamp};
use crate::tree::{NodeKind, NodeStat};

/// No directory.
const NONE: u32 = u32::MAX;

/// One name of a [`Tree`](super::Tree). Aligned to four bytes: eight would cost four more.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub(crate) struct Node {
    size: u64,
    inode: u64,
    mtime_seconds: i64,
    ctime_seconds: i64,
    mtime_nanos: u32,
    ctime_nanos: u32,
    name: u32,
    alike: u32,
    directory: u32,
}

impl Node {
    /// The `name`-th name of its directory.
    pub(super) fn new(name: u32, stat: &NodeStat, alike: &mut AlikeTable) -> Self {
        Node {
            size: stat.size,
            inode: stat.inode,
            mtime_seconds: stat.mtime.seconds,
            ctime_seconds: stat.ctime.seconds,
            mtime_nanos: stat.mtime.nanos,
            ctime_nanos: stat.ctime.nanos,
            name,
            alike: alike.number(Alike::of(stat)),
            directory: NONE,
        }
    }

    pub(super) fn name(&self) -> usize {
        self.name as usize
    }

    /// Which of the tree's directories this is, if it is one.
    pub(crate) fn directory(&self) -> Option<u32> {
        (self.directory != NONE).then_some(self.directory)
    }

    pub(super) fn set_directory(&mut self, number: u32) {
        self.directory = number;
    }

    pub(super) fn kind(&self, alike: &[Alike]) -> NodeKind {
        alike[self.alike as usize].kind
    }

    /// All that the walk saw.
    pub(super) fn stat(&self, alike: &[Alike]) -> NodeStat {
        let Alike { kind, mode, uid, gid, links, filesystem, device, mount } =
            alike[self.alike as usize];
        let mtime = Timestamp { seconds: self.mtime_seconds, nanos: self.mtime_nanos };
        let ctime = Timestamp { seconds: self.ctime_seconds, nanos: self.ctime_nanos };
        let (size, inode) = (self.size, self.inode);
        NodeStat {
            kind,
            mode,
            uid,
            gid,
            links,
            size,
            inode,
            filesystem,
            mtime,
            ctime,
            device,
            mount,
        }
    }
}

/// What many names have alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Alike {
    kind: NodeKind,
    mode: u32,
    uid: u32,
    gid: u32,
    links: u32,
    filesystem: u64,
    device: Device,
    mount: u64,
}

impl Alike {
    fn of(stat: &NodeStat) -> Self {
        let NodeStat { kind, mode, uid, gid, links, filesystem, device, mount, .. } = *stat;
        Alike { kind, mode, uid, gid, links, filesystem, device, mount }
    }
}

/// Each [`Alike`] once.
#[derive(Debug, Default)]
pub(super) struct AlikeTable {
    all: Vec<Alike>,
    numbers: HashMap<Alike, u32>,
    /// The number of the last one: most names are like the one before.
    last: u32,
}

impl AlikeTable {
    fn number(&mut self, alike: Alike) -> u32 {
        if self.all.get(self.last as usize) == Some(&alike) {
            return self.last;
        }
        let next = self.all.len() as u32;
        self.last = *self.numbers.entry(alike).or_insert(next);
        if self.last == next {
            self.all.push(alike);
        }
        self.last
    }

    pub(super) fn into_all(self) -> Vec<Alike> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(kind: NodeKind, mode: u32, inode: u64) -> NodeStat {
        NodeStat {
            kind,
            mode,
            uid: u32::MAX,
            gid: 7,
            links: 3,
            size: u64::MAX - inode,
            inode,
            filesystem: 254 << 32,
            mtime: Timestamp { seconds: i64::MIN, nanos: 999_999_999 },
            ctime: Timestamp { seconds: i64::MAX, nanos: 1 },
            device: Device { major: 1, minor: u32::MAX },
            mount: u64::MAX,
        }
    }

    #[test]
    fn a_name_takes_few_bytes_and_forgets_nothing_of_what_was_seen() {
        assert!(size_of::<Node>() <= 52, "{}", size_of::<Node>());
        let seen = [
            stat(NodeKind::File, 0o644, 1),
            stat(NodeKind::File, 0o644, 2),
            stat(NodeKind::Directory, 0o644, 3),
            stat(NodeKind::File, 0o600, u64::MAX),
            stat(NodeKind::File, 0o644, 4),
        ];
        let mut table = AlikeTable::default();
        let mut nodes: Vec<Node> =
            (0..).zip(&seen).map(|(name, stat)| Node::new(name, stat, &mut table)).collect();
        nodes[2].set_directory(5);
        let alike = table.into_all();
        assert_eq!(alike.len(), 3, "each once");
        for (at, (node, seen)) in nodes.iter().zip(&seen).enumerate() {
            assert_eq!(node.stat(&alike), *seen);
            assert_eq!((node.name(), node.kind(&alike)), (at, seen.kind));
            assert_eq!(node.directory(), (at == 2).then_some(5));
        }
    }
}
