//! A simulated repository, and what must be true of it whatever happened.

use std::sync::Arc;

use jvs_kit::sim::{Image, Solo};
use jvs_lock::watching::Silently;
use jvs_lock::{Lease, Locks, Seams, Want};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{RepoPath, Store};
use jvs_snapshot::Catalog;
use jvs_snapshot::hash::Digest;
use jvs_snapshot::lineage::{Lineage, LineageStep};

use super::{LEASE_MS, SimTrees, payload_file, seams_of};
use crate::repository::{main, names, repository};
use crate::session::locks_of;

/// A repository in a world of its own.
pub struct World {
    /// The world that it is in.
    pub solo: Solo,
}

impl World {
    /// A repository with worktree `main`.
    pub fn new() -> Self {
        World::with(Isolation::Exclusive)
    }

    /// A repository whose `main` has this isolation.
    pub fn with(isolation: Isolation) -> Self {
        let world = World { solo: Solo::new() };
        repository(&world.locks("maker"), isolation);
        world
    }

    /// The world that a power cut left.
    pub fn on(image: Image) -> Self {
        World { solo: Solo::on(image) }
    }

    /// The world as code under test sees it.
    pub fn seams(&self) -> Seams<'_> {
        seams_of(&self.solo)
    }

    /// Its payload trees.
    pub fn trees(&self) -> SimTrees<'_> {
        SimTrees(self.solo.store())
    }

    /// Its snapshots.
    pub fn catalog(&self) -> Catalog<'_> {
        Catalog::new(self.solo.store())
    }

    /// The locks as the session `id` sees them.
    pub fn locks(&self, id: &str) -> Locks<'_> {
        locks_of(self.seams(), id)
    }

    /// A lease of `main` for the session `id`.
    pub fn lease(&self, id: &str) -> Lease<'_> {
        // A death between a renewal and its record leaves a lock that is watched.
        let patient = self.locks(id).watching(Arc::new(Silently));
        patient.acquire(&main(), Want::lease(LEASE_MS)).expect("free or stealable")
    }

    /// The head that the register names.
    pub fn head(&self) -> Option<SnapshotId> {
        self.locks("reader").inspect(&main()).expect("readable").state.head
    }

    /// What people see, newest first.
    pub fn history(&self) -> Vec<SnapshotId> {
        let lineage = Lineage::from_head(self.catalog(), self.head()).expect("a lineage");
        let steps: Result<Vec<LineageStep>, _> = lineage.collect();
        steps
            .expect("no ancestor is missing")
            .into_iter()
            .filter_map(LineageStep::ready)
            .map(|ready| ready.id())
            .collect()
    }

    /// Every directory that is visible, in whatever lineage.
    pub fn visible(&self) -> Vec<SnapshotId> {
        let ids = self.catalog().list().expect("listed").snapshots;
        ids.into_iter().filter(|id| self.catalog().is_ready(*id).expect("looked")).collect()
    }

    /// READY means verifiable: what the descriptor says is there, byte by byte.
    pub fn all_visible_are_whole(&self) -> Result<(), String> {
        for id in self.visible() {
            let broken = |what: &str| format!("{id} is visible and not whole: {what}");
            let ready = self.catalog().open(id).map_err(|error| broken(&error.to_string()))?;
            for (path, hash) in [
                (layout::manifest(&ready.dir()), ready.descriptor().content.manifest_hash),
                (payload_file(&ready.dir()), ready.descriptor().content.payload_root_hash),
            ] {
                let bytes = self.solo.store().read(&path, 1000);
                let bytes = bytes.map_err(|error| broken(&format!("{path}: {error}")))?;
                if Digest::of(&bytes) != hash {
                    return Err(broken(path.as_str()));
                }
            }
        }
        Ok(())
    }

    /// As [`World::all_visible_are_whole`], for a world without a checker.
    #[track_caller]
    pub fn assert_all_visible_are_whole(&self) {
        self.all_visible_are_whole().expect("READY means verifiable");
    }

    /// Names in a directory, sorted.
    pub fn names(&self, dir: &RepoPath) -> Vec<String> {
        names(self.solo.store(), dir)
    }
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}
