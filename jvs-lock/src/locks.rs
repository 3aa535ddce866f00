//! The locks of a repository, as one session works with them.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use jvs_repo::audit::{Details, EventKind, EventPhase, Log};
use jvs_repo::clock::{BootClock, BootMs, Reading};
use jvs_repo::config::{LockPolicy, ReclaimRules};
use jvs_repo::id::{FencingToken, OpNonce, SnapshotId};
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::sabotage;
use jvs_repo::term::Term;

use crate::decide::{self, Acquire, Bound, LostTerm, NoThaw, Own, Refusal};
use crate::drive::{self, Applied, Driver, Move};
use crate::error::{
    AcquireError, BadLease, ForceError, FreezeError, LeaseError, NotAdmin, RegisterError,
    TakeOverError, UnfreezeError, WasRemoved,
};
use crate::fence::Shared;
use crate::history::{self, Dropped};
use crate::hold::HoldRefusal;
use crate::holder::Onlooker;
use crate::journal::Journal;
use crate::kept::Kept;
use crate::lease::{Lease, LeaseOrigin, Ticket};
use crate::legacy;
use crate::mutation::Rule;
use crate::policy::{self, Act, Claimant, LockHolder, Ruling};
use crate::queue::Lookup;
use crate::reclaim;
use crate::record::{Meaning, OwnRecord, Record, Renewal, Stamp};
use crate::register::Register;
use crate::seams::Seams;
use crate::session::Session;
use crate::state::{Hold, LEASE_MAX_MS, State};
use crate::view::{self, StatusWord, View};
use crate::watching::{InMemory, Patience, Sightings};
use crate::worktrees;

/// Asked between a READ and the CAS that would take the lock from there: may it?
pub trait Gate {
    /// `state` was just READ; `holder` is the session that has it, if another does.
    fn pass(&self, state: &State, holder: Option<String>) -> Result<(), HoldRefusal>;
}

/// What is wanted of a lock.
#[derive(Clone, Copy)]
pub struct Want<'w> {
    /// How long the lease lasts without renewal.
    pub lease_ms: u64,
    /// Why, for the audit log.
    pub reason: Option<&'w str>,
    /// What for, for observers.
    pub note: Option<&'w str>,
    /// How often it will be renewed; `None` if nobody will, and it simply lasts.
    pub renewed_every_ms: Option<u64>,
    /// Until when it will be kept, for observers.
    pub kept: Option<&'w Kept>,
    /// Take it afresh, with the gate's leave: a term that is this session's already
    /// is then not refreshed but burnt, for nobody was told that it holds it. The grant
    /// is neither recorded nor durable yet: see `Locks::enter`.
    pub gate: Option<&'w dyn Gate>,
    /// Whether an epoch that has just begun is taken.
    pub new_epoch: NewEpoch,
    /// The register as this process has just READ it, and done nothing since: it is not READ
    /// again before it is decided.
    pub just_read: Option<State>,
}

/// What becomes of an epoch that has just begun: a session whose command failed to rename or
/// remove the worktree takes its lock again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewEpoch {
    /// It is taken like any other.
    Taken,
    /// It is left to that session, unless it is this one, which was left for long enough.
    Left {
        /// Its first state.
        but: Option<State>,
    },
}

impl NewEpoch {
    fn leaves(self, state: &State) -> bool {
        match self {
            NewEpoch::Taken => false,
            NewEpoch::Left { but } => state.follows_another_epoch() && but != Some(*state),
        }
    }
}

impl Want<'_> {
    /// A lease of this length, and nothing more to say.
    pub const fn lease(lease_ms: u64) -> Self {
        Want {
            lease_ms,
            reason: None,
            note: None,
            renewed_every_ms: None,
            kept: None,
            gate: None,
            new_epoch: NewEpoch::Taken,
            just_read: None,
        }
    }
}

/// Whom an operator goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Override {
    /// Neither a live holder nor a live lock of another tool.
    Nobody,
    /// A lock of another tool: it is being turned into one of ours.
    Others,
    /// Whom the repository's policy lets this session overrule.
    ByPolicy,
}

