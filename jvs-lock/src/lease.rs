//! A lease: the right to write, as a value that cannot be copied.
//!
//! Dropping one does no I/O: a forgotten lease simply expires. What fails hands
//! the value back, so that the caller can try again or let go.

use std::fmt;
use std::io;
use std::sync::PoisonError;

use jvs_repo::audit::EventKind;
use jvs_repo::clock::{BootMs, Reading};
use jvs_repo::code::{Code, Coded, Layer, Layered};
use jvs_repo::id::{FencingToken, OpNonce, SnapshotId};
use jvs_repo::name::WorktreeName;
use jvs_repo::record::audit::Transferred;
use jvs_repo::sabotage;
use jvs_repo::term::Term;
use serde::Serialize;

use crate::belief::Belief;
use crate::decide::{self, Bound, LostTerm, Own};
use crate::drive::{self, Applied, Move};
use crate::error::{FreezeError, LeaseError, OfRegister, RegisterError};
use crate::fence::Fence;
use crate::inherit::Confirmed;
use crate::kept::Kept;
use crate::locks::{Locks, believed_end, check_lease};
use crate::mutation::Rule;
use crate::queue::Waiter;
use crate::reclaim::Decision;
use crate::record::{Keeper, Meaning, OwnRecord, Record, Renewal};
use crate::register::Register;
use crate::state::{Claim, State};

/// How a lease came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LeaseOrigin {
    /// The lock was free.
    Acquired,
    /// This session had it already.
    Refreshed,
    /// Its former holder's lease was over.
    Stolen,
    /// Its live holder was overruled.
    Reclaimed,
    /// Another process of this session took it.
    Resumed,
}

/// Names one hold, so that the next process of the session can go on with it
/// and with no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The worktree.
    pub worktree: WorktreeName,
    /// Which hold of it.
    pub term: Term,
}

/// The right to write to one worktree, for a while.
///
/// ```compile_fail,E0599
/// fn twice(lease: jvs_lock::Lease<'_>) {
///     let copy = lease.clone(); // a lease cannot be copied
/// }
/// ```
#[must_use = "a lease that is dropped is not released: it expires"]
pub struct Lease<'r> {
    pub(crate) locks: Locks<'r>,
    pub(crate) register: Register<'r>,
    pub(crate) bound: Bound,
    claim: Claim,
    head: Option<SnapshotId>,
    lease_ms: u64,
    pub(crate) renewal: Renewal,
    /// What the record is to say of how long it is kept, if that is news.
    pub(crate) kept: Option<Kept>,
    belief: Belief,
    own: Option<OwnRecord>,
    how: LeaseOrigin,
    by: Option<Decision>,
    began_as: State,
    /// The register as a CAS of this process last left it.
    confirmed_as: State,
    /// The record that another process of the session wrote is rewritten with the first
    /// renewal.
    adopts: bool,
    /// Both clocks, read before the CAS that it began with.
    began_at: Reading,
    /// A file that may be a lock of another tool and could not be read when it began.
    unheard: Option<String>,
    /// Why the record is not as the register is.
    unrecorded: Option<String>,
}

impl fmt::Debug for Lease<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("worktree", self.register.worktree())
            .field("token", &self.bound.term.token)
            .field("how", &self.how)
            .finish_non_exhaustive()
    }
}

impl<'r> Lease<'r> {
    /// A lease whose grant or refresh was confirmed; `before` was read before
    /// its CAS was issued.
    pub(crate) fn begin(
        locks: Locks<'r>,
        register: Register<'r>,
        state: State,
        before: Reading,
        lease_ms: u64,
        how: LeaseOrigin,
    ) -> Result<Self, RegisterError> {
        let claim = *state.hold.claim().ok_or(RegisterError::internal("a grant has a claim"))?;
        let bound = Bound { term: state.term(), holder: locks.session.nonce() };
        let belief = Belief::until_boot(before.boot.plus(claim.lease_ms));
        let head = state.head;
        Ok(Lease {
            locks,
            register,
            bound,
            claim,
            head,
            lease_ms,
            renewal: Renewal::AsRecorded,
            kept: None,
            belief,
            own: None,
            how,
            by: None,
            began_as: state,
            confirmed_as: state,
            adopts: how == LeaseOrigin::Refreshed,
            began_at: before,
            unheard: None,
            unrecorded: None,
        })
    }

    /// Remembers by which rule it was taken from another.
    pub(crate) fn taken_by(&mut self, by: Option<Decision>) {
        self.by = by;
    }

