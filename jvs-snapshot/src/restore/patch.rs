//! Files take their places one by one, as a journal says: by the process that
//! restores, and after its death by the next holder of the lock.
//!
//! Several may be at it at once, one of them stopped long ago. So each works from a tree
//! of its own: a process that finishes what another began moves what is not in its place yet
//! into its own tree first, name by name, and a late exchange of the other finds no
//! source. What lies under such a name is told by its inode: the restored file, or what
//! was in its place. What is removed goes to one name that takes one file once. See
//! `spec/decisions/a-restore-in-place-goes-path-by-path.md`.

use std::io;

use jvs_lock::register::Answer;
use jvs_lock::{Lease, Seams};
use jvs_repo::clock::BootMs;
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

use super::RestoreError;
use super::journal::{JournalStep, RestoreJournal};
use crate::descriptor::Loss;
use crate::error::SnapshotError;
use crate::fidelity;
use crate::manifest::{Entry, TreePath};
use crate::mutation::Rule;
use crate::trees::{Spot, Spots, make_above, make_all_above};
use crate::under_lease::renewed_every_ms;

/// How often what did not come to a certain end is taken up anew.
const ROUNDS: u32 = 4;
/// Between two rounds.
const PAUSE_MS: u64 = 20;
/// How often one place is tried, which may come and go meanwhile.
const TRIES: u32 = 4;

/// A lease that is looked at before every step, and renewed in time.
pub(super) struct Grip<'g, 'r> {
    lease: &'g mut Lease<'r>,
    seams: Seams<'g>,
    next: BootMs,
}

impl<'g, 'r> Grip<'g, 'r> {
    pub(super) fn new(lease: &'g mut Lease<'r>, seams: Seams<'g>) -> Self {
        let next = seams.clock.now().boot.plus(renewed_every_ms(lease.claim().lease_ms));
        Grip { lease, seams, next }
    }

    fn hold(&mut self) -> Result<(), RestoreError> {
        let now = self.seams.clock.now().boot;
        if now >= self.next {
            self.lease.renew()?;
            self.next = now.plus(renewed_every_ms(self.lease.claim().lease_ms));
        }
        self.lease.fence()?;
        Ok(())
    }
}

/// A restore that is committed.
pub(super) struct PatchRun<'p> {
    pub(super) seams: Seams<'p>,
    pub(super) spots: &'p dyn Spots,
    /// Where it is kept.
    pub(super) dir: &'p RepoPath,
    /// The worktree's files.
    pub(super) payload: &'p RepoPath,
    pub(super) journal: &'p RestoreJournal,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct AppliedPatch {
    /// What directories did not take.
    pub(super) degraded: Vec<Loss>,
    /// Paths that have no place any more: somebody took the directory away that they were
    /// to be in.
    pub(super) unplaced: Vec<TreePath>,
}

/// The tree that files are taken from.
struct Taken {
    path: RepoPath,
    /// Is everything in it that was put there, whatever came of it?
    is_fresh: bool,
}

/// What came of one step.
enum Came {
    /// It is done.
    Done,
    /// Nothing is where it was to be taken from: somebody else has taken it up.
    Elsewhere,
    /// The directory that it was to be in is gone.
    Unplaced,
    /// It is not done, or that is not certain.
    Open(io::Error),
}

