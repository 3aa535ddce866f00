//! The documents tell the truth: what they name exists, and nothing in the
//! project knows the machine it was written on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::{files, root, sources};

/// A reference to a test in `spec/`: `test: name`, in backticks. A path in
/// front of the name is for the reader.
const TEST_REFERENCE: &str = "`test: ";

#[test]
fn every_test_that_the_spec_names_exists() {
    let sources = sources();
    let tests: BTreeSet<_> = sources.iter().flat_map(|source| source.test_functions()).collect();
    let mut wrong = Vec::new();
    let names_tests = |path: &str| path.starts_with("spec/") || path == "SECURITY.md";
    for file in files(&["md"]).iter().filter(|file| names_tests(&file.path)) {
        for (number, line) in prose(&file.text) {
            for reference in line.split(TEST_REFERENCE).skip(1) {
                let path = reference.split('`').next().unwrap_or_default();
                let name = path.rsplit("::").next().unwrap_or_default();
                if !tests.contains(name) {
                    wrong.push(format!("{}:{number}: no test `{name}`", file.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A rule is a line `- **LOCK-7** …` and goes on until a line that is not
/// indented.
#[test]
fn every_rule_of_the_spec_has_an_id_of_its_own_and_names_its_test() {
    let mut seen = BTreeMap::new();
    for file in files(&["md"]).iter().filter(|file| file.path.starts_with("spec/")) {
        let lines: Vec<_> = prose(&file.text).collect();
        for (at, (number, line)) in lines.iter().enumerate() {
            let Some(id) = rule_id(line) else { continue };
            let place = format!("{}:{number}", file.path);
            if let Some(first) = seen.insert(id.to_owned(), place.clone()) {
                panic!("{place}: {id} is already defined at {first}");
            }
            let tail = lines[at + 1..].iter().map(|(_, line)| line);
            let mut item = std::iter::once(line).chain(tail.take_while(|l| l.starts_with(' ')));
            let named = item.any(|line| line.contains(TEST_REFERENCE));
            assert!(named, "{place}: {id} names no test: add `test: name_of_it`");
        }
    }
}

/// A rule that a defect was turned into is one of the specification's.
#[test]
fn every_rule_that_the_track_record_names_exists() {
    let pages = files(&["md"]);
    let mut known = BTreeMap::new();
    for file in pages.iter().filter(|file| file.path.starts_with("spec/")) {
        let rules = prose(&file.text).filter_map(|(_, line)| rule_id(line));
        known.extend(rules.map(|id| (id.to_owned(), file.path.clone())));
    }
    let record = pages.iter().find(|file| file.path == "spec/track-record.md").expect("the page");
    let rows = prose(&record.text).filter_map(|(number, line)| {
        let mut columns = line.strip_prefix("| ")?.split(" | ");
        columns.nth(1).map(|rules| (number, rules))
    });
    let mut named = 0;
    for (number, rules) in rows.filter(|(_, rules)| *rules != "rule") {
        for id in rules.split(", ") {
            assert!(known.contains_key(id), "spec/track-record.md:{number}: there is no rule {id}");
            named += 1;
        }
    }
    assert!(named > 40, "rows have rules: {named}");
}

/// The numbered lines of a document that are not in a fenced example.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_example = false;
    text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_example ^= fence;
        !fence && !in_example
    })
}

fn rule_id(line: &str) -> Option<&str> {
    let (id, _) = line.strip_prefix("- **")?.split_once("**")?;
    let (letters, number) = id.rsplit_once('-')?;
    let is_id = letters.bytes().all(|b| b.is_ascii_uppercase() || b == b'-')
        && number.bytes().all(|b| b.is_ascii_digit());
    (is_id && !letters.is_empty() && !number.is_empty()).then_some(id)
}

#[test]
fn a_rule_is_told_from_other_bold_text() {
    assert_eq!(rule_id("- **LOCK-7** A token never goes back."), Some("LOCK-7"));
    assert_eq!(rule_id("- **Complete or absent** A file"), None);
    assert_eq!(rule_id("**LOCK-7** in passing"), None);
}

#[test]
fn examples_are_not_prose() {
    let lines: Vec<_> = prose("a\n```text\nb\n```\nc").collect();
    assert_eq!(lines, [(1, "a"), (5, "c")]);
}

#[test]
fn the_documents_that_a_reader_is_promised_are_there() {
    for path in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "LICENSE",
        "spec/README.md",
        "spec/codes.md",
        "spec/glossary.md",
        "scripts/demo",
        "scripts/test",
        ".ci/run",
        ".github/workflows/test.yml",
    ] {
        assert!(root().join(path).is_file(), "{path} is missing");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for file in files(&["md"]) {
        let here = root().join(&file.path);
        for link in file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (target, part) = link.split_once('#').unwrap_or((link, ""));
            if target.contains("://") {
                continue;
            }
            let dir = here.parent().expect("a file is in a directory");
            let there = if target.is_empty() { here.clone() } else { dir.join(target) };
            if !there.exists() || !part.is_empty() && !anchors(&there).contains(part) {
                wrong.push(format!("{}: {link}", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Whoever does not believe us reads them, with their comments.
#[test]
fn the_models_stay_short_enough_to_be_read() {
    let mut models = files(&["tla"]);
    models.retain(|file| file.path.starts_with("spec/"));
    let lines = |is_trace: bool| -> usize {
        let of = models.iter().filter(|file| file.path.ends_with("/Trace.tla") == is_trace);
        of.map(|file| file.text.lines().count()).sum()
    };
    assert!((300..=500).contains(&lines(false)), "{} lines of models", lines(false));
    assert!((50..=80).contains(&lines(true)), "{} lines for traces", lines(true));
}

/// What a link to a part of a page may end with: its headings, as they are shown to be linked.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = fs_err::read_to_string(page).expect("a page");
    let headings = prose(&text).filter_map(|(_, line)| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len()).then(|| slug(heading.trim()))
    });
    headings.collect()
}

fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn a_heading_is_linked_by_its_words() {
    assert_eq!(slug("The `lock`: who, and until when?"), "the-lock-who-and-until-when");
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    // In pieces, so that this file does not know it either.
    let homes = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "wt/")];
    let mut wrong = Vec::new();
    for file in files(&["rs", "md", "toml", "txt", "sh", "json", "yml", ""]) {
        for (number, line) in file.text.lines().enumerate() {
            if homes.iter().any(|home| line.contains(home)) {
                wrong.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
