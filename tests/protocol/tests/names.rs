//! Names that are made by calls whose answers are lost: whoever is told that
//! something was made finds it, whoever is told that it was not finds nothing. Each
//! rule of it, switched off, breaks a world.

use jvs_kit::sim::{Ctx, Explorer, Process, View};
use jvs_lock::Want;
use jvs_lock::queue::Queue;
use jvs_protocol_tests::actor::session;
use jvs_protocol_tests::necessity::{needed, process};
use jvs_repo::audit::room;
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::mutation::Rule;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::{RepoPath, Store};
use jvs_snapshot::Catalog;
use jvs_world::repository::main;
use jvs_world::session::locks_of;
use jvs_world::sim::actors::{collect, explorer, keep, publish, world};
use jvs_world::sim::{LEASE_MS, LONG_MS, furnish, seams, with_history};

fn at(name: &str) -> RepoPath {
    RepoPath::root().child(name).expect("plain")
}

/// Writes a file that must not be there yet, as records, tags and tombstones are
/// written, and says what it was told.
fn writer(name: &'static str, off: Option<Rule>) -> Process {
    process(name, off, move |ctx| {
        let tmp = at(&format!("tmp-of-{name}"));
        match ctx.store().write_new(&tmp, &at("file"), name.as_bytes()) {
            Ok(()) => ctx.claim("told", "written"),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                ctx.claim("told", "taken");
            }
            Err(_) => ctx.claim("told", "failed"),
        }
        Some(())
    })
}

fn each_found_what_it_was_told(view: &View<'_>) -> Result<(), String> {
    let there = view.live().read(&at("file")).map(<[u8]>::to_vec);
    for process in view.processes() {
        let (name, told) = (process.name(), process.text("told").unwrap_or("nothing"));
        let mine = there.as_deref() == Some(name.as_bytes());
        let wrong = match told {
            "written" => !mine,
            "taken" => mine || there.is_none(),
            "failed" => mine,
            _ => false,
        };
        if wrong {
            return Err(format!("{name} was told {told}, and there is {there:?}"));
        }
        if view.live().exists(&at(&format!("tmp-of-{name}"))) {
            return Err(format!("{name} was told {told}, and left its draft behind"));
        }
    }
    Ok(())
}

fn writers(off: Option<Rule>) -> Explorer<'static> {
    Explorer::new()
        .processes([writer("a", off), writer("b", off)])
        .at_end(each_found_what_it_was_told)
}

#[test]
fn a_file_of_ones_own_whose_making_was_denied_is_ones_own() {
    needed(Rule::OwnNamesAreLookedFor, "left its draft behind", |off| {
        writers(off).ambiguous_makes(1)
    });
}

#[test]
fn a_name_is_taken_only_if_it_is_seen() {
    needed(Rule::TakenNamesAreSeen, "was told", |off| writers(off).ambiguous_renames(1));
}

#[test]
fn a_file_is_written_or_not_whatever_is_denied_or_late() {
    let report = writers(None)
        .ambiguous_makes(1)
        .ambiguous_renames(1)
        .late_renames(1)
        .stale_absences_for_ms(1_000)
        .run();
    report.holds();
}

/// Stands in line, and says whether it was told so.
fn waiter(off: Option<Rule>) -> Process {
    process("w", off, |ctx| {
        let queue = Queue::new(seams(ctx), &WorktreeName::main());
        match queue.join(&session("w", 1, ctx.clock()), 30_000) {
            Ok(place) => {
                // It goes on standing there.
                std::mem::forget(place);
                ctx.claim("told", "stands");
            }
            Err(_) => ctx.claim("told", "does not stand"),
        }
        Some(())
    })
}

#[test]
fn nobody_who_was_told_otherwise_stands_in_line() {
    fn no_ghost(view: &View<'_>) -> Result<(), String> {
        let tickets = view.live().list(&layout::queue(&WorktreeName::main()));
        match (view.process(0).text("told"), tickets.len()) {
            (Some("stands"), 1) | (Some("does not stand"), 0) => Ok(()),
            (told, tickets) => Err(format!("told {told:?}, and there are {tickets} tickets")),
        }
    }
    let world = |off| Explorer::new().setup(furnish).process(waiter(off)).at_end(no_ghost);
    world(None).ambiguous_makes(1).ambiguous_removals(1).run().holds();
    needed(Rule::OwnNamesAreLookedFor, "does not stand", |off| {
        // Whoever fails takes its ticket back; without a look it does not even know.
        world(off).ambiguous_makes(1).at_end(|view| match view.process(0).text("told") {
            Some("does not stand") => Err("told that it does not stand, and it was made".into()),
            _ => Ok(()),
        })
    });
}

#[test]
fn a_collection_whose_tombstone_was_denied_breaks_no_history() {
    needed(Rule::OwnNamesAreLookedFor, "missing", |off| {
        world()
            .setup(with_history)
            .process(process("gc", off, |ctx| collect(ctx, keep(1, 0))))
            .time_jumps(0, [])
            .ambiguous_makes(1)
    });
}

#[test]
fn nobody_discards_what_was_committed_because_ready_was_not_there_before() {
    /// Looks whether anything new is visible, through the mount of `a`.
    fn look(ctx: &Ctx) -> Option<()> {
        let catalog = Catalog::new(ctx.store());
        let newest = catalog.list().ok()?.snapshots.into_iter().max()?;
        let _ = catalog.is_ready(newest);
        Some(())
    }
    needed(Rule::AbsenceIsListed, "missing", |off| {
        world()
            .process(process("a", off, |ctx| publish(ctx, "a")).on_host(0))
            .process(process("b", off, |ctx| publish(ctx, "b")).on_host(1))
            .process(process("reader", off, look).on_host(0))
            .preemptions(2)
            .ambiguous_renames(1)
            .stale_absences_for_ms(10 * LONG_MS)
    });
}

#[test]
fn a_full_volume_can_be_locked_and_unlocked() {
    fn takes_and_gives_back(ctx: &Ctx) -> Option<()> {
        let locks = locks_of(seams(ctx), "a");
        let lease = locks.acquire(&main(), Want::lease(LEASE_MS)).ok()?;
        ctx.claim("held", 1);
        lease.release().ok()?;
        ctx.claim("released", 1);
        Some(())
    }
    needed(Rule::RoomIsKept, "it was not held", |off| {
        explorer()
            .setup(|solo| room::keep(solo.store(), OpNonce([5; 8])).expect("there is room"))
            .process(process("a", off, takes_and_gives_back))
            .full_volume()
            .at_end(|view| match ["held", "released"].map(|key| view.process(0).number(key)) {
                [Some(1), Some(1)] => Ok(()),
                [Some(1), _] => Err("it was not released".into()),
                _ => Err("it was not held".into()),
            })
    });
}

/// Every rule that can be switched off is switched off by a test above, or by those of
/// clocks and of who may overrule.
#[test]
fn no_rule_is_left_out() {
    let tests = [
        include_str!("names.rs"),
        include_str!("clocks.rs"),
        include_str!("policy.rs"),
        include_str!("closing.rs"),
        include_str!("../../../jvs-repo/src/audit/tests.rs"),
    ]
    .concat();
    for rule in Rule::ALL {
        let ways = [format!("needed(Rule::{rule:?}"), format!("without(Rule::{rule:?}")];
        assert!(ways.iter().any(|way| tests.contains(way)), "{rule:?} is never switched off");
    }
}
