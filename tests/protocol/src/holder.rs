//! Processes of one session that share a hold: commands, runs, a keeper. They use
//! the real code of `jvs-lock`; the private directory is a part of the simulated
//! filesystem that the rival never looks at.

use jvs_kit::sim::{Ctx, Errno, Process, Solo, Start, Value, Way};
use jvs_lock::hold::rule::HoldRule;
use jvs_lock::hold::{
    Ask, EnterError, Entered, GiveBackError, HoldName, HoldRefusal, HoldState, Holds, LeaveOutcome,
    NoTies, ProcessLookup, StakeKind, Who,
};
use jvs_lock::queue::{Lookup, Sleeper, WatchBegun, Woken};
use jvs_lock::{
    AcquireError, CommitError, Hold, Lease, LeaseError, Locks, State, Ticket, TurnError, Want,
};
use jvs_repo::clock::Clock;
use jvs_repo::code::Coded;
use jvs_repo::id::{FencingToken, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::store::{RepoPath, Store as _};
use jvs_world::any_error::AnyError;
use jvs_world::session::locks_with_log;
use jvs_world::sim::{seams, seams_of};

use crate::actor::{self, HEIR, LEASE_MS};
use crate::necessity::where_off;
use crate::stage::repository;

/// The repository's id in these worlds.
pub(crate) const REPO: &str = "repo";

/// What a process of the session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// `lock acquire`, and stays: the terminal that it is for closes when the process
    /// ends.
    Acquire,
    /// `lock acquire`, for nobody in particular: the lock stays.
    AcquireForGood,
    /// `lock acquire --for` half a lease: nobody ever says that the session is done.
    AcquireForAWhile,
    /// `run`: comes in, works, leaves.
    Run,
    /// `run --join`.
    RunJoining,
    /// `run`, whose keeper begins late, goes on with what the run was told, and renews when
    /// that is due.
    RunKept,
    /// `snapshot`: comes in, commits, leaves.
    Snapshot,
    /// Keeps the first hold that it sees: renews while it is needed, then ends it.
    Keep,
    /// `lock release`.
    Release,
    /// Gives back the hold that it first saw, later.
    ReleaseWhatWasSeen,
    /// `lock transfer` to whoever waits of the session [`HEIR`].
    HandOver,
    /// `lock acquire --wait`, interrupted at its first pause.
    WaitInVain,
    /// The keeper that is there when everybody else has ended or died.
    KeepToTheEnd,
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
    pub fn process(self, off: Option<HoldRule>) -> Process {
        let body = move |ctx: &Ctx| where_off(off, || perform(ctx, self));
        Process::new(self.session, body).starts(self.start).on_host(0)
    }
}

/// The session's private directory, as its first command would make it.
pub fn prepare(solo: &Solo, session: &str) {
    let seams = seams_of(solo);
    let session = actor::session(session, 99, solo.clock());
    let processes = ProcessLookup { lookup: &|_| None, words: &|_| None, time_namespace: Some(1) };
    let me = session.identity().clone();
    let id = session.id().to_string();
    let holds = Holds::new(seams, processes, me, session.nonce(), REPO, WorktreeName::main());
    holds.remembering(&id).prepare().expect("an empty world");
}

/// The session's hold is open, and whoever it was for is gone.
pub fn left_open(solo: &Solo, session: &str) {
    let main = WorktreeName::main();
    let seams = seams_of(solo);
    let me = locks_with_log(seams, actor::session(session, 99, solo.clock()), 99);
    let processes = ProcessLookup { lookup: &|_| None, words: &|_| None, time_namespace: Some(1) };
    let (identity, nonce) = (me.session().identity().clone(), me.session().nonce());
    let holds = Holds::new(seams, processes, identity, nonce, REPO, main.clone());
    let mut take = |want: Want<'_>| me.acquire(&main, want);
    let ask = Ask::plain(StakeKind::Acquire);
    let entered = me.enter(&holds, &ask, Want::lease(LEASE_MS), &mut take).expect("a free lock");
    holds.remove(&entered.stake);
}

/// The session held, was taken over by another that published and gave it back, and
/// has not heard of it yet.
pub fn taken_over(solo: &Solo, session: &str, by: &str) {
    left_open(solo, session);
    let main = WorktreeName::main();
    let rival = locks_with_log(seams_of(solo), actor::session(by, 99, solo.clock()), 99);
    solo.pass_ms(actor::LEASE_AND_MARGIN_MS);
    let mut lease = rival.acquire(&main, Want::lease(LEASE_MS)).expect("it is over");
    let head = SnapshotId { created_ms: 1, random: 0 };
    let mut fence = lease.fence().expect("it holds");
    fence.commit(None, head, &|| Ok(false)).expect("it holds");
    lease.release().expect("it holds");
}

