//! What to do next is data in the libraries, and spelled as commands in one place.

use std::collections::BTreeSet;

use crate::architecture::CRATES;
use crate::source::{Source, occurrences, sources};

const DEFINITION: &str = "jvs-repo/src/next.rs";
const SPELLING: &str = "jvs/src/hint.rs";
const OWN: &str = "jvs/src/hint/own.rs";
const FOREIGN: &str = "jvs/src/hint/foreign.rs";
const SAMPLES: &str = "jvs/src/hint/tests.rs";

/// Where a library names a command in a string all the same, and why.
const NAME_A_COMMAND: &[(&str, &str)] = &[
    ("jvs-lock/src/hold/refusal.rs", "says which command is in the way, not what to type"),
    ("jvs-repo/src/config.rs", "is kept on disk, in every new repository's configuration"),
    ("jvs-repo/src/nursery/error.rs", "says what was interrupted, not what to type"),
    ("jvs-repo/src/probe/mount.rs", "is kept on disk, in the record of a probe, as it is told"),
];

/// Where the command names one outside of its hints, and why.
const SHOW_A_COMMAND: &[(&str, &str)] = &[
    ("jvs/src/args/examples.rs", "what is shown in the help, and tried by a test"),
    ("jvs/src/args/run.rs", "the usage of a command, in its help"),
    ("jvs/src/args/snapshot.rs", "the usage of a command, in its help"),
    ("jvs/src/command/audit/verify.rs", "a list that was cut short says what shows all of it"),
    ("jvs/src/command/diff.rs", "a list that was cut short says what shows all of it"),
    ("jvs/src/command/init.rs", "the answer itself: what to begin with"),
    ("jvs/src/command/lock/keep.rs", "a warning, which has no hint"),
    ("jvs/src/command/lock/ways.rs", "the answer itself: the ways to a lock"),
    ("jvs/src/command/lock/why.rs", "the answer itself: the way to a lock"),
    ("jvs/src/command/session/show.rs", "the answer itself: what was held, and how to get it"),
    ("jvs/src/command/status.rs", "the answer itself: what to begin with"),
    ("jvs/src/command/verify.rs", "a warning, which has no hint"),
    ("jvs/src/command/worktree/remove.rs", "a warning, which has no hint"),
    ("jvs/src/ownership.rs", "a warning, which has no hint"),
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
fn commands_are_spelled_in_one_place() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    let sources = sources();
    let verbs = variants(file(&sources, "jvs/src/args.rs"), "Command");
    let verbs: Vec<String> = verbs.into_iter().map(str::to_lowercase).collect();
    assert!(verbs.contains(&"lock".to_owned()), "{verbs:?}");
    let listed = || NAME_A_COMMAND.iter().chain(SHOW_A_COMMAND).map(|(path, _)| *path);
    for source in &sources {
        let shipped = CRATES.iter().any(|name| source.path.starts_with(&format!("{name}/src/")));
        if !shipped || [SPELLING, OWN, FOREIGN].contains(&source.path.as_str()) {
            continue;
        }
        for at in naming(source, &verbs) {
            match listed().find(|path| *path == source.path) {
                Some(path) => {
                    used.insert(path);
                }
                None => wrong.push(source.line(at)),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "what to do is a `Next`, or an `OwnNext` of the command; {SPELLING} and {OWN} say how it is \
         typed:\n{}",
        wrong.join("\n")
    );
    let unused: Vec<&str> = listed().filter(|path| !used.contains(path)).collect();
    assert!(unused.is_empty(), "name no command any more, take them from the list: {unused:?}");
}

#[test]
fn every_next_step_is_told_by_somebody_and_tried() {
    let sources = sources();
    let all = variants(file(&sources, DEFINITION), "Next").into_iter();
    let own = variants(file(&sources, OWN), "OwnNext").into_iter();
    let all: Vec<String> = all
        .map(|variant| format!("Next::{variant}"))
        .chain(own.map(|variant| format!("OwnNext::{variant}")))
        .collect();
    assert!(all.len() > 100, "only {} next steps were found", all.len());
    let mut wrong = Vec::new();
    for name in all {
        let told = sources
            .iter()
            .filter(|source| source.path != SPELLING && source.path != OWN)
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
