//! The locks of a repository, as one session works with them.

use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use jvs_repo::audit::{Kind, Log, Phase};
use jvs_repo::clock::{BootMs, Reading};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::{FencingToken, OpNonce};
use jvs_repo::name::WorktreeName;

use crate::decide::{self, Acquire, Bound, Own, Refusal};
use crate::drive::{self, Applied, Driver, Journal, Verdict};
use crate::error::LockError;
use crate::fence::Shared;
use crate::judge::Watch;
use crate::lease::{How, Lease, Ticket};
use crate::legacy;
use crate::reclaim;
use crate::record::{OwnRecord, Record};
use crate::register::Register;
use crate::seams::Seams;
use crate::session::Session;
use crate::state::{Hold, LEASE_MAX_MS, State};
use crate::view::{self, View, Word};

/// What is wanted of a lock.
#[derive(Debug, Clone, Copy)]
pub struct Want<'w> {
    /// How long the lease lasts without renewal.
    pub lease_ms: u64,
    /// Why, for the audit log.
    pub reason: Option<&'w str>,
    /// What for, for whoever looks at the lock.
    pub note: Option<&'w str>,
    /// What was seen by watching the register, if it was watched.
    pub watch: Option<&'w Watch>,
}

impl Want<'_> {
    /// A lease of this length, and nothing more to say.
    pub const fn lease(lease_ms: u64) -> Self {
        Want { lease_ms, reason: None, note: None, watch: None }
    }
}

/// Whom an operator goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// Neither a live holder nor a live lock of another tool.
    Nobody,
    /// A lock of another tool: it is being turned into one of ours.
    Others,
    /// Whoever holds: forced.
    Everybody,
}

/// The locks of a repository in the hands of one session. Cheap to clone.
#[derive(Clone)]
pub struct Locks<'r> {
    pub(crate) seams: Seams<'r>,
    pub(crate) session: Arc<Session>,
    pub(crate) policy: LockPolicy,
    pub(crate) journal: Arc<Mutex<Journal<'r>>>,
}

