//! Reads a manifest strictly, one entry at a time.
//!
//! Nothing in the file is believed before it was checked, no length is allocated
//! before it was found to be within bounds, and no path leaves the tree: each is
//! made of plain names and lies below an entry that is a directory.

use std::io::{self, Read};

use jvs_repo::varint::{Decoder, unzigzag};

use super::entry::{Device, Entry, EntryKind, Hints, Timestamp, Xattr};
use super::path::{MAX_PATH_BYTES, PathError, TreePath};
use super::{
    END, HAS_LINK_GROUP, HAS_XATTRS, HINTS, HashBuffer, MAGIC, MAX_TARGET_BYTES,
    MAX_XATTR_NAME_BYTES, MAX_XATTR_VALUE_BYTES, MAX_XATTRS_BYTES, NO_HINTS, OutOfPlace, Sequence,
    Summary, TAG_BLOCK_DEVICE, TAG_CHAR_DEVICE, TAG_DIRECTORY, TAG_FIFO, TAG_FILE, TAG_SOCKET,
    TAG_SYMLINK, TYPE_MASK,
};
use crate::hash::Digest;

/// What is wrong with a manifest, and where.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file could not be read.
    #[error("cannot read the manifest: {0}")]
    Io(#[source] io::Error),
    /// Not a manifest, or one of another version.
    #[error("not a manifest that this version can read")]
    Magic,
    /// It ends before its end.
    #[error("the manifest ends early, at byte {offset}")]
    Truncated {
        /// How many bytes there were.
        offset: u64,
    },
    /// Something is after its end.
    #[error("something follows the end of the manifest")]
    Trailing,
    /// Bytes that no writer makes.
    #[error("manifest entry {entry}: bad {what}")]
    Malformed {
        /// Of the entry, counted from 0.
        entry: u64,
        /// What it should have been.
        what: &'static str,
    },
    /// A path that leaves the tree or is too deep.
    #[error("manifest entry {entry}: {why}")]
    Path {
        /// Of the entry, counted from 0.
        entry: u64,
        /// What is wrong with it.
        #[source]
        why: PathError,
    },
    /// An entry that cannot follow the one before it.
    #[error("manifest entry {path}: {why}")]
    OutOfPlace {
        /// Which one.
        path: TreePath,
        /// What is wrong with it.
        why: OutOfPlace,
    },
    /// The counts or the hash at the end do not fit the entries.
    #[error("the manifest's entries do not add up to what its end says")]
    Sum,
    /// A manifest, but not the one that was to be read.
    #[error("{0}")]
    Another(&'static str),
}

/// Reads entries in order. As an iterator it drops the hints; after an error or
/// the end it is done for good.
pub struct ManifestReader<R: Read> {
    source: Source<R>,
    sequence: Sequence,
    state: State,
    expected: Option<Expected>,
}

/// What tells a manifest from every other one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) manifest_hash: Digest,
    pub(crate) payload_root_hash: Digest,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Expected {
    /// In what a manifest is not that one.
    pub(crate) fn disagreements(&self, summary: &Summary) -> Vec<&'static str> {
        let mut problems = Vec::new();
        if summary.manifest_hash != self.manifest_hash {
            problems.push("its hash is not the descriptor's manifest_hash");
        }
        if summary.payload_root_hash != self.payload_root_hash {
            problems.push("its tree is not the descriptor's payload_root_hash");
        }
        if (summary.totals.files, summary.totals.bytes) != (self.files, self.bytes) {
            problems.push("it has other numbers of files and bytes than the descriptor");
        }
        problems
    }
}

#[derive(Clone, Copy)]
enum State {
    Entries,
    Ended(Summary),
    Failed,
}

impl<R: Read> ManifestReader<R> {
    /// Begins to read; the first bytes say whether this is a manifest. Reads in
    /// large pieces, so `file` needs no buffer of its own.
    pub fn open(file: R) -> Result<Self, ManifestError> {
        let mut source = Source::new(file);
        let mut magic = [0; MAGIC.len()];
        match source.take_exactly(&mut magic) {
            Ok(()) if magic == MAGIC => {}
            Ok(()) | Err(ManifestError::Truncated { .. }) => return Err(ManifestError::Magic),
            Err(error) => return Err(error),
        }
        source.end_canonical();
        Ok(Self { source, sequence: Sequence::new(), state: State::Entries, expected: None })
    }

    /// Reading it to its end fails if it is another one than expected. Nothing that was
    /// read may be acted on before that.
    pub(crate) fn expecting(self, expected: Expected) -> Self {
        Self { expected: Some(expected), ..self }
    }

