//! An operation's note, and how it becomes the record.

use std::io;

use jvs_repo::code::{Code, Coded};
use jvs_repo::id::OpNonce;
use jvs_repo::json;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{self as record, MakerProcess, WorktreeRecord};
use jvs_repo::sabotage;
use jvs_repo::store::{RepoPath, Store};

use super::error::{WorktreeError, exists, io_at};
use crate::locks::Locks;
use crate::mutation::Rule;
use crate::register::Answer;
use crate::seams::Seams;

/// How often a rename whose answer was lost is tried.
const TRIES: u32 = 4;
/// Between two tries.
const PAUSE_MS: u64 = 20;

/// Writes the note of operation `op` of this process.
pub(super) fn write(
    locks: &Locks<'_>,
    name: &WorktreeName,
    mut record: WorktreeRecord,
    op: OpNonce,
) -> Result<WorktreeRecord, WorktreeError> {
    let me = locks.session.identity();
    let maker = MakerProcess {
        time_namespace: locks.seams.clock.time_namespace(),
        boot_id: me.boot_id.clone(),
        pid_namespace: me.pid_namespace,
        pid: me.pid,
        start_time: me.start_time,
    };
    (record.op, record.maker) = (Some(op), Some(maker));
    record::write_note(locks.seams.store, name, &record, op)?;
    Ok(record)
}

/// What came of taking a note back.
pub(super) enum Discarded {
    /// It can never become the record any more.
    Gone,
    /// It is the record: somebody finished what it says.
    Placed,
}

/// Takes a note back: after this, a process that ends what others began cannot end this.
pub(super) fn discard(
    store: &dyn Store,
    name: &WorktreeName,
    op: OpNonce,
) -> Result<Discarded, WorktreeError> {
    let tmp = layout::worktree_record_tmp(name, op);
    if unlink(store, &tmp)? {
        return Ok(Discarded::Gone);
    }
    if is_record_of(store, name, op)? { Ok(Discarded::Placed) } else { Ok(Discarded::Gone) }
}

/// Makes a note one that can never become the record, and leaves it where it is looked
/// for: what its operation takes apart is its own until [`dismiss`].
pub(super) fn withdraw(
    seams: Seams<'_>,
    name: &WorktreeName,
    op: OpNonce,
) -> Result<Discarded, WorktreeError> {
    sabotage!(Rule::WithdrawnUnderItsNote => discard(seams.store, name, op));
    let from = layout::worktree_record_tmp(name, op);
    let to = layout::worktree_record_tmp(name, op.withdrawn());
    match move_new(seams, &from, &to) {
        Ok(()) => Ok(Discarded::Gone),
        Err(NotMoved::Gone) if is_record_of(seams.store, name, op)? => Ok(Discarded::Placed),
        Err(NotMoved::Gone) => Ok(Discarded::Gone),
        Err(stuck) => Err(stuck.at(name, &from)),
    }
}

/// Was the note of `op` withdrawn, by the process that is not at an end with that?
pub(super) fn is_withdrawn(
    store: &dyn Store,
    name: &WorktreeName,
    op: OpNonce,
) -> Result<bool, WorktreeError> {
    let path = layout::worktree_record_tmp(name, op.withdrawn());
    store.is_there(&path).map_err(io_at(&path))
}

/// Removes a note that was withdrawn: its operation touches nothing of the name any
/// more. One that stays says nothing but that.
pub(super) fn dismiss(store: &dyn Store, name: &WorktreeName, op: OpNonce) {
    let _ = unlink(store, &layout::worktree_record_tmp(name, op.withdrawn()));
}

/// Removes a file, if it is there; true if this answer says that it was.
pub(super) fn unlink(store: &dyn Store, path: &RepoPath) -> Result<bool, WorktreeError> {
    for attempt in 1.. {
        match store.unlink(path) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) if attempt == TRIES => return Err(io_at(path)(error)),
            // It may be gone anyway: the next answer tells.
            Err(_) => {}
        }
    }
    Ok(false)
}

fn is_record_of(
    store: &dyn Store,
    name: &WorktreeName,
    op: OpNonce,
) -> Result<bool, WorktreeError> {
    Ok(record::read(store, name)?.is_some_and(|record| record.op == Some(op)))
}

/// Is there a record of that name? Asked of the directory: that a name is not there
/// a mount may remember for a while, a listing is the server's.
pub(crate) fn has_record(store: &dyn Store, name: &WorktreeName) -> io::Result<bool> {
    let path = layout::worktree_record(name);
    let (dir, file) = path.split();
    Ok(store.list(&dir)?.iter().any(|entry| entry.name == *file))
}

pub(super) fn is_recorded(store: &dyn Store, name: &WorktreeName) -> Result<bool, WorktreeError> {
    has_record(store, name).map_err(io_at(&layout::worktree_records()))
}

