//! Writes a manifest, one entry at a time.

use std::io::{self, Write};

use jvs_repo::varint::{push, zigzag};

use super::entry::{Entry, EntryKind, Hints, Timestamp};
use super::{
    END, HAS_LINK_GROUP, HAS_XATTRS, HINTS, HashBuffer, MAGIC, MAX_TARGET_BYTES,
    MAX_XATTR_NAME_BYTES, MAX_XATTR_VALUE_BYTES, MAX_XATTRS_BYTES, NO_HINTS, OutOfPlace, Sequence,
    Summary, TAG_BLOCK_DEVICE, TAG_CHAR_DEVICE, TAG_DIRECTORY, TAG_FIFO, TAG_FILE, TAG_SOCKET,
    TAG_SYMLINK,
};

/// Why a manifest could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file did not take it.
    #[error("cannot write the manifest: {0}")]
    Io(#[from] io::Error),
    /// Entries came in an order that no tree has.
    #[error("{path}: {why}")]
    OutOfPlace {
        /// Which one.
        path: super::TreePath,
        /// What is wrong with it.
        why: OutOfPlace,
    },
    /// The entry has more or larger parts than a reader accepts.
    #[error("{path}: {what}")]
    Unrepresentable {
        /// Which one.
        path: super::TreePath,
        /// What is too large.
        what: &'static str,
    },
}

/// Writes entries as they come; they must come in order. Collects its output,
/// so the file below needs no buffer of its own.
pub struct ManifestWriter<W: Write> {
    out: W,
    pending: Vec<u8>,
    whole: blake3::Hasher,
    canonical: HashBuffer,
    sequence: Sequence,
}

impl<W: Write> ManifestWriter<W> {
    /// Begins a manifest.
    pub fn new(out: W) -> Self {
        let mut canonical = HashBuffer::new();
        canonical.push(MAGIC);
        Self {
            out,
            pending: MAGIC.to_vec(),
            whole: blake3::Hasher::new(),
            canonical,
            sequence: Sequence::new(),
        }
    }

    /// Appends the next entry.
    pub fn write(&mut self, entry: &Entry, hints: Option<Hints>) -> Result<(), WriteError> {
        if let Some(what) = unrepresentable(entry) {
            return Err(WriteError::Unrepresentable { path: entry.path.clone(), what });
        }
        let shared = self.sequence.shared(entry.path.as_bytes());
        self.sequence
            .follow(entry)
            .map_err(|why| WriteError::OutOfPlace { path: entry.path.clone(), why })?;
        let start = self.pending.len();
        push_canonical(&mut self.pending, shared, entry);
        self.canonical.push(&self.pending[start..]);
        match hints {
            None => self.pending.push(NO_HINTS),
            Some(hints) => {
                self.pending.push(HINTS);
                push(&mut self.pending, hints.inode);
                push_time(&mut self.pending, hints.ctime);
            }
        }
        if self.pending.len() >= HashBuffer::FULL {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the manifest and gives the file back, which is not synced yet.
    pub fn finish(mut self) -> Result<(W, Summary), WriteError> {
        let payload_root_hash = self.canonical.digest();
        let totals = self.sequence.totals;
        self.pending.push(END);
        push(&mut self.pending, totals.entries);
        push(&mut self.pending, totals.files);
        push(&mut self.pending, totals.bytes);
        self.pending.extend_from_slice(&payload_root_hash.0);
        self.flush()?;
        self.out.flush()?;
        let manifest_hash = self.whole.finalize().into();
        Ok((self.out, Summary { totals, payload_root_hash, manifest_hash }))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.whole.update(&self.pending);
        self.out.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

fn unrepresentable(entry: &Entry) -> Option<&'static str> {
    if let EntryKind::Symlink { target } = &entry.kind
        && (target.is_empty() || target.len() > MAX_TARGET_BYTES || target.contains(&0))
    {
        return Some("the symlink's target is empty, has a NUL or is too long");
    }
    if entry.mode > 0o7777 {
        return Some("the mode has more than permission bits");
    }
    let times_fit = entry.mtime.nanos < 1_000_000_000;
    if !times_fit {
        return Some("the modification time has more than a second of nanoseconds");
    }
    let mut total = 0;
    for pair in entry.xattrs.windows(2) {
        if pair[0].name >= pair[1].name {
            return Some("extended attributes are not sorted");
        }
    }
    for xattr in &entry.xattrs {
        let name_fits = !xattr.name.is_empty()
            && xattr.name.len() <= MAX_XATTR_NAME_BYTES
            && !xattr.name.contains(&0);
        total += xattr.name.len() + xattr.value.len();
        if !name_fits || xattr.value.len() > MAX_XATTR_VALUE_BYTES || total > MAX_XATTRS_BYTES {
            return Some("its extended attributes are too large");
        }
    }
    None
}

fn push_canonical(out: &mut Vec<u8>, shared: usize, entry: &Entry) {
    let mut tag = match entry.kind {
        EntryKind::Directory => TAG_DIRECTORY,
        EntryKind::File { .. } => TAG_FILE,
        EntryKind::Symlink { .. } => TAG_SYMLINK,
        EntryKind::Fifo => TAG_FIFO,
        EntryKind::Socket => TAG_SOCKET,
        EntryKind::CharDevice(_) => TAG_CHAR_DEVICE,
        EntryKind::BlockDevice(_) => TAG_BLOCK_DEVICE,
    };
    if entry.link_group.is_some() {
        tag |= HAS_LINK_GROUP;
    }
    if !entry.xattrs.is_empty() {
        tag |= HAS_XATTRS;
    }
    out.push(tag);
    push(out, shared as u64);
    push_bytes(out, &entry.path.as_bytes()[shared..]);
    push(out, u64::from(entry.mode));
    push(out, u64::from(entry.uid));
    push(out, u64::from(entry.gid));
    push_time(out, entry.mtime);
    match &entry.kind {
        EntryKind::File { size, hash } => {
            push(out, *size);
            out.extend_from_slice(&hash.0);
        }
        EntryKind::Symlink { target } => push_bytes(out, target),
        EntryKind::CharDevice(device) | EntryKind::BlockDevice(device) => {
            push(out, u64::from(device.major));
            push(out, u64::from(device.minor));
        }
        EntryKind::Directory | EntryKind::Fifo | EntryKind::Socket => {}
    }
    if let Some(group) = entry.link_group {
        push(out, group);
    }
    if !entry.xattrs.is_empty() {
        push(out, entry.xattrs.len() as u64);
        for xattr in &entry.xattrs {
            push_bytes(out, &xattr.name);
            push_bytes(out, &xattr.value);
        }
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn push_time(out: &mut Vec<u8>, time: Timestamp) {
    push(out, zigzag(time.seconds));
    push(out, u64::from(time.nanos));
}
