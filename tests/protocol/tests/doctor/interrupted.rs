//! A repair that is interrupted at any call, or lied to by any, leaves nothing
//! that the next one does not mend, and costs no snapshot.
#![allow(clippy::print_stderr, reason = "how much was tried is worth seeing")]

use jvs_kit::sim::{Errno, Way};
use jvs_world::sim::LONG_MS;
use jvs_world::sim::ward::{Ward, told};

use crate::ruins::{RUINS, Ruin, ruined};

/// Is it this one's turn? With `JVS_LONG` it always is; else every call that
/// changes something has one of the things that can happen to it, and of those
/// that look some do.
fn turn(n: usize, of: usize) -> bool {
    std::env::var_os("JVS_LONG").is_some() || n.is_multiple_of(of)
}

fn changes(call: &str) -> bool {
    let name = call.split('(').next().unwrap_or_default();
    [
        "create_new",
        "rename",
        "rename_new",
        "exchange",
        "unlink",
        "make_dir",
        "remove_dir",
        "write_at",
        "sync",
        "sync_dir",
    ]
    .contains(&name)
}

/// The next repair makes it healthy, and everything is there.
#[track_caller]
fn assert_mended(ward: &Ward<'_>, context: &str) {
    ward.solo.pass_ms(LONG_MS);
    let after = ward.repair("next");
    assert!(after.is_healthy(), "{context}: {:#?}", told(&after));
    ward.check(&ward.ids).unwrap_or_else(|why| panic!("{context}: {why}"));
    let again = ward.repair("last");
    assert!(again.is_healthy() && again.applied.is_empty(), "{context}: {:#?}", told(&again));
}

/// The calls of an undisturbed repair.
fn calls(ruin: Ruin) -> Vec<String> {
    let ward = ruined(ruin);
    ward.solo.forget_calls();
    assert!(!ward.repair("doctor").applied.is_empty(), "there is something to repair");
    let calls = ward.solo.calls();
    assert_mended(&ward, "undisturbed");
    calls
}

/// Repairs a ruin with one call that goes `way`.
fn disturbed(ruin: Ruin, call: usize, way: Way) -> Ward<'static> {
    let ward = ruined(ruin);
    ward.settle();
    ward.solo.inject(call, way);
    let _ = ward.solo.run(|| ward.repair("doctor"));
    ward.solo.clear_injected();
    ward
}

#[test]
fn a_death_or_a_power_cut_at_any_call_of_a_repair_is_mended_by_the_next() {
    let mut runs = 0;
    for (name, ruin) in RUINS {
        let calls = calls(*ruin);
        for (n, call) in calls.iter().enumerate().filter(|(_, call)| changes(call)) {
            let context = format!("{name}: dies after call {n}, {call}");
            let ward = disturbed(*ruin, n, Way::ThenDies);
            let images = ward.solo.crash_images();
            let left =
                [ward.solo.image(), ward.solo.crash_image(0), ward.solo.crash_image(images / 2)];
            for (kind, image) in left.into_iter().enumerate().filter(|(kind, _)| turn(n + kind, 3))
            {
                let context = format!("{context}, image {kind}");
                assert_mended(&ward.on(image), &context);
                runs += 1;
            }
        }
    }
    eprintln!("{runs} interrupted repairs");
}

#[test]
fn a_call_of_a_repair_that_fails_or_lies_is_mended_by_the_next() {
    let mut runs = 0;
    for (name, ruin) in RUINS {
        let calls = calls(*ruin);
        for (n, call) in calls.iter().enumerate() {
            let mut ways = Vec::new();
            if if changes(call) { turn(n, 2) } else { turn(n, 25) } {
                ways.push(Way::Fails(Errno::IO));
            }
            if changes(call) && turn(n + 1, 2) {
                ways.push(Way::AppliedBut(Errno::IO));
            }
            if call.starts_with("rename") {
                ways.push(Way::Late);
            }
            for way in ways {
                let context = format!("{name}: call {n} goes {way:?}: {call}");
                let ward = disturbed(*ruin, n, way);
                assert_mended(&ward, &context);
                runs += 1;
                if way == Way::Late {
                    // After the repair, or in the middle of all that follows.
                    ward.solo.land_late_renames();
                    assert_mended(&ward, &format!("{context}, landed after a repair"));
                    let ward = disturbed(*ruin, n, way);
                    ward.solo.land_late_renames();
                    assert_mended(&ward, &format!("{context}, landed before the next"));
                }
            }
        }
    }
    eprintln!("{runs} repairs that were lied to");
}