impl<'r> Locks<'r> {
    /// The locks as `session` sees them, its events going to `log`. Touches
    /// nothing.
    pub fn new(seams: Seams<'r>, session: Session, policy: LockPolicy, log: Log<'r>) -> Self {
        let journal = Journal::new(log, seams.clock, &session);
        Locks { seams, session: Arc::new(session), policy, journal: Arc::new(Mutex::new(journal)) }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// One look at a lock. Changes nothing.
    pub fn inspect(&self, worktree: &WorktreeName) -> Result<View, LockError> {
        view::look(self.seams, &self.policy, worktree, Some(self.session.nonce()))
    }

    /// Takes the lock: if it is free, if it is this session's already (then it
    /// is refreshed), or if its holder's lease is over for long enough (then it
    /// is stolen, under a new token).
    ///
    /// The same session id on another host has another secret and so another
    /// nonce; it takes over under a new token, and the old hold is fenced.
    pub fn acquire(&self, worktree: &WorktreeName, want: Want<'_>) -> Result<Lease<'r>, LockError> {
        self.take(worktree, want, &|view| {
            let elsewhere = reclaim::is_same_session_elsewhere(view.record()?, &self.session);
            elsewhere.then_some(reclaim::Decision::SAME_SESSION)
        })
    }

    /// Takes the lock as [`Locks::acquire`] does, or from a live holder if
    /// allowed to. `over` says whether a conflict may be overruled, and
    /// by which reason.
    pub(crate) fn take(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
        over: &dyn Fn(&View) -> Option<reclaim::Decision>,
    ) -> Result<Lease<'r>, LockError> {
        check_lease(want.lease_ms)?;
        let register = self.register(worktree);
        let op = self.fresh_op();
        let me = self.session.nonce();
        let mut unheard: Option<String> = None;
        let mut granted: Option<(Kind, FencingToken, Option<reclaim::Decision>)> = None;
        let Applied { state, before } =
            self.driver(&register, want.reason).run(|state, now, _| {
                // What is one's own is not taken from anybody.
                let seen = match state.holder() == Some(me) {
                    true => None,
                    false => Some(self.examine(&register, state, want.watch)?),
                };
                unheard = seen.as_ref().and_then(|view| view.unheard.clone());
                let judged = seen.as_ref().and_then(|view| view.judgement.as_ref());
                let mut grant = |kind, by: Option<reclaim::Decision>| {
                    let next = state.granted(me, want.lease_ms, now.wall, op);
                    let details = by
                        .zip(seen.as_ref())
                        .map(|(by, view)| reclaim::details(by, view, &self.session));
                    granted = Some((kind, next.token, by));
                    match details {
                        Some(details) => Verdict::TryOver(kind, next, details),
                        None => Verdict::Try(kind, next),
                    }
                };
                let decided = decide::acquire(state, me, op, judged, &self.policy);
                if matches!(decided, Ok(Acquire::Grant | Acquire::Steal))
                    && let Some(view) = seen.as_ref().filter(|view| view.foreign.is_some())
                {
                    return match over(view).filter(|by| by.overrules_other_tools()) {
                        Some(by) => Ok(grant(Kind::Reclaim, Some(by))),
                        None => Err(LockError::of_other_tool(view)),
                    };
                }
                match decided {
                    Ok(Acquire::Grant) => Ok(grant(Kind::Acquire, None)),
                    Ok(Acquire::Steal) => match seen.as_ref().and_then(over) {
                        Some(by) if by.reason == reclaim::Reason::LockExpired => {
                            Ok(grant(Kind::Reclaim, Some(by)))
                        }
                        _ => Ok(grant(Kind::Steal, None)),
                    },
                    Ok(Acquire::Refresh) => {
                        // Another process of this session made this state: a grant
                        // that was tried before is its, or was refreshed by it, and
                        // who cannot tell must not give it back.
                        granted = None;
                        Ok(Verdict::Try(Kind::Renew, state.extended(want.lease_ms, now.wall, op)))
                    }
                    Ok(Acquire::Done) => Ok(Verdict::Applied),
                    Err(Refusal::Conflict(judged)) => {
                        let view =
                            seen.as_ref().ok_or(LockError::internal("a conflict is seen"))?;
                        match over(view) {
                            Some(by) if by.allowed => Ok(grant(Kind::Reclaim, Some(by))),
                            _ => {
                                let refusal = Refusal::Conflict(judged);
                                Err(self.refused(&register, state, refusal, seen, None))
                            }
                        }
                    }
                    Err(refusal) => Err(self.refused(&register, state, refusal, seen, None)),
                }
            })?;
        let granted = granted.filter(|(_, token, _)| *token == state.token);
        let how = match granted {
            Some((Kind::Steal, ..)) => How::Stolen,
            Some((Kind::Reclaim, ..)) => How::Reclaimed,
            Some(_) => How::Acquired,
            None => How::Refreshed,
        };
        let mut lease = Lease::begin(self.clone(), register, state, before, want.lease_ms, how)?;
        lease.taken_by(granted.and_then(|(_, _, by)| by));
        lease.write_record(&state, before, want.note);
        lease.tell_unheard(unheard);
        lease.made_durable()
    }

    /// Goes on with a hold that another process of this session took. A ticket
    /// binds to that very hold; without one, to whatever hold the session has.
    pub fn resume(
        &self,
        worktree: &WorktreeName,
        ticket: Option<&Ticket>,
    ) -> Result<Lease<'r>, LockError> {
        let register = self.register(worktree);
        let state = register.read()?;
        let bound = match ticket {
            Some(ticket) => {
                Bound { epoch: ticket.epoch, token: ticket.token, holder: self.session.nonce() }
            }
            None => Bound { epoch: state.epoch, token: state.token, holder: self.session.nonce() },
        };
        // Asked by renewing's rules: whoever may renew may go on.
        if let Err(refusal) = decide::renew(&state, bound, self.fresh_op()) {
            let refusal = if ticket.is_none() { Refusal::NotHeld } else { refusal };
            return Err(self.refused(&register, &state, refusal, None, Some(bound.token)));
        }
        Lease::resumed(self.clone(), register, state)
    }

