//! Carries one remedy out.

use std::io;

use jvs_lock::Locks;
use jvs_lock::worktrees::unfinished;
use jvs_repo::clock::WallMs;
use jvs_repo::id::OpNonce;
use jvs_repo::json;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::quarantine;
use jvs_repo::record::format::FormatRecord;
use jvs_repo::record::worktree::{self, Isolation, WorktreeRecord};
use jvs_repo::store::{DirEntryKind, RepoPath, Store};

use super::{HoldsOf, RepairError};
use crate::patient::Patient;
use crate::proof::{Birth, File, Proof};
use crate::remedy::Remedy;
use crate::survey::is_absent;

/// What a remedy is carried out with.
pub(super) struct Hand<'h, 'p, 'l, 'o> {
    pub(super) patient: &'h Patient<'p>,
    pub(super) locks: &'h Locks<'l>,
    pub(super) holds: HoldsOf<'o>,
    pub(super) op: OpNonce,
}

impl Hand<'_, '_, '_, '_> {
    pub(super) fn carry_out(&self, remedy: &Remedy) -> Result<(), RepairError> {
        match remedy {
            Remedy::MakeDirectory(path) => self.make_dir(path)?,
            Remedy::RewriteFormat { replace } => self.rewrite_format(*replace)?,
            Remedy::Rebuild(rebuild) => self.rebuild(rebuild)?,
            Remedy::Quarantine { path } => {
                quarantine::set_aside(self.store(), self.op, path)?;
            }
            Remedy::Migrate(worktree) => self.migrate(worktree)?,
            Remedy::Free(worktree) => self.free(worktree)?,
            Remedy::Unfreeze { worktree, meant } => {
                self.locks.lift(worktree, *meant, "it was over")?;
            }
            Remedy::RemoveRecord(proof) => self.remove_record(proof)?,
            Remedy::Show { worktree, id, write } => self.show(worktree, *id, *write)?,
            Remedy::ShowCommitted { worktree, id } => self.show_committed(worktree, *id)?,
            Remedy::RestoreReady(id) => self.restore_ready(*id)?,
            Remedy::WriteWorktreeRecord { worktree, replace } => {
                self.write_worktree_record(worktree, *replace)?;
            }
            Remedy::EndUnfinished(worktree) => unfinished::end(self.locks, worktree)?,
            Remedy::FinishRestore { worktree, .. } => self.finish_restore(worktree)?,
            Remedy::Replace { path, seen, bytes, .. } => self.replace(path, seen, bytes)?,
            Remedy::RestoreTag(told) => self.restore_tag(told)?,
            Remedy::ReplaceEntry(entry) => self.replace_entry(entry)?,
            Remedy::SetMode { path, mode } => self.patient.payloads.set_mode(path, *mode)?,
            Remedy::Remove(proof) => self.remove(proof)?,
            Remedy::RemoveTakeover(proof) => self.remove_takeover(proof)?,
            Remedy::RemoveBirth(proof) => self.remove_birth(proof)?,
            Remedy::Collect(proof) => self.collect(proof)?,
            Remedy::FinishGc(proof) => self.finish_gc(proof)?,
        }
        Ok(())
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.patient.seams.store
    }

    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        let parent = path.parent();
        if parent != RepoPath::root() && parent != layout::control_dir() {
            self.make_one(&parent)?;
        }
        self.make_one(path)?;
        self.store().sync_dir(&parent)
    }

    /// A directory that its users can use, also if it is root who repairs.
    fn make_one(&self, path: &RepoPath) -> io::Result<()> {
        match self.store().make_dir(path) {
            Ok(()) => self.patient.payloads.copy_access(&layout::control_dir(), path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        ignore(self.store().unlink(path), io::ErrorKind::NotFound)
    }

    fn remove(&self, proof: &Proof<File>) -> io::Result<()> {
        self.unlink(&proof.thing().0)
    }

    fn remove_birth(&self, proof: &Proof<Birth>) -> io::Result<()> {
        let Birth(path) = proof.thing();
        let entries = match self.store().list(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return self.unlink(path),
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            if let Some(name) = entry.name.to_str() {
                self.unlink(&path.child(name)?)?;
            }
        }
        ignore(self.store().remove_dir(path), io::ErrorKind::NotFound)
    }

    /// The empty directory that this repair sets things aside in.
    pub(super) fn aside(&self) -> io::Result<RepoPath> {
        quarantine::make(self.store(), self.op)
    }

    /// Sets something aside that is certainly not a directory: a rename over a file
    /// refuses one, so a register that was repaired meanwhile stays.
    pub(super) fn quarantine_file(&self, path: &RepoPath) -> io::Result<()> {
        let to = self.aside()?.child(path.split().1)?;
        drop(self.store().create_new(&to)?);
        self.store().rename(path, &to)
    }

    /// Puts a file in the place of another, which goes aside, in one step. What
    /// is no longer what was seen is put back.
    fn replace(&self, path: &RepoPath, seen: &[u8], bytes: &[u8]) -> Result<(), RepairError> {
        let aside = self.aside()?.child(path.split().1)?;
        self.store().write_tmp(&aside, bytes)?;
        self.store().exchange(&aside, path)?;
        if self.store().read(&aside, json::Limits::RECORD.size)? != seen {
            self.store().exchange(&aside, path)?;
            return Err(RepairError::ChangedMeanwhile);
        }
        Ok(self.store().sync_dir(&path.parent())?)
    }

    fn rewrite_format(&self, replace: bool) -> io::Result<()> {
        if replace {
            self.quarantine_file(&layout::format())?;
        }
        let bytes = FormatRecord::fresh(self.patient.seams.entropy).to_bytes();
        let tmp = layout::format_tmp(self.op);
        let written = self.store().write_new(&tmp, &layout::format(), &bytes);
        ignore(written, io::ErrorKind::AlreadyExists)
    }

    fn write_worktree_record(
        &self,
        worktree: &WorktreeName,
        replace: bool,
    ) -> Result<(), RepairError> {
        let path = layout::worktree_record(worktree);
        if replace {
            self.quarantine_file(&path)?;
        }
        if worktree.is_main() {
            self.make_dir(&layout::payload(worktree))?;
        }
        let now: WallMs = self.patient.seams.clock.now().wall;
        let record = WorktreeRecord::new(Isolation::Exclusive, now);
        let created = worktree::create(self.store(), worktree, &record, self.op);
        let is_there =
            || self.store().stat(&path).is_ok_and(|stat| stat.kind == DirEntryKind::File);
        match created {
            Err(_) if is_there() => Ok(()),
            created => Ok(created?),
        }
    }
}

/// Takes an error of that kind for success: it is done already.
pub(super) fn ignore(answer: io::Result<()>, kind: io::ErrorKind) -> io::Result<()> {
    match answer {
        Err(error) if error.kind() == kind => Ok(()),
        answer => answer,
    }
}
