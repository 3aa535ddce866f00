//! Licences, bans and sources of everything that is compiled, by the rules of
//! `deny.toml`: what `cargo deny check licenses bans sources` does, without a
//! program that takes longer to build than all of this.
//!
//! Advisories are not looked at: they are news, and need a network.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use toml_edit::{DocumentMut, Item};

use crate::source::root;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Everything that is compiled on the platforms of `deny.toml`, as cargo knows it.
fn packages() -> Vec<Value> {
    let rules = rules();
    let mut packages = Vec::new();
    for target in words(&rules["graph"]["targets"]) {
        let said = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--locked"])
            .args(["--filter-platform", &target])
            .current_dir(root())
            .output()
            .expect("cargo runs");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let mut metadata: Value = serde_json::from_slice(&said.stdout).expect("JSON");
        packages.append(metadata["packages"].as_array_mut().expect("a list"));
    }
    assert!(packages.len() > 20, "cargo lists the packages");
    packages
}

fn rules() -> DocumentMut {
    let text = fs_err::read_to_string(root().join("deny.toml")).expect("the rules");
    text.parse().expect("deny.toml is TOML")
}

fn words(list: &Item) -> Vec<String> {
    let list = list.as_array().expect("a list in deny.toml");
    list.iter().map(|word| word.as_str().expect("a word").to_owned()).collect()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("a package has a name")
}

#[test]
fn every_licence_is_one_that_is_allowed() {
    let allowed: BTreeSet<_> = words(&rules()["licenses"]["allow"]).into_iter().collect();
    let mut used = BTreeSet::new();
    for package in packages() {
        let licence = package["license"].as_str().unwrap_or("none named");
        let Some(taken) = choice(licence, &allowed) else {
            panic!("{}: its licence {licence} is not allowed by deny.toml", name(&package));
        };
        used.extend(taken);
    }
    assert_eq!(used, allowed, "deny.toml allows what nothing needs");
}

/// Which of the allowed licences satisfy an expression; none if they do not.
fn choice(expression: &str, allowed: &BTreeSet<String>) -> Option<Vec<String>> {
    // In older manifests a slash is an OR. AND binds tighter; no parenthesis is nested.
    let expression = expression.replace('/', " OR ");
    let one_of = |alternatives: &str| {
        let mut names = alternatives.split(" OR ").map(|name| name.trim_matches(['(', ')', ' ']));
        names.find(|name| allowed.contains(*name)).map(str::to_owned)
    };
    if expression.contains(" AND ") {
        assert!(!expression.contains(" OR ") || expression.contains('('), "{expression}");
        return expression.split(" AND ").map(one_of).collect();
    }
    one_of(&expression).map(|name| vec![name])
}

#[test]
fn a_licence_is_chosen_where_there_is_a_choice_and_taken_where_there_is_none() {
    let allowed = ["MIT", "Unicode-3.0"].map(str::to_owned).into();
    let chosen = |expression| choice(expression, &allowed).map(|taken| taken.join(" "));
    assert_eq!(chosen("MIT").as_deref(), Some("MIT"));
    assert_eq!(chosen("Apache-2.0 OR MIT").as_deref(), Some("MIT"));
    assert_eq!(chosen("Unlicense/MIT").as_deref(), Some("MIT"));
    assert_eq!(chosen("(MIT OR Apache-2.0) AND Unicode-3.0").as_deref(), Some("MIT Unicode-3.0"));
    assert_eq!(chosen("MIT AND GPL-3.0"), None);
    assert_eq!(chosen("Apache-2.0 WITH LLVM-exception"), None);
}

#[test]
fn nothing_that_is_banned_is_compiled_in() {
    let rules = rules();
    let banned = rules["bans"]["deny"].as_array().expect("a list of bans");
    let banned: Vec<_> = banned
        .iter()
        .filter_map(|ban| ban.as_inline_table())
        .map(|ban| ["crate", "reason"].map(|key| ban[key].as_str().expect("a text")))
        .collect();
    assert!(!banned.is_empty(), "the bans are found");
    for package in packages() {
        for [crate_name, reason] in &banned {
            assert_ne!(*crate_name, name(&package), "it is banned: {reason}");
        }
        let dependencies = package["dependencies"].as_array().expect("a list");
        for dependency in dependencies.iter().filter(|dependency| dependency["req"] == "*") {
            let ours = dependency["path"].is_string();
            assert!(ours, "{}: any version of {}", name(&package), dependency["name"]);
        }
    }
}

#[test]
fn everything_comes_from_here_or_from_crates_io() {
    for package in packages() {
        let source = package["source"].as_str();
        let known = source.is_none_or(|source| source == CRATES_IO);
        assert!(known, "{} comes from {source:?}", name(&package));
    }
}
