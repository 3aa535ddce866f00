//! How a worktree is made: empty, or with the files of a snapshot.

use std::io;

use jvs_repo::id::{FencingToken, Generation, OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{self as record, Isolation, WorktreeRecord};
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

use super::error::{WorktreeError, exists, io_at, unknown};
use super::note::{self, Discarded};
use super::reserve::{self, FROM_NOTHING, Origin};
use crate::locks::Locks;
use crate::mutation::Rule;
use crate::state::State;

/// The snapshot that a worktree is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// It becomes the head.
    pub head: SnapshotId,
    /// Which commit of its lineage it is.
    pub generation: Generation,
}

/// Makes an empty worktree.
pub fn create(
    locks: &Locks<'_>,
    name: &WorktreeName,
    isolation: Isolation,
) -> Result<WorktreeRecord, WorktreeError> {
    refuse_name(locks, name)?;
    let payload = layout::payload(name);
    refuse_files(locks, name, &payload)?;
    let wanted = WorktreeRecord::new(isolation, locks.seams.clock.now().wall);
    let making = Making::begin(locks, name, wanted, FROM_NOTHING)?;
    if let Err(error) = making.confirm() {
        return making.withdraw(error);
    }
    let made = match make_payload(locks, name, &payload) {
        Ok(made) => made,
        Err(error) => return making.withdraw(error),
    };
    match making.place() {
        Ok(record) => Ok(record),
        Err(error @ WorktreeError::OutcomeUnknown { .. }) => Err(error),
        // While the name is one's own: once it is given up, the directory may be another's.
        Err(error) => making.withdraw_with(error, || {
            if is_removed_by_its_maker(made) {
                let _ = locks.seams.store.remove_dir(&payload);
            }
        }),
    }
}

/// A process that loses a name removes a directory only if it `made` it.
fn is_removed_by_its_maker(made: bool) -> bool {
    sabotage!(Rule::LoserRemovesNothing => true);
    made
}

/// A worktree that has its register and not yet its files. While it is begun its
/// base is a head, so nobody collects it; until [`Begun::finish`] it is on no
/// list.
#[must_use = "a worktree that is begun must be finished or undone"]
pub struct Begun<'l, 'r> {
    making: Making<'l, 'r>,
}

/// Begins a worktree that has the files of a snapshot.
pub fn begin_from<'l, 'r>(
    locks: &'l Locks<'r>,
    name: &WorktreeName,
    isolation: Isolation,
    base: Base,
) -> Result<Begun<'l, 'r>, WorktreeError> {
    refuse_name(locks, name)?;
    refuse_directory(locks, name)?;
    let mut wanted = WorktreeRecord::new(isolation, locks.seams.clock.now().wall);
    wanted.base = Some(base.head);
    let origin =
        Origin { token: FencingToken(0), generation: base.generation, head: Some(base.head) };
    Ok(Begun { making: Making::begin(locks, name, wanted, origin)? })
}

impl Begun<'_, '_> {
    /// The first state of its register.
    pub fn state(&self) -> &State {
        &self.making.reserved
    }

    /// Its name.
    pub fn name(&self) -> &WorktreeName {
        &self.making.name
    }

    /// Puts the tree at `files`, in the repository, in its place, and the
    /// worktree on the list. If that fails, the tree is where it was.
    pub fn finish(self, files: &RepoPath) -> Result<WorktreeRecord, WorktreeError> {
        let Begun { making } = self;
        let seams = making.locks.seams;
        if let Err(error) = making.confirm() {
            return making.withdraw(error);
        }
        let payload = layout::payload(&making.name);
        let parent = payload.parent();
        let moved = make_parent(making.locks, &parent).and_then(|()| {
            note::move_new(seams, files, &payload)
                .map_err(|stuck| stuck.at(&making.name, &payload))?;
            seams.store.sync_dir(&parent).map_err(io_at(&parent))
        });
        match moved.and_then(|()| making.place()) {
            Ok(record) => Ok(record),
            // A process that ends it finds the files on one side or the other.
            Err(error @ WorktreeError::OutcomeUnknown { .. }) => Err(error),
            Err(error) => making.withdraw_with(error, || {
                // The name is this operation's, and so is what is there, unless
                // something was there before.
                if seams.store.stat(files).is_err() {
                    let _ = note::move_new(seams, &payload, files);
                }
            }),
        }
    }

    /// Gives it up.
    pub fn undo(self) {
        let error = exists(&self.making.name, "it was given up");
        let _ = self.making.withdraw(error);
    }
}

/// One operation that makes a worktree.
struct Making<'l, 'r> {
    locks: &'l Locks<'r>,
    name: WorktreeName,
    op: OpNonce,
    record: WorktreeRecord,
    reserved: State,
}

