//! Files of a snapshot back among the living: as a new worktree, or in place of
//! the files of one, swapped in one step.
//!
//! What is restored is always a copy or a clone, checked against the snapshot's
//! manifest before anybody sees it; a worktree never shares an inode with a
//! snapshot.

mod error;
mod swap;

use std::path::Path;

use jvs_lock::worktrees::{self, Base};
use jvs_lock::{Lease, Locks, State};
use jvs_repo::audit::{Kind, Phase as Told};
use jvs_repo::config::{Consistency, Engine};
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{Isolation, WorktreeRecord};
use jvs_repo::store::{PosixStore, RepoPath};
use serde_json::json;

use crate::aside::doom;
use crate::compare::Difference;
use crate::diff;
use crate::error::SnapshotError;
use crate::fidelity::Degraded;
use crate::progress::Progress;
use crate::publish::Snapshots;
use crate::ready::Ready;
use crate::stage::{Options, capture};
use crate::staging_name::StagingName;
use crate::take::while_renewing;

pub use error::RestoreError;
pub use swap::{Swapped, check_paths, swap_paths, swap_whole};

/// A repository whose snapshots are restored.
#[derive(Clone, Copy)]
pub struct Restore<'r> {
    /// Its snapshots.
    pub at: Snapshots<'r>,
    /// Its files.
    pub store: &'r PosixStore,
    /// What copies them.
    pub engine: Engine,
}

/// A tree in `staging/`, equal to a snapshot's, that nobody sees yet.
#[must_use = "a copy that is dropped stays on disk until it is collected"]
pub struct Copied {
    name: StagingName,
    /// What the copy has not.
    pub degraded: Degraded,
}

impl Copied {
    /// The directory that holds the tree.
    pub fn dir(&self) -> RepoPath {
        self.name.path()
    }

    /// The tree.
    pub fn tree(&self) -> RepoPath {
        layout::snapshot_payload(&self.dir())
    }
}

/// A worktree that was made from a snapshot.
#[derive(Debug)]
pub struct Restored {
    /// Its record.
    pub record: WorktreeRecord,
    /// What its files have not.
    pub degraded: Degraded,
}

/// What is to be restored in place.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'w> {
    /// Which snapshot's files.
    pub source: &'w Ready,
    /// A snapshot of the worktree's files as they are now, if there are any.
    pub kept: Option<&'w Ready>,
    /// Only those, relative to the worktree; all if there are none.
    pub paths: &'w [RepoPath],
    /// Why, for the audit log.
    pub reason: &'w str,
}

/// What a swap did besides.
#[derive(Debug)]
pub struct InPlace {
    /// What the new files have not.
    pub degraded: Degraded,
    /// Where the old files are, if somebody wrote to them after they were last
    /// captured: then they are not thrown away.
    pub left: Option<(RepoPath, Vec<Difference>)>,
}

impl<'r> Restore<'r> {
    /// Copies a snapshot's tree to `staging/` under a name that says for whom.
    pub fn copy(
        &self,
        source: &Ready,
        worktree: &WorktreeName,
        state: &State,
        progress: &dyn Progress,
    ) -> Result<Copied, RestoreError> {
        let seams = self.at.seams;
        let name = StagingName::Restore {
            worktree: worktree.clone(),
            epoch: state.epoch,
            token: state.token,
            source: source.id(),
            op: OpNonce::random(seams.entropy),
        };
        let dir = name.path();
        seams.store.make_dir(&dir).map_err(SnapshotError::io("make a directory to restore to"))?;
        let copied = self.copy_to(source, &dir, progress);
        match copied {
            Ok(degraded) => Ok(Copied { name, degraded }),
            Err(error) => {
                let _ = doom(seams, self.at.trees, &dir);
                Err(error)
            }
        }
    }

    fn copy_to(
        &self,
        source: &Ready,
        dir: &RepoPath,
        progress: &dyn Progress,
    ) -> Result<Degraded, RestoreError> {
        let options = Options {
            engine: self.engine,
            consistency: Consistency::Quiesced,
            full: true,
            ..Options::default()
        };
        let from = self.store.absolute(&layout::snapshot_payload(&source.dir()));
        let to = self.store.absolute(dir);
        let captured = capture(&from, &to, None, &options, self.at.seams.clock, progress)?;
        let expected = source.descriptor().payload_root_hash;
        if captured.payload_root_hash != expected && captured.degraded.is_exact() {
            let problem = "the copy has another root hash; see `jvs verify`".to_owned();
            return Err(SnapshotError::Mismatch { id: source.id(), problem }.into());
        }
        Ok(captured.degraded)
    }

