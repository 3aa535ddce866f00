//! The steps in which restored files take the place of others.
//!
//! The lease is renewed right before each step: nobody can have taken it over
//! between that and the step, unless this process is stopped for a whole lease
//! in between. No filesystem swaps two directories on the condition that a third
//! has some name, so after the last step the register is READ once more: the same
//! token means that nobody else held the lock at any step. Another one is
//! reported; see `spec/decisions/a-swap-is-not-undone.md` for why not more.

use std::io;

use jvs_lock::register::{Answer, Register};
use jvs_lock::{Lease, LeaseError, Seams};
use jvs_repo::code::{Code, Coded};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;

use super::RestoreError;
use crate::chosen::ChosenPaths;
use crate::error::SnapshotError;
use crate::manifest::TreePath;
use crate::trees::{Spot, SpotStat, Spots};

/// What was swapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swapped {
    /// With what was there before, which is now where it came from.
    pub exchanged: Vec<TreePath>,
    /// Nothing was there.
    pub placed: Vec<TreePath>,
}

impl Swapped {
    /// Was anything?
    pub fn is_empty(&self) -> bool {
        self.exchanged.is_empty() && self.placed.is_empty()
    }
}

/// A swap that did not come to its end, or whose end was not under the lock.
#[derive(Debug)]
pub struct Stopped {
    /// What was swapped anyway.
    pub swapped: Swapped,
    /// How many steps there were.
    pub steps: usize,
    /// Whether the step that failed certainly changed nothing, and never will.
    pub certain: bool,
    /// Why it stopped.
    pub error: RestoreError,
}

/// A tree that is to take the place of a worktree's files, or of some.
#[derive(Clone, Copy)]
pub struct Swap<'s> {
    /// Store, clock and entropy.
    pub seams: Seams<'s>,
    /// What is swapped.
    pub spots: &'s dyn Spots,
    /// The restored files.
    pub tree: &'s RepoPath,
}

/// One exchange.
pub(super) struct Step {
    pub(super) path: TreePath,
    pub(super) replaces: bool,
}

impl Swap<'_> {
    /// Swaps the worktree of `lease` with the tree, or only what is chosen of
    /// both: one step per path, after all of them were looked at.
    pub fn run(
        &self,
        lease: &mut Lease<'_>,
        chosen: Option<&ChosenPaths>,
    ) -> Result<Swapped, Box<Stopped>> {
        let payload = layout::payload(lease.worktree());
        let mut swapped = Swapped::default();
        let steps = match chosen {
            None => Ok(vec![Step { path: TreePath::root(), replaces: true }]),
            Some(chosen) => steps(self.spots, &payload, chosen),
        };
        let steps = match steps {
            Ok(steps) => steps,
            Err(error) => {
                let stopped = Stopped { swapped, steps: 0, certain: true, error: error.into() };
                return Err(Box::new(stopped));
            }
        };
        let all = steps.len();
        let mut under = None;
        for step in steps {
            let taken = sure(lease).map_err(|error| (true, error)).and_then(|held| {
                under = Some(held);
                self.take(&payload, &step).map_err(|(certain, error)| {
                    // That the lock was lost says more than that its new holder
                    // was in the way.
                    let lost = self.confirm(lease, held).err();
                    let lost = lost.filter(|lost| lost.code() == Code::FencingMismatch);
                    (certain, lost.unwrap_or(error))
                })
            });
            if let Err((certain, error)) = taken {
                return Err(Box::new(Stopped { swapped, steps: all, certain, error }));
            }
            let done = if step.replaces { &mut swapped.exchanged } else { &mut swapped.placed };
            done.push(step.path.clone());
            if let Err(error) = self.sync(&payload, &step.path) {
                let error = error.into();
                return Err(Box::new(Stopped { swapped, steps: all, certain: true, error }));
            }
        }
        match under.map_or(Ok(()), |held| self.confirm(lease, held)) {
            Ok(()) => Ok(swapped),
            Err(error) => Err(Box::new(Stopped { swapped, steps: all, certain: true, error })),
        }
    }

    /// One step. An answer that was lost is settled by looking at which file is
    /// where; if it was not applied, the restored file gets another name, so that
    /// it never will be. On failure, says whether that is certain.
    fn take(&self, payload: &RepoPath, step: &Step) -> Result<(), (bool, RestoreError)> {
        let (from, to) =
            (Spot { tree: self.tree, path: &step.path }, Spot { tree: payload, path: &step.path });
        let what =
            if step.path.is_root() { "the worktree".to_owned() } else { step.path.to_string() };
        let failed = |source| {
            let doing = format!("put the restored files in the place of {what}");
            RestoreError::from(SnapshotError::Io { doing, source })
        };
        let new = self.spots.look(from).map_err(|error| (true, failed(error)))?;
        let old = self.spots.look(to).ok();
        let answer = match step.replaces {
            true => self.spots.exchange(from, to),
            false => self.spots.rename_new(from, to),
        };
        let error = match Answer::of(answer) {
            Answer::Applied => return Ok(()),
            Answer::Refused(error) => return Err((true, failed(error))),
            Answer::Unknown(error) => error,
        };
        let is_new =
            |at: Spot<'_>| self.spots.look(at).is_ok_and(|seen| seen.identity == new.identity);
        if is_new(to) {
            return Ok(());
        }
        let elsewhere = format!("undone-{}", OpNonce::random(self.seams.entropy));
        let (tree, path) = match step.path.split() {
            None => (self.tree.parent().child(&elsewhere).ok(), Some(TreePath::root())),
            Some((above, _)) => (Some(self.tree.clone()), above.child(elsewhere.as_bytes()).ok()),
        };
        let (Some(tree), Some(path)) = (tree, path) else { return Err((false, failed(error))) };
        let away = Spot { tree: &tree, path: &path };
        let moved = Answer::of(self.spots.rename_new(from, away));
        match moved {
            Answer::Applied | Answer::Unknown(_) if is_new(away) => Err((true, failed(error))),
            // What was moved away is what was replaced.
            _ if is_new(to) => Ok(()),
            _ => {
                // A process that took the restored file away took away what could be
                // swapped.
                let gone = matches!(self.spots.look(from), Err(error) if is_absence(&error));
                let there = self.spots.look(to).ok();
                let same = there.map(|seen| seen.identity) == old.map(|seen| seen.identity);
                Err((gone && same, failed(error)))
            }
        }
    }

    fn sync(&self, payload: &RepoPath, path: &TreePath) -> Result<(), SnapshotError> {
        for tree in [payload, self.tree] {
            self.spots
                .sync_above(Spot { tree, path })
                .map_err(SnapshotError::io(format!("sync what holds {path}")))?;
        }
        Ok(())
    }

    /// Nobody else held the lock up to now. Asks the register and not the clock:
    /// a lease that ran out, and that nobody took, was in nobody's way.
    fn confirm(&self, lease: &Lease<'_>, term: Term) -> Result<(), RestoreError> {
        let worktree = lease.worktree().clone();
        let register = Register::new(self.seams.store, self.seams.clock, worktree.clone());
        let now = register.read().map_err(LeaseError::from)?;
        if now.term() == term {
            return Ok(());
        }
        Err(LeaseError::Fenced { worktree, token: term.token, current: now.token }.into())
    }
}

