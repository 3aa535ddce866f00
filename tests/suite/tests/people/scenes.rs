//! Scenes in which the lock of a session with several processes once lied, each as the
//! person who was in it would tell it, on a local disk and on two mounts of a JuiceFS
//! volume, where the rival is on the other one.

use std::path::Path;
use std::process::Command;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::{Running, eventually};
use jvs_repo::layout;
use rustix::process::{Pid, Signal};

use crate::holds::{holder, run_until_told};
use crate::terminal::shell;
use crate::world::{PATIENCE, World, is_gone};

/// Plays a scene on a local disk, and on two mounts of a volume.
#[track_caller]
fn everywhere(scene: impl Fn(&World)) {
    scene(&World::new());
    if let Some(world) = World::on_two_mounts() {
        scene(&world);
    }
}

#[track_caller]
fn the_rival_is_kept_out(world: &World) {
    world.rival("lock acquire --no-keeper").run().exits(2);
}

#[track_caller]
fn the_rival_gets_it(world: &World) {
    world.rival("lock acquire --no-keeper --wait=25s").run().ok();
}

/// Looks again and again until well after the keeper of a killed run has ended what that
/// left. Nothing but looks: another command of the session would itself hold on to the lock.
#[track_caller]
fn it_goes_on_being_mine(world: &World) {
    for _ in 0..20 {
        assert_eq!(holder(world).0, "ann");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Refused for as long as processes of the killed run are left.
#[track_caller]
fn i_release_it(world: &World) {
    eventually("it is released", PATIENCE, || world.jvs("ann", "lock release").run().code() == 0);
}

#[test]
fn my_first_build_ended_and_took_the_lock_from_my_second_one() {
    everywhere(|world| {
        let (first, end_first) = run_until_told(world, "ann", "run", "first");
        let (second, end_second) = run_until_told(world, "ann", "run --join", "second");
        end_first.go();
        first.wait(PATIENCE).ok();
        assert_eq!(holder(world), ("ann".to_owned(), 1));
        the_rival_is_kept_out(world);
        end_second.go();
        second.wait(PATIENCE).ok();
        the_rival_gets_it(world);
    });
}

/// The run alone: its keeper still has to end the build when the session asks for the lock
/// again.
fn my_build_is_killed(world: &World) {
    let up = world.outside("up");
    let script = format!("echo > {}; exec sleep 1000", up.display());
    let build = world.run("ann", "run", &script).start();
    eventually("it runs", PATIENCE, || up.exists());
    world.signal(build.pid(), Signal::KILL);
}

#[test]
fn my_build_was_killed_and_then_my_new_lock_went_away() {
    everywhere(|world| {
        my_build_is_killed(world);
        world.ok("ann", "lock acquire --no-keeper --lease 10m");
        it_goes_on_being_mine(world);
        the_rival_is_kept_out(world);
        i_release_it(world);
        the_rival_gets_it(world);
    });
}

#[test]
fn my_build_was_killed_and_then_i_could_not_lock() {
    everywhere(|world| {
        my_build_is_killed(world);
        world.ok("ann", "lock acquire");
        it_goes_on_being_mine(world);
        eventually("another one keeps it", PATIENCE, || world.status()["keeper"]["alive"] == true);
        the_rival_is_kept_out(world);
        i_release_it(world);
        the_rival_gets_it(world);
    });
}

/// Somebody else works while the session believes that nothing happened.
#[track_caller]
fn the_rival_publishes(world: &World) {
    world.rival("snapshot theirs").run().ok();
    world.rival("lock release").run().ok();
}

#[track_caller]
fn nothing_is_published_before_i_say_that_i_know(world: &World) {
    for words in ["snapshot mine", "run -- true"] {
        let refused = world.jvs("ann", words).run().exits(5);
        assert!(refused.stderr().contains("E_FENCING_MISMATCH"), "{refused}");
    }
    let snapshots = world.json("ann", "history")["data"]["snapshots"].clone();
    assert_eq!(snapshots.as_array().map(Vec::len), Some(1), "{snapshots}");
    world.ok("ann", "lock acquire");
    world.ok("ann", "snapshot mine");
    world.ok("ann", "lock release");
}

#[test]
fn i_published_over_what_somebody_else_did_while_i_was_away() {
    everywhere(|world| {
        world.ok("ann", "config set reclaim.emergency_override true");
        world.ok("ann", "lock acquire");
        world.rival("lock reclaim --emergency --reason stuck --no-keeper").run().ok();
        the_rival_publishes(world);
        nothing_is_published_before_i_say_that_i_know(world);
    });
}

#[test]
fn my_time_was_over_and_i_published_over_what_somebody_else_did() {
    for time in ["--no-keeper --lease 1s", "--for 1s"] {
        everywhere(|world| {
            world.ok("ann", &format!("lock acquire {time}"));
            the_rival_gets_it(world);
            the_rival_publishes(world);
            nothing_is_published_before_i_say_that_i_know(world);
        });
    }
}

/// Nobody writes to that file any more.
#[track_caller]
fn is_written_no_more(file: &Path) {
    let written = || file.metadata().expect("it was written").len();
    let before = written();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(written(), before, "somebody writes on");
}

/// A line of shell that starts a writer in a session of its own, and goes on when it
/// writes.
fn starts_a_writer(file: &Path) -> String {
    let file = file.display();
    format!(
        "setsid sh -c 'while :; do echo x >> {file}; sleep 0.02; done' & \
         until [ -s {file} ]; do sleep 0.02; done"
    )
}

#[test]
fn what_my_build_had_started_wrote_on_without_the_lock() {
    everywhere(|world| {
        let file = world.root().join("main/written");
        world.run("ann", "run", &starts_a_writer(&file)).run().ok();
        the_rival_gets_it(world);
        is_written_no_more(&file);
    });
}

#[test]
fn what_my_build_had_started_wrote_on_after_the_lock_was_lost() {
    everywhere(|world| {
        world.ok("ann", "config set reclaim.emergency_override true");
        let (file, up) = (world.root().join("main/written"), world.outside("up"));
        let script = format!("{}; touch {}; sleep 1000", starts_a_writer(&file), up.display());
        let build = world.run("ann", "run --lease 3s", &script).start();
        eventually("it writes", PATIENCE, || up.exists());
        world.rival("lock reclaim --emergency --reason stuck --no-keeper").run().ok();
        let told = build.wait(PATIENCE).exits(5);
        assert!(told.stderr().contains("so the command was stopped"), "{told}");
        is_written_no_more(&file);
        the_rival_publishes(world);
        nothing_is_published_before_i_say_that_i_know(world);
    });
}

/// An interactive shell gives every job a process group of its own and does not end
/// when it is asked to.
#[test]
fn the_job_of_a_shell_that_lost_its_lock_is_ended_and_that_is_told_before() {
    if !granted(&[Capability::Program("bash")]) {
        return;
    }
    everywhere(|world| {
        let (file, pid) = (world.root().join("main/written"), world.outside("pid"));
        let mut terminal = shell(world, Some("ann"));
        terminal.types("SHELL=/bin/bash jvs shell --lease 3s\n");
        terminal.sees("[jvs main] ", PATIENCE);
        let job = format!(
            "sh -c 'trap \"echo asked >> {0}\" TERM; echo $$ > {1}.new; mv {1}.new {1}; \
             while :; do echo w >> {0}; sleep 0.02; done'\n",
            file.display(),
            pid.display()
        );
        terminal.types(&job);
        eventually("the job writes", PATIENCE, || pid.exists() && file.exists());
        let text = fs_err::read_to_string(&pid).expect("written");
        let job = Pid::from_raw(text.trim().parse().expect("a pid")).expect("a pid");
        world.rival("config set reclaim.emergency_override true").run().ok();
        world.rival("lock freeze --force --for 1m --reason maintenance").run().ok();
        terminal.sees("was lost, everything started here is being ended", PATIENCE);
        terminal.sees("so the command was stopped", PATIENCE);
        assert!(is_gone(job), "said to be stopped, and is not");
        is_written_no_more(&file);
        terminal.sees("ready> ", PATIENCE);
    });
}

#[test]
fn the_keeper_of_my_build_hung_and_it_wrote_beside_somebody_else() {
    everywhere(|world| {
        // Missed twice, a renewal is missed long before the lease is over, on a busy
        // machine, too.
        world.ok("ann", "config set lock.renew_interval_ms 1000");
        let (build, go) = run_until_told(world, "ann", "run --lease 20s", "build");
        let keeper = world.keeper();
        world.signal(keeper, Signal::STOP);
        let waiting = world.rival("lock acquire --no-keeper --wait=60s").start();
        eventually("another one keeps it", PATIENCE, || {
            let kept = &world.status()["keeper"];
            kept["alive"] == true && kept["pid"] != keeper.as_raw_nonzero().get()
        });
        let renewals = world.events("renew").len();
        eventually("it is renewed", PATIENCE, || world.events("renew").len() > renewals + 1);
        assert_eq!(holder(world), ("ann".to_owned(), 1), "nobody else has it while the build runs");
        go.go();
        build.wait(PATIENCE).ok();
        waiting.wait(PATIENCE).ok();
    });
}

#[test]
fn i_was_told_that_i_hold_it_and_had_nothing() {
    everywhere(|world| {
        // A command of an agent: no name, no terminal.
        let nameless = world.jvs("ann", "lock acquire").env_remove("JVS_SESSION_ID");
        let nameless = nameless.env_remove("JVS_KEEP_WHILE").under(["setsid", "--wait"]);
        let refused = nameless.run().exits(1);
        assert!(refused.stderr().contains("E_SESSION_INVALID"), "{refused}");
        assert_eq!(world.status()["state"], "free", "nothing was changed");
        the_rival_gets_it(world);
    });
}

#[test]
fn i_repaired_and_my_own_lock_was_gone() {
    everywhere(|world| {
        world.ok("ann", "lock acquire");
        world.ok("ann", "snapshot mine");
        let (build, go) = run_until_told(world, "ann", "run", "build");
        // As if whoever published it had died before it was shown: something to repair
        // that only the holder may.
        let head = world.status()["head"].as_str().expect("a head").to_owned();
        let snapshot = world.root().join(layout::snapshots().as_str()).join(head);
        fs_err::rename(snapshot.join("READY"), snapshot.join("READY.staged")).expect("unshown");
        world.ok("ann", "doctor --repair");
        assert!(snapshot.join("READY").exists(), "it was repaired");
        assert_eq!(holder(world), ("ann".to_owned(), 1));
        the_rival_is_kept_out(world);
        go.go();
        build.wait(PATIENCE).ok();
        assert_eq!(holder(world), ("ann".to_owned(), 1), "it was asked for by itself, too");
        world.ok("ann", "lock release");
        the_rival_gets_it(world);
    });
}

/// Whoever can write the repository writes a process of the holder into the lock's
/// record, with everything that `/proc` says of it.
#[test]
fn what_the_record_says_of_the_keeper_ends_nobody() {
    for verb in ["lock release", "lock acquire --no-keeper", "lock acquire"] {
        everywhere(|world| {
            world.ok("ann", "lock acquire");
            let keeper = world.keeper();
            let mut sleep = Command::new("sleep");
            sleep.arg("1000");
            let mut victim = Running::start(sleep);
            let pid = victim.pid().as_raw_nonzero().get();
            let stat = jvs_repo::proc::process_stat(pid.unsigned_abs()).expect("it runs");
            let mut record = world.record();
            record["keeper"]["pid"] = pid.into();
            record["keeper"]["start_time"] = stat.start_ticks.into();
            fs_err::write(world.record_path(), record.to_string()).expect("forged");
            world.ok("ann", verb);
            assert!(!victim.ended(), "{verb}: a process that never was a keeper was ended");
            assert!(is_gone(keeper), "{verb}: the real one stood down");
        });
    }
}

/// A script's own lock lasts as long as the script, not as long as the keeper.
#[test]
fn a_keeper_holds_no_descriptor_of_its_starter() {
    everywhere(|world| {
        let lock = world.outside("script.lock");
        let script = format!(
            "exec 9>{}; flock 9; \"$0\" \"$@\" >/dev/null; \
             read=$( {{ \"$0\" \"$@\" >/dev/null; }} 3>&1 )",
            lock.display()
        );
        world.jvs("ann", "lock acquire").under(["sh", "-c", &script]).run().ok();
        let open = format!("/proc/{}/fd", world.keeper().as_raw_nonzero());
        for fd in fs_err::read_dir(open).expect("listed").flatten() {
            let what = fs_err::read_link(fd.path()).unwrap_or_default();
            assert_ne!(what, lock, "the script's lock lasts as long as the keeper");
        }
        let mut flock = Command::new("flock");
        flock.arg("--nonblock").arg(&lock).arg("true");
        jvs_kit::live::process::run(flock, PATIENCE).ok();
        assert_eq!(world.status()["keeper"]["alive"], true, "which goes on keeping");
    });
}

/// One process starts both, as a harness does. Each is told by a name of its own, or by
/// that of what runs it.
#[test]
fn two_agents_that_one_process_started_were_taken_for_one() {
    for name in ["JVS_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"] {
        everywhere(|world| {
            let script = format!("{name}=one \"$0\" \"$@\"; {name}=two \"$0\" \"$@\"");
            let both = world.jvs("ann", "lock acquire").env_remove("JVS_SESSION_ID");
            let told = both.under(["setsid", "--wait", "sh", "-c", &script]).run().exits(2);
            assert!(told.stderr().contains("E_LOCK_CONFLICT"), "{name}: {told}");
            let (session, token) = holder(world);
            assert!(session.ends_with("one") && token == 1, "{name}: {session}, token {token}");
        });
    }
}

#[test]
fn two_agents_without_a_name_that_one_process_started_worked_at_once() {
    everywhere(|world| {
        let (up, go) = (world.outside("up"), world.outside("go"));
        let first =
            format!("touch {}; until [ -e {} ]; do sleep 0.02; done", up.display(), go.display());
        let both = format!(
            "\"$0\" run -- sh -c '{first}' & until [ -e {} ]; do sleep 0.02; done; \
             \"$0\" lock acquire; echo acquire $?; \"$0\" run -- true; echo run $?; \
             touch {}; wait $!; echo first $?",
            up.display(),
            go.display()
        );
        let nameless = world.jvs("ann", "").env_remove("JVS_SESSION_ID");
        let nameless = nameless.env_remove("JVS_KEEP_WHILE");
        let told = nameless.under(["setsid", "--wait", "sh", "-c", &both]).run().ok();
        // Nothing is promised to the one, and the other is not let in beside the first.
        assert_eq!(told.stdout(), "acquire 1\nrun 2\nfirst 0\n", "{told}");
        for code in ["E_SESSION_INVALID", "E_LOCK_CONFLICT"] {
            assert!(told.stderr().contains(code), "{told}");
        }
        the_rival_gets_it(world);
    });
}
