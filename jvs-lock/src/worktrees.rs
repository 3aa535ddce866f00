//! How worktrees come, move and go, each with its register.
//!
//! A worktree is there once its record is: that is written last and removed
//! before its register is buried, so whatever is interrupted can be run again.
//! A register is never moved while it lives, nor made anew because it looks
//! missing: a rename retires the old one by CAS and gives the new one its token
//! and head; a name that is used again goes on above its old token.

use std::fmt;
use std::io;

use jvs_repo::audit::Kind;
use jvs_repo::code::{Code, Coded, code_of_io};
use jvs_repo::id::{Epoch, FencingToken, Generation, OpNonce, SnapshotId};
use jvs_repo::json::RecordError;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{self as record, Isolation, WorktreeRecord};
use jvs_repo::store::RepoPath;

use crate::birth;
use crate::decide::{self, Own};
use crate::drive::{Applied, Verdict};
use crate::error::{BirthError, LockError};
use crate::locks::Locks;
use crate::register::{ReadError, Register};
use crate::state::{Hold, State};

/// Why a worktree could not be made, renamed or removed.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorktreeError {
    /// Its lock stands in the way.
    Lock(LockError),
    /// Its register could not be made.
    Birth(BirthError),
    /// Its record could not be read or written.
    Record(RecordError),
    /// Something of that name is there.
    Exists {
        /// The name.
        name: WorktreeName,
        /// What is there.
        what: String,
    },
    /// There is no such worktree.
    NotFound {
        /// The name.
        name: WorktreeName,
    },
    /// It has files, which would be lost.
    NotEmpty {
        /// The name.
        name: WorktreeName,
    },
    /// The first worktree can be neither renamed nor removed.
    IsMain,
    /// The filesystem failed or refused.
    Io {
        /// Where.
        path: RepoPath,
        /// How.
        source: io::Error,
    },
}

impl fmt::Display for WorktreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorktreeError::Lock(error) => error.fmt(f),
            WorktreeError::Birth(error) => error.fmt(f),
            WorktreeError::Record(error) => error.fmt(f),
            WorktreeError::Exists { name, what } => {
                write!(f, "worktree '{name}' cannot be made: {what}")
            }
            WorktreeError::NotFound { name } => write!(f, "there is no worktree '{name}'"),
            WorktreeError::NotEmpty { name } => {
                write!(f, "worktree '{name}' has files, which would be deleted")
            }
            WorktreeError::IsMain => {
                write!(f, "worktree 'main' is the repository's own and stays where it is")
            }
            WorktreeError::Io { path, source } => write!(f, "{path}: {source}"),
        }
    }
}

impl std::error::Error for WorktreeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WorktreeError::Lock(error) => Some(error),
            WorktreeError::Birth(error) => Some(error),
            WorktreeError::Record(error) => Some(error),
            WorktreeError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Coded for WorktreeError {
    fn code(&self) -> Code {
        match self {
            WorktreeError::Lock(error) => error.code(),
            WorktreeError::Birth(error) => error.code(),
            WorktreeError::Record(error) => error.code(),
            WorktreeError::Exists { .. } | WorktreeError::NotEmpty { .. } => Code::Exists,
            WorktreeError::NotFound { .. } => Code::NotFound,
            WorktreeError::IsMain => Code::Usage,
            WorktreeError::Io { source, .. } => code_of_io(source),
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            WorktreeError::Lock(error) => return error.hint(),
            WorktreeError::Birth(error) => return error.hint(),
            WorktreeError::Record(error) => return error.hint(),
            WorktreeError::Exists { .. } => {
                "choose another name; see which there are: jvs worktree list".into()
            }
            WorktreeError::NotFound { .. } => "see which there are: jvs worktree list".into(),
            WorktreeError::NotEmpty { name } => {
                format!("to delete them for good: jvs worktree remove {name} --force")
            }
            WorktreeError::IsMain => "make another one: jvs worktree create NAME".into(),
            WorktreeError::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space on this volume, then run the same command again".into()
                }
                _ => "check the mount and its permissions, then run the same command again".into(),
            },
        })
    }

    fn details(&self) -> Option<serde_json::Value> {
        match self {
            WorktreeError::Lock(error) => error.details(),
            _ => None,
        }
    }
}

macro_rules! from_inner {
    ($($variant:ident $inner:ty;)*) => {
        $(impl From<$inner> for WorktreeError {
            fn from(error: $inner) -> Self {
                WorktreeError::$variant(error)
            }
        })*
    };
}
from_inner! {
    Lock LockError;
    Birth BirthError;
    Record RecordError;
}

