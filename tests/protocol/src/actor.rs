//! A session's process that works through a script with the real lock.

use std::io;
use std::sync::Arc;

use jvs_kit::sim::{Ctx, Process, Solo, Start, Value};
use jvs_lock::hold::NoTies;
use jvs_lock::judge::Standing;
use jvs_lock::mutation::Rule;
use jvs_lock::queue::SleepOnly;
use jvs_lock::session::Purpose;
use jvs_lock::watching::Silently;
use jvs_lock::{
    CommitError, FreezeError, Hold, Identity, Lease, LeaseError, LeaseOrigin, Locks, RegisterError,
    Seams, Secret, Session, State, Want,
};
use jvs_repo::clock::{BootId, BootMs, Clock};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::ReclaimRules;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::store::Store;
use jvs_world::session::{identity, locks, locks_with_log, secret};
use jvs_world::sim::seams_of;

use crate::necessity::where_off;
use crate::telling::TellingStore;

/// Length of every lease in these worlds.
pub const LEASE_MS: u64 = 30_000;
/// How often a lease that is kept is renewed in these worlds.
pub const RENEWAL_MS: u64 = 10_000;
/// Long enough for any lease to be over, skew and grace included.
pub const LEASE_AND_MARGIN_MS: u64 = 33_001;
/// The session that a holder hands over to in these worlds.
pub const HEIR: &str = "heir";
/// How long one who waits in line does so in these worlds.
const IN_LINE_MS: u64 = 50;

/// What an actor does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Acquires, refreshes or steals. The script ends if it may not.
    Acquire,
    /// As [`Step::Acquire`], for a lease of a second.
    AcquireBriefly,
    /// As [`Step::Acquire`], saying that it will be renewed every [`RENEWAL_MS`].
    AcquireToKeep,
    /// Sleeps for [`RENEWAL_MS`], as one who keeps a lease does between renewals.
    Sleep,
    /// Turns its own hold into a freeze. The script ends if that fails.
    FreezeOwn,
    /// Lifts a freeze, whoever made it.
    Unfreeze,
    /// Looks, and then lifts the freeze that it saw if it is over, as a repair does.
    Lift,
    /// Takes it by policy also from a live holder of the same user.
    Reclaim,
    /// Goes on with whatever hold the session has. The script ends if it has none.
    Resume,
    /// Renews. The script ends if that fails.
    Renew,
    /// Moves the head to a snapshot of its own. The script ends if that fails.
    Commit,
    /// Gives the lock back.
    Release,
    /// Waits in line for a moment. The script ends if that was in vain.
    Wait,
    /// Hands the lock to [`HEIR`], if that waits. The script ends if that fails.
    HandOver,
    /// Freezes the worktree.
    Freeze,
    /// Waits for longer than any lease, then acquires, again and again until it
    /// has the lock: nobody may be kept out for ever.
    AcquireInTheEnd,
}

/// A process of a session.
#[derive(Debug, Clone, Copy)]
pub struct Actor {
    session: &'static str,
    host: Option<usize>,
    script: &'static [Step],
    patient: bool,
    time_namespace: Option<(u64, u64)>,
    start: Start,
    old_listings: u32,
    repo_rule_off: Option<jvs_repo::mutation::Rule>,
    of_its_host: bool,
}

impl Actor {
    /// A process of `session` that does `script`, on a host of its own.
    pub const fn new(session: &'static str, script: &'static [Step]) -> Self {
        Actor {
            session,
            host: None,
            script,
            patient: false,
            time_namespace: None,
            start: Start::AtOnce,
            old_listings: 0,
            repo_rule_off: None,
            of_its_host: false,
        }
    }

    /// The one that is left when all others have ended or died.
    pub const fn lone_survivor() -> Self {
        let survivor = Actor::new("survivor", &[Step::AcquireInTheEnd]);
        Actor { start: Start::Last, ..survivor }
    }

    /// One that comes when the power is back.
    pub const fn after_the_power_cut(session: &'static str) -> Self {
        let late = Actor::new(session, &[Step::AcquireInTheEnd]);
        Actor { start: Start::AfterPowerCut, ..late }
    }

    /// On this host, sharing its clocks and its boot.
    #[must_use]
    pub const fn on_host(mut self, host: usize) -> Self {
        self.host = Some(host);
        self
    }

    /// In a world where this rule of the seams does not hold.
    #[must_use]
    pub const fn without_rule_of_seams(mut self, off: Option<jvs_repo::mutation::Rule>) -> Self {
        self.repo_rule_off = off;
        self
    }

    /// Watching what looks abandoned before it is taken.
    #[must_use]
    pub const fn watching(mut self) -> Self {
        self.patient = true;
        self
    }

