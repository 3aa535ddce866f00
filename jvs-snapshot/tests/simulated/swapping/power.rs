//! The power goes while a swap is under way and somebody else is at work, too.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use jvs_kit::sim::{Ctx, PowerCuts, Process, View};
use jvs_lock::Want;
use jvs_repo::layout;
use jvs_world::repository::main;
use jvs_world::session::locks_of;
use jvs_world::sim::actors::{collect, keep, publish};
use jvs_world::sim::{LEASE_MS, LONG_MS, World, seams};

use super::{clean_up, facts, payload, restorer, text, texts, world};

/// What was told, and which files the worktree had in the end.
type Ends = Arc<Mutex<BTreeSet<(Option<String>, String)>>>;

/// Takes the lock over, so that the swap is nobody's work any more, and collects what
/// it left, though the one who swaps may not know yet.
fn successor() -> Process {
    Process::new("successor", |ctx: &Ctx| {
        let seams = seams(ctx);
        let locks = locks_of(seams, "successor");
        let Ok(lease) = locks.acquire(&main(), Want::lease(LEASE_MS)) else { return };
        if lease.release().is_ok() {
            let _ = collect(ctx, keep(100, 0));
        }
    })
}

fn publisher() -> Process {
    Process::new("publisher", |ctx: &Ctx| {
        let _ = publish(ctx, "publisher");
    })
}

/// The worktree has all old or all new files, what was told lasts, and what no
/// snapshot has is somewhere, after the next collection as before it.
fn nothing_is_lost(view: &View<'_>, ends: &Ends) -> Result<(), String> {
    let left = World::on(view.live().clone());
    let store = left.solo.store();
    let now = text(store, &payload()).ok_or("the worktree has no files")?;
    let told = facts(view, "told").pop();
    match (told.as_deref(), now.as_str()) {
        (Some("done"), "new") | (Some("nothing"), "unsaved") => {}
        (Some("done" | "nothing"), _) => {
            return Err(format!("told {told:?}, and the files are {now}"));
        }
        (_, "new" | "unsaved") => {}
        _ => return Err(format!("the files are {now}")),
    }
    let is_somewhere = |when: &str| {
        let everywhere = [payload(), layout::staging(), layout::quarantine()];
        let found: Vec<String> = everywhere.iter().flat_map(|dir| texts(store, dir)).collect();
        match found.iter().any(|text| text == "unsaved") {
            true => Ok(()),
            false => Err(format!("{when} 'unsaved' is nowhere: {found:?}")),
        }
    };
    is_somewhere("before the next collection")?;
    // Its clock begins anew, and time may have jumped before.
    left.solo.pass_ms(LONG_MS);
    clean_up(&left);
    is_somewhere("after the next collection")?;
    if text(store, &payload()).as_ref() != Some(&now) {
        return Err(format!("the next collection touched the files, which were {now}"));
    }
    ends.lock().expect("no check panics").insert((told, now));
    left.all_visible_are_whole()
}

/// Explores a swap beside `other`, and says which ends it met.
fn a_swap_beside(other: Process) -> BTreeSet<(Option<String>, String)> {
    let ends = Ends::default();
    let (world, two) = world();
    let met = Arc::clone(&ends);
    let cuts = match std::env::var_os("JVS_LONG") {
        Some(_) => PowerCuts::EveryPrefix,
        None => PowerCuts::Extremes,
    };
    let report = world
        .process(restorer(two))
        .process(other)
        .preemptions(1)
        .power_cuts(1, cuts)
        .at_end(move |view| nothing_is_lost(view, &met))
        .run();
    eprintln!("a swap, somebody else, a power cut: {report}");
    report.holds();
    let met = ends.lock().expect("no check panics");
    met.clone()
}

/// All that can come of a swap was met: told or not, files old or new.
#[track_caller]
fn assert_all_were_met(ends: &BTreeSet<(Option<String>, String)>) {
    for (told, now) in [(None, "new"), (None, "unsaved"), (Some("done"), "new")] {
        assert!(ends.contains(&(told.map(str::to_owned), now.to_owned())), "{ends:?}");
    }
}

#[test]
fn a_swap_a_successor_that_collects_and_a_power_cut_anywhere() {
    assert_all_were_met(&a_swap_beside(successor()));
}

#[test]
fn a_swap_a_publisher_and_a_power_cut_anywhere() {
    assert_all_were_met(&a_swap_beside(publisher()));
}
