//! Who may have a name: decided in its register.

use std::io;

use jvs_repo::audit::EventKind;
use jvs_repo::id::{Epoch, FencingToken, Generation, OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree as record;
use jvs_repo::sabotage;
use jvs_repo::store::{RepoPath, Store};

use super::error::{WorktreeError, exists, io_at};
use super::head;
use super::note::{is_recorded, is_spoken_for};
use super::unfinished::Doing;
use crate::birth;
use crate::drive::{Applied, Move};
use crate::error::{BirthError, RegisterError};
use crate::locks::Locks;
use crate::mutation::Rule;
use crate::register::{ReadError, Register};
use crate::seams::Seams;
use crate::state::{Hold, State};

/// How often a reservation that somebody else made is looked at before it is taken
/// over. Nothing depends on it but that quick ones are let through.
const LOOKS: u32 = 4;
/// Between two looks.
const PAUSE_MS: u64 = 250;

/// What a new epoch starts from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) token: FencingToken,
    pub(super) generation: Generation,
    pub(super) head: Option<SnapshotId>,
}

pub(super) const FROM_NOTHING: Origin =
    Origin { token: FencingToken(0), generation: Generation(0), head: None };

impl Origin {
    /// The first state of the epoch after `before`, above all that the name ever
    /// stood for.
    pub(super) fn life_after(
        &self,
        locks: &Locks<'_>,
        before: Option<&State>,
        op: OpNonce,
    ) -> State {
        let mut salt = [0; 2];
        locks.seams.entropy.fill(&mut salt);
        let counter = before.map_or(1, |state| state.epoch.counter.saturating_add(1));
        let epoch = Epoch { counter, salt: u16::from_be_bytes(salt) };
        let token = before.map_or(self.token, |state| self.token.max(state.token));
        State::rebuilt(epoch, token, self.generation, self.head, op)
    }
}

/// Reserves a name that no worktree has, for the operation `op`, whose note is
/// written. The answer is the first state of an epoch that is this operation's.
pub(super) fn reserve(
    locks: &Locks<'_>,
    name: &WorktreeName,
    origin: Origin,
    op: OpNonce,
) -> Result<State, WorktreeError> {
    try_to_reserve(locks, name, origin, op).inspect_err(|_| {
        // It may be there anyway: what failed may have come after it.
        if let Ok(seen) = locks.register(name).read()
            && seen.op == op
            && seen.is_birth()
        {
            give_up(locks, name, &seen);
        }
    })
}

/// Is a register at `state`, which was READ, of a reservation that nobody owns: free,
/// with neither a note, a record nor files?
///
/// A process that makes a worktree has a note from before it reserved the name until it touches
/// nothing more of it, or until the note became the record; so if neither is there,
/// nobody confirms or finishes `state` any more, and a CAS from exactly `state` takes
/// nothing of anybody. Looked at twice: what is renamed during a listing it may miss.
pub(super) fn is_nobodys(
    seams: Seams<'_>,
    name: &WorktreeName,
    state: &State,
) -> Result<bool, WorktreeError> {
    Ok(state.hold == Hold::Free
        && !name.is_main()
        && !is_spoken_for(seams.store, name, state.op)?
        && !is_spoken_for(seams.store, name, state.op)?
        && is_empty(seams.store, &layout::payload(name))?)
}

/// Is there no directory, or nothing in it?
pub(super) fn is_empty(store: &dyn Store, payload: &RepoPath) -> Result<bool, WorktreeError> {
    match store.list(payload) {
        Ok(entries) => Ok(entries.is_empty()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(io_at(payload)(error)),
    }
}

fn try_to_reserve(
    locks: &Locks<'_>,
    name: &WorktreeName,
    origin: Origin,
    op: OpNonce,
) -> Result<State, WorktreeError> {
    let register = locks.register(name);
    let mut looks: Option<(State, u32)> = None;
    loop {
        let seen = match register.read() {
            Ok(state) => state,
            Err(ReadError::Missing { .. }) => match install(locks, name, origin, op) {
                Err(WorktreeError::Birth(BirthError::Exists { .. })) => continue,
                born => return born,
            },
            Err(error) => return Err(error.into()),
        };
        // A reservation of this operation whose answer was lost.
        if seen.op == op && seen.is_birth() {
            return Ok(seen);
        }
        // Looked at after the READ: a process that gets a record has moved the register on
        // from a reservation before, and a process that gave one up has no record by then.
        if is_recorded(locks.seams.store, name)? {
            return Err(exists(name, "there is one of that name"));
        }
        match seen.hold {
            Hold::Retired => {}
            Hold::Free if seen.is_birth() => {
                let times = looks.filter(|(state, _)| *state == seen).map_or(0, |(_, n)| n) + 1;
                looks = Some((seen, times));
                match record::note_of(locks.seams.store, seen.op)? {
                    // Its operation has ended: nobody confirms it any more.
                    None => {}
                    // To copy files takes its time.
                    Some((_, Some(note))) if note.base.is_some() => {
                        return Err(WorktreeError::BeingRestored { name: name.clone() });
                    }
                    Some(_) if times < LOOKS => {
                        locks.seams.clock.sleep_ms(PAUSE_MS);
                        continue;
                    }
                    Some(_) => {}
                }
            }
            Hold::Free if is_nobodys(locks.seams, name, &seen)? => {}
            Hold::Free if record::note_of(locks.seams.store, seen.op)?.is_some() => {
                let doing = Doing::Making;
                return Err(WorktreeError::Underway { name: name.clone(), doing });
            }
            _ => return Err(exists(name, "its lock is in use, though it has no record")),
        }
        let next = origin.life_after(locks, Some(&seen), op);
        if begin_life(locks, &register, &seen, next, EventKind::Create, None)? {
            return Ok(next);
        }
    }
}

fn install(
    locks: &Locks<'_>,
    name: &WorktreeName,
    origin: Origin,
    op: OpNonce,
) -> Result<State, WorktreeError> {
    let buried = last_buried(locks, name)?;
    let state = origin.life_after(locks, buried.as_ref(), op);
    let mut journal = locks.journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(birth::install(locks.seams, &mut journal, name, state, EventKind::Create, None)?)
}

/// Begins the next epoch from exactly `from`. False: somebody else was faster.
pub(super) fn begin_life<'r>(
    locks: &Locks<'r>,
    register: &Register<'r>,
    from: &State,
    next: State,
    kind: EventKind,
    reason: Option<&str>,
) -> Result<bool, WorktreeError> {
    show_before_next_life(locks, register, from, &next)?;
    Ok(locks.driver(register, reason).begin_life(from, next, kind)?)
}