impl<'l, 'r> Making<'l, 'r> {
    fn begin(
        locks: &'l Locks<'r>,
        name: &WorktreeName,
        record: WorktreeRecord,
        origin: Origin,
    ) -> Result<Self, WorktreeError> {
        let op = locks.fresh_op();
        let record = note::write(locks, name, record, op)?;
        match reserve::reserve(locks, name, origin, op) {
            Ok(reserved) => Ok(Making { locks, name: name.clone(), op, record, reserved }),
            Err(error) => {
                let _ = note::discard(locks.seams.store, name, op);
                Err(error)
            }
        }
    }

    fn confirm(&self) -> Result<(), WorktreeError> {
        reserve::confirm(self.locks, &self.name, &self.reserved)
    }

    fn place(&self) -> Result<WorktreeRecord, WorktreeError> {
        note::place(self.locks.seams, &self.name, self.op)?;
        Ok(self.record.clone())
    }

    /// Leaves the world as it was because of `error`, unless somebody finished the
    /// worktree meanwhile: then it is made.
    fn withdraw(&self, error: WorktreeError) -> Result<WorktreeRecord, WorktreeError> {
        self.withdraw_with(error, || ())
    }

    fn withdraw_with(
        &self,
        error: WorktreeError,
        clear: impl FnOnce(),
    ) -> Result<WorktreeRecord, WorktreeError> {
        let seams = self.locks.seams;
        // The note first: nobody can finish what is taken apart here. It goes last:
        // without one the name is nobody's, and what is there may be another's.
        match note::withdraw(seams, &self.name, self.op) {
            Ok(Discarded::Placed) => Ok(self.record.clone()),
            Ok(Discarded::Gone) => {
                clear();
                reserve::give_up(self.locks, &self.name, &self.reserved);
                note::dismiss(seams.store, &self.name, self.op);
                Err(error)
            }
            // A process that finds it may still finish it.
            Err(_) => Err(unknown(&self.name)(error)),
        }
    }
}

fn refuse_name(locks: &Locks<'_>, name: &WorktreeName) -> Result<(), WorktreeError> {
    name.check_for_new()?;
    match record::read(locks.seams.store, name)? {
        Some(_) => Err(exists(name, "there is one of that name")),
        None => Ok(()),
    }
}

/// Files are moved only to where there is nothing.
pub(super) fn refuse_directory(
    locks: &Locks<'_>,
    name: &WorktreeName,
) -> Result<(), WorktreeError> {
    let payload = layout::payload(name);
    match locks.seams.store.stat(&payload) {
        Ok(_) => Err(exists(name, "its directory is there")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_at(&payload)(error)),
    }
}

/// An empty directory may be anybody's; files are not.
fn refuse_files(
    locks: &Locks<'_>,
    name: &WorktreeName,
    payload: &RepoPath,
) -> Result<(), WorktreeError> {
    match locks.seams.store.list(payload) {
        Ok(entries) if entries.is_empty() => Ok(()),
        Ok(_) => Err(exists(name, "its directory is there and has files in it")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_at(payload)(error)),
    }
}

/// True if it was not there before.
fn make_one(locks: &Locks<'_>, path: &RepoPath) -> Result<bool, WorktreeError> {
    let store = locks.seams.store;
    match store.make_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // Its answer may have been lost.
        Err(error) => match store.is_there(path) {
            Ok(true) => Ok(true),
            _ => Err(io_at(path)(error)),
        },
    }
}

/// Makes the directory that worktrees are in, or finds it made, and durable: whoever made
/// it may have died before that, and what is told of a worktree in it survives a power cut.
pub(super) fn make_parent(locks: &Locks<'_>, parent: &RepoPath) -> Result<(), WorktreeError> {
    make_one(locks, parent)?;
    let above = parent.parent();
    locks.seams.store.sync_dir(&above).map_err(io_at(&above))
}

/// Makes an empty directory for files, under a name that is the caller's; true if it
/// was not there before. If that fails, nothing is left of what it made.
pub(super) fn make_payload(
    locks: &Locks<'_>,
    name: &WorktreeName,
    payload: &RepoPath,
) -> Result<bool, WorktreeError> {
    let parent = payload.parent();
    if parent != RepoPath::root() {
        make_parent(locks, &parent)?;
    }
    let made = make_one(locks, payload)?;
    if !made {
        refuse_files(locks, name, payload)?;
    }
    let store = locks.seams.store;
    store.sync_dir(&parent).map(|()| made).map_err(|error| {
        if is_taken_back(made) {
            let _ = store.remove_dir(payload);
        }
        io_at(&parent)(error)
    })
}

/// A process that fails to make a worktree leaves nothing of what it `made`.
fn is_taken_back(made: bool) -> bool {
    sabotage!(Rule::FailedMakingLeavesNothing => false);
    made
}
