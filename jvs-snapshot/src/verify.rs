//! Is a snapshot what it was when it was published? Every byte of it is read and
//! compared with what the file above it says: READY and manifest with the
//! descriptor, the payload with the manifest, a descriptor with its own checksum.

use std::fmt;
use std::io;

use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::ShownName;
use jvs_repo::proc;
use jvs_repo::store::{PosixStore, RepoPath, Store};
use serde::Serialize;

use crate::catalog::Catalog;
use crate::compare::{self, CompareError, Compared, Trust};
use crate::error::SnapshotError;
use crate::progress::Progress;
use crate::ready::{self, Ready};
use crate::stored::{is_refusal, manifest, named_by, not_believed, unread};
use crate::tags;

/// Largest READY that is looked at.
const READY_MAX: usize = 4096;

/// One thing that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Where, below the repository's root.
    pub path: String,
    /// In what it differs.
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// What was found out about one snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The snapshot's id.
    pub snapshot_id: SnapshotId,
    /// Are descriptor and READY what was written?
    pub descriptor_valid: bool,
    /// Are manifest and payload?
    pub payload_valid: bool,
    /// What is not.
    pub mismatches: Vec<Mismatch>,
}

impl Verification {
    /// Is all of it what was published?
    pub fn is_valid(&self) -> bool {
        self.descriptor_valid && self.payload_valid
    }

    fn found(&mut self, path: impl fmt::Display, what: impl fmt::Display) {
        self.mismatches.push(Mismatch { path: path.to_string(), what: what.to_string() });
    }
}

/// Reads all of a visible snapshot. What is wrong with it is a finding; that it
/// cannot be read is an error.
pub fn verify(
    store: &PosixStore,
    id: SnapshotId,
    progress: &dyn Progress,
) -> Result<Verification, SnapshotError> {
    let mut verdict = Verification {
        snapshot_id: id,
        descriptor_valid: true,
        payload_valid: true,
        mismatches: Vec::new(),
    };
    let snapshot = match Catalog::new(store).open(id) {
        Ok(snapshot) => snapshot,
        Err(SnapshotError::Corrupt { path, reason }) => {
            // Nothing else can be held against a descriptor that says nothing.
            verdict.descriptor_valid = false;
            verdict.payload_valid = false;
            verdict.found(path, reason);
            return Ok(verdict);
        }
        Err(error) => return Err(error),
    };
    check_ready(store, &snapshot, &mut verdict)?;
    check_directory(store, &snapshot, &mut verdict)?;
    if check_manifest(store, &snapshot, &mut verdict)? {
        check_payload(store, &snapshot, progress, &mut verdict)?;
    }
    Ok(verdict)
}

fn check_ready(
    store: &dyn Store,
    snapshot: &Ready,
    verdict: &mut Verification,
) -> Result<(), SnapshotError> {
    let path = layout::ready(&snapshot.dir());
    let expected = ready::bytes(snapshot.id(), snapshot.descriptor_checksum());
    let same = match store.read(&path, READY_MAX) {
        Ok(bytes) => bytes == expected,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => false,
        Err(source) => return Err(SnapshotError::Io { doing: format!("read {path}"), source }),
    };
    if !same {
        verdict.descriptor_valid = false;
        verdict.found(path, "it does not name this snapshot and its descriptor");
    }
    Ok(())
}

/// Nothing is in a snapshot's directory that was not published.
fn check_directory(
    store: &dyn Store,
    snapshot: &Ready,
    verdict: &mut Verification,
) -> Result<(), SnapshotError> {
    let dir = snapshot.dir();
    let known = [
        layout::descriptor(&dir),
        layout::ready(&dir),
        layout::manifest(&dir),
        layout::snapshot_payload(&dir),
    ];
    let entries = store.list(&dir).map_err(SnapshotError::io(format!("list {dir}")))?;
    let names: Vec<&str> = known.iter().map(|path| path.split().1).collect();
    for entry in &entries {
        if !names.iter().any(|known| entry.name == *known) {
            verdict.payload_valid = false;
            verdict.found(format!("{dir}/{}", ShownName::new(&entry.name)), "was added");
        }
    }
    Ok(())
}