/// A process of the session "a" comes in: the token that it is told, and where the hold's
/// name is.
fn enters(solo: &Solo, pid: u32) -> Result<(FencingToken, RepoPath), EnterError<AcquireError>> {
    let main = WorktreeName::main();
    let seams = seams_of(solo);
    let processes = ProcessLookup { lookup: &|_| None, words: &|_| None, time_namespace: Some(1) };
    let session = actor::session("a", pid, solo.clock());
    let (identity, nonce) = (session.identity().clone(), session.nonce());
    let locks = locks_with_log(seams, session, u64::from(pid));
    let holds = Holds::new(seams, processes, identity, nonce, REPO, main.clone());
    let mut take = |want: Want<'_>| locks.acquire(&main, want);
    let ask = Ask::plain(StakeKind::Work);
    let entered = locks.enter(&holds, &ask, Want::lease(LEASE_MS), &mut take)?;
    Ok((entered.lease.token(), holds.name_dir()))
}

/// A process comes in, and the `nth` of the two directories that say so cannot be made
/// durable: what it is told, the register, and the hold's name.
pub fn enters_what_cannot_be_made_durable(
    nth: usize,
) -> (EnterError<AcquireError>, State, HoldName) {
    let world = || {
        let solo = Solo::new();
        repository(&solo);
        prepare(&solo, "a");
        solo.forget_calls();
        solo
    };
    let rehearsed = world();
    let (_, name) = enters(&rehearsed, 1).expect("nobody is in the way");
    let register = layout::register(&WorktreeName::main());
    let sync = format!("sync_dir({}", [&name, &register][nth]);
    let at = rehearsed.calls().iter().rposition(|call| call.starts_with(&sync));
    let solo = world();
    solo.fail_call(at.expect("it is synced"), Errno::IO);
    let told = enters(&solo, 1).expect_err("nobody may be told of it");
    let only = |dir: &RepoPath| solo.image().list(dir).remove(0);
    let state = only(&register).parse().expect("a state");
    (told, state, only(&name).parse().expect("a hold"))
}

/// One process of the session dies before its `n`th call, then another comes: if the
/// power goes, does the session still know of what that was told, and has the register
/// still granted it? `None` if there are not so many calls.
pub fn remembers_through_a_power_cut(n: usize) -> Option<bool> {
    let solo = Solo::new();
    repository(&solo);
    prepare(&solo, "a");
    let main = WorktreeName::main();
    // Made long ago.
    let made = layout::register(&main);
    let above =
        std::iter::successors(Some(made), |dir| (*dir != RepoPath::root()).then(|| dir.parent()));
    above.for_each(|dir| solo.store().sync_dir(&dir).expect("a directory"));
    solo.inject(n, Way::DiesFirst);
    if solo.run(|| enters(&solo, 1)).is_some() {
        return None;
    }
    let (told, dir) = enters(&solo, 2).expect("nobody is in the way");
    let left = solo.crash_image(0);
    let known = |name: &String| name.parse().is_ok_and(|name: HoldName| name.term.token == told);
    let granted = |name: &String| name.parse().is_ok_and(|state: State| state.token == told);
    let register = left.list(&layout::register(&main));
    Some(left.list(&dir).iter().any(known) && register.iter().any(granted))
}

/// What the session's first command after a reboot is told that would write.
pub fn writes_after_a_reboot(solo: &Solo, session: &str) -> Result<(), AnyError> {
    let main = WorktreeName::main();
    let seams = seams_of(solo);
    let rebooted = actor::session_after_a_reboot(session, 98, solo.clock());
    let locks = locks_with_log(seams, rebooted, 98);
    let processes = ProcessLookup { lookup: &|_| None, words: &|_| None, time_namespace: Some(1) };
    let (identity, nonce) = (locks.session().identity().clone(), locks.session().nonce());
    let holds =
        Holds::new(seams, processes, identity, nonce, REPO, main.clone()).remembering(session);
    let mut take = |want: Want<'_>| locks.acquire(&main, want);
    let ask = Ask::plain(StakeKind::Work);
    let entered = locks.enter(&holds, &ask, Want::lease(LEASE_MS), &mut take)?;
    locks.leave(&holds, &entered.stake)?;
    Ok(())
}

struct Worker<'w> {
    ctx: &'w Ctx,
    lookup: Lookup<'w>,
    locks: &'w Locks<'w>,
    holds: &'w Holds<'w>,
}

