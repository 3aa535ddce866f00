//! Doctors beside each other and beside sessions that take, lose and use the
//! lock: every order of events with so many preemptions of the real code.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_doctor::mutation::Rule;
use jvs_doctor::{Check, Finding};
use jvs_kit::sim::{Ctx, Explorer, Process, Solo, Value, View};
use jvs_lock::Want;
use jvs_lock::record::{self, FoundRecord, Meaning};
use jvs_protocol_tests::necessity::{process, where_off};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::store::{RepoPath, Store as _};
use jvs_snapshot::Snapshots;
use jvs_world::repository::main;
use jvs_world::sim::actors::{collect, keep};
use jvs_world::sim::ward::{Ward, doctor, locks_of, told};
use jvs_world::sim::{LEASE_MS, LONG_MS, SimTrees, seams, snapshot, stage};

use crate::ruins::RUINS;

/// One who repairs, in a world where `off` does not hold.
pub(crate) fn doctor_named(name: &'static str, off: Option<Rule>) -> Process {
    Process::new(name, move |ctx| {
        where_off(off, || drop(doctor(seams(ctx), ctx.store(), name)));
    })
}

/// What a session does with the lock in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Not,
    Yes,
    WithItsRecord,
}

/// Takes the lock, or steals it if it may, and publishes so many snapshots;
/// keeps the lock if it is to.
fn work(ctx: &Ctx, id: &str, snapshots: usize, keeps: Keeps) -> Option<()> {
    let seams = seams(ctx);
    let trees = SimTrees(ctx.store());
    let at = Snapshots::new(seams, &trees);
    let locks = locks_of(seams, id);
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).ok()?;
    if keeps == Keeps::WithItsRecord {
        ctx.claim("keeps", lease.token().0);
    }
    if keeps != Keeps::Not {
        ctx.claim("holds", lease.token().0);
        ctx.claim("until", lease.belief().until().map_or(0, |until| until.0));
    }
    for n in 0..snapshots {
        let staged = stage(seams, &at, &mut lease, &format!("{id} {n}")).ok()?;
        let new = staged.id().to_string();
        match staged.publish(lease.fence().ok()?) {
            Ok(_) => ctx.append("published", new),
            Err(error) => {
                match error.hand_back() {
                    (Some(staged), _) => {
                        ctx.append("refused", new);
                        staged.discard().ok()?;
                    }
                    (None, error) => ctx.append("unsure", error.to_string()),
                }
                return None;
            }
        }
    }
    if keeps == Keeps::Not {
        lease.release().ok()?;
    }
    Some(())
}

pub(crate) fn session(id: &'static str, snapshots: usize, keeps: bool) -> Process {
    let keeps = if keeps { Keeps::WithItsRecord } else { Keeps::Not };
    Process::new(id, move |ctx| {
        let _ = work(ctx, id, snapshots, keeps);
    })
}

/// One that relies on its hold. Who gives the same lock back at that moment may
/// take its record along: drift, which its next renewal mends.
fn holder(id: &'static str, snapshots: usize) -> Process {
    Process::new(id, move |ctx| {
        let _ = work(ctx, id, snapshots, Keeps::Yes);
    })
}

/// Nobody decides by what is in a payload or in the log of another, and repairs
/// decide by neither while the register can be read.
fn is_nobodys_business(path: &RepoPath) -> bool {
    let text = path.as_str();
    text.starts_with(layout::audit().as_str())
        || text.ends_with("/payload")
        || text.contains("/payload/")
        || text.ends_with("/manifest")
        || *path == layout::format()
        || *path == layout::config()
        || text.starts_with(layout::tags().as_str())
}