    /// The next entry with its hints, or nothing at the proven end.
    pub fn read(&mut self) -> Result<Option<(Entry, Option<Hints>)>, ManifestError> {
        match self.state {
            State::Ended(_) | State::Failed => return Ok(None),
            State::Entries => {}
        }
        // Failed until proven otherwise: after an error nothing makes sense.
        self.state = State::Failed;
        let tag = self.source.byte()?;
        if tag == END {
            let summary = self.end()?;
            let wrong = self.expected.and_then(|it| it.disagreements(&summary).first().copied());
            if let Some(problem) = wrong {
                return Err(ManifestError::Another(problem));
            }
            self.state = State::Ended(summary);
            return Ok(None);
        }
        let entry = self.entry(tag)?;
        self.sequence
            .follow(&entry)
            .map_err(|why| ManifestError::OutOfPlace { path: entry.path.clone(), why })?;
        self.source.end_canonical();
        let hints = self.hints()?;
        self.source.end_hints();
        self.state = State::Entries;
        Ok(Some((entry, hints)))
    }

    /// What the manifest adds up to, once it has been read to its end.
    pub fn summary(&self) -> Option<Summary> {
        match self.state {
            State::Ended(summary) => Some(summary),
            State::Entries | State::Failed => None,
        }
    }

    /// Reads and checks all that is left.
    pub fn finish(mut self) -> Result<Summary, ManifestError> {
        while self.read()?.is_some() {}
        self.summary().ok_or(ManifestError::Sum)
    }

    fn malformed(&self, what: &'static str) -> ManifestError {
        ManifestError::Malformed { entry: self.sequence.totals.entries, what }
    }

    fn number(&mut self, what: &'static str) -> Result<u64, ManifestError> {
        let mut decoder = Decoder::default();
        loop {
            let byte = self.source.byte()?;
            match decoder.take(byte) {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => {}
                Err(_) => return Err(self.malformed(what)),
            }
        }
    }

    fn number32(&mut self, what: &'static str) -> Result<u32, ManifestError> {
        u32::try_from(self.number(what)?).map_err(|_| self.malformed(what))
    }

    fn length(&mut self, limit: usize, what: &'static str) -> Result<usize, ManifestError> {
        usize::try_from(self.number(what)?)
            .ok()
            .filter(|&length| length <= limit)
            .ok_or_else(|| self.malformed(what))
    }

    fn bytes(&mut self, limit: usize, what: &'static str) -> Result<Vec<u8>, ManifestError> {
        let length = self.length(limit, what)?;
        let mut bytes = vec![0; length];
        self.source.take_exactly(&mut bytes)?;
        Ok(bytes)
    }

    fn time(&mut self, what: &'static str) -> Result<Timestamp, ManifestError> {
        let seconds = unzigzag(self.number(what)?);
        let nanos = self.number32(what)?;
        if nanos >= 1_000_000_000 {
            return Err(self.malformed(what));
        }
        Ok(Timestamp { seconds, nanos })
    }

    fn path(&mut self) -> Result<TreePath, ManifestError> {
        let shared = self.length(self.sequence.previous.len(), "path prefix")?;
        let rest = self.length(MAX_PATH_BYTES.saturating_sub(shared), "path length")?;
        let mut path = Vec::with_capacity(shared + rest);
        path.extend_from_slice(&self.sequence.previous[..shared]);
        path.resize(shared + rest, 0);
        self.source.take_exactly(&mut path[shared..])?;
        // One spelling only: what is shared is left out, all of it.
        if self.sequence.shared(&path) != shared {
            return Err(self.malformed("path prefix"));
        }
        TreePath::beginning_like(path, shared)
            .map_err(|why| ManifestError::Path { entry: self.sequence.totals.entries, why })
    }

    fn entry(&mut self, tag: u8) -> Result<Entry, ManifestError> {
        if tag & !(TYPE_MASK | HAS_LINK_GROUP | HAS_XATTRS) != 0 {
            return Err(self.malformed("type"));
        }
        let path = self.path()?;
        let mode = self.number32("mode")?;
        if mode > 0o7777 {
            return Err(self.malformed("mode"));
        }
        let uid = self.number32("owner")?;
        let gid = self.number32("group")?;
        let mtime = self.time("modification time")?;
        let kind = match tag & TYPE_MASK {
            TAG_DIRECTORY => EntryKind::Directory,
            TAG_FILE => {
                let size = self.number("size")?;
                let mut hash = [0; 32];
                self.source.take_exactly(&mut hash)?;
                EntryKind::File { size, hash: Digest(hash) }
            }
            TAG_SYMLINK => {
                let target = self.bytes(MAX_TARGET_BYTES, "symlink target")?;
                if target.is_empty() || target.contains(&0) {
                    return Err(self.malformed("symlink target"));
                }
                EntryKind::Symlink { target }
            }
            TAG_FIFO => EntryKind::Fifo,
            TAG_SOCKET => EntryKind::Socket,
            TAG_CHAR_DEVICE => EntryKind::CharDevice(self.device()?),
            TAG_BLOCK_DEVICE => EntryKind::BlockDevice(self.device()?),
            _ => return Err(self.malformed("type")),
        };
        let link_group =
            if tag & HAS_LINK_GROUP != 0 { Some(self.number("link group")?) } else { None };
        let xattrs = if tag & HAS_XATTRS != 0 { self.xattrs()? } else { Vec::new() };
        Ok(Entry { path, kind, mode, uid, gid, mtime, link_group, xattrs })
    }

