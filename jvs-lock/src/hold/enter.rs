//! How a process comes to be told "you hold it": its stake first, then the
//! register, and told only after a CAS of its own.

use std::cell::{Cell, RefCell};

use jvs_repo::id::{Epoch, FencingToken, OpNonce};
use jvs_repo::sabotage;
use jvs_repo::term::Term;

use super::admit::{Applicant, admit};
use super::files::{Holds, Scan};
use super::give_back::LeaveOutcome;
use super::memory::taken;
use super::name::{HoldName, HoldState};
use super::refusal::{EnterError, HoldError, HoldRefusal, Refused, Relied};
use super::rule::HoldRule;
use super::stake::{Sight, Stake, StakeEnd, StakeKind, Who};
use crate::error::{LeaseError, RegisterError};
use crate::lease::{Lease, LeaseOrigin, Ticket};
use crate::locks::{Gate, Locks, Want, check_lease};
use crate::state::State;

/// How often a process begins again before it says so: others of its session came
/// first each time.
const ROUNDS: u32 = 40;
/// How often a session may be forgotten in the middle of it: after that its private
/// directory itself is gone.
const FORGOTTEN: u32 = 20;
/// Longest pause between two rounds.
const PAUSE_MS: u64 = 64;

/// What a process wants of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// What for.
    pub kind: StakeKind,
    /// The process that its stake is over with, besides its own.
    pub with: Option<Who>,
    /// How long its stake lasts from when its command answers.
    pub lasts_ms: Option<u64>,
    /// Share with a run that has it to itself.
    pub joins: bool,
    /// The hold that a parent handed down.
    pub handed: Option<HandedTerm>,
    /// Acknowledges that others may have written since: `lock acquire`.
    pub acknowledges_loss: bool,
    /// The process that asks: this replaces what it was promised before.
    pub by: Option<Who>,
}

/// The hold that a command was told to act on, and on no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedTerm {
    /// Its token.
    pub token: FencingToken,
    /// The epoch of the register that it was granted in, if that was handed down, too.
    pub epoch: Option<Epoch>,
}

impl HandedTerm {
    /// Is that hold the one of `term`?
    fn means(self, term: Term) -> bool {
        self.token == term.token && self.epoch.is_none_or(|epoch| epoch == term.epoch)
    }
}

impl Ask {
    /// A command of that kind, and nothing special about it.
    pub const fn plain(kind: StakeKind) -> Self {
        let (with, lasts_ms) = (None, None);
        Ask { kind, with, lasts_ms, joins: false, handed: None, acknowledges_loss: false, by: None }
    }
}

/// A process whose stake is in an open hold that the register confirmed to it.
pub struct Entered<'r> {
    /// The lease that was confirmed.
    pub lease: Lease<'r>,
    /// Its stake.
    pub stake: Stake,
    /// Was the hold there before?
    pub joined: bool,
}

/// A process that wants to come in, and how it would take the lock.
pub(super) struct Coming<'c, 'r, E> {
    pub(super) holds: &'c Holds<'c>,
    ask: &'c Ask,
    want: Want<'c>,
    take: &'c mut dyn FnMut(Want<'_>) -> Result<Lease<'r>, E>,
}

/// Why a round was given up.
pub(super) enum Stop<E> {
    /// Before the register was touched.
    Untouched(EnterError<E>),
    /// After it was moved.
    Moved(EnterError<E>),
}

impl<E, X: Into<EnterError<E>>> From<X> for Stop<E> {
    fn from(error: X) -> Self {
        Stop::Untouched(error.into())
    }
}

/// Looks at the hold between the READ and the CAS.
struct Watcher<'h, 'r> {
    holds: &'h Holds<'r>,
    acknowledges_loss: bool,
    /// The states it let pass.
    passed: RefCell<Vec<State>>,
    /// Others of the session had opened a hold when it last looked.
    found_open: Cell<bool>,
    #[cfg(feature = "mutations")]
    before: super::sabotage::Before,
}

