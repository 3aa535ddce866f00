//! Licences, bans and sources of everything that is compiled, by the rules of
//! `deny.toml`: what `cargo deny check licenses bans sources` does, without a
//! program that takes longer to build than all of this.
//!
//! Advisories are not looked at: they are news, and need a network.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use toml_edit::{DocumentMut, InlineTable, Item};

use crate::source::root;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Everything that is compiled on the platforms of `deny.toml`, as cargo knows it.
fn packages() -> Vec<Value> {
    let rules = rules();
    let mut packages = Vec::new();
    for target in words(&rules["graph"]["targets"]) {
        let mut metadata = metadata(&target);
        packages.append(metadata["packages"].as_array_mut().expect("a list"));
    }
    assert!(packages.len() > 20, "cargo lists the packages");
    packages
}

fn metadata(target: &str) -> Value {
    let said = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", target])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    serde_json::from_slice(&said.stdout).expect("JSON")
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
    let banned: Vec<Ban> =
        banned.iter().filter_map(|ban| ban.as_inline_table()).map(Ban::read).collect();
    assert!(!banned.is_empty(), "the bans are found");
    for (by, package) in who_compiles_what() {
        for ban in banned.iter().filter(|ban| ban.name == package) {
            assert!(ban.wrappers.contains(&by), "{by} needs {package}: {}", ban.reason);
        }
    }
    for package in packages() {
        let dependencies = package["dependencies"].as_array().expect("a list");
        for dependency in dependencies.iter().filter(|dependency| dependency["req"] == "*") {
            let ours = dependency["path"].is_string();
            assert!(ours, "{}: any version of {}", name(&package), dependency["name"]);
        }
    }
}

/// A crate that nothing may use, but for those that are named.
struct Ban {
    name: String,
    reason: String,
    wrappers: Vec<String>,
}

impl Ban {
    fn read(ban: &InlineTable) -> Ban {
        let text = |key: &str| ban[key].as_str().expect("a text").to_owned();
        let wrappers = ban.get("wrappers").and_then(|list| list.as_array());
        let wrappers = wrappers.into_iter().flatten().filter_map(|word| word.as_str());
        Ban {
            name: text("crate"),
            reason: text("reason"),
            wrappers: wrappers.map(str::to_owned).collect(),
        }
    }
}

/// Which crate is compiled because which other one depends on it.
fn who_compiles_what() -> BTreeSet<(String, String)> {
    let mut pairs = BTreeSet::new();
    for target in words(&rules()["graph"]["targets"]) {
        let metadata = metadata(&target);
        let packages = metadata["packages"].as_array().expect("a list");
        let called = |id: &Value| {
            let found = packages.iter().find(|package| package["id"] == *id);
            name(found.expect("a package of that id")).to_owned()
        };
        for node in metadata["resolve"]["nodes"].as_array().expect("a list") {
            let by = called(&node["id"]);
            let needs = node["dependencies"].as_array().expect("a list");
            pairs.extend(needs.iter().map(|needed| (by.clone(), called(needed))));
        }
    }
    pairs
}

/// What is compiled for this package alone: other members of the workspace may ask for
/// features of it that it has not when it ships.
fn compiled_for(package: &str) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", package, "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p}"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8_lossy(&tree.stdout);
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_command_is_built_without_what_only_the_mcp_server_needs() {
    let (command, server) = (compiled_for("jvs"), compiled_for("jvs-mcp"));
    assert!(command.contains("jvs-lock") && command.contains("clap"), "{command:?}");
    for foreign in ["rmcp", "tokio", "chrono", "schemars", "jvs-mcp"] {
        assert!(server.contains(foreign), "{foreign}");
        assert!(!command.contains(foreign), "the command would need {foreign}");
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
