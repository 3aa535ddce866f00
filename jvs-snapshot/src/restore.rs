//! Files of a snapshot back among the living: as a new worktree, or in place of
//! the files of one, path by path or swapped in one step.
//!
//! What is restored is always a copy or a clone, checked against the snapshot's
//! manifest before anybody sees it; a worktree never shares an inode with a
//! snapshot.

mod check;
mod error;
mod in_parts;
mod journal;
pub mod leftover;
mod log;
mod movable;
mod patch;
mod plan;
mod replace;
mod swap;

use std::path::Path;

use jvs_lock::worktrees::{self, Base};
use jvs_lock::{Lease, Locks, State};
use jvs_repo::config::{Consistency, Engine};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{Isolation, WorktreeRecord};
use jvs_repo::store::{PosixStore, RepoPath};
use jvs_repo::term::Term;

use crate::aside::delete_dir;
use crate::chosen::{ChosenPaths, Lies};
use crate::compare::{ComparedFiles, SeenFiles};
use crate::descriptor::Loss;
use crate::diff;
use crate::error::SnapshotError;
use crate::ignore::{self, IgnoreRules};
use crate::manifest::TreePath;
use crate::progress::Progress;
use crate::publish::Snapshots;
use crate::ready::Ready;
use crate::stage::{CaptureError, Captured, Options, Parent, Source, capture};
use crate::staging_name::StagingName;
use crate::stored::unread;
use crate::under_lease::while_renewing;

use check::check_copy;
use movable::first_stuck;

pub use error::{Half, RestoreError, UnfinishedRestore};
pub use in_parts::{FinishedRestore, finish_all, finish_interrupted, put};
pub use journal::{JournalStep, RestoreJournal};
pub use plan::{Deed, RestorePlan, plan};
pub use replace::replace;
pub use swap::{Stopped, Swap, Swapped, check_paths, check_worktree};

/// A repository whose snapshots are restored.
#[derive(Clone, Copy)]
pub struct Restore<'r> {
    /// Its snapshots.
    pub at: Snapshots<'r>,
    /// Its files.
    pub store: &'r PosixStore,
    /// What copies them.
    pub engine: Engine,
    /// What is ignored in each worktree, besides what files of rules in it say.
    pub ignore: &'r IgnoreRules,
}

/// A tree in `staging/`, equal to a snapshot's, that nobody sees yet.
#[must_use = "a copy that is dropped stays on disk until it is collected"]
pub struct Copied {
    worktree: WorktreeName,
    term: Term,
    source: SnapshotId,
    op: OpNonce,
    /// What the copy has not.
    pub degraded: Vec<Loss>,
}

impl Copied {
    /// Takes the caller's word that the tree in [`Copied::dir`] equals that of `source`. For
    /// payload trees that no engine can copy, as simulated ones.
    pub fn assume_equal(
        worktree: &WorktreeName,
        term: Term,
        source: SnapshotId,
        op: OpNonce,
    ) -> Self {
        Copied { worktree: worktree.clone(), term, source, op, degraded: Vec::new() }
    }

    /// The directory that holds the tree.
    pub fn dir(&self) -> RepoPath {
        let Copied { worktree, term, source, op, .. } = self;
        let (worktree, term, source, op) = (worktree.clone(), *term, *source, *op);
        StagingName::Restore { worktree, term, source, op }.path()
    }

    /// The directory under the name that says that a worktree's own files may be in it.
    fn offered(&self, kept: Option<SnapshotId>) -> RepoPath {
        let Copied { worktree, term, source, op, .. } = self;
        let (worktree, term, source, op) = (worktree.clone(), *term, *source, *op);
        StagingName::Swap { worktree, term, source, kept, op }.path()
    }

    /// The directory under the name that says that it is being put in a worktree's place,
    /// path by path.
    fn committed(&self, kept: Option<SnapshotId>) -> RepoPath {
        let Copied { worktree, term, source, op, .. } = self;
        let (worktree, term, source, op) = (worktree.clone(), *term, *source, *op);
        StagingName::Patch { worktree, term, source, kept, op }.path()
    }

    /// The tree.
    pub fn tree(&self) -> RepoPath {
        layout::snapshot_payload(&self.dir())
    }
}

/// A worktree that was made from a snapshot.
#[derive(Debug)]
pub struct RestoredWorktree {
    /// Its record.
    pub record: WorktreeRecord,
    /// What its files have not.
    pub degraded: Vec<Loss>,
}