impl From<ReadError> for WorktreeError {
    fn from(error: ReadError) -> Self {
        WorktreeError::Lock(error.into())
    }
}

fn io_at(path: &RepoPath) -> impl FnOnce(io::Error) -> WorktreeError + use<> {
    let path = path.clone();
    move |source| WorktreeError::Io { path, source }
}

/// What a new register starts from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    token: FencingToken,
    generation: Generation,
    head: Option<SnapshotId>,
}

const FROM_NOTHING: Origin =
    Origin { token: FencingToken(0), generation: Generation(0), head: None };

/// Makes an empty worktree.
pub fn create(
    locks: &Locks<'_>,
    name: &WorktreeName,
    isolation: Isolation,
) -> Result<WorktreeRecord, WorktreeError> {
    let store = locks.seams.store;
    if record::read(store, name)?.is_some() {
        return Err(exists(name, "there is one of that name"));
    }
    let payload = layout::payload(name);
    // An empty directory may be what an interrupted run left; files are not.
    match store.list(&payload) {
        Ok(entries) if entries.is_empty() => {}
        Ok(_) => return Err(exists(name, "its directory is there and has files in it")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io_at(&payload)(error)),
    }
    let began = Began::note(locks, name)?;
    let made = WorktreeRecord::new(isolation, locks.seams.clock.now().wall);
    // What needs room comes first and leaves no trace; the register, whose
    // tokens must never be forgotten, comes last.
    let prepared = record::prepare(store, name, &made, locks.fresh_op())?;
    let ready = make_payload(locks, &payload)
        .and_then(|()| register_for(locks, name, FROM_NOTHING).map(|_| ()));
    let placed = match ready {
        Ok(()) => prepared.place(store).map_err(WorktreeError::from),
        Err(error) => {
            prepared.discard(store);
            Err(error)
        }
    };
    placed.inspect_err(|_| began.undo(locks, name))?;
    Ok(made)
}

/// The snapshot that a worktree is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// It becomes the head.
    pub head: SnapshotId,
    /// Which commit of its lineage it is.
    pub generation: Generation,
}

/// A worktree that has its register and not yet its files. While it is begun its
/// base is a head, so nobody collects it; until [`Begun::finish`] it is on no
/// list.
#[must_use = "a worktree that is begun must be finished or undone"]
pub struct Begun<'l, 'r> {
    locks: &'l Locks<'r>,
    name: WorktreeName,
    isolation: Isolation,
    base: Base,
    state: State,
    began: Began,
}

/// Begins a worktree that has the files of a snapshot.
pub fn begin_from<'l, 'r>(
    locks: &'l Locks<'r>,
    name: &WorktreeName,
    isolation: Isolation,
    base: Base,
) -> Result<Begun<'l, 'r>, WorktreeError> {
    let store = locks.seams.store;
    if record::read(store, name)?.is_some() {
        return Err(exists(name, "there is one of that name"));
    }
    let began = Began::note(locks, name)?;
    if began.payload_was_there {
        return Err(exists(name, "its directory is there"));
    }
    let origin =
        Origin { token: FencingToken(0), generation: base.generation, head: Some(base.head) };
    let state = register_for(locks, name, origin)?;
    Ok(Begun { locks, name: name.clone(), isolation, base, state, began })
}

impl Begun<'_, '_> {
    /// The first state of its register.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its name.
    pub fn name(&self) -> &WorktreeName {
        &self.name
    }

    /// Puts the tree at `files`, in the repository, in its place, and the
    /// worktree on the list.
    pub fn finish(self, files: &RepoPath) -> Result<WorktreeRecord, WorktreeError> {
        let placed = self.place(files);
        if placed.is_err() {
            self.began.undo(self.locks, &self.name);
        }
        placed
    }

    fn place(&self, files: &RepoPath) -> Result<WorktreeRecord, WorktreeError> {
        let store = self.locks.seams.store;
        let payload = layout::payload(&self.name);
        let parent = payload.parent();
        match store.make_dir(&parent) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_at(&parent)(error));
            }
            _ => {}
        }
        store.rename_new(files, &payload).map_err(io_at(&payload))?;
        store.sync_dir(&parent).map_err(io_at(&parent))?;
        let now = self.locks.seams.clock.now().wall;
        let mut made = WorktreeRecord::new(self.isolation, now);
        made.base = Some(self.base.head);
        let op = OpNonce::random(self.locks.seams.entropy);
        record::create(store, &self.name, &made, op)?;
        Ok(made)
    }

    /// Gives it up.
    pub fn undo(self) {
        self.began.undo(self.locks, &self.name);
    }
}

