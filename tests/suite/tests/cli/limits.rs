//! Logs that somebody filled, words that are too long, answers that nobody can write,
//! files that may not grow: what is told, and what goes on all the same.
#![allow(clippy::disallowed_methods, reason = "plays the vandal and the witness")]

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::process::Outcome;
use jvs_repo::layout;

struct World {
    home: Home,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = World { home: Home::new(), dir: tempfile::tempdir().expect("a directory") };
        world.home.jvs(["init"]).arg(world.root()).run().ok();
        world
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("it has a path").join("r")
    }

    fn main(&self) -> PathBuf {
        self.root().join("main")
    }

    fn command(&self, args: &[&str]) -> Jvs {
        self.home.jvs(args).cwd(self.main()).session("s")
    }

    fn jvs(&self, args: &[&str]) -> Outcome {
        self.command(args).run()
    }

    /// The logs, in the order of their names.
    fn logs(&self) -> Vec<PathBuf> {
        let dir = self.root().join(layout::audit().as_str());
        let mut logs: Vec<_> =
            dir.read_dir().expect("listed").map(|e| e.expect("entry").path()).collect();
        logs.sort();
        logs
    }

    /// The log of session `s`.
    fn log(&self) -> PathBuf {
        let before = self.logs();
        self.jvs(&["lock", "acquire", "--no-keeper"]).ok();
        self.jvs(&["lock", "release"]).ok();
        let mut new = self.logs().into_iter().filter(|log| !before.contains(log));
        new.next().expect("its first event made it")
    }
}

#[test]
fn a_log_of_fifty_gigabytes_of_nothing_keeps_nobody_from_locking_and_is_named() {
    let world = World::new();
    let log = world.log();
    let file = std::fs::OpenOptions::new().write(true).open(&log).expect("opened");
    file.set_len(50 << 30).expect("sparse");
    // As much memory as any command needs, and no more.
    let limited = |args: &[&str]| {
        let limit = ["sh", "-c", "ulimit -v 1000000; exec \"$@\"", "sh"];
        world.command(args).under(limit).run()
    };
    for args in [
        &["lock", "acquire", "--no-keeper"][..],
        &["lock", "renew"],
        &["snapshot", "one"],
        &["lock", "release"],
    ] {
        limited(args).ok();
    }
    let name = log.file_stem().expect("a name").to_string_lossy().into_owned();
    let verify = limited(&["audit", "--verify"]).exits(11);
    assert!(verify.stderr().contains(&name), "{verify}");
    let doctor = limited(&["doctor", "--strict"]).exits(12);
    assert!(doctor.stdout().contains(&name), "{doctor}");
    assert_eq!(file.metadata().expect("there").len(), 50 << 30, "it stays as it is");
}

#[test]
fn a_manifest_of_two_hundred_gigabytes_of_nothing_is_not_read_to_its_end() {
    let world = World::new();
    world.jvs(&["snapshot", "one"]).ok();
    let id = world.jvs(&["info", "--json"]).ok().json()["data"]["snapshot_id"].clone();
    let id = id.as_str().expect("an id").parse().expect("an id");
    let manifest = world.root().join(layout::manifest(&layout::snapshot(id)).as_str());
    let file = std::fs::OpenOptions::new().write(true).open(manifest).expect("opened");
    file.set_len(200 << 30).expect("sparse");
    let doctor = world.jvs(&["doctor", "--strict"]).exits(12);
    assert!(doctor.stdout().contains("[D_MANIFEST_CORRUPT]"), "{doctor}");
}

/// A worktree that is removed while the logs are verified is no missing register.
#[test]
fn the_logs_are_verified_beside_worktrees_that_come_and_go() {
    let world = World::new();
    std::thread::scope(|scope| {
        let come_and_go = scope.spawn(|| {
            for _ in 0..8 {
                world.jvs(&["worktree", "create", "x"]).ok();
                world.jvs(&["worktree", "remove", "x", "--force"]).ok();
            }
        });
        while !come_and_go.is_finished() {
            world.command(&["audit", "--verify"]).session("t").run().ok();
        }
    });
}

#[test]
fn what_is_told_of_a_log_full_of_rubbish_is_bounded() {
    let world = World::new();
    let mut log = std::fs::OpenOptions::new().append(true).open(world.log()).expect("opened");
    log.write_all(&vec![b'\n'; 70_000]).expect("written");
    let verify = world.jvs(&["audit", "--verify"]).exits(11);
    assert!(verify.stderr().len() < 10_000, "{}", verify.stderr().len());
    let json = world.jvs(&["audit", "--verify", "--json"]).exits(11);
    assert!(json.stdout().len() < 1_000_000, "{}", json.stdout().len());
    let details = &json.json()["error"]["details"];
    let told = details["problems"].as_array().expect("told").len() as u64;
    assert_eq!(told + details["more_problems"].as_u64().expect("counted"), 70_000);
}