/// What is to be restored in place.
#[derive(Debug, Clone, Copy)]
pub struct RestoreRequest<'w> {
    /// Which snapshot's files.
    pub source: &'w Ready,
    /// A snapshot of the files that are replaced, if there are any.
    pub kept: Option<&'w Ready>,
    /// Only those; all if nothing is chosen.
    pub chosen: Option<&'w ChosenPaths>,
    /// Why, for the audit log.
    pub reason: Option<&'w str>,
}

/// What a swap did besides.
#[derive(Debug, Default)]
pub struct InPlace {
    /// What the new files have not.
    pub degraded: Vec<Loss>,
    /// The old files, if they are not thrown away.
    pub left: Option<Left>,
    /// Paths that have no place any more, because somebody took away what they were in.
    pub unplaced: Vec<TreePath>,
}

/// Old files that no snapshot is known to have.
#[derive(Debug)]
pub struct Left {
    /// Where they are.
    pub path: RepoPath,
    /// Which of them somebody wrote to after they were last captured, or why that
    /// cannot be told.
    pub why: Result<Vec<TreePath>, String>,
}

impl<'r> Restore<'r> {
    /// Copies a snapshot's tree, or what is chosen of it, to `staging/` under a
    /// name that says for whom.
    pub fn copy(
        &self,
        source: &Ready,
        chosen: Option<&ChosenPaths>,
        worktree: &WorktreeName,
        state: &State,
        progress: &dyn Progress,
    ) -> Result<Copied, RestoreError> {
        let seams = self.at.seams;
        let op = OpNonce::random(seams.entropy);
        let (worktree, term, degraded) = (worktree.clone(), state.term(), Vec::new());
        let copied = Copied { worktree, term, source: source.id(), op, degraded };
        let dir = copied.dir();
        seams
            .store
            .ensure_dir(&dir)
            .map_err(SnapshotError::io("make a directory to restore to"))?;
        match self.copy_to(source, chosen, &dir, progress) {
            Ok(degraded) => Ok(Copied { degraded, ..copied }),
            Err(error) => {
                let _ = delete_dir(&self.at, &dir);
                Err(error)
            }
        }
    }

    fn copy_to(
        &self,
        source: &Ready,
        chosen: Option<&ChosenPaths>,
        dir: &RepoPath,
        progress: &dyn Progress,
    ) -> Result<Vec<Loss>, RestoreError> {
        let options = Options {
            engine: self.engine,
            consistency: Consistency::Quiesced,
            full: true,
            only: chosen.cloned(),
            published: true,
            of: Some(Parent {
                directory: self.store.absolute(&source.dir()),
                manifest_hash: source.descriptor().content.manifest_hash,
                boot_id: None,
            }),
            ..Options::default()
        };
        let tree = layout::snapshot_payload(&source.dir());
        let from = self.store.absolute(&tree);
        let to = self.store.absolute(dir);
        let clock = self.at.seams.clock;
        let captured = Source::open(&from)
            .and_then(|from| capture(&from, &to, None, &options, clock, progress));
        let Captured { content, .. } = captured.map_err(|error| self.unread(&tree, error))?;
        if content.payload_root_hash != source.descriptor().content.payload_root_hash {
            let exact = content.degraded.is_empty();
            check_copy(self.store, source, chosen, dir, exact)?;
        }
        Ok(content.degraded)
    }

    /// A copy failed. Of files that are a user's, what cannot be read makes a snapshot
    /// partial; of those of a snapshot it says who may not, or that the disk failed.
    fn unread(&self, tree: &RepoPath, error: CaptureError) -> RestoreError {
        let CaptureError::Walk(error) = error else { return error.into() };
        match error.into_unread() {
            Ok((path, error)) => unread(self.store, tree, &path, error).into(),
            Err(error) => CaptureError::Walk(error).into(),
        }
    }

