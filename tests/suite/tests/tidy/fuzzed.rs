//! Whatever reads bytes of others has a fuzz target, and every target has a program and
//! inputs to start from.

use std::collections::BTreeSet;

use crate::architecture::is_shipped;
use crate::source::{Source, root, sources};

/// Files of shipped code with a parser in them, and the target that it is called by.
const PARSERS: &[(&str, &str)] = &[
    ("jvs-lock/src/hold/name.rs", "hold_name"),
    ("jvs-lock/src/hold/stake.rs", "stake"),
    ("jvs-lock/src/legacy.rs", "legacy_lock"),
    ("jvs-lock/src/queue/waiter.rs", "ticket"),
    ("jvs-lock/src/record.rs", "record"),
    ("jvs-lock/src/session.rs", "file_name"),
    ("jvs-lock/src/state.rs", "register_name"),
    ("jvs-mcp/src/frames.rs", "mcp_frame"),
    ("jvs-mcp/src/handle.rs", "mcp_frame"),
    ("jvs-mcp/src/resource.rs", "mcp_frame"),
    ("jvs-repo/src/audit.rs", "file_name"),
    ("jvs-repo/src/audit/name.rs", "file_name"),
    ("jvs-repo/src/config.rs", "config"),
    ("jvs-repo/src/config/admins.rs", "config"),
    ("jvs-repo/src/config/retention.rs", "config"),
    ("jvs-repo/src/config/snapshot.rs", "config"),
    ("jvs-repo/src/config/document.rs", "config"),
    ("jvs-repo/src/config/edit.rs", "config"),
    ("jvs-repo/src/digest.rs", "file_name"),
    ("jvs-repo/src/duration.rs", "duration"),
    ("jvs-repo/src/id.rs", "file_name"),
    ("jvs-repo/src/json.rs", "record"),
    ("jvs-repo/src/layout/staging.rs", "staging_name"),
    ("jvs-repo/src/name.rs", "file_name"),
    ("jvs-repo/src/probe/mount.rs", "juicefs_config"),
    ("jvs-repo/src/record/audit.rs", "audit_line"),
    ("jvs-repo/src/record/descriptor.rs", "descriptor"),
    ("jvs-repo/src/record/format.rs", "format"),
    ("jvs-repo/src/record/keeper.rs", "keeper_file"),
    ("jvs-repo/src/record/lock.rs", "record"),
    ("jvs-repo/src/record/ledger.rs", "ledger"),
    ("jvs-repo/src/record/patch.rs", "restore_journal"),
    ("jvs-repo/src/record/probe.rs", "probe_verdict"),
    ("jvs-repo/src/record/ready.rs", "ready_mark"),
    ("jvs-repo/src/record/seal.rs", "worktree_record"),
    ("jvs-repo/src/record/tag.rs", "tag"),
    ("jvs-repo/src/record/takeover.rs", "takeover"),
    ("jvs-repo/src/record/worktree.rs", "worktree_record"),
    ("jvs-repo/src/term.rs", "file_name"),
    ("jvs-snapshot/src/restore/journal.rs", "restore_journal"),
    ("jvs/src/args/keeper.rs", "keeper_wire"),
    ("jvs/src/command/run/guardian.rs", "keeper_wire"),
    ("jvs/src/harness/payload.rs", "hook_payload"),
    ("jvs/src/harness/splice.rs", "agent_settings"),
    ("jvs/src/keeper/wire.rs", "keeper_wire"),
    ("jvs/src/session/sightings.rs", "sighting"),
    ("jvs/src/tree.rs", "keeper_wire"),
    ("jvs/src/tree/mark.rs", "keeper_wire"),
    ("jvs/src/trust.rs", "trust_list"),
];

/// Targets of parsers that nothing in the code tells from any other function.
const TOLD_BY_NOTHING: &[&str] = &[
    "environment",
    "ignore_rules",
    "juicefs_answer",
    "juicefs_stats",
    "manifest",
    "mountinfo",
    "proc_stat",
    "time",
];