impl<'h, 'r> Watcher<'h, 'r> {
    fn new(holds: &'h Holds<'r>, acknowledges_loss: bool) -> Self {
        Watcher {
            holds,
            acknowledges_loss,
            passed: RefCell::new(Vec::new()),
            found_open: Cell::new(false),
            #[cfg(feature = "mutations")]
            before: super::sabotage::Before::read(holds),
        }
    }

    fn look(&self) -> Result<HoldName, HoldError> {
        sabotage!(HoldRule::LookAfterRead => Ok(self.before.hold));
        self.holds.look()
    }

    /// What the session lost. Not only by the name, but also by the files: by now another
    /// process of it may have opened a hold over the loss and given it back, without having
    /// answered.
    fn lost(&self) -> Result<Vec<Term>, HoldError> {
        sabotage!(HoldRule::MemoryAfterRead => Ok(self.before.lost.clone()));
        Ok(self.holds.scan()?.lost)
    }
}

impl Gate for Watcher<'_, '_> {
    fn pass(&self, state: &State, holder: Option<String>) -> Result<(), HoldRefusal> {
        let hold = self.look()?;
        let worktree = self.holds.worktree.clone();
        self.found_open.set(hold.is_open() && hold.term == state.term());
        if self.found_open.get() {
            return Err(HoldRefusal::IsOpen { worktree });
        }
        let lost = self.lost()?;
        let remembered = taken(&hold, state).or_else(|| lost.first().copied());
        if let Some(term) = remembered.filter(|_| !self.acknowledges_loss) {
            let current = state.token;
            return Err(HoldRefusal::Taken { worktree, token: term.token, current, holder });
        }
        self.passed.borrow_mut().push(*state);
        Ok(())
    }
}

/// A stake that was put into a hold, the hold's name since, and what else was there.
pub(super) type Joined = (Stake, HoldName, Scan);

