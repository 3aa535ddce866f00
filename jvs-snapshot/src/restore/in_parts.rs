//! From a copy of what differs to files in their places, path by path: committed by a
//! rename of the directory that it is in, and finished by the holder of the lock.

use jvs_lock::register::Register;
use jvs_lock::{Lease, LeaseError, Locks};
use jvs_repo::audit::EventPhase;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::audit::Restored;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;

use super::journal::RestoreJournal;
use super::leftover::discard;
use super::log::RestoreLog;
use super::patch::{AppliedPatch, Grip, PatchRun, trees_in};
use super::plan::{RestorePlan, steps};
use super::replace::{judged, some};
use super::swap::sure;
use super::{Copied, InPlace, Left, RestoreError, RestoreRequest, UnfinishedRestore};
use crate::aside::{delete_dir, move_dir};
use crate::chosen::ChosenPaths;
use crate::error::SnapshotError;
use crate::gc::StagingContents;
use crate::manifest::{Entry, EntryKind, TreePath};
use crate::mutation::Rule;
use crate::publish::Snapshots;
use crate::ready::Ready;
use crate::staging_name::StagingName;
use crate::stored::{not_believed, proven_manifest};
use crate::trees::{Spot, Spots, make_all_above};

/// How often `staging/` is listed anew because something moved on meanwhile.
const ROUNDS: u32 = 4;

/// A restore that somebody else began and that has come to its end.
#[derive(Debug)]
pub struct FinishedRestore {
    /// Which snapshot was restored.
    pub restored: SnapshotId,
    /// The files that were there before, if they are not thrown away.
    pub left: Option<Left>,
    /// Paths that have no place any more.
    pub unplaced: Vec<TreePath>,
}

/// What its name in `staging/` says of a committed restore.
#[derive(Clone)]
struct Committed {
    worktree: WorktreeName,
    term: Term,
    source: SnapshotId,
    kept: Option<SnapshotId>,
    op: OpNonce,
}

impl Committed {
    fn of(name: StagingName) -> Option<Self> {
        let StagingName::Patch { worktree, term, source, kept, op } = name else { return None };
        Some(Committed { worktree, term, source, kept, op })
    }

    fn dir(&self) -> RepoPath {
        let Committed { worktree, term, source, kept, op } = self.clone();
        StagingName::Patch { worktree, term, source, kept, op }.path()
    }

    /// Where it is once everything is in its place: what is left are the old files.
    fn over(&self) -> RepoPath {
        let Committed { worktree, term, source, kept, op } = self.clone();
        StagingName::Swap { worktree, term, source, kept, op }.path()
    }

    fn told(&self, chosen: Option<&ChosenPaths>, left: Option<&Left>) -> Restored {
        Restored {
            snapshot_id: self.source,
            kept: self.kept,
            paths: chosen.map_or_else(Vec::new, |chosen| some(chosen.paths())),
            half: None,
            left: left.map(|left| left.path.to_string()),
        }
    }
}