    /// In time namespace `id` of its host, whose boot-time clock is so far ahead.
    #[must_use]
    pub const fn in_time_namespace(mut self, id: u64, boot_offset_ms: u64) -> Self {
        self.time_namespace = Some((id, boot_offset_ms));
        self
    }

    /// At most `n` times, at any READ, its mount shows the register as it first
    /// saw it.
    #[must_use]
    pub const fn seeing_old_listings(mut self, n: u32) -> Self {
        self.old_listings = n;
        self
    }

    /// Its secret is that of its host, as the command has it; else all processes of
    /// a session are one holder wherever they run.
    #[must_use]
    pub const fn of_its_host(mut self) -> Self {
        self.of_its_host = true;
        self
    }

    /// The process, in a world where `off` does not hold.
    pub fn process(self, off: Option<Rule>) -> Process {
        let act = move |ctx: &Ctx| where_off(self.repo_rule_off, || perform(ctx, self));
        let body = move |ctx: &Ctx| where_off(off, || act(ctx));
        let process = Process::new(self.session, body).starts(self.start);
        let process = match self.time_namespace {
            Some((id, ahead_ms)) => process.in_time_namespace(id, ahead_ms),
            None => process,
        };
        match self.host {
            Some(host) => process.on_host(host),
            None => process,
        }
    }
}

/// The session `id` as process `pid` of the host that `clock` belongs to.
pub fn session(id: &str, pid: u32, clock: &dyn Clock) -> Session {
    session_with(id, &secret(id), pid, clock)
}

/// The same session after a reboot of its host: another holder.
pub fn session_after_a_reboot(id: &str, pid: u32, clock: &dyn Clock) -> Session {
    let boot = BootId("another boot".into());
    session_with(id, &secret(id).on_host("machine", &boot), pid, clock)
}

fn session_with(id: &str, secret: &Secret, pid: u32, clock: &dyn Clock) -> Session {
    let purpose = Purpose::Automated;
    let me = Identity { pid, purpose, ..identity(clock.boot_id()) };
    Session::new(id.parse().expect("a plain word"), secret, me)
}

fn perform(ctx: &Ctx, actor: Actor) {
    let Actor { session: id, script, .. } = actor;
    let store = TellingStore::new(ctx, actor.old_listings);
    let seams = Seams { store: &store, clock: ctx.clock(), entropy: ctx.entropy() };
    let pid = u32::try_from(ctx.index()).expect("few processes");
    let session = match actor.of_its_host {
        true => {
            let secret = secret(id).on_host("machine", &ctx.clock().boot_id());
            session_with(id, &secret, pid, ctx.clock())
        }
        false => session(id, pid, ctx.clock()),
    };
    ctx.claim("session", id);
    ctx.claim("nonce", session.nonce().to_string());
    let locks = locks_with_log(seams, session, ctx.index() as u64);
    let locks = if actor.patient { locks.watching(Arc::new(Silently)) } else { locks };
    let mut lease: Option<Lease<'_>> = None;
    for (number, step) in script.iter().enumerate() {
        store.told.tell_belief();
        let go_on = match step {
            Step::Acquire => acquire(ctx, &locks, &store, LEASE_MS, &mut lease),
            Step::AcquireBriefly => acquire(ctx, &locks, &store, 1_000, &mut lease),
            Step::AcquireToKeep => {
                let want = Want { renewed_every_ms: Some(RENEWAL_MS), ..Want::lease(LEASE_MS) };
                take(ctx, &locks, &store, want, &mut lease)
            }
            Step::Sleep => {
                ctx.clock().sleep_ms(RENEWAL_MS);
                true
            }
            Step::FreezeOwn => match lease.take() {
                Some(lease) => freeze_own(ctx, lease),
                None => false,
            },
            Step::Unfreeze => unfreeze(ctx, &locks),
            Step::Lift => lift(&locks),
            Step::Reclaim => reclaim(ctx, &locks, &store, &mut lease),
            Step::Wait => wait(ctx, &locks, &store, &mut lease),
            Step::HandOver => match lease.take() {
                Some(lease) => hand_over(ctx, &locks, lease),
                None => false,
            },
            Step::AcquireInTheEnd => loop {
                ctx.clock().sleep_ms(LEASE_AND_MARGIN_MS + 60_000);
                if acquire(ctx, &locks, &store, LEASE_MS, &mut lease) {
                    break true;
                }
            },
            Step::Resume => match locks.resume(&WorktreeName::main(), None) {
                Ok(resumed) => {
                    store.told.believe(&resumed);
                    lease = Some(resumed);
                    true
                }
                Err(_) => false,
            },
            Step::Renew => match &mut lease {
                Some(lease) => lease.renew().is_ok(),
                None => false,
            },
            Step::Commit => match &mut lease {
                Some(lease) => commit(ctx, lease, number),
                None => false,
            },
            Step::Release => match lease.take() {
                Some(lease) => release(ctx, lease),
                None => false,
            },
            Step::Freeze => freeze(ctx, &locks),
        };
        store.told.tell_belief();
        if !go_on {
            break;
        }
    }
}

