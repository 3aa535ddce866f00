//! A volume without room: what is held can be given back, and what the log has no room
//! for, the register tells.

use jvs_kit::sim::{Ctx, Explorer, Process, Solo, View};
use jvs_lock::mutation::Rule;
use jvs_lock::register::Register;
use jvs_lock::{Hold, Locks, Seams, Want, history};
use jvs_protocol_tests::actor::session;
use jvs_protocol_tests::necessity::{needed, process};
use jvs_protocol_tests::stage::repository;
use jvs_repo::audit::{WriterId, room};
use jvs_repo::clock::Clock;
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::Store;
use jvs_world::session::locks_with_log;
use jvs_world::sim::{seams, seams_of};

const LEASE_MS: u64 = 60_000;

fn main() -> WorktreeName {
    WorktreeName::main()
}

/// Session `a`, writing the log of `device`: its processes take turns at one, which is
/// not what these worlds are about.
fn locks_of<'w>(seams: Seams<'w>, device: u64) -> Locks<'w> {
    locks_with_log(seams, session("a", 1, seams.clock), device)
}

/// A repository whose worktree session `a` holds, with room that is kept.
fn held(solo: &Solo) {
    repository(solo);
    room::keep(solo.store(), OpNonce([5; 8])).expect("there is room");
    let lease = locks_of(seams_of(solo), 0).acquire(&main(), Want::lease(LEASE_MS));
    drop(lease.expect("it is free"));
}

/// Renews and gives back what `held` took.
fn gives_back(name: &str, off: Option<Rule>) -> Process {
    let act = |ctx: &Ctx| -> Option<()> {
        let mut lease = locks_of(seams(ctx), ctx.index() as u64).resume(&main(), None).ok()?;
        lease.renew().ok()?;
        ctx.claim("renewed", 1);
        let left = lease.release().ok()?;
        ctx.claim("released", if left.is_untold_release() { "untold" } else { "told" });
        Some(())
    };
    process(name, off, act)
}

/// Has the log open for as long as the world lasts, as a keeper has.
fn keeper() -> Process {
    Process::new("keeper", |ctx| {
        let log = layout::audit_log(WriterId::derive(b"a", 1));
        let Ok(file) = ctx.store().open_writable(&log) else { return };
        ctx.clock().sleep_ms(10 * LEASE_MS);
        drop(file);
    })
}

/// Whoever could give it back was able to, it is free, and the history adds up.
fn given_back(told: &'static [&'static str]) -> impl Fn(&View<'_>) -> Result<(), String> {
    move |view| {
        let released = view.processes().find_map(|process| process.text("released"));
        let Some(released) = released else { return Err("it was not given back".into()) };
        if !told.contains(&released) {
            return Err(format!("the release was {released}"));
        }
        let solo = Solo::on(view.live().clone());
        let (store, clock) = (solo.store(), solo.clock());
        let state = Register::new(store, clock, main()).read().map_err(|e| e.to_string())?;
        if state.hold != Hold::Free {
            return Err(format!("it is not free: {state}"));
        }
        let (seen, logs) =
            history::witness(store, clock, [main()], |_| false).map_err(|e| e.to_string())?;
        let report = history::check(&seen, &logs.map_err(|e| e.to_string())?);
        match report.first_bad_link() {
            None => Ok(()),
            Some(problem) => Err(format!("the history does not add up: {problem}")),
        }
    }
}

fn world() -> Explorer<'static> {
    Explorer::new().setup(held)
}

#[test]
fn a_release_is_told_beforehand_once_the_kept_room_is_given_up() {
    needed(Rule::FullIsAskedAgain, "the release was untold", |off| {
        world().process(gives_back("a", off)).full_volume().at_end(given_back(&["told"]))
    });
}

#[test]
fn a_volume_that_is_more_than_full_is_unlocked_and_the_register_says_how() {
    needed(Rule::ReleasedWhenFull, "it was not given back", |off| {
        world().process(gives_back("a", off)).overfull_volume().at_end(given_back(&["untold"]))
    });
}

#[test]
fn nobody_who_has_the_log_open_keeps_a_full_volume_locked() {
    needed(Rule::ReleasedWhenFull, "it was not given back", |off| {
        world()
            .process(keeper().on_host(0))
            .process(gives_back("a", off).on_host(0))
            .full_volume()
            .preemptions(2)
            .at_end(given_back(&["told", "untold"]))
    });
}
