//! What can be done about a finding: values that say what they would do, and
//! that need a proof or a fence to do it.

use std::fmt;

use jvs_lock::State;
use jvs_lock::decide::FrozenUnder;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;
use jvs_snapshot::gc::Dead;
use jvs_snapshot::staging_name::StagingName;
use jvs_snapshot::tags::Told;

use crate::proof::Proof;
use crate::rebuild::Rebuild;

/// One repair. Printed, it completes the sentence “jvs doctor …”.
#[derive(Debug, Clone)]
pub enum Remedy {
    /// Makes a control directory that is missing.
    MakeDirectory(RepoPath),
    /// Writes the format anew, under a new id.
    RewriteFormat {
        /// What is there is no format.
        replace: bool,
    },
    /// Gives a register a new life.
    Rebuild(Box<Rebuild>),
    /// Takes what has no place out of the way. Nothing is deleted.
    Quarantine {
        /// What.
        path: RepoPath,
    },
    /// Turns a lock of another tool into one of ours, or removes it if it is over.
    Migrate(WorktreeName),
    /// Takes an abandoned lock and releases it, so that its holder is fenced.
    Free(WorktreeName),
    /// Lifts a freeze that is over: the one that was surveyed and no other.
    Unfreeze {
        /// Whose.
        worktree: WorktreeName,
        /// Which.
        meant: FrozenUnder,
    },
    /// Removes a lock record.
    RemoveRecord {
        /// Whose.
        worktree: WorktreeName,
        /// Why it is over.
        proof: Proof,
    },
    /// Makes a committed head visible, through the lock.
    Show {
        /// Whose head.
        worktree: WorktreeName,
        /// Which.
        id: SnapshotId,
        /// Does its READY have to be written first?
        write: bool,
    },
    /// Writes READY anew for an ancestor of a head, which was committed.
    RestoreReady(SnapshotId),
    /// Writes metadata for a worktree that lost it.
    WriteWorktreeRecord {
        /// Whose.
        worktree: WorktreeName,
        /// What is there cannot be read.
        replace: bool,
    },
    /// Ends what was begun with a worktree: finishes it, or leaves all as it was.
    EndUnfinished(WorktreeName),
    /// Puts a file in the place of one that is not as it was written.
    Replace {
        /// Which.
        path: RepoPath,
        /// What it says now.
        seen: Vec<u8>,
        /// What it is to say.
        bytes: Vec<u8>,
        /// How it is known.
        how: How,
    },
    /// Writes a tag anew that the audit log remembers.
    RestoreTag(Told),
    /// Puts an empty file in the place of a register's entry that is none.
    ReplaceEntry(RepoPath),
    /// Gives a control file the permissions that it should have.
    SetMode {
        /// Which.
        path: RepoPath,
        /// Its permissions from now on.
        mode: u32,
    },
    /// Removes a file.
    Remove {
        /// Which.
        path: RepoPath,
        /// Why nobody needs it.
        proof: Proof,
    },
    /// Removes what an interrupted takeover by the letter of v6.3 left.
    RemoveTakeover {
        /// Whose lock was to be taken over.
        worktree: WorktreeName,
        /// What it says.
        seen: Vec<u8>,
        /// Why nobody needs it.
        proof: Proof,
    },
    /// Removes the private directory in which a register was to be born.
    RemoveBirth {
        /// Which.
        path: RepoPath,
        /// Why nobody needs it.
        proof: Proof,
    },
    /// Removes a snapshot or a restore that was never finished.
    Collect {
        /// What.
        dead: Dead,
        /// Why it can never be finished.
        proof: Proof,
    },
    /// Finishes what a garbage collection began.
    FinishGc(StagingName),
}

