//! Repairs of fence registers: a new epoch above everything that is remembered.

use std::io;

use jvs_lock::rebuild as reborn;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;

use super::RepairError;
use super::hand::{Hand, ignore};
use crate::read::Read;
use crate::rebuild::{Rebuild, Ruin};

const REASON: &str = "its register was lost, damaged or rolled back";

impl Hand<'_, '_, '_, '_> {
    pub(super) fn rebuild(&self, rebuild: &Rebuild) -> Result<(), RepairError> {
        let worktree = &rebuild.worktree;
        let dir = layout::register(worktree);
        let entropy = self.patient.seams.entropy;
        let state = rebuild.state(entropy);
        match &rebuild.ruin {
            Ruin::Nothing => {}
            Ruin::NotADirectory => self.quarantine_file(&dir)?,
            Ruin::Garbled(entries) => {
                self.set_entries_aside(&dir, entries)?;
                if let Ok(read) = Read::register(self.patient, worktree) {
                    // One that is a state was among them, and is the register.
                    let above = rebuild.above(&read, entropy);
                    reborn::replace(self.locks, worktree, &read, above, REASON)?;
                    return Ok(());
                }
            }
            Ruin::States(states) => {
                let (keep, rest) = states.split_first().ok_or(RepairError::NoEntry)?;
                // First the new epoch, then the leftovers: a process that is interrupted
                // in between leaves several entries, of which the new one wins.
                reborn::replace(self.locks, worktree, keep, state, REASON)?;
                for other in rest {
                    self.unlink(&dir.child(&other.to_string())?)?;
                }
                return Ok(());
            }
        }
        self.install(worktree, &dir, state)
    }

    fn set_entries_aside(&self, dir: &RepoPath, entries: &[String]) -> io::Result<()> {
        let aside = self.aside()?;
        for entry in entries {
            let moved = self.store().rename_new(&dir.child(entry)?, &aside.child(entry)?);
            ignore(moved, io::ErrorKind::NotFound)?;
        }
        Ok(())
    }

    /// Puts a register where there is none.
    fn install(
        &self,
        worktree: &WorktreeName,
        dir: &RepoPath,
        state: jvs_lock::State,
    ) -> Result<(), RepairError> {
        for entry in self.store().list(dir).unwrap_or_default() {
            // They are not counted, but would keep the directory.
            if let Some(name) = entry.name.to_str().filter(|name| layout::is_probe_scratch(name)) {
                self.unlink(&dir.child(name)?)?;
            }
        }
        reborn::install(self.locks, worktree, state, REASON)?;
        Ok(())
    }

    /// Puts an empty file in the place of an entry that is something else. An
    /// exchange needs both to be there, so a register that moved on stays as it is.
    pub(super) fn replace_entry(&self, entry: &RepoPath) -> io::Result<()> {
        let aside = self.aside()?.child("entry")?;
        drop(self.store().create_new(&aside)?);
        self.store().exchange(&aside, entry)?;
        self.store().sync_dir(&entry.parent())
    }
}
