//! What was begun with a worktree and not ended: told from its register and from
//! the operation's note, and ended by the process that finds it.

use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{self as record, MakerProcess, Note, WorktreeRecord};
use jvs_repo::store::Store;

use super::create::make_payload;
use super::error::WorktreeError;
use super::note::{self, Discarded, is_recorded};
use super::remove;
use super::rename::finish;
use super::reserve;
use crate::locks::{Locks, Want};
use crate::register::{ReadError, Register};
use crate::seams::Seams;
use crate::state::{Hold, State};

/// For how long nothing may happen before somebody else's work is ended. Who died
/// is not asked of the clock; this only lets through the process that is quick.
const PAUSE_MS: u64 = 1_000;

/// What is being done with a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doing {
    /// It is being made.
    Making,
    /// It gets another name.
    Renaming {
        /// The new name.
        to: WorktreeName,
    },
    /// It is being removed.
    Removing,
    /// It is committed to, again and again.
    Changing,
}

/// Something that was begun and not ended.
#[derive(Debug, Clone)]
pub struct Unfinished {
    /// The interrupted operation.
    pub doing: Doing,
    /// By which process, if that is known.
    pub maker: Option<MakerProcess>,
    state: State,
}

/// What is being done with the worktree, or was interrupted?
pub fn look(seams: Seams<'_>, name: &WorktreeName) -> Result<Option<Unfinished>, WorktreeError> {
    let state = match Register::new(seams.store, seams.clock, name.clone()).read() {
        Ok(state) => state,
        Err(ReadError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let recorded = is_recorded(seams.store, name)?;
    if state.hold == Hold::Retired && recorded {
        return retired(seams.store, name, state).map(Some);
    }
    if state.hold != Hold::Free || recorded {
        return Ok(None);
    }
    let note = record::note_of(seams.store, state.op)?;
    // A worktree that lost its record has no note, and is more than reserved.
    if name.is_main() || note.is_none() && !reserve::is_nobodys(seams, name, &state)? {
        return Ok(None);
    }
    let maker = note.and_then(|(_, said)| said).and_then(|said| said.maker);
    Ok(Some(Unfinished { doing: Doing::Making, maker, state }))
}

/// Who retired it, and what for: its note tells, or the record that it became.
fn retired(
    store: &dyn Store,
    name: &WorktreeName,
    state: State,
) -> Result<Unfinished, WorktreeError> {
    let (doing, said) = match record::note_of(store, state.op)? {
        Some((to, said)) if to != *name => (Doing::Renaming { to }, said),
        Some((_, said)) => (Doing::Removing, said),
        None => match renamed_to(store, &state)? {
            Some((to, said)) => (Doing::Renaming { to }, said),
            None => (Doing::Removing, None),
        },
    };
    Ok(Unfinished { doing, maker: said.and_then(|said| said.maker), state })
}

fn renamed_to(store: &dyn Store, state: &State) -> Result<Option<Note>, WorktreeError> {
    let of_this = |record: &WorktreeRecord| record.op == Some(state.op);
    let all = record::list(store)?.worktrees.into_iter();
    Ok(all
        .filter_map(|(name, record)| Some((name, record.ok()?)))
        .find(|(_, record)| of_this(record))
        .map(|(name, record)| (name, Some(record))))
}

/// What is being done with a worktree that is on the list, if it is retired.
pub(super) fn of_retired(
    locks: &Locks<'_>,
    name: &WorktreeName,
) -> Result<Option<Doing>, WorktreeError> {
    let state = locks.register(name).read()?;
    if state.hold != Hold::Retired {
        return Ok(None);
    }
    retired(locks.seams.store, name, state).map(|found| Some(found.doing))
}

/// Ends what was begun: finishes it if everything is there, and otherwise leaves
/// the world as it was before. No file is deleted.
///
/// A process that began it and still lives is told the truth: it finds its operation
/// finished, or is told that it failed.
pub fn end(locks: &Locks<'_>, name: &WorktreeName) -> Result<(), WorktreeError> {
    let seams = locks.seams;
    let Some(found) = look(seams, name)? else { return Ok(()) };
    seams.clock.sleep_ms(PAUSE_MS);
    match look(seams, name)? {
        Some(still) if still.state == found.state && still.doing == found.doing => {}
        _ => return Ok(()),
    }
    let state = &found.state;
    match &found.doing {
        Doing::Renaming { to } => match finish(locks, name, to, state) {
            // It was taken back.
            Err(WorktreeError::Exists { .. }) => Ok(()),
            ended => ended,
        },
        Doing::Removing | Doing::Changing => {
            remove::end(locks, name, state)?;
            note::discard(seams.store, name, state.op).map(drop)
        }
        Doing::Making => end_making(locks, name, state),
    }
}

fn end_making(locks: &Locks<'_>, name: &WorktreeName, state: &State) -> Result<(), WorktreeError> {
    let seams = locks.seams;
    let note = record::note_of(seams.store, state.op)?.and_then(|(_, said)| said);
    if let Some(source) = note.as_ref().and_then(|said| said.renamed_from.as_ref())
        && let Ok(last) = locks.register(source).read()
        && last.hold == Hold::Retired
        && last.op == state.op
    {
        return finish(locks, source, name, &last);
    }
    let payload = layout::payload(name);
    if note::is_withdrawn(seams.store, name, state.op)? || note.is_none() {
        // With files it is a worktree without a record, which is told as such.
        if reserve::is_empty(seams.store, &payload)? && !is_recorded(seams.store, name)? {
            reserve::retire_exactly(locks, name, state, "it was not made")?;
        }
        note::dismiss(seams.store, name, state.op);
        return Ok(());
    }
    let has_files = seams.store.stat(&payload).is_ok();
    match note {
        // Confirmed, with all that it needs.
        Some(said) if !state.is_birth() && (has_files || said.base.is_none()) => {
            if !has_files {
                make_payload(locks, name, &payload)?;
            }
            let copied = said.base.is_some();
            note::place(seams, name, state.op)?;
            // What is left of the copy is bound to the token that it was begun under.
            // Best effort: the first who takes the lock ends that as well.
            let want = Want::lease(locks.policy.lease_duration_ms);
            if copied && let Ok(lease) = locks.acquire(name, want) {
                let _ = lease.release();
            }
            Ok(())
        }
        _ => match note::withdraw(seams, name, state.op)? {
            Discarded::Placed => Ok(()),
            Discarded::Gone => {
                reserve::retire_exactly(locks, name, state, "it was not made")?;
                note::dismiss(seams.store, name, state.op);
                Ok(())
            }
        },
    }
}