    /// Begins work on a worktree that many write to. Nobody may hold it now, and
    /// whoever takes or freezes it before the commit fences that.
    pub fn share(&self, worktree: &WorktreeName) -> Result<Shared<'r>, LockError> {
        Shared::begin(self.clone(), worktree)
    }

    /// Writes down, durably, something that is not a transition of a register.
    pub fn note(
        &self,
        kind: Kind,
        phase: Phase,
        op: OpNonce,
        worktree: Option<&WorktreeName>,
        reason: Option<&str>,
        details: Option<serde_json::Value>,
    ) -> io::Result<()> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.note(kind, phase, op, worktree, reason, details)
    }

    /// The world as these locks see it.
    pub fn seams(&self) -> Seams<'r> {
        self.seams
    }

    /// Watches the register until its holder is proven idle, without any wall
    /// clock: the exact name unchanged for a whole lease and the grace. `each`
    /// is told what was seen, for how long, and how long is needed; it may stop
    /// the watch, which then answers `None`.
    pub fn observe(
        &self,
        worktree: &WorktreeName,
        mut each: impl FnMut(&View, u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<Watch>, LockError> {
        const LOOKS_A_LEASE: u64 = 60;
        let register = self.register(worktree);
        let mut watch: Option<Watch> = None;
        loop {
            let before = self.seams.clock.now();
            let state = register.read()?;
            let after = self.seams.clock.now();
            let watch = match &mut watch {
                Some(watch) => {
                    watch.look(state, before, after);
                    watch
                }
                none => none.insert(Watch::start(state, before, after)),
            };
            let view = self.examine(&register, &state, Some(watch))?;
            let Some(claim) = state.hold.claim() else { return Ok(Some(watch.clone())) };
            // Stealable by a wall clock that is in doubt is no proof: watch on.
            let in_doubt = view
                .judgement
                .as_ref()
                .is_some_and(|judged| decide::is_skewed(judged, &self.policy));
            if view.mine || matches!(view.word(), Word::Stealable | Word::Free) && !in_doubt {
                return Ok(Some(watch.clone()));
            }
            let watched = watch.unchanged_for(&state, view.at.boot).unwrap_or(0);
            let needed = claim.lease_ms.saturating_add(self.policy.steal_grace_ms);
            if each(&view, watched, needed).is_break() {
                return Ok(None);
            }
            let pause = (claim.lease_ms / LOOKS_A_LEASE).clamp(20, 1_000);
            self.seams.clock.sleep_ms(pause.min(needed.saturating_sub(watched)).max(1));
        }
    }

    /// Freezes the worktree: nobody acquires or publishes until the freeze ends
    /// or is lifted. `force` takes it from a live holder, who is fenced.
    pub fn freeze(
        &self,
        worktree: &WorktreeName,
        for_ms: u64,
        reason: &str,
        force: bool,
    ) -> Result<State, LockError> {
        let over = if force { Over::Everybody } else { Over::Nobody };
        self.freeze_over(worktree, for_ms, reason, over)
    }

    pub(crate) fn freeze_over(
        &self,
        worktree: &WorktreeName,
        for_ms: u64,
        reason: &str,
        over: Over,
    ) -> Result<State, LockError> {
        let force = over == Over::Everybody;
        check_lease(for_ms)?;
        let register = self.register(worktree);
        let op = self.fresh_op();
        let me = self.session.nonce();
        let Applied { state, before } =
            self.driver(&register, Some(reason)).run(|state, now, _| {
                let seen = Some(self.examine(&register, state, None)?);
                let judged = seen.as_ref().and_then(|view| view.judgement.as_ref());
                let foreign = seen.as_ref().filter(|view| view.foreign.is_some());
                match decide::freeze(state, op, judged, force) {
                    Ok(Own::Try) if over == Over::Nobody && foreign.is_some() => {
                        Err(foreign.map_or(LockError::internal("seen"), LockError::of_other_tool))
                    }
                    Ok(Own::Try) => {
                        Ok(Verdict::Try(Kind::Freeze, state.frozen(me, for_ms, now.wall, op)))
                    }
                    Ok(Own::Done) => Ok(Verdict::Applied),
                    Err(refusal) => Err(self.refused(&register, state, refusal, seen, None)),
                }
            })?;
        if let Hold::Frozen(claim) = state.hold {
            let record = self.record_of(worktree, &state, &claim, before, Some(reason));
            // Best effort, as for every record: the register says it is frozen.
            let may_replace = || over == Over::Others || !self.has_foreign_record(worktree);
            let _ = OwnRecord::place(self.seams.store, record, may_replace);
        }
        drive::make_durable(&register, "was frozen")?;
        Ok(state)
    }

    /// Lifts a freeze, whoever made it.
    pub fn unfreeze(&self, worktree: &WorktreeName, reason: &str) -> Result<State, LockError> {
        let register = self.register(worktree);
        let op = self.fresh_op();
        let frozen_under = register.read()?.token;
        let Applied { state, .. } = self.driver(&register, Some(reason)).run_durably(
            "is not frozen any more",
            |state, _, tried| match decide::unfreeze(state, frozen_under, !tried.is_empty()) {
                Ok(Own::Try) => Ok(Verdict::Try(Kind::Unfreeze, state.released(op))),
                Ok(Own::Done) => Ok(Verdict::Applied),
                Err(Refusal::NotHeld) => Err(LockError::NotFrozen { worktree: worktree.clone() }),
                Err(refusal) => Err(self.refused(&register, state, refusal, None, None)),
            },
        )?;
        if !self.has_foreign_record(worktree) {
            let _ = self.seams.store.unlink(&jvs_repo::layout::lock_record(worktree));
        }
        Ok(state)
    }

    /// Is a live lock of another tool where the record would be?
    pub(crate) fn has_foreign_record(&self, worktree: &WorktreeName) -> bool {
        legacy::is_in_the_place_of_our_record(self.seams, &self.policy, worktree)
    }

    pub(crate) fn register(&self, worktree: &WorktreeName) -> Register<'r> {
        Register::new(self.seams.store, self.seams.clock, worktree.clone())
    }

    pub(crate) fn driver<'d>(
        &'d self,
        register: &'d Register<'r>,
        reason: Option<&'d str>,
    ) -> Driver<'d, 'r> {
        Driver { seams: self.seams, register, journal: &self.journal, reason }
    }

    pub(crate) fn fresh_op(&self) -> OpNonce {
        OpNonce::random(self.seams.entropy)
    }

    pub(crate) fn examine(
        &self,
        register: &Register<'_>,
        state: &State,
        watch: Option<&Watch>,
    ) -> Result<View, LockError> {
        let me = Some(self.session.nonce());
        view::examine(self.seams, &self.policy, register.worktree(), *state, me, watch)
    }

    pub(crate) fn record_of(
        &self,
        worktree: &WorktreeName,
        state: &State,
        claim: &crate::state::Claim,
        at: Reading,
        note: Option<&str>,
    ) -> Record {
        Record::of_grant(&self.session, worktree, state, claim, at, &self.policy, note)
    }

    /// Turns a refusal into an error that tells what was seen.
    pub(crate) fn refused(
        &self,
        register: &Register<'_>,
        state: &State,
        refusal: Refusal,
        seen: Option<View>,
        token: Option<FencingToken>,
    ) -> LockError {
        let worktree = register.worktree().clone();
        match refusal {
            Refusal::Fenced { current } => {
                return LockError::Fenced { worktree, token: token.unwrap_or(current), current };
            }
            Refusal::Retired => return LockError::Retired { worktree },
            Refusal::HeadMoved { current } => return LockError::HeadMoved { worktree, current },
            Refusal::Conflict(_) | Refusal::Frozen(_) | Refusal::Skew(_) | Refusal::NotHeld => {}
        }
        let view = match seen.map_or_else(|| self.examine(register, state, None), Ok) {
            Ok(view) => Box::new(view),
            Err(error) => return error,
        };
        match refusal {
            Refusal::Conflict(_) => LockError::Conflict(view),
            Refusal::Frozen(_) => LockError::Frozen(view),
            Refusal::Skew(_) => {
                LockError::ClockSkew { view, max_clock_skew_ms: self.policy.max_clock_skew_ms }
            }
            _ => LockError::NotHeld { view },
        }
    }
}

fn check_lease(lease_ms: u64) -> Result<(), LockError> {
    if (1..=LEASE_MAX_MS).contains(&lease_ms) {
        return Ok(());
    }
    Err(LockError::Invalid { problem: "a lease lasts from 1 ms to 366 days".into() })
}

/// When a hold found in the register ends on this host's boot-time clock.
///
/// By the record if it is current and of this boot: exact. Otherwise by this
/// host's own wall clock, on which the session wrote the end, less the skew
/// that clocks are allowed.
pub(crate) fn believed_end(
    state: &State,
    record: Option<&Record>,
    now: Reading,
    boot_id: &jvs_repo::clock::BootId,
    policy: &LockPolicy,
) -> BootMs {
    let Some(claim) = state.hold.claim() else { return BootMs(0) };
    match record.filter(|record| record.is_current(state) && record.boot_id == *boot_id) {
        Some(record) => record.renewed_boot_ms.plus(claim.lease_ms),
        None => {
            let left = claim.expires.since(now.wall).saturating_sub(policy.max_clock_skew_ms);
            now.boot.plus(left.min(claim.lease_ms))
        }
    }
}