/// False if the manifest cannot be held against the payload.
fn check_manifest(
    store: &dyn Store,
    snapshot: &Ready,
    verdict: &mut Verification,
) -> Result<bool, SnapshotError> {
    let path = layout::manifest(&snapshot.dir());
    let summary = manifest(store, snapshot).and_then(|reader| reader.finish());
    let problems = match summary {
        Ok(summary) => {
            named_by(snapshot).disagreements(&summary).into_iter().map(str::to_owned).collect()
        }
        Err(error) => match not_believed(path.clone(), error) {
            SnapshotError::Corrupt { reason, .. } => vec![reason],
            refused => return Err(refused),
        },
    };
    let trusted = problems.is_empty();
    verdict.payload_valid &= trusted;
    for problem in problems {
        verdict.found(&path, problem);
    }
    Ok(trusted)
}

fn check_payload(
    store: &PosixStore,
    snapshot: &Ready,
    progress: &dyn Progress,
    verdict: &mut Verification,
) -> Result<(), SnapshotError> {
    let payload = layout::snapshot_payload(&snapshot.dir());
    let root = store.absolute(&payload);
    let reader = match manifest(store, snapshot) {
        Ok(reader) => reader,
        Err(error) => match not_believed(layout::manifest(&snapshot.dir()), error) {
            SnapshotError::Corrupt { path, reason } => {
                verdict.payload_valid = false;
                verdict.found(path, reason);
                return Ok(());
            }
            refused => return Err(refused),
        },
    };
    let at = |path: &crate::manifest::TreePath| -> String {
        if path.is_root() { payload.to_string() } else { format!("{payload}/{path}") }
    };
    let compared =
        compare::with_files(reader, root.as_path(), Trust::Nothing, progress, &mut |_| {});
    match compared.map_err(CompareError::of_one) {
        Ok(Compared { differences, .. }) => {
            let taken = &snapshot.descriptor().content.id_map;
            for difference in compare::comparable(differences, taken, &proc::id_map()) {
                verdict.payload_valid = false;
                let aspects: Vec<&str> = difference.aspects.iter().map(|a| a.as_str()).collect();
                verdict.found(at(&difference.path), format!("differs: {}", aspects.join(", ")));
            }
            Ok(())
        }
        Err(CompareError::Io { path, source }) if is_damage(&source) => {
            verdict.payload_valid = false;
            verdict.found(at(&path), format!("cannot be read: {source}"));
            Ok(())
        }
        Err(CompareError::Io { path, source }) => Err(unread(store, &payload, &path, source)),
        Err(error) => Err(SnapshotError::Unreadable(error)),
    }
}

/// Does the failure say something about the snapshot rather than about who asks, or
/// about a disk or a mount that may answer the next time?
fn is_damage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let told = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(told, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO))
        || !is_refusal(error)
}

/// Tags that are not what was written, or that stand for nothing visible.
pub fn verify_tags(store: &dyn Store) -> Result<Vec<Mismatch>, SnapshotError> {
    let catalog = Catalog::new(store);
    let mut mismatches = Vec::new();
    let mut found = |path: RepoPath, what: String| {
        mismatches.push(Mismatch { path: path.to_string(), what });
    };
    for (name, tag) in tags::list(store)?.tags {
        let path = layout::tag(&name);
        match tag {
            Ok(tag) => {
                let id = tag.snapshot_id;
                let visible = catalog.is_ready(id);
                if !visible.map_err(SnapshotError::io("look at a snapshot"))? {
                    found(path, format!("it points to {id}, which does not exist"));
                }
            }
            Err(error) => match error.reason {
                jvs_repo::json::UnusableReason::Invalid(reason) => found(path, reason),
                jvs_repo::json::UnusableReason::Io(_) => return Err(error.into()),
            },
        }
    }
    Ok(mismatches)
}