impl PatchRun<'_> {
    /// Puts everything in its place; `own` is the tree to take it from, if nobody else
    /// has ever used its names. When this returns it is on disk.
    pub(super) fn apply(
        &self,
        own: Option<&RepoPath>,
        directories: &[Entry],
        grip: &mut Grip<'_, '_>,
    ) -> Result<AppliedPatch, RestoreError> {
        let mut applied = AppliedPatch::default();
        let mut own = own.cloned();
        let mut open: Vec<&JournalStep> = self.journal.steps.iter().collect();
        for round in 1.. {
            let tree = match own.take() {
                Some(path) => Taken { path, is_fresh: true },
                None => Taken { path: self.claim(&open, grip)?, is_fresh: false },
            };
            let (left, error) = self.pass(&tree, &open, grip, &mut applied)?;
            if left.is_empty() {
                break;
            }
            if round == ROUNDS {
                match error {
                    // Nowhere to be found, again and again: it was put, and has been removed.
                    None => break,
                    Some((path, source)) => {
                        let doing = format!("put the restored {path} in its place");
                        return Err(SnapshotError::Io { doing, source }.into());
                    }
                }
            }
            open = left;
            self.seams.clock.sleep_ms(PAUSE_MS);
        }
        self.dress(directories, grip, &mut applied)?;
        self.sync()?;
        Ok(applied)
    }

    /// Tries each of `steps` once. Answers with those that are not done, and why not, of
    /// the first for which it is known.
    #[allow(clippy::type_complexity, reason = "named where it is used, once")]
    fn pass<'s>(
        &self,
        tree: &Taken,
        steps: &[&'s JournalStep],
        grip: &mut Grip<'_, '_>,
        applied: &mut AppliedPatch,
    ) -> Result<(Vec<&'s JournalStep>, Option<(TreePath, io::Error)>), RestoreError> {
        let (mut left, mut first) = (Vec::new(), None);
        for step in steps {
            grip.hold()?;
            let came = match step.inode {
                Some(inode) => self.install(tree, step, inode),
                None => self.remove(step),
            };
            match came {
                Came::Done => continue,
                Came::Unplaced => {
                    applied.unplaced.push(step.path.clone());
                    continue;
                }
                Came::Elsewhere => {}
                Came::Open(error) => {
                    first.get_or_insert((step.path.clone(), error));
                }
            }
            left.push(*step);
        }
        Ok((left, first))
    }

    /// Puts the file `inode` in its place. What was there is then where it came from.
    fn install(&self, tree: &Taken, step: &JournalStep, inode: u64) -> Came {
        let (from, to) = (Spot { tree: &tree.path, path: &step.path }, self.place(step));
        if !tree.is_fresh
            && let Some(came) = self.came_of(from, to, inode)
        {
            return came;
        }
        let mut replaces = step.replaces;
        for _ in 0..TRIES {
            let answer = match replaces {
                true => self.spots.exchange(from, to),
                false => self.spots.rename_new(from, to),
            };
            let error = match answer {
                Ok(()) => return Came::Done,
                Err(error) => error,
            };
            if let Some(came) = self.came_of(from, to, inode) {
                return came;
            }
            match (error.kind(), self.inode_at(to)) {
                // It came, or went, since it was planned.
                (io::ErrorKind::AlreadyExists, _) => replaces = true,
                (io::ErrorKind::NotFound, Ok(None)) if self.has_place(to) => replaces = false,
                (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, Ok(None) | Err(_))
                    if !self.has_place(to) =>
                {
                    return Came::Unplaced;
                }
                // A try that has not been applied may be yet: the next is from elsewhere.
                _ => return Came::Open(error),
            }
        }
        Came::Open(io::ErrorKind::ResourceBusy.into())
    }

    /// What became of the file `inode`, unless it is still at `from`.
    fn came_of(&self, from: Spot<'_>, to: Spot<'_>, inode: u64) -> Option<Came> {
        Some(match self.inode_at(from) {
            Ok(Some(here)) if here == inode => return None,
            // The other one is here: it was exchanged.
            Ok(Some(_)) => Came::Done,
            Ok(None) if self.inode_at(to).is_ok_and(|there| there == Some(inode)) => Came::Done,
            Ok(None) => Came::Elsewhere,
            Err(error) => Came::Open(error),
        })
    }

    /// Takes away what is not in the snapshot, to a name that takes it once: a try that is
    /// applied late finds it taken.
    fn remove(&self, step: &JournalStep) -> Came {
        let tree = layout::snapshot_payload(self.dir);
        let (from, to) = (self.place(step), Spot { tree: &tree, path: &step.path });
        let error = match self.spots.rename_new(from, to) {
            Ok(()) => return Came::Done,
            Err(error) => error,
        };
        if let Err(error) = make_above(self.spots, to) {
            return Came::Open(error);
        }
        match self.inode_at(to) {
            Ok(Some(_)) => return Came::Done,
            Ok(None) => {}
            Err(error) => return Came::Open(error),
        }
        match self.inode_at(from) {
            // Gone already. What somebody makes there from now on is not meant.
            Ok(None) => match self.spots.make_directory(to) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Came::Open(error),
                _ => Came::Done,
            },
            _ => Came::Open(error),
        }
    }

    fn place<'s>(&'s self, step: &'s JournalStep) -> Spot<'s> {
        Spot { tree: self.payload, path: &step.path }
    }

    fn inode_at(&self, at: Spot<'_>) -> io::Result<Option<u64>> {
        match self.spots.look(at) {
            Ok(seen) => Ok(Some(seen.identity.1)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Is the directory there that it is to be in?
    fn has_place(&self, at: Spot<'_>) -> bool {
        let Some((above, _)) = at.path.split() else { return false };
        self.spots.look(Spot { tree: at.tree, path: &above }).is_ok_and(|seen| seen.is_directory)
    }

    /// Moves what is not in its place yet, or is not known to be, into a tree that nobody
    /// else uses, and answers with that.
    fn claim(
        &self,
        steps: &[&JournalStep],
        grip: &mut Grip<'_, '_>,
    ) -> Result<RepoPath, RestoreError> {
        sabotage!(Rule::ClaimedFirst => Ok(layout::snapshot_payload(self.dir)));
        let stuck = || SnapshotError::io("take up an interrupted restore");
        let own = layout::claimed_payload(self.dir, OpNonce::random(self.seams.entropy));
        self.seams.store.ensure_dir(&own).map_err(stuck())?;
        self.seams.store.sync_dir(self.dir).map_err(stuck())?;
        let trees = trees_in(self.seams, self.dir).map_err(stuck())?;
        let mut found = Vec::new();
        for step in steps.iter().filter(|step| step.inode.is_some()) {
            for tree in trees.iter().filter(|tree| **tree != own) {
                let from = Spot { tree, path: &step.path };
                if self.inode_at(from).map_err(stuck())?.is_some() {
                    found.push(from);
                }
            }
        }
        // On disk before anything is in them.
        let paths = found.iter().map(|from| from.path);
        make_all_above(self.spots, &own, paths).map_err(stuck())?;
        for from in found {
            grip.hold()?;
            match Answer::of(self.spots.rename_new(from, Spot { tree: &own, path: from.path })) {
                Answer::Refused(error) => return Err(stuck()(error).into()),
                // AppliedPatch; or another one was faster, or it shows with the next look.
                Answer::Applied | Answer::Unknown(_) => {}
            }
        }
        Ok(own)
    }

    /// From the bottom up: what is done in a directory changes its times.
    fn dress(
        &self,
        directories: &[Entry],
        grip: &mut Grip<'_, '_>,
        applied: &mut AppliedPatch,
    ) -> Result<(), RestoreError> {
        for like in directories.iter().rev() {
            grip.hold()?;
            match self.spots.dress(Spot { tree: self.payload, path: &like.path }, like) {
                Ok(lost) => {
                    for kind in lost {
                        fidelity::note(&mut applied.degraded, &like.path, kind);
                    }
                }
                Err(error) if is_absence(&error) => {}
                Err(source) => {
                    let doing = format!("give {} its attributes", like.path);
                    return Err(SnapshotError::Io { doing, source }.into());
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), RestoreError> {
        let stuck = || SnapshotError::io("sync the restored files");
        let trees = trees_in(self.seams, self.dir).map_err(stuck())?;
        let mut all: Vec<(&RepoPath, TreePath)> = Vec::new();
        for step in &self.journal.steps {
            for tree in trees.iter().chain([self.payload]) {
                let same = |(of, path): &(&RepoPath, TreePath)| {
                    *of == tree && path.split().map(|it| it.0) == step.path.split().map(|it| it.0)
                };
                if !all.iter().rev().take(2 * trees.len()).any(same) {
                    all.push((tree, step.path.clone()));
                }
            }
        }
        let spots: Vec<Spot<'_>> = all.iter().map(|(tree, path)| Spot { tree, path }).collect();
        Ok(self.spots.sync_above_all(&spots).map_err(stuck())?)
    }
}

/// The trees of files in the directory of a restore.
pub(super) fn trees_in(seams: Seams<'_>, dir: &RepoPath) -> io::Result<Vec<RepoPath>> {
    let mut trees = Vec::new();
    for entry in seams.store.list(dir)? {
        if let Some(name) = entry.name.to_str().filter(|name| layout::is_restored_payload(name)) {
            trees.push(dir.child(name)?);
        }
    }
    trees.sort();
    Ok(trees)
}

pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
