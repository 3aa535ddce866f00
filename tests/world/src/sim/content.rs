//! Snapshots of one file, captured by nobody: all that a lock, a lineage or a
//! collection can tell from real ones.

use std::io;

use jvs_kit::sim::Solo;
use jvs_lock::{Lease, Seams, Want};
use jvs_repo::clock::WallMs;
use jvs_repo::config::Consistency;
use jvs_repo::layout;
use jvs_repo::store::{RepoPath, Store};
use jvs_snapshot::descriptor::{About, Content, LineStanding, Quiescence};
use jvs_snapshot::hash::Digest;
use jvs_snapshot::{Draft, Ready, SnapshotError, Snapshots, Staged};

use super::{LEASE_MS, SimTrees, seams_of};
use crate::repository::main;
use crate::session::locks_of;

/// The one file of the snapshot in `dir`.
pub fn payload_file(dir: &RepoPath) -> RepoPath {
    layout::snapshot_payload(dir).child("file").expect("plain")
}

/// What is said about a snapshot that was begun at `now`.
pub fn about(now: WallMs) -> About {
    About {
        created_at: now,
        note: None,
        tags: Vec::new(),
        holder_id: "host:ann:1:1".into(),
        session_id: "s".into(),
        line: None,
    }
}

/// Stands in for a capture: one file, a manifest, all of it synced.
pub fn fill(store: &dyn Store, draft: &Draft<'_>, text: &str) -> io::Result<Content> {
    let dir = draft.dir();
    store.make_dir(&layout::snapshot_payload(&dir))?;
    for path in [payload_file(&dir), layout::manifest(&dir)] {
        let file = store.create_new(&path)?;
        file.write_at(0, text.as_bytes())?;
        file.sync()?;
    }
    store.sync_dir(&layout::snapshot_payload(&dir))?;
    store.sync_dir(&dir)?;
    let digest = Digest::of(text.as_bytes());
    Ok(Content {
        consistency: Consistency::Quiesced,
        files: 1,
        bytes: text.len() as u64,
        payload_root_hash: digest,
        manifest_hash: digest,
        engine: "copy".into(),
        degraded: Vec::new(),
        quiescence: Quiescence {
            proven: true,
            digest,
            compared: 1,
            attempts: 1,
            changed: Vec::new(),
        },
        boot_id: None,
        id_map: None,
        ignore_rules: Vec::new(),
        risk: None,
    })
}

/// Everything before the commit.
pub fn stage<'r>(
    seams: Seams<'r>,
    at: &Snapshots<'r>,
    lease: &mut Lease<'_>,
    text: &str,
) -> Result<Staged<'r>, SnapshotError> {
    stage_on(seams, at, lease, text, None)
}

/// The same of a snapshot that says of itself where it stands on the line.
pub fn stage_on<'r>(
    seams: Seams<'r>,
    at: &Snapshots<'r>,
    lease: &mut Lease<'_>,
    text: &str,
    line: Option<LineStanding>,
) -> Result<Staged<'r>, SnapshotError> {
    let draft = at.begin(&lease.fence()?)?;
    let stuck = |source| SnapshotError::Io { doing: "stage".into(), source };
    let content = fill(seams.store, &draft, text).map_err(stuck)?;
    let about = About { line, ..about(seams.clock.now().wall) };
    draft.seal(about, content).map_err(|error| stuck(error.source))
}

/// One whole snapshot in a world without faults.
pub fn snapshot(solo: &Solo, lease: &mut Lease<'_>, text: &str) -> Ready {
    snapshot_on(solo, lease, text, None)
}

/// The same that says of itself where it stands on the line.
pub fn snapshot_on(
    solo: &Solo,
    lease: &mut Lease<'_>,
    text: &str,
    line: Option<LineStanding>,
) -> Ready {
    solo.pass_ms(1);
    let trees = SimTrees(solo.store());
    let at = Snapshots::new(seams_of(solo), &trees);
    let staged = stage_on(seams_of(solo), &at, lease, text, line).expect("staged");
    match staged.publish(lease.fence().expect("live")) {
        Ok(ready) => ready,
        Err(error) => panic!("published: {error}"),
    }
}

/// Three snapshots of `main`, one on top of the other.
pub fn with_history(solo: &Solo) {
    let locks = locks_of(seams_of(solo), "maker");
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    for text in ["one", "two", "three"] {
        snapshot(solo, &mut lease, text);
    }
    lease.release().expect("released");
    solo.pass_ms(1);
}
