//! The directory as a whole, and the sources in it.

use jvs_kit::live::capability::{Capability, granted, packages};

use crate::made::{names, root, shell, the};

/// The crates that ship.
const CRATES: [&str; 7] =
    ["jvs-kernel", "jvs-repo", "jvs-lock", "jvs-snapshot", "jvs-doctor", "jvs", "jvs-mcp"];

#[test]
fn the_checksums_are_of_every_file_there_is() {
    if !granted(&[Capability::Packages]) {
        return;
    }
    let sums = fs_err::read_to_string(packages().join("SHA256SUMS")).expect("the checksums");
    let listed: Vec<&str> = sums.lines().filter_map(|line| line.split("  ").nth(1)).collect();
    let there: Vec<String> = names().into_iter().filter(|name| name != "SHA256SUMS").collect();
    assert_eq!(listed, there);
    assert_eq!(there.len(), CRATES.len() + 4, "{there:?}");
    let check = r#"cd "$1" && sha256sum --check --strict --quiet SHA256SUMS"#;
    shell(check, &[&packages().canonicalize().expect("it is there")]).ok();
}

#[test]
fn the_sources_of_a_crate_bring_its_licence_and_its_readme() {
    if !granted(&[Capability::Packages]) {
        return;
    }
    let licence = fs_err::read_to_string(root().join("LICENSE")).expect("the licence");
    let version = env!("CARGO_PKG_VERSION");
    for name in CRATES {
        let archive = the(&format!("{name}-{version}.crate"));
        // As a file: a link would lead out of the archive.
        let brought = shell(r#"tar -xzOf "$1" --wildcards '*/LICENSE'"#, &[&archive]).ok();
        assert_eq!(brought.stdout(), licence, "{name}");
        let listed = shell(r#"tar -tzf "$1""#, &[&archive]).ok();
        for file in ["README.md", "Cargo.toml", "Cargo.lock", "src/lib.rs"] {
            let path = format!("{name}-{version}/{file}");
            assert!(listed.stdout().lines().any(|line| line == path), "{name}: no {file}");
        }
    }
}

#[test]
fn no_program_knows_the_machine_it_was_built_on() {
    if !granted(&[Capability::Packages]) {
        return;
    }
    let known = r#"tar -xzf "$1" -C "$2" --strip-components=1
        if grep --text --only-matching --fixed-strings -e "$PWD/" -e "$3/.cargo/" "$2"/bin/*
        then exit 1; fi"#;
    let home = std::env::var_os("HOME").expect("a home");
    let dir = tempfile::TempDir::new().expect("a place");
    shell(known, &[&the("-linux.tar.gz"), dir.path(), home.as_ref()]).ok();
}

#[test]
fn a_release_is_made_of_a_clean_clone_and_overwrites_nothing_else() {
    if !granted(&[Capability::Program("git")]) {
        return;
    }
    let clone = tempfile::TempDir::new().expect("a place");
    let made =
        r#"mkdir "$1/scripts" && cp scripts/release "$1/scripts" && cd "$1" && git init --quiet"#;
    shell(made, &[clone.path()]).ok();
    let refused = shell(r#"cd "$1" && scripts/release 2>&1"#, &[clone.path()]).exits(1);
    assert!(refused.stdout().contains("error: not a clean clone: ?? scripts/"), "{refused}");
    let mine =
        r#"cd "$1" && mkdir mine && echo text >mine/file && scripts/release --quick mine 2>&1"#;
    let refused = shell(mine, &[clone.path()]).exits(1);
    assert!(
        refused.stdout().contains("mine is something else: name an empty directory"),
        "{refused}"
    );
    assert!(clone.path().join("mine/file").is_file(), "it is still there");
    let refused = shell("scripts/release --fast 2>&1", &[]).exits(1);
    assert!(refused.stdout().contains("there is no option --fast"), "{refused}");
}