/// Which names are to be swapped: a chosen path, or the first directory above it
/// that the worktree has not, which then comes along with its attributes.
pub(super) fn steps(
    spots: &dyn Spots,
    payload: &RepoPath,
    chosen: &ChosenPaths,
) -> Result<Vec<Step>, SnapshotError> {
    let root = seen(spots, Spot { tree: payload, path: &TreePath::root() })?;
    let mount = root.map(|root| root.mount);
    let mut steps: Vec<Step> = Vec::new();
    for path in chosen.paths() {
        let mut at = TreePath::root();
        let mut replaces = true;
        for component in path.components() {
            at =
                at.child(component).map_err(|error| in_the_way(path, &error.to_string(), false))?;
            let Some(seen) = seen(spots, Spot { tree: payload, path: &at })? else {
                replaces = false;
                break;
            };
            if Some(seen.mount) != mount {
                return Err(in_the_way(&at, "is a mount point: unmount it first", true));
            }
            if at != *path && !seen.is_directory {
                let what = match seen.is_symlink {
                    true => "is a symlink in the worktree, and nothing is restored through one",
                    false => "is not a directory in the worktree",
                };
                return Err(in_the_way(&at, what, seen.is_symlink));
            }
        }
        if !steps.iter().any(|step| step.path == at) {
            steps.push(Step { path: at, replaces });
        }
    }
    Ok(steps)
}

fn seen(spots: &dyn Spots, at: Spot<'_>) -> Result<Option<SpotStat>, SnapshotError> {
    match spots.look(at) {
        Ok(seen) => Ok(Some(seen)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(source) => Err(SnapshotError::Io { doing: format!("look at {}", at.path), source }),
    }
}

/// Is nothing in the way of the chosen paths in the files of `worktree`? Answers
/// with those of them that are there.
pub fn check_worktree(
    spots: &dyn Spots,
    worktree: &WorktreeName,
    chosen: &ChosenPaths,
) -> Result<Option<ChosenPaths>, SnapshotError> {
    let payload = layout::payload(worktree);
    let steps = steps(spots, &payload, chosen)?;
    Ok(ChosenPaths::new(steps.into_iter().filter(|step| step.replaces).map(|step| step.path)))
}

/// Are all chosen paths in the tree of the snapshot `source` that is at `tree`?
pub fn check_paths(
    spots: &dyn Spots,
    tree: &RepoPath,
    chosen: &ChosenPaths,
    source: SnapshotId,
) -> Result<(), SnapshotError> {
    for path in chosen.paths() {
        match spots.look(Spot { tree, path }) {
            Ok(_) => {}
            Err(error) if is_absence(&error) => {
                return Err(SnapshotError::NoSuchPath { id: source, path: path.to_string() });
            }
            Err(source) => {
                return Err(SnapshotError::Io { doing: format!("look at {path}"), source });
            }
        }
    }
    Ok(())
}

fn in_the_way(path: &TreePath, problem: &str, leads_out: bool) -> SnapshotError {
    SnapshotError::InTheWay { path: path.to_string(), problem: problem.to_owned(), leads_out }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A renewal confirms the hold and makes it last. Answers with what it is under.
pub(super) fn sure(lease: &mut Lease<'_>) -> Result<Term, RestoreError> {
    lease.renew()?;
    let state = lease.fence()?.read()?;
    Ok(state.term())
}