    /// Tells of a file that may be a lock of another tool and could not be read.
    pub(crate) fn tell_unheard(&mut self, file: Option<String>) {
        self.unheard = file.map(|file| {
            format!("{file} may be a lock of another tool, but cannot be read; it is ignored")
        });
    }

    /// The register's state with which it began.
    pub(crate) fn began_as(&self) -> &State {
        &self.began_as
    }

    /// Removes the own record, once the lock is released.
    pub(crate) fn forget_record(&mut self) {
        if let Some(own) = self.own.take() {
            // Best effort: a record without a holder is drift.
            let _ = own.remove(self.locks.seams.store);
        }
    }

    /// By which rule it was reclaimed, if it was.
    pub fn by(&self) -> Option<Decision> {
        self.by
    }

    /// A lease that another process of the session began.
    pub(crate) fn resumed(
        locks: Locks<'r>,
        register: Register<'r>,
        state: State,
    ) -> Result<Self, RegisterError> {
        let seams = locks.seams;
        let own = OwnRecord::adopt(seams.store, register.worktree(), &state);
        let (own, unrecorded) = match own {
            Ok(own) => (own, None),
            Err(error) => (None, Some(format!("the lock record cannot be read: {error}"))),
        };
        let record = own.as_ref().map(|own| &own.record);
        let clock = seams.clock.boot_clock();
        let end = believed_end(&state, record, seams.clock.now(), &clock, &locks.policy);
        let lease_ms = state.hold.claim().map_or(0, |claim| claim.lease_ms);
        let start = Reading { boot: BootMs(0), ..seams.clock.now() };
        let mut lease =
            Lease::begin(locks, register, state, start, lease_ms, LeaseOrigin::Resumed)?;
        lease.belief = Belief::until_boot(end);
        lease.own = own;
        lease.unrecorded = unrecorded;
        Ok(lease)
    }

    /// A lease that another process of the session was told of, to be believed until then.
    pub(crate) fn inherited(
        locks: Locks<'r>,
        register: Register<'r>,
        state: State,
        until: BootMs,
    ) -> Result<Self, RegisterError> {
        let lease_ms = state.hold.claim().map_or(0, |claim| claim.lease_ms);
        let start = Reading { boot: BootMs(0), ..locks.seams.clock.now() };
        let mut lease =
            Lease::begin(locks, register, state, start, lease_ms, LeaseOrigin::Resumed)?;
        (lease.belief, lease.adopts) = (Belief::until_boot(until), true);
        Ok(lease)
    }

    /// What a CAS of this process confirmed, for a process that is to go on with it.
    pub fn confirmed(&self) -> Option<Confirmed> {
        let by_own_cas = self.how != LeaseOrigin::Resumed;
        let until = self.belief.until().filter(|_| by_own_cas)?;
        let time_namespace = self.locks.seams.clock.time_namespace();
        Some(Confirmed { state: self.confirmed_as, until, time_namespace })
    }

    /// The worktree.
    pub fn worktree(&self) -> &WorktreeName {
        self.register.worktree()
    }

    /// Closes the own record until the next renewal: each process that is started while it is
    /// open closes it once more, which a network filesystem is told each time.
    pub fn rest_the_record(&mut self) {
        (self.own, self.adopts) = (None, true);
    }

    /// Closes this session's audit log until there is more to say, so that the
    /// mount holds nothing unwritten of ours when somebody asks it.
    pub fn rest_the_log(&self) {
        self.locks.journal.lock().unwrap_or_else(PoisonError::into_inner).rest();
    }

    /// May a restore of its files be under way, or have been left by an earlier holder?
    /// As the last READ saw it: see [`Register::is_marked`].
    pub fn may_be_half_restored(&self) -> bool {
        self.register.is_marked()
    }

    /// The fencing token.
    pub fn token(&self) -> FencingToken {
        self.bound.term.token
    }

    /// Epoch and token.
    pub fn term(&self) -> Term {
        self.bound.term
    }

    /// How it came about.
    pub fn how(&self) -> LeaseOrigin {
        self.how
    }

    /// What the next process of the session needs to go on.
    pub fn ticket(&self) -> Ticket {
        Ticket { worktree: self.worktree().clone(), term: self.term() }
    }

    /// The claim as it was last confirmed.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// The head as it was when the claim was last confirmed.
    pub fn head(&self) -> Option<SnapshotId> {
        self.head
    }

    /// The record on disk, if it could be written.
    pub fn record(&self) -> Option<&Record> {
        self.own.as_ref().map(|own| &own.record)
    }