/// What was there before a worktree was begun, so that a failure leaves no more
/// behind than it found.
struct Began {
    payload_was_there: bool,
    register_was_there: bool,
}

impl Began {
    fn note(locks: &Locks<'_>, name: &WorktreeName) -> Result<Self, WorktreeError> {
        let there = |path: RepoPath| match locks.seams.store.stat(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(io_at(&path)(error)),
        };
        Ok(Began {
            payload_was_there: there(layout::payload(name))?,
            register_was_there: there(layout::register(name))?,
        })
    }

    /// Best effort. The register is retired before it is buried: whoever saw it
    /// for a moment is fenced.
    fn undo(&self, locks: &Locks<'_>, name: &WorktreeName) {
        let store = locks.seams.store;
        if !self.payload_was_there {
            let _ = store.remove_dir(&layout::payload(name));
        }
        if !self.register_was_there
            && let Ok(state) = retire(locks, name, "the worktree could not be completed")
        {
            let _ = bury(locks, name, &state);
        }
    }
}

/// Gives a worktree another name. Its history goes on under the new one.
pub fn rename(
    locks: &Locks<'_>,
    old: &WorktreeName,
    new: &WorktreeName,
) -> Result<(), WorktreeError> {
    if old.is_main() || new.is_main() {
        return Err(WorktreeError::IsMain);
    }
    let store = locks.seams.store;
    let not_found = || WorktreeError::NotFound { name: old.clone() };
    let kept = record::read(store, old)?.ok_or_else(not_found)?;
    let (from, to) = (layout::payload(old), layout::payload(new));
    let is_there = |path: &RepoPath| match store.stat(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io_at(path)(error)),
    };
    // Retired with its files gone to the new name: an interrupted run.
    let moved = is_there(&to)? && !is_there(&from)?;
    let resumed = moved && matches!(locks.register(old).read()?.hold, Hold::Retired);
    if !resumed {
        if record::read(store, new)?.is_some() {
            return Err(exists(new, "there is one of that name"));
        }
        if is_there(&to)? {
            return Err(exists(new, "its directory is there"));
        }
    }
    let last = retire(locks, old, &format!("renamed to {new}"))?;
    let origin = Origin { token: last.token, generation: last.generation, head: last.head };
    register_for(locks, new, origin)?;
    if !moved {
        store.rename_new(&from, &to).map_err(io_at(&to))?;
        store.sync_dir(&to.parent()).map_err(io_at(&to))?;
    }
    if record::read(store, new)?.is_none() {
        record::create(store, new, &kept, OpNonce::random(locks.seams.entropy))?;
    }
    forget(locks, old, &last)
}

/// What a removal leaves for the caller to delete.
#[derive(Debug)]
#[must_use = "the removed files still take up space"]
pub struct Removed {
    /// Where the worktree's files are now, out of everybody's way.
    pub files: Option<RepoPath>,
}

/// Removes a worktree. With `force` also one that has files: they are moved out
/// of the way in one step, and the caller deletes them.
pub fn remove(
    locks: &Locks<'_>,
    name: &WorktreeName,
    force: bool,
) -> Result<Removed, WorktreeError> {
    if name.is_main() {
        return Err(WorktreeError::IsMain);
    }
    let store = locks.seams.store;
    if record::read(store, name)?.is_none() {
        return Err(WorktreeError::NotFound { name: name.clone() });
    }
    let payload = layout::payload(name);
    let has_files = match store.list(&payload) {
        Ok(entries) => Some(!entries.is_empty()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(io_at(&payload)(error)),
    };
    if has_files == Some(true) && !force {
        return Err(WorktreeError::NotEmpty { name: name.clone() });
    }
    let last = retire(locks, name, "removed")?;
    let files = match has_files {
        Some(_) => {
            let mark = format!("{}-{}-{}", last.epoch, last.token, last.op);
            let aside = layout::removed_payload(name, &mark);
            store.rename_new(&payload, &aside).map_err(io_at(&payload))?;
            Some(aside)
        }
        None => None,
    };
    forget(locks, name, &last)?;
    Ok(Removed { files })
}

fn exists(name: &WorktreeName, what: &str) -> WorktreeError {
    WorktreeError::Exists { name: name.clone(), what: what.to_owned() }
}

fn make_payload(locks: &Locks<'_>, payload: &RepoPath) -> Result<(), WorktreeError> {
    let store = locks.seams.store;
    let make = |path: &RepoPath| match store.make_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io_at(path)(error)),
        _ => Ok(()),
    };
    let parent = payload.parent();
    if parent != RepoPath::root() {
        make(&parent)?;
    }
    make(payload)?;
    store.sync_dir(&parent).map_err(io_at(&parent))
}

