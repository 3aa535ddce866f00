//! What is read of the keeper of a hold, by one process after another.

use jvs_kit::sim::Solo;
use jvs_lock::hold::whom::{self, Sources};
use jvs_lock::hold::{Ask, Holds, ProcessLookup, StakeKind};
use jvs_lock::liveness::Observer;
use jvs_lock::record::Keeper;
use jvs_lock::{Locks, Seams, State, Want};
use jvs_repo::clock::Clock as _;
use jvs_repo::config::ReclaimRules;
use jvs_repo::id::FencingToken;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::record::keeper::Written;
use jvs_world::any_error::AnyError;

use crate::actor::{LEASE_MS, alone};
use crate::holder::{REPO, prepare};
use crate::stage::repository;

/// The process that holds in these worlds.
const RUN: u32 = 1;
/// The one that keeps its lock.
pub const KEEPER: u32 = 2;
/// One of the holder's that has nothing to do with the lock.
pub const VICTIM: u32 = 3;

fn there(_pid: u32) -> Option<ProcessStat> {
    Some(ProcessStat { start_ticks: 1, session_leader: 1, zombie: false })
}

fn world() -> Solo {
    let solo = Solo::new();
    repository(&solo);
    prepare(&solo, "a");
    solo
}

/// What the session that `locks` are in the hands of agrees on, seen with `lookup`.
fn holds<'s>(
    solo: &'s Solo,
    locks: &Locks<'_>,
    lookup: &'s (dyn Fn(u32) -> Option<ProcessStat> + Sync),
) -> Holds<'s> {
    let seams = Seams { store: solo.store(), clock: solo.clock(), entropy: solo.entropy() };
    let processes = ProcessLookup { lookup, words: &|_| None, time_namespace: Some(1) };
    let session = locks.session();
    Holds::new(
        seams,
        processes,
        session.identity().clone(),
        session.nonce(),
        REPO,
        WorktreeName::main(),
    )
}

/// A keeper has written itself down where only its session may write, and somebody has
/// put another process of the holder into the record: who is signalled?
pub fn whom_a_forged_record_has_signalled() -> Option<Keeper> {
    let (solo, main) = (world(), WorktreeName::main());
    let of = |pid: u32| alone(&solo, "a", pid);
    let mut lease = of(RUN).acquire(&main, Want::lease(LEASE_MS)).expect("a free lock");
    let keeper = |pid: u32| of(pid).session().keeper(solo.clock());
    lease.set_keeper(Some(keeper(VICTIM))).expect("forged");
    let private = Some(Written { keeper: keeper(KEEPER), term: lease.term() });
    let sources = Sources { private, repository: solo.store(), worktree: &main };
    let clock = solo.clock().boot_clock();
    whom::to_signal(
        sources,
        lease.term(),
        Observer { clock: &clock, pid_namespace: Some(1) },
        there,
    )
}

/// A command came in, the process that kept its lock has died, and another session says
/// `lock reclaim`. Does the command still run?
pub fn reclaims_from_one_whose_keeper_has_died(runs: bool) -> Result<FencingToken, AnyError> {
    let (solo, main) = (world(), WorktreeName::main());
    let lookup = |pid: u32| there(pid).filter(|_| pid == RUN && runs);
    let locks = alone(&solo, "a", RUN);
    let holds = holds(&solo, &locks, &lookup);
    let mut take = |want: Want<'_>| locks.acquire(&main, want);
    let ask = Ask::plain(StakeKind::Run);
    let mut entered = locks.enter(&holds, &ask, Want::lease(LEASE_MS), &mut take)?;
    let keeper = alone(&solo, "a", KEEPER).session().keeper(solo.clock());
    entered.lease.set_keeper(Some(keeper)).expect("written");
    let stakes = |state: &State| holds.is_relied_on(state);
    let rival = alone(&solo, "b", 4);
    let want = Want { reason: Some("its keeper died"), ..Want::lease(LEASE_MS) };
    let asking = rival.asking(&stakes);
    let taken = asking.reclaim(&main, want, &ReclaimRules::default(), false, &lookup);
    Ok(taken?.token())
}
