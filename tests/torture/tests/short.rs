//! A torture that is short enough for every change. The long ones are in the README.

use std::time::Duration;

use jvs_torture::torture::{Engine, Kind, Wish, torture};

fn survives(kind: Kind, hosts: usize, seconds: u64) {
    let wish = Wish {
        kind,
        time: Duration::from_secs(seconds),
        seed: 1,
        hosts,
        workers: 2 * hosts,
        program: env!("CARGO_BIN_EXE_torture").into(),
        keep: None,
    };
    let Some(verdict) = torture(&wish) else { return };
    assert!(verdict.violations.is_empty(), "{}", verdict.report);
    // A machine so slow that nothing happened has shown nothing.
    assert!(verdict.operations >= 40, "too few to say anything: {}", verdict.report);
    assert!(verdict.faults >= 5 && verdict.compared >= 5, "too few: {}", verdict.report);
}

#[test]
fn a_local_repository_survives_a_short_torture() {
    survives(Kind::Local, 3, 12);
}

#[test]
fn a_volume_with_two_mounts_survives_a_short_torture() {
    survives(Kind::Served(Engine::Redis), 2, 12);
}
