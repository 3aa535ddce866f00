//! What can be done about a finding: values that say what they would do, and
//! that need a proof or a fence to do it.

use std::fmt;

use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;
use jvs_snapshot::gc::Dead;
use jvs_snapshot::staging_name::StagingName;
use jvs_snapshot::tags::LoggedTag;

use crate::proof::{Birth, File, LockRecord, Proof, Takeover, Uncollected};
use crate::rebuild::Rebuild;

/// One repair.
#[derive(Debug, Clone)]
pub enum Remedy {
    /// Makes a control directory that is missing.
    MakeDirectory(RepoPath),
    /// Writes the format again, under a new id.
    RewriteFormat {
        /// Is there a file to set aside first?
        replace: bool,
    },
    /// Gives a register a new epoch.
    Rebuild(Box<Rebuild>),
    /// Takes what has no place out of the way. Nothing is deleted.
    Quarantine {
        /// What has no place there.
        path: RepoPath,
    },
    /// Turns a lock of another tool into one of ours, or removes it if it is over.
    Migrate(WorktreeName),
    /// Takes an abandoned lock and releases it, so that its holder is fenced.
    Free(WorktreeName),
    /// Lifts a freeze that is over: the one that was surveyed and no other.
    Unfreeze {
        /// The frozen worktree.
        worktree: WorktreeName,
        /// The freeze that was surveyed.
        meant: Term,
    },
    /// Removes a lock record.
    RemoveRecord(Proof<LockRecord>),
    /// Makes a committed head visible, through the lock.
    Show {
        /// The worktree whose head it is.
        worktree: WorktreeName,
        /// The snapshot to show.
        id: SnapshotId,
        /// Does its READY have to be written first?
        write: bool,
    },
    /// Makes a committed snapshot visible whose worktree has no lock any more.
    ShowCommitted {
        /// The worktree that it was committed to.
        worktree: WorktreeName,
        /// The snapshot to show.
        id: SnapshotId,
    },
    /// Writes READY again for an ancestor of a head, which was committed.
    RestoreReady(SnapshotId),
    /// Writes metadata for a worktree that lost it.
    WriteWorktreeRecord {
        /// The worktree that lost it.
        worktree: WorktreeName,
        /// What is there cannot be read.
        replace: bool,
    },
    /// Ends an interrupted operation on a worktree: finishes it, or undoes it.
    EndUnfinished(WorktreeName),
    /// Finishes a restore in place that is committed, through the lock.
    FinishRestore {
        /// The worktree whose files are restored.
        worktree: WorktreeName,
        /// The snapshot that they are restored from.
        id: SnapshotId,
    },
    /// Puts a file in the place of one that is not as it was written.
    Replace {
        /// The file to replace.
        path: RepoPath,
        /// What it says now.
        seen: Vec<u8>,
        /// What it is to say.
        bytes: Vec<u8>,
        /// How it is known.
        how: Provenance,
    },
    /// Writes a tag again that the audit log remembers.
    RestoreTag(LoggedTag),
    /// Puts an empty file in the place of a register's entry that is something else.
    ReplaceEntry(RepoPath),
    /// Gives a control file the permissions that it should have.
    SetMode {
        /// The file or directory.
        path: RepoPath,
        /// Its permissions from now on.
        mode: u32,
    },
    /// Removes a file.
    Remove(Proof<File>),
    /// Removes what an interrupted takeover by the letter of v6.3 left.
    RemoveTakeover(Proof<Takeover>),
    /// Removes the private directory in which a register was to be born.
    RemoveBirth(Proof<Birth>),
    /// Removes a snapshot or a restore that was never finished.
    Collect(Proof<Dead>),
    /// Finishes what a garbage collection began.
    FinishGc(Proof<Uncollected>),
}

/// How it is known what a file said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// One bit was flipped.
    Flipped,
    /// The audit log says so.
    Remembered,
    /// It is not: what it says now is taken for true.
    Believed,
}

impl Remedy {
    /// May `--strict` do it without being asked to repair? Only what removes
    /// what is proven dead.
    pub fn is_cleanup(&self) -> bool {
        matches!(
            self,
            Remedy::Remove(_)
                | Remedy::RemoveTakeover(_)
                | Remedy::RemoveBirth(_)
                | Remedy::Collect(_)
                | Remedy::FinishGc(_)
        )
    }

    /// Why nobody can still need what it removes, if it removes something.
    pub fn proof(&self) -> Option<&dyn fmt::Display> {
        match self {
            Remedy::RemoveRecord(proof) => Some(proof),
            Remedy::Remove(proof) => Some(proof),
            Remedy::RemoveTakeover(proof) => Some(proof),
            Remedy::RemoveBirth(proof) => Some(proof),
            Remedy::Collect(proof) => Some(proof),
            Remedy::FinishGc(proof) => Some(proof),
            _ => None,
        }
    }

    /// Remedies are applied in this order: first what the others rest on.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Remedy::MakeDirectory(_) | Remedy::SetMode { .. } => 0,
            Remedy::RewriteFormat { .. } => 1,
            Remedy::Quarantine { .. } => 2,
            Remedy::Rebuild(_) | Remedy::ReplaceEntry(_) => 3,
            Remedy::Migrate(_) | Remedy::EndUnfinished(_) => 4,
            Remedy::Unfreeze { .. } | Remedy::Free(_) => 5,
            Remedy::RemoveRecord(_) => 6,
            Remedy::RestoreReady(_) => 7,
            Remedy::Show { .. } | Remedy::ShowCommitted { .. } | Remedy::FinishRestore { .. } => 8,
            Remedy::WriteWorktreeRecord { .. } | Remedy::Replace { .. } | Remedy::RestoreTag(_) => {
                9
            }
            Remedy::Remove(_) | Remedy::RemoveTakeover(_) | Remedy::RemoveBirth(_) => 10,
            Remedy::Collect(_) => 11,
            Remedy::FinishGc(_) => 12,
        }
    }
}

