//! What is checked in, replayed, and some thousands of inputs made of it: on the stable
//! compiler, with every run of the tests. The inputs are the same every time.
//!
//! `JVS_FUZZ_RUNS` makes it more of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use jvs_fuzz::{Mutator, TARGETS, target};

/// How many inputs are made for each target.
const RUNS: u64 = 10_000;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut paths: Vec<_> = fs_err::read_dir(dir)
        .expect("a corpus")
        .map(|entry| entry.expect("an input").path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs_err::read(path).expect("an input")).collect()
}

fn check(name: &str, input: &[u8]) {
    let held = catch_unwind(AssertUnwindSafe(|| target(name).check(input)));
    assert!(held.is_ok(), "{name} does not hold for b\"{}\"", input.escape_ascii());
}

fn bounded(name: &str) {
    let corpus = corpus(name);
    check(name, b"");
    for input in &corpus {
        check(name, input);
    }
    let runs = std::env::var("JVS_FUZZ_RUNS").ok().and_then(|runs| runs.parse().ok());
    // The seed is the name's, so that no two targets draw alike.
    let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut mutator = Mutator::new(seed, corpus);
    for _ in 0..runs.unwrap_or(RUNS) {
        check(name, &mutator.draw());
    }
}

macro_rules! bounded {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            bounded(stringify!($name));
        })*

        #[test]
        fn every_target_is_run() {
            let run = [$(stringify!($name)),*];
            assert!(TARGETS.iter().map(|target| target.name).eq(run), "the same in the same order");
        }
    };
}

bounded! {
    register_name
    ticket
    stake
    hold_name
    staging_name
    file_name
    record
    descriptor
    ready_mark
    tag
    worktree_record
    format
    keeper_file
    probe_verdict
    takeover
    restore_journal
    legacy_lock
    manifest
    ledger
    config
    ignore_rules
    duration
    time
    audit_line
    mountinfo
    proc_stat
    juicefs_config
    juicefs_stats
    juicefs_answer
    keeper_wire
    sighting
    trust_list
    environment
    mcp_frame
    hook_payload
    agent_settings
}
