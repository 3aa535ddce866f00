//! Who am I, what do I hold where, and what have I not been told yet.

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::Jvs;
use jvs_kit::live::process::{eventually, run};
use rustix::process::Signal;
use serde_json::Value;

use crate::terminal::shell;
use crate::world::{PATIENCE, World, is_gone};

/// As a session, from a directory that has nothing to do with any repository.
fn anywhere(world: &World, session: &str, words: &str) -> Jvs {
    world.jvs(session, words).cwd("/")
}

fn shown(world: &World, session: &str) -> Value {
    anywhere(world, session, "session show --json").run().ok().json()["data"].clone()
}

/// Types the command that a hint ends with.
#[track_caller]
fn type_hint(world: &World, hint: &str) {
    let (_, command) = hint.split_once(": ").expect("a hint names a command");
    let command = command.split("; or ").next().expect("the first of them");
    let program = jvs_kit::live::binary::jvs();
    let bin = program.parent().expect("it lies in a directory").display().to_string();
    let jvs = anywhere(world, "onlooker", "x").command();
    let mut sh = std::process::Command::new("sh");
    sh.arg("-c").arg(command).current_dir("/").env_clear();
    sh.envs(jvs.get_envs().filter_map(|(key, value)| Some((key, value?))));
    sh.env("PATH", format!("{bin}:/usr/bin:/bin"));
    run(sh, PATIENCE).ok();
}

#[test]
fn my_terminal_tells_me_who_i_am_and_why() {
    let world = World::new();
    let mut terminal = shell(&world, None);
    terminal.types("jvs session; jvs session show --json | grep -o '\"known_by\":\"[a-z]*\"'\n");
    terminal.sees("term:", PATIENCE);
    terminal.sees("known by   this terminal", PATIENCE);
    terminal.sees("at         pts/", PATIENCE);
    terminal.sees("\"known_by\":\"terminal\"", PATIENCE);
}

#[test]
fn i_see_what_i_hold_where_and_what_relies_on_it() {
    let (world, other) = (World::new(), World::new());
    let there = |words: &str| world.jvs("ann", words).cwd(other.root().join("main"));
    world.ok("ann", "lock acquire --for 1h");
    there("lock acquire --no-keeper --lease 10m").run().ok();
    let build = world.run("ann", "run", "echo > up; sleep 1000").start();
    eventually("it runs", PATIENCE, || world.root().join("main/up").exists());
    let me = shown(&world, "ann");
    let holds = me["holds"].as_array().expect("holds");
    let at = |root: std::path::PathBuf| {
        let root = root.canonicalize().expect("there").display().to_string();
        holds.iter().find(|hold| hold["repository"] == root.as_str()).cloned().expect("known")
    };
    let (here, elsewhere) = (at(world.root()), at(other.root()));
    assert_eq!((&here["held"], &here["state"]), (&true.into(), &"open".into()), "{here}");
    assert_eq!((&elsewhere["held"], &elsewhere["fencing_token"]), (&true.into(), &1.into()));
    assert!(elsewhere["keeper"].is_null() && here["keeper"]["alive"] == true, "{me}");
    let stakes = here["stakes"].as_array().expect("stakes");
    let of = |kind: &str| stakes.iter().find(|stake| stake["kind"] == kind).expect("a stake");
    assert_eq!(of("run")["pid"], i64::from(build.pid().as_raw_nonzero().get()));
    assert!(of("run")["command"].as_str().is_some_and(|words| words.contains("sleep 1000")));
    assert!(of("run")["since"].is_string() && of("acquire")["until"].is_string());
    let text = anywhere(&world, "ann", "session").run().ok();
    assert!(text.stdout().contains("needed by process "), "{text}");
    let listed = anywhere(&world, "bob", "session list").run().ok();
    assert!(listed.stdout().contains("and 1 more"), "{listed}");
    drop(build);
}

