//! The numbers in the documents are those of the code: whoever changes one is led to the
//! other.

use std::collections::BTreeMap;

use crate::source::{File, files, sources};

/// A page, its words, the file with the number, and the line that has it.
const NUMBERS: &[(&str, &str, &str, &str)] = &[
    // Locking.
    (
        "spec/locking.md",
        "each state has one name, each name one state, at most 200 bytes",
        "jvs-lock/src/state.rs",
        "pub const NAME_MAX: usize = 200;",
    ),
    (
        "spec/locking.md",
        "a note up to 256 bytes",
        "jvs-repo/src/record/lock.rs",
        "pub const NOTE_MAX: usize = 256;",
    ),
    (
        "spec/locking.md",
        "a reason up to 2 KiB",
        "jvs/src/args/words.rs",
        "const REASON_MAX: usize = 2 * 1024;",
    ),
    // Waiting.
    (
        "spec/waiting.md",
        "given no sign of life for 15 s on the observer's own boot-time clock",
        "jvs-lock/src/queue/turn.rs",
        "pub const SILENT_AFTER_MS: u64 = 3 * BEAT_MS;",
    ),
    (
        "spec/waiting.md",
        "renaming its ticket every 5 s",
        "jvs-lock/src/queue/turn.rs",
        "pub const BEAT_MS: u64 = 5_000;",
    ),
    (
        "spec/waiting.md",
        "every n × 250 ms",
        "jvs-lock/src/queue/turn.rs",
        "const STEP_MS: u64 = 250;",
    ),
    (
        "spec/waiting.md",
        "at most every half second",
        "jvs-lock/src/queue/turn.rs",
        "const FIRST_LOOKS_EVERY_MS: u64 = 500;",
    ),
    (
        "spec/waiting.md",
        "it has waited for 64 ms",
        "jvs-lock/src/queue/turn.rs",
        "const LISTENS_AFTER_MS: u64 = 64;",
    ),
    (
        "spec/waiting.md",
        "or spent 2 ms looking",
        "jvs-lock/src/queue/turn.rs",
        "const LOOKS_MAY_TAKE_MS: u64 = 2;",
    ),
    (
        "spec/waiting.md",
        "about once per second after that",
        "jvs-lock/src/queue/circle.rs",
        "const EVERY_MS: u64 = 1_000;",
    ),
    (
        "spec/worktrees.md",
        "leaves an epoch that has just begun alone for two seconds",
        "jvs-lock/src/queue/wait.rs",
        "const BEGUN_IS_LEFT_MS: u64 = 2_000;",
    ),
    // Runs.
    (
        "spec/runs.md",
        "`grace` is the smaller of 5 s and",
        "jvs/src/keeper/pace.rs",
        "const GRACE_MS: u64 = 5_000;",
    ),
    (
        "spec/runs.md",
        "waits at most 200 ms for it to show that",
        "jvs/src/keeper/supervisor.rs",
        "const TELL_MS: u64 = 200;",
    ),
    (
        "spec/runs.md",
        "have 300 ms to end too",
        "jvs/src/command/run/watch.rs",
        "const LINGER_MS: u64 = 300;",
    ),
    (
        "spec/runs.md",
        "and killed 3 s later",
        "jvs/src/command/run/watch.rs",
        "const ASKED_MS: u64 = 3_000;",
    ),
    // What surrounds the register.
    (
        "spec/surroundings.md",
        "its content does not arrive within 2 s",
        "jvs-lock/src/advisory.rs",
        "pub(crate) const PATIENCE_MS: u64 = 2_000;",
    ),
    (
        "spec/surroundings.md",
        "64 KiB are reserved",
        "jvs-repo/src/audit/room.rs",
        "const BYTES: usize = 64 * 1024;",
    ),
    (
        "spec/surroundings.md",
        "retried for half a second",
        "jvs-lock/src/journal.rs",
        "const TRIES_WHEN_FULL: u32 = 14;",
    ),
    // Snapshots.
    (
        "spec/snapshot.md",
        "up to 10,000 levels",
        "jvs-snapshot/src/manifest/path.rs",
        "pub const MAX_DEPTH: usize = 10_000;",
    ),
    (
        "spec/snapshot.md",
        "and 500,000 bytes of a path",
        "jvs-snapshot/src/manifest/path.rs",
        "pub const MAX_PATH_BYTES: usize = 500_000;",
    ),
    (
        "spec/snapshot.md",
        "does not flush by itself within 5 s",
        "jvs-snapshot/src/written_out.rs",
        "const PATIENCE_MS: u64 = 5_000;",
    ),
    (
        "spec/worktrees.md",
        "more than 7 days from the last event in the repository",
        "jvs-snapshot/src/gc/age.rs",
        "const SILENCE_MS: u64 = 7 * DAY_MS;",
    ),
    // The command.
    (
        "spec/commands.md",
        "at most 1000 edits",
        "jvs/src/command/diff/lines.rs",
        "const MOST_EDITS: usize = 1000;",
    ),
    (
        "spec/commands.md",
        "a NUL in their first 8000 bytes",
        "jvs/src/command/diff/patch.rs",
        "const LOOKED_AT: usize = 8000;",
    ),
    (
        "spec/commands.md",
        "those above 8 MiB",
        "jvs/src/command/diff/patch.rs",
        "const MOST_BYTES: u64 = 8 * 1024 * 1024;",
    ),
    (
        "spec/commands.md",
        "with three lines around each change",
        "jvs/src/command/diff/patch.rs",
        "const AROUND: usize = 3;",
    ),
    (
        "spec/commands.md",
        "to people from 1 MiB on",
        "jvs/src/command/doctor/logs.rs",
        "const WORTH_TELLING: u64 = 1024 * 1024;",
    ),
    (
        "spec/output.md",
        "is told once after 10 s",
        "jvs/src/render.rs",
        "const LOG_FIRST_MS: u64 = 10_000;",
    ),
    (
        "spec/output.md",
        "and then once a minute",
        "jvs/src/render.rs",
        "const LOG_EVERY_MS: u64 = 60_000;",
    ),
    // What is read first.
    (
        "spec/holds.md",
        "`lock.idle_release_ms` (default 1800000, half an hour; 0: never)",
        "jvs-repo/src/config/lock_policy.rs",
        "idle_release_ms: 1_800_000,",
    ),
    (
        "docs/agents.md",
        "nobody has used the session for 30 minutes",
        "jvs-repo/src/config/lock_policy.rs",
        "idle_release_ms: 1_800_000,",
    ),
    (
        "docs/locks.md",
        "a *lease* of 30 s",
        "jvs-repo/src/config/lock_policy.rs",
        "lease_duration_ms: 30_000,",
    ),
    (
        "docs/locks.md",
        "renews every 10 s",
        "jvs-repo/src/config/lock_policy.rs",
        "renew_interval_ms: 10_000,",
    ),
    (
        "README.md",
        "`max_clock_skew_ms` (2 s by default)",
        "jvs-repo/src/config/lock_policy.rs",
        "max_clock_skew_ms: 2_000,",
    ),
    (
        "README.md",
        "a grace of `steal_grace_ms` (1 s)",
        "jvs-repo/src/config/lock_policy.rs",
        "steal_grace_ms: 1_000,",
    ),
];

#[test]
fn the_numbers_in_the_documents_are_those_of_the_code() {
    let pages = files(&["md"]);
    let flat = |file: &File| file.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let pages: BTreeMap<_, _> = pages.iter().map(|file| (file.path.as_str(), flat(file))).collect();
    let sources = sources();
    let mut wrong = Vec::new();
    for (page, words, path, line) in NUMBERS {
        if !pages.get(page).is_some_and(|text| text.contains(words)) {
            wrong.push(format!("{page} does not say `{words}`; {path} has `{line}`"));
        }
        let source = sources.iter().find(|source| source.path == *path);
        if !source.is_some_and(|source| source.text.lines().any(|text| text.trim() == *line)) {
            wrong.push(format!("{path} does not have `{line}`; {page} says `{words}`"));
        }
    }
    assert!(wrong.is_empty(), "change both, and this list:\n{}", wrong.join("\n"));
}
