//! Logs that somebody filled, words that are too long, answers that nobody can write,
//! files that may not grow: what is told, and what goes on all the same.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::mount::Covered;
use jvs_kit::live::process::Outcome;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

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
    let file = fs_err::OpenOptions::new().write(true).open(&log).expect("opened");
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
    let file = fs_err::OpenOptions::new().write(true).open(manifest).expect("opened");
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
    let mut log = fs_err::OpenOptions::new().append(true).open(world.log()).expect("opened");
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
    fs_err::remove_file(&log).expect("removed");
    fs_err::create_dir(&log).expect("made");
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
    fs_err::create_dir_all(home.join(".ssh")).expect("made");
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
    fs_err::write(world.main().join(odd), "x").expect("written");
    fs_err::write(world.main().join("plain"), "x").expect("written");
    let told = world.jvs(&["diff", "--json"]).ok().json();
    let told = told["data"]["differences"].as_array().expect("a list").clone();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0]["path_bytes"], "YQpi/w==");
    assert!(told[0]["path"].as_str().is_some_and(|path| !path.contains('\n')), "escaped as before");
    assert_eq!(told[1]["path"], "plain");
    assert!(told[1].get("path_bytes").is_none(), "what is plain needs no second spelling");
}

#[test]
fn a_token_that_is_handed_down_is_one_of_its_life() {
    let world = World::new();
    let jvs = world.command(&[]).command().get_program().to_owned();
    let script = "\"$0\" lock renew && JVS_FENCING_EPOCH=1-0000 \"$0\" lock renew; \
                  JVS_FENCING_EPOCH=1-0000 \"$0\" snapshot; \
                  JVS_FENCING_EPOCH=1-0000 \"$0\" run true; \
                  env -u JVS_FENCING_EPOCH \"$0\" lock renew";
    let told = world.command(&["run", "--", "sh", "-c", script]).arg(jvs).run().ok();
    let renewed = told.stdout().matches("Renewed").count();
    assert_eq!(renewed, 2, "with its life, and in the old form without: {told}");
    let refused = told.stderr().matches("error[E_FENCING_MISMATCH]").count();
    assert_eq!(refused, 3, "a renewal, a snapshot and a run: {told}");
    world
        .command(&["lock", "renew"])
        .env("JVS_FENCING_TOKEN", "1")
        .env("JVS_FENCING_EPOCH", "x")
        .run()
        .exits(1);
}

#[test]
fn a_register_that_is_busy_is_told_as_unknown_and_works_when_it_is_not() {
    if !granted(&[Capability::Root]) {
        return;
    }
    let world = World::new();
    let register = world.root().join(layout::register(&WorktreeName::main()).as_str());
    let mut entries = register.read_dir().expect("listed");
    let entry = entries.next().expect("an entry").expect("listed").path();
    // What something is mounted on cannot be renamed: EBUSY.
    let busy = Covered::with(&entry, &entry);
    let refused = world.jvs(&["lock", "acquire", "--no-keeper"]).exits(1);
    assert!(refused.stderr().contains("E_OUTCOME_UNKNOWN"), "{refused}");
    drop(busy);
    world.jvs(&["lock", "acquire", "--no-keeper"]).ok();
    world.jvs(&["audit", "--verify"]).ok();
}

