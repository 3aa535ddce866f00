//! `spec/doctor.md` is what doctor does: which look finds a check, and how severe
//! it is, is taken from what doctor says about the broken repositories of these
//! tests, word for word in `golden/`. What a check means is its row's to say.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jvs_doctor::{Check, Depth, Family};

use crate::clinic::golden;
use crate::{faults, surroundings};

/// Shown by tests that are not in the tables of fixtures.
const ALSO_SHOWN: &[(Check, &str)] = &[
    (Check::FsTrash, "filesystem_trash"),
    (Check::Owner, "owner"),
    (Check::Unreadable, "unreadable"),
];

/// Ends the part of the page that people write.
const GENERATED: &str = "<!-- From here on: JVS_BLESS=1 -->\n";

/// Something that doctor reported: in which look, as what.
struct Reported<'s> {
    depth: Depth,
    severity: &'s str,
    code: &'s str,
}

/// What the looks of a story report, repaired or not.
fn reported(story: &str) -> Vec<Reported<'_>> {
    let mut depth = Depth::Full;
    let mut reported = Vec::new();
    for line in story.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            depth = if command == "jvs doctor" { Depth::Quick } else { Depth::Full };
        }
        let Some((severity, rest)) = line.split_once('[') else { continue };
        let Some((code, _)) = rest.split_once(']').filter(|(code, _)| code.starts_with("D_"))
        else {
            continue;
        };
        reported.push(Reported { depth, severity, code });
    }
    reported
}

/// The story reports `check` as soon as its row says, and nothing sooner.
#[track_caller]
pub(crate) fn assert_shown(check: Check, story: &str) {
    let all = reported(story);
    let first = all.iter().filter(|r| r.code == check.as_str()).map(|r| r.depth).min();
    assert_eq!(first, Some(check.depth()), "{check} is not found as its row says:\n{story}");
    let too_soon = Check::ALL.iter().filter(|check| check.depth() == Depth::Full);
    for check in too_soon {
        let soon = all.iter().any(|r| r.depth == Depth::Quick && r.code == check.as_str());
        assert!(!soon, "{check} is found by a quick look:\n{story}");
    }
}

fn shown() -> impl Iterator<Item = (Check, &'static str)> {
    faults::SHOWN.iter().chain(surroundings::SHOWN).chain(ALSO_SHOWN).copied()
}

/// One line of the reference, from what the stories of all fixtures report.
fn line(check: Check, stories: &[String]) -> String {
    let all: Vec<Reported<'_>> = stories
        .iter()
        .flat_map(|story| reported(story))
        .filter(|reported| reported.code == check.as_str())
        .collect();
    let quick = all.iter().any(|reported| reported.depth == Depth::Quick);
    let look = if quick { "every look" } else { "--strict" };
    let severities: BTreeSet<&str> =
        all.iter().map(|r| r.severity).filter(|severity| *severity != "repaired").collect();
    assert!(severities.contains(check.severity().as_str()), "{check} is only {severities:?}");
    let severities: Vec<&str> = severities.into_iter().collect();
    let mut line = format!(
        "- **DOCTOR-{}** `{check}` ({}, {look}): {}",
        check.id(),
        severities.join(" or "),
        check.meaning()
    );
    for (_, test) in shown().filter(|(shown, _)| *shown == check) {
        let _ = write!(line, " `test: {test}`");
    }
    line
}

#[test]
fn the_reference_of_checks_is_what_doctor_does() {
    let stories: Vec<String> = shown().map(|(_, test)| golden(test)).collect();
    let mut wanted = String::new();
    for family in Family::ALL {
        let _ = writeln!(wanted, "\n### {}\n", family.title());
        for check in Check::ALL.iter().filter(|check| check.family() == *family) {
            assert!(shown().any(|(shown, _)| shown == *check), "no fixture shows {check}");
            let _ = writeln!(wanted, "{}", line(*check, &stories));
        }
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("root");
    let page = root.join("spec/doctor.md");
    let text = fs_err::read_to_string(&page).expect("spec/doctor.md");
    let (written, listed) = text.split_once(GENERATED).expect("the mark is there");
    if std::env::var_os("JVS_BLESS").is_some() {
        fs_err::write(&page, format!("{written}{GENERATED}{wanted}")).expect("written");
        return;
    }
    assert_eq!(listed, wanted, "renew spec/doctor.md with JVS_BLESS=1, then read it");
}

#[test]
fn a_story_tells_which_look_reports_what() {
    let story = "$ jvs doctor\nerror[D_X] a: b\n= 12\n$ jvs doctor --strict\nnotice[D_Y] a: [c]\n";
    let seen: Vec<_> =
        reported(story).iter().map(|r| (r.depth, r.severity, r.code)).collect::<Vec<_>>();
    assert_eq!(seen, [(Depth::Quick, "error", "D_X"), (Depth::Full, "notice", "D_Y")]);
}