    /// What could not be brought up to date beside the register. Harmless, and
    /// mended by the next renewal.
    pub fn drift(&self) -> Vec<&str> {
        [&self.unheard, &self.unrecorded].into_iter().filter_map(|told| told.as_deref()).collect()
    }

    /// A handle on how long this holder may act, for a timer that does no I/O.
    pub fn belief(&self) -> Belief {
        self.belief.clone()
    }

    /// The length that was asked for, if what was promised before is longer: a
    /// refresh never shortens a lease.
    pub fn asked_for_less(&self) -> Option<u64> {
        (self.claim.lease_ms > self.lease_ms).then_some(self.lease_ms)
    }

    /// Says that this process renews it, at least so often.
    pub fn renews_every(&mut self, ms: u64) {
        self.renewal = Renewal::Every(ms);
    }

    /// Tells observers which process keeps renewing it, or that none does and it
    /// lasts as long as its lease.
    pub fn set_keeper(&mut self, keeper: Option<Keeper>) -> io::Result<()> {
        let Some(own) = &mut self.own else { return Ok(()) };
        own.record.kept = own.record.kept.take().filter(|_| keeper.is_some());
        own.record.keeper = keeper;
        own.rewrite()
    }

    /// Until when it is kept, as observers are told from the next renewal on.
    pub fn keep_until(&mut self, kept: Kept) {
        let told = self.own.as_ref().and_then(|own| own.record.kept.as_ref());
        self.kept = Some(kept.unless_as_told(told));
    }

    /// Makes the lease last for its length from now on. Only while it is not
    /// over by this host's boot-time clock; if it fails, stop writing.
    pub fn renew(&mut self) -> Result<(), LeaseError> {
        self.check_belief()?;
        self.extend(None)
    }

    /// Has the register confirm this very hold, for a lease of `lease_ms` from now on or
    /// of the length that it had, by a CAS of this process: a process that is told that it holds
    /// is told by that. Also of a lease that is over, as long as nobody took it.
    pub(crate) fn confirm(
        &mut self,
        lease_ms: Option<u64>,
        note: Option<&str>,
        how: LeaseOrigin,
    ) -> Result<(), LeaseError> {
        (self.lease_ms, self.how) = (lease_ms.unwrap_or(self.lease_ms), how);
        self.extend(note)
    }

    fn extend(&mut self, note: Option<&str>) -> Result<(), LeaseError> {
        let op = self.locks.fresh_op();
        let (bound, lease_ms) = (self.bound, self.lease_ms);
        let ended =
            self.locks.driver(&self.register, None).run(|state, now, _| {
                match decide::renew(state, bound, op) {
                    Ok(Own::Try) => {
                        Ok(Move::Try(EventKind::Renew, state.extended(lease_ms, now.wall, op)))
                    }
                    Ok(Own::Done) => Ok(Move::Applied),
                    Err(lost) => Err(self.lost(state, lost)),
                }
            });
        let Applied { state, before } = match ended {
            Ok(applied) => applied,
            Err(error) => {
                if is_lost(&error) {
                    self.belief.end();
                }
                return Err(error);
            }
        };
        self.claim = *state.hold.claim().ok_or(RegisterError::internal("a renewal has a claim"))?;
        (self.head, self.confirmed_as) = (state.head, state);
        self.belief.extend_to(before.boot.plus(self.claim.lease_ms));
        self.write_record(&state, before, note);
        Ok(())
    }

    /// The right to commit, for as long as the borrow lasts. Needs a lease that
    /// is not over by this host's clock; whether it was taken over is decided by
    /// the commit itself.
    pub fn fence(&mut self) -> Result<Fence<'_, 'r>, LeaseError> {
        self.check_belief()?;
        Ok(Fence::of_lease(self))
    }

