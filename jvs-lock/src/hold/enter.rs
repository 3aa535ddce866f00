//! How a process comes to be told "you hold it": its stake first, then the
//! register, and told only after a CAS of its own.

use std::cell::RefCell;

use jvs_repo::id::{FencingToken, OpNonce};
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;

use super::admit::{Comer, admit};
use super::files::{Holds, Scan};
use super::give_back::Given;
use super::memory::taken;
use super::name::{HoldName, HoldState};
use super::refusal::{HoldRefusal, Refused};
use super::rule::Rule;
use super::stake::{Kind, Over, Sight, Stake, Who};
use crate::error::LockError;
use crate::lease::{How, Lease, Ticket};
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
    pub kind: Kind,
    /// The process that its stake is over with, besides its own.
    pub with: Option<Who>,
    /// How long its stake lasts from when its command answers.
    pub lasts_ms: Option<u64>,
    /// Share with a run that has it to itself.
    pub joins: bool,
    /// The token that a parent handed down.
    pub handed: Option<FencingToken>,
    /// Somebody says to know that others may have written since: `lock acquire`.
    pub knows: bool,
    /// Whoever asks: what was promised to it before, this replaces.
    pub by: Option<Who>,
}

impl Ask {
    /// A command of that kind, and nothing special about it.
    pub const fn plain(kind: Kind) -> Self {
        let (with, lasts_ms) = (None, None);
        Ask { kind, with, lasts_ms, joins: false, handed: None, knows: false, by: None }
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

/// Why a round was given up.
enum Stop {
    /// Before the register was touched.
    Untouched(LockError),
    /// After it was moved.
    Moved(LockError),
}

impl From<LockError> for Stop {
    fn from(error: LockError) -> Self {
        Stop::Untouched(error)
    }
}

/// Looks at the hold between the READ and the CAS.
struct Watcher<'h, 'r> {
    holds: &'h Holds<'r>,
    knows: bool,
    /// For the rules that the looks come after the READ: those from before.
    before: HoldName,
    lost_before: &'h [Term],
    /// The states it let pass.
    passed: RefCell<Vec<State>>,
}

impl Gate for Watcher<'_, '_> {
    fn pass(&self, state: &State, holder: Option<String>) -> Result<(), LockError> {
        let hold = match Rule::LookAfterRead.holds() {
            true => self.holds.look()?,
            false => self.before,
        };
        let worktree = self.holds.worktree.clone();
        if hold.is_open() && hold.term == state.term() {
            return Err(HoldRefusal::IsOpen { worktree }.into());
        }
        // Not only the name, but also the files: by now another process of the session may
        // have opened a hold over the loss and given it back, without having answered.
        let lost = match Rule::MemoryAfterRead.holds() {
            true => self.holds.scan()?.lost,
            false => self.lost_before.to_vec(),
        };
        let remembered = taken(&hold, state).or_else(|| lost.first().copied());
        if let Some(term) = remembered.filter(|_| !self.knows) {
            let current = state.token;
            return Err(HoldRefusal::Taken { worktree, token: term.token, current, holder }.into());
        }
        self.passed.borrow_mut().push(*state);
        Ok(())
    }
}

struct Mutex<'h>(&'h Holds<'h>);

impl Drop for Mutex<'_> {
    fn drop(&mut self) {
        let _ = self.0.seams.store.unlink(&self.0.mutex());
    }
}

impl Holds<'_> {
    /// When the stake of one who answers now is over.
    fn over(&self, ask: &Ask) -> Over {
        let now = self.seams.clock.now().boot;
        Over { with: ask.with, at: ask.lasts_ms.map(|ms| now.plus(ms)) }
    }

