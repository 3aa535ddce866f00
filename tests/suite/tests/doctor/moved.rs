//! Repositories whose registers were lost, restored from a backup, or left
//! behind when the repository moved.

use jvs_lock::State;
use jvs_repo::id::FencingToken;
use jvs_repo::layout;

use crate::clinic::{Clinic, main, side};

#[test]
fn a_repository_that_moved_without_its_locks_works_after_a_repair() {
    let clinic = Clinic::new();
    let before = clinic.state(&main());
    let destination = clinic.root.with_file_name("moved");
    let copy = std::process::Command::new("cp")
        .args(["-a"])
        .args([&clinic.root, &destination])
        .status()
        .expect("cp runs");
    assert!(copy.success());
    let moved = Clinic { root: destination, ..clinic };
    moved.remove(&layout::locks());

    moved.jvs(&["snapshot", "too early"]).exits(10);
    moved.jvs(&["doctor", "--strict"]).exits(12);
    moved.jvs(&["doctor", "--strict", "--repair"]).ok();
    let after = moved.state(&main());
    assert!(after.epoch.counter > before.epoch.counter && after.token > before.token);
    assert_eq!((after.head, after.generation), (before.head, before.generation));
    assert!(moved.state(&side()).head.is_none());

    fs_err::write(moved.root.join("main/three"), "three").expect("a file");
    moved.jvs(&["snapshot", "three"]).ok();
    moved.jvs(&["verify", "--all"]).ok();
    moved.jvs(&["audit", "--verify"]).ok();
    moved.jvs(&["doctor", "--strict"]).ok();
    let history = moved.jvs(&["history", "--json"]).ok().json();
    assert_eq!(history["data"]["snapshots"].as_array().map(Vec::len), Some(3), "{history}");
}

#[test]
fn a_register_from_a_backup_is_found_out_and_goes_on_above_all_that_was_seen() {
    let clinic = Clinic::new();
    let newest = clinic.state(&main());
    clinic.set_state(&main(), &clinic.earlier());
    clinic.jvs(&["doctor", "--repair"]).ok();
    let rebuilt = clinic.state(&main());
    assert_eq!(rebuilt.head, newest.head, "what was committed stays committed");
    assert!(rebuilt.token > newest.token && rebuilt.epoch.counter > newest.epoch.counter);
    clinic.jvs(&["doctor", "--repair"]).ok();
    assert_eq!(clinic.state(&main()), rebuilt, "once is enough");
}

#[test]
fn the_token_is_above_all_that_records_and_work_in_progress_remember() {
    let clinic = Clinic::new();
    clinic.jvs(&["lock", "acquire", "--no-keeper"]).ok();
    let held = clinic.state(&main());
    clinic.remove(&layout::register(&main()));
    clinic.remove(&clinic.logs().remove(0));
    clinic.jvs(&["doctor", "--repair"]);
    assert!(clinic.state(&main()).token > held.token, "the record remembered it");
}

#[test]
fn of_two_entries_the_one_with_more_commits_is_kept_and_without_a_winner_a_person_is_asked() {
    let clinic = Clinic::new();
    let newest = clinic.state(&main());
    clinic.add_state(&main(), &clinic.earlier());
    clinic.jvs(&["doctor", "--repair"]).ok();
    assert_eq!(clinic.state(&main()).head, newest.head);

    // Two heads that count as many commits, and both are visible.
    let clinic = Clinic::new();
    let newest = clinic.state(&main());
    let first = clinic.first();
    let rival = State { head: Some(first), token: FencingToken(1), ..newest };
    clinic.add_state(&main(), &rival);
    let asked = clinic.jvs(&["doctor", "--repair"]).exits(12);
    assert!(asked.stdout().contains("--head ID"), "{asked}");
    let head = newest.head.expect("a head").to_string();
    clinic.jvs(&["doctor", "--repair", "--head", &head]).ok();
    assert_eq!(clinic.state(&main()).head, newest.head);
}

#[test]
fn a_head_that_is_lost_for_good_can_be_given_up() {
    let clinic = Clinic::new();
    let (first, before) = (clinic.first(), clinic.state(&main()));
    clinic.remove(&layout::snapshot(clinic.head()));
    clinic.jvs(&["snapshot", "stuck"]).exits(11);
    let asked = clinic.jvs(&["doctor", "--repair"]).exits(12);
    assert!(asked.stdout().contains("--head ID"), "{asked}");
    assert_eq!(clinic.state(&main()).head, before.head, "nobody gave it up yet");
    let other = ["doctor", "--repair", "-w", "side", "--head", &first.to_string()];
    clinic.jvs(&other).exits(12);

    clinic.jvs(&["doctor", "--repair", "--head", &first.to_string()]).ok();
    let after = clinic.state(&main());
    assert_eq!(after.head, Some(first));
    assert!(after.epoch.counter > before.epoch.counter && after.token > before.token);
    clinic.jvs(&["snapshot", "three"]).ok();
    clinic.jvs(&["doctor", "--strict"]).ok();

    clinic.remove(&layout::snapshots());
    clinic.jvs(&["doctor", "--repair", "--head", "none"]).ok();
    assert_eq!(clinic.state(&main()).head, None);
    clinic.jvs(&["snapshot", "anew"]).ok();
    clinic.jvs(&["doctor", "--strict"]).ok();
}

#[test]
fn what_a_repair_sets_aside_is_kept() {
    let clinic = Clinic::new();
    clinic.write(&layout::worktree_record(&side()), "the last words");
    clinic.jvs(&["doctor", "--repair"]).ok();
    let mut kept = Vec::new();
    for repair in fs_err::read_dir(clinic.at(&layout::quarantine())).expect("quarantine") {
        let file = repair.expect("an entry").path().join("side.json");
        kept.push(fs_err::read_to_string(file).expect("kept under its name"));
    }
    assert_eq!(kept, ["the last words"]);
}

#[test]
fn a_dry_run_changes_nothing() {
    let clinic = Clinic::new();
    clinic.remove(&layout::register(&main()));
    clinic.write(&layout::lock_record(&side()), "{");
    let tree = |clinic: &Clinic| {
        let mut listed = std::process::Command::new("find");
        listed.arg(&clinic.root).args(["-printf", "%p %y %s %T@\n"]);
        String::from_utf8(listed.output().expect("find runs").stdout).expect("text")
    };
    let before = tree(&clinic);
    for args in [&["doctor"] as &[&str], &["doctor", "--repair", "--dry-run"]] {
        clinic.jvs(args).exits(12);
        assert_eq!(tree(&clinic), before, "{args:?}");
    }
}

#[test]
fn doctors_that_repair_at_once_leave_one_register_with_one_entry() {
    for ruin in ["missing", "two", "back"] {
        let clinic = Clinic::new();
        let newest = clinic.state(&main());
        match ruin {
            "missing" => clinic.remove(&layout::register(&main())),
            "two" => clinic.add_state(&main(), &clinic.earlier()),
            _ => clinic.set_state(&main(), &clinic.earlier()),
        }
        std::thread::scope(|scope| {
            for number in 0..4 {
                let clinic = &clinic;
                scope.spawn(move || {
                    let session = format!("doctor-{number}");
                    let doctor = clinic.home.jvs(["doctor", "--repair"]);
                    let seen = doctor.cwd(clinic.root.join("main")).session(&session).run();
                    assert!([0, 12].contains(&seen.code()), "{seen}");
                });
            }
        });
        clinic.jvs(&["doctor", "--strict"]).ok();
        assert_eq!(clinic.state(&main()).head, newest.head, "{ruin}");
    }
}