    /// Makes a worktree with the files of a snapshot, which becomes its head.
    pub fn to_new_worktree(
        &self,
        locks: &Locks<'_>,
        source: &Ready,
        name: &WorktreeName,
        isolation: Isolation,
        progress: &dyn Progress,
    ) -> Result<RestoredWorktree, RestoreError> {
        let base = Base { head: source.id(), generation: source.descriptor().commit_seq };
        let begun = worktrees::begin_from(locks, name, isolation, base)?;
        // Only now is the snapshot a head that nobody collects: a process that was
        // collecting it already shows by its absence.
        let copied = match self.at.catalog().open(source.id()) {
            Ok(source) => self.copy(&source, None, name, begun.state(), progress),
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
        let _ = delete_dir(&self.at, &copied.dir());
        Ok(RestoredWorktree { record: finished?, degraded: copied.degraded })
    }

    /// What has to be done to the files of `worktree`, which are at `root`, so that they
    /// are those of `source`: as `status` sees it. `None` if not every path of it can be
    /// moved, or there are more than can be written down, so that only all files can be
    /// swapped at once. With what was seen of the files, if it is all of them.
    pub fn plan(
        &self,
        source: &Ready,
        worktree: &WorktreeName,
        root: &Path,
        progress: &dyn Progress,
    ) -> Result<Option<(RestorePlan, Option<SeenFiles>)>, SnapshotError> {
        let trust = diff::trust(source, root, &self.at.seams.clock.boot_id());
        let files = ComparedFiles::of(root, self.ignore);
        let (plan, seen) = plan(self.store, source, files, trust, progress)?;
        let (there, from) = (layout::payload(worktree), layout::snapshot_payload(&source.dir()));
        let steps = plan.deeds();
        let stuck = first_stuck(self.store, &there, &from, steps).is_some();
        Ok((!stuck && plan.fits_a_journal()).then_some((plan, seen)))
    }

    /// The same for `chosen` paths, whatever is there; all of them are in the snapshot. What
    /// is ignored in one of them stays; one that is ignored itself is restored, because it was
    /// chosen. `None` if there is one step only: that is all old or all new by itself.
    pub fn plan_chosen(
        &self,
        source: &Ready,
        worktree: &WorktreeName,
        chosen: &ChosenPaths,
        progress: &dyn Progress,
    ) -> Result<Option<RestorePlan>, SnapshotError> {
        let (there, from) = (layout::payload(worktree), layout::snapshot_payload(&source.dir()));
        let root = self.store.absolute(&there);
        let steps = swap::steps(self.store, &there, chosen)?;
        let ignored = self.ignored_in(source, &root, Some(chosen))?;
        let (apart, whole): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| {
            ignored.iter().any(|path| path.as_path().starts_with(step.path.as_path()))
        });
        if apart.is_empty() && whole.len() < 2 {
            return Ok(None);
        }
        let mut all = RestorePlan::of(whole.into_iter().map(|step| {
            let deed = if step.replaces { Deed::Replace } else { Deed::Put };
            (step.path, deed)
        }));
        if let Some(apart) = ChosenPaths::new(apart.into_iter().map(|step| step.path)) {
            let trust = diff::trust(source, &root, &self.at.seams.clock.boot_id());
            let files = ComparedFiles::of(&root, self.ignore).only(Some(&apart));
            all = all.and(plan(self.store, source, files, trust, progress)?.0);
        }
        let all = all.that_fits()?;
        match first_stuck(self.store, &there, &from, all.deeds()) {
            None => Ok(Some(all)),
            Some((path, source)) => {
                let doing = format!("put the restored files in the place of {path}");
                Err(SnapshotError::Io { doing, source })
            }
        }
    }

    /// Is nothing ignored in what is chosen, or in all of it, so that it can be swapped as it
    /// is?
    pub fn check_ignored(
        &self,
        source: &Ready,
        worktree: &WorktreeName,
        chosen: Option<&ChosenPaths>,
    ) -> Result<(), SnapshotError> {
        let root = self.store.absolute(&layout::payload(worktree));
        let ignored = self.ignored_in(source, &root, chosen)?;
        match ignored.first().map(TreePath::to_string) {
            Some(path) => Err(SnapshotError::IgnoredInside { path, count: ignored.len() }),
            None => Ok(()),
        }
    }

    /// What is ignored, by the rules in the worktree at `root` or those of `source`, and lies
    /// in what is chosen without being chosen itself.
    fn ignored_in(
        &self,
        source: &Ready,
        root: &Path,
        chosen: Option<&ChosenPaths>,
    ) -> Result<Vec<TreePath>, SnapshotError> {
        let of_source = IgnoreRules::of_record(&source.descriptor().content.ignore_rules);
        let files =
            ComparedFiles { ignore_too: Some(&of_source), ..ComparedFiles::of(root, self.ignore) };
        let mut ignored = ignore::list(&files.only(chosen)).map_err(SnapshotError::Unreadable)?;
        if let Some(chosen) = chosen {
            let above = |path: &TreePath| path.split().map(|(above, _)| above);
            let is_within = |path: &TreePath| {
                above(path).is_some_and(|above| chosen.lies(&above) == Lies::Inside)
            };
            ignored.retain(|ignored| is_within(&ignored.path));
        }
        Ok(ignored.into_iter().map(|ignored| ignored.path).collect())
    }

