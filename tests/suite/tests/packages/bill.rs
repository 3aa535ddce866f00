//! The bill of materials, and the notices that go with it.

use std::collections::BTreeSet;

use jvs_kit::live::capability::{Capability, granted};
use serde_json::Value;
use tempfile::TempDir;

use crate::made::{shell, the};

fn bill() -> Value {
    let text = fs_err::read_to_string(the(".cdx.json")).expect("the bill");
    serde_json::from_str(&text).expect("JSON")
}

fn list<'v>(value: &'v Value, name: &str) -> &'v Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("no list {name}"))
}

#[test]
fn the_bill_of_materials_is_what_its_schema_says() {
    if !granted(&[Capability::Packages, Capability::CycloneDx]) {
        return;
    }
    let check = r#"target/venv/bin/python - "$1" <<'PYTHON'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
validator = JsonStrictValidator(SchemaVersion.V1_5)
text = open(sys.argv[1], encoding="utf-8").read()
wrong = validator.validate_str(text)
assert wrong is None, wrong
assert validator.validate_str(text.replace('"purl"', '"puhrl"')) is not None, "anything is right"
PYTHON"#;
    shell(check, &[&the(".cdx.json")]).ok();
}

#[test]
fn the_bill_names_what_is_linked_and_nothing_else() {
    if !granted(&[Capability::Packages]) {
        return;
    }
    let bill = bill();
    let components = list(&bill, "components");
    let refs: BTreeSet<&str> =
        components.iter().filter_map(|component| component["bom-ref"].as_str()).collect();
    assert_eq!(refs.len(), components.len(), "each once");
    let named = |name: &str| components.iter().any(|component| component["name"] == name);
    for linked in ["jvs", "jvs-mcp", "jvs-kernel", "clap_builder", "rustix", "rmcp", "tokio"] {
        assert!(named(linked), "{linked} is linked");
    }
    for tool in ["jvs-kit", "jvs-suite", "serde_derive", "syn", "tempfile", "fs-err", "criterion"] {
        assert!(!named(tool), "{tool} is in no program");
    }
    for component in components {
        let ours = component["name"].as_str().is_some_and(|name| name.starts_with("jvs"));
        let from_registry = component["purl"].is_string() && !ours;
        assert_eq!(component["hashes"][0]["content"].is_string(), from_registry, "{component}");
    }
    for entry in list(&bill, "dependencies") {
        for needed in list(entry, "dependsOn") {
            let needed = needed.as_str().expect("a name");
            assert!(refs.contains(needed), "{needed} is no component");
        }
    }
    let mcp = list(&bill, "dependencies").iter().find(|entry| {
        entry["ref"].as_str().is_some_and(|name| name.starts_with("pkg:cargo/jvs-mcp@"))
    });
    let needs = mcp.expect("the server").to_string();
    assert!(needs.contains("pkg:cargo/rmcp@") && !needs.contains("pkg:cargo/clap@"), "{needs}");
}

#[test]
fn every_archive_has_the_notices_of_everything_in_it() {
    if !granted(&[Capability::Packages, Capability::Program("dpkg-shlibdeps")]) {
        return;
    }
    let notices: [(&str, _); 3] = [
        (r#"tar -xzOf "$1" --wildcards '*/THIRD-PARTY.txt'"#, the("-linux.tar.gz")),
        (
            r#"mkdir "$2/wheel" && python3 -m zipfile -e "$1" "$2/wheel" &&
                cat "$2"/wheel/*.dist-info/THIRD-PARTY.txt"#,
            the(".whl"),
        ),
        (
            r#"dpkg-deb --fsys-tarfile "$1" |
                tar -xOf - ./usr/share/doc/jvs/THIRD-PARTY.txt.gz | gunzip"#,
            the(".deb"),
        ),
    ];
    let (bill, dir) = (bill(), TempDir::new().expect("a place"));
    for (unpack, archive) in notices {
        let text = shell(unpack, &[&archive, dir.path()]).ok();
        let lines: BTreeSet<&str> = text.stdout().lines().collect();
        for component in list(&bill, "components").iter().filter(|it| it["hashes"].is_array()) {
            let (name, version) = (component["name"].as_str(), component["version"].as_str());
            let begin = format!("{} {}: ", name.expect("a name"), version.expect("a version"));
            let named = lines.iter().any(|line| line.starts_with(&begin));
            assert!(named, "{}: {begin}", archive.display());
        }
    }
}
