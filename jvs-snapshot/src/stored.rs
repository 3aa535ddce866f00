//! A control file from its start to its end, however large.

use std::io::{self, Read};

use jvs_repo::layout;
use jvs_repo::sabotage;
use jvs_repo::store::{PosixStore, RepoPath, Store, StoredFile};

use crate::compare::CompareError;
use crate::error::SnapshotError;
use crate::manifest::{Expected, ManifestError, ManifestReader, TreePath};
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

/// The manifest of a visible snapshot, from its start. Nothing of it is believed:
/// see [`proven_manifest`].
pub(crate) fn manifest(
    store: &dyn Store,
    snapshot: &Ready,
) -> Result<ManifestReader<StoredReader>, ManifestError> {
    let file = StoredReader::open(store, &layout::manifest(&snapshot.dir()));
    ManifestReader::open(file.map_err(ManifestError::Io)?)
}

/// The manifest of a visible snapshot, from its start. Its end is reached only if it is
/// the one that the descriptor names: until then nothing that it says may be acted on.
pub fn proven_manifest(
    store: &dyn Store,
    snapshot: &Ready,
) -> Result<ManifestReader<StoredReader>, SnapshotError> {
    manifest(store, snapshot)
        .map(|reader| reader.expecting(named_by(snapshot)))
        .map_err(|error| not_believed(layout::manifest(&snapshot.dir()), error))
}

/// The manifest that a descriptor names.
pub(crate) fn named_by(snapshot: &Ready) -> Expected {
    let content = &snapshot.descriptor().content;
    Expected {
        manifest_hash: content.manifest_hash,
        payload_root_hash: content.payload_root_hash,
        files: content.files,
        bytes: content.bytes,
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

/// What a failed comparison with `snapshot` means to its user. A manifest that is not the
/// snapshot's may have made it fail before its end was reached.
pub(crate) fn compared<'s>(
    store: &'s dyn Store,
    snapshot: &'s Ready,
) -> impl Fn(CompareError) -> SnapshotError + 's {
    move |error| match error.of_one() {
        CompareError::Manifest(error) => not_believed(layout::manifest(&snapshot.dir()), error),
        error => match (prove(store, snapshot), error) {
            (Err(wrong @ SnapshotError::Corrupt { .. }), _) => wrong,
            (_, CompareError::Io { path, source }) => {
                SnapshotError::Io { doing: format!("read {path}"), source }
            }
            (_, error) => SnapshotError::Unreadable(error),
        },
    }
}

fn prove(store: &dyn Store, snapshot: &Ready) -> Result<(), SnapshotError> {
    let read = proven_manifest(store, snapshot)?.finish();
    read.map(drop).map_err(|error| not_believed(layout::manifest(&snapshot.dir()), error))
}
