//! Repairs of snapshots and tags: what was committed is made visible again, what can
//! never be committed is collected.

use std::io;

use jvs_lock::{Lease, Locks, Want, history};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{self, Isolation};
use jvs_repo::sabotage;
use jvs_snapshot::gc::{self, Dead, GcPlan};
use jvs_snapshot::restore;
use jvs_snapshot::staging_name::StagingName;
use jvs_snapshot::tags::{self, LoggedTag};
use jvs_snapshot::{Catalog, Snapshots, ready, show_head};

use super::RepairError;
use super::hand::{Hand, ignore};
use super::lock::{LEASE_MS, leave};
use crate::mutation::Rule;
use crate::proof::{Proof, Uncollected};

impl Hand<'_, '_, '_, '_> {
    /// Through the lock: a process that may commit may show what was committed.
    pub(super) fn show(
        &self,
        worktree: &WorktreeName,
        id: SnapshotId,
        write: bool,
    ) -> Result<(), RepairError> {
        if write {
            self.write_ready_draft(id)?;
        }
        let shared = worktree::read(self.store(), worktree)
            .ok()
            .flatten()
            .is_some_and(|record| record.isolation == Isolation::Shared);
        if shared {
            let mut shared = self.locks.share(worktree)?;
            let fence = shared.fence();
            let state = fence.read()?;
            return Ok(self.snapshots().help(&fence, &state)?);
        }
        let help = |lease: &mut Lease<'_>| {
            let fence = lease.fence()?;
            let state = fence.read()?;
            Ok(self.snapshots().help(&fence, &state)?)
        };
        if let Some(holds) = (self.holds)(worktree) {
            return self.within(&holds, worktree, Want::lease(LEASE_MS), help);
        }
        let mut lease = match own_lease(self.locks, worktree) {
            Some(lease) => lease,
            None => self.locks.acquire(worktree, Want::lease(LEASE_MS))?,
        };
        let shown = help(&mut lease);
        leave(lease)?;
        shown
    }

    /// Through the lock, as the next command that uses it would.
    pub(super) fn finish_restore(&self, worktree: &WorktreeName) -> Result<(), RepairError> {
        let finish = |lease: &mut Lease<'_>| match self.patient.payloads.spots() {
            Some(spots) => {
                restore::finish_all(&self.snapshots(), spots, self.locks, lease)?;
                Ok(())
            }
            None => self.pretend_finished(worktree),
        };
        if let Some(holds) = (self.holds)(worktree) {
            return self.within(&holds, worktree, Want::lease(LEASE_MS), finish);
        }
        let mut lease = match own_lease(self.locks, worktree) {
            Some(lease) => lease,
            None => self.locks.acquire(worktree, Want::lease(LEASE_MS))?,
        };
        let finished = finish(&mut lease);
        leave(lease)?;
        finished
    }

    /// In a rehearsal no file of a worktree is moved.
    fn pretend_finished(&self, worktree: &WorktreeName) -> Result<(), RepairError> {
        for entry in self.store().list(&layout::staging())? {
            let name = entry.name.to_str().and_then(|name| name.parse().ok());
            if let Some(name @ StagingName::Patch { worktree: of, .. }) = &name
                && of == worktree
            {
                self.patient.payloads.remove(&name.path())?;
            }
        }
        Ok(())
    }

    /// Without the lock, which a worktree that was removed has no more: what it was
    /// retired with is committed, and stays so.
    pub(super) fn show_committed(
        &self,
        worktree: &WorktreeName,
        id: SnapshotId,
    ) -> Result<(), RepairError> {
        // READY must not survive a power cut that the commit does not.
        let synced = self.store().sync_dir(&layout::register(worktree));
        ignore(synced, io::ErrorKind::NotFound)?;
        Ok(show_head(self.patient.seams, id)?)
    }

    fn write_ready_draft(&self, id: SnapshotId) -> Result<(), RepairError> {
        let dir = layout::snapshot(id);
        let bytes = self.ready(id)?;
        let (tmp, to) = (layout::snapshot_tmp(&dir, self.op), layout::ready_staged(&dir));
        let written = self.store().write_new(&tmp, &to, &bytes);
        Ok(ignore(written, io::ErrorKind::AlreadyExists)?)
    }

    pub(super) fn restore_ready(&self, id: SnapshotId) -> Result<(), RepairError> {
        let dir = layout::snapshot(id);
        let bytes = self.ready(id)?;
        let tmp = layout::snapshot_tmp(&dir, self.op);
        // In one step: what was committed is at no moment taken for a draft.
        Ok(self.store().write_over(&tmp, &layout::ready(&dir), &bytes)?)
    }

    /// READY has one possible content, which the descriptor gives.
    fn ready(&self, id: SnapshotId) -> Result<Vec<u8>, RepairError> {
        let described = Catalog::new(self.store()).describe(id)?;
        let (_, checksum) = described.ok_or(RepairError::NotDescribed)?;
        Ok(ready::bytes(id, checksum))
    }

    pub(super) fn restore_tag(&self, told: &LoggedTag) -> Result<(), RepairError> {
        // Read after the tag was found missing: who deletes says so first.
        let logs = history::read_logs(self.store())?;
        if let Some((writer, source)) = logs.unread.into_iter().next() {
            return Err(RepairError::LogUnreadable { path: layout::audit_log(writer), source });
        }
        if !tags::remembered(logs.events.iter().map(|logged| &logged.event)).contains(told) {
            return Err(RepairError::DeletedMeanwhile);
        }
        let tmp = layout::tag_tmp(&told.tag, self.op);
        let written = self.store().write_new(&tmp, &layout::tag(&told.tag), &told.to_bytes());
        Ok(ignore(written, io::ErrorKind::AlreadyExists)?)
    }

    pub(super) fn collect(&self, proof: &Proof<Dead>) -> Result<(), RepairError> {
        let dead = vec![(proof.thing().clone(), None)];
        self.carry_out_plan(&GcPlan { dead, ..GcPlan::default() })
    }

    pub(super) fn finish_gc(&self, proof: &Proof<Uncollected>) -> Result<(), RepairError> {
        let unfinished = vec![proof.thing().0.clone()];
        self.carry_out_plan(&GcPlan { unfinished, ..GcPlan::default() })
    }

    fn carry_out_plan(&self, plan: &GcPlan) -> Result<(), RepairError> {
        gc::run(&self.snapshots(), self.locks, plan, &mut |_, _| {})?;
        Ok(())
    }

    fn snapshots(&self) -> Snapshots<'_> {
        Snapshots::new(self.patient.seams, self.patient.payloads)
    }
}

/// What this session holds is used as it is.
fn own_lease<'r>(locks: &Locks<'r>, worktree: &WorktreeName) -> Option<Lease<'r>> {
    sabotage!(Rule::HoldIsLeft => None);
    locks.resume(worktree, None).ok()
}