/// Does what `plan` says to the worktree of `lease`; `copied` has what comes from
/// `wish.source`.
pub fn put(
    at: &Snapshots<'_>,
    spots: &dyn Spots,
    locks: &Locks<'_>,
    lease: &mut Lease<'_>,
    copied: Copied,
    plan: &RestorePlan,
    wish: &RestoreRequest<'_>,
) -> Result<InPlace, RestoreError> {
    let this = Committed {
        worktree: lease.worktree().clone(),
        term: copied.term,
        source: copied.source,
        kept: wish.kept.map(Ready::id),
        op: copied.op,
    };
    let log = RestoreLog { locks, op: this.op, worktree: &this.worktree, reason: wish.reason };
    let prepared = prepare(at, spots, &copied, plan).and_then(|journal| {
        log.announce(this.told(wish.chosen, None))?;
        Ok(journal)
    });
    let committed = match prepared {
        Ok(journal) => commit(at, lease, &copied, &this).map(|()| journal),
        Err(error) => Err((true, error.into())),
    };
    let journal = match committed {
        Ok(journal) => journal,
        Err((true, error)) => {
            let _ = log.note(EventPhase::NotApplied, this.told(wish.chosen, None));
            let _ = delete_dir(at, &copied.dir());
            let _ = at.seams.store.remove(&layout::restore_mark(&this.worktree, this.op));
            return Err(error);
        }
        Err((false, cause)) => {
            let _ = log.note(EventPhase::Unknown, this.told(wish.chosen, None));
            return Err(unfinished(&this, false, cause));
        }
    };
    let tree = layout::snapshot_payload(&this.dir());
    let applied = apply(at, spots, lease, &this, &journal, Some(&tree), plan.directories());
    let applied = applied.map_err(|cause| {
        let _ = log.note(EventPhase::Unknown, this.told(wish.chosen, None));
        unfinished(&this, true, cause)
    })?;
    let left = end(at, &this, &journal);
    let _ = log.note(EventPhase::Done, this.told(wish.chosen, left.as_ref()));
    let mut degraded = copied.degraded;
    degraded.extend(applied.degraded);
    Ok(InPlace { degraded, left, unplaced: applied.unplaced })
}

fn unfinished(this: &Committed, certain: bool, cause: RestoreError) -> RestoreError {
    RestoreError::Unfinished(Box::new(UnfinishedRestore { restored: this.source, certain, cause }))
}

/// Writes down, beside the copy, all that is to be done with it.
fn prepare(
    at: &Snapshots<'_>,
    spots: &dyn Spots,
    copied: &Copied,
    plan: &RestorePlan,
) -> Result<RestoreJournal, SnapshotError> {
    let tree = copied.tree();
    let stuck = |path: &TreePath| SnapshotError::io(format!("prepare to restore {path}"));
    let steps = steps(plan, |path| {
        let seen = spots.look(Spot { tree: &tree, path }).map_err(stuck(path))?;
        Ok::<u64, SnapshotError>(seen.identity.1)
    })?;
    let removed = steps.iter().filter(|step| step.inode.is_none()).map(|step| &step.path);
    make_all_above(spots, &tree, removed)
        .map_err(SnapshotError::io("make room for what is removed"))?;
    let directories = plan.directories().iter().map(|entry| entry.path.clone()).collect();
    let journal = RestoreJournal { steps, directories };
    journal.write(at.seams.store, &copied.dir())?;
    Ok(journal)
}

/// From here on it is done, by one process or another. The mark is there before the lease
/// is renewed, so that the next holder sees it; then the directory gets the name that says
/// that it is committed, unless the next holder has taken it away. On failure, says
/// whether it certainly is not.
fn commit(
    at: &Snapshots<'_>,
    lease: &mut Lease<'_>,
    copied: &Copied,
    this: &Committed,
) -> Result<(), (bool, RestoreError)> {
    let seams = at.seams;
    let stuck = || SnapshotError::io("commit the restore");
    let mark = layout::restore_mark(&this.worktree, this.op);
    let marked = seams.store.create_own(&mark).and_then(|_| seams.store.sync_dir(&mark.parent()));
    marked.map_err(|error| (true, stuck()(error).into()))?;
    let held = sure(lease).map_err(|error| (true, error))?;
    if held != this.term {
        let (worktree, token, current) = (this.worktree.clone(), this.term.token, held.token);
        return Err((true, LeaseError::Fenced { worktree, token, current }.into()));
    }
    if let Err(error) = move_dir(seams, &copied.dir(), &copied.committed(this.kept)) {
        // Once it is out of the way it can never be committed.
        let certain = delete_dir(at, &copied.dir()).is_ok()
            && seams.store.is_there(&this.dir()).is_ok_and(|there| !there);
        let lost = confirm(at, this).err();
        return Err((certain, lost.unwrap_or_else(|| stuck()(error).into())));
    }
    Ok(())
}