/// How a remedy is spoken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tense {
    /// What it does: “jvs doctor makes …”.
    Does,
    /// What it would do: “would make …”.
    Would,
    /// What it did: “made …”.
    Did,
}

impl Tense {
    /// A verb, from its infinitive and its past.
    fn of(self, infinitive: &str, past: &str) -> String {
        match self {
            Tense::Does if infinitive.ends_with("sh") || infinitive.ends_with('o') => {
                format!("{infinitive}es")
            }
            Tense::Does => format!("{infinitive}s"),
            Tense::Would => infinitive.to_owned(),
            Tense::Did => past.to_owned(),
        }
    }
}

impl Remedy {
    /// What it does, in a sentence without a subject.
    pub fn sentence(&self, tense: Tense) -> String {
        let verb = |infinitive, past| tense.of(infinitive, past);
        let (write, remove) = (verb("write", "wrote"), verb("remove", "removed"));
        let recreate = verb("recreate", "recreated");
        let set = verb("set", "set");
        let first = |replace| if replace { format!("{set} it aside and ") } else { String::new() };
        match self {
            Remedy::MakeDirectory(path) => format!("{} {path}", verb("make", "made")),
            Remedy::RewriteFormat { replace } => {
                format!("{}{recreate} it, with a new repository id", first(*replace))
            }
            Remedy::Rebuild(rebuild) => format!("{} it: {rebuild}", verb("rebuild", "rebuilt")),
            Remedy::Quarantine { path } => format!("{set} {path} aside, in quarantine"),
            Remedy::Migrate(worktree) => format!(
                "{} it into a freeze of worktree '{worktree}', or {remove} it as expired",
                verb("turn", "turned")
            ),
            Remedy::Free(worktree) => format!(
                "{} the lock of worktree '{worktree}' and {} it",
                verb("take", "took"),
                verb("release", "released")
            ),
            Remedy::Unfreeze { worktree, .. } => {
                format!("{} the freeze of worktree '{worktree}'", verb("lift", "lifted"))
            }
            Remedy::Show { id, write: false, .. } | Remedy::ShowCommitted { id, .. } => {
                format!("{} {id} visible", verb("make", "made"))
            }
            Remedy::Show { id, write: true, .. } => {
                format!("{recreate} READY of {id} and {} it visible", verb("make", "made"))
            }
            Remedy::RestoreReady(id) => format!("{recreate} READY of {id}"),
            Remedy::WriteWorktreeRecord { worktree, replace } => format!(
                "{}{write} metadata for worktree '{worktree}', with exclusive isolation",
                first(*replace)
            ),
            Remedy::FinishRestore { worktree, id } => {
                format!("{} restoring {id} in worktree '{worktree}'", verb("finish", "finished"))
            }
            Remedy::EndUnfinished(worktree) => format!(
                "{} or {} the interrupted operation on worktree '{worktree}'",
                verb("finish", "finished"),
                verb("undo", "undid")
            ),
            Remedy::Replace { how: Provenance::Flipped, .. } => {
                format!(
                    "{set} it aside and {} the one bit that was flipped",
                    verb("correct", "corrected")
                )
            }
            Remedy::Replace { how: Provenance::Remembered, .. } => {
                format!("{set} it aside and {recreate} it from the audit log")
            }
            Remedy::Replace { how: Provenance::Believed, .. } => {
                format!("{set} it aside and {write} its content again, with a checksum")
            }
            Remedy::RestoreTag(told) => {
                format!("{recreate} it from the audit log, for {}", told.snapshot_id)
            }
            Remedy::ReplaceEntry(_) => {
                format!("{} an empty file of that name in its place", verb("put", "put"))
            }
            Remedy::SetMode { path, mode } => {
                format!("{} {path} the mode {mode:04o}", verb("give", "gave"))
            }
            Remedy::FinishGc(proof) => finishes(&proof.thing().0, tense),
            Remedy::RemoveRecord(_)
            | Remedy::Remove(_)
            | Remedy::RemoveTakeover(_)
            | Remedy::RemoveBirth(_)
            | Remedy::Collect(_) => {
                let why = self.proof().map(ToString::to_string).unwrap_or_default();
                format!("{remove} it: {why}")
            }
        }
    }
}

/// What a collection that is finished does to what it began to remove.
fn finishes(name: &StagingName, tense: Tense) -> String {
    let delete = tense.of("delete", "deleted");
    match name {
        StagingName::Condemned { .. } => {
            let put = tense.of("put", "put");
            format!("{put} it back if somebody needs it, and otherwise {delete} it")
        }
        _ => format!("{delete} the rest of it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_spoken_of_in_three_tenses() {
        let remedy = Remedy::EndUnfinished(WorktreeName::main());
        let said = |tense| remedy.sentence(tense);
        let object = "the interrupted operation on worktree 'main'";
        assert_eq!(said(Tense::Does), format!("finishes or undoes {object}"));
        assert_eq!(said(Tense::Would), format!("finish or undo {object}"));
        assert_eq!(said(Tense::Did), format!("finished or undid {object}"));
    }
}
