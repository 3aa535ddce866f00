//! Processes of one session that share a hold: commands, runs, a keeper. They use
//! the real code of `jvs-lock`; the private directory is a part of the simulated
//! filesystem that the rival never looks at.

use jvs_kit::sim::{Ctx, Process, Solo, Start, Value};
use jvs_lock::hold::rule::{self, Rule};
use jvs_lock::hold::{Ask, Entered, Eyes, Given, HoldRefusal, Holds, Kind, Over, Who};
use jvs_lock::{LockError, Locks, Seams, Want};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::clock::Clock;
use jvs_repo::code::Coded;
use jvs_repo::config::LockPolicy;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;

use crate::actor::{self, LEASE_MS};

/// The repository's id in these worlds.
const REPO: &str = "repo";

/// What a process of the session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// `lock acquire`, and stays: the terminal that it is for closes when the process
    /// ends.
    Acquire,
    /// `lock acquire`, for nobody in particular: the lock stays.
    AcquireForGood,
    /// `run`: comes in, works, leaves.
    Run,
    /// `run --join`.
    RunJoining,
    /// `snapshot`: comes in, commits, leaves.
    Snapshot,
    /// Keeps the first hold that it sees: renews while it is needed, then ends it.
    Keep,
    /// `lock release`.
    Release,
    /// Waits for longer than any lease, then says `lock acquire`: must succeed.
    AcquireInTheEnd,
}

/// A process of a session.
#[derive(Debug, Clone, Copy)]
pub struct Holder {
    session: &'static str,
    does: &'static [Does],
    start: Start,
}

impl Holder {
    /// A process of `session` that does all of `does`, on host 0.
    pub const fn new(session: &'static str, does: &'static [Does]) -> Self {
        Holder { session, does, start: Start::AtOnce }
    }

    /// The one that comes when all others have ended or died.
    #[must_use]
    pub const fn last(mut self) -> Self {
        self.start = Start::Last;
        self
    }

    /// The process, in a world where `off` does not hold.
    pub fn process(self, off: Option<Rule>) -> Process {
        let body = move |ctx: &Ctx| match off {
            Some(rule) => rule::without(rule, || perform(ctx, self)),
            None => perform(ctx, self),
        };
        Process::new(self.session, body).starts(self.start).on_host(0)
    }
}

/// The session's private directory, as its first command would make it.
pub fn prepare(solo: &Solo, session: &str) {
    let seams = Seams { store: solo.store(), clock: solo.clock(), entropy: solo.entropy() };
    let session = actor::session(session, 99, solo.clock());
    let eyes = Eyes { lookup: &|_| None, words: &|_| None, time_namespace: Some(1) };
    let me = session.identity().clone();
    let holds = Holds::new(seams, eyes, me, session.nonce(), REPO, WorktreeName::main());
    holds.prepare().expect("an empty world");
}

struct Worker<'w> {
    ctx: &'w Ctx,
    locks: &'w Locks<'w>,
    holds: &'w Holds<'w>,
}

fn perform(ctx: &Ctx, holder: Holder) {
    let seams = Seams { store: ctx.store(), clock: ctx.clock(), entropy: ctx.entropy() };
    let pid = u32::try_from(ctx.index()).expect("few processes");
    let session = actor::session(holder.session, pid, ctx.clock());
    ctx.claim("session", holder.session);
    ctx.claim("nonce", session.nonce().to_string());
    let writer = WriterId::derive(holder.session.as_bytes(), ctx.index() as u64);
    let log = Log::new(ctx.store(), &Alone, writer);
    let lookup = |pid: u32| {
        let stat = ProcessStat { start_ticks: 1, session_leader: 1, zombie: false };
        ctx.is_running(pid as usize).then_some(stat)
    };
    let eyes = Eyes { lookup: &lookup, words: &|_| None, time_namespace: Some(1) };
    let (me, nonce) = (session.identity().clone(), session.nonce());
    let holds = Holds::new(seams, eyes, me, nonce, REPO, WorktreeName::main());
    let locks = Locks::new(seams, session, LockPolicy::default(), log);
    let worker = Worker { ctx, locks: &locks, holds: &holds };
    for (number, does) in holder.does.iter().enumerate() {
        if !worker.does(*does, number) {
            break;
        }
    }
}

impl<'w> Worker<'w> {
    fn does(&self, does: Does, number: usize) -> bool {
        match does {
            Does::Acquire => {
                let me = Who { pid: u32::try_from(self.ctx.index()).expect("few"), start: 1 };
                self.acquire(Over { with: Some(me), at: None })
            }
            Does::AcquireForGood => self.acquire(Over::default()),
            Does::AcquireInTheEnd => {
                self.ctx.clock().sleep_ms(actor::LEASE_AND_MARGIN_MS + 60_000);
                let got = self.acquire(Over::default());
                if !got {
                    self.ctx.claim("never", 1_u64);
                }
                got
            }
            Does::Run => self.run(false),
            Does::RunJoining => self.run(true),
            Does::Snapshot => self.snapshot(number),
            Does::Keep => self.keep(),
            Does::Release => self.release(),
        }
    }

