//! What a session writes into the audit log: what it is about to try, and what came of
//! it.

use std::io;

use jvs_repo::audit::{self, Details, Event, EventKind, EventPhase, Log, room};
use jvs_repo::clock::Clock;
use jvs_repo::id::OpNonce;
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;

use crate::backoff::Backoff;
use crate::mutation::Rule;
use crate::session::Session;
use crate::state::State;

/// How many renewals wait to be written down while another process of the session
/// is at its log. More than any that is not stuck for good takes.
const PENDING_MAX: usize = 64;

/// How often a log that has no room is asked: for about half a second.
const TRIES_WHEN_FULL: u32 = 14;

/// This session's voice in the audit log.
pub struct Journal<'r> {
    log: Log<'r>,
    /// Renewals that happened and are not written down yet, oldest first.
    pending: Vec<Event>,
    clock: &'r dyn Clock,
    session_id: String,
    holder_id: String,
    uid: Option<u32>,
}

impl<'r> Journal<'r> {
    /// Writes to `log` in the name of `session`.
    pub fn new(log: Log<'r>, clock: &'r dyn Clock, session: &Session) -> Self {
        Journal {
            log,
            pending: Vec::new(),
            clock,
            session_id: session.id().as_str().to_owned(),
            holder_id: session.holder_id(),
            uid: session.identity().uid(),
        }
    }

    /// Closes the log until there is more to say.
    pub(crate) fn rest(&mut self) {
        self.log.rest();
    }

    /// Was a log closed since this was last asked?
    pub(crate) fn has_closed_a_log(&mut self) -> bool {
        self.log.has_closed_one()
    }

    /// Says what is about to be tried, durably: a transition without its event
    /// is impossible, because the CAS is issued only after this.
    pub fn intend(
        &mut self,
        kind: EventKind,
        worktree: &WorktreeName,
        from: Option<&State>,
        to: &State,
        reason: Option<&str>,
    ) -> io::Result<()> {
        self.intend_with(kind, worktree, from, to, reason, None)
    }

    /// As [`Journal::intend`], with more that is worth keeping.
    pub(crate) fn intend_with(
        &mut self,
        kind: EventKind,
        worktree: &WorktreeName,
        from: Option<&State>,
        to: &State,
        reason: Option<&str>,
        details: Option<Details>,
    ) -> io::Result<()> {
        self.flush()?;
        let details = details.map(Into::into);
        let event = self.event(kind, EventPhase::Intent, worktree, from, to, reason);
        self.write_down(&Event { details, ..event })
    }

    /// Writes an event down for good. A log without room is asked again for a moment,
    /// also once the room that is kept was given up.
    fn write_down(&mut self, event: &Event) -> io::Result<()> {
        let mut backoff = Backoff::new();
        for _ in 1..TRIES_WHEN_FULL {
            match self.log.append_durably(event) {
                Err(error) if may_have_room_soon(&error) => {
                    self.clock.sleep_ms(backoff.next_ms());
                }
                answer => return answer,
            }
        }
        self.log.append_durably(event)
    }

    /// Says what came of it. Best effort: the register itself tells what was
    /// applied, so a lost outcome hides nothing.
    pub fn settle(
        &mut self,
        kind: EventKind,
        worktree: &WorktreeName,
        from: Option<&State>,
        to: &State,
        phase: EventPhase,
    ) {
        let event = self.event(kind, phase, worktree, from, to, None);
        if waits_for_its_turn(kind) {
            let _ = self.flush().and_then(|()| self.log.append(&event));
            return;
        }
        self.pending.push(event);
        while let Some(next) = self.pending.first() {
            match self.log.append_now(next) {
                Ok(false) if self.pending.len() < PENDING_MAX => return,
                // Written, or never will be: no renewal has an event for certain.
                _ => drop(self.pending.remove(0)),
            }
        }
    }

    /// Writes down what waits, before what comes after it.
    fn flush(&mut self) -> io::Result<()> {
        for event in std::mem::take(&mut self.pending) {
            self.log.append(&event)?;
        }
        Ok(())
    }

    /// Records something that is not a transition of a register.
    pub fn note(
        &mut self,
        kind: EventKind,
        phase: EventPhase,
        op: OpNonce,
        worktree: Option<&WorktreeName>,
        reason: Option<&str>,
        details: Option<Details>,
    ) -> io::Result<()> {
        let event = Event {
            kind,
            phase,
            at: self.clock.now().wall.rfc3339(),
            op,
            worktree: worktree.cloned(),
            session_id: self.session_id.clone(),
            holder_id: self.holder_id.clone(),
            uid: self.uid,
            from: None,
            to: None,
            reason: reason.map(str::to_owned),
            details: details.map(Into::into),
        };
        self.flush()?;
        self.write_down(&event)
    }

    fn event(
        &self,
        kind: EventKind,
        phase: EventPhase,
        worktree: &WorktreeName,
        from: Option<&State>,
        to: &State,
        reason: Option<&str>,
    ) -> audit::Event {
        Event {
            kind,
            phase,
            at: self.clock.now().wall.rfc3339(),
            op: to.op,
            worktree: Some(worktree.clone()),
            session_id: self.session_id.clone(),
            holder_id: self.holder_id.clone(),
            uid: self.uid,
            from: from.map(State::to_string),
            to: Some(to.to_string()),
            reason: reason.map(str::to_owned),
            details: None,
        }
    }
}

/// Does an event wait for its turn at the log? A renewal does not: a process that is stuck there
/// must not cost a lease.
fn waits_for_its_turn(kind: EventKind) -> bool {
    sabotage!(Rule::RenewalsDoNotWait => true);
    kind != EventKind::Renew
}

/// Is a log that answered this asked again for a moment? A JuiceFS mount answers the process that
/// opens a file with the error of the last write to it until it has closed it for those
/// who had it open then, which it does some time after they did.
fn may_have_room_soon(error: &io::Error) -> bool {
    sabotage!(Rule::FullIsAskedAgain => false);
    room::is_full(error)
}
