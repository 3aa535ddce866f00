//! No forgotten file: a test that is not compiled cannot fail.

use std::collections::BTreeSet;

use crate::source::{Source, files, sources};

/// Where cargo looks for the root of a target, relative to a package.
fn is_target_root(inside_package: &str) -> bool {
    let parts: Vec<_> = inside_package.split('/').collect();
    matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["tests" | "benches" | "examples" | "fuzz_targets", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
    )
}

#[test]
fn every_rust_file_is_compiled() {
    let packages: Vec<_> = files(&["toml"])
        .iter()
        .filter_map(|file| file.path.strip_suffix("/Cargo.toml").map(|dir| format!("{dir}/")))
        .collect();
    let sources = sources();
    let mut reached = BTreeSet::new();
    let mut pending: Vec<&Source> = sources
        .iter()
        .filter(|source| {
            packages
                .iter()
                .filter_map(|package| source.path.strip_prefix(package))
                .min_by_key(|inside| inside.len())
                .is_some_and(is_target_root)
        })
        .collect();
    let roots: BTreeSet<_> = pending.iter().map(|source| source.path.as_str()).collect();
    while let Some(source) = pending.pop() {
        if !reached.insert(source.path.as_str()) {
            continue;
        }
        for candidates in declared_modules(source, roots.contains(source.path.as_str())) {
            pending.extend(sources.iter().filter(|other| candidates.contains(&other.path)));
        }
    }
    let forgotten: Vec<_> =
        sources.iter().map(|s| s.path.as_str()).filter(|path| !reached.contains(path)).collect();
    assert!(forgotten.is_empty(), "declared by no `mod`, so never built: {forgotten:#?}");
}

/// For each `mod name;` of a file, where its file may be.
fn declared_modules(source: &Source, is_root: bool) -> Vec<Vec<String>> {
    let (dir, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.trim_end_matches(".rs");
    let dir = if is_root || stem == "mod" { dir.to_owned() } else { format!("{dir}/{stem}") };
    source
        .words("mod")
        .filter_map(|at| {
            let rest = source.code[at + 3..].trim_start();
            let (name, _) = rest.split_once(';')?;
            let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
            plain.then(|| vec![format!("{dir}/{name}.rs"), format!("{dir}/{name}/mod.rs")])
        })
        .collect()
}

/// The lines of code with this attribute.
fn lines_with(attribute: &str) -> Vec<String> {
    let in_file = |source: &Source| -> Vec<String> {
        source.code.match_indices(attribute).map(|(at, _)| source.line(at)).collect()
    };
    sources().iter().flat_map(in_file).collect()
}

#[test]
fn every_module_is_where_its_name_says() {
    let elsewhere = lines_with("#[path");
    assert!(
        elsewhere.is_empty(),
        "what two test programs need is in a library (tests/kit, tests/world):\n{}",
        elsewhere.join("\n")
    );
}

#[test]
fn no_package_turns_the_discovery_of_its_tests_off() {
    for file in files(&["toml"]).iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        for switch in ["autotests", "autobenches", "autoexamples", "test = false"] {
            assert!(!file.text.contains(switch), "{}: `{switch}`", file.path);
        }
        // A bench that brings its own `main` is one that the tests run, too.
        for section in file.text.split("\n[").filter(|section| section.contains("harness")) {
            let run = section.starts_with("[bench]]") && section.contains("\ntest = true\n");
            assert!(run, "{}: `harness` other than of a bench with `test = true`", file.path);
        }
    }
}

#[test]
fn no_test_is_ignored() {
    let ignored = lines_with("#[ignore");
    assert!(ignored.is_empty(), "\n{}", ignored.join("\n"));
}