#[test]
fn what_i_was_not_told_yet_is_shown_and_told_where_it_happened_all_the_same() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 200ms --lease 600ms");
    let keeper = world.keeper();
    eventually("it has ended", PATIENCE, || is_gone(keeper));
    for _ in 0..2 {
        let notes = shown(&world, "ann")["notes"].clone();
        let text = notes[0]["text"].as_str().expect("a note").to_owned();
        assert!(text.contains("the time that it was locked for is over"), "{text}");
    }
    let text = world.ok("ann", "session");
    assert!(text.stdout().contains("not told yet, in /"), "{text}");
    let told = world.ok("ann", "lock status");
    assert!(told.stderr().contains("the time that it was locked for is over"), "{told}");
    assert_eq!(shown(&world, "ann")["notes"], Value::Array(Vec::new()));
}

#[test]
fn a_moved_repository_is_not_taken_for_the_one_that_was_there() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 10m");
    let moved = world.outside("moved");
    fs_err::rename(world.root(), &moved).expect("moved");
    let hold = shown(&world, "ann")["holds"][0].clone();
    assert!(hold["held"].is_null() && hold["problem"].is_string(), "{hold}");
    fs_err::rename(moved, world.root()).expect("back");
    assert_eq!(shown(&world, "ann")["holds"][0]["held"], true);
}

#[test]
fn a_session_that_holds_something_is_not_forgotten_and_i_am_told_what_to_do() {
    let world = World::new();
    for words in ["lock acquire --for 1h", "lock acquire --no-keeper --lease 10m"] {
        world.ok("ann", words);
        let refused = anywhere(&world, "bob", "session forget ann --json").run().exits(2).json();
        assert_eq!(refused["error"]["code"], "E_LOCK_CONFLICT", "{words}: {refused}");
        world.ok("ann", "lock renew");
        type_hint(&world, refused["error"]["hint"].as_str().expect("a hint"));
        assert_eq!(world.status()["state"], "free", "{words}");
    }
    anywhere(&world, "bob", "session forget ann").run().ok();
    let all = anywhere(&world, "bob", "session list --json").run().ok().json();
    let all = all["data"]["sessions"].as_array().expect("sessions").clone();
    assert!(all.iter().all(|session| session["session_id"] != "ann"), "{all:?}");
    // It begins anew.
    world.ok("ann", "lock acquire --no-keeper");
    world.ok("ann", "lock release");
    world.audit_holds();
}

#[test]
fn a_session_whose_build_runs_is_not_forgotten() {
    let world = World::new();
    let build = world.run("ann", "run", "echo > up; sleep 1000").start();
    eventually("it runs", PATIENCE, || world.root().join("main/up").exists());
    for words in ["session forget ann", "session forget ann --force"] {
        let refused = anywhere(&world, "bob", words).run().exits(2);
        let pid = build.pid().as_raw_nonzero().to_string();
        assert!(refused.stderr().contains(&pid), "{refused}");
    }
    let refused = anywhere(&world, "bob", "session forget ann --json").run().exits(2).json();
    type_hint(&world, refused["error"]["hint"].as_str().expect("a hint"));
    eventually("it was ended", PATIENCE, || is_gone(build.pid()));
    anywhere(&world, "bob", "session forget ann").run().ok();
}

#[test]
fn what_was_taken_from_me_is_not_forgotten_in_silence() {
    let world = World::new();
    world.ok("ann", "config set reclaim.emergency_override true");
    world.ok("ann", "lock acquire --no-keeper --lease 10m");
    world.ok("bob", "lock reclaim --emergency --reason stuck --no-keeper");
    world.ok("bob", "snapshot theirs");
    world.ok("bob", "lock release");
    let taken = shown(&world, "ann")["holds"][0]["taken_token"].clone();
    assert_eq!(taken, 1);
    let refused = world.jvs("ann", "session forget --json").run().exits(5).json();
    assert_eq!(refused["error"]["code"], "E_FENCING_MISMATCH", "{refused}");
    world.jvs("ann", "snapshot mine").run().exits(5);
    let forgot = world.ok("ann", "session forget --force");
    assert!(forgot.stderr().contains("was taken over: look before you write"), "{forgot}");
    world.ok("ann", "snapshot mine");
}