/// How it is known what a file said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// One bit was flipped.
    Flipped,
    /// The audit log tells.
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
            Remedy::Remove { .. }
                | Remedy::RemoveTakeover { .. }
                | Remedy::RemoveBirth { .. }
                | Remedy::Collect { .. }
                | Remedy::FinishGc(_)
        )
    }

    /// Remedies are applied in this order: first what the others stand on.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Remedy::MakeDirectory(_) | Remedy::SetMode { .. } => 0,
            Remedy::RewriteFormat { .. } => 1,
            Remedy::Quarantine { .. } => 2,
            Remedy::Rebuild(_) | Remedy::ReplaceEntry(_) => 3,
            Remedy::Migrate(_) | Remedy::EndUnfinished(_) => 4,
            Remedy::Unfreeze { .. } | Remedy::Free(_) => 5,
            Remedy::RemoveRecord { .. } => 6,
            Remedy::RestoreReady(_) => 7,
            Remedy::Show { .. } => 8,
            Remedy::WriteWorktreeRecord { .. } | Remedy::Replace { .. } | Remedy::RestoreTag(_) => {
                9
            }
            Remedy::Remove { .. } | Remedy::RemoveTakeover { .. } | Remedy::RemoveBirth { .. } => {
                10
            }
            Remedy::Collect { .. } => 11,
            Remedy::FinishGc(_) => 12,
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remedy::MakeDirectory(path) => write!(f, "makes {path}"),
            Remedy::RewriteFormat { replace: false } => {
                write!(f, "writes it anew, with a new repository id")
            }
            Remedy::RewriteFormat { replace: true } => {
                write!(f, "sets it aside and writes it anew, with a new repository id")
            }
            Remedy::Rebuild(rebuild) => rebuild.fmt(f),
            Remedy::Quarantine { path } => write!(f, "sets {path} aside, in quarantine"),
            Remedy::Migrate(worktree) => {
                write!(
                    f,
                    "turns it into a freeze of worktree '{worktree}', or removes it once over"
                )
            }
            Remedy::Free(worktree) => {
                write!(f, "takes the lock of worktree '{worktree}' and releases it")
            }
            Remedy::Unfreeze { worktree, .. } => {
                write!(f, "lifts the freeze of worktree '{worktree}'")
            }
            Remedy::RemoveRecord { proof, .. } => write!(f, "removes it: {proof}"),
            Remedy::Show { id, write: false, .. } => write!(f, "makes {id} visible"),
            Remedy::Show { id, write: true, .. } => {
                write!(f, "writes the READY of {id} anew and makes it visible")
            }
            Remedy::RestoreReady(id) => write!(f, "writes the READY of {id} anew"),
            Remedy::WriteWorktreeRecord { worktree, replace } => write!(
                f,
                "{}writes metadata for worktree '{worktree}', with exclusive isolation",
                if *replace { "sets it aside and " } else { "" }
            ),
            Remedy::EndUnfinished(worktree) => write!(
                f,
                "finishes what was begun with worktree '{worktree}', or leaves all as it was before"
            ),
            Remedy::Replace { how: How::Flipped, .. } => {
                write!(f, "sets it aside and puts the one bit right that was flipped in it")
            }
            Remedy::Replace { how: How::Remembered, .. } => {
                write!(f, "sets it aside and writes it anew from the audit log")
            }
            Remedy::Replace { how: How::Believed, .. } => {
                write!(f, "sets it aside and writes what it says anew, with a checksum")
            }
            Remedy::RestoreTag(told) => {
                write!(f, "writes it anew from the audit log, for {}", told.snapshot_id)
            }
            Remedy::ReplaceEntry(_) => write!(f, "puts an empty file of that name in its place"),
            Remedy::SetMode { path, mode } => write!(f, "gives {path} the mode {mode:04o}"),
            Remedy::Remove { proof, .. }
            | Remedy::RemoveTakeover { proof, .. }
            | Remedy::RemoveBirth { proof, .. }
            | Remedy::Collect { proof, .. } => write!(f, "removes it: {proof}"),
            Remedy::FinishGc(StagingName::Condemned { .. }) => {
                write!(f, "puts it back if somebody needs it, and deletes it if not")
            }
            Remedy::FinishGc(_) => write!(f, "deletes the rest of it"),
        }
    }
}

/// Is `entry` of a register one that a later version of JVS wrote?
pub(crate) fn is_later_format(entry: &str) -> bool {
    let format = entry.split('.').next().unwrap_or_default();
    entry.parse::<State>().is_err()
        && format.parse::<u64>().is_ok_and(|number| number > 2)
        && entry.split('.').count() > 4
}
