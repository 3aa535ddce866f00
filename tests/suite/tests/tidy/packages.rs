//! What is published can be published: its manifest says what it is, and what it
//! depends on is named with a version.

use crate::architecture::CRATES;
use crate::source::{File, files, root};

/// Packages that do not take the workspace's lints over, and why.
const OWN_LINTS: [(&str, &str); 2] = [
    ("fuzz/Cargo.toml", "is built with a condition of its own"),
    ("jvs-kernel/Cargo.toml", "has the code that is forbidden elsewhere"),
];

/// The lints that a manifest sets in the section with this name.
fn lints<'m>(manifest: &'m str, section: &str) -> Vec<&'m str> {
    let body = manifest.split(&format!("\n[{section}]\n")).nth(1).unwrap_or_default();
    let body = body.split("\n[").next().unwrap_or_default();
    body.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect()
}

#[test]
fn every_package_has_the_workspace_s_lints() {
    let workspace = fs_err::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    let wanted = lints(&workspace, "workspace.lints.clippy");
    assert!(wanted.contains(&"print_stdout") && wanted.contains(&"too_many_lines"), "{wanted:?}");
    assert!(workspace.contains("\nunsafe_code = \"forbid\"\n"), "unsafe code is allowed");
    for File { path, text } in files(&["toml"]) {
        if !text.contains("\n[package]\n") && !text.starts_with("[package]\n") {
            continue;
        }
        if OWN_LINTS.iter().any(|(own, _)| *own == path) {
            let own = lints(&text, "lints.clippy");
            let missing: Vec<_> = wanted.iter().filter(|lint| !own.contains(lint)).collect();
            assert!(missing.is_empty(), "{path}: without {missing:?}");
        } else {
            let inherits = text.contains("\n[lints]\nworkspace = true\n");
            assert!(inherits, "{path}: add `[lints]` with `workspace = true`");
        }
    }
}

fn manifest(package: &str) -> String {
    let path = root().join(package).join("Cargo.toml");
    fs_err::read_to_string(path).expect("a package's manifest")
}

#[test]
fn a_crate_is_published_or_says_that_it_is_not() {
    for File { path, text } in files(&["toml"]) {
        let Some(package) = path.strip_suffix("/Cargo.toml") else { continue };
        let published = !text.contains("\npublish = false\n");
        assert_eq!(published, CRATES.contains(&package), "{path}: `publish = false`, or not");
    }
}

#[test]
fn a_published_crate_has_a_description_a_readme_and_what_all_crates_share() {
    for package in CRATES {
        let text = manifest(package);
        let described = text.lines().find_map(|line| line.strip_prefix("description = \""));
        assert!(described.is_some_and(|text| text.len() > 40), "{package}: no description");
        assert!(text.contains("\nreadme = \"README.md\"\n"), "{package}: no readme");
        let readme = fs_err::read_to_string(root().join(package).join("README.md"));
        let readme = readme.expect("a published crate has a README.md");
        assert!(readme.starts_with(&format!("# {package}\n")), "{package}/README.md: its title");
        for words in ["keywords", "categories"] {
            assert!(text.contains(&format!("\n{words} = [\"")), "{package}: no {words}");
        }
        let licence = fs_err::read_to_string(root().join(package).join("LICENSE"));
        let shared = fs_err::read_to_string(root().join("LICENSE")).expect("the licence");
        assert_eq!(licence.ok(), Some(shared), "{package}/LICENSE is a link to the licence");
        for shared in ["version", "edition", "rust-version", "license", "repository"] {
            assert!(
                text.contains(&format!("\n{shared}.workspace = true\n")),
                "{package}: {shared}"
            );
        }
    }
}

#[test]
fn what_is_published_depends_only_on_what_has_a_version() {
    let workspace = fs_err::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    for package in CRATES {
        let entry = format!("\n{package} = {{ path = \"{package}\", version = \"");
        assert!(package == "jvs" || workspace.contains(&entry), "Cargo.toml: {package}'s version");
    }
}