pub(crate) fn world(ruin: &'static str) -> Explorer<'static> {
    Explorer::new()
        .setup(move |solo| broken(solo, ruin))
        .private(is_nobodys_business)
        .early_wakes(0)
        .max_calls(5_000)
        .at_end(the_next_repair_makes_it_whole)
}

/// Whoever was told that it holds, holds for as long as it was told: no repair
/// frees, renews under another token or hands on what a session relies on.
fn who_holds_goes_on_holding(view: &View<'_>) -> Result<(), String> {
    let state = jvs_protocol_tests::invariant::register(view)?;
    for process in view.processes() {
        let (Some(token), Some(until)) = (process.number("holds"), process.number("until")) else {
            continue;
        };
        let over = process.boot_ms() >= until;
        if !over && (state.token.0 != token || state.holder().is_none()) {
            return Err(format!("{} holds token {token}, but: {state}", process.name()));
        }
    }
    Ok(())
}

/// A repository with history, ruined.
fn broken(solo: &Solo, name: &str) {
    let ward = Ward::in_world(solo);
    let (_, ruin) = RUINS.iter().find(|(ruin, _)| *ruin == name).expect("there is such a ruin");
    ruin(&ward);
}

fn told_of(view: &View<'_>, key: &'static str) -> Vec<SnapshotId> {
    let lists = view.processes().filter_map(|process| process.get(key));
    lists
        .flat_map(|value| match value {
            Value::List(items) => items.iter().map(ToString::to_string).collect(),
            other => vec![other.to_string()],
        })
        .map(|text| text.trim_matches('"').parse().expect("an id"))
        .collect()
}

/// Whatever was published, before or meanwhile, is there and stays; whoever holds
/// the lock has its record; and one more repair finds nothing that it cannot mend.
fn the_next_repair_makes_it_whole(view: &View<'_>) -> Result<(), String> {
    let ward = Ward::at(view.live().clone());
    let mut published = ward.ids.clone();
    published.extend(told_of(view, "published"));
    let state = ward.locks("reader").inspect(&main());
    for process in view.processes().filter(|process| !process.crashed()) {
        let (Some(token), Ok(seen)) = (process.get("keeps"), &state) else { continue };
        let found = record::read(ward.store(), &main());
        let is_its = matches!(&found, Ok(FoundRecord::Record(record)) if record.is_of(&seen.state));
        if token.to_string() == seen.state.token.to_string() && !is_its {
            return Err(format!("{} holds the lock and has no record", process.name()));
        }
    }
    let after = ward.repair("last");
    ward.check(&published)?;
    for id in told_of(view, "refused") {
        if jvs_snapshot::Catalog::new(ward.store()).is_ready(id).unwrap_or(true) {
            return Err(format!("{id} was reported as not published"));
        }
    }
    if !after.is_healthy() {
        return Err(format!("it cannot be mended: {:#?}", told(&after)));
    }
    Ok(())
}

#[test]
fn two_doctors_at_any_point_of_each_other() {
    for ruin in [
        "the register is gone",
        "the register has two entries",
        "the register's entry is garbled",
        "the register is from a backup",
        "a dead snapshot was made visible",
        "the metadata is garbled",
        "a record is stale",
        "the head's READY is gone",
    ] {
        let report = world(ruin)
            .process(doctor_named("d", None))
            .process(doctor_named("e", None))
            .preemptions(1)
            .run();
        eprintln!("{ruin}, two doctors: {report}");
        report.holds();
    }
}

#[test]
fn a_doctor_beside_a_session_that_takes_the_lock_and_publishes() {
    for ruin in ["a snapshot was never finished", "a record is stale"] {
        let report = world(ruin)
            .process(doctor_named("d", None))
            .process(session("a", 2, true))
            .preemptions(1)
            .run();
        eprintln!("{ruin}, a doctor and a session: {report}");
        report.holds();
    }
}

/// The doctor of a session that holds the lock, or takes it meanwhile: in a second
/// terminal, or inside what the session runs.
pub(crate) fn holder_and_its_own_doctor(off: Option<Rule>) -> Explorer<'static> {
    world("the head is not visible yet")
        .process(holder("a", 0))
        .process(doctor_named("a", off))
        .always(who_holds_goes_on_holding)
}

#[test]
fn a_doctor_in_the_holders_own_session_leaves_it_holding() {
    for ruin in
        ["the head is not visible yet", "a snapshot was never finished", "a record is stale"]
    {
        let report = world(ruin)
            .process(holder("a", 1))
            .process(doctor_named("a", None))
            .always(who_holds_goes_on_holding)
            .preemptions(2)
            .run();
        eprintln!("{ruin}, a holder and its own doctor: {report}");
        report.holds();
    }
}

