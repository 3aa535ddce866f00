//! A register whose entry somebody renamed: told right away, after one honest
//! command and after several, whatever was changed. Nothing that is done later makes
//! it invisible.

use std::path::Path;

use jvs_kit::live::home::Home;
use jvs_lock::{Hold, State};
use jvs_repo::layout;

use crate::clinic::{Clinic, main};

/// A field of a state's name, counted from 0, and what is put there.
pub(crate) struct Forgery {
    pub(crate) what: &'static str,
    field: usize,
    text: &'static str,
}

const fn forgery(what: &'static str, field: usize, text: &'static str) -> Forgery {
    Forgery { what, field, text }
}

pub(crate) const ANYWHERE: &[Forgery] = &[
    forgery("the format of before", 0, "1"),
    forgery("a later life", 1, "2-0000"),
    forgery("another life", 1, "1-0000"),
    forgery("the life before the first", 1, "0-0000"),
    forgery("the last life there is", 1, "4294967295-0000"),
    forgery("the first token", 2, "0"),
    forgery("the token before", 2, "1"),
    forgery("a later token", 2, "100"),
    forgery("the last token", 2, "9223372036854775807"),
    forgery("a token beyond the last", 2, "18446744073709551615"),
    forgery("the first place", 3, "0"),
    forgery("an earlier place", 3, "2"),
    forgery("a later place", 3, "60"),
    forgery("the last place", 3, "9223372036854775807"),
    forgery("no commits", 8, "0"),
    forgery("one commit less", 8, "1"),
    forgery("one commit more", 8, "3"),
    forgery("the last commit", 8, "9223372036854775807"),
    forgery("a commit beyond the last", 8, "18446744073709551615"),
    forgery("no head", 9, "none"),
    forgery("another head", 9, "1700000000000-00000001"),
    forgery("another chain", 10, "0000000000000000"),
    forgery("another operation", 11, "0000000000000000"),
];

pub(crate) const OF_A_HOLD: &[Forgery] = &[
    forgery("another holder", 5, "00000000000000000000000000000001"),
    forgery("a shorter lease", 6, "1"),
    forgery("a longer lease", 6, "31000000000"),
    forgery("a lease that is over", 7, "1"),
    forgery("a lease without end", 7, "99999999999999"),
    forgery("a freeze", 4, "frozen"),
];

const OF_A_FREE_LOCK: &[Forgery] = &[forgery("a removed worktree", 4, "retired")];

/// Renames the entry of the register of `main` below `root`.
pub(crate) fn forge(root: &Path, state: &State, forgery: &Forgery) -> bool {
    let dir = root.join(layout::register(&main()).as_str());
    let name = state.to_string();
    let mut fields: Vec<&str> = name.split('.').collect();
    fields[forgery.field] = forgery.text;
    let forged = fields.join(".");
    if forged == name {
        return false;
    }
    fs_err::rename(dir.join(name), dir.join(forged)).expect("renamed");
    true
}

/// Both tell of it: `audit --verify` and `doctor --strict`.
#[track_caller]
fn is_told(home: &Home, root: &Path, what: &str, when: &str) {
    let jvs = |args: &[&str]| home.jvs(args).cwd(root.join("main")).run();
    let verify = jvs(&["audit", "--verify"]);
    assert!([10, 11].contains(&verify.code()), "{what}, {when}:\n{verify}");
    let doctor = jvs(&["doctor", "--strict"]);
    assert_eq!(doctor.code(), 12, "{what}, {when}:\n{doctor}");
}

fn every_forgery_is_told(clinic: &Clinic, forgeries: &[Forgery]) -> u32 {
    let mut tried = 0;
    let state = clinic.state(&main());
    for forgery in forgeries {
        let copy = crate::clinic::directory();
        let root = copy.path().join("r");
        let mut cp = std::process::Command::new("cp");
        assert!(cp.arg("-a").arg(&clinic.root).arg(&root).status().expect("cp").success());
        if !forge(&root, &state, forgery) {
            continue;
        }
        tried += 1;
        let jvs = |args: &[&str]| clinic.home.jvs(args).cwd(root.join("main")).run();
        is_told(&clinic.home, &root, forgery.what, "right after");
        // What comes of them depends on what was forged; that it shows does not.
        jvs(&["lock", "acquire", "--no-keeper"]);
        is_told(&clinic.home, &root, forgery.what, "after an acquire");
        for honest in [
            &["snapshot", "three"][..],
            &["lock", "release"],
            &["snapshot", "four"],
            &["lock", "acquire", "--no-keeper"],
            &["lock", "renew"],
            &["lock", "release"],
        ] {
            jvs(honest);
        }
        is_told(&clinic.home, &root, forgery.what, "after several commands");
    }
    tried
}

#[test]
fn whatever_is_forged_in_a_free_register_is_told_for_ever() {
    let clinic = Clinic::new();
    assert_eq!(clinic.state(&main()).hold, Hold::Free);
    let tried = every_forgery_is_told(&clinic, ANYWHERE);
    assert_eq!(tried + every_forgery_is_told(&clinic, OF_A_FREE_LOCK), 24);
}

#[test]
fn whatever_is_forged_in_a_held_register_is_told_for_ever() {
    let clinic = Clinic::new();
    clinic.jvs(&["lock", "acquire", "--no-keeper"]).ok();
    clinic.jvs(&["lock", "renew"]).ok();
    let tried = every_forgery_is_told(&clinic, ANYWHERE);
    assert_eq!(tried + every_forgery_is_told(&clinic, OF_A_HOLD), 29);
}

/// A way out: the register gets a new life above all that was seen, and what was
/// forged stays to be seen.
#[test]
fn a_forged_register_is_rebuilt_above_all_tokens_and_stays_told() {
    let clinic = Clinic::new();
    let token = forgery("a later token", 2, "100");
    assert!(forge(&clinic.root, &clinic.state(&main()), &token));
    clinic.jvs(&["lock", "acquire", "--no-keeper"]).ok();
    clinic.jvs(&["lock", "release"]).ok();
    clinic.jvs(&["doctor", "--strict", "--repair"]).ok();
    let state = clinic.state(&main());
    assert!(state.token.0 > 101 && state.epoch.counter == 2, "{state}");
    let doctor = clinic.jvs(&["doctor", "--strict"]).ok();
    assert!(doctor.stdout().contains("notice[D_AUDIT_FORGED]"), "{doctor}");
    assert_eq!(clinic.jvs(&["audit", "--verify"]).code(), 11, "evidence stays evidence");
}
