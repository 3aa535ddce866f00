//! Sessions whose audit logs are full after a few events, and whether all logs add up.

use jvs_kit::sim::{Explorer, View};
use jvs_lock::history::{HistoryReport, Problem, check, witness};
use jvs_lock::{Locks, Seams, Want};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::config::LockPolicy;
use jvs_repo::store::Store;
use jvs_snapshot::tags;
use jvs_world::repository::main;
use jvs_world::session::{identity, session};
use jvs_world::sim::{LEASE_MS, World};

/// From this size on a log is full: after one operation.
const FULL: u64 = 900;

/// The locks as the session `id` sees them.
pub fn locks<'s>(seams: Seams<'s>, id: &str) -> Locks<'s> {
    let session = session(id, identity(seams.clock.boot_id()));
    Locks::new(seams, session, LockPolicy::default(), log(seams.store, id))
}

/// The log that they write to.
pub fn log<'s>(store: &'s dyn Store, id: &str) -> Log<'s> {
    Log::new(store, &Alone, WriterId::derive(id.as_bytes(), 0)).full_at(FULL)
}

/// Takes the lock and gives it back, so many times.
pub fn cycles(locks: &Locks<'_>, times: usize) -> Option<()> {
    for _ in 0..times {
        locks.acquire(&main(), Want::lease(LEASE_MS)).ok()?.release().ok()?;
    }
    Some(())
}

/// A repository in which every call may be interrupted, those on logs as well.
pub fn explorer() -> Explorer<'static> {
    Explorer::new().early_wakes(0).time_jumps(0, []).max_calls(4_000)
}

/// What the logs and the register tell together.
pub fn report(seams: Seams<'_>) -> HistoryReport {
    let (registers, logs) =
        witness(seams.store, seams.clock, [main()], |_| false).expect("the register is whole");
    check(&registers, &logs.expect("the logs are listed"))
}

/// Nothing is wrong in them that a crash alone does not explain.
pub fn add_up(seams: Seams<'_>) -> Result<(), String> {
    match report(seams).first_bad_link() {
        Some(bad) => Err(format!("the logs do not add up: {bad}")),
        None => Ok(()),
    }
}

/// The same, of what is there in the end.
pub fn all_add_up(view: &View<'_>) -> Result<(), String> {
    add_up(World::on(view.live().clone()).seams())
}

/// No line is missing that was written. What a power cut took of the register is another
/// matter.
pub fn all_is_there(view: &View<'_>) -> Result<(), String> {
    let world = World::on(view.live().clone());
    let is_lost = |problem: &&Problem| match problem {
        Problem::Line { flaw, .. } => !flaw.is_crash(),
        Problem::Spliced { .. } => true,
        other => other.is_of_absence(),
    };
    match report(world.seams()).problems.iter().find(is_lost) {
        Some(lost) => Err(format!("the logs do not add up: {lost}")),
        None => Ok(()),
    }
}

/// The names of the tags that the logs tell to be there.
pub fn tags_told(seams: Seams<'_>) -> Vec<String> {
    let logs = jvs_lock::history::read_logs(seams.store).expect("the logs are listed");
    let told = tags::remembered(logs.events.iter().map(|logged| &logged.event));
    told.iter().map(|tag| tag.tag.to_string()).collect()
}
