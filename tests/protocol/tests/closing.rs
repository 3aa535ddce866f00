//! A log that is full is closed, and its writer goes on in another: the rules of that, each
//! switched off. Each test prints the states it visited and the way it found.

use jvs_kit::sim::{PowerCuts, Solo};
use jvs_lock::Want;
use jvs_protocol_tests::logs::{add_up, all_is_there, cycles, explorer, locks, report};
use jvs_protocol_tests::necessity::{needed, process, where_off};
use jvs_repo::audit::{self, LogName};
use jvs_repo::mutation::Rule;
use jvs_world::repository::main;
use jvs_world::sim::{LEASE_MS, furnish, seams, seams_of};

#[test]
fn a_death_or_a_power_cut_at_any_call_of_closing_a_log_loses_no_event() {
    needed(Rule::ClosedIsDurable, "do not add up", |off| {
        let writer = process("a", off, |ctx| {
            let a = locks(seams(ctx), "a");
            let mut lease = a.acquire(&main(), Want::lease(LEASE_MS)).ok()?;
            // Nobody waits for what is told of these.
            for _ in 0..3 {
                lease.renew().ok()?;
            }
            lease.release().ok().map(drop)
        });
        let world = explorer().setup(furnish).process(writer).at_end(all_is_there);
        world.crashes(1).power_cuts(1, PowerCuts::EveryPrefix)
    });
}

/// Two processes of a session, each with the log open.
#[test]
fn nothing_is_added_to_a_log_that_another_process_closed() {
    let by_turns = |off: Option<Rule>| {
        let solo = Solo::new();
        furnish(&solo);
        where_off(off, || {
            let both = [locks(seams_of(&solo), "a"), locks(seams_of(&solo), "a")];
            for turn in 0..6 {
                cycles(&both[turn % 2], 1).expect("free");
            }
        });
        add_up(seams_of(&solo))
    };
    assert_eq!(by_turns(None), Ok(()));
    let needed = |rule: Rule| by_turns(Some(rule)).expect_err("something is wrong");
    let wrong = needed(Rule::FullIsOpenedAgain);
    assert!(wrong.contains("ends otherwise") || wrong.contains("do not add up"), "{wrong}");
}

#[test]
fn every_event_of_closed_logs_is_told() {
    let solo = Solo::new();
    furnish(&solo);
    let states = || report(seams_of(&solo)).lives[0].states.len();
    let before = states();
    cycles(&locks(seams_of(&solo), "a"), 5).expect("free");
    let closed = audit::logs(solo.store()).expect("listed").0;
    assert!(closed.iter().filter(|log| log.is_closed()).count() >= 5, "{closed:?}");
    assert_eq!(report(seams_of(&solo)).problems, []);
    assert_eq!(states(), before + 10, "five grants and five releases");
    assert!(closed.iter().all(|log| matches!(log, LogName::Closed(..) | LogName::Open(_))));
}