    /// Puts a stake into the hold as it is, and moves its name so that whoever
    /// looked before has to look again.
    fn join(&self, ask: &Ask) -> Result<(Stake, HoldName, Scan), LockError> {
        let mut rounds = 0;
        loop {
            self.again(&mut rounds)?;
            match self.try_to_join(ask) {
                Ok(Some(joined)) => return Ok(joined),
                Ok(None) => {}
                // The session was forgotten meanwhile: its files are made anew.
                Err(LockError::Hold(refusal))
                    if matches!(*refusal, HoldRefusal::Forgotten { .. }) && rounds < FORGOTTEN => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Once; `None` if others of the session came in between.
    fn try_to_join(&self, ask: &Ask) -> Result<Option<(Stake, HoldName, Scan)>, LockError> {
        let _alone = self.alone()?;
        let hold = self.look()?;
        if hold.state == HoldState::Ending && !Rule::EndingIsBurnt.holds() {
            return Err(HoldRefusal::IsOpen { worktree: self.worktree.clone() }.into());
        }
        let scan = self.scan()?;
        let mut alive = self.alive(&scan);
        // The session has held it anew since: what cannot be seen to run does not keep
        // its runs out for ever.
        alive.retain(|stake| {
            let earlier = stake.term.is_some_and(|its| its < hold.term);
            !earlier || self.sight(stake) != Sight::Unseen
        });
        let comer = Comer { kind: ask.kind, handed_down: ask.handed.is_some(), joins: ask.joins };
        let exclusive = admit(comer, &alive).map_err(|by| HoldRefusal::Relied {
            worktree: self.worktree.clone(),
            refused: Refused::Run,
            by: self.told(&[by]),
        })?;
        let resumable =
            hold.is_open() || hold.state == HoldState::Ending && !Rule::EndingIsNotResumed.holds();
        let stake = Stake {
            id: OpNonce::random(self.seams.entropy),
            term: resumable.then_some(hold.term),
            kind: ask.kind,
            exclusive,
            maker: Who { pid: self.me.pid, start: self.me.start_time },
            pid_namespace: self.me.pid_namespace,
            time_namespace: self.eyes.time_namespace,
            over: self.over(ask),
            answered: false,
        };
        self.place(&stake)?;
        let next = hold.then(if resumable { HoldState::Open } else { hold.state });
        if !Rule::JoinMovesTheName.holds() {
            return Ok(Some((stake, hold, scan)));
        }
        match self.swap(&hold, &next) {
            Ok(true) => Ok(Some((stake, next, scan))),
            Ok(false) => {
                self.remove(&stake);
                Ok(None)
            }
            Err(error) => {
                self.remove(&stake);
                Err(error)
            }
        }
    }

    /// Without the rule that nobody waits: the mutex that one would have at first.
    fn alone(&self) -> Result<Option<Mutex<'_>>, LockError> {
        if Rule::NobodyWaits.holds() {
            return Ok(None);
        }
        match self.seams.store.create_new(&self.mutex()) {
            Ok(_) => Ok(Some(Mutex(self))),
            Err(_) => Err(HoldRefusal::IsOpen { worktree: self.worktree.clone() }.into()),
        }
    }

    fn mutex(&self) -> RepoPath {
        self.place.child("mutex").expect("a plain name")
    }

    /// Puts a stake of this process, which guards a command, into the open hold `term`.
    /// `None` if that is open no more.
    pub fn guard(&self, term: Term) -> Result<Option<Stake>, LockError> {
        let (stake, hold, _) = self.join(&Ask::plain(Kind::Guard))?;
        if hold.is_open() && hold.term == term {
            return Ok(Some(stake));
        }
        self.remove(&stake);
        Ok(None)
    }

    /// Opens the hold `term`, granted from `from`. False if the session is there or
    /// beyond already. Neither the hold nor the grant is durable then: whoever is told of
    /// it, this process or one that joins it, sees to that first.
    fn open(&self, term: Term, from: &State) -> Result<bool, LockError> {
        let mut rounds = 0;
        loop {
            self.again(&mut rounds)?;
            let hold = self.look()?;
            if hold.term >= term {
                return Ok(false);
            }
            if let Some(lost) = taken(&hold, from).filter(|_| Rule::LossIsKeptUntilAnswered.holds())
            {
                // Before the name that tells of it is gone.
                self.remember_loss(lost)?;
            }
            if self.swap(&hold, &hold.opened(term))? {
                return Ok(true);
            }
        }
    }
}

impl<'r> Locks<'r> {
    /// Comes into the session's hold of the worktree, taking the lock if it has none.
    /// `take` takes it, in whichever way was asked for, with the wish that it is given.
    ///
    /// Whatever this answers is true even if the process that held before dies at
    /// that very moment: the stake was there first, and the lease was confirmed by a
    /// CAS of this process.
    pub fn enter(
        &self,
        holds: &Holds<'_>,
        ask: &Ask,
        want: Want<'_>,
        take: &mut dyn FnMut(Want<'_>) -> Result<Lease<'r>, LockError>,
    ) -> Result<Entered<'r>, LockError> {
        check_lease(want.lease_ms)?;
        for round in 0..ROUNDS {
            if round > 0 {
                self.pause(round);
            }
            let (mut stake, hold, scan) = match Rule::StakeComesFirst.holds() {
                true => holds.join(ask)?,
                false => (self.without_a_stake(holds, ask)?, holds.look()?, holds.scan()?),
            };
            let entered = self.enter_with(holds, ask, want, take, &mut stake, &hold, &scan);
            match entered {
                Ok(Some((lease, joined))) => return Ok(Entered { lease, stake, joined }),
                Ok(None) => holds.remove(&stake),
                // Whoever opened it came after all that this process tried.
                Err(
                    Stop::Untouched(LockError::Hold(refusal))
                    | Stop::Moved(LockError::Hold(refusal)),
                ) if matches!(*refusal, HoldRefusal::IsOpen { .. }) => {
                    holds.remove(&stake);
                }
                Err(Stop::Untouched(error)) => {
                    holds.remove(&stake);
                    return Err(error);
                }
                // The stake stays: whoever opens a hold that was burnt by this one sees
                // by it that it has to ask the register.
                Err(Stop::Moved(error)) => return Err(error),
            }
        }
        Err(HoldRefusal::IsOpen { worktree: holds.worktree.clone() }.into())
    }

    /// One round; `None` if it has to begin again.
    #[expect(clippy::too_many_arguments, reason = "one round of the function above")]
    fn enter_with(
        &self,
        holds: &Holds<'_>,
        ask: &Ask,
        want: Want<'_>,
        take: &mut dyn FnMut(Want<'_>) -> Result<Lease<'r>, LockError>,
        stake: &mut Stake,
        hold: &HoldName,
        scan: &Scan,
    ) -> Result<Option<(Lease<'r>, bool)>, Stop> {
        let worktree = &holds.worktree;
        if let Some(lost) = scan.lost.first().filter(|_| !ask.knows) {
            let view = self.inspect(worktree)?;
            let refusal = HoldRefusal::Taken {
                worktree: worktree.clone(),
                token: lost.token,
                current: view.state.token,
                holder: view.record().map(|record| record.session_id.clone()),
            };
            return Err(LockError::from(refusal).into());
        }
        if let Some(handed) =
            ask.handed.filter(|token| stake.term.is_none_or(|term| term.token != *token))
        {
            // Of a hold that is over: what began under it must not go on under another.
            let current = self.inspect(worktree)?.state.token;
            let worktree = worktree.clone();
            return Err(LockError::Fenced { worktree, token: handed, current }.into());
        }
        if let Some(term) = stake.term {
            // A piece of work is promised nothing beyond its end: what it finds lasts as
            // long as was said, and others wait no longer for it.
            let lease_ms = (ask.kind != Kind::Work).then_some(want.lease_ms);
            let durable = scan.stakes.iter().any(|it| it.answered && it.term == Some(term));
            let confirmed = self.confirmed(holds, term, lease_ms, want.note, None)?;
            if let Some(lease) = confirmed.as_ref().filter(|_| !durable)
                && Rule::JoinersMakeItDurable.holds()
            {
                // Whoever opened it may be just about to: a power cut must neither take the
                // grant back nor make the session forget what this process is told.
                let made = holds.sync_with(lease);
                made.map_err(|error| LockError::not_durable(worktree.clone(), false, error))?;
            }
            if !Rule::StakeComesFirst.holds() {
                holds.place(stake)?;
            }
            return Ok(confirmed.map(|lease| (lease, true)));
        }
        let watcher = Watcher {
            holds,
            knows: ask.knows,
            before: *hold,
            lost_before: &scan.lost,
            passed: RefCell::new(Vec::new()),
        };
        let taken = take(Want { gate: Some(&watcher), ..want });
        let mut lease = taken.map_err(|error| match watcher.passed.borrow().is_empty() {
            true => Stop::Untouched(error),
            // What came of it may be unknown, or was taken back.
            false => Stop::Moved(error),
        })?;
        let term = lease.term();
        let passed = watcher.passed.into_inner();
        let from = passed.iter().rev().find(|state| state.token.next() == term.token);
        let Some(from) = from else { return Ok(None) };
        let bound = match Rule::StakeComesFirst.holds() {
            true => holds.bind(stake, term),
            false => Ok(()),
        };
        let opened = bound.and_then(|()| holds.open(term, from));
        // Whatever came of that, whoever looks is told who has the lock.
        lease.write_first_record(want.note);
        if !opened.map_err(Stop::Moved)? {
            return Ok(None);
        }
        if let Err(source) = holds.sync_with(&lease) {
            // Nobody was told of it, and whoever has come into the hold since makes it
            // durable or is told of nothing either: it is left as any other hold is.
            let given_back = matches!(self.leave(holds, stake), Ok(Given::Back(_)));
            let error = LockError::not_durable(worktree.clone(), given_back, source);
            return Err(Stop::Moved(error));
        }
        // Nobody of the session touches the register without a stake: where there is
        // no other, alive or dead, the grant itself is what confirmed it.
        let alone = holds.scan().map_err(Stop::Moved)?.stakes.iter().all(|it| it.id == stake.id);
        let alone = alone || !Rule::OthersAreAskedFor.holds();
        let confirmed = match alone && self.lasts(&lease) {
            true => Some(lease),
            false => self
                .confirmed(holds, term, Some(want.lease_ms), want.note, Some(lease))
                .map_err(Stop::Moved)?,
        };
        if !Rule::StakeComesFirst.holds() {
            stake.term = Some(term);
            holds.place(stake)?;
        }
        Ok(confirmed.map(|lease| (lease, false)))
    }

    /// Has the register confirm the open hold `term`, by a CAS of this process. `None`
    /// if it shows another term: then nobody may join that hold any more. The lease
    /// keeps its length unless another is said.
    fn confirmed(
        &self,
        holds: &Holds<'_>,
        term: Term,
        lease_ms: Option<u64>,
        note: Option<&str>,
        fresh: Option<Lease<'r>>,
    ) -> Result<Option<Lease<'r>>, LockError> {
        let worktree = &holds.worktree;
        let ticket = Ticket { worktree: worktree.clone(), term };
        let how = fresh.as_ref().map_or(How::Refreshed, Lease::how);
        let confirm = || {
            let mut lease = match fresh {
                Some(lease) => lease,
                None => self.resume(worktree, Some(&ticket))?,
            };
            if Rule::ConfirmedByOwnCas.holds() {
                lease.confirm(lease_ms, note, how)?;
                if !self.lasts(&lease) {
                    // The answer came when the lease was over: nothing to tell of.
                    lease.confirm(lease_ms, note, how)?;
                }
            }
            Ok(lease)
        };
        match confirm() {
            Ok(lease) => Ok(Some(lease)),
            Err(LockError::Fenced { .. } | LockError::NotHeld { .. }) => {
                holds.lost(term)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Is there something left of a lease to tell of? One that is over before anybody
    /// can read it was asked for.
    fn lasts(&self, lease: &Lease<'_>) -> bool {
        const READABLE_MS: u64 = 1_000;
        let now = self.seams.clock.now().boot;
        lease.claim().lease_ms < READABLE_MS || lease.belief().holds_at(now)
    }

    /// The stake as it would be, and not there.
    fn without_a_stake(&self, holds: &Holds<'_>, ask: &Ask) -> Result<Stake, LockError> {
        let (stake, ..) = holds.join(ask)?;
        holds.remove(&stake);
        Ok(stake)
    }

    fn pause(&self, round: u32) {
        let mut random = [0];
        self.seams.entropy.fill(&mut random);
        let longest = (1_u64 << round.min(6)).min(PAUSE_MS);
        self.seams.clock.sleep_ms(1 + longest * u64::from(random[0]) / 256);
    }

    /// The command of `entered` is about to answer. Whoever said to know of what was
    /// lost is now told what it holds: it is forgotten.
    pub fn answer(&self, holds: &Holds<'_>, ask: &Ask, stake: &mut Stake) -> Result<(), LockError> {
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
        if ask.knows {
            for term in scan.lost {
                holds.forget_loss(term)?;
            }
        }
        Ok(())
    }
}
