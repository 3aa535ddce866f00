//! What to do next is data in the libraries, and spelled as commands in one place.

use std::collections::BTreeSet;

use crate::architecture::CRATES;
use crate::source::{Source, occurrences, sources};

const DEFINITION: &str = "jvs-repo/src/next.rs";
const SPELLING: &str = "jvs/src/hint.rs";
const SAMPLES: &str = "jvs/src/hint/tests.rs";

/// Where a library names a command in a string all the same, and why.
const NAME_A_COMMAND: &[(&str, &str)] = &[
    ("jvs-lock/src/hold/refusal.rs", "says which command is in the way, not what to type"),
    ("jvs-repo/src/config.rs", "is kept on disk, in every new repository's configuration"),
    ("jvs-repo/src/nursery/error.rs", "says what was interrupted, not what to type"),
    ("jvs-repo/src/probe/mount.rs", "is kept on disk, in the record of a probe, as it is told"),
];

/// The variants of an enum, in the order in which they are written.
fn variants<'s>(source: &'s Source, name: &str) -> Vec<&'s str> {
    let body = source.code.split(&format!("enum {name} {{\n")).nth(1).expect("the enum");
    let body = body.split("\n}\n").next().unwrap_or_default();
    body.lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
        .filter_map(|line| line.split(|c: char| !c.is_alphanumeric()).next())
        .collect()
}

fn file<'s>(sources: &'s [Source], path: &str) -> &'s Source {
    sources.iter().find(|source| source.path == path).unwrap_or_else(|| panic!("no {path}"))
}

/// The strings that name one of these verbs, or an option, after `jvs`.
fn naming(source: &Source, verbs: &[String]) -> Vec<usize> {
    let names = |text: &str| {
        occurrences(text, "jvs").any(|at| {
            let after = text[at + 3..].trim_start_matches(['\\', '\n', ' ']);
            let verb = verbs.iter().any(|verb| occurrences(after, verb).next() == Some(0));
            verb || after.starts_with("--")
        })
    };
    // What a hash is keyed with is nobody's to type.
    let key = |at: usize| source.code[..at - 1].trim_end().ends_with("derive_key(");
    let strings = source.strings.iter().filter(|at| !source.is_test(at.start) && !key(at.start));
    strings.filter(|at| names(&source.text[(*at).clone()])).map(|at| at.start).collect()
}

#[test]
fn libraries_spell_no_command() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    let sources = sources();
    let verbs = variants(file(&sources, "jvs/src/args.rs"), "Command");
    let verbs: Vec<String> = verbs.into_iter().map(str::to_lowercase).collect();
    assert!(verbs.contains(&"lock".to_owned()), "{verbs:?}");
    for source in &sources {
        let library = CRATES.iter().filter(|name| **name != "jvs");
        if !library.into_iter().any(|name| source.path.starts_with(&format!("{name}/src/"))) {
            continue;
        }
        for at in naming(source, &verbs) {
            match NAME_A_COMMAND.iter().find(|(path, _)| *path == source.path) {
                Some((path, _)) => {
                    used.insert(*path);
                }
                None => wrong.push(source.line(at)),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "a library says what to do with a `Next`, and {SPELLING} how it is typed:\n{}",
        wrong.join("\n")
    );
    for (path, _) in NAME_A_COMMAND {
        assert!(used.contains(path), "{path} names no command any more: take it from the list");
    }
}

#[test]
fn every_next_step_is_told_by_somebody_and_tried() {
    let sources = sources();
    let all = variants(file(&sources, DEFINITION), "Next");
    assert!(all.len() > 80, "only {} next steps were found", all.len());
    let mut wrong = Vec::new();
    for variant in all {
        let name = format!("Next::{variant}");
        let told = sources
            .iter()
            .filter(|source| source.path != SPELLING)
            .any(|source| source.words(&name).any(|at| !source.is_test(at)));
        if !told {
            wrong.push(format!("{name}: nothing says so"));
        }
        if file(&sources, SAMPLES).words(&name).next().is_none() {
            wrong.push(format!("{name}: not tried in {SAMPLES}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
