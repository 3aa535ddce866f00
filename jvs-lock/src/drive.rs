//! Takes one operation to a *certain* outcome: READ, decide, log, CAS, and the
//! resolution of answers that say neither yes nor no.
//!
//! The one place that issues a CAS: here for operations within an epoch of the register,
//! in [`epoch`] from one epoch to the next. What an operation wants is its caller's
//! business, handed in as a function of the state just read.

mod epoch;

use std::cell::Cell;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jvs_repo::audit::{Details, EventKind, EventPhase, room};
use jvs_repo::clock::Reading;
use jvs_repo::id::OpNonce;
use jvs_repo::sabotage;

use crate::backoff::Backoff;
use crate::error::RegisterError;
use crate::journal::Journal;
use crate::mutation::Rule;
use crate::register::{Answer, ReadError, Register};
use crate::seams::Seams;
use crate::state::State;

/// How often a CAS is tried while the register stays where it was.
const TRIES_AT_ONE_STATE: u32 = 4;

/// A CAS whose answer was neither yes nor no.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) kind: EventKind,
    pub(crate) from: State,
    pub(crate) to: State,
    /// Both clocks, read before the CAS was first issued.
    pub(crate) before: Reading,
}

impl Attempt {
    /// What is certain about it, seeing that the register is now at `state`.
    /// Its source name is gone, so it cannot land any more; if another state
    /// took its place in the sequence it never did.
    fn phase_at(&self, state: &State) -> EventPhase {
        if *state == self.to {
            EventPhase::Done
        } else if state.epoch == self.to.epoch && state.seq == self.to.seq {
            EventPhase::NotApplied
        } else {
            EventPhase::Unknown
        }
    }
}

/// What an operation wants, seeing a state.
pub(crate) enum Move {
    /// Move the register there.
    Try(EventKind, State),
    /// The same, telling the audit log from whom it is taken and why.
    TryOver(EventKind, State, Details),
    /// The state shows the operation's result: an earlier attempt was applied.
    Applied,
}

/// How an applied operation left the register.
pub(crate) struct Applied {
    /// The register's state as this process last knew it.
    pub(crate) state: State,
    /// Both clocks, read before the CAS was issued: what belief counts from.
    pub(crate) before: Reading,
}

/// Makes the register as it is survive a power cut. If that fails it is told as what it
/// is: done, and perhaps not for good.
pub(crate) fn make_durable(
    register: &Register<'_>,
    done: &'static str,
) -> Result<(), RegisterError> {
    sabotage!(Rule::DurableBeforeTold => Ok(()));
    let worktree = || register.worktree().clone();
    register.sync().map_err(|source| RegisterError::NotDurable {
        worktree: worktree(),
        done,
        source,
    })
}

/// A counter at its end is not counted on from.
fn nothing_follows(state: &State) -> bool {
    sabotage!(Rule::CountersEnd => false);
    state.is_at_an_end()
}

/// A release that found no room for its event goes on without: the register tells of it.
fn needs_no_event(kind: EventKind, error: &io::Error) -> bool {
    sabotage!(Rule::ReleasedWhenFull => false);
    kind == EventKind::Release && room::is_full(error)
}

/// Drives operations on one register.
pub(crate) struct Driver<'d, 'r> {
    pub(crate) seams: Seams<'r>,
    pub(crate) register: &'d Register<'r>,
    pub(crate) journal: &'d Mutex<Journal<'r>>,
    pub(crate) reason: Option<&'d str>,
    /// What was READ for the first decision, if anything was.
    pub(crate) just_read: Cell<Option<State>>,
}

