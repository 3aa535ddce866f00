//! The error codes: each is produced, tested and documented with the same exit
//! status and meaning.

use jvs_repo::code::Code;

use crate::source::{files, occurrences, root, sources};

/// Codes whose feature is not built yet. An entry that is produced after all
/// fails the test, so the list only ever shrinks.
const NOT_YET_PRODUCED: &[Code] = &[];

/// The file that defines the codes: its own tests prove nothing about their use.
const DEFINITION: &str = "jvs-repo/src/code.rs";
/// This file and its neighbours, for the same reason.
const TIDY: &str = "tests/suite/tests/tidy/";

fn variant(code: Code) -> String {
    format!("Code::{code:?}")
}

#[test]
fn every_code_is_produced_by_the_product_or_is_listed_as_not_yet_produced() {
    let sources = sources();
    let mut wrong = Vec::new();
    for &code in Code::ALL {
        let name = variant(code);
        let produced = sources.iter().find_map(|source| {
            source.words(&name).find(|&at| !source.is_test(at)).map(|at| source.line(at))
        });
        match (produced, NOT_YET_PRODUCED.contains(&code)) {
            (None, false) => wrong.push(format!("{code} is produced nowhere")),
            (Some(place), true) => wrong.push(format!(
                "{code} is produced now: take it from NOT_YET_PRODUCED and from \
                 spec/codes.md ({place})"
            )),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_produced_code_is_expected_by_some_test() {
    let sources = sources();
    let golden = files(&["golden", "stderr", "stdout", "txt", "toml", "snap"]);
    let untested: Vec<_> = Code::ALL
        .iter()
        .filter(|code| !NOT_YET_PRODUCED.contains(code))
        .filter(|code| {
            let in_golden = golden.iter().any(|file| {
                file.path.starts_with("tests/")
                    && occurrences(&file.text, code.as_str()).next().is_some()
            });
            let in_test = sources
                .iter()
                .filter(|s| s.path != DEFINITION && !s.path.starts_with(TIDY))
                .any(|source| {
                    let name = variant(**code);
                    let as_variant = source.words(&name).any(|at| source.is_test(at));
                    let as_text = source.strings.iter().any(|string| {
                        let inside = &source.text[string.clone()];
                        source.is_test(string.start)
                            && occurrences(inside, code.as_str()).next().is_some()
                    });
                    as_variant || as_text
                });
            !in_golden && !in_test
        })
        .map(|code| format!("{code}: no test expects it"))
        .collect();
    assert!(untested.is_empty(), "\n{}", untested.join("\n"));
}

#[test]
fn the_reference_lists_every_code_with_its_exit_status_and_meaning() {
    let wanted: Vec<_> = Code::ALL
        .iter()
        .map(|code| format!("| `{code}` | {} | {} |", code.exit(), code.meaning()))
        .collect();
    let listed = table_rows("| code | exit | meaning |");
    for row in &wanted {
        assert!(
            listed.contains(row),
            "spec/codes.md is not what the code does. An exit status is a promise to scripts: \
             change it only with an entry in CHANGELOG.md. The row to paste:\n{row}"
        );
    }
    assert_eq!(listed, wanted, "spec/codes.md has other rows, or another order, than the code");
}

#[test]
fn the_reference_groups_the_codes_by_exit_status() {
    let mut exits: Vec<_> = Code::ALL.iter().map(|code| code.exit()).collect();
    exits.dedup();
    let wanted: Vec<_> = exits
        .iter()
        .map(|exit| {
            let codes: Vec<_> = Code::ALL
                .iter()
                .filter(|code| code.exit() == *exit)
                .map(|code| format!("`{code}`"))
                .collect();
            format!("| {exit} | {} |", codes.join(", "))
        })
        .collect();
    let listed = table_rows("| exit | codes |");
    assert_eq!(listed, wanted, "\npaste into spec/codes.md:\n{}\n", wanted.join("\n"));
}

#[test]
fn the_reference_says_which_codes_are_not_produced_yet() {
    let wanted: Vec<_> = NOT_YET_PRODUCED.iter().map(|code| format!("- `{code}`")).collect();
    let text = reference();
    let section = text.split("## Not produced yet").nth(1).expect("spec/codes.md has the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let listed: Vec<_> = section.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(listed, wanted, "\npaste into spec/codes.md:\n{}\n", wanted.join("\n"));
}

fn reference() -> String {
    fs_err::read_to_string(root().join("spec/codes.md")).expect("spec/codes.md")
}

/// The rows of the table with this header.
fn table_rows(header: &str) -> Vec<String> {
    let text = reference();
    let table = text.split(header).nth(1).unwrap_or_else(|| panic!("no table {header}"));
    table.lines().skip(2).take_while(|line| line.starts_with('|')).map(str::to_owned).collect()
}
