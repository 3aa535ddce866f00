//! What a snapshot's tree consists of: one entry per path, sorted bytewise by path.
//!
//! **Responsibility.** The format of the `manifest` file, a writer and a strict
//! reader that both stream: neither holds more than one entry, so a million
//! entries cost time in proportion and no memory.
//!
//! **Must not know.** How a tree is walked, hashed, copied or compared.
//!
//! # Format
//! ```text
//! "jvs-manifest 1\n"
//! entry*      canonical part, then hints
//! 0x00        end, then: number of entries, of regular files, of content bytes
//!             (as in `Totals`), and the 32 bytes of the payload root hash
//! ```
//! The canonical part of an entry: a tag byte (type, and whether a link group and
//! attributes follow), the path as *how many bytes it shares with the previous
//! path* and the rest, mode, uid, gid, modification time, then what its type
//! needs. Numbers are minimal LEB128; signed ones zigzag. There is exactly one
//! spelling for a tree, and the reader accepts no other.
//!
//! The **payload root hash** is BLAKE3 over the first line and all canonical
//! parts: equal trees have equal hashes. The **hints** (inode and change time of
//! the file that was captured) are not part of it: they say nothing about the
//! tree, only let the next capture skip what did not change. They are part of
//! the **manifest hash**, which is over the whole file, because a forged hint
//! would make a changed file pass as unchanged.
//!
//! # Limitations
//! The reader checks the shape of the whole file, but knows whether the file is
//! *the* manifest only at its end: nobody may act on entries before that.

mod entry;
mod path;
mod read;
mod write;

pub use entry::{Device, Entry, EntryKind, Hints, Timestamp, Xattr};
pub use path::{MAX_DEPTH, MAX_PATH_BYTES, PathError, TreePath};
pub(crate) use read::Expected;
pub use read::{ManifestError, ManifestReader};
pub use write::{ManifestWriter, WriteError};

use crate::hash::Digest;

/// The first bytes of every manifest.
const MAGIC: &[u8] = b"jvs-manifest 1\n";

/// Tag of the end of the entries.
const END: u8 = 0x00;
/// Bits of a tag byte.
const TYPE_MASK: u8 = 0x0f;
const HAS_LINK_GROUP: u8 = 0x40;
const HAS_XATTRS: u8 = 0x80;

const TAG_DIRECTORY: u8 = 1;
const TAG_FILE: u8 = 2;
const TAG_SYMLINK: u8 = 3;
const TAG_FIFO: u8 = 4;
const TAG_SOCKET: u8 = 5;
const TAG_CHAR_DEVICE: u8 = 6;
const TAG_BLOCK_DEVICE: u8 = 7;

const NO_HINTS: u8 = 0;
const HINTS: u8 = 1;

/// Longest symlink target (`PATH_MAX` with its NUL).
pub const MAX_TARGET_BYTES: usize = 4095;
/// Longest name of an extended attribute (`XATTR_NAME_MAX`).
pub const MAX_XATTR_NAME_BYTES: usize = 255;
/// Largest value of an extended attribute (`XATTR_SIZE_MAX`).
pub const MAX_XATTR_VALUE_BYTES: usize = 64 * 1024;
/// Largest sum of all attributes of one entry.
pub const MAX_XATTRS_BYTES: usize = 1024 * 1024;

/// What a manifest adds up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Paths, the root included.
    pub entries: u64,
    /// Regular files; each name of a hard-linked file counts.
    pub files: u64,
    /// Content bytes; a hard-linked file counts once.
    pub bytes: u64,
}

/// What is known once a manifest has been written or read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Number of files and bytes.
    pub totals: Totals,
    /// Over the canonical parts: equal trees, equal hashes.
    pub payload_root_hash: Digest,
    /// Over the whole file.
    pub manifest_hash: Digest,
}

/// Bytes for a hasher, collected: BLAKE3 is several times faster on large input.
struct HashBuffer {
    hasher: blake3::Hasher,
    pending: Vec<u8>,
}

impl HashBuffer {
    const FULL: usize = 64 * 1024;

    fn new() -> Self {
        Self { hasher: blake3::Hasher::new(), pending: Vec::with_capacity(2 * Self::FULL) }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= Self::FULL {
            self.hasher.update(&self.pending);
            self.pending.clear();
        }
    }

    fn digest(&mut self) -> Digest {
        self.hasher.update(&self.pending);
        self.pending.clear();
        self.hasher.finalize().into()
    }
}

/// What is true from one entry to the next, for reader and writer alike: so that
/// nothing is written that cannot be read.
struct Sequence {
    previous: Vec<u8>,
    /// Lengths of those prefixes of `previous` that are directories. Every path
    /// between a directory and its content in bytewise order begins with the
    /// directory's path, so this needs no more than the current path.
    directories: Vec<usize>,
    groups: u64,
    totals: Totals,
}

/// Why an entry cannot come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutOfPlace {
    /// The first entry must be the root, a directory.
    NoRoot,
    /// Not above the path before it.
    Order,
    /// The entry that should hold it is missing or is not a directory.
    NoParent,
    /// Link groups are numbered from zero in order of appearance.
    LinkGroup,
    /// A directory cannot have a second name.
    LinkedDirectory,
}

impl std::fmt::Display for OutOfPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoRoot => "the first entry is not the root directory",
            Self::Order => "not in ascending order",
            Self::NoParent => "no directory holds it",
            Self::LinkGroup => "its link group has a number out of turn",
            Self::LinkedDirectory => "a directory cannot be hard-linked",
        })
    }
}

impl Sequence {
    fn new() -> Self {
        Self { previous: Vec::new(), directories: Vec::new(), groups: 0, totals: Totals::default() }
    }

    /// How many leading bytes `path` shares with the path before it.
    fn shared(&self, path: &[u8]) -> usize {
        self.previous.iter().zip(path).take_while(|(a, b)| a == b).count()
    }

    fn follow(&mut self, entry: &Entry) -> Result<(), OutOfPlace> {
        let path = entry.path.as_bytes();
        let is_directory = entry.kind == EntryKind::Directory;
        if self.totals.entries == 0 {
            if !path.is_empty() || !is_directory {
                return Err(OutOfPlace::NoRoot);
            }
        } else {
            if path <= self.previous.as_slice() {
                return Err(OutOfPlace::Order);
            }
            let shared = self.shared(path);
            while self.directories.last().is_some_and(|&length| length > shared) {
                self.directories.pop();
            }
            let parent = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            if self.directories.binary_search(&parent).is_err() {
                return Err(OutOfPlace::NoParent);
            }
        }
        let mut counts_bytes = true;
        if let Some(group) = entry.link_group {
            if is_directory {
                return Err(OutOfPlace::LinkedDirectory);
            }
            match group.cmp(&self.groups) {
                std::cmp::Ordering::Less => counts_bytes = false,
                std::cmp::Ordering::Equal => self.groups += 1,
                std::cmp::Ordering::Greater => return Err(OutOfPlace::LinkGroup),
            }
        }
        if is_directory {
            self.directories.push(path.len());
        }
        self.totals.entries += 1;
        if let EntryKind::File { size, .. } = entry.kind {
            self.totals.files += 1;
            if counts_bytes {
                self.totals.bytes = self.totals.bytes.saturating_add(size);
            }
        }
        self.previous.clear();
        self.previous.extend_from_slice(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