#[test]
fn what_was_taken_from_me_before_the_reboot_is_not_forgotten_in_silence_either() {
    if !granted(&[Capability::Root]) {
        return;
    }
    let world = World::new();
    let boot = world.outside("boot_id");
    fs_err::write(&boot, "01234567-89ab-4cde-8f01-23456789abcd\n").expect("written");
    let mount = format!(
        "mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"",
        boot.display()
    );
    let rebooted =
        |words: &str| world.jvs("ann", words).under(["unshare", "--mount", "sh", "-c", &mount]);
    world.ok("ann", "config set reclaim.emergency_override true");
    world.ok("ann", "lock acquire --no-keeper --lease 10m");
    world.ok("bob", "lock reclaim --emergency --reason stuck --no-keeper");
    world.ok("bob", "lock release");
    let me = rebooted("session show --json").run().ok().json()["data"].clone();
    assert_eq!(me["holds"][0]["taken_token"], 1, "{me}");
    rebooted("session forget").run().exits(5);
    rebooted("session forget --force").run().ok();
    assert_eq!(shown(&world, "ann")["holds"], Value::Array(Vec::new()), "nothing is left");
}

#[test]
fn what_lies_in_a_repository_that_is_gone_is_forgotten_only_by_force() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 1h");
    let keeper = world.keeper();
    world.signal(keeper, Signal::KILL);
    eventually("it has ended", PATIENCE, || is_gone(keeper));
    let gone = world.outside("gone");
    fs_err::rename(world.root(), &gone).expect("unmounted");
    let refused = anywhere(&world, "ann", "session forget --json").run().exits(2).json();
    let message = refused["error"]["message"].as_str().expect("text");
    assert!(message.contains("is not known whether"), "{refused}");
    anywhere(&world, "ann", "session forget --force").run().ok();
    anywhere(&world, "ann", "session forget --force").run().exits(3);
}

#[test]
fn looking_at_sessions_makes_and_changes_nothing() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper");
    let files = || {
        let mut find = std::process::Command::new("find");
        find.arg(world.home.runtime_dir())
            .arg(world.home.home_dir())
            .args(["-printf", "%P %i %s %y\n"]);
        let mut files: Vec<String> =
            run(find, PATIENCE).ok().stdout().lines().map(str::to_owned).collect();
        files.sort();
        files
    };
    let before = files();
    for words in ["session", "session list", "session show --json", "session list --json"] {
        anywhere(&world, "nobody", words).run().ok();
        anywhere(&world, "ann", words).run().ok();
    }
    assert_eq!(files(), before);
}

#[test]
fn a_private_directory_that_others_can_read_is_refused() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper");
    let dir = world.home.runtime_dir().join("jvs");
    let mut chmod = std::process::Command::new("chmod");
    chmod.arg("755").arg(&dir);
    run(chmod, PATIENCE).ok();
    for words in ["session", "session list", "session forget"] {
        let refused = anywhere(&world, "ann", words).run().exits(1);
        assert!(refused.stderr().contains("E_SESSION_INVALID"), "{words}: {refused}");
    }
}

/// Files that somebody vandalised are passed over, and nothing is removed because of
/// them.
#[test]
fn foreign_files_among_mine_do_not_hide_my_sessions() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper");
    let dir = world.home.runtime_dir().join("jvs");
    fs_err::write(dir.join("0123456789abcdef0123456789abcdef"), "short").expect("written");
    fs_err::write(dir.join("0123456789abcdef0123456789abcdef-id"), "\u{1b}[2J").expect("written");
    let holds = world.home.home_dir().join(".local/state/jvs-holds/holds");
    fs_err::write(holds.join("nonsense"), "").expect("written");
    let listed = anywhere(&world, "bob", "session list").run().ok();
    assert!(listed.stdout().contains("ann") && !listed.stdout().contains('\u{1b}'), "{listed}");
}

#[test]
fn who_forgets_a_session_while_its_commands_run_gets_a_clear_answer_and_so_do_they() {
    let world = World::new();
    let mut answers = Vec::new();
    for _ in 0..12 {
        let words = [
            "session forget ann",
            "session forget ann --force",
            "run -- true",
            "lock acquire --no-keeper --lease 1s",
            "lock release",
        ];
        let started: Vec<_> = words.iter().map(|words| world.jvs("ann", words).start()).collect();
        answers.extend(started.into_iter().map(|running| running.wait(PATIENCE)));
    }
    for answer in answers {
        assert!(!answer.stderr().contains("E_IO"), "{answer}");
        assert!(!answer.stderr().contains("E_INTERNAL"), "{answer}");
    }
}
