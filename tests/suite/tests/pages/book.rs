//! The documents for users: their list is whole, and what they tell a reader to type works.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jvs_kit::live::capability::{Capability, granted, mdbook_program};

use crate::stage::Stage;

/// Marks a block that needs another host, root or a volume, and is only looked at.
const ELSEWHERE: &str = "sh elsewhere";

fn docs() -> PathBuf {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"));
    suite.ancestors().nth(2).expect("the suite is two levels below the root").join("docs")
}

pub(crate) fn page(name: &str) -> String {
    fs_err::read_to_string(docs().join(name)).expect("a page")
}

/// The pages that the table of contents names, in its order.
fn contents() -> Vec<String> {
    let summary = page("SUMMARY.md");
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.map(str::to_owned).collect()
}

/// The fenced blocks of a page, with what is written behind their fences.
pub(crate) fn blocks(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), open.as_mut()) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(kind), None) => open = Some((kind.to_owned(), String::new())),
            (None, Some((_, block))) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block has no end");
    found
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let listed: BTreeSet<String> = contents().into_iter().collect();
    let files = docs().read_dir().expect("the documents");
    let names = files.map(|file| file.expect("listed").file_name().into_string().expect("text"));
    let there: BTreeSet<String> =
        names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect();
    assert_eq!(listed, there);
}

/// One script a page: a reader types it from the top.
#[test]
fn every_command_in_the_documents_works_as_it_is_typed() {
    let mut tried = 0;
    for name in contents() {
        let script: String = blocks(&page(&name))
            .into_iter()
            .filter(|(kind, _)| kind == "sh")
            .map(|(_, block)| block)
            .collect();
        if script.is_empty() {
            continue;
        }
        tried += script.lines().filter(|line| line.contains("jvs ")).count();
        let outcome = Stage::empty().types(&format!("set -x\n{script}"));
        assert!(outcome.status.success(), "{name}: {outcome}");
    }
    assert!(tried > 50, "{tried} commands");
}

#[test]
fn what_can_only_be_typed_elsewhere_is_a_script_at_least() {
    let stage = Stage::empty();
    for name in contents() {
        for (kind, block) in blocks(&page(&name)) {
            let checked_by = |program: &str| {
                fs_err::write(stage.path("block"), &block).expect("written");
                stage.types(&format!("{program} ../block")).ok();
            };
            match kind.as_str() {
                ELSEWHERE => checked_by("bash -n"),
                "python" => checked_by("python3 -m ast"),
                "json" => {
                    let read = serde_json::from_str::<serde_json::Value>(&block);
                    assert!(read.is_ok(), "{name}: {block}");
                }
                "toml" => {
                    assert!(block.parse::<toml_edit::DocumentMut>().is_ok(), "{name}: {block}");
                }
                _ => assert!(["sh", "text", "ini", "yaml"].contains(&kind.as_str()), "{kind}"),
            }
        }
    }
}

#[test]
fn the_runbook_has_every_finding() {
    let spec = fs_err::read_to_string(docs().join("../spec/doctor.md")).expect("the reference");
    let runbook = page("runbook.md");
    let rules = spec.lines().filter(|line| line.starts_with("- **DOCTOR-"));
    let codes = rules.filter_map(|line| line.split('`').nth(1)).filter(|it| it.starts_with("D_"));
    let codes: Vec<&str> = codes.collect();
    assert!(codes.len() > 70, "{codes:?}");
    let missing: Vec<_> =
        codes.iter().filter(|code| !runbook.contains(&format!("| `{code}` |"))).collect();
    assert!(missing.is_empty(), "say in docs/runbook.md what to do about {missing:?}");
}

/// The values of an attribute in a page, in their order.
fn attributes<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let begin = format!(" {name}=\"");
    let values = page.split(begin.as_str()).skip(1);
    values.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_book_is_built_and_every_link_in_it_leads_somewhere() {
    if !granted(&[Capability::MdBook, Capability::Program("python3")]) {
        return;
    }
    let stage = Stage::empty();
    let book = stage.path("book");
    let build = format!(
        "'{}' build '{}' -d '{}'",
        mdbook_program().display(),
        docs().display(),
        book.display()
    );
    stage.types(&build).ok();
    let mut links = 0;
    let mut wrong = Vec::new();
    for name in contents() {
        let name = name.replace(".md", ".html");
        let page = fs_err::read_to_string(book.join(&name)).expect("a page of the book");
        for link in attributes(&page, "href") {
            let (target, part) = link.split_once('#').unwrap_or((link, ""));
            if target.contains("://") {
                continue;
            }
            links += 1;
            let there = book.join(if target.is_empty() { &name } else { target });
            let leads = match part {
                "" => there.is_file(),
                part => fs_err::read_to_string(&there)
                    .is_ok_and(|page| attributes(&page, "id").contains(&part)),
            };
            if !leads {
                wrong.push(format!("{name}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(links > 100, "{links} links");
}