/// The lease may end meanwhile, and a thief may come: whatever the doctor of the
/// robbed session does, the thief keeps what it got.
#[test]
fn a_doctor_in_the_holders_own_session_beside_a_thief() {
    let world = world("the head is not visible yet")
        .process(holder("a", 0))
        .process(doctor_named("a", None))
        .process(holder("b", 0))
        .time_jumps(1, [LONG_MS])
        .always(who_holds_goes_on_holding);
    let report = match std::env::var_os("JVS_LONG") {
        Some(_) => world.preemptions(2).run(),
        None => world.preemptions(3).sample(17, 120),
    };
    eprintln!("a holder, its own doctor and a thief: {report}");
    report.holds();
}

/// A tool that takes over by the letter of v6.3, under one name for all, beside a
/// doctor that removes what an earlier one left there.
pub(crate) fn takeover_and_doctor(off: Option<Rule>) -> Explorer<'static> {
    const NEW: &[u8] = br#"{"fencing_token":99}"#;
    world("a takeover was interrupted")
        .process(Process::new("v63", |ctx| {
            let tmp = layout::lock_tmp(&main(), "v63");
            if ctx.store().write_over(&tmp, &layout::takeover(&main()), NEW).is_ok() {
                ctx.claim("wrote", 1_u64);
            }
        }))
        .process(doctor_named("d", off))
        .at_end(|view| {
            let ward = Ward::at(view.live().clone());
            let wrote = view.processes().any(|process| process.number("wrote").is_some());
            match ward.store().read(&layout::takeover(&main()), 1_000) {
                Ok(there) if there == NEW || !wrote => Ok(()),
                other => Err(format!("what the takeover wrote is not there: {other:?}")),
            }
        })
        .preemptions(1)
}

#[test]
fn a_takeover_that_began_meanwhile_is_put_back() {
    let report = takeover_and_doctor(None).run();
    eprintln!("a takeover and a doctor: {report}");
    report.holds();
}

/// Whose lease is over for long enough is fenced by the doctor itself.
#[test]
fn a_doctor_beside_a_session_that_loses_its_lock_to_it() {
    let report = world("temporary files were left")
        .process(session("a", 1, false))
        .process(doctor_named("d", None))
        .time_jumps(1, [LONG_MS])
        .preemptions(1)
        .run();
    eprintln!("a doctor and a session that is late: {report}");
    report.holds();
}

/// A million states: with `JVS_LONG` all of them, else as many ways through them
/// as take a few seconds.
#[test]
fn a_doctor_beside_a_session_that_loses_its_lock_to_another() {
    let world = world("a snapshot was never finished")
        .process(session("a", 1, false))
        .process(session("b", 1, false))
        .process(doctor_named("d", None))
        .time_jumps(1, [LONG_MS]);
    let report = match std::env::var_os("JVS_LONG") {
        Some(_) => world.preemptions(1).run(),
        None => world.preemptions(3).sample(11, 60),
    };
    eprintln!("a doctor, a session and a thief: {report}");
    report.holds();
}

/// A collector that takes the second of three snapshots, and a doctor whose findings of
/// lineages that end too early are false.
pub(crate) fn collector_and_doctor(off: Option<Rule>) -> Explorer<'static> {
    Explorer::new()
        .setup(|solo| {
            let ward = Ward::in_world(solo);
            let mut lease = ward.lease("maker");
            snapshot(solo, &mut lease, "three");
            lease.release().expect("released");
        })
        .private(is_nobodys_business)
        .early_wakes(0)
        .max_calls(5_000)
        .process(process("gc", None::<Rule>, |ctx| collect(ctx, keep(1, 0))))
        .process(Process::new("d", move |ctx| {
            let found = where_off(off, || doctor(seams(ctx), ctx.store(), "d"));
            let broken = |finding: &&Finding| finding.check == Check::LineageBroken;
            if let Some(finding) = found.findings.iter().find(broken) {
                ctx.claim("called broken", finding.message.clone());
            }
        }))
        .at_end(|view| match view.processes().find_map(|process| process.get("called broken")) {
            Some(message) => Err(format!("a whole lineage was called broken: {message}")),
            None => Ok(()),
        })
}

#[test]
fn a_doctor_beside_a_collection_calls_no_lineage_broken() {
    let report = collector_and_doctor(None).preemptions(1).run();
    eprintln!("a collection and a doctor: {report}");
    report.holds();
}