impl Holds<'_> {
    /// When the stake of one who answers now is over.
    fn over(&self, ask: &Ask) -> StakeEnd {
        let now = self.seams.clock.now().boot;
        StakeEnd { with: ask.with, at: ask.lasts_ms.map(|ms| now.plus(ms)) }
    }

    /// Puts a stake into the hold as it is, and moves its name so that a process that
    /// looked before has to look again.
    fn join(&self, ask: &Ask) -> Result<Joined, HoldRefusal> {
        let mut rounds = 0;
        loop {
            self.again(&mut rounds)?;
            match self.try_to_join(ask) {
                Ok(Some(joined)) => return Ok(joined),
                Ok(None) => {}
                // The session was forgotten meanwhile: its files are made again.
                Err(HoldRefusal::Files(HoldError::Forgotten { .. })) if rounds < FORGOTTEN => {}
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Once; `None` if others of the session came in between. Nobody waits for another
    /// process of the session, nor for a hold that ends: its term is burnt.
    fn try_to_join(&self, ask: &Ask) -> Result<Option<Joined>, HoldRefusal> {
        sabotage!(HoldRule::NobodyWaits => super::sabotage::join_under_a_mutex(self, ask));
        sabotage!(HoldRule::EndingIsBurnt => super::sabotage::join_once_it_ended(self, ask));
        self.join_as_it_is(ask)
    }

    pub(super) fn join_as_it_is(&self, ask: &Ask) -> Result<Option<Joined>, HoldRefusal> {
        let hold = self.look()?;
        let scan = self.scan()?;
        let mut alive = self.alive(&scan);
        // The session has held it again since: what cannot be seen to run does not keep
        // its runs out for ever.
        alive.retain(|stake| {
            let earlier = stake.term.is_some_and(|its| its < hold.term);
            !earlier || self.sight(stake) != Sight::Unseen
        });
        let applicant =
            Applicant { kind: ask.kind, handed_down: ask.handed.is_some(), joins: ask.joins };
        let exclusive = admit(applicant, &alive).map_err(|by| Relied {
            worktree: self.worktree.clone(),
            refused: Refused::Run,
            by: self.told(&[by]),
        })?;
        let resumable = is_resumable(&hold);
        let stake = Stake {
            id: OpNonce::random(self.seams.entropy),
            term: resumable.then_some(hold.term),
            kind: ask.kind,
            exclusive,
            maker: Who { pid: self.me.pid, start: self.me.start_time },
            pid_namespace: self.me.pid_namespace,
            time_namespace: self.processes.time_namespace,
            over: self.over(ask),
            answered: false,
        };
        self.place(&stake)?;
        let next = hold.then(if resumable { HoldState::Open } else { hold.state });
        match self.move_joined(hold, next) {
            Ok(Some(name)) => Ok(Some((stake, name, scan))),
            Ok(None) => {
                self.remove(&stake);
                Ok(None)
            }
            Err(error) => {
                self.remove(&stake);
                Err(error.into())
            }
        }
    }

    /// Who joins a hold moves its name, so that a process that looked before looks again. Answers
    /// the name since; `None` if others came in between.
    fn move_joined(&self, hold: HoldName, next: HoldName) -> Result<Option<HoldName>, HoldError> {
        sabotage!(HoldRule::JoinMovesTheName => Ok(Some(hold)));
        Ok(self.swap(&hold, &next)?.then_some(next))
    }

    /// Puts a stake of this process, which guards a command, into the open hold `term`.
    /// `None` if that is open no more.
    pub fn guard(&self, term: Term) -> Result<Option<Stake>, HoldRefusal> {
        let (stake, hold, _) = self.join(&Ask::plain(StakeKind::Guard))?;
        if hold.is_open() && hold.term == term {
            return Ok(Some(stake));
        }
        self.remove(&stake);
        Ok(None)
    }

    /// Opens the hold `term`, granted from `from`. False if the session is there or
    /// beyond already. Neither the hold nor the grant is durable then: a process that is told of
    /// it, this process or one that joins it, sees to that first.
    fn open(&self, term: Term, from: &State) -> Result<bool, HoldError> {
        let mut rounds = 0;
        loop {
            self.again(&mut rounds)?;
            let hold = self.look()?;
            if hold.term >= term {
                return Ok(false);
            }
            self.keep_loss(&hold, from)?;
            if self.swap(&hold, &hold.opened(term))? {
                return Ok(true);
            }
        }
    }

    /// A loss that the name of a hold tells of is kept before that name is gone.
    fn keep_loss(&self, hold: &HoldName, from: &State) -> Result<(), HoldError> {
        sabotage!(HoldRule::LossIsKeptUntilAnswered => Ok(()));
        taken(hold, from).map_or(Ok(()), |lost| self.remember_loss(lost))
    }
}

/// A hold that is not open is never joined.
fn is_resumable(hold: &HoldName) -> bool {
    sabotage!(HoldRule::EndingIsNotResumed => hold.is_open() || hold.state == HoldState::Ending);
    hold.is_open()
}

impl<'r> Locks<'r> {
    /// Comes into the session's hold of the worktree, taking the lock if it has none.
    /// `take` takes it, in whichever way was asked for, with the wish that it is given.
    ///
    /// Whatever this answers is true even if the process that held before dies at
    /// that very moment: the stake was there first, and the lease was confirmed by a
    /// CAS of this process.
    pub fn enter<E>(
        &self,
        holds: &Holds<'_>,
        ask: &Ask,
        want: Want<'_>,
        take: &mut dyn FnMut(Want<'_>) -> Result<Lease<'r>, E>,
    ) -> Result<Entered<'r>, EnterError<E>> {
        check_lease(want.lease_ms)?;
        for round in 0..ROUNDS {
            if round > 0 {
                self.pause(round);
            }
            let (mut stake, _, scan) = holds.join(ask)?;
            let entered =
                self.enter_with(&mut Coming { holds, ask, want, take }, &mut stake, &scan);
            match entered {
                Ok(Some((lease, joined))) => return Ok(Entered { lease, stake, joined }),
                Ok(None) => holds.remove(&stake),
                Err(Stop::Untouched(error)) => {
                    holds.remove(&stake);
                    return Err(error);
                }
                // The stake stays: a process that opens a hold that was burnt by this one sees
                // by it that it has to ask the register.
                Err(Stop::Moved(error)) => return Err(error),
            }
        }
        Err(HoldRefusal::IsOpen { worktree: holds.worktree.clone() }.into())
    }

    /// One round; `None` if it has to begin again. The stake is there before the register
    /// is touched.
    fn enter_with<E>(
        &self,
        coming: &mut Coming<'_, 'r, E>,
        stake: &mut Stake,
        scan: &Scan,
    ) -> Result<Option<(Lease<'r>, bool)>, Stop<E>> {
        sabotage!(HoldRule::StakeComesFirst => {
            super::sabotage::enter_then_stake(self, coming, stake)
        });
        self.enter_staked(coming, stake, scan)
    }

    pub(super) fn enter_staked<E>(
        &self,
        coming: &mut Coming<'_, 'r, E>,
        stake: &mut Stake,
        scan: &Scan,
    ) -> Result<Option<(Lease<'r>, bool)>, Stop<E>> {
        let Coming { holds, ask, want, ref mut take } = *coming;
        let worktree = &holds.worktree;
        if let Some(lost) = scan.lost.first().filter(|_| !ask.acknowledges_loss) {
            let view = self.inspect(worktree)?;
            let refusal = HoldRefusal::Taken {
                worktree: worktree.clone(),
                token: lost.token,
                current: view.state.token,
                holder: view.record().map(|record| record.session_id.clone()),
            };
            return Err(refusal.into());
        }
        if let Some(handed) =
            ask.handed.filter(|handed| !stake.term.is_some_and(|term| handed.means(term)))
        {
            // Of a hold that is over: what began under it must not go on under another.
            let current = self.inspect(worktree)?.state.token;
            let worktree = worktree.clone();
            return Err(LeaseError::Fenced { worktree, token: handed.token, current }.into());
        }
        if let Some(term) = stake.term {
            // A piece of work is promised nothing beyond its end: what it finds lasts as
            // long as was said, and others wait no longer for it.
            let lease_ms = (ask.kind != StakeKind::Work).then_some(want.lease_ms);
            let durable = scan.stakes.iter().any(|it| it.answered && it.term == Some(term));
            let confirmed = self.confirmed(holds, term, lease_ms, want.note, None)?;
            if let Some(lease) = confirmed.as_ref().filter(|_| !durable) {
                make_joined_durable(holds, lease)?;
            }
            return Ok(confirmed.map(|lease| (lease, true)));
        }
        let watcher = Watcher::new(holds, ask.acknowledges_loss);
        let taken = take(Want { gate: Some(&watcher), ..want });
        let mut lease = match taken {
            Ok(lease) => lease,
            // A process that opened it came after all that this process tried.
            Err(_) if watcher.found_open.get() => return Ok(None),
            Err(error) if watcher.passed.borrow().is_empty() => {
                return Err(Stop::Untouched(EnterError::Take(error)));
            }
            // What came of it may be unknown, or was taken back.
            Err(error) => return Err(Stop::Moved(EnterError::Take(error))),
        };
        let term = lease.term();
        let passed = watcher.passed.into_inner();
        let from = passed.iter().rev().find(|state| state.token.next() == term.token);
        let Some(from) = from else { return Ok(None) };
        let opened = holds.bind(stake, term).and_then(|()| holds.open(term, from));
        // Whatever came of that, observers are told who has the lock.
        lease.write_first_record(want.note);
        if !opened.map_err(|error| Stop::Moved(error.into()))? {
            return Ok(None);
        }
        if let Err(source) = holds.sync_with(&lease) {
            // Nobody was told of it, and a process that has come into the hold since makes it
            // durable or is told of nothing either: it is left as any other hold is.
            let given_back = matches!(self.leave(holds, stake), Ok(LeaveOutcome::Back(_)));
            let error = RegisterError::not_durable(worktree.clone(), given_back, source);
            return Err(Stop::Moved(error.into()));
        }
        let alone = is_alone(holds, stake).map_err(|error| Stop::Moved(error.into()))?;
        let confirmed = match alone && self.lasts(&lease) {
            true => Some(lease),
            false => self
                .confirmed(holds, term, Some(want.lease_ms), want.note, Some(lease))
                .map_err(Stop::Moved)?,
        };
        Ok(confirmed.map(|lease| (lease, false)))
    }

    /// Has the register confirm the open hold `term`, by a CAS of this process. `None`
    /// if it shows another term: then nobody may join that hold any more. The lease
    /// keeps its length unless another is said.
    fn confirmed<E>(
        &self,
        holds: &Holds<'_>,
        term: Term,
        lease_ms: Option<u64>,
        note: Option<&str>,
        fresh: Option<Lease<'r>>,
    ) -> Result<Option<Lease<'r>>, EnterError<E>> {
        let worktree = &holds.worktree;
        let ticket = Ticket { worktree: worktree.clone(), term };
        let how = fresh.as_ref().map_or(LeaseOrigin::Refreshed, Lease::how);
        let confirm = || {
            let mut lease = match fresh {
                Some(lease) => lease,
                None => self.resume(worktree, Some(&ticket))?,
            };
            self.confirm_by_cas(&mut lease, lease_ms, note, how)?;
            Ok(lease)
        };
        match confirm() {
            Ok(lease) => Ok(Some(lease)),
            Err(LeaseError::Fenced { .. } | LeaseError::NotHeld { .. }) => {
                holds.lost(term)?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Who is told that it holds was told by a CAS of its own.
    fn confirm_by_cas(
        &self,
        lease: &mut Lease<'r>,
        lease_ms: Option<u64>,
        note: Option<&str>,
        how: LeaseOrigin,
    ) -> Result<(), LeaseError> {
        sabotage!(HoldRule::ConfirmedByOwnCas => Ok(()));
        lease.confirm(lease_ms, note, how)?;
        if !self.lasts(lease) {
            // The answer came when the lease was over: nothing to tell of.
            lease.confirm(lease_ms, note, how)?;
        }
        Ok(())
    }

    /// Is there something left of a lease to tell of? One that is over before anybody
    /// can read it was asked for.
    fn lasts(&self, lease: &Lease<'_>) -> bool {
        const READABLE_MS: u64 = 1_000;
        let now = self.seams.clock.now().boot;
        lease.claim().lease_ms < READABLE_MS || lease.belief().holds_at(now)
    }

    fn pause(&self, round: u32) {
        let mut random = [0];
        self.seams.entropy.fill(&mut random);
        let longest = (1_u64 << round.min(6)).min(PAUSE_MS);
        self.seams.clock.sleep_ms(1 + longest * u64::from(random[0]) / 256);
    }

    /// The command of `entered` is about to answer. A process that said to know of what was
    /// lost is now told what it holds: it is forgotten.
    pub fn answer(&self, holds: &Holds<'_>, ask: &Ask, stake: &mut Stake) -> Result<(), HoldError> {
        if ask.lasts_ms.is_some() {
            // It may have waited in line for longer than what it asks for lasts.
            holds.rewrite(stake, Stake { over: holds.over(ask), ..*stake })?;
        }
        holds.answered(stake)?;
        let scan = holds.scan()?;
        for old in &scan.stakes {
            let anew = old.is_for_the_same(stake) || old.is_for(ask.by, stake.pid_namespace);
            if old.id != stake.id && old.answered && old.term == stake.term && anew {
                holds.remove(old);
            }
        }
        if ask.acknowledges_loss {
            for term in scan.lost {
                holds.forget_loss(term)?;
            }
        }
        Ok(())
    }
}

/// Who joins a hold that nobody was told of makes it durable. A process that opened it may be just
/// about to: a power cut must neither take the grant back nor make the session forget what
/// this process is told.
fn make_joined_durable(holds: &Holds<'_>, lease: &Lease<'_>) -> Result<(), RegisterError> {
    sabotage!(HoldRule::JoinersMakeItDurable => Ok(()));
    let not_durable = |error| RegisterError::not_durable(holds.worktree.clone(), false, error);
    holds.sync_with(lease).map_err(not_durable)
}

/// Did the grant itself confirm it? Nobody of the session touches the register without a
/// stake: so where there is none but `stake`, alive or dead.
fn is_alone(holds: &Holds<'_>, stake: &Stake) -> Result<bool, HoldError> {
    sabotage!(HoldRule::OthersAreAskedFor => Ok(true));
    Ok(holds.scan()?.stakes.iter().all(|it| it.id == stake.id))
}