    fn device(&mut self) -> Result<Device, ManifestError> {
        Ok(Device { major: self.number32("device")?, minor: self.number32("device")? })
    }

    fn xattrs(&mut self) -> Result<Vec<Xattr>, ManifestError> {
        let count = self.length(MAX_XATTRS_BYTES, "number of attributes")?;
        if count == 0 {
            return Err(self.malformed("number of attributes"));
        }
        // Not reserved: the count is not believed before that many were read.
        let mut xattrs: Vec<Xattr> = Vec::new();
        let mut total = 0;
        for _ in 0..count {
            let name = self.bytes(MAX_XATTR_NAME_BYTES, "attribute name")?;
            let ascends = xattrs.last().is_none_or(|last| last.name < name);
            if name.is_empty() || name.contains(&0) || !ascends {
                return Err(self.malformed("attribute name"));
            }
            let value = self.bytes(MAX_XATTR_VALUE_BYTES, "attribute value")?;
            total += name.len() + value.len();
            if total > MAX_XATTRS_BYTES {
                return Err(self.malformed("size of attributes"));
            }
            xattrs.push(Xattr { name, value });
        }
        Ok(xattrs)
    }

    fn hints(&mut self) -> Result<Option<Hints>, ManifestError> {
        match self.source.byte()? {
            NO_HINTS => Ok(None),
            HINTS => {
                Ok(Some(Hints { inode: self.number("inode")?, ctime: self.time("change time")? }))
            }
            _ => Err(self.malformed("hints")),
        }
    }

    fn end(&mut self) -> Result<Summary, ManifestError> {
        let payload_root_hash = self.source.canonical.digest();
        let totals = self.sequence.totals;
        let counts = [self.number("counts")?, self.number("counts")?, self.number("counts")?];
        let mut said = [0; 32];
        self.source.take_exactly(&mut said)?;
        let adds_up = totals.entries > 0
            && counts == [totals.entries, totals.files, totals.bytes]
            && said == payload_root_hash.0;
        if !adds_up {
            return Err(ManifestError::Sum);
        }
        if self.source.more()? {
            return Err(ManifestError::Trailing);
        }
        let manifest_hash = self.source.whole.finalize().into();
        Ok(Summary { totals, payload_root_hash, manifest_hash })
    }
}

impl<R: Read> Iterator for ManifestReader<R> {
    type Item = Result<Entry, ManifestError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().map(|read| read.map(|(entry, _)| entry)).transpose()
    }
}

/// The file in large pieces; remembers what must be hashed.
struct Source<R> {
    file: R,
    buffer: Vec<u8>,
    filled: usize,
    at: usize,
    /// Where the part of the buffer begins that is not in `record` yet.
    record_start: usize,
    /// The part of the current record that earlier buffers held.
    record: Vec<u8>,
    offset: u64,
    whole: blake3::Hasher,
    canonical: HashBuffer,
}

impl<R: Read> Source<R> {
    const PIECE: usize = 128 * 1024;

    fn new(file: R) -> Self {
        Self {
            file,
            buffer: vec![0; Self::PIECE],
            filled: 0,
            at: 0,
            record_start: 0,
            record: Vec::new(),
            offset: 0,
            whole: blake3::Hasher::new(),
            canonical: HashBuffer::new(),
        }
    }

    /// Fills the used-up buffer; false at the end of the file.
    fn refill(&mut self) -> Result<bool, ManifestError> {
        self.record.extend_from_slice(&self.buffer[self.record_start..self.filled]);
        (self.filled, self.at, self.record_start) = (0, 0, 0);
        let got = loop {
            match self.file.read(&mut self.buffer) {
                Ok(got) => break got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ManifestError::Io(error)),
            }
        };
        self.filled = got;
        self.whole.update(&self.buffer[..got]);
        self.offset += got as u64;
        Ok(got > 0)
    }

    fn more(&mut self) -> Result<bool, ManifestError> {
        Ok(self.at < self.filled || self.refill()?)
    }

    fn byte(&mut self) -> Result<u8, ManifestError> {
        if self.at == self.filled && !self.refill()? {
            return Err(ManifestError::Truncated { offset: self.offset });
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        Ok(byte)
    }

    fn take_exactly(&mut self, mut into: &mut [u8]) -> Result<(), ManifestError> {
        while !into.is_empty() {
            if self.at == self.filled && !self.refill()? {
                return Err(ManifestError::Truncated { offset: self.offset });
            }
            let length = into.len().min(self.filled - self.at);
            let (now, later) = into.split_at_mut(length);
            now.copy_from_slice(&self.buffer[self.at..self.at + length]);
            self.at += length;
            into = later;
        }
        Ok(())
    }

    /// What was read since the last record's end is canonical.
    fn end_canonical(&mut self) {
        if !self.record.is_empty() {
            self.canonical.push(&self.record);
            self.record.clear();
        }
        self.canonical.push(&self.buffer[self.record_start..self.at]);
        self.record_start = self.at;
    }

    /// What was read since then is not.
    fn end_hints(&mut self) {
        self.record.clear();
        self.record_start = self.at;
    }
}