/// Was the caller told that nothing happened and nothing will?
fn is_certain(error: &impl Coded) -> bool {
    !matches!(error.code(), Code::OutcomeUnknown | Code::UnsafeFilesystem | Code::FenceCorrupt)
}

/// Was it refused, and is that not because of the head?
fn is_refused(error: &CommitError) -> bool {
    let CommitError::Lease(error) = error else { return false };
    matches!(error, LeaseError::Fenced { .. } | LeaseError::Register(RegisterError::Io { .. }))
}

fn acquire<'r>(
    ctx: &Ctx,
    locks: &Locks<'r>,
    store: &'r TellingStore<'_>,
    lease_ms: u64,
    lease: &mut Option<Lease<'r>>,
) -> bool {
    take(ctx, locks, store, Want::lease(lease_ms), lease)
}

fn take<'r>(
    ctx: &Ctx,
    locks: &Locks<'r>,
    store: &'r TellingStore<'_>,
    want: Want<'_>,
    lease: &mut Option<Lease<'r>>,
) -> bool {
    ctx.retract("refused");
    match locks.acquire(&WorktreeName::main(), want) {
        Ok(got) => granted(ctx, store, got, lease),
        Err(error) => {
            ctx.say(format!("acquire: {}: {error}", error.code()));
            if is_certain(&error) {
                ctx.claim("refused", "acquire");
            }
            false
        }
    }
}

fn granted<'r>(
    ctx: &Ctx,
    store: &'r TellingStore<'_>,
    got: Lease<'r>,
    lease: &mut Option<Lease<'r>>,
) -> bool {
    let refreshed = u64::from(got.how() == LeaseOrigin::Refreshed);
    ctx.append("granted", Value::from([got.token().0, refreshed]));
    if got.how() == LeaseOrigin::Stolen {
        ctx.append("stolen", got.token().0);
    }
    store.told.believe(&got);
    *lease = Some(got);
    true
}

/// In these worlds nobody can tell of a process that it is gone.
fn all_are_there(_pid: u32) -> Option<ProcessStat> {
    Some(ProcessStat { start_ticks: 1, session_leader: 1, zombie: false })
}

/// Waits as the command does. In vain is no promise: it may be handed the lock even
/// while it leaves.
fn wait<'r>(
    ctx: &Ctx,
    locks: &Locks<'r>,
    store: &'r TellingStore<'_>,
    lease: &mut Option<Lease<'r>>,
) -> bool {
    let mut sleeper = SleepOnly(ctx.clock());
    let want = Want::lease(LEASE_MS);
    let main = WorktreeName::main();
    match locks.wait(&main, want, IN_LINE_MS, &all_are_there, &mut sleeper, &NoTies) {
        Ok(Some(got)) => granted(ctx, store, got, lease),
        Ok(None) => false,
        Err(error) => {
            ctx.say(format!("wait: {}: {error}", error.code()));
            false
        }
    }
}

/// Hands over as the command does.
fn hand_over(ctx: &Ctx, locks: &Locks<'_>, lease: Lease<'_>) -> bool {
    let (main, heir) = (WorktreeName::main(), HEIR.parse().expect("a plain word"));
    let Ok(Some(waiter)) = locks.waiter(&main, &heir, &all_are_there) else { return false };
    let next = lease.token().next();
    match lease.transfer(&waiter, LEASE_MS, "a test") {
        Ok(state) => {
            ctx.claim("handed_over", state.token.0);
            locks.wake(&main, &waiter);
            true
        }
        Err(failed) => {
            ctx.say(format!("transfer: {}: {failed}", failed.code()));
            if is_certain(&failed.error) {
                ctx.claim("not_handed_over", next.0);
            }
            false
        }
    }
}