/// The locks of a repository in the hands of one session. Cheap to clone.
#[derive(Clone)]
pub struct Locks<'r> {
    pub(crate) seams: Seams<'r>,
    pub(crate) session: Arc<Session>,
    pub(crate) policy: LockPolicy,
    pub(crate) journal: Arc<Mutex<Journal<'r>>>,
    pub(crate) sightings: Arc<dyn Sightings>,
    pub(crate) patience: Option<Arc<dyn Patience>>,
    pub(crate) stakes: Option<Stakes<'r>>,
    pub(crate) show_head: Option<ShowHead>,
    pub(crate) rules: Arc<ReclaimRules>,
    pub(crate) lookup: Option<SeenBy<'r>>,
}

/// How the processes of this host are seen from any thread.
pub type SeenBy<'r> = &'r (dyn Fn(u32) -> Option<ProcessStat> + Sync);

/// Does anything rest on the hold in that state? `None` if that cannot be seen.
pub type Stakes<'r> = &'r (dyn Fn(&State) -> Option<bool> + Sync);

/// Makes a head visible if its publisher did not come to it. The register that has it
/// was READ, and is durable.
pub type ShowHead = fn(Seams<'_>, SnapshotId) -> io::Result<()>;

/// A grant that was tried.
struct Granted {
    kind: EventKind,
    token: FencingToken,
    /// By which reason it overrules a holder, if it does.
    by: Option<reclaim::Decision>,
}

impl<'r> Locks<'r> {
    /// The locks as `session` sees them, its events going to `log`. Touches
    /// nothing.
    pub fn new(seams: Seams<'r>, session: Session, policy: LockPolicy, log: Log<'r>) -> Self {
        let journal = Journal::new(log, seams.clock, &session);
        Locks {
            seams,
            session: Arc::new(session),
            policy,
            journal: Arc::new(Mutex::new(journal)),
            sightings: Arc::new(InMemory::default()),
            patience: None,
            stakes: None,
            show_head: None,
            rules: Arc::default(),
            lookup: None,
        }
    }

    /// The same, forcing by these rules; `lookup` tells whether a keeper has died.
    #[must_use]
    pub fn ruled_by(self, rules: ReclaimRules, lookup: SeenBy<'r>) -> Self {
        Locks { rules: Arc::new(rules), lookup: Some(lookup), ..self }
    }

    /// The same, with what makes a head visible. Without it nothing is known of
    /// snapshots here, and a process that ends a register's epoch leaves them as they are.
    #[must_use]
    pub fn showing(self, show_head: ShowHead) -> Self {
        Locks { show_head: Some(show_head), ..self }
    }

    /// The same, asking what rests on a hold before its holder is taken for dead.
    #[must_use]
    pub fn asking(self, stakes: Stakes<'r>) -> Self {
        Locks { stakes: Some(stakes), ..self }
    }

    /// The same, remembering what is seen of other hosts' locks in `sightings`,
    /// so that the session's next command need not start watching again.
    #[must_use]
    pub fn remembering(self, sightings: Arc<dyn Sightings>) -> Self {
        Locks { sightings, ..self }
    }

    /// The repository's policy.
    pub fn policy(&self) -> &LockPolicy {
        &self.policy
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// One look at a lock. Changes nothing.
    pub fn inspect(&self, worktree: &WorktreeName) -> Result<View, RegisterError> {
        let view = view::look(self.seams, &self.policy, worktree, Some(self.session.nonce()))?;
        Ok(view.seen_by(Onlooker::of(&self.session)))
    }

    /// Takes the lock: if it is free, if it is this session's already (then it
    /// is refreshed), or if its holder's lease is over for long enough (then it
    /// is stolen, under a new token).
    ///
    /// The same session id on another host has another secret and so another
    /// nonce; it takes over under a new token, and the old hold is fenced.
    pub fn acquire(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
    ) -> Result<Lease<'r>, AcquireError> {
        let who = Claimant::of(&self.session, false);
        self.take(worktree, want, &|view| {
            let holder = LockHolder { record: view.record(), keeper: None };
            let ruling = policy::may(Act::Acquire, self.stands(view), holder, who, &self.rules);
            ruling.reason().map(reclaim::Decision::by)
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
    ) -> Result<Lease<'r>, AcquireError> {
        check_lease(want.lease_ms)?;
        self.patiently(|| self.take_now(worktree, want, over))
    }

    fn take_now(
        &self,
        worktree: &WorktreeName,
        want: Want<'_>,
        over: &dyn Fn(&View) -> Option<reclaim::Decision>,
    ) -> Result<Lease<'r>, AcquireError> {
        let register = self.register(worktree);
        let op = self.fresh_op();
        let me = self.session.nonce();
        let began = self.seams.clock.now();
        let mut unheard: Option<String> = None;
        let mut granted: Option<Granted> = None;
        let driver = self.driver(&register, want.reason).from(want.just_read);
        let applied = driver.run(|state, now, _| {
            self.refuse_reserved(worktree, state)?;
            if want.new_epoch.leaves(state) {
                let worktree = worktree.clone();
                return Err(TakeOverError::JustBegun { worktree }.into());
            }
            // What is one's own is not taken from anybody.
            let seen = match state.holder() == Some(me) {
                true => None,
                false => Some(self.examine(&register, state, began)?),
            };
            unheard = seen.as_ref().and_then(|view| view.unheard.clone());
            let judged = seen.as_ref().and_then(|view| view.judgement.as_ref());
            let mut grant = |kind, by: Option<reclaim::Decision>| -> Result<Move, AcquireError> {
                if let Some(gate) = want.gate {
                    let record = seen.as_ref().and_then(View::record);
                    let holder = record.map(|record| record.session_id.clone());
                    gate.pass(state, holder).map_err(Box::new)?;
                }
                let next = state.granted(me, want.lease_ms, now.wall, op);
                let details = by
                    .zip(seen.as_ref())
                    .map(|(by, view)| reclaim::details(by, view, &self.session));
                granted = Some(Granted { kind, token: next.token, by });
                Ok(match details {
                    Some(details) => Move::TryOver(kind, next, details),
                    None => Move::Try(kind, next),
                })
            };
            let decided = decide::acquire(state, me, op, judged, &self.policy);
            if matches!(decided, Ok(Acquire::Grant | Acquire::Steal))
                && let Some(view) = seen.as_ref().filter(|view| view.foreign.is_some())
            {
                return match over(view).filter(|by| by.overrules_other_tools()) {
                    Some(by) => grant(EventKind::Reclaim, Some(by)),
                    None => Err(TakeOverError::of_other_tool(view).into()),
                };
            }
            match decided {
                Ok(Acquire::Grant) => grant(EventKind::Acquire, None),
                Ok(Acquire::Steal) => match seen.as_ref().and_then(over) {
                    Some(by) if by.reason == reclaim::ReclaimReason::LockExpired => {
                        grant(EventKind::Reclaim, Some(by))
                    }
                    _ => grant(EventKind::Steal, None),
                },
                Ok(Acquire::Refresh) if want.gate.is_some() => grant(EventKind::Acquire, None),
                Ok(Acquire::Refresh) => {
                    // Another process of this session made this state: a grant
                    // that was tried before is its, or was refreshed by it, and
                    // who cannot tell must not release it.
                    granted = None;
                    Ok(Move::Try(EventKind::Renew, state.extended(want.lease_ms, now.wall, op)))
                }
                Ok(Acquire::Done) => Ok(Move::Applied),
                Err(refusal) => {
                    let view = seen.as_ref().ok_or(RegisterError::internal("it was seen"))?;
                    let overruled = matches!(refusal, Refusal::Conflict | Refusal::Unproven);
                    match over(view).filter(|_| overruled) {
                        Some(by) => grant(EventKind::Reclaim, Some(by)),
                        None => Err(self.refused(refusal, view).into()),
                    }
                }
            }
        })?;
        let mut lease = self.lease_of(register, applied, want, granted)?;
        lease.tell_unheard(unheard);
        if want.gate.is_some() {
            // A process that came through a gate opens its hold first: one disk's time for both.
            return Ok(lease);
        }
        lease.write_first_record(want.note);
        Ok(lease.made_durable()?)
    }

    /// The lease on what was `applied`: how it came about, and how it is kept.
    fn lease_of(
        &self,
        register: Register<'r>,
        applied: Applied,
        want: Want<'_>,
        granted: Option<Granted>,
    ) -> Result<Lease<'r>, RegisterError> {
        let Applied { state, before } = applied;
        // Of a grant that was tried before another's took its place nothing is left.
        let granted = granted.filter(|granted| granted.token == state.token);
        let how = match granted.as_ref().map(|granted| granted.kind) {
            Some(EventKind::Steal) => LeaseOrigin::Stolen,
            Some(EventKind::Reclaim) => LeaseOrigin::Reclaimed,
            Some(_) => LeaseOrigin::Acquired,
            None => LeaseOrigin::Refreshed,
        };
        let mut lease = Lease::begin(self.clone(), register, state, before, want.lease_ms, how)?;
        lease.taken_by(granted.and_then(|granted| granted.by));
        lease.renewal = match want.renewed_every_ms {
            Some(ms) => Renewal::Every(ms),
            None => Renewal::Nobody,
        };
        lease.kept = want.kept.cloned();
        Ok(lease)
    }

    /// Goes on with a hold that another process of this session took. A ticket
    /// binds to that very hold; without one, to whatever hold the session has.
    pub fn resume(
        &self,
        worktree: &WorktreeName,
        ticket: Option<&Ticket>,
    ) -> Result<Lease<'r>, LeaseError> {
        let register = self.register(worktree);
        let state = register.read()?;
        let term = ticket.map_or_else(|| state.term(), |ticket| ticket.term);
        let bound = Bound { term, holder: self.session.nonce() };
        // Asked by renewing's rules: a process that may renew may go on.
        if let Err(lost) = decide::renew(&state, bound, self.fresh_op()) {
            let lost = if ticket.is_none() { LostTerm::NotHeld } else { lost };
            return Err(self.lost(worktree, &state, lost, bound.term.token));
        }
        Ok(Lease::resumed(self.clone(), register, state)?)
    }

    /// Is the hold of `ticket` still this session's? One READ.
    pub fn is_held_under(
        &self,
        worktree: &WorktreeName,
        ticket: &Ticket,
    ) -> Result<(), LeaseError> {
        let state = self.register(worktree).read()?;
        let bound = Bound { term: ticket.term, holder: self.session.nonce() };
        match decide::renew(&state, bound, self.fresh_op()) {
            Ok(_) => Ok(()),
            Err(lost) => Err(self.lost(worktree, &state, lost, bound.term.token)),
        }
    }

    /// Begins work on a worktree that many write to. Nobody may hold it now, and
    /// the process that takes or freezes it before the commit fences that.
    pub fn share(&self, worktree: &WorktreeName) -> Result<Shared<'r>, TakeOverError> {
        Shared::begin(self.clone(), worktree)
    }

    /// Writes down, durably, something that is not a transition of a register.
    pub fn note(
        &self,
        kind: EventKind,
        phase: EventPhase,
        op: OpNonce,
        worktree: Option<&WorktreeName>,
        reason: Option<&str>,
        details: Option<Details>,
    ) -> io::Result<()> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.note(kind, phase, op, worktree, reason, details)
    }

    /// Drops the oldest of the closed audit logs once there is more of them than the policy
    /// keeps. Drops nothing while they and the registers do not add up.
    pub fn drop_old_logs(&self) -> io::Result<Dropped> {
        let keep = self.policy.audit_keep_kib.saturating_mul(1024);
        history::drop_old(self.seams, &self.session, keep)
    }

    /// The same, if this session closed a log: whoever makes it grow sees to it that it does
    /// not do so for ever. Best effort, and when nothing is held: it takes as long as reading
    /// the logs.
    pub(crate) fn drop_what_was_closed(&self) {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = journal.has_closed_a_log();
        drop(journal);
        if closed {
            let _ = self.drop_old_logs();
        }
    }

    /// The world as these locks see it.
    pub fn seams(&self) -> Seams<'r> {
        self.seams
    }

    /// Freezes the worktree: nobody acquires or publishes until the freeze ends
    /// or is lifted. `force` takes it from a live holder, who is fenced, where a reclaim
    /// could.
    pub fn freeze(
        &self,
        worktree: &WorktreeName,
        for_ms: u64,
        reason: &str,
        force: bool,
    ) -> Result<State, FreezeError> {
        if !force {
            return self.freeze_over(worktree, for_ms, reason, Override::Nobody);
        }
        let who = Claimant::of(&self.session, true);
        match self.freeze_over(worktree, for_ms, reason, Override::ByPolicy) {
            Err(FreezeError::Take(TakeOverError::Conflict(view))) => {
                let act = Act::FreezeByForce;
                Err(self.denied(view, act, who, &self.rules, self.lookup()).into())
            }
            answer => answer,
        }
    }

    fn lookup(&self) -> Option<Lookup<'r>> {
        self.lookup.map(|lookup| lookup as Lookup<'r>)
    }

    /// May this session do so to what is seen in `view`?
    fn ruling(&self, act: Act, view: &View) -> Ruling {
        let who = Claimant::of(&self.session, act == Act::FreezeByForce);
        let holder = self.holder_in(view, self.lookup());
        policy::may(act, self.stands(view), holder, who, &self.rules)
    }

    /// May this session end its own commands to give the lock back?
    pub fn may_release_by_force(&self, worktree: &WorktreeName) -> Result<(), ForceError> {
        match self.ruling(Act::ReleaseByForce, &self.inspect(worktree)?) {
            Ruling::NotAdmin => Err(self.not_admin(worktree, "use --force").into()),
            // Whether it has it is asked by the release itself.
            _ => Ok(()),
        }
    }

    fn not_admin(&self, worktree: &WorktreeName, doing: &'static str) -> NotAdmin {
        let (admins, uid) = (self.rules.admins.to_string(), self.session.identity().uid());
        NotAdmin { worktree: worktree.clone(), doing, admins, uid }
    }

    /// The change with what the log keeps of it: whoever is overruled, by whom and why.
    fn telling(&self, kind: EventKind, next: State, ruling: Option<Ruling>, view: &View) -> Move {
        sabotage!(Rule::OverrulingIsTold => Move::Try(kind, next));
        match ruling.and_then(Ruling::reason).map(reclaim::Decision::by) {
            Some(by) => Move::TryOver(kind, next, reclaim::details(by, view, &self.session)),
            None => Move::Try(kind, next),
        }
    }

    pub(crate) fn freeze_over(
        &self,
        worktree: &WorktreeName,
        for_ms: u64,
        reason: &str,
        over: Override,
    ) -> Result<State, FreezeError> {
        check_lease(for_ms)?;
        self.patiently(|| self.freeze_now(worktree, for_ms, reason, over))
    }

    fn freeze_now(
        &self,
        worktree: &WorktreeName,
        for_ms: u64,
        reason: &str,
        over: Override,
    ) -> Result<State, FreezeError> {
        let register = self.register(worktree);
        let op = self.fresh_op();
        let me = self.session.nonce();
        let began = self.seams.clock.now();
        let Applied { state, before } =
            self.driver(&register, Some(reason)).run(|state, now, _| {
                self.refuse_reserved(worktree, state)?;
                let view = self.examine(&register, state, began)?;
                let ruling =
                    (over == Override::ByPolicy).then(|| self.ruling(Act::FreezeByForce, &view));
                let force = ruling.is_some_and(Ruling::allows);
                match decide::freeze(state, op, view.judgement.as_ref(), force, &self.policy) {
                    Ok(Own::Try)
                        if over != Override::Others && !force && view.foreign.is_some() =>
                    {
                        Err(FreezeError::from(TakeOverError::of_other_tool(&view)))
                    }
                    Ok(Own::Try) => {
                        let next = state.frozen(me, for_ms, now.wall, op);
                        Ok(self.telling(EventKind::Freeze, next, ruling, &view))
                    }
                    Ok(Own::Done) => Ok(Move::Applied),
                    Err(_)
                        if ruling == Some(Ruling::NotAdmin)
                            && view.word() == StatusWord::Frozen =>
                    {
                        Err(self.not_admin(worktree, "freeze over this freeze").into())
                    }
                    Err(refusal) => Err(self.refused(refusal, &view).into()),
                }
            })?;
        let may_replace = || over == Override::Others || !self.has_foreign_record(worktree);
        self.tell_of_freeze(&register, &state, before, reason, may_replace)?;
        Ok(state)
    }

    /// What the process that finds it frozen is to read, and the freeze made durable.
    pub(crate) fn tell_of_freeze(
        &self,
        register: &Register<'_>,
        state: &State,
        at: Reading,
        reason: &str,
        may_replace: impl FnOnce() -> bool,
    ) -> Result<(), RegisterError> {
        if let Hold::Frozen(claim) = state.hold {
            let record = self.record_of(register.worktree(), state, &claim, at, Some(reason));
            // Best effort, as for every record: the register says it is frozen.
            let _ = OwnRecord::place(self.seams.store, record, may_replace);
        }
        drive::make_durable(register, "was frozen")
    }

    /// Lifts a freeze, also another's where the policy lets this session.
    pub fn unfreeze(&self, worktree: &WorktreeName, reason: &str) -> Result<State, UnfreezeError> {
        let register = self.register(worktree);
        let (meant, began) = (register.read()?.term(), self.seams.clock.now());
        self.thaw(worktree, reason, |state, tried, next| {
            match decide::unfreeze(state, meant, tried) {
                Err(_) => Err(UnfreezeError::NotFrozen { worktree: worktree.clone() }),
                Ok(Own::Done) => Ok(Move::Applied),
                Ok(Own::Try) => {
                    let view = self.examine(&register, state, began)?;
                    let ruling = self.ruling(Act::Unfreeze, &view);
                    if ruling == Ruling::NotAdmin {
                        return Err(self.not_admin(worktree, "lift this freeze").into());
                    }
                    Ok(self.telling(EventKind::Unfreeze, next, Some(ruling), &view))
                }
            }
        })
    }

    /// Lifts the freeze `meant`, which was found to be over, if it is over still.
    pub fn lift(
        &self,
        worktree: &WorktreeName,
        meant: Term,
        reason: &str,
    ) -> Result<State, UnfreezeError> {
        sabotage!(Rule::LiftWhatWasSeen => self.unfreeze(worktree, reason));
        let register = self.register(worktree);
        let began = self.seams.clock.now();
        self.thaw(worktree, reason, |state, tried, next| {
            let seen = self.examine(&register, state, began)?;
            match decide::lift(state, meant, tried, seen.judgement.as_ref(), &self.policy) {
                Ok(Own::Try) => Ok(Move::Try(EventKind::Unfreeze, next)),
                Ok(Own::Done) => Ok(Move::Applied),
                Err(NoThaw::NotFrozen) => {
                    Err(UnfreezeError::NotFrozen { worktree: worktree.clone() })
                }
                Err(NoThaw::Refused(refusal)) => Err(self.refused(refusal, &seen).into()),
            }
        })
    }

    fn thaw(
        &self,
        worktree: &WorktreeName,
        reason: &str,
        mut decide: impl FnMut(&State, bool, State) -> Result<Move, UnfreezeError>,
    ) -> Result<State, UnfreezeError> {
        let register = self.register(worktree);
        let op = self.fresh_op();
        let Applied { state, .. } = self
            .driver(&register, Some(reason))
            .run_durably("is not frozen any more", |state, _, tried| {
                decide(state, !tried.is_empty(), state.released(op))
            })?;
        OwnRecord::forget(self.seams.store, worktree, &state);
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
        let journal = &self.journal;
        Driver { seams: self.seams, register, journal, reason, just_read: Cell::new(None) }
    }

    pub(crate) fn fresh_op(&self) -> OpNonce {
        OpNonce::random(self.seams.entropy)
    }

    pub(crate) fn record_of(
        &self,
        worktree: &WorktreeName,
        state: &State,
        claim: &crate::state::Claim,
        at: Reading,
        note: Option<&str>,
    ) -> Record {
        Record::of_grant(&self.session, worktree, state, claim, self.stamp(at), &self.policy, note)
    }

    /// `at`, with the name of the clock that it was read on.
    pub(crate) fn stamp(&self, at: Reading) -> Stamp {
        Stamp { at, time_namespace: self.seams.clock.time_namespace() }
    }

    /// Refuses a name that is only reserved. Looked at after the READ of `state`: a
    /// record comes only to a register that moved on from its reservation and goes only
    /// after it was retired, so a CAS from `state` finds what was looked at.
    pub(crate) fn refuse_reserved(
        &self,
        worktree: &WorktreeName,
        state: &State,
    ) -> Result<(), TakeOverError> {
        sabotage!(Rule::ReservedIsNotTaken => Ok(()));
        if !state.may_be_reserved() || worktree.is_main() {
            return Ok(());
        }
        match worktrees::has_record(self.seams.store, worktree) {
            Ok(true) => Ok(()),
            Ok(false) => Err(TakeOverError::NotMade { worktree: worktree.clone() }),
            Err(source) => {
                let (worktree, doing) = (worktree.clone(), "cannot look for its record");
                Err(RegisterError::Io { worktree, doing, source }.into())
            }
        }
    }

    /// A refusal as an error that tells what was seen.
    pub(crate) fn refused(&self, refusal: Refusal, seen: &View) -> TakeOverError {
        let view = Box::new(seen.clone());
        match refusal {
            Refusal::Conflict => TakeOverError::Conflict(view),
            Refusal::Frozen => TakeOverError::Frozen(view),
            Refusal::Unproven => TakeOverError::Unproven(view),
            Refusal::Skew => {
                TakeOverError::ClockSkew { view, max_clock_skew_ms: self.policy.max_clock_skew_ms }
            }
            Refusal::Retired => WasRemoved { worktree: view.worktree }.into(),
        }
    }

    /// The loss of what was held under `token`, as an error that tells what was seen.
    pub(crate) fn lost(
        &self,
        worktree: &WorktreeName,
        state: &State,
        lost: LostTerm,
        token: FencingToken,
    ) -> LeaseError {
        let worktree = worktree.clone();
        match lost {
            LostTerm::Fenced { current } => LeaseError::Fenced { worktree, token, current },
            LostTerm::Retired => WasRemoved { worktree }.into(),
            LostTerm::NotHeld => match self.look_at(&worktree, state) {
                Ok(view) => LeaseError::NotHeld { view: Box::new(view) },
                Err(error) => error.into(),
            },
        }
    }
}