/// Nobody else held the lock up to now: asks the register and not the clock.
fn confirm(at: &Snapshots<'_>, this: &Committed) -> Result<(), RestoreError> {
    let worktree = this.worktree.clone();
    let register = Register::new(at.seams.store, at.seams.clock, worktree.clone());
    let now = register.read().map_err(LeaseError::from)?;
    if now.term() == this.term {
        return Ok(());
    }
    Err(LeaseError::Fenced { worktree, token: this.term.token, current: now.token }.into())
}

/// Puts everything in its place, as the holder of `lease`.
fn apply(
    at: &Snapshots<'_>,
    spots: &dyn Spots,
    lease: &mut Lease<'_>,
    this: &Committed,
    journal: &RestoreJournal,
    own: Option<&RepoPath>,
    directories: &[Entry],
) -> Result<AppliedPatch, RestoreError> {
    let (dir, payload) = (this.dir(), layout::payload(&this.worktree));
    let under = Committed { term: lease.term(), worktree: this.worktree.clone(), ..*this };
    confirm(at, &under)?;
    let patch = PatchRun { seams: at.seams, spots, dir: &dir, payload: &payload, journal };
    let applied = patch.apply(own, directories, &mut Grip::new(lease, at.seams))?;
    confirm(at, &under)?;
    match move_dir(at.seams, &dir, &this.over()) {
        // Somebody else was at it, too, and was faster.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        answer => answer.map_err(SnapshotError::io("end the restore"))?,
    }
    Ok(applied)
}

/// Everything is in its place: forgets about it, and what was there before unless no
/// snapshot has it.
fn end(at: &Snapshots<'_>, this: &Committed, journal: &RestoreJournal) -> Option<Left> {
    let (store, dir) = (at.seams.store, this.over());
    // Best effort: the next holder looks, and removes it.
    let _ = store.remove(&layout::restore_mark(&this.worktree, this.op));
    let known: Vec<SnapshotId> = this.kept.iter().copied().chain([this.source]).collect();
    let Some(touched) = journal.chosen() else {
        let _ = delete_dir(at, &dir);
        return None;
    };
    let trees = trees_in(at.seams, &dir).ok()?;
    let worth = discard(at, &dir, &trees, Some(&touched), &known);
    judged(at, OpNonce::random(at.seams.entropy), &dir, worth)
}

/// Brings the restores of the worktree of `lease` to their end that others began: those
/// that are not committed never will be, and those that are, are finished. To be done
/// before the files are used.
pub fn finish_interrupted(
    at: &Snapshots<'_>,
    spots: &dyn Spots,
    locks: &Locks<'_>,
    lease: &mut Lease<'_>,
) -> Result<Vec<FinishedRestore>, RestoreError> {
    sabotage!(Rule::FinishedBeforeUse => Ok(Vec::new()));
    match lease.may_be_half_restored() {
        true => finish_all(at, spots, locks, lease),
        false => Ok(Vec::new()),
    }
}

/// As [`finish_interrupted`], whether or not a mark says that there is one.
pub fn finish_all(
    at: &Snapshots<'_>,
    spots: &dyn Spots,
    locks: &Locks<'_>,
    lease: &mut Lease<'_>,
) -> Result<Vec<FinishedRestore>, RestoreError> {
    let mut finished = Vec::new();
    let mut busy = Vec::new();
    for _ in 0..ROUNDS {
        busy = under_way(at, lease.worktree())?;
        let mut moved = false;
        for name in &busy {
            moved |= match name.clone() {
                StagingName::Restore { term, .. } if term < lease.term() => take_away(at, name)?,
                StagingName::Patch { .. } => {
                    finished.extend(finish(at, spots, locks, lease, name)?);
                    true
                }
                _ => false,
            };
        }
        if !moved {
            break;
        }
    }
    forget_marks(at, lease.worktree(), &busy);
    Ok(finished)
}

/// What is in `staging/` of restores in place of this worktree.
fn under_way(
    at: &Snapshots<'_>,
    worktree: &WorktreeName,
) -> Result<Vec<StagingName>, SnapshotError> {
    let mut names = StagingContents::list(at)?.names;
    names.retain(|name| match name {
        StagingName::Restore { worktree: of, .. } | StagingName::Patch { worktree: of, .. } => {
            *of == *worktree
        }
        _ => false,
    });
    Ok(names)
}