#[test]
fn a_register_entry_that_is_not_text_is_named_and_can_be_taken_away() {
    let world = World::new();
    world.jvs(&["snapshot", "one"]).ok();
    let register = layout::register(&WorktreeName::main());
    let odd = |name: &[u8]| {
        let path = world.root().join(register.as_str()).join(OsStr::from_bytes(name));
        fs_err::write(path, "").expect("written");
    };
    // Dot-names are not counted, whatever their bytes are.
    odd(b".\xff");
    world.jvs(&["lock", "status"]).ok();
    odd(b"x\xffy");
    for args in [&["lock", "status"][..], &["lock", "acquire"], &["snapshot", "two"], &["history"]]
    {
        let refused = world.jvs(args).exits(10);
        assert!(refused.stderr().contains("E_FENCE_CORRUPT"), "{refused}");
        assert!(refused.stderr().contains("'x\\xffy' is not a state"), "{refused}");
    }
    let doctor = world.jvs(&["doctor", "--strict", "--repair"]).exits(12);
    let by_hand = format!("rm $'{register}/x\\xffy'");
    assert!(doctor.stdout().contains(&by_hand), "{doctor}");
    let mut bash = std::process::Command::new("bash");
    bash.arg("-c").arg(&by_hand).current_dir(world.root());
    jvs_kit::live::process::run(bash, std::time::Duration::from_secs(30)).ok();
    world.jvs(&["snapshot", "two"]).ok();
    world.jvs(&["doctor", "--strict"]).ok();
}

#[test]
fn names_that_are_not_text_stop_nobody_and_are_told_of() {
    let world = World::new();
    world.jvs(&["lock", "acquire", "--no-keeper"]).ok();
    let main = WorktreeName::main();
    let queue = layout::queue(&main);
    fs_err::create_dir_all(world.root().join(queue.as_str())).expect("made");
    let dirs = layout::skeleton().into_iter().chain([layout::control_dir(), queue]);
    let odd = OsStr::from_bytes(b"x\xffy");
    let dirs: Vec<_> = dirs.map(|dir| dir.to_string()).collect();
    for dir in &dirs {
        fs_err::write(world.root().join(dir).join(odd), "").expect("written");
    }
    let private = world.home.home_dir();
    let mut below = vec![private];
    while let Some(dir) = below.pop() {
        fs_err::write(dir.join(odd), "").expect("written");
        let entries = dir.read_dir().expect("listed").map(|entry| entry.expect("listed").path());
        below.extend(entries.filter(|path| path.is_dir()));
    }
    for args in [
        &["lock", "status"][..],
        &["snapshot", "one"],
        &["tag", "--list"],
        &["worktree", "create", "w"],
        &["worktree", "rename", "w", "x"],
        &["worktree", "remove", "x"],
        &["gc"],
        &["audit", "--verify"],
        &["lock", "release"],
    ] {
        world.jvs(args).ok();
    }
    let doctor = world.jvs(&["doctor", "--strict"]).ok();
    for dir in &dirs {
        assert!(doctor.stdout().contains(&format!("{dir}/x\\xffy")), "{dir}: {doctor}");
    }
}

#[test]
fn what_a_killed_tag_leaves_is_no_tag_and_doctor_knows_it() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let world = World::new();
    let made = world.command(&["snapshot", "one", "--json"]).run().json();
    let id = made["data"]["snapshot_id"].as_str().expect("an id").to_owned();
    let killed = ["strace", "-f", "-o", "/dev/null", "-e"];
    let killed = world.command(&["tag", &id, "v1"]).under(killed);
    killed.under(["inject=/^rename:signal=KILL:when=1"]).run();
    let left: Vec<_> =
        world.root().join(layout::tags().as_str()).read_dir().expect("listed").collect();
    let [Ok(left)] = &left[..] else { panic!("one file is left: {left:?}") };
    let left = format!("{}/{}", layout::tags(), left.file_name().to_string_lossy());
    assert_eq!(world.jvs(&["tag", "--list"]).ok().stdout(), "No tags\n");
    // Nothing proves that its writer is dead; but nobody is left alone with it.
    let told = world.jvs(&["doctor", "--strict", "--repair"]).ok();
    assert!(told.stdout().contains(&format!("rm {left}")), "{told}");
    assert!(world.root().join(&left).exists());
    // It can only become a tag that is there already.
    world.jvs(&["tag", &id, "v1"]).ok();
    world.jvs(&["doctor", "--strict", "--repair"]).ok();
    assert!(!world.root().join(&left).exists(), "{left}");
    assert!(world.jvs(&["tag", "--list", "--json"]).ok().stdout().contains(&id));
}