pub(crate) fn check_lease(lease_ms: u64) -> Result<(), BadLease> {
    match (1..=LEASE_MAX_MS).contains(&lease_ms) {
        true => Ok(()),
        false => Err(BadLease),
    }
}

/// When a hold found in the register ends on this host's boot-time clock.
///
/// By the record if it is current and of this very clock: exact. Otherwise by
/// this host's own wall clock, on which the session wrote the end, less the skew
/// that clocks are allowed. If the two went different ways since, by whichever
/// says that it ends first.
pub(crate) fn believed_end(
    state: &State,
    record: Option<&Record>,
    now: Reading,
    clock: &BootClock,
    policy: &LockPolicy,
) -> BootMs {
    let Some(claim) = state.hold.claim() else { return BootMs(0) };
    let left = claim.expires.since(now.wall).saturating_sub(policy.max_clock_skew_ms);
    let by_wall = now.boot.plus(left.min(claim.lease_ms));
    let ours = |record: &&Record| {
        record.is_current(state) && clock.is(&record.boot_id, record.time_namespace)
    };
    let Some((record, renewed)) =
        record.filter(ours).and_then(|record| Some((record, record.renewed_at()?)))
    else {
        return by_wall;
    };
    let exact = record.renewed_boot_ms.plus(record.lease_duration_ms);
    match now.parted_ms(&renewed, policy.max_clock_skew_ms) {
        None => exact,
        Some(_) => exact.min(by_wall),
    }
}
