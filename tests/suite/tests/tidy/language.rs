//! Plain English: words that messages, help and documents avoid, and comments that
//! say something.

use std::ops::Range;

use crate::source::{files, occurrences, sources};

/// What readers stumbled over, and what to write instead. Each is looked for as whole
/// words, in any case and over line breaks.
const AVOIDED: &[(&str, &str)] = &[
    ("life", "epoch, of a register; alive, of a process"),
    ("mend", "repair"),
    ("mends", "repairs"),
    ("mended", "repaired"),
    ("mending", "repairing"),
    ("so many", "N, this many, at most N"),
    ("for so long", "for this long"),
    ("stands", "is; 'how it stands' is its status; a tag points to its snapshot"),
    ("anew", "again; 'write anew' is rewrite or recreate"),
    ("all the same", "anyway"),
    ("whoever", "anyone who"),
    ("a word to", "a note for"),
    ("give back", "release"),
    ("gives back", "releases"),
    ("giving back", "releasing"),
    ("given back", "released"),
    ("gives it back", "releases it"),
    ("give it back", "release it"),
    ("gave it back", "released it"),
    ("cannot be told", "is not known"),
    ("and is none", "and is not one, or name the thing"),
    ("that is none", "that is not one, or name the thing"),
    ("which is no", "which is not a"),
    ("lies", "is"),
    ("say that you know", "acknowledge it"),
    ("nobody must", "what MUST NOT happen"),
    ("nothing must", "what MUST NOT happen"),
    ("told as", "reported as"),
    ("what is told", "the report, the answer"),
    ("by the letter of", "as prescribed by"),
    ("a word of", "a message from"),
    ("hence", "so"),
    ("thereof", "of it"),
    ("the very", "exactly the, the same"),
];

/// Where an avoided word is right.
const RIGHT: &[&str] = &["sign of life", "signs of life", "metadata engine that lies"];

/// Is it prose: a document for users or contributors, or what the command prints?
fn is_prose_for_people(path: &str) -> bool {
    path.ends_with(".md")
        || path.starts_with("docs/")
        || path.starts_with("tests/suite/tests/cli/transcript/")
        || path.starts_with("tests/suite/tests/doctor/golden/")
}

/// One space for every run of white space and of a string's line ends, and no
/// capitals, so that a phrase is found wherever it is broken.
fn flat(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| *word != "\\");
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Text without `code`, which is not English.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("…")
}

/// Every avoided word in `text`, as messages that begin with `place`.
fn avoided_in(place: &str, text: &str) -> Vec<String> {
    let mut text = flat(text);
    for right in RIGHT {
        text = text.replace(right, "…");
    }
    let mut found = Vec::new();
    for (word, instead) in AVOIDED {
        for at in occurrences(&text, word) {
            let from = text[..at].char_indices().rev().nth(30).map_or(0, |(at, _)| at);
            let to = text[at..].char_indices().nth(40).map_or(text.len(), |(to, _)| at + to);
            found.push(format!("{place}: `{word}` in …{}…; write: {instead}", &text[from..to]));
        }
    }
    found
}

#[test]
fn what_people_read_avoids_words_that_readers_stumble_over() {
    let mut found = Vec::new();
    for file in files(&["md", "txt", "yml"]).iter().filter(|file| is_prose_for_people(&file.path)) {
        let text = if file.path.ends_with(".md") {
            // Fences first: what a terminal showed is for users, too.
            file.text
                .replace("```", "")
                .split('\n')
                .map(without_code)
                .collect::<Vec<_>>()
                .join("\n")
        } else {
            // What is typed, and what explains the test, is nothing that users read.
            let said = file.text.lines().filter(|line| !line.starts_with(['#', '$']));
            said.collect::<Vec<_>>().join("\n")
        };
        found.extend(avoided_in(&file.path, &text));
    }
    for source in sources().iter().filter(|source| source.path.starts_with("jvs")) {
        // A single word is a key or a name on disk.
        let is_prose = |string: &&Range<usize>| {
            !source.is_test(string.start) && source.text[(*string).clone()].contains(' ')
        };
        for string in source.strings.iter().filter(is_prose) {
            let place = source.line(string.start);
            let place = place.splitn(3, ':').take(2).collect::<Vec<_>>().join(":");
            found.extend(avoided_in(&place, &source.text[string.clone()]));
        }
        if source.path.starts_with("jvs/src/args") {
            let help = source.text.lines().filter_map(|line| line.trim().strip_prefix("///"));
            found.extend(avoided_in(&source.path, &help.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_phrase_is_found_over_line_breaks_in_any_case_and_only_as_whole_words() {
    let text = "\"Given \\\n         back, lifelong, signs of life, mends\"";
    let found = avoided_in("here", text);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().any(|line| line.starts_with("here: `mends`")), "{found:#?}");
    assert!(found.iter().any(|line| line.starts_with("here: `given back`")), "{found:#?}");
}

/// "Which." and "Where." satisfy a lint and tell a reader nothing.
#[test]
fn no_documentation_comment_is_a_single_word() {
    let mut found = Vec::new();
    for source in sources() {
        let lines: Vec<_> = source.text.lines().map(str::trim).collect();
        let comment = |at: usize| -> Option<&str> {
            let line = lines.get(at)?;
            line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
        };
        for (at, line) in lines.iter().enumerate() {
            let alone = at == 0 || comment(at - 1).is_none();
            let ends = comment(at + 1).is_none();
            let words = comment(at).map(|text| text.split_whitespace().count());
            if alone && ends && words.is_some_and(|words| words < 2) {
                found.push(format!("{}:{}: {line}", source.path, at + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "say what it is, in a sentence or a noun phrase\n{}",
        found.join("\n")
    );
}
