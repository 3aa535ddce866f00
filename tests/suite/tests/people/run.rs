//! `jvs run`: what reaches the child, what ends it, and what is left behind.

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::eventually;
use rustix::process::{Pid, Signal};

use crate::world::{PATIENCE, World, is_gone};

/// A child that writes down its pid and then waits for its end.
fn waiting(world: &World, prelude: &str) -> (std::path::PathBuf, String) {
    let file = world.outside("pid");
    let script = format!(
        "{prelude}\necho $$ > {0}.new; mv {0}.new {0}; while :; do sleep 0.02; done",
        file.display()
    );
    (file, script)
}

#[track_caller]
fn pid_in(file: &std::path::Path) -> Pid {
    eventually("the child runs", PATIENCE, || file.exists());
    let text = std::fs::read_to_string(file).expect("the child wrote it");
    Pid::from_raw(text.trim().parse().expect("a pid")).expect("not zero")
}

#[test]
fn every_signal_is_passed_on_and_the_second_one_too() {
    for (name, signal) in [
        ("INT", Signal::INT),
        ("TERM", Signal::TERM),
        ("HUP", Signal::HUP),
        ("QUIT", Signal::QUIT),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("WINCH", Signal::WINCH),
    ] {
        let world = World::new();
        let first = world.outside("first");
        let trap = format!(
            "n=0; trap 'n=$((n+1)); touch {}; [ $n -lt 2 ] || {{ echo {name} $n; exit 3; }}' {name}",
            first.display()
        );
        let (file, script) = waiting(&world, &trap);
        let running = world.run("ci", "run", &script).start();
        pid_in(&file);
        world.signal(running.pid(), signal);
        eventually("the first arrived", PATIENCE, || first.exists());
        world.signal(running.pid(), signal);
        let outcome = running.wait(PATIENCE).exits(3);
        assert_eq!(outcome.stdout(), format!("{name} 2\n"));
        assert_eq!(world.status()["state"], "free");
    }
}

#[test]
fn a_lost_lease_stops_the_whole_group_and_exits_5() {
    let world = World::new();
    world.ok("ann", "config set reclaim.emergency_override true");
    // A grandchild that ignores TERM.
    let grand = world.outside("grand");
    let prelude = format!(
        "(trap '' TERM; sh -c 'echo $$ > {0}.new; mv {0}.new {0}; sleep 1000') &",
        grand.display()
    );
    let (file, script) = waiting(&world, &prelude);
    let running = world.run("ci", "run --lease 900ms", &script).start();
    let (child, grandchild) = (pid_in(&file), pid_in(&grand));
    world.ok("admin", "lock reclaim --emergency --reason stop --no-keeper");
    let outcome = running.wait(PATIENCE).exits(5);
    assert!(outcome.stderr().contains("error[E_FENCING_MISMATCH]"), "{outcome}");
    assert!(outcome.stderr().contains("hint: "), "{outcome}");
    eventually("nobody of the group is left", PATIENCE, || is_gone(child) && is_gone(grandchild));
    assert_eq!(world.status()["record"]["session_id"], "admin");
}

#[test]
fn a_run_that_is_killed_leaves_no_unprotected_child_and_no_lock() {
    let world = World::new();
    let (file, script) = waiting(&world, "true");
    let running = world.run("ci", "run --lease 2s", &script).start();
    let child = pid_in(&file);
    world.signal(running.pid(), Signal::KILL);
    eventually("the child is ended", PATIENCE, || is_gone(child));
    world.eventually_free();
    drop(running);
    world.audit_holds();
}

#[test]
fn a_run_whose_keeper_is_killed_gets_another_one() {
    let world = World::new();
    let go = world.outside("go");
    let script = format!("until [ -e {} ]; do sleep 0.02; done; echo done", go.display());
    let running = world.run("ci", "run --lease 900ms", &script).start();
    eventually("it is kept", PATIENCE, || world.status()["keeper"]["alive"] == true);
    let first = world.keeper();
    world.signal(first, Signal::KILL);
    eventually("another one keeps it", PATIENCE, || {
        let status = world.status();
        status["keeper"]["alive"] == true && status["keeper"]["pid"] != first.as_raw_nonzero().get()
    });
    std::fs::write(&go, "").expect("told to go on");
    let outcome = running.wait(PATIENCE).ok();
    assert_eq!((outcome.stdout(), outcome.stderr()), ("done\n", ""));
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn a_release_from_within_stops_the_run() {
    let world = World::new();
    let outcome =
        world.run("ci", "run --lease 900ms", "jvs lock release; sleep 1000").run().exits(5);
    assert!(outcome.stderr().contains("was lost, so the command was stopped"), "{outcome}");
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn a_session_that_holds_the_lock_already_keeps_it_after_a_run() {
    let world = World::new();
    world.ok("ann", "lock acquire");
    let keeper = world.keeper();
    world.run("ann", "run", "true").run().ok();
    let status = world.status();
    assert_eq!((&status["state"], &status["fencing_token"]), (&"held".into(), &1.into()));
    assert_eq!(world.keeper(), keeper, "by the keeper that it had");
}

#[test]
fn a_run_that_succeeds_leaves_a_snapshot_under_its_own_lease() {
    let world = World::new();
    let outcome = world.run("ci", "run --snapshot built", "echo result > out").run().ok();
    assert!(outcome.stdout().contains("Snapshot"), "{outcome}");
    let history = world.json("ann", "history");
    let snapshot = &history["data"]["snapshots"][0];
    assert_eq!((&snapshot["note"], &snapshot["fencing_token"]), (&"built".into(), &1.into()));
    assert_eq!(world.status()["state"], "free");
    world.run("ci", "run --snapshot broken", "echo worse > out; exit 1").run().exits(1);
    let history = world.json("ann", "history");
    assert_eq!(history["data"]["snapshots"].as_array().map(Vec::len), Some(1), "{history}");
    world.audit_holds();
}

#[test]
fn a_filesystem_that_hangs_stops_the_child_in_time() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let world = World::new();
    let (file, script) = waiting(&world, "true");
    // The keeper's later renames hang for two minutes, as in a dead mount.
    let running = world
        .run("ci", "run --lease 1s", &script)
        .under([
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "inject=renameat,renameat2,rename:delay_enter=120000000:when=3+",
        ])
        .start();
    let child = pid_in(&file);
    eventually("the child is ended", PATIENCE, || is_gone(child));
    drop(running);
}

#[test]
fn a_child_in_a_pipe_sees_its_reader_go() {
    let world = World::new();
    let outcome =
        world.run("ci", "run", "yes").under(["sh", "-c", "\"$0\" \"$@\" | head -1"]).run().ok();
    assert_eq!(outcome.stdout(), "y\n");
    world.eventually_free();
}

#[test]
fn what_is_not_there_exits_127_and_what_cannot_be_executed_126_and_neither_leaves_a_lock() {
    let world = World::new();
    let plain = world.outside("plain");
    std::fs::write(&plain, "no program").expect("a file");
    for (program, exit) in [("/no/such/program", 127), (plain.to_str().expect("text"), 126)] {
        let outcome = world.jvs("ann", "run --").arg(program).run().exits(exit);
        assert!(outcome.stderr().contains(&format!("cannot run {program}: ")), "{outcome}");
        assert_eq!(world.status()["state"], "free");
    }
}
