//! One target for each parser of bytes that somebody else may have written: files of the
//! repository, names in it, what other processes, the kernel and a mount say.
//!
//! **Responsibility.** What must hold for any input. More than that nothing panics: what
//! is read is written again as it was, limits are kept, orders stay orders, and no input
//! takes more memory than a multiple of its length.
//!
//! **Must not know.** Where inputs come from. `cargo fuzz` finds them by what they reach
//! (`scripts/fuzz`), and a test on the stable compiler replays and mutates those that are
//! checked in (`tests/bounded.rs`).
//!
//! # Limitations
//! Time is bounded by libFuzzer's `-timeout` and by the test's own limit, not measured.

mod agents;
mod command;
mod ledger;
mod log;
mod manifest;
mod mcp;
mod mutate;
mod names;
mod records;
mod rules;
mod settings;
mod system;

use std::sync::{Mutex, PoisonError};

use peak_alloc::PeakAlloc;

pub use crate::mutate::Mutator;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// A parser, and what must hold for it.
pub struct Target {
    /// The name of its program and of its corpus.
    pub name: &'static str,
    run: fn(&[u8]),
    /// What it may take whatever the input is, in bytes.
    fixed: usize,
}

/// What every parser may take.
const FIXED: usize = 64 << 10;
/// What a parser may take of memory for each byte of its input: every dot of a key in TOML
/// is a table of a kilobyte.
const PER_BYTE: usize = 4096;

macro_rules! targets {
    ($($name:ident in $module:ident, $fixed:expr;)*) => {
        /// All of them.
        pub const TARGETS: &[Target] =
            &[$(Target { name: stringify!($name), run: $module::$name, fixed: $fixed }),*];
    };
}

targets! {
    register_name in names, FIXED;
    ticket in names, FIXED;
    stake in names, FIXED;
    hold_name in names, FIXED;
    staging_name in names, FIXED;
    file_name in names, FIXED;
    record in records, FIXED;
    descriptor in records, FIXED;
    ready_mark in records, FIXED;
    tag in records, FIXED;
    worktree_record in records, FIXED;
    format in records, FIXED;
    keeper_file in records, FIXED;
    probe_verdict in records, FIXED;
    takeover in records, FIXED;
    restore_journal in records, FIXED;
    legacy_lock in records, FIXED;
    // Reader and writer have a buffer each, for the file and for what is hashed.
    manifest in manifest, 1 << 20;
    ledger in ledger, FIXED;
    config in settings, FIXED;
    ignore_rules in rules, FIXED;
    duration in settings, FIXED;
    time in settings, FIXED;
    audit_line in log, FIXED;
    mountinfo in system, FIXED;
    proc_stat in system, FIXED;
    juicefs_config in system, FIXED;
    juicefs_stats in system, FIXED;
    juicefs_answer in system, FIXED;
    keeper_wire in command, FIXED;
    sighting in command, FIXED;
    trust_list in command, FIXED;
    environment in command, FIXED;
    mcp_frame in mcp, FIXED;
    // What is read of a harness is kept and printed in several forms.
    hook_payload in agents, FIXED;
    agent_settings in agents, FIXED;
}

/// The target of that name.
pub fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).expect("a target of that name")
}

/// One input at a time: memory is counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

impl Target {
    /// Panics if something does not hold for `data`.
    pub fn check(&self, data: &[u8]) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        ALLOCATOR.reset_peak_usage();
        let before = ALLOCATOR.current_usage();
        (self.run)(data);
        let taken = ALLOCATOR.peak_usage().saturating_sub(before);
        let most = self.fixed + data.len() * PER_BYTE;
        assert!(taken <= most, "took {taken} bytes of memory for {} of input", data.len());
    }
}

/// The program of one target, for `cargo fuzz`.
#[macro_export]
macro_rules! program {
    ($name:ident) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::target(stringify!($name)).check(data));
    };
}
