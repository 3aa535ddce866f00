//! `jvs run`: what reaches the child, what ends it, and what is left behind.

use jvs_kit::live::calls;
use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::{Running, eventually};
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
    let text = fs_err::read_to_string(file).expect("the child wrote it");
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
fn a_command_that_was_overruled_and_ended_before_that_was_noticed_exits_5() {
    let world = World::new();
    let (begun, go) = (world.outside("begun"), world.outside("go"));
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.02; done; echo survived",
        begun.display(),
        go.display()
    );
    let running = world.run("ci", "run", &script).start();
    eventually("the command runs", PATIENCE, || begun.exists());
    world.ok("admin", "config set reclaim.emergency_override true");
    world.ok("admin", "lock freeze --force --for 1h --reason overruled");
    fs_err::write(&go, "").expect("written");
    let outcome = running.wait(PATIENCE).exits(5);
    assert_eq!(outcome.stdout(), "survived\n");
    assert!(
        outcome.stderr().contains("noticed when the command had ended"),
        "{}",
        outcome.stderr()
    );
}

#[test]
fn a_run_whose_snapshot_was_published_tells_of_it_although_the_lock_was_lost_then() {
    if !calls::can_be_aimed_at() {
        return;
    }
    let world = World::new();
    world.ok("admin", "config set reclaim.emergency_override true");
    let command = world.run("ci", "--json run --snapshot made", "echo made >file");
    let recorded = calls::record(&command);
    recorded.outcome.ok();
    // Only what is committed is shown.
    let shown = recorded.calls.iter().find(|c| c.renames() && c.arguments.contains("\"READY\""));
    let shown = shown.unwrap_or_else(|| panic!("it is shown: {:#?}", recorded.calls));
    let paused = calls::stop(&command, shown).expect("it stops where it stopped before");
    world.ok("admin", "lock freeze --force --for 1h --reason overruled");
    let outcome = paused.go_on().ok();
    let told = &outcome.json()["data"];
    let why = told["lost"].as_str().expect("the loss is told");
    assert!(why.contains("taken over"), "{outcome}");
    let head = &world.status()["head"];
    assert_eq!(&told["snapshot"]["snapshot_id"], head, "{outcome}");
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
    let running = world.run("ci", "run --lease 9s", &script).start();
    eventually("it is kept", PATIENCE, || world.status()["keeper"]["alive"] == true);
    let first = world.keeper();
    world.signal(first, Signal::KILL);
    eventually("another one keeps it", PATIENCE, || {
        let status = world.status();
        status["keeper"]["alive"] == true && status["keeper"]["pid"] != first.as_raw_nonzero().get()
    });
    fs_err::write(&go, "").expect("told to go on");
    let outcome = running.wait(PATIENCE).ok();
    assert_eq!((outcome.stdout(), outcome.stderr()), ("done\n", ""));
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn a_release_from_within_is_refused_and_the_run_goes_on() {
    let world = World::new();
    let script = "jvs lock release; echo told $?; jvs lock status | grep -c 'this session'";
    let outcome = world.run("ci", "run", script).run().ok();
    assert_eq!(outcome.stdout(), "told 2\n1\n");
    assert!(outcome.stderr().contains("commands of this session still need"), "{outcome}");
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
    // The keeper's later renames hang for two minutes, as in a dead mount. The command
    // itself makes five: the hold's birth and two of its names, the lock, its stake.
    let running = world
        .run("ci", "run --lease 1s", &script)
        .under([
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "inject=renameat,renameat2,rename:delay_enter=120000000:when=6+",
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
    fs_err::write(&plain, "no program").expect("a file");
    for (program, exit) in [("/no/such/program", 127), (plain.to_str().expect("text"), 126)] {
        let outcome = world.jvs("ann", "run --").arg(program).run().exits(exit);
        assert!(outcome.stderr().contains(&format!("cannot run {program}: ")), "{outcome}");
        assert_eq!(world.status()["state"], "free");
    }
}

/// The guardian of a run: its only child that is no keeper.
fn guardian(running: Pid) -> Pid {
    let all = jvs_repo::proc::processes();
    let me = running.as_raw_nonzero().get().unsigned_abs();
    let of_run =
        |process: &&jvs_repo::proc::Process| process.parent == me && process.name == "jvs-guardian";
    let found = all.iter().find(of_run).expect("a run has a guardian");
    Pid::from_raw(i32::try_from(found.pid).expect("a pid")).expect("not zero")
}

/// A command with a child that has left its group and its session.
fn with_a_daemon(world: &World) -> (std::path::PathBuf, std::path::PathBuf, String) {
    let daemon = world.outside("daemon");
    let prelude = format!(
        "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000' &",
        daemon.display()
    );
    let (file, script) = waiting(world, &prelude);
    (daemon, file, script)
}

#[test]
fn a_guardian_that_is_killed_or_stopped_keeps_nobody_alive() {
    for (contain, signal) in [
        ("reap", Signal::KILL),
        ("reap", Signal::STOP),
        ("auto", Signal::KILL),
        ("auto", Signal::STOP),
    ] {
        let world = World::new();
        world.ok("ann", "config set reclaim.emergency_override true");
        let (daemon, file, script) = with_a_daemon(&world);
        let options = format!("run --lease 3s --contain {contain}");
        let running = world.run("ci", &options, &script).start();
        let all = [pid_in(&file), pid_in(&daemon)];
        let guardian = guardian(running.pid());
        world.signal(guardian, signal);
        let exit = if signal == Signal::STOP {
            world.ok("admin", "lock reclaim --emergency --reason stop --no-keeper");
            5
        } else {
            137
        };
        let outcome = running.wait(PATIENCE).exits(exit);
        assert!(all.into_iter().all(is_gone), "{contain} {signal:?}: {outcome}");
        if signal == Signal::STOP {
            world.signal(guardian, Signal::CONT);
            eventually("the guardian ends, too", PATIENCE, || is_gone(guardian));
        } else {
            assert_eq!(world.status()["state"], "free");
        }
    }
}

/// Those who are left have no parent that knows of them, and do not want to end.
#[test]
fn my_build_does_not_write_beside_the_next_one_though_its_run_and_guardian_were_killed() {
    for contain in ["reap", "auto"] {
        for run_first in [true, false] {
            let world = World::new();
            let (daemon, file, script) = with_a_daemon(&world);
            let script = format!("trap '' TERM HUP; {script}");
            let options = format!("run --lease 3s --contain {contain}");
            let running = world.run("ci", &options, &script).start();
            let all = [pid_in(&file), pid_in(&daemon)];
            let (run, guardian) = (running.pid(), guardian(running.pid()));
            let order = if run_first { [run, guardian] } else { [guardian, run] };
            order.into_iter().for_each(|process| world.signal_if_there(process, Signal::KILL));
            running.wait(PATIENCE);
            world.ok("next", "lock acquire --no-keeper --wait=25s");
            let left: Vec<Pid> = all.into_iter().filter(|process| !is_gone(*process)).collect();
            assert!(left.is_empty(), "{contain}, the run first: {run_first}: {left:?}");
        }
    }
}

/// Nobody can tell whether all have ended whose environment says nothing of the run: so
/// the lock is not given back before its time.
#[test]
fn a_lock_whose_guardian_was_killed_is_not_given_back_early() {
    let world = World::new();
    let (file, script) = waiting(&world, "trap '' TERM");
    let hidden = format!("env -i setsid sh -c '{}'", script.replace('\'', "'\\''"));
    let running = world.run("ci", "run --lease 3s --contain reap", &hidden).start();
    let hidden = pid_in(&file);
    let until = world.status()["lease_expires_at"].clone();
    for process in [running.pid(), guardian(running.pid())] {
        world.signal_if_there(process, Signal::KILL);
    }
    running.wait(PATIENCE);
    world.ok("next", "lock acquire --no-keeper --wait=25s");
    let since = world.record()["created_at"].clone();
    assert!(since.as_str() > until.as_str(), "{since} is before {until}");
    world.signal_if_there(hidden, Signal::KILL);
    let told = world.ok("ci", "status");
    assert!(told.stderr().contains("its guardian was killed"), "{told}");
}

#[test]
fn nobody_leaves_a_cgroup_through_somebody_else_s_pid_namespace() {
    if !granted(&[Capability::Root, Capability::Program("nsenter")]) {
        return;
    }
    let world = World::new();
    if world.run("ci", "run --contain cgroup", "true").run().code() != 0 {
        return; // The kit has said that there are none here.
    }
    let mut elsewhere = std::process::Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child", "sleep", "1000"])
        .spawn()
        .expect("a namespace");
    let first = || {
        let all = jvs_repo::proc::processes();
        all.iter().find(|process| process.parent == elsewhere.id()).map(|process| process.pid)
    };
    eventually("it has a first process", PATIENCE, || first().is_some());
    let out = world.outside("out");
    let script = format!(
        "nsenter --pid=/proc/{}/ns/pid sh -c \
         '(setsid sh -c \"while :; do echo x >> {}; sleep 0.02; done\" &); sleep 0.2'",
        first().expect("seen"),
        out.display()
    );
    world.run("ci", "run --contain cgroup", &script).run().ok();
    let size = || out.metadata().expect("written").len();
    world.ok("next", "lock acquire --no-keeper");
    let before = size();
    world.run("next", "run", "sleep 0.3").run().ok();
    assert_eq!(size(), before, "it writes on");
    let _ = elsewhere.kill();
    let _ = elsewhere.wait();
}

/// Whoever ends what is left clears its cgroup away, for nobody else knows of it.
#[test]
fn no_cgroup_is_left_of_a_run_that_was_killed_with_its_guardian() {
    let world = World::new();
    if world.run("ci", "run --contain cgroup", "true").run().code() != 0 {
        return; // The kit has said that there are none here.
    }
    let (file, script) = waiting(&world, "true");
    let running = world.run("ci", "run --lease 3s --contain cgroup", &script).start();
    let command = pid_in(&file);
    let of_command = format!("/proc/{}/cgroup", command.as_raw_nonzero());
    let of_command = fs_err::read_to_string(of_command).expect("it runs");
    let path = of_command.lines().find_map(|line| line.strip_prefix("0::/")).expect("unified");
    let mounts = fs_err::read_to_string("/proc/self/mounts").expect("mounts");
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let mount = mount.and_then(|line| line.split(' ').nth(1)).expect("a mount");
    let cgroup = std::path::Path::new(mount).join(path);
    assert!(path.contains("jvs-run-") && cgroup.is_dir(), "{}", cgroup.display());
    // Stopped first, so that neither has the time to clear away behind the other.
    let both = [guardian(running.pid()), running.pid()];
    for signal in [Signal::STOP, Signal::KILL] {
        both.into_iter().for_each(|process| world.signal(process, signal));
    }
    running.wait(PATIENCE);
    world.ok("next", "lock acquire --no-keeper --wait=25s");
    eventually("it is cleared away", PATIENCE, || !cgroup.exists());
}

/// A script that ends when it has started one who sleeps, in a session of its own, and
/// whose name is by then that of what it does.
fn leaves_a_sleeper(file: &std::path::Path) -> String {
    format!(
        "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000' & \
         until [ -e {0} ] && grep -q sleep /proc/$(cat {0})/comm; do sleep 0.02; done",
        file.display()
    )
}

/// As in a sandbox that knows an older kernel's calls alone.
#[test]
fn what_i_left_in_the_background_is_ended_also_where_processes_have_no_handles() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let world = World::new();
    let daemon = world.outside("daemon");
    let script = leaves_a_sleeper(&daemon);
    let without = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pidfd_open", "-e"];
    let without = without.into_iter().chain(["inject=pidfd_open:error=ENOSYS"]);
    let outcome = world.run("ci", "run --contain reap", &script).under(without).run().ok();
    assert!(is_gone(pid_in(&daemon)), "{outcome}");
    assert!(outcome.stderr().contains("sleep"), "it is named: {outcome}");
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn my_build_goes_on_when_i_hang_up_if_i_said_so() {
    for contain in ["reap", "auto"] {
        let world = World::new();
        let (file, script) = waiting(&world, "");
        let script = script.replace("while :", "while [ ! -e go ]");
        let options = format!("run --contain {contain}");
        let running = world.run("ci", &options, &script).under(["nohup"]).start();
        let command = pid_in(&file);
        world.signal(running.pid(), Signal::HUP);
        world.signal(command, Signal::HUP);
        fs_err::write(world.root().join("main/go"), "").expect("let go");
        running.wait(PATIENCE).ok();
    }
}

#[test]
fn a_session_may_be_called_what_looks_like_an_option() {
    let world = World::new();
    world.ok("-x", "lock acquire --for 1m");
    world.ok("-x", "run -- true");
    world.ok("-x", "lock release");
}

#[test]
fn what_a_command_leaves_in_the_background_is_ended_and_named() {
    let world = World::new();
    let outcome = world.run("ci", "run", "sleep 1000 & exit 3").run().exits(3);
    assert!(
        outcome.stderr().contains("ended background processes of the command: sleep ("),
        "{outcome}"
    );
    assert_eq!(world.status()["state"], "free");
    let outcome = world.run("ci", "run --json", "setsid sleep 1000 & sleep 0.1").run().ok();
    let data = &outcome.json()["data"];
    assert_eq!(data["background_ended"][0]["command"], "sleep", "{data}");
    assert_eq!(data["background_left"], serde_json::json!([]), "{data}");
    // What ends by itself is waited for, and no word is lost about it.
    let outcome = world.run("ci", "run", "(sleep 0.1; echo late) & exit 0").run().ok();
    assert_eq!((outcome.stdout(), outcome.stderr()), ("late\n", ""));
}

#[test]
fn a_daemon_may_be_left_and_that_is_said() {
    for contain in ["auto", "reap"] {
        let world = World::new();
        let daemon = world.outside("daemon");
        let script = format!("{}; exit 4", leaves_a_sleeper(&daemon));
        let options = format!("run --leave-background --contain {contain}");
        let outcome = world.run("ci", &options, &script).run().exits(4);
        let left = pid_in(&daemon);
        let alive = !is_gone(left);
        world.signal(left, Signal::KILL);
        assert!(alive, "{contain}: it lives on");
        let said = format!("left in the background, without the lock: sleep ({left})");
        assert!(outcome.stderr().contains(&said), "{outcome}");
        assert_eq!(world.status()["state"], "free");
    }
    let world = World::new();
    let words = "run --leave-background --contain pidns";
    let outcome = world.run("ci", words, "echo never").run().exits(64);
    assert_eq!(outcome.stdout(), "");
}

/// A keeper is killed, and the next one hangs at its first renewal: the command ends
/// all the same before anybody else can have the lock.
#[test]
fn a_keeper_that_cannot_begin_in_time_keeps_nobody_alive() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let world = World::new();
    let (file, script) = waiting(&world, "true");
    let running = world.run("ci", "run --lease 3s", &script).start();
    let child = pid_in(&file);
    let keeper = world.keeper();
    let mut strace = std::process::Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat,renameat2,rename"]);
    strace.args(["-e", "inject=renameat,renameat2,rename:delay_enter=120000000"]);
    strace.arg("-p").arg(running.pid().as_raw_nonzero().to_string());
    let hanging = Running::start(strace);
    let status = format!("/proc/{}/status", running.pid().as_raw_nonzero());
    eventually("what it starts hangs", PATIENCE, || {
        let status = fs_err::read_to_string(&status).expect("it runs");
        !status.contains("TracerPid:\t0\n")
    });
    world.signal(keeper, Signal::KILL);
    world.ok("rival", "lock acquire --no-keeper --wait=20s");
    assert!(is_gone(child), "beside the next holder");
    let outcome = running.wait(PATIENCE).exits(5);
    assert!(outcome.stderr().contains("it did not begin in time"), "{outcome}");
    drop(hanging);
}

#[test]
fn however_it_is_contained_a_command_ends_as_it_ends() {
    let world = World::new();
    for contain in ["cgroup", "pidns", "reap"] {
        let options = format!("run --contain {contain}");
        let tried = world.run("ci", &options, "true").run();
        if !tried.status.success() {
            jvs_kit::live::capability::skip(&format!("--contain {contain}: {tried}"));
            continue;
        }
        world.run("ci", &options, "exit 9").run().exits(9);
        world.run("ci", &options, "kill -SEGV $$").run().exits(139);
        let said = world.run("ci", &format!("{options} -v"), "true").run().ok();
        assert!(said.stderr().contains(&format!("({contain})")), "{said}");
        let (file, script) = waiting(&world, "trap 'exit 21' TERM");
        let running = world.run("ci", &options, &script).start();
        eventually("it runs", PATIENCE, || file.exists());
        world.signal(running.pid(), Signal::TERM);
        running.wait(PATIENCE).exits(21);
        fs_err::remove_file(file).expect("written by the command");
        assert_eq!(world.status()["state"], "free");
    }
    let refused = world.run("ci", "run --contain cage", "true").run();
    refused.exits(64);
}

/// Stopped or killed, keeper, run and guardian: what the tests of single ways leave out.
#[test]
fn whoever_is_stopped_or_killed_somebody_ends_the_command_in_time() {
    let world = World::new();
    world.ok("ann", "config set reclaim.emergency_override true");
    let (daemon, file, script) = with_a_daemon(&world);
    let running = world.run("ci", "run --lease 3s", &script).start();
    let all = [pid_in(&file), pid_in(&daemon)];
    // The run is stopped: its keeper ends the command all the same, and says so later.
    world.signal(running.pid(), Signal::STOP);
    world.ok("admin", "lock reclaim --emergency --reason stop --no-keeper");
    eventually("everybody is ended", PATIENCE, || all.into_iter().all(is_gone));
    world.signal(running.pid(), Signal::CONT);
    running.wait(PATIENCE).exits(5);
}

/// With both of those stopped who watch the lease, the guardian ends the command before
/// anybody else may have the lock; and with all three nobody does, so it is they who end it
/// in all the other tests.
#[test]
fn each_of_those_who_watch_is_needed() {
    for and_the_guardian in [false, true] {
        let world = World::new();
        let (file, script) = waiting(&world, "true");
        let running = world.run("ci", "run --lease 3s", &script).start();
        let (child, keeper) = (pid_in(&file), world.keeper());
        let guardian = guardian(running.pid());
        world.signal(running.pid(), Signal::STOP);
        world.signal(keeper, Signal::STOP);
        if and_the_guardian {
            world.signal(guardian, Signal::STOP);
        }
        world.ok("rival", "lock acquire --no-keeper --wait=20s");
        assert_eq!(is_gone(child), !and_the_guardian, "when somebody else has the lock");
        // Any of them ends it as soon as it can, and the run says why.
        world.signal(running.pid(), Signal::CONT);
        running.wait(PATIENCE).exits(5);
        assert!(is_gone(child));
        eventually("the keeper is ended by its run", PATIENCE, || is_gone(keeper));
        if and_the_guardian {
            world.signal(guardian, Signal::CONT);
        }
        eventually("and the guardian is gone", PATIENCE, || is_gone(guardian));
    }
}