    /// Makes a worktree with the files of a snapshot, which becomes its head.
    pub fn to_new_worktree(
        &self,
        locks: &Locks<'_>,
        source: &Ready,
        name: &WorktreeName,
        isolation: Isolation,
        progress: &dyn Progress,
    ) -> Result<Restored, RestoreError> {
        let base = Base { head: source.id(), generation: source.descriptor().commit_seq };
        let begun = worktrees::begin_from(locks, name, isolation, base)?;
        // Only now is the snapshot a head that nobody collects: whoever was
        // collecting it already shows by its absence.
        let copied = match self.at.catalog().open(source.id()) {
            Ok(source) => self.copy(&source, name, begun.state(), progress),
            Err(error) => Err(error.into()),
        };
        let copied = match copied {
            Ok(copied) => copied,
            Err(error) => {
                begun.undo();
                return Err(error);
            }
        };
        let finished = begun.finish(&copied.tree());
        // The manifest of the copy, and all of it if the worktree was not made.
        let _ = doom(self.at.seams, self.at.trees, &copied.dir());
        Ok(Restored { record: finished?, degraded: copied.degraded })
    }

    /// Puts the files of a snapshot in the place of a worktree's.
    pub fn in_place(
        &self,
        locks: &Locks<'_>,
        lease: &mut Lease<'_>,
        wish: &Wish<'_>,
        progress: &dyn Progress,
    ) -> Result<InPlace, RestoreError> {
        let Wish { source, kept, paths, reason } = *wish;
        let worktree = lease.worktree().clone();
        let state = lease.fence()?.read()?;
        let copied = while_renewing(lease, self.at.seams.clock, progress, |progress| {
            self.copy(source, &worktree, &state, progress)
        });
        let copied = match copied {
            Ok(copied) => copied,
            Err(error) => {
                // What happened to the lease says more than that the copy stopped.
                lease.fence()?;
                return Err(error);
            }
        };
        let op = OpNonce::random(self.at.seams.entropy);
        let details = json!({
            "snapshot_id": source.id(),
            "kept": kept.map(Ready::id),
            "paths": paths.iter().take(50).map(RepoPath::as_str).collect::<Vec<_>>(),
        });
        let note = |phase| {
            locks.note(
                Kind::Restore,
                phase,
                op,
                Some(&worktree),
                Some(reason),
                Some(details.clone()),
            )
        };
        let swapped = note(Told::Intent)
            .map_err(SnapshotError::io("write the audit log"))
            .map_err(RestoreError::from)
            .and_then(|()| match paths {
                [] => swap_whole(self.at.seams, lease, &copied.tree()),
                paths => {
                    swap_paths(self.at.seams, lease, &copied.tree(), paths, source.id()).map(|_| ())
                }
            });
        if let Err(error) = swapped {
            let _ = note(Told::NotApplied);
            let _ = doom(self.at.seams, self.at.trees, &copied.dir());
            return Err(error);
        }
        let _ = note(Told::Done);
        let changed = match kept.filter(|_| paths.is_empty()) {
            Some(kept) => {
                let old = self.store.absolute(&copied.tree());
                self.written_since(kept, &old, progress)?
            }
            None => Vec::new(),
        };
        let left = match changed.is_empty() {
            true => {
                doom(self.at.seams, self.at.trees, &copied.dir())
                    .map_err(SnapshotError::io("remove the old files"))?;
                None
            }
            false => Some((copied.tree(), changed)),
        };
        Ok(InPlace { degraded: copied.degraded, left })
    }

    /// What somebody wrote to the old files after they were captured.
    fn written_since(
        &self,
        kept: &Ready,
        old: &Path,
        progress: &dyn Progress,
    ) -> Result<Vec<Difference>, SnapshotError> {
        let mut changed = diff::since(self.at.seams.store, kept, old, progress)?;
        changed.retain(Difference::is_of_substance);
        Ok(changed)
    }
}