/// A restore of somebody who has lost the lock and has not committed: from here on it
/// cannot.
fn take_away(at: &Snapshots<'_>, name: &StagingName) -> Result<bool, SnapshotError> {
    sabotage!(Rule::UncommittedTakenAway => Ok(false));
    let stuck = SnapshotError::io("take away a restore that was not committed");
    delete_dir(at, &name.path()).map_err(stuck)?;
    Ok(true)
}

/// Marks of restores that are over.
fn forget_marks(at: &Snapshots<'_>, worktree: &WorktreeName, busy: &[StagingName]) {
    let store = at.seams.store;
    let ops = busy.iter().filter_map(|name| match name {
        StagingName::Restore { op, .. } | StagingName::Patch { op, .. } => Some(*op),
        _ => None,
    });
    let busy: Vec<OpNonce> = ops.collect();
    // Best effort: a mark too many only makes the next one look.
    for entry in store.list(&layout::register(worktree)).unwrap_or_default() {
        if let Some(op) = entry.name.to_str().and_then(layout::restore_mark_of)
            && !busy.contains(&op)
        {
            let _ = store.remove(&layout::restore_mark(worktree, op));
        }
    }
}

/// Finishes one; none if somebody else did meanwhile.
fn finish(
    at: &Snapshots<'_>,
    spots: &dyn Spots,
    locks: &Locks<'_>,
    lease: &mut Lease<'_>,
    name: &StagingName,
) -> Result<Option<FinishedRestore>, RestoreError> {
    let Some(this) = Committed::of(name.clone()) else { return Ok(None) };
    let dir = this.dir();
    let finished = make_durable(at, &this)
        .and_then(|()| read(at, &this, &dir))
        .and_then(|(journal, directories)| {
            let applied = apply(at, spots, lease, &this, &journal, None, &directories)?;
            Ok((journal, applied))
        })
        .map_err(|cause| unfinished(&this, true, cause));
    let (journal, applied) = match finished {
        Ok(finished) => finished,
        Err(_) if at.seams.store.is_there(&dir).is_ok_and(|there| !there) => return Ok(None),
        Err(error) => return Err(error),
    };
    let left = end(at, &this, &journal);
    let reason = Some("it was interrupted, and is finished");
    let log = RestoreLog { locks, op: this.op, worktree: &this.worktree, reason };
    let _ = log.note(EventPhase::Done, this.told(None, left.as_ref()));
    Ok(Some(FinishedRestore { restored: this.source, left, unplaced: applied.unplaced }))
}

/// The process that committed it may have been stopped right then: a power cut that takes the commit
/// back must not leave what was done because of it.
fn make_durable(at: &Snapshots<'_>, this: &Committed) -> Result<(), RestoreError> {
    sabotage!(Rule::CommitDurableBeforeFinished => Ok(()));
    let store = at.seams.store;
    let synced = store
        .sync_dir(&layout::staging())
        .and_then(|()| store.sync_dir(&layout::register(&this.worktree)));
    Ok(synced.map_err(SnapshotError::io("sync the commit of a restore"))?)
}

/// The journal, and what the directories in it are to look like.
fn read(
    at: &Snapshots<'_>,
    this: &Committed,
    dir: &RepoPath,
) -> Result<(RestoreJournal, Vec<Entry>), RestoreError> {
    let journal = RestoreJournal::read(at.seams.store, dir)?;
    if journal.directories.is_empty() {
        return Ok((journal, Vec::new()));
    }
    let source = at.catalog().open(this.source)?;
    let mut manifest = proven_manifest(at.seams.store, &source)?;
    let mut directories = Vec::new();
    let unreadable = |error| not_believed(layout::manifest(&source.dir()), error);
    while let Some((entry, _)) = manifest.read().map_err(unreadable)? {
        if entry.kind == EntryKind::Directory
            && journal.directories.binary_search(&entry.path).is_ok()
        {
            directories.push(entry);
        }
    }
    Ok((journal, directories))
}
