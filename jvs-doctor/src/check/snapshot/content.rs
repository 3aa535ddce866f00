//! Is what a visible snapshot consists of what was written? The files themselves
//! are not read: that is what verifying is for.

use std::io;

use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::store::RepoPath;
use jvs_snapshot::hash::Digest;
use jvs_snapshot::ready;

use crate::check::Check;
use crate::finding::FindingCollector;
use crate::remedy::Remedy;
use crate::survey::{Snap, Survey, is_absent};

const CHUNK: usize = 1 << 20;

const RESTORE: &str =
    "restore the snapshot's directory from a backup; nothing else can bring it back";

/// Reports what is wrong with one snapshot. `committed` if it is a head or an
/// ancestor of one.
pub(super) fn look(
    survey: &Survey<'_, '_>,
    id: SnapshotId,
    snap: &Snap,
    committed: bool,
    report: &mut FindingCollector,
) {
    let dir = layout::snapshot(id);
    let path = layout::descriptor(&dir);
    let (descriptor, checksum) = match &snap.descriptor {
        Ok(read) => read,
        Err(why) if survey.is_unseen(&path) => {
            report.unreadable(&path, why);
            return;
        }
        Err(why) => {
            if snap.ready {
                let message = format!("the descriptor of {id} is not what was written: {why}");
                report.add(Check::DescriptorCorrupt, path, message).advice(RESTORE);
            }
            return;
        }
    };
    if !snap.ready {
        return;
    }
    ready(survey, id, *checksum, committed, report);
    if !snap.payload && !survey.is_missing(&dir) {
        let message = format!("the files of {id} are missing");
        report.add(Check::PayloadMissing, layout::snapshot_payload(&dir), message).advice(RESTORE);
    }
    manifest(survey, id, descriptor.content.manifest_hash, report);
}

fn ready(
    survey: &Survey<'_, '_>,
    id: SnapshotId,
    checksum: Digest,
    committed: bool,
    report: &mut FindingCollector,
) {
    let dir = layout::snapshot(id);
    let path = layout::ready(&dir);
    match survey.store().read(&path, 4096) {
        Ok(bytes) if bytes == ready::bytes(id, checksum) => {}
        Ok(_) => {
            let message = format!("READY of {id} does not match its descriptor");
            report
                .add(Check::ReadyMismatch, &path, message)
                .advice(RESTORE)
                .maybe(committed.then_some(Remedy::RestoreReady(id)));
        }
        // Collected meanwhile.
        Err(_) if survey.is_missing(&dir) => {}
        Err(error) => report.unreadable(&path, &error),
    }
}

fn manifest(
    survey: &Survey<'_, '_>,
    id: SnapshotId,
    written: Digest,
    report: &mut FindingCollector,
) {
    let dir = layout::snapshot(id);
    let path = layout::manifest(&dir);
    let message = match hash(survey, &path) {
        Ok(found) if found == written => return,
        Ok(_) => format!("the manifest of {id} does not match its descriptor"),
        Err(_) if survey.is_missing(&dir) => return,
        Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::InvalidData => {
            format!("the manifest of {id} cannot be read: {error}")
        }
        // Nothing follows for what is there.
        Err(error) => {
            report.unreadable(&path, &error);
            return;
        }
    };
    report.add(Check::ManifestCorrupt, &path, message).advice(RESTORE);
}

fn hash(survey: &Survey<'_, '_>, path: &RepoPath) -> io::Result<Digest> {
    let file = survey.store().open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut offset = 0;
    loop {
        let piece = file.read_range(offset, CHUNK)?;
        if piece.len() == CHUNK && piece.iter().all(|byte| *byte == 0) {
            // Every entry has a name: a hole is no manifest's, however long it is.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it has a hole"));
        }
        hasher.update(&piece);
        offset += piece.len() as u64;
        if piece.len() < CHUNK {
            return Ok(hasher.finalize().into());
        }
    }
}