fn perform(ctx: &Ctx, holder: Holder) {
    let seams = seams(ctx);
    let pid = u32::try_from(ctx.index()).expect("few processes");
    let session = actor::session(holder.session, pid, ctx.clock());
    ctx.claim("session", holder.session);
    ctx.claim("nonce", session.nonce().to_string());
    let lookup = |pid: u32| {
        let stat = ProcessStat { start_ticks: 1, session_leader: 1, zombie: false };
        ctx.is_running(pid as usize).then_some(stat)
    };
    let processes = ProcessLookup { lookup: &lookup, words: &|_| None, time_namespace: Some(1) };
    let (me, nonce) = (session.identity().clone(), session.nonce());
    let holds = Holds::new(seams, processes, me, nonce, REPO, WorktreeName::main());
    let locks = locks_with_log(seams, session, ctx.index() as u64);
    let worker = Worker { ctx, lookup: &lookup, locks: &locks, holds: &holds };
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
                self.acquire(Some(me), None)
            }
            Does::AcquireForGood => self.acquire(None, None),
            Does::AcquireForAWhile => self.acquire(None, Some(LEASE_MS / 2)),
            Does::KeepToTheEnd => {
                self.ctx.clock().sleep_ms(LEASE_MS / 2);
                let kept = self.keep();
                self.ctx.claim("came_by", 1_u64);
                kept
            }
            Does::AcquireInTheEnd => {
                self.ctx.clock().sleep_ms(actor::LEASE_AND_MARGIN_MS + 60_000);
                let got = self.acquire(None, None);
                if !got {
                    self.ctx.claim("never", 1_u64);
                }
                got
            }
            Does::Run => self.run(false),
            Does::RunJoining => self.run(true),
            Does::RunKept => self.run_kept(),
            Does::Snapshot => self.snapshot(number),
            Does::Keep => self.keep(),
            Does::Release => self.release(),
            Does::ReleaseWhatWasSeen => self.release_what_was_kept(),
            Does::HandOver => self.hand_over(),
            Does::WaitInVain => self.wait_in_vain(),
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
                if let EnterError::Refused(HoldRefusal::IsOpen { .. }) = error {
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
    fn acquire(&self, with: Option<Who>, lasts_ms: Option<u64>) -> bool {
        let ask = Ask { with, lasts_ms, acknowledges_loss: true, ..Ask::plain(StakeKind::Acquire) };
        let Some(mut entered) = self.enter(&ask) else { return false };
        if lasts_ms.is_some() {
            self.ctx.append("asked_for_a_time", entered.lease.token().0);
        }
        // Whoever is told and has ended believes nothing.
        let for_good = with.is_none();
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
        let ask = Ask { joins, ..Ask::plain(StakeKind::Run) };
        let Some(entered) = self.enter(&ask) else { return false };
        // One that took the lock itself was there before anybody else said anything.
        let alone = !entered.joined || entered.stake.exclusive;
        let (alone, asked) = (u64::from(alone), u64::from(joins));
        self.ctx.claim("runs", Value::from([entered.lease.token().0, alone, asked]));
        self.ctx.pause();
        self.ctx.retract("runs");
        self.doubt();
        self.leave(&entered)
    }

    fn run_kept(&self) -> bool {
        let Some(entered) = self.enter(&Ask::plain(StakeKind::Run)) else { return false };
        let (main, ticket) = (WorktreeName::main(), entered.lease.ticket());
        let confirmed = entered.lease.confirmed().expect("by a CAS of its own");
        self.ctx.clock().sleep_ms(actor::RENEWAL_MS - 1);
        self.doubt();
        let kept = match self.locks.inherit(&main, &ticket, &confirmed, actor::RENEWAL_MS) {
            Ok(Some(lease)) => Ok(lease),
            Ok(None) => self.locks.resume(&main, Some(&ticket)).and_then(|mut lease| {
                lease.renew()?;
                Ok(lease)
            }),
            Err(error) => Err(error),
        };
        let Ok(mut lease) = kept else { return self.leave(&entered) };
        let believe = |lease: &Lease<'_>| match lease.belief().until() {
            Some(until) => {
                self.ctx.claim("believes_in", lease.token().0);
                self.ctx.claim("believes_until", until.0);
            }
            None => self.doubt(),
        };
        believe(&lease);
        self.ctx.clock().sleep_ms(actor::RENEWAL_MS);
        // Whether it renews or is too late for that, it believes what its belief says.
        let _ = lease.renew();
        believe(&lease);
        self.ctx.pause();
        self.doubt();
        self.leave(&entered)
    }

    fn snapshot(&self, number: usize) -> bool {
        let Some(mut entered) = self.enter(&Ask::plain(StakeKind::Work)) else { return false };
        let id = (self.ctx.index() as u64 + 1) * 100 + number as u64;
        let head = SnapshotId { created_ms: id, random: 0 };
        let token = entered.lease.token().0;
        let committed = entered.lease.fence().map_err(CommitError::from).and_then(|mut fence| {
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
                if let LeaveOutcome::Back(_) = given {
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
                Ok(Some(hold)) if hold.is_open() || hold.state == HoldState::Ending => {
                    break hold.term;
                }
                // As one that is started when there is something to keep.
                _ if looks < 3 => self.ctx.clock().sleep_ms(1_000),
                _ => return true,
            }
        };
        let ticket = Ticket { worktree: WorktreeName::main(), term: bound };
        for _ in 0..3 {
            match self.locks.give_back_unneeded(self.holds, bound) {
                Ok(LeaveOutcome::Back(_)) => {
                    self.ctx.append("gave_back", bound.token.0);
                    return true;
                }
                Ok(LeaveOutcome::Over) => return true,
                Ok(LeaveOutcome::Kept(_)) => {
                    let renewed = self
                        .locks
                        .resume(&WorktreeName::main(), Some(&ticket))
                        .and_then(|mut lease| lease.renew());
                    if let Err(LeaseError::Fenced { .. } | LeaseError::NotHeld { .. }) = renewed {
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
        let released = self
            .locks
            .resume(&WorktreeName::main(), None)
            .map_err(GiveBackError::from)
            .and_then(|lease| self.locks.release_resumed(self.holds, lease));
        if let Err(error) = released {
            self.ctx.say(format!("release: {}: {error}", error.code()));
        }
        true
    }

    /// As a keeper that is told to give back what it keeps, a little late.
    fn release_what_was_kept(&self) -> bool {
        let Ok(Some(hold)) = self.holds.peek() else { return true };
        if !hold.is_open() {
            return true;
        }
        let ticket = Ticket { worktree: WorktreeName::main(), term: hold.term };
        self.ctx.pause();
        match self.locks.release_as_told(self.holds, &ticket) {
            // Another's by now: that was not given back.
            Ok(seen) if seen.hold != Hold::Free => {}
            Ok(seen) => {
                self.ctx
                    .claim("released_when_told", Value::from([hold.term.token.0, seen.token.0]));
            }
            Err(error) => self.ctx.say(format!("release: {}: {error}", error.code())),
        }
        true
    }

    fn hand_over(&self) -> bool {
        let main = WorktreeName::main();
        let heir = HEIR.parse().expect("an id");
        let waiter = (0..3).find_map(|_| {
            let found = self.locks.waiter(&main, &heir, self.lookup).ok().flatten();
            if found.is_none() {
                self.ctx.clock().sleep_ms(10);
            }
            found
        });
        let Some(waiter) = waiter else { return self.release() };
        let handed = || {
            let (holds, mine) = (self.holds, self.locks.resume(&main, None)?.ticket());
            let moved =
                self.locks.transfer_as_told(holds, &mine, &waiter, LEASE_MS, "handed over")?;
            Ok::<_, AnyError>(self.locks.deliver(&waiter, holds, &moved)?)
        };
        match handed() {
            Ok(delivered) => self.ctx.claim("delivered", u64::from(delivered)),
            Err(error) => self.ctx.say(format!("hand over: {}: {error}", error.code())),
        }
        true
    }

    fn wait_in_vain(&self) -> bool {
        let main = WorktreeName::main();
        let mut sleeper = Impatient(self.ctx);
        let want = Want::lease(LEASE_MS);
        let entered =
            self.locks.enter(self.holds, &Ask::plain(StakeKind::Work), want, &mut |want| {
                let waited =
                    self.locks.wait(&main, want, 60_000, self.lookup, &mut sleeper, &NoTies);
                waited.map_err(Some)?.ok_or(None::<TurnError>)
            });
        match entered {
            Ok(entered) => self.leave(&entered),
            Err(error) => {
                self.ctx.say(format!("wait: {error:?}"));
                if !self.locks.decline(self.holds) {
                    self.ctx.say("decline: not now");
                }
                true
            }
        }
    }
}

/// Somebody who is interrupted while it sleeps.
struct Impatient<'c>(&'c Ctx);

impl Sleeper for Impatient<'_> {
    fn watch(&mut self, _what: &RepoPath) -> WatchBegun {
        WatchBegun::Impossible
    }

    fn sleep(&mut self, _ms: u64) -> Woken {
        self.0.pause();
        Woken::Stop
    }
}