    fn enter(&self, ask: &Ask) -> Option<Entered<'w>> {
        let main = WorktreeName::main();
        let mut take = |want: Want<'_>| self.locks.acquire(&main, want);
        match self.locks.enter(self.holds, ask, Want::lease(LEASE_MS), &mut take) {
            Ok(entered) => {
                let until = entered.lease.belief().until().map_or(0, |until| until.0);
                self.ctx.append("told", entered.lease.token().0);
                self.ctx.claim("told_until", until);
                self.believe(&entered);
                Some(entered)
            }
            Err(error) => {
                self.ctx.say(format!("{}: {error}", error.code()));
                if let LockError::Hold(refusal) = &error
                    && let HoldRefusal::IsOpen { .. } = **refusal
                {
                    self.ctx.claim("sent_away", 1_u64);
                }
                None
            }
        }
    }

    fn believe(&self, entered: &Entered<'_>) {
        if let Some(until) = entered.lease.belief().until() {
            self.ctx.claim("believes_in", entered.lease.token().0);
            self.ctx.claim("believes_until", until.0);
        }
    }

    fn doubt(&self) {
        self.ctx.retract("believes_until");
        self.ctx.retract("believes_in");
    }

    /// Believes for as long as the process lives.
    fn acquire(&self, over: Over) -> bool {
        let ask = Ask { over, knows: true, ..Ask::plain(Kind::Acquire) };
        let Some(mut entered) = self.enter(&ask) else { return false };
        let for_good = over == Over::default();
        if for_good {
            // Answered and gone: from then on anybody of the session may release it.
            self.doubt();
        }
        // Its last step before it answers begins here.
        self.ctx.pause();
        self.ctx.append("knows", entered.lease.token().0);
        if self.locks.answer(self.holds, &ask, &mut entered.stake).is_err() {
            self.doubt();
            return false;
        }
        if !for_good {
            self.ctx.pause();
        }
        true
    }

    fn run(&self, joins: bool) -> bool {
        let ask = Ask { joins, ..Ask::plain(Kind::Run) };
        let Some(entered) = self.enter(&ask) else { return false };
        // One that took the lock itself was there before anybody else said anything.
        let (alone, asked) = (u64::from(!entered.joined), u64::from(joins));
        self.ctx.claim("runs", Value::from([entered.lease.token().0, alone, asked]));
        self.ctx.pause();
        self.ctx.retract("runs");
        self.doubt();
        self.leave(&entered)
    }

    fn snapshot(&self, number: usize) -> bool {
        let Some(mut entered) = self.enter(&Ask::plain(Kind::Work)) else { return false };
        let id = (self.ctx.index() as u64 + 1) * 100 + number as u64;
        let head = SnapshotId { created_ms: id, random: 0 };
        let token = entered.lease.token().0;
        let committed = entered.lease.fence().and_then(|mut fence| {
            let parent = fence.read()?.head;
            let parent_id = parent.map_or(0, |parent| parent.created_ms);
            self.ctx.append("commits", Value::from([id, token, parent_id]));
            fence.commit(parent, head, &|| Ok(false))
        });
        self.doubt();
        match committed {
            Ok(_) => self.ctx.append("published", token),
            Err(error) => self.ctx.say(format!("commit: {}: {error}", error.code())),
        }
        self.leave(&entered)
    }

    fn leave(&self, entered: &Entered<'_>) -> bool {
        match self.locks.leave(self.holds, &entered.stake) {
            Ok(given) => {
                if given == Given::Back {
                    self.ctx.append("gave_back", entered.lease.token().0);
                }
                true
            }
            Err(error) => {
                self.ctx.say(format!("leave: {}: {error}", error.code()));
                self.ctx.claim("stuck", 1_u64);
                false
            }
        }
    }

    fn keep(&self) -> bool {
        let mut looks = 0;
        let bound = loop {
            looks += 1;
            match self.holds.peek() {
                Ok(Some(hold)) if hold.is_open() => break hold.term,
                // As one that is started when there is something to keep.
                _ if looks < 3 => self.ctx.clock().sleep_ms(1_000),
                _ => return true,
            }
        };
        let ticket = jvs_lock::Ticket {
            worktree: WorktreeName::main(),
            epoch: bound.epoch,
            token: bound.token,
        };
        for _ in 0..3 {
            match self.locks.give_back_unneeded(self.holds, bound) {
                Ok(Given::Back) => {
                    self.ctx.append("gave_back", bound.token.0);
                    return true;
                }
                Ok(Given::Over) => return true,
                Ok(Given::Kept(_)) => {
                    let renewed = self
                        .locks
                        .resume(&WorktreeName::main(), Some(&ticket))
                        .and_then(|mut lease| lease.renew());
                    if let Err(LockError::Fenced { .. } | LockError::NotHeld { .. }) = renewed {
                        return self.holds.lost(bound).is_ok();
                    }
                    self.ctx.clock().sleep_ms(10_000);
                }
                Err(_) => {}
            }
        }
        true
    }

    fn release(&self) -> bool {
        match self.locks.release_as_told(self.holds) {
            Ok(_) => true,
            Err(error) => {
                self.ctx.say(format!("release: {}: {error}", error.code()));
                true
            }
        }
    }
}