/// Is there a record of that name, also one that a removal took aside to look at, or the
/// note of `op`, which the register is at? All are names in one directory, which are
/// renamed to each other.
pub(super) fn is_spoken_for(
    store: &dyn Store,
    name: &WorktreeName,
    op: OpNonce,
) -> Result<bool, WorktreeError> {
    let dir = layout::worktree_records();
    for entry in store.list(&dir).map_err(io_at(&dir))? {
        let Some(file) = entry.name.to_str() else { continue };
        if layout::worktree_of_record(file).as_ref() == Some(name) {
            return Ok(true);
        }
        let Some((_, by)) = layout::note_of(file).filter(|(of, _)| of == name) else { continue };
        if by == op || by == op.withdrawn() {
            return Ok(true);
        }
        match json::read::<WorktreeRecord>(store, &layout::worktree_record_tmp(name, by)) {
            // Another's note.
            Ok(Some(said)) if said.op.is_some_and(|of| by == of || by == of.withdrawn()) => {}
            // Taken aside, or renamed since it was listed.
            Ok(_) => return Ok(true),
            // Only a note is ever cut short.
            Err(error) if error.code() == Code::Io => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(false)
}

/// Makes the note of `op` the record of `name`. An error other than
/// [`WorktreeError::OutcomeUnknown`] says that it is not and never will be.
pub(super) fn place(
    seams: Seams<'_>,
    name: &WorktreeName,
    op: OpNonce,
) -> Result<(), WorktreeError> {
    let store = seams.store;
    let (tmp, path) = (layout::worktree_record_tmp(name, op), layout::worktree_record(name));
    if let Err(stuck) = move_new(seams, &tmp, &path)
        && !is_record_of(store, name, op)?
    {
        return match stuck {
            // It may land later, as long as there is something to land.
            NotMoved::Unknown(source) => match discard(store, name, op) {
                Ok(Discarded::Gone) => Err(io_at(&path)(source)),
                Ok(Discarded::Placed) => durable(seams, name, &path),
                Err(_) => Err(WorktreeError::OutcomeUnknown { name: name.clone(), source }),
            },
            NotMoved::Refused(source) => Err(io_at(&path)(source)),
            NotMoved::Exists | NotMoved::Gone => {
                Err(exists(name, "somebody else made it meanwhile"))
            }
        };
    }
    durable(seams, name, &path)
}

fn durable(seams: Seams<'_>, name: &WorktreeName, path: &RepoPath) -> Result<(), WorktreeError> {
    sabotage!(Rule::MadeDurably => Ok(()));
    let dir = path.parent();
    let unknown = |source| WorktreeError::OutcomeUnknown { name: name.clone(), source };
    seams.store.sync_dir(&dir).or_else(|_| seams.store.sync_dir(&dir)).map_err(unknown)
}

/// Why something was not moved.
#[derive(Debug)]
pub(super) enum NotMoved {
    /// Certainly not moved.
    Refused(io::Error),
    /// The target is there, and the source as well.
    Exists,
    /// Neither is there.
    Gone,
    /// It may be moved later.
    Unknown(io::Error),
}

impl NotMoved {
    pub(super) fn at(self, name: &WorktreeName, path: &RepoPath) -> WorktreeError {
        match self {
            NotMoved::Refused(error) => io_at(path)(error),
            NotMoved::Exists => exists(name, "its directory is there"),
            NotMoved::Gone => io_at(path)(io::ErrorKind::NotFound.into()),
            NotMoved::Unknown(source) => {
                WorktreeError::OutcomeUnknown { name: name.clone(), source }
            }
        }
    }
}

/// Moves what only one operation moves to where nothing is.
pub(super) fn move_new(seams: Seams<'_>, from: &RepoPath, to: &RepoPath) -> Result<(), NotMoved> {
    let is_there = |path: &RepoPath| match seams.store.stat(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(NotMoved::Unknown(error)),
    };
    let mut in_doubt = false;
    for attempt in 1.. {
        let error = match Answer::of(seams.store.rename_new(from, to)) {
            Answer::Applied => return Ok(()),
            Answer::Refused(error) if !in_doubt => return Err(NotMoved::Refused(error)),
            Answer::Refused(error) | Answer::Unknown(error) => error,
        };
        in_doubt = true;
        match (is_there(from)?, is_there(to)?) {
            (false, true) => return Ok(()),
            // It may have landed between the two looks.
            (true, true) if is_there(from)? => return Err(NotMoved::Exists),
            (true, true) => return Ok(()),
            (false, false) => return Err(NotMoved::Gone),
            (true, false) if attempt == TRIES => return Err(NotMoved::Unknown(error)),
            (true, false) => seams.clock.sleep_ms(PAUSE_MS),
        }
    }
    Err(NotMoved::Gone)
}