#[test]
fn a_hundred_thousand_files_of_others_are_one_finding_and_stop_nobody() {
    const MANY: usize = 100_000;
    let world = World::new();
    const FEWER: usize = 5_000;
    for (dir, many) in [(layout::locks(), MANY), (layout::worktree_records(), FEWER)] {
        let dir = world.root().join(dir.as_str());
        for n in 0..many {
            drop(fs_err::File::create(dir.join(format!("junk-{n}"))).expect("made"));
        }
    }
    let limited = |args: &[&str]| {
        let limit = ["sh", "-c", "ulimit -v 1000000; exec \"$@\"", "sh"];
        world.command(args).under(limit).run().ok()
    };
    for args in [
        &["lock", "acquire", "--no-keeper"][..],
        &["lock", "list"],
        &["snapshot", "one"],
        &["lock", "release"],
        &["worktree", "create", "w"],
        &["worktree", "list"],
        &["worktree", "rename", "w", "x"],
        &["worktree", "remove", "x"],
        &["gc"],
        &["audit", "--verify"],
    ] {
        limited(args);
    }
    let doctor = limited(&["doctor", "--strict"]);
    for many in [MANY, FEWER] {
        assert!(doctor.stdout().contains(&format!("{many} of them")), "{}", doctor.stdout());
    }
    assert!(doctor.stdout().lines().count() < 20, "{}", doctor.stdout().len());
}

/// Whatever somebody who can write to the control directory puts there in masses: every
/// command goes on within its memory, and what doctor says of it can be read.
#[test]
fn a_crowd_of_any_kind_costs_no_memory_and_is_told_in_a_few_lines() {
    const MANY: usize = 20_000;
    // What earns an answer of its own is rarer.
    const SOME: usize = 1_500;
    let record = include_str!("../../../../jvs-repo/src/record/golden/worktree_plain.json");
    // As long as a record may be that is searched for a flipped bit, and not as sealed.
    let altered = format!("{{\"checksum\":\"sha256:{:064}\",\"x\":\"{:01900}\"}}", 0, 0);
    let records = |content: String| (SOME, layout::worktree_records(), ".json", Some(content));
    for (many, dir, end, content) in [
        records("x".to_owned()),
        records(record.to_owned()),
        records(altered),
        (SOME, layout::locks(), ".fence", None),
        (MANY, layout::locks(), ".lock", Some(String::new())),
        (MANY, layout::snapshots(), "", Some(String::new())),
        (MANY, layout::staging(), "", Some(String::new())),
        (MANY, layout::audit(), ".jsonl", Some(String::new())),
        (MANY, layout::tags(), ".json", Some(String::new())),
        (MANY, layout::queue(&WorktreeName::main()), "", Some(String::new())),
    ] {
        let world = World::new();
        let into = world.root().join(dir.as_str());
        fs_err::create_dir_all(&into).expect("made");
        for n in 0..many {
            let path = into.join(format!("junk-{n}{end}"));
            match &content {
                Some(content) => fs_err::write(path, content).expect("written"),
                None => fs_err::create_dir(path).expect("made"),
            }
        }
        let limited = |args: &[&str]| {
            let limit = ["sh", "-c", "ulimit -v 300000; exec \"$@\"", "sh"];
            world.command(args).under(limit).run()
        };
        for args in [
            &["lock", "acquire", "--no-keeper"][..],
            &["snapshot", "one"],
            &["lock", "release"],
            &["lock", "status"],
            &["worktree", "list"],
            &["tag", "--list"],
        ] {
            limited(args).ok();
        }
        // What is needed is not known while a register or a tag is not.
        let gc = limited(&["gc"]);
        let refused = ["E_FENCE_CORRUPT", "E_RECORD_INVALID"];
        let refused = refused.iter().any(|code| gc.stderr().contains(code));
        assert!(gc.code() == 0 || refused, "{dir} {end}: {gc}");
        for args in [&["doctor", "--strict", "--dry-run"][..], &["doctor", "--strict"]] {
            let doctor = limited(args);
            assert!([0, 12].contains(&doctor.code()), "{dir} {end}: {doctor}");
            let told = doctor.stdout();
            assert!(told.contains(&format!("{many} of them")), "{dir} {end}: {told}");
            assert!(told.lines().count() < 30, "{dir} {end}: {}", told.lines().count());
        }
    }
}

