//! One path of a tree, and what is remembered of it.

use super::path::TreePath;
use crate::hash::Digest;

/// A moment on the filesystem's clock. Two fields, because xfs and btrfs reach
/// beyond what 64 bits of nanoseconds can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// Nanoseconds into that second, below 1,000,000,000.
    pub nanos: u32,
}

/// What a path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Size in bytes.
        size: u64,
        /// Of its content.
        hash: Digest,
    },
    /// A symbolic link: never followed.
    Symlink {
        /// What it says, whatever that is.
        target: Vec<u8>,
    },
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A character device.
    CharDevice(Device),
    /// A block device.
    BlockDevice(Device),
}

impl EntryKind {
    /// In a word, for messages.
    pub const fn noun(&self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File { .. } => "file",
            Self::Symlink { .. } => "symlink",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::CharDevice(_) => "character device",
            Self::BlockDevice(_) => "block device",
        }
    }
}

/// Which device a device file stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    /// Major device number.
    pub major: u32,
    /// Which one of its class.
    pub minor: u32,
}

/// An extended attribute; ACLs and capabilities are some.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Xattr {
    /// Name with its namespace, `user.…`.
    pub name: Vec<u8>,
    /// The attribute's value.
    pub value: Vec<u8>,
}

/// A path of the tree as it is in the snapshot's payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Below the payload's root; the root itself is the first entry.
    pub path: TreePath,
    /// Type, and what goes with it.
    pub kind: EntryKind,
    /// Permission bits, setuid, setgid and sticky included.
    pub mode: u32,
    /// Owning user.
    pub uid: u32,
    /// Owning group.
    pub gid: u32,
    /// When the content was last modified.
    pub mtime: Timestamp,
    /// Entries with the same number are names of one file. Numbered from zero in
    /// order of appearance.
    pub link_group: Option<u64>,
    /// Sorted by name.
    pub xattrs: Vec<Xattr>,
}

/// How the captured file in the worktree looked beyond what the entry says.
/// There only if a change of the file after its capture cannot have left both
/// as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Inode number.
    pub inode: u64,
    /// When anything about it last changed. No program can set it.
    pub ctime: Timestamp,
}