    /// Gives the lock back. Belief ends before the release is issued: one that
    /// lands late must not find a holder that still writes. Answers the register as
    /// it was then seen: free, or another's by now.
    pub fn release(mut self) -> Result<State, ReleaseError<'r>> {
        sabotage!(Rule::BeliefEndsBeforeRelease => crate::sabotage::release_believing(self));
        self.belief.end();
        let released = self.give_back();
        released.map_err(|error| ReleaseError { lease: Box::new(self), error })
    }

    pub(crate) fn give_back(&mut self) -> Result<State, LeaseError> {
        let state = self.issue_release()?;
        self.forget_record();
        // After the record, which goes to disk with it.
        drive::make_durable(&self.register, "was released")?;
        self.locks.drop_what_was_closed();
        Ok(state)
    }

    /// Hands the lock to a session that waits for it, without a gap in which
    /// another could take it. As in a release, belief ends first.
    pub fn transfer(
        mut self,
        to: &Waiter,
        lease_ms: u64,
        reason: &str,
    ) -> Result<State, ReleaseError<'r>> {
        self.belief.end();
        match self.issue_transfer(to, lease_ms, reason) {
            Ok(state) => {
                // It names this session; the receiver writes its own.
                self.forget_record();
                Ok(state)
            }
            Err(error) => Err(ReleaseError { lease: Box::new(self), error }),
        }
    }

    /// Turns this very hold into a freeze, so that nobody gets in between. As in
    /// a release, belief ends first.
    pub fn freeze(
        mut self,
        for_ms: u64,
        reason: &str,
    ) -> Result<State, ReleaseError<'r, FreezeError>> {
        self.belief.end();
        let frozen = self.become_frozen(for_ms, reason);
        frozen.map_err(|error| ReleaseError { lease: Box::new(self), error })
    }

    fn become_frozen(&mut self, for_ms: u64, reason: &str) -> Result<State, FreezeError> {
        check_lease(for_ms)?;
        let Applied { state, before } = self.issue_freeze(for_ms, reason)?;
        // It names this session as the holder.
        self.forget_record();
        let worktree = self.register.worktree();
        let may_replace = || !self.locks.has_foreign_record(worktree);
        self.locks.tell_of_freeze(&self.register, &state, before, reason, may_replace)?;
        Ok(state)
    }

    fn issue_freeze(&self, for_ms: u64, reason: &str) -> Result<Applied, LeaseError> {
        let op = self.locks.fresh_op();
        self.locks.driver(&self.register, Some(reason)).run(|state, now, _| {
            match self.may_freeze(state, op) {
                Ok(Own::Try) => {
                    let next = state.frozen(self.bound.holder, for_ms, now.wall, op);
                    Ok(Move::Try(EventKind::Freeze, next))
                }
                Ok(Own::Done) => Ok(Move::Applied),
                Err(lost) => Err(self.lost(state, lost)),
            }
        })
    }

    /// A freeze after waiting is made from this very hold and no other.
    fn may_freeze(&self, state: &State, op: OpNonce) -> Result<Own, LostTerm> {
        sabotage!(Rule::FreezeFromOwnHold => {
            let forced = decide::freeze(state, op, None, true, &self.locks.policy);
            forced.map_err(|_| LostTerm::Retired)
        });
        decide::freeze_own(state, self.bound, op)
    }

    fn issue_transfer(
        &self,
        to: &Waiter,
        lease_ms: u64,
        reason: &str,
    ) -> Result<State, LeaseError> {
        let op = self.locks.fresh_op();
        let (bound, done) = (self.bound, "was handed over");
        let details =
            Transferred { old_holder: self.locks.session.holder_id(), new_holder_nonce: to.holder };
        let applied = self.locks.driver(&self.register, Some(reason)).run_durably(
            done,
            |state, now, tried| match decide::transfer(state, bound, to.holder, !tried.is_empty()) {
                Ok(Own::Try) => {
                    let next = state.granted(to.holder, lease_ms, now.wall, op);
                    Ok(Move::TryOver(EventKind::Transfer, next, details.clone().into()))
                }
                Ok(Own::Done) => Ok(Move::Applied),
                Err(lost) => Err(self.lost(state, lost)),
            },
        )?;
        Ok(applied.state)
    }

    fn issue_release(&self) -> Result<State, LeaseError> {
        let op = self.locks.fresh_op();
        let bound = self.bound;
        self.locks
            .driver(&self.register, None)
            .run(|state, _, tried| match decide::release(state, bound, !tried.is_empty()) {
                Ok(Own::Try) => Ok(Move::Try(EventKind::Release, state.released(op))),
                Ok(Own::Done) => Ok(Move::Applied),
                Err(lost) => Err(self.lost(state, lost)),
            })
            .map(|applied| applied.state)
    }

    fn lost(&self, state: &State, lost: LostTerm) -> LeaseError {
        self.locks.lost(self.worktree(), state, lost, self.bound.term.token)
    }

    fn check_belief(&self) -> Result<(), LeaseError> {
        let now = self.locks.seams.clock.now().boot;
        if self.belief.holds_at(now) {
            return Ok(());
        }
        // The lease is over either way; a look tells the user which way.
        let state = self.register.read()?;
        match decide::renew(&state, self.bound, state.op) {
            Ok(_) => Err(LeaseError::Expired {
                worktree: self.worktree().clone(),
                token: self.bound.term.token,
                since_ms: now.since(self.belief.until().unwrap_or(now)),
            }),
            Err(lost) => Err(self.lost(&state, lost)),
        }
    }

    /// Brings the record up to date with a claim just confirmed at `at`.
    pub(crate) fn write_record(&mut self, state: &State, at: Reading, note: Option<&str>) {
        self.unrecorded = None;
        if !self.belief.holds_at(self.locks.seams.clock.now().boot) {
            // Late: a successor's record may be there by now.
            return;
        }
        if let Err(error) = self.try_write_record(state, at, note) {
            self.unrecorded = Some(format!("the lock record could not be written: {error}"));
        }
    }

    fn try_write_record(
        &mut self,
        state: &State,
        at: Reading,
        note: Option<&str>,
    ) -> io::Result<()> {
        let store = self.locks.seams.store;
        if (self.adopts || self.how == LeaseOrigin::Refreshed) && self.own.is_none() {
            self.own = OwnRecord::adopt(store, self.register.worktree(), state)?;
        }
        if let Some(own) = &mut self.own
            && own.is_linked()?
        {
            own.record.renewed(&self.locks.session, &self.claim, self.locks.stamp(at));
            own.record.set_renewal(self.renewal, &self.locks.policy);
            if let Some(kept) = &self.kept {
                own.record.kept = Some(kept.clone());
            }
            if note.is_some() {
                own.record.set_note(note);
            }
            return own.rewrite();
        }
        let (worktree, claim) = (self.register.worktree(), self.claim);
        let mut record = match self.own.take() {
            // Somebody removed or replaced the file: the same record, again.
            Some(own) => {
                let mut record = own.record;
                record.renewed(&self.locks.session, &claim, self.locks.stamp(at));
                record
            }
            None => self.locks.record_of(worktree, state, &claim, at, note),
        };
        record.set_renewal(self.renewal, &self.locks.policy);
        if let Some(kept) = &self.kept {
            record.kept = Some(kept.clone());
        }
        let may_replace = || !self.locks.has_foreign_record(worktree);
        self.own = Some(OwnRecord::place(store, record, may_replace)?);
        Ok(())
    }

    /// Tells observers of a grant that was just made.
    pub(crate) fn write_first_record(&mut self, note: Option<&str>) {
        let (state, at) = (self.began_as, self.began_at);
        self.write_record(&state, at, note);
    }

    /// Makes the grant survive a power cut, so that no token is granted twice.
    /// After the record, because on a journalling filesystem its fsync has
    /// carried the rename along and this one finds nothing left to do.
    pub(crate) fn sync_grant(&self) -> io::Result<()> {
        sabotage!(Rule::GrantIsDurable => Ok(()));
        self.register.sync()
    }

    /// The same for a grant that nobody of the session was told of, nor can find: it is
    /// released if that fails.
    pub(crate) fn made_durable(self) -> Result<Self, RegisterError> {
        let Err(source) = self.sync_grant() else { return Ok(self) };
        let worktree = self.worktree().clone();
        // A hold that was there before may be relied on by others of this session.
        let mine_alone = self.how != LeaseOrigin::Refreshed;
        let given_back = mine_alone && self.release().map_or_else(|e| e.is_given_back(), |_| true);
        Err(RegisterError::not_durable(worktree, given_back, source))
    }
}

/// Does the error say that the hold is gone for good?
fn is_lost(error: &LeaseError) -> bool {
    matches!(error.code(), Code::FencingMismatch | Code::LockNotHeld | Code::NotFound)
}

/// A release that failed, with the lease it failed to release, or to freeze. Its belief
/// has ended anyway.
#[derive(thiserror::Error)]
#[error("{error}")]
pub struct ReleaseError<'r, E: std::error::Error + 'static = LeaseError> {
    /// The lease, to try again with.
    pub lease: Box<Lease<'r>>,
    /// What went wrong.
    #[source]
    pub error: E,
}

impl ReleaseError<'_> {
    /// Is the lock released anyway, as long as the power stays on?
    pub fn is_given_back(&self) -> bool {
        matches!(self.error.of_register(), Some(RegisterError::NotDurable { .. }))
    }
}

impl<E: std::error::Error> fmt::Debug for ReleaseError<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl<E: Coded> Layered for ReleaseError<'_, E> {
    fn layer(&self) -> Layer<'_> {
        Layer::Below(&self.error)
    }
}