/// A repair that waited for the log in vain does not wait as long for each of the others:
/// that would be more than a command is given here.
#[test]
fn a_process_that_is_stuck_at_the_log_is_waited_for_once_and_not_for_each_repair() {
    let world = World::new();
    let names: Vec<_> = (0..8).map(|n| format!("w{n}")).collect();
    for name in &names {
        world.jvs(&["worktree", "create", name]).ok();
    }
    for name in &names {
        let record = layout::worktree_record(&name.parse().expect("a name"));
        fs_err::remove_file(world.root().join(record.as_str())).expect("removed");
    }
    let private = world.home.runtime_dir().join("jvs");
    let is_a_turn = |at: &PathBuf| at.to_string_lossy().contains("/turn-");
    let turns = private.read_dir().expect("listed").map(|entry| entry.expect("entry").path());
    let stuck: Vec<_> = turns
        .filter(is_a_turn)
        .map(|at| fs_err::File::open(at).expect("opened").into_file())
        .inspect(|turn| turn.lock().expect("nobody has it"))
        .collect();
    assert!(!stuck.is_empty());
    let told = world.jvs(&["doctor", "--strict", "--repair"]);
    assert_eq!(told.stdout().matches("stuck while it writes its log").count(), 8, "{told}");
    drop(stuck);
    world.jvs(&["doctor", "--strict", "--repair"]).ok();
}

/// The effort grows with the square of the length, which is for whoever writes there to choose.
#[test]
fn the_search_for_flipped_bits_is_bounded_by_its_effort_and_what_is_left_out_is_told() {
    const LEFT_OUT: &str = "too many such files";
    let world = World::new();
    let records: Vec<_> = (0..8)
        .map(|n| {
            let name = format!("w{n}");
            world.jvs(&["worktree", "create", &name]).ok();
            let name = name.parse().expect("a name");
            world.root().join(layout::worktree_record(&name).as_str())
        })
        .collect();
    let look = || world.jvs(&["doctor", "--strict", "--dry-run"]).exits(12).stdout().to_owned();
    let whole: Vec<_> = records.iter().map(|at| fs_err::read(at).expect("read")).collect();
    for (at, bytes) in records.iter().zip(&whole) {
        let mut bytes = bytes.clone();
        *bytes.last_mut().expect("a newline") ^= 1;
        fs_err::write(at, bytes).expect("written");
    }
    assert!(!look().contains(LEFT_OUT), "all of the usual length are searched: {}", look());
    // As long as one may be that is searched.
    let words = format!("\"{:0200}\",", 0).repeat(9);
    let long = format!("{{\"checksum\":\"{:064}\",\"x\":[{words}0]}}", 0);
    for at in &records {
        fs_err::write(at, &long).expect("written");
    }
    assert!(look().contains(LEFT_OUT), "{}", look());
    world.jvs(&["doctor", "--strict", "--repair"]).ok();
}

/// As a sandbox does that knows an older kernel's calls alone.
#[test]
fn a_system_call_that_is_forbidden_is_told_as_that_and_nothing_is_changed() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let world = World::new();
    let forbidding = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=statx", "-e"];
    let told = world
        .command(&["--json", "snapshot", "one"])
        .under(forbidding.into_iter().chain(["inject=statx:error=ENOSYS"]))
        .run()
        .exits(1)
        .json();
    let hint = told["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("system call"), "{told}");
    let status = world.jvs(&["--json", "lock", "status"]).ok().json();
    assert_eq!(status["data"]["state"], "free", "{status}");
    world.jvs(&["snapshot", "one"]).ok();
    world.jvs(&["doctor", "--strict"]).ok();
}