/// A register forgets its head for another only once that is visible. A process that retired it
/// may have died, or not have known.
fn show_before_next_life<'r>(
    locks: &Locks<'r>,
    register: &Register<'r>,
    from: &State,
    next: &State,
) -> Result<(), RegisterError> {
    sabotage!(Rule::ShownBeforeNextLife => Ok(()));
    match from.head == next.head {
        true => Ok(()),
        false => head::show(locks, register, from),
    }
}

/// The next epoch of a reservation of one's own, from what its origin is by now.
pub(super) fn reserve_again(
    locks: &Locks<'_>,
    name: &WorktreeName,
    reserved: &State,
    origin: Origin,
) -> Result<State, WorktreeError> {
    let register = locks.register(name);
    let next = origin.life_after(locks, Some(reserved), reserved.op);
    if begin_life(locks, &register, reserved, next, EventKind::Create, None)? {
        return Ok(next);
    }
    Err(taken(name))
}

/// Is `state` in the epoch that `reserved` began, with nobody else having moved it?
fn is_still(state: &State, reserved: &State) -> bool {
    state.term() == reserved.term() && state.head == reserved.head && state.hold == Hold::Free
}

fn taken(name: &WorktreeName) -> WorktreeError {
    exists(name, "somebody else took the name meanwhile")
}

/// Makes the reservation final: from now on the name is this operation's, and
/// nobody takes it over. The CAS decides between it and the process that would have.
pub(super) fn confirm(
    locks: &Locks<'_>,
    name: &WorktreeName,
    reserved: &State,
) -> Result<(), WorktreeError> {
    sabotage!(Rule::ConfirmedBeforeTouched => Ok(()));
    let register = locks.register(name);
    let op = reserved.op;
    let driver = locks.driver(&register, None);
    let confirmed = driver.run_durably("was confirmed", |state, _, _| {
        if !is_still(state, reserved) {
            return Err(taken(name));
        }
        if state.op == op && state.seq > reserved.seq {
            return Ok(Move::Applied);
        }
        Ok(Move::Try(EventKind::Create, state.advanced(op)))
    });
    confirmed.map(drop)
}

/// Gives a reservation of one's own up, confirmed or not. Best effort: one that
/// stays is taken over by the process that wants the name, or ended by doctor. Somebody
/// else's is not touched, whatever it was that failed.
pub(super) fn give_up(locks: &Locks<'_>, name: &WorktreeName, reserved: &State) {
    let register = locks.register(name);
    let op = locks.fresh_op();
    let _ = locks.driver(&register, Some("the worktree was not made")).run(|state, _, _| {
        if state.hold == Hold::Retired && state.op == op {
            return Ok(Move::Applied);
        }
        if !may_give_up(state, reserved) {
            return Err(taken(name));
        }
        Ok(Move::Try(EventKind::Retire, state.retired(op)))
    });
}

/// A process that lost the name retires nothing of the process that has it.
fn may_give_up(state: &State, reserved: &State) -> bool {
    sabotage!(Rule::LoserRemovesNothing => true);
    is_still(state, reserved)
}

/// Retires a register that is at exactly `seen`.
pub(super) fn retire_exactly(
    locks: &Locks<'_>,
    name: &WorktreeName,
    seen: &State,
    reason: &str,
) -> Result<State, WorktreeError> {
    let register = locks.register(name);
    let op = locks.fresh_op();
    let Applied { state, .. } = locks.driver(&register, Some(reason)).run(|state, _, _| {
        if state.hold == Hold::Retired && state.op == op {
            return Ok(Move::Applied);
        }
        if state != seen {
            return Err(WorktreeError::BroughtBack { name: name.clone(), files: None });
        }
        Ok(Move::Try(EventKind::Retire, state.retired(op)))
    })?;
    Ok(state)
}

/// The last state of the newest register that an earlier version put aside. Of several
/// that nobody can order the one with the highest token: what comes next is above all.
/// Their heads are made visible, for the next epoch forgets them.
fn last_buried(locks: &Locks<'_>, name: &WorktreeName) -> Result<Option<State>, WorktreeError> {
    let store = locks.seams.store;
    let entries = store.list(&layout::locks()).map_err(io_at(&layout::locks()))?;
    let names = entries.iter().filter_map(|entry| entry.name.to_str());
    let epochs: Vec<Epoch> = names.filter_map(|file| layout::buried_epoch(name, file)).collect();
    let counter = epochs.iter().map(|epoch| epoch.counter).max();
    let mut last: Option<State> = None;
    for newest in epochs.into_iter().filter(|epoch| Some(epoch.counter) == counter) {
        let grave = layout::buried_register(name, newest);
        let register = Register::at(store, locks.seams.clock, name.clone(), grave);
        let state = register.read()?;
        head::show(locks, &register, &state)?;
        if last.is_none_or(|last| last.token < state.token) {
            last = Some(state);
        }
    }
    Ok(last)
}