#[test]
fn one_log_that_cannot_be_read_is_named_and_condemns_no_other() {
    let world = World::new();
    let log = world.log();
    std::fs::remove_file(&log).expect("removed");
    std::fs::create_dir(&log).expect("made");
    let name = log.file_name().expect("a name").to_string_lossy().into_owned();
    let verify = world.jvs(&["audit", "--verify"]).exits(1);
    assert!(verify.stderr().contains("error[E_IO]"), "{verify}");
    assert!(verify.stderr().contains(&name), "{verify}");
    let doctor = world.jvs(&["doctor", "--strict"]).exits(12);
    assert!(doctor.stdout().contains("[D_UNREADABLE]"), "{doctor}");
    assert!(
        doctor.stdout().contains(&name) && !doctor.stdout().contains("D_AUDIT_GAP"),
        "{doctor}"
    );
    let audit = world.jvs(&["audit"]).ok();
    assert!(audit.stdout().contains("create") && audit.stderr().contains(&name), "{audit}");
}

#[test]
fn words_that_are_too_long_are_refused_and_never_cut() {
    let world = World::new();
    let (note, reason) = ("n".repeat(257), "r".repeat(20_000));
    for args in [
        &["lock", "acquire", "--no-keeper", "--note", &note][..],
        &["lock", "steal", "--reason", &reason],
        &["lock", "freeze", "--for", "1s", "--reason", &note],
        &["run", "--note", &note, "--", "true"],
    ] {
        let refused = world.jvs(args).exits(64);
        assert!(refused.stderr().contains("error[E_USAGE]"), "{refused}");
        assert!(refused.stderr().contains("bytes"), "{refused}");
    }
    let free = world.jvs(&["lock", "status"]).ok();
    assert!(free.stdout().contains("free"), "{free}");
    let longest = "n".repeat(256);
    world.jvs(&["lock", "acquire", "--no-keeper", "--note", &longest]).ok();
    let status = world.jvs(&["lock", "status", "--json"]).ok().json();
    assert!(status.to_string().contains(&longest), "all of it is kept");
}

#[test]
fn an_answer_that_cannot_be_written_does_not_hide_that_it_was_done() {
    let world = World::new();
    let full = ["sh", "-c", "exec \"$@\" >/dev/full", "sh"];
    for args in [&["lock", "acquire", "--no-keeper"][..], &["snapshot", "one", "--json"]] {
        let told = world.command(args).under(full).run().exits(1);
        assert!(told.stderr().contains("the command was done"), "{told}");
    }
    assert!(world.jvs(&["lock", "status"]).ok().stdout().contains("held"));
    assert!(world.jvs(&["history"]).ok().stdout().contains("one"));
}

#[test]
fn a_file_that_may_not_grow_is_an_error_that_is_told() {
    let world = World::new();
    let tight = ["sh", "-c", "ulimit -f 0; exec \"$@\"", "sh"];
    let told = world.command(&["snapshot", "one"]).under(tight).run();
    assert_eq!(told.signal(), None, "{told}");
    assert_eq!(told.code(), 1, "{told}");
    world.jvs(&["snapshot", "two"]).ok();
    // What is run has the limit as it would have it without us.
    let inherits = "trap '' XFSZ 2>/dev/null; ulimit -f unlimited; exec \"$@\"";
    world.command(&["run", "--", "true"]).under(["sh", "-c", inherits, "sh"]).run().ok();
}

#[test]
fn a_home_directory_does_not_become_a_worktree() {
    let world = World::new();
    let home = world.home.home_dir();
    std::fs::create_dir_all(home.join(".ssh")).expect("made");
    for place in [home.clone(), home.parent().expect("above").to_owned(), "/etc".into()] {
        for words in [&["init"][..], &["init", "--adopt"]] {
            let refused = world.home.jvs(words).arg(&place).run().exits(64);
            assert!(refused.stderr().contains("would become worktree main"), "{refused}");
            assert!(!refused.stderr().contains("--adopt"), "{refused}");
        }
    }
    assert!(home.join(".ssh").is_dir() && !home.join("main").exists());
}

#[test]
fn a_program_is_told_paths_that_it_can_open() {
    let world = World::new();
    world.jvs(&["snapshot", "nothing yet"]).ok();
    let odd = std::ffi::OsStr::from_bytes(b"a\nb\xff");
    std::fs::write(world.main().join(odd), "x").expect("written");
    std::fs::write(world.main().join("plain"), "x").expect("written");
    let told = world.jvs(&["diff", "--json"]).ok().json();
    let told = told["data"]["differences"].as_array().expect("a list").clone();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0]["path_base64"], "YQpi/w==");
    assert!(told[0]["path"].as_str().is_some_and(|path| !path.contains('\n')), "escaped as before");
    assert_eq!(told[1]["path"], "plain");
    assert!(told[1].get("path_base64").is_none(), "what is plain needs no second spelling");
}

#[test]
fn a_token_that_is_handed_down_is_one_of_its_life() {
    let world = World::new();
    let jvs = world.command(&[]).command().get_program().to_owned();
    let script = "\"$0\" lock renew && JVS_FENCING_EPOCH=1-0000 \"$0\" lock renew; \
                  env -u JVS_FENCING_EPOCH \"$0\" lock renew";
    let told = world.command(&["run", "--", "sh", "-c", script]).arg(jvs).run().ok();
    let renewed = told.stdout().matches("Renewed").count();
    assert_eq!(renewed, 2, "with its life, and in the old form without: {told}");
    assert!(told.stderr().contains("error[E_FENCING_MISMATCH]"), "{told}");
    world
        .command(&["lock", "renew"])
        .env("JVS_FENCING_TOKEN", "1")
        .env("JVS_FENCING_EPOCH", "x")
        .run()
        .exits(1);
}
