//! The crash matrices know every command of the command line.

use std::collections::BTreeSet;

use jvs_world::commands::COMMANDS;

use crate::source::sources;

/// The names that commands give themselves, hidden ones aside: `Command::Gc(_) => "gc"`.
fn named() -> BTreeSet<String> {
    let is_args = |path: &str| path == "jvs/src/args.rs" || path.starts_with("jvs/src/args/");
    let sources = sources();
    let lines = sources.iter().filter(|source| is_args(&source.path)).flat_map(|source| {
        let begin = source.text.find("fn name(&self)");
        begin.map_or("", |begin| &source.text[begin..]).lines().take_while(|line| *line != "}")
    });
    let arms = lines.filter_map(|line| {
        let (variant, name) = line.trim().split_once(" => \"")?;
        let name = name.strip_suffix("\",")?;
        (variant.contains("Command::") && !name.starts_with("__")).then(|| name.to_owned())
    });
    arms.collect()
}

#[test]
fn every_command_of_the_command_line_is_on_the_list_of_the_crash_matrices() {
    let listed: BTreeSet<String> = COMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert!(listed.len() > 40, "{listed:?}");
    let named = named();
    let missing: Vec<_> = named.symmetric_difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "{missing:?}: add to COMMANDS in tests/world/src/commands.rs what a death can do to it, \
         and its row in tests/protocol/tests/crashes/rows and tests/suite/tests/snapshots/crashes"
    );
}