impl<'r> Driver<'_, 'r> {
    /// The same, deciding first by a READ that was just made.
    pub(crate) fn from(self, just_read: Option<State>) -> Self {
        self.just_read.set(just_read);
        self
    }

    /// READ, unless that was just done.
    fn read(&self) -> Result<State, ReadError> {
        match self.just_read.take() {
            Some(state) => self.register.take_for_read(state),
            None => self.register.read(),
        }
    }

    /// Runs an operation to its end. `decide` sees each state READ, the clocks,
    /// and the earlier attempts whose outcome is in doubt.
    pub(crate) fn run<E: From<RegisterError>>(
        &self,
        mut decide: impl FnMut(&State, Reading, &[Attempt]) -> Result<Move, E>,
    ) -> Result<Applied, E> {
        let mut doubtful: Vec<Attempt> = Vec::new();
        loop {
            let state = match self.read() {
                Ok(state) => state,
                Err(error) if doubtful.is_empty() => return Err(RegisterError::from(error).into()),
                Err(error) => return Err(self.unknown(io::Error::other(error)).into()),
            };
            let before = self.seams.clock.now();
            let verdict = decide(&state, before, &doubtful);
            self.settle_overtaken(&doubtful, &state, &verdict);
            let (kind, next, details) = match verdict? {
                Move::Try(kind, next) => (kind, next, None),
                Move::TryOver(kind, next, details) => (kind, next, Some(details)),
                Move::Applied => {
                    let landed =
                        doubtful.iter().find(|tried| tried.to == state).or(doubtful.first());
                    let before = landed.map_or(before, |landed| landed.before);
                    return Ok(Applied { state, before });
                }
            };
            if nothing_follows(&state) {
                let worktree = self.register.worktree().clone();
                let found = format!("a counter of its entry {state} is exhausted");
                return Err(RegisterError::from(ReadError::Corrupt { worktree, found }).into());
            }
            let attempt =
                self.announced(Attempt { kind, from: state, to: next, before }, details)?;
            if self.try_until_it_moves(&attempt)? {
                self.settle(&attempt, EventPhase::Done);
                return Ok(Applied { state: attempt.to, before: self.belief_begins(&attempt) });
            }
            self.decide_again(attempt, &mut doubtful)?;
        }
    }

    /// What belief counts from: a reading that was taken before the call.
    fn belief_begins(&self, attempt: &Attempt) -> Reading {
        sabotage!(Rule::BeliefFromBefore => self.seams.clock.now());
        attempt.before
    }

    /// The register went on without `attempt`. That is no refusal: another process of
    /// the same session may have moved it.
    fn decide_again(
        &self,
        attempt: Attempt,
        doubtful: &mut Vec<Attempt>,
    ) -> Result<(), RegisterError> {
        sabotage!(Rule::LostToSelfIsRetried => Err(crate::sabotage::refused(self)));
        doubtful.push(attempt);
        Ok(())
    }

    /// As [`Driver::run`], and answers once what was done survives a power cut: before
    /// anybody is told of it. `done` says what was done, as [`RegisterError::NotDurable`]
    /// tells it.
    pub(crate) fn run_durably<E: From<RegisterError>>(
        &self,
        done: &'static str,
        decide: impl FnMut(&State, Reading, &[Attempt]) -> Result<Move, E>,
    ) -> Result<Applied, E> {
        let applied = self.run(decide)?;
        make_durable(self.register, done)?;
        Ok(applied)
    }

    /// Writes down what is about to be tried, and answers it. A release is tried also if
    /// there is no room for that: a process that could make room may wait for it. It is then
    /// told afterwards, and if there is no room even then by the register alone.
    fn announced(
        &self,
        attempt: Attempt,
        details: Option<Details>,
    ) -> Result<Attempt, RegisterError> {
        let Attempt { kind, from, to, .. } = attempt;
        if kind == EventKind::Renew {
            return Ok(attempt);
        }
        let stolen = (kind == EventKind::Steal).then_some("the former holder's lease was over");
        let reason = self.reason.or(stolen);
        let worktree = self.register.worktree();
        match self.journal().intend_with(kind, worktree, Some(&from), &to, reason, details) {
            Ok(()) => Ok(attempt),
            Err(error) if needs_no_event(kind, &error) => {
                Ok(Attempt { to: from.released_untold(), ..attempt })
            }
            Err(error) => Err(self.io("cannot write the audit log", error)),
        }
    }

    /// CAS: moves the register from `old` to `new`, the next state of the same epoch, if
    /// it is at `old`.
    fn swap(&self, old: &State, new: &State) -> Answer {
        debug_assert!(new.follows(old), "{old} -> {new}");
        self.move_entry(old, new)
    }

    fn move_entry(&self, old: &State, new: &State) -> Answer {
        let (from, to) = (self.register.entry_of(old), self.register.entry_of(new));
        let answer = Answer::of(self.seams.store.rename(&from, &to));
        if matches!(answer, Answer::Applied) {
            self.register.was_moved_to(new);
        }
        answer
    }

    /// Issues one CAS, again and again while its answer is unknown and the old
    /// name is still there. True: applied. False: the register is elsewhere now.
    fn try_until_it_moves(&self, attempt: &Attempt) -> Result<bool, RegisterError> {
        let mut backoff = Backoff::new();
        let mut tries = 0;
        let mut only_noent = true;
        let mut in_doubt = false;
        let mut to = attempt.to;
        loop {
            tries += 1;
            let error = match self.swap(&attempt.from, &to) {
                Answer::Applied => return Ok(true),
                Answer::Refused(error) if !in_doubt => {
                    self.settle(attempt, EventPhase::NotApplied);
                    return Err(self.io("cannot update the fence register", error));
                }
                Answer::Refused(error) => return self.give_up(attempt, error),
                Answer::Unknown(error) => error,
            };
            in_doubt = true;
            only_noent &= error.kind() == io::ErrorKind::NotFound;
            match self.register.read() {
                // Seen once is certain, whatever happens to it a moment later.
                Ok(state) if state == to => return Ok(true),
                Ok(state) if state != attempt.from => return Ok(false),
                Ok(_) => {}
                Err(_) => return Err(self.unknown(error)),
            }
            to = self.tried_next(attempt);
            let error = self.may_still_land(error)?;
            if tries >= TRIES_AT_ONE_STATE {
                return if only_noent {
                    Err(RegisterError::StaleMount { worktree: self.register.worktree().clone() })
                } else {
                    self.give_up(attempt, error)
                };
            }
            if only_noent && tries + 1 == TRIES_AT_ONE_STATE {
                let _ = self.register.shake(attempt.to.op);
            }
            self.seams.clock.sleep_ms(backoff.next_ms());
        }
    }

    /// All tries of an operation share one nonce: whichever of them lands, it is told by it.
    fn tried_next(&self, attempt: &Attempt) -> State {
        sabotage!(Rule::OneOpForAllAttempts => crate::sabotage::under_another_nonce(self, attempt));
        attempt.to
    }

    /// The old name is still there. That is not a failure: this rename may land minutes
    /// from now.
    fn may_still_land(&self, error: io::Error) -> Result<io::Error, RegisterError> {
        sabotage!(Rule::UnchangedIsNotFailed => {
            Err(self.io("cannot update the fence register", error))
        });
        Ok(error)
    }

    /// Makes certain that an attempt never lands, by moving the register on
    /// from the name it would have to start from.
    fn give_up(&self, attempt: &Attempt, error: io::Error) -> Result<bool, RegisterError> {
        let on = attempt.from.advanced(OpNonce::random(self.seams.entropy));
        let worktree = self.register.worktree();
        let reason = Some("to make the outcome of an earlier attempt certain");
        if self
            .journal()
            .intend(EventKind::Advance, worktree, Some(&attempt.from), &on, reason)
            .is_err()
        {
            return Err(self.unknown(error));
        }
        match self.swap(&attempt.from, &on) {
            Answer::Applied => {
                self.journal().settle(
                    EventKind::Advance,
                    worktree,
                    Some(&attempt.from),
                    &on,
                    EventPhase::Done,
                );
                self.settle(attempt, EventPhase::NotApplied);
                Err(self.io("cannot update the fence register", error))
            }
            Answer::Refused(_) | Answer::Unknown(_) => match self.register.read() {
                Ok(state) if state == attempt.to => Ok(true),
                // Whatever it was that moved it: the caller decides by it.
                Ok(state) if state != attempt.from => Ok(false),
                _ => Err(self.unknown(error)),
            },
        }
    }

    fn settle(&self, attempt: &Attempt, phase: EventPhase) {
        let from = Some(&attempt.from);
        self.journal().settle(attempt.kind, self.register.worktree(), from, &attempt.to, phase);
    }

    fn settle_overtaken<E>(&self, doubtful: &[Attempt], state: &State, verdict: &Result<Move, E>) {
        let Some(last) = doubtful.last() else { return };
        let phase = match (last.phase_at(state), verdict) {
            // Its mark stays in every later state. Of a release only "not mine
            // any more" stays, which may be a stealer's doing.
            (EventPhase::Unknown, Ok(Move::Applied)) if last.kind == EventKind::Publish => {
                EventPhase::Done
            }
            (phase, _) => phase,
        };
        self.settle(last, phase);
    }

    fn journal(&self) -> MutexGuard<'_, Journal<'r>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn io(&self, doing: &'static str, source: io::Error) -> RegisterError {
        RegisterError::Io { worktree: self.register.worktree().clone(), doing, source }
    }

    fn unknown(&self, source: io::Error) -> RegisterError {
        RegisterError::OutcomeUnknown { worktree: self.register.worktree().clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use jvs_repo::clock::{BootMs, WallMs};
    use jvs_repo::id::{Epoch, HolderNonce, Seq};

    use super::*;

    fn born(counter: u32) -> State {
        State::birth(Epoch { counter, salt: 0 }, OpNonce([0; 8]))
    }

    #[test]
    fn what_took_the_place_of_an_attempt_says_that_it_never_was_applied() {
        let from = born(1);
        let grant = |by: u8, op: u8| {
            from.granted(HolderNonce([by; 16]), 1_000, WallMs(5), OpNonce([op; 8]))
        };
        let to = grant(1, 1);
        let before = Reading { wall: WallMs(0), boot: BootMs(0) };
        let attempt = Attempt { kind: EventKind::Acquire, from, to, before };
        assert_eq!(attempt.phase_at(&to), EventPhase::Done);
        assert_eq!(attempt.phase_at(&grant(2, 2)), EventPhase::NotApplied);
        // Further on nothing is seen of it, and in another epoch that place is no other's.
        assert_eq!(attempt.phase_at(&to.advanced(OpNonce([3; 8]))), EventPhase::Unknown);
        let elsewhere = State { epoch: Epoch { counter: 2, salt: 0 }, ..grant(2, 2) };
        assert_eq!(attempt.phase_at(&elsewhere), EventPhase::Unknown);
        assert_eq!(attempt.phase_at(&from), EventPhase::Unknown);
    }

    #[test]
    fn only_a_release_goes_on_without_room_for_its_event() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let other = io::Error::from(io::ErrorKind::PermissionDenied);
        for (kind, is_release) in [(EventKind::Release, true), (EventKind::Acquire, false)] {
            assert_eq!(needs_no_event(kind, &full), is_release, "{kind}");
            assert!(!needs_no_event(kind, &other), "{kind}");
        }
    }

    #[test]
    fn a_counter_at_its_end_is_not_counted_on_from() {
        assert!(!nothing_follows(&born(1)));
        assert!(nothing_follows(&State { seq: Seq::END, ..born(1) }));
    }
}
