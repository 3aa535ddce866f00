//! A control file from its start to its end, however large.

use std::io::{self, Read};

use jvs_repo::layout;
use jvs_repo::sabotage;
use jvs_repo::store::{PosixStore, RepoPath, Store, StoredFile};

use crate::compare::CompareError;
use crate::error::SnapshotError;
use crate::manifest::{ManifestError, ManifestReader, Summary, TreePath};
use crate::mutation::Rule;
use crate::ready::Ready;

/// Reads a file of the store in large pieces.
pub struct StoredReader {
    file: Box<dyn StoredFile>,
    offset: u64,
}

impl StoredReader {
    pub(crate) fn open(store: &dyn Store, path: &RepoPath) -> io::Result<Self> {
        Ok(StoredReader { file: store.open(path)?, offset: 0 })
    }
}

impl Read for StoredReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_range(self.offset, into.len())?;
        into[..bytes.len()].copy_from_slice(&bytes);
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }
}

/// The manifest of a visible snapshot, from its start. Nothing of it is believed
/// yet: see [`proven_manifest`].
pub(crate) fn manifest(
    store: &dyn Store,
    snapshot: &Ready,
) -> Result<ManifestReader<StoredReader>, ManifestError> {
    let file = StoredReader::open(store, &layout::manifest(&snapshot.dir()));
    ManifestReader::open(file.map_err(ManifestError::Io)?)
}

/// The manifest of a visible snapshot, read once to its end and found to be the
/// one that the descriptor names; then from its start again.
pub fn proven_manifest(
    store: &dyn Store,
    snapshot: &Ready,
) -> Result<ManifestReader<StoredReader>, SnapshotError> {
    let path = layout::manifest(&snapshot.dir());
    let open = || manifest(store, snapshot).map_err(|error| not_believed(path.clone(), error));
    let summary = open()?.finish().map_err(|error| not_believed(path.clone(), error))?;
    match disagreements(&summary, snapshot).first() {
        None => open(),
        Some(problem) => Err(SnapshotError::Corrupt { path, reason: (*problem).to_owned() }),
    }
}

/// What it means that a manifest could not be made sense of. That the filesystem
/// refused or failed is about who asks and when; nothing follows for what is there.
pub(crate) fn not_believed(path: RepoPath, error: ManifestError) -> SnapshotError {
    match error {
        ManifestError::Io(source) if is_refusal(&source) => {
            SnapshotError::Io { doing: format!("read {path}"), source }
        }
        error => SnapshotError::Corrupt { path, reason: error.to_string() },
    }
}

/// Is it that something could not be looked at, and not that it is gone?
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    sabotage!(Rule::RefusalIsNotDamage => false);
    !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData)
}

/// In what a manifest is not the one that the descriptor names.
pub(crate) fn disagreements(summary: &Summary, snapshot: &Ready) -> Vec<&'static str> {
    let descriptor = snapshot.descriptor();
    let mut problems = Vec::new();
    if summary.manifest_hash != descriptor.content.manifest_hash {
        problems.push("its hash is not the descriptor's manifest_hash");
    }
    if summary.payload_root_hash != descriptor.content.payload_root_hash {
        problems.push("its tree is not the descriptor's payload_root_hash");
    }
    if (summary.totals.files, summary.totals.bytes)
        != (descriptor.content.files, descriptor.content.bytes)
    {
        problems.push("it has other numbers of files and bytes than the descriptor");
    }
    problems
}

/// A file in the `tree` of a snapshot could not be read: who may not, or how the disk
/// failed.
pub(crate) fn unread(
    store: &PosixStore,
    tree: &RepoPath,
    path: &TreePath,
    error: io::Error,
) -> SnapshotError {
    let source = store.unread(tree, path.as_path(), error);
    let below = if path.is_root() { String::new() } else { format!("/{path}") };
    SnapshotError::Io { doing: format!("read {tree}{below}"), source }
}

/// What a failed comparison with `snapshot` means to its user.
pub(crate) fn compared(snapshot: &Ready) -> impl Fn(CompareError) -> SnapshotError + '_ {
    move |error| match error.of_one() {
        CompareError::Manifest(error) => not_believed(layout::manifest(&snapshot.dir()), error),
        CompareError::Io { path, source } => {
            SnapshotError::Io { doing: format!("read {path}"), source }
        }
        error => SnapshotError::Unreadable(error),
    }
}
