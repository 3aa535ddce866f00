//! `spec/doctor.md` is what the code does: every check, its severity, when it is
//! looked for, what it means, and the test that shows it.

use jvs_doctor::{Check, Depth};

use crate::{faults, surroundings};

/// Shown by tests that are not in the tables of fixtures.
const ALSO_SHOWN: &[(Check, &str)] = &[
    (Check::FsTrash, "filesystem_trash"),
    (Check::Owner, "owner"),
    (Check::Unreadable, "unreadable"),
];

fn test_of(check: Check) -> Option<&'static str> {
    let all = faults::SHOWN.iter().chain(surroundings::SHOWN).chain(ALSO_SHOWN);
    all.into_iter().find(|(shown, _)| *shown == check).map(|(_, test)| *test)
}

#[test]
fn the_reference_of_checks_is_what_the_code_does() {
    let mut wanted = Vec::new();
    for (number, check) in Check::ALL.iter().enumerate() {
        let test = test_of(*check).unwrap_or_else(|| panic!("no fixture shows {check}"));
        let look = if check.depth() == Depth::Quick { "every look" } else { "--strict" };
        wanted.push(format!(
            "- **DOCTOR-{}** `{check}` ({}, {look}): {} `test: {test}`",
            number + 1,
            check.severity().as_str(),
            check.meaning()
        ));
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("root");
    let text = std::fs::read_to_string(root.join("spec/doctor.md")).expect("spec/doctor.md");
    let listed: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("- **DOCTOR-") && line.contains("`D_"))
        .collect();
    assert_eq!(listed, wanted, "\npaste into spec/doctor.md:\n{}\n", wanted.join("\n"));
}