    /// What brings `chosen` paths back as they were in `source`: those that it has not, or
    /// all if there is none, go.
    pub fn plan_back(
        &self,
        source: Option<&Ready>,
        worktree: &WorktreeName,
        chosen: &ChosenPaths,
    ) -> Result<RestorePlan, SnapshotError> {
        let there = layout::payload(worktree);
        let mut deeds = Vec::new();
        for step in swap::steps(self.store, &there, chosen)? {
            let only = ChosenPaths::new([step.path.clone()]);
            let had = match (source, &only) {
                (Some(source), Some(only)) => {
                    let tree = layout::snapshot_payload(&source.dir());
                    match check_paths(self.store, &tree, only, source.id()) {
                        Err(SnapshotError::NoSuchPath { .. }) => false,
                        answer => answer.map(|()| true)?,
                    }
                }
                _ => false,
            };
            match (had, step.replaces) {
                (true, true) => deeds.push((step.path, Deed::Replace)),
                (true, false) => deeds.push((step.path, Deed::Put)),
                (false, true) => deeds.push((step.path, Deed::Remove)),
                (false, false) => {}
            }
        }
        let plan = RestorePlan::of(deeds).that_fits()?;
        let from = source.map_or_else(|| there.clone(), |it| layout::snapshot_payload(&it.dir()));
        match first_stuck(self.store, &there, &from, plan.deeds()) {
            None => Ok(plan),
            Some((path, source)) => {
                let doing = format!("bring {path} back");
                Err(SnapshotError::Io { doing, source })
            }
        }
    }

    /// Puts what `plan` says of the files of a snapshot in a worktree, path by path.
    pub fn in_parts(
        &self,
        locks: &Locks<'_>,
        lease: &mut Lease<'_>,
        wish: &RestoreRequest<'_>,
        plan: &RestorePlan,
        progress: &dyn Progress,
    ) -> Result<InPlace, RestoreError> {
        let worktree = lease.worktree().clone();
        let state = lease.fence()?.read()?;
        let copied = while_renewing(lease, self.at.seams.clock, progress, |progress| {
            match wish.chosen.cloned().or_else(|| plan.installed()) {
                Some(chosen) => self.copy(wish.source, Some(&chosen), &worktree, &state, progress),
                None => self.copy_nothing(wish.source, &worktree, &state),
            }
        });
        put(&self.at, self.store, locks, lease, copied?, plan, wish)
    }

    /// A place for what is removed, where nothing comes from the snapshot.
    fn copy_nothing(
        &self,
        source: &Ready,
        worktree: &WorktreeName,
        state: &State,
    ) -> Result<Copied, RestoreError> {
        let seams = self.at.seams;
        let op = OpNonce::random(seams.entropy);
        let copied = Copied::assume_equal(worktree, state.term(), source.id(), op);
        let made = seams
            .store
            .ensure_dir(&copied.dir())
            .and_then(|()| seams.store.ensure_dir(&copied.tree()));
        match made {
            Ok(()) => Ok(copied),
            Err(source) => {
                let _ = delete_dir(&self.at, &copied.dir());
                Err(SnapshotError::Io { doing: "make a directory to restore to".into(), source }
                    .into())
            }
        }
    }

    /// Swaps the files of a worktree with those of a snapshot, all of them in one step, or
    /// the chosen paths one after the other, of which a death leaves some undone.
    pub fn in_place(
        &self,
        locks: &Locks<'_>,
        lease: &mut Lease<'_>,
        wish: &RestoreRequest<'_>,
        progress: &dyn Progress,
    ) -> Result<InPlace, RestoreError> {
        let worktree = lease.worktree().clone();
        let state = lease.fence()?.read()?;
        if let Some(chosen) = wish.chosen {
            let tree = layout::snapshot_payload(&wish.source.dir());
            check_paths(self.store, &tree, chosen, wish.source.id())?;
        }
        self.check_ignored(wish.source, &worktree, wish.chosen)?;
        let copied = while_renewing(lease, self.at.seams.clock, progress, |progress| {
            self.copy(wish.source, wish.chosen, &worktree, &state, progress)
        });
        replace(&self.at, self.store, locks, lease, copied?, wish)
    }
}