/// Files that look as if they had one, and why that needs no target.
const NO_PARSER: &[(&str, &str)] = &[
    ("jvs/src/args.rs", "reads the words that its own user typed"),
    ("jvs/src/args/hot.rs", "reads the words that its own user typed"),
    ("jvs/src/command/agent/piece.rs", "reads what `splice.rs` measures, with the strict reader"),
    ("jvs/src/command/agent/receipt.rs", "reads what this command wrote, with the strict reader"),
    ("jvs/src/command/demo.rs", "reads what a command that it ran has printed"),
    (
        "jvs/src/command/events/exec.rs",
        "reads the file that its own user wrote, as `taste.rs` does",
    ),
    ("jvs/src/command/schema.rs", "reads the schemas that it was built with"),
    ("jvs/src/command/doctor/probe.rs", "reads what `record/probe.rs` parses"),
    ("jvs/src/taste.rs", "reads the file that its own user wrote, which `trust_list` parses, too"),
    ("jvs-doctor/src/check/seal.rs", "reads what `record/worktree.rs` parses"),
    ("jvs-doctor/src/survey.rs", "reads what `record/worktree.rs` parses"),
    ("jvs-mcp/src/call.rs", "reads what a command that it ran has printed"),
    ("jvs-lock/src/inherit.rs", "reads what `state.rs` parses, from its own starter"),
    ("jvs-lock/src/worktrees/note.rs", "reads what `record/worktree.rs` parses"),
];

/// What a parser looks like: it makes a value of text, or calls a reader of some language.
const SIGNS: [&str; 8] = [
    "impl FromStr for ",
    "fn parse(",
    "fn parse_within<",
    "json::parse",
    "json::read",
    "serde_json::from_",
    "Document::parse(",
    "DocumentMut = ",
];

fn parses(source: &Source) -> bool {
    let found = SIGNS.iter().flat_map(|sign| source.code.match_indices(sign));
    let mut shipped = found.filter(|(at, _)| !source.is_test(*at));
    shipped.next().is_some()
}

/// The targets, as the library of targets lists them.
fn targets() -> BTreeSet<String> {
    let text = fs_err::read_to_string(root().join("fuzz/src/lib.rs")).expect("the targets");
    let (_, list) = text.split_once("\ntargets! {\n").expect("a list of targets");
    let (list, _) = list.split_once("\n}\n").expect("its end");
    let names = list.lines().filter_map(|line| line.split_once(" in "));
    let names: BTreeSet<_> =
        names.filter(|(_, rest)| rest.ends_with(';')).map(|(name, _)| name.trim().into()).collect();
    assert!(names.len() > 20, "the targets are found: {names:?}");
    names
}

#[test]
fn every_parser_of_what_others_wrote_has_a_fuzz_target() {
    let found: BTreeSet<_> = sources()
        .into_iter()
        .filter(|source| is_shipped(source) && parses(source))
        .map(|source| source.path)
        .collect();
    let listed = PARSERS.iter().chain(NO_PARSER).map(|(path, _)| (*path).to_owned());
    let listed: BTreeSet<_> = listed.collect();
    let forgotten: Vec<_> = found.difference(&listed).collect();
    assert!(forgotten.is_empty(), "no fuzz target: list one in fuzzed.rs: {forgotten:#?}");
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "listed and no parser any more: {gone:#?}");

    let called = PARSERS.iter().map(|(_, target)| *target).chain(TOLD_BY_NOTHING.iter().copied());
    assert_eq!(called.map(str::to_owned).collect::<BTreeSet<_>>(), targets());
}

#[test]
fn every_fuzz_target_has_a_program_and_inputs_to_start_from() {
    let entries = |dir: &str| -> BTreeSet<String> {
        let entries = fs_err::read_dir(root().join(dir)).expect("a directory of fuzz/");
        entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect()
    };
    let programs = entries("fuzz/fuzz_targets");
    assert_eq!(programs, targets().iter().map(|name| format!("{name}.rs")).collect());
    assert_eq!(entries("fuzz/corpus"), targets(), "a directory of inputs for each target");
    let manifest = fs_err::read_to_string(root().join("fuzz/Cargo.toml")).expect("a manifest");
    let mut size = 0;
    for name in targets() {
        assert!(manifest.contains(&format!("\nname = \"{name}\"\n")), "fuzz/Cargo.toml: {name}");
        let program = format!("fuzz/fuzz_targets/{name}.rs");
        let program = fs_err::read_to_string(root().join(program)).expect("a program");
        assert!(program.contains(&format!("program!({name});")), "{name}: of another target");
        let inputs = entries(&format!("fuzz/corpus/{name}"));
        assert!(!inputs.is_empty(), "fuzz/corpus/{name} is empty");
        for input in inputs {
            let path = root().join(format!("fuzz/corpus/{name}/{input}"));
            assert!(input.ends_with(".seed"), "{}: inputs end in .seed", path.display());
            size += fs_err::metadata(path).expect("an input").len();
        }
    }
    assert!(size < 1 << 20, "the corpus has {size} bytes; scripts/fuzz keeps few");
}
