//! CONTRIBUTING.md is true: what it names exists, and the list of files for each
//! kind of new thing is the list of files that spell an example of it.

use std::collections::BTreeSet;

use crate::source::{File, files, occurrences, root};

const EXAMPLE: &str = "git grep -lwE '";

/// What tells of all things and is written by whoever changes any.
const TELLS_OF_EVERYTHING: [&str; 7] = [
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "spec/decisions/",
    "spec/first-tries.md",
    "spec/schema/",
    "jvs/src/command/schema/",
    "tests/suite/tests/tidy/",
];

/// One section with an example: what it is called there, and where it goes.
#[derive(Debug, PartialEq)]
struct Kind<'d> {
    title: &'d str,
    names: Vec<&'d str>,
    /// Patterns of paths, and whether every new thing of the kind needs one.
    places: Vec<(&'d str, bool)>,
}

fn kinds(document: &str) -> Vec<Kind<'_>> {
    let sections = document.split("\n### ").skip(1);
    sections
        .filter_map(|section| {
            let (_, example) = section.split_once(EXAMPLE)?;
            Some(Kind {
                title: section.lines().next().unwrap_or_default(),
                names: example.split('\'').next().unwrap_or_default().split('|').collect(),
                places: section.lines().flat_map(places).collect(),
            })
        })
        .collect()
}

/// The paths in front of the colon of a list's item.
fn places(line: &str) -> Vec<(&str, bool)> {
    let Some((item, _)) = line.strip_prefix("- ").and_then(|item| item.split_once("`: ")) else {
        return Vec::new();
    };
    let needed = !item.starts_with("perhaps ");
    item.split('`').skip(1).step_by(2).map(|path| (path, needed)).collect()
}

/// Is this path one of those that the pattern means? A star stands for a name or
/// a part of one; a pattern of files that have a directory of their own means
/// what is in there, too.
fn means(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => path == pattern,
        Some((before, after)) => {
            path.strip_prefix(before).is_some_and(|rest| rest.ends_with(after))
        }
    }
}

fn contributing() -> String {
    fs_err::read_to_string(root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md")
}

/// Where a page is kept with its styles, each takes the word boundary from a word.
fn without_styles(text: &str) -> String {
    text.replace("\u{241b}[1m", " ").replace("\u{241b}[0m", " ")
}

fn texts() -> Vec<File> {
    let texts = files(&["rs", "md", "txt", "toml", "sh", "py", "json", "yml", ""]);
    texts.into_iter().map(|file| File { text: without_styles(&file.text), ..file }).collect()
}

#[test]
fn the_list_of_files_for_each_kind_of_new_thing_is_where_an_example_is_spelled() {
    let document = contributing();
    let texts = texts();
    let mut wrong = Vec::new();
    for Kind { title, names, places } in kinds(&document) {
        let spells = |file: &&File| {
            let own = TELLS_OF_EVERYTHING.iter().any(|path| file.path.starts_with(path));
            !own && names.iter().any(|name| occurrences(&file.text, name).next().is_some())
        };
        let spelled: BTreeSet<_> =
            texts.iter().filter(spells).map(|file| file.path.as_str()).collect();
        for path in &spelled {
            if !places.iter().any(|(pattern, _)| means(pattern, path)) {
                wrong.push(format!("{title}: {path} spells {names:?} and is not listed"));
            }
        }
        for (pattern, needed) in &places {
            if *needed && !spelled.iter().any(|path| means(pattern, path)) {
                wrong.push(format!("{title}: {pattern} is listed and does not spell {names:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "correct CONTRIBUTING.md:\n{}", wrong.join("\n"));
}

#[test]
fn every_path_that_it_names_exists() {
    let document = contributing();
    let texts = texts();
    let tops: BTreeSet<_> = texts.iter().filter_map(|file| file.path.split_once('/')).collect();
    let tops: BTreeSet<_> = tops.into_iter().map(|(top, _)| top).collect();
    let mut seen = 0;
    for path in document.split('`').skip(1).step_by(2) {
        let inside = path.split_once('/').is_some_and(|(top, _)| tops.contains(top));
        if path.contains(char::is_whitespace) || !inside || path.starts_with("target/") {
            continue;
        }
        seen += 1;
        let there = match path.contains('*') {
            true => texts.iter().any(|file| means(path, &file.path)),
            false => root().join(path).exists(),
        };
        assert!(there, "CONTRIBUTING.md: {path} does not exist");
    }
    assert!(seen > 40, "the paths are found: {seen}");
}

#[test]
fn every_kind_that_a_newcomer_adds_has_an_example_and_a_list() {
    let document = contributing();
    let kinds = kinds(&document);
    let titles: Vec<_> = kinds.iter().map(|kind| kind.title).collect();
    assert_eq!(
        titles,
        [
            "A command",
            "An error code",
            "A setting",
            "A field of the lock record",
            "A check of doctor",
            "A remedy of doctor",
            "A snapshot engine",
            "A fuzz target",
            "A harness",
        ]
    );
    assert!(kinds.iter().all(|kind| kind.places.len() > 2), "{kinds:#?}");
}

#[test]
fn a_list_is_read_as_it_is_written() {
    let document = "# X\n\n### A thing\n\n```sh\ngit grep -lwE 'a|b_c'\n```\n\n\
                    - `one.rs`, `two/*.rs`: why\n  `not this`: one\n- perhaps `three.md`: why\n\n\
                    ### Prose\n\n- `none.rs`: has no example\n";
    let wanted = Kind {
        title: "A thing",
        names: vec!["a", "b_c"],
        places: vec![("one.rs", true), ("two/*.rs", true), ("three.md", false)],
    };
    assert_eq!(kinds(document), [wanted]);
    assert!(means("two/*.rs", "two/x.rs") && means("two/*.rs", "two/x/y.rs"));
    assert!(!means("two/*.rs", "two.rs") && !means("one.rs", "one.rs.md"));
}