/// A fresh register for `name`, above all that its name ever stood for.
fn register_for(
    locks: &Locks<'_>,
    name: &WorktreeName,
    origin: Origin,
) -> Result<State, WorktreeError> {
    match locks.register(name).read() {
        Ok(state) if state.hold == Hold::Retired => bury(locks, name, &state)?,
        // Born and never used: what an interrupted run left.
        Ok(state) if state.is_birth() && state.head == origin.head => return Ok(state),
        Ok(_) => return Err(exists(name, "its lock is in use, though it has no record")),
        Err(ReadError::Missing { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let buried = last_buried(locks, name)?;
    let mut salt = [0; 2];
    locks.seams.entropy.fill(&mut salt);
    let counter = buried.map_or(1, |state| state.epoch.counter.saturating_add(1));
    let epoch = Epoch { counter, salt: u16::from_be_bytes(salt) };
    let token = buried.map_or(origin.token, |state| origin.token.max(state.token));
    let op = locks.fresh_op();
    let state = State::rebuilt(epoch, token, origin.generation, origin.head, op);
    let mut journal = locks.journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(birth::install(locks.seams, &mut journal, name, state, Kind::Create, None)?)
}

/// Moves the register to its final state.
fn retire(locks: &Locks<'_>, name: &WorktreeName, reason: &str) -> Result<State, WorktreeError> {
    let register = locks.register(name);
    let op = locks.fresh_op();
    let me = locks.session.nonce();
    let Applied { state, .. } =
        locks.driver(&register, Some(reason)).run_durably("was retired", |state, _, _| {
            let seen = Some(locks.examine(&register, state, None)?);
            let judged = seen.as_ref().and_then(|view| view.judgement.as_ref());
            let foreign = seen.as_ref().filter(|view| view.foreign.is_some());
            match decide::retire(state, judged, me) {
                Ok(Own::Try) if foreign.is_some() => {
                    Err(foreign.map_or(LockError::internal("seen"), LockError::of_other_tool))
                }
                Ok(Own::Try) => Ok(Verdict::Try(Kind::Retire, state.retired(op))),
                Ok(Own::Done) => Ok(Verdict::Applied),
                Err(refusal) => Err(locks.refused(&register, state, refusal, seen, None)),
            }
        })?;
    Ok(state)
}

/// Takes a retired worktree off the lists and its register out of the way.
fn forget(locks: &Locks<'_>, name: &WorktreeName, last: &State) -> Result<(), WorktreeError> {
    let store = locks.seams.store;
    match store.unlink(&layout::lock_record(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_at(&layout::lock_record(name))(error));
        }
        _ => {}
    }
    record::remove(store, name)?;
    bury(locks, name, last)
}

/// Puts a retired register aside, under its epoch. Only a retired one: a CAS
/// would still succeed in a live register that nobody looks at any more.
fn bury(locks: &Locks<'_>, name: &WorktreeName, last: &State) -> Result<(), WorktreeError> {
    debug_assert_eq!(last.hold, Hold::Retired);
    let store = locks.seams.store;
    let grave = layout::buried_register(name, last.epoch);
    store.rename_new(&layout::register(name), &grave).map_err(io_at(&grave))?;
    store.sync_dir(&layout::locks()).map_err(io_at(&grave))
}

/// The last state of the newest register that was buried under this name.
fn last_buried(locks: &Locks<'_>, name: &WorktreeName) -> Result<Option<State>, WorktreeError> {
    let store = locks.seams.store;
    let entries = store.list(&layout::locks()).map_err(io_at(&layout::locks()))?;
    let epochs =
        entries.iter().filter_map(|entry| layout::buried_epoch(name, entry.name.to_str()?));
    let Some(newest) = epochs.max() else { return Ok(None) };
    let grave = layout::buried_register(name, newest);
    Ok(Some(Register::at(store, locks.seams.clock, name.clone(), grave).read()?))
}
