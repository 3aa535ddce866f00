//! Repairs of locks: what is over is released, what is stale is removed, and
//! the holder keeps holding.

use jvs_lock::hold::{Ask, Holds, LeaveOutcome, StakeKind as HoldKind};
use jvs_lock::record::{FoundRecord, Meaning, parse};
use jvs_lock::view::View;
use jvs_lock::{Lease, LeaseOrigin, Want, legacy};
use jvs_repo::json;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

use super::RepairError;
use super::hand::Hand;
use crate::mutation::Rule;
use crate::proof::{LockRecord, Proof, Takeover};
use crate::read::Read;
use crate::survey::is_absent;

/// A lock is only taken to be released again.
pub(super) const LEASE_MS: u64 = 30_000;

impl Hand<'_, '_, '_, '_> {
    pub(super) fn migrate(&self, worktree: &WorktreeName) -> Result<(), RepairError> {
        let migrated = legacy::migrate(self.locks, worktree)?;
        match migrated.iter().any(|m| matches!(m, legacy::Migration::Kept { .. })) {
            true => Err(RepairError::LegacyLockInUse),
            false => Ok(()),
        }
    }

    /// What is over is taken and released, so that its holder is fenced. One's
    /// own is released as it was seen: were it renewed since, it is in use.
    pub(super) fn free(&self, worktree: &WorktreeName) -> Result<(), RepairError> {
        let view = self.locks.inspect(worktree)?;
        let want =
            Want { reason: Some("its lease was over for long enough"), ..Want::lease(LEASE_MS) };
        if let Some(holds) = (self.holds)(worktree) {
            if view.mine {
                return match self.locks.give_back_unneeded(&holds, view.state.term())? {
                    LeaveOutcome::Kept(_) => Err(RepairError::StillNeeded),
                    LeaveOutcome::Back(_) => Ok(()),
                    // Nobody of the session was ever told of it.
                    LeaveOutcome::Over => Ok(self.locks.release_abandoned(&view)?),
                };
            }
            return self.within(&holds, worktree, want, |_| Ok(()));
        }
        if is_own(&view) {
            return Ok(self.locks.release_abandoned(&view)?);
        }
        leave(self.locks.acquire(worktree, want)?)
    }

    /// Does something with a stake of its own in the session's hold, which stays held if
    /// others need it. Somebody who repairs has heard of what was lost, but nobody who
    /// works here has: that is not forgotten.
    pub(super) fn within(
        &self,
        holds: &Holds<'_>,
        worktree: &WorktreeName,
        want: Want<'_>,
        work: impl FnOnce(&mut Lease<'_>) -> Result<(), RepairError>,
    ) -> Result<(), RepairError> {
        let ask = Ask { acknowledges_loss: true, ..Ask::plain(HoldKind::Work) };
        let mut take = |want: Want<'_>| self.locks.acquire(worktree, want);
        let mut entered = self.locks.enter(holds, &ask, want, &mut take)?;
        let done = work(&mut entered.lease);
        self.locks.leave(holds, &entered.stake)?;
        done
    }

    /// Between the look and the removal a new holder may put its own record
    /// there: it is put back.
    pub(super) fn remove_record(&self, proof: &Proof<LockRecord>) -> Result<(), RepairError> {
        let LockRecord(worktree) = proof.thing();
        let path = layout::lock_record(worktree);
        let Some(aside) = self.move_aside(worktree, &path)? else { return Ok(()) };
        let bytes = self.store().read(&aside, json::Limits::RECORD.size).unwrap_or_default();
        if self.is_of_a_holder(worktree, &bytes) && self.store().rename_new(&aside, &path).is_ok() {
            return Err(RepairError::HeldMeanwhile);
        }
        Ok(self.unlink(&aside)?)
    }

    /// Is it the record of its present holder?
    fn is_of_a_holder(&self, worktree: &WorktreeName, bytes: &[u8]) -> bool {
        sabotage!(Rule::PutsBack => false);
        let FoundRecord::Record(record) = parse(bytes, worktree) else { return false };
        Read::register(self.patient, worktree).is_ok_and(|read| record.is_of(&read))
    }

    /// Its name is one for all, so another takeover may be writing there by now:
    /// what is not what was seen is put back.
    pub(super) fn remove_takeover(&self, proof: &Proof<Takeover>) -> Result<(), RepairError> {
        let Takeover { worktree, seen } = proof.thing();
        let path = layout::takeover(worktree);
        let Some(aside) = self.move_aside(worktree, &path)? else { return Ok(()) };
        let there = self.store().read(&aside, json::Limits::RECORD.size)?;
        if is_another(&there, seen) {
            self.store().rename_new(&aside, &path)?;
            return Err(RepairError::TakenOverMeanwhile);
        }
        Ok(self.unlink(&aside)?)
    }

    /// Moves a file beside the locks to a temporary name that a later doctor can
    /// prove dead. `None` if it is gone already.
    fn move_aside(
        &self,
        worktree: &WorktreeName,
        path: &RepoPath,
    ) -> Result<Option<RepoPath>, RepairError> {
        let read = Read::register(self.patient, worktree)
            .map_err(|_fault| RepairError::RegisterUnreadable)?;
        let aside = layout::lock_tmp_under(worktree, read.term(), self.op);
        match self.store().rename_new(path, &aside) {
            Err(error) if is_absent(&error) => Ok(None),
            moved => Ok(moved.map(|()| Some(aside))?),
        }
    }
}

/// Is it the session's own hold? That is released as it was seen, and not taken.
fn is_own(view: &View) -> bool {
    sabotage!(Rule::HoldIsLeft => false);
    view.mine
}

/// Is a takeover another one than was seen?
fn is_another(there: &[u8], seen: &[u8]) -> bool {
    sabotage!(Rule::PutsBack => false);
    there != seen
}

/// Gives back what was taken here, and only that: a lease that this session had
/// before, or that another process of it has joined since, is relied on.
pub(super) fn leave(lease: Lease<'_>) -> Result<(), RepairError> {
    sabotage!(Rule::HoldIsLeft => super::sabotage::give_back(lease));
    match lease.how() {
        LeaseOrigin::Acquired | LeaseOrigin::Stolen | LeaseOrigin::Reclaimed => {
            lease.release_if_alone()?
        }
        LeaseOrigin::Refreshed | LeaseOrigin::Resumed => {}
    }
    Ok(())
}