/// Makes a committed head visible; whoever READ it as head may do so.
fn make_ready(ctx: &Ctx, head: SnapshotId) -> io::Result<()> {
    match ctx.store().create_new(&layout::snapshot(head)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn is_ready(ctx: &Ctx, head: SnapshotId) -> io::Result<bool> {
    match ctx.store().stat(&layout::snapshot(head)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// As publishing does it: the head's READY is completed before anything else,
/// so that a commit whose answer was lost can be told by its own READY.
fn commit(ctx: &Ctx, lease: &mut Lease<'_>, number: usize) -> bool {
    let id = (ctx.index() as u64 + 1) * 100 + number as u64;
    let head = SnapshotId { created_ms: id, random: 0 };
    let token = lease.token().0;
    let outcome = lease.fence().map_err(CommitError::from).and_then(|mut fence| {
        let parent = fence.read()?.head;
        if let Some(parent) = parent
            && make_ready(ctx, parent).is_err()
        {
            // Nothing can be built on it.
            let (worktree, current) = (WorktreeName::main(), Some(parent));
            return Err(CommitError::HeadMoved { worktree, current });
        }
        let parent_id = parent.map_or(0, |parent| parent.created_ms);
        ctx.append("commits", Value::from([id, token, parent_id]));
        fence.commit(parent, head, &|| is_ready(ctx, head))
    });
    match outcome {
        Ok(_) => {
            ctx.append("committed", id);
            make_ready(ctx, head).is_ok()
        }
        Err(error) => {
            ctx.say(format!("commit: {}: {error}", error.code()));
            if is_certain(&error) {
                ctx.append("not_committed", id);
            }
            if is_refused(&error) {
                ctx.claim("fenced", token);
            }
            false
        }
    }
}

fn release(ctx: &Ctx, lease: Lease<'_>) -> bool {
    let token = lease.token().0;
    match lease.release() {
        Ok(_) => {
            ctx.claim("released", token);
            true
        }
        Err(failed) => {
            ctx.say(format!("release: {}: {failed}", failed.code()));
            if is_certain(&failed.error) && failed.code() == Code::Io {
                ctx.claim("not_released", token);
            }
            false
        }
    }
}

fn freeze(ctx: &Ctx, locks: &Locks<'_>) -> bool {
    let began = ctx.clock().now().boot;
    let frozen = locks.freeze(&WorktreeName::main(), LEASE_MS, "maintenance", false);
    told_of_freeze(ctx, began, frozen)
}

fn freeze_own(ctx: &Ctx, lease: Lease<'_>) -> bool {
    let began = ctx.clock().now().boot;
    let frozen = lease.freeze(LEASE_MS, "maintenance");
    told_of_freeze(ctx, began, frozen.map_err(|failed| failed.error))
}

fn told_of_freeze(ctx: &Ctx, began: BootMs, frozen: Result<State, FreezeError>) -> bool {
    match frozen {
        Ok(state) => {
            ctx.claim("frozen", state.token.0);
            ctx.claim("frozen_until", began.plus(LEASE_MS).0);
            true
        }
        Err(error) => {
            ctx.say(format!("freeze: {}: {error}", error.code()));
            if is_certain(&error) {
                ctx.claim("not_frozen", 1u64);
            }
            false
        }
    }
}

fn unfreeze(ctx: &Ctx, locks: &Locks<'_>) -> bool {
    ctx.claim("unfreezes", 1u64);
    let lifted = locks.unfreeze(&WorktreeName::main(), "done");
    ctx.retract("unfreezes");
    lifted.is_ok()
}

/// As a repair does: it looks, and later lifts what it saw to be over.
fn lift(locks: &Locks<'_>) -> bool {
    let Ok(view) = locks.inspect(&WorktreeName::main()) else { return false };
    let over = view.judgement.as_ref().is_some_and(|judged| judged.standing == Standing::Stealable);
    if !over || !matches!(view.state.hold, Hold::Frozen(_)) {
        return true;
    }
    locks.lift(&WorktreeName::main(), view.state.term(), "it was over").is_ok()
}

fn reclaim<'r>(
    ctx: &Ctx,
    locks: &Locks<'r>,
    store: &'r TellingStore<'_>,
    lease: &mut Option<Lease<'r>>,
) -> bool {
    let rules = ReclaimRules { same_user: true, ..ReclaimRules::default() };
    let nobody = |_: u32| None;
    let want = Want { reason: Some("a test"), ..Want::lease(LEASE_MS) };
    ctx.claim("overrules", 1u64);
    let taken = locks.reclaim(&WorktreeName::main(), want, &rules, false, &nobody);
    ctx.retract("overrules");
    match taken {
        Ok(got) => {
            if got.how() == LeaseOrigin::Reclaimed {
                ctx.append("overruled", got.token().0);
            }
            granted(ctx, store, got, lease)
        }
        Err(error) => {
            ctx.say(format!("reclaim: {}: {error}", error.code()));
            false
        }
    }
}

/// The locks as the process `pid` of session `id` sees them, in a world of one test.
pub fn alone<'s>(solo: &'s Solo, id: &str, pid: u32) -> Locks<'s> {
    locks(seams_of(solo), session(id, pid, solo.clock()))
}
