//! Somebody who follows what becomes of the locks: told all of it, once, and nobody's trouble.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jvs_kit::live::home::Jvs;
use jvs_kit::live::process::{Running, eventually};
use jvs_repo::layout;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{PATIENCE, World, is_gone};

/// A follower that has begun.
fn follower(world: &World, jvs: &Jvs) -> Running {
    let follower = jvs.start();
    // It has looked once as soon as a change is told.
    eventually("it follows", PATIENCE, || {
        let session = "first";
        world.ok(session, "lock acquire --no-keeper --lease 1h");
        world.ok(session, "lock release");
        !follower.answered().is_empty()
    });
    follower
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// What names a change.
fn name(change: &Value) -> (String, String, u64, String) {
    let text = |field: &str| change[field].as_str().unwrap_or_default().to_owned();
    (text("worktree"), text("epoch"), change["seq"].as_u64().unwrap_or(0), text("kind"))
}

/// Everything that has been told by now is what there is, each once and in order.
#[track_caller]
fn tells_all(world: &World, follower: &Running) {
    let told = || lines(&follower.answered());
    let there = || lines(world.ok("onlooker", "events").stdout());
    eventually("all is told", PATIENCE, || told().last().map(name) == there().last().map(name));
    let (told, there) = (told(), there());
    let first = name(&told[0]);
    let from = there.iter().position(|change| name(change) == first).expect("it is there, too");
    for worktree in ["main", "a", "b"] {
        let of = |all: &[Value]| -> Vec<_> {
            all.iter().map(name).filter(|(its, ..)| its == worktree).collect()
        };
        assert_eq!(of(&told), of(&there[from..]), "{worktree}");
    }
    assert!(told.iter().all(|change| change["kind"] != "gap"), "{told:?}");
}

fn work(world: &World) {
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    world.ok("ann", "snapshot one");
    world.ok("ann", "lock release");
    world.ok("bob", "worktree create a");
    world.ok("bob", "-w a lock acquire --no-keeper --lease 1h");
    world.ok("bob", "-w a lock release");
    world.ok("bob", "worktree rename a b");
    world.ok("bob", "worktree remove b");
    world.ok("ann", "lock freeze --for 1h --reason x");
    world.ok("ann", "lock unfreeze --reason y");
}

#[test]
fn each_change_of_any_lock_is_told_once_and_in_order() {
    let world = World::new();
    let follower = follower(&world, &world.jvs("onlooker", "events --follow"));
    work(&world);
    tells_all(&world, &follower);
    let kinds: Vec<_> = lines(&follower.answered()).iter().map(|it| it["kind"].clone()).collect();
    for kind in ["published", "renamed", "retired", "frozen", "unfrozen", "created"] {
        assert!(kinds.contains(&kind.into()), "{kind}: {kinds:?}");
    }
}

#[test]
fn a_follower_that_stood_still_tells_what_it_missed() {
    let world = World::new();
    let follower = follower(&world, &world.jvs("onlooker", "events --follow"));
    follower.signal(Signal::STOP);
    work(&world);
    work(&world);
    follower.signal(Signal::CONT);
    tells_all(&world, &follower);
}

#[test]
fn what_another_mount_does_is_told() {
    let Some(world) = World::on_two_mounts() else { return };
    let follower = follower(&world, &world.jvs("onlooker", "events --follow"));
    for _ in 0..3 {
        world.rival("lock acquire --no-keeper --lease 1h").run().ok();
        world.rival("snapshot theirs").run().ok();
        world.rival("lock release").run().ok();
    }
    tells_all(&world, &follower);
}

#[test]
fn what_no_log_tells_is_told_as_a_gap() {
    let world = World::new();
    let follower = follower(&world, &world.jvs("onlooker", "events --follow"));
    follower.signal(Signal::STOP);
    let before = fs_err::read_dir(world.root().join(layout::audit().as_str())).expect("logs");
    let known: Vec<PathBuf> = before.map(|entry| entry.expect("an entry").path()).collect();
    world.ok("ghost", "lock acquire --no-keeper --lease 1h");
    world.ok("ghost", "snapshot one");
    world.ok("ghost", "lock release");
    let logs = fs_err::read_dir(world.root().join(layout::audit().as_str())).expect("logs");
    for log in logs.map(|entry| entry.expect("an entry").path()) {
        if !known.contains(&log) {
            fs_err::remove_file(log).expect("gone");
        }
    }
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    let seq = world.json("onlooker", "events --since 1h")["data"]["changes"].clone();
    let newest = seq.as_array().expect("changes").last().expect("one")["seq"].clone();
    follower.signal(Signal::CONT);
    let told = || lines(&follower.answered());
    eventually("the newest is told", PATIENCE, || {
        told().last().is_some_and(|change| change["seq"] == newest)
    });
    let told = told();
    let gap = &told[told.len() - 2];
    assert_eq!(gap["kind"], "gap", "{told:?}");
    let (until, first) = (gap["seq"].as_u64(), told[told.len() - 3]["seq"].as_u64());
    assert_eq!(gap["missed"].as_u64(), until.zip(first).map(|(until, first)| until - first));
    assert_eq!(told[told.len() - 1]["kind"], "acquired", "{told:?}");
    assert!(gap["session_id"].is_null() && gap["at"].is_null(), "{gap}");
}

#[test]
fn a_register_that_cannot_be_read_is_told_once_and_the_others_go_on() {
    let world = World::new();
    world.ok("bob", "worktree create a");
    let follower = follower(&world, &world.jvs("onlooker", "events --follow"));
    let register = world.root().join(layout::register(&"a".parse().expect("a name")).as_str());
    let aside = world.outside("aside");
    fs_err::rename(&register, &aside).expect("moved");
    let of =
        |kind: &str| lines(&follower.answered()).iter().filter(|it| it["kind"] == kind).count();
    eventually("it is told", PATIENCE, || of("unreadable") == 1);
    let acquired = of("acquired");
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    world.ok("ann", "lock release");
    eventually("the other is told", PATIENCE, || of("acquired") > acquired);
    fs_err::rename(&aside, &register).expect("moved back");
    world.ok("bob", "-w a lock acquire --no-keeper --lease 1h");
    eventually("it is told again", PATIENCE, || {
        lines(&follower.answered()).last().is_some_and(|it| it["worktree"] == "a")
    });
    assert_eq!(of("unreadable"), 1);
}

#[test]
fn the_end_of_a_lease_is_told_once() {
    let world = World::new();
    let follower = follower(&world, &world.jvs("onlooker", "events --follow"));
    world.ok("ann", "lock acquire --no-keeper --lease 1s");
    let expired = || {
        let told = lines(&follower.answered());
        told.into_iter().filter(|it| it["kind"] == "expired").collect::<Vec<_>>()
    };
    eventually("it is told", PATIENCE, || expired().len() == 1);
    world.ok("bob", "lock acquire --no-keeper --lease 1h");
    eventually("the next is told", PATIENCE, || {
        lines(&follower.answered()).last().is_some_and(|it| it["session_id"] == "bob")
    });
    assert_eq!(expired().len(), 1);
    let last = lines(&follower.answered()).pop().expect("one");
    assert_eq!(last["previous_session"], "ann", "{last}");
}

#[test]
fn a_reader_that_does_not_read_or_goes_away_harms_nobody() {
    let world = World::new();
    let mut command = world.jvs("onlooker", "events --follow --renewals --since 1h").command();
    command.stdout(Stdio::piped());
    let mut follower = command.spawn().expect("it starts");
    // More than a pipe holds.
    for _ in 0..60 {
        world.ok("ann", "lock acquire --no-keeper --lease 1h");
        world.ok("ann", "lock renew");
        world.ok("ann", "lock release");
    }
    world.audit_holds();
    let pid = Pid::from_child(&follower);
    assert!(!is_gone(pid), "it waits for its reader");
    drop(follower.stdout.take());
    eventually("it has ended", PATIENCE, || follower.try_wait().is_ok_and(|it| it.is_some()));
    // One that is killed leaves nothing either.
    let killed = world.jvs("onlooker", "events --follow").start();
    kill_process(killed.pid(), Signal::KILL).expect("it is there");
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    world.ok("ann", "lock release");
    world.ok("ann", "doctor --strict");
}

/// A program, as somebody wrote it.
fn program(path: &Path, script: &str) {
    fs_err::write(path, format!("#!/bin/sh\n{script}\n")).expect("written");
    let mode = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(path, mode).expect("a program");
}

/// What this user's configuration says.
fn configure(world: &World, text: &str) -> PathBuf {
    let dir = world.home.home_dir().join(".config/jvs");
    fs_err::create_dir_all(&dir).expect("a directory");
    let path = dir.join("config.toml");
    fs_err::write(&path, text).expect("written");
    let mode = std::fs::Permissions::from_mode(0o600);
    fs_err::set_permissions(&path, mode).expect("my own");
    path
}

#[test]
fn nothing_in_a_repository_makes_anybody_run_anything() {
    let world = World::new();
    let ran = world.outside("ran");
    let script = format!("echo ran >> '{}'", ran.display());
    let hooks = world.root().join(layout::CONTROL_DIR).join("hooks");
    fs_err::create_dir_all(&hooks).expect("a directory");
    for name in ["acquired", "released", "events", "exec", "all"] {
        program(&hooks.join(name), &script);
    }
    let refused = || {
        let said = world.jvs("onlooker", "events --follow --exec").run();
        assert!(said.stderr().contains("E_USAGE"), "{said}");
        said
    };
    refused();
    // Neither does its configuration: there is no such key.
    let hook = hooks.join("all").display().to_string();
    let config = world.root().join(layout::config().as_str());
    let before = fs_err::read_to_string(&config).expect("read");
    let key = world.jvs("ann", "config set events.exec").arg(&hook).run();
    assert!(key.stderr().contains("E_NOT_FOUND"), "{key}");
    let follower = follower(&world, &world.jvs("onlooker", "events --follow"));
    fs_err::write(&config, format!("{before}\n[events]\nexec = \"{hook}\"\n")).expect("written");
    refused();
    fs_err::write(&config, before).expect("written");
    work(&world);
    tells_all(&world, &follower);
    // What others could have written is not the user's own word.
    let own = configure(&world, &format!("[events]\nexec = \"{hook}\"\n"));
    let open = std::fs::Permissions::from_mode(0o666);
    fs_err::set_permissions(&own, open).expect("open to all");
    let said = refused();
    assert!(said.stderr().contains("others may write it"), "{said}");
    assert!(!ran.exists());
}

#[test]
fn the_program_that_a_user_names_is_run_for_each_change_one_at_a_time() {
    let world = World::new();
    let (log, busy) = (world.outside("log"), world.outside("busy"));
    let hook = world.outside("hook");
    let script = format!(
        "mkdir '{busy}' || echo two at once >> '{log}'\n\
         read -r line; printf '%s %s %s\\n' \"$JVS_EVENT\" \"$JVS_EVENT_WORKTREE\" \
         \"$JVS_FENCING_TOKEN$1\" >> '{log}'; echo noise; sleep 0.05; rmdir '{busy}'; exit 3",
        busy = busy.display(),
        log = log.display(),
    );
    program(&hook, &script);
    configure(&world, &format!("[events]\nexec = [\"{}\", \"word\"]\n", hook.display()));
    let jvs = world.jvs("onlooker", "events --follow --exec").env("JVS_FENCING_TOKEN", "7");
    let follower = follower(&world, &jvs);
    work(&world);
    let there = || fs_err::read_to_string(&log).unwrap_or_default();
    eventually("all ran", PATIENCE, || there().contains("unfrozen main word"));
    tells_all(&world, &follower);
    let told = lines(&follower.answered()).len();
    eventually("once for each", PATIENCE, || there().lines().count() == told);
    assert!(!there().contains("two at once"), "{}", there());
    let complaints = fs_err::read_to_string(follower.stderr_path()).expect("read");
    assert!(complaints.contains("it failed: exit status: 3"), "{complaints}");
}

#[test]
fn a_program_that_does_not_end_or_cannot_be_run_keeps_nobody() {
    let world = World::new();
    let hook = world.outside("hook");
    let pids = world.outside("pids");
    program(&hook, &format!("sleep 600 & echo $! >> '{}'; wait", pids.display()));
    configure(&world, &format!("[events]\nexec = \"{}\"\n", hook.display()));
    let follower = world.jvs("onlooker", "events --follow --exec --since 1h").start();
    let said = || fs_err::read_to_string(follower.stderr_path()).unwrap_or_default();
    eventually("it was killed", PATIENCE, || said().contains("was killed"));
    let first = fs_err::read_to_string(&pids).expect("read");
    let first = first.lines().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
    assert!(first.is_some_and(is_gone), "what it had started, too");
    fs_err::remove_file(&hook).expect("gone");
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    eventually("it is told", Duration::from_secs(60), || said().contains("it cannot be run"));
    world.ok("ann", "lock release");
    assert!(!is_gone(follower.pid()));
}
