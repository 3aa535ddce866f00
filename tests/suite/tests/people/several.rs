//! Several worktrees at once: all or none.

use jvs_kit::live::process::eventually;
use jvs_repo::layout;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::world::{PATIENCE, World, is_gone};

/// A repository with worktrees a, b and c besides main.
fn world() -> World {
    let world = World::new();
    for worktree in ["a", "b", "c"] {
        world.ok("maker", &format!("worktree create {worktree}"));
    }
    world
}

fn state(world: &World, worktree: &str) -> Value {
    world.json("onlooker", &format!("lock status -w {worktree}"))["data"].clone()
}

#[track_caller]
fn is_free(world: &World, worktrees: &[&str]) {
    for worktree in worktrees {
        let state = state(world, worktree);
        assert_eq!(state["state"], "free", "{worktree}: {state}");
    }
}

fn tickets(world: &World, worktree: &str) -> usize {
    let queue = layout::queue(&worktree.parse().expect("a name"));
    world.root().join(queue.as_str()).read_dir().map_or(0, Iterator::count)
}

fn keeper(world: &World, worktree: &str) -> Pid {
    let pid = state(world, worktree)["keeper"]["pid"].as_i64().expect("it is kept");
    Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not zero")
}

#[test]
fn i_take_two_at_once_and_give_them_back_at_once() {
    let world = world();
    let took = world.json("ann", "lock acquire -w b -w a -w b")["data"].clone();
    let names: Vec<_> = took["worktrees"].as_array().expect("two").iter().collect();
    assert_eq!(names.len(), 2, "each once: {took}");
    for (one, name) in names.iter().zip(["a", "b"]) {
        assert_eq!((&one["worktree"], &one["mine"]), (&json!(name), &json!(true)), "{took}");
        assert_eq!(one["keeper"]["alive"], true, "{took}");
    }
    let gave = world.json("ann", "lock release -w a -w b")["data"].clone();
    assert_eq!(gave["worktrees"][1]["worktree"], "b", "{gave}");
    is_free(&world, &["a", "b"]);
    world.audit_holds();
}

#[test]
fn one_worktree_named_twice_is_one() {
    let world = world();
    let took = world.json("ann", "lock acquire -w a -w a")["data"].clone();
    assert_eq!(took["worktree"], "a", "as if named once: {took}");
}

#[test]
fn if_i_cannot_have_both_i_have_neither() {
    let world = world();
    world.ok("bob", "lock acquire -w b");
    let told = world.jvs("ann", "lock acquire -w a -w b --json").run().exits(2).json();
    assert_eq!(told["error"]["code"], "E_LOCK_CONFLICT");
    assert_eq!(told["error"]["details"]["worktree"], "b");
    is_free(&world, &["a"]);
    world.run("ann", "run -w a -w b", "true").run().exits(2);
    world.jvs("ann", "lock acquire -w a -w b --wait=300ms").run().exits(2);
    world.jvs("ann", "lock acquire -w a -w nowhere").run().exits(3);
    is_free(&world, &["a"]);
    assert_eq!(tickets(&world, "b"), 0);
    world.audit_holds();
}

#[test]
fn what_i_held_before_stays_as_it_was_when_i_cannot_have_more() {
    let world = world();
    world.ok("ann", "lock acquire -w a --no-keeper --lease 10m --note mine");
    world.ok("bob", "lock acquire -w c");
    let before = state(&world, "a");
    world.jvs("ann", "lock acquire -w a -w b -w c --lease 1h --note other").run().exits(2);
    let after = state(&world, "a");
    assert_eq!(before["record"], after["record"]);
    assert_eq!(before["fencing_token"], after["fencing_token"]);
    is_free(&world, &["b"]);
    // And from within, what it took goes and what it had stays.
    world.run("ann", "run -w a -w b", "true").run().ok();
    assert_eq!(state(&world, "a")["record"]["session_id"], "ann");
    is_free(&world, &["b"]);
}

#[test]
fn i_wait_for_both_in_turn_and_hold_the_first_meanwhile() {
    let world = world();
    world.ok("bob", "lock acquire -w a");
    world.ok("cid", "lock acquire -w b");
    let ann = world.jvs("ann", "lock acquire -w b -w a --wait=60s --json").start();
    eventually("ann stands in the first line", PATIENCE, || tickets(&world, "a") == 1);
    assert_eq!(tickets(&world, "b"), 0);
    world.ok("bob", "lock release -w a");
    eventually("and then in the second", PATIENCE, || tickets(&world, "b") == 1);
    assert_eq!(state(&world, "a")["record"]["session_id"], "ann");
    world.ok("cid", "lock release -w b");
    ann.wait(PATIENCE).ok();
    assert_eq!(state(&world, "b")["record"]["session_id"], "ann");
}

#[test]
fn whatever_order_we_name_them_in_nobody_waits_for_ever() {
    let world = world();
    let log = world.outside("log");
    let script = format!("echo in >> {0}; sleep 0.1; echo out >> {0}", log.display());
    let orders = ["-w a -w b", "-w b -w a", "-w a -w b -w c", "-w c -w a", "-w b -w c"];
    let all: Vec<_> = orders
        .iter()
        .enumerate()
        .map(|(n, order)| world.run(&format!("s{n}"), &format!("run --wait=60s {order}"), &script))
        .map(|run| run.start())
        .collect();
    for run in all {
        run.wait(PATIENCE).ok();
    }
    is_free(&world, &["a", "b", "c"]);
    world.audit_holds();
}

#[test]
fn a_deadlock_takes_from_me_only_what_i_took_with_it() {
    let world = world();
    world.ok("ann", "lock acquire -w b");
    world.ok("bob", "lock acquire -w c");
    let bob = world.jvs("bob", "lock acquire -w b --wait=60s").start();
    eventually("bob stands in line", PATIENCE, || tickets(&world, "b") == 1);
    let told = world.jvs("ann", "lock acquire -w a -w c --wait=60s --json").run().exits(2).json();
    assert_eq!(told["error"]["code"], "E_DEADLOCK", "{told}");
    is_free(&world, &["a"]);
    assert_eq!(state(&world, "b")["record"]["session_id"], "ann");
    // The hint works: give it back, then take both.
    world.ok("ann", "lock release -w b");
    bob.wait(PATIENCE).ok();
    world.ok("bob", "lock release -w b -w c");
    world.ok("ann", "lock acquire --wait -w b -w c");
}

#[test]
fn what_i_run_over_two_worktrees_finds_both_locks() {
    let world = world();
    let script = "echo $JVS_WORKTREE/$JVS_WORKTREES >&2 && jvs snapshot -w a one && \
                  jvs snapshot -w b two && jvs lock renew -w b && jvs lock acquire -w a && \
                  jvs run -w b -- jvs run -w a -- true && \
                  jvs run -w c -- sh -c 'jvs run -w a -- jvs run -w b -- true'";
    let outcome = world.run("ann", "run -w b -w a --json", script).run().ok();
    assert!(outcome.stderr().starts_with("a/a b\n"), "{outcome}");
    let data = &outcome.json()["data"];
    assert_eq!(data["worktrees"][0], json!({"worktree": "a", "fencing_token": 1, "lost": null}));
    assert_eq!(data["worktrees"][1]["worktree"], "b");
    assert_eq!((&data["exit"], &data["worktree"]), (&json!(0), &Value::Null));
    is_free(&world, &["a", "b", "c"]);
    world.audit_holds();
}

#[test]
fn a_token_of_another_hold_is_refused_for_each_of_them() {
    let world = world();
    world.ok("ann", "lock acquire -w a");
    world.ok("ann", "lock acquire -w b");
    let renew = |worktree: &str, tokens: &str| {
        world
            .jvs("ann", &format!("lock renew -w {worktree}"))
            .env("JVS_FENCING_TOKENS", tokens)
            .run()
    };
    renew("a", "b:9:1-0000").ok();
    renew("b", "a:1:1-0000 b:9:1-0000").exits(5);
    let told = renew("b", "nonsense").exits(1);
    assert!(told.stderr().contains("E_SESSION_INVALID"), "{told}");
}

/// A run over a and b that writes its pid and then sleeps.
fn long_run(world: &World, options: &str) -> (jvs_kit::live::process::Running, Pid) {
    let file = world.outside("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    let running = world.run("ann", &format!("run -w a -w b {options}"), &script).start();
    eventually("it runs", PATIENCE, || file.exists());
    let pid = fs_err::read_to_string(file).expect("written").trim().parse().expect("a pid");
    (running, Pid::from_raw(pid).expect("not zero"))
}

#[test]
fn if_i_lose_one_of_two_everything_ends_and_i_am_told_which() {
    for worktree in ["a", "b"] {
        let world = world();
        let (running, child) = long_run(&world, "--contain reap --json");
        world.ok("admin", "config set reclaim.emergency_override true");
        world.ok("admin", &format!("lock freeze -w {worktree} --for 1m --reason now --force"));
        let told = running.wait(PATIENCE).exits(5).json();
        assert_eq!(told["error"]["code"], "E_FENCING_MISMATCH", "{told}");
        assert_eq!(told["error"]["details"]["worktree"], worktree, "{told}");
        assert!(is_gone(child));
        is_free(&world, &[if worktree == "a" { "b" } else { "a" }]);
        world.audit_holds();
    }
}

#[test]
fn if_a_keeper_is_killed_or_stopped_another_keeps_that_lock_and_my_run_goes_on() {
    let world = world();
    let (running, child) = long_run(&world, "--contain reap --lease 9s");
    for (worktree, signal) in [("a", Signal::KILL), ("b", Signal::STOP)] {
        let struck = keeper(&world, worktree);
        world.signal(struck, signal);
        eventually("another keeps it", PATIENCE, || {
            let pid = state(&world, worktree)["keeper"]["pid"].as_i64();
            pid.is_some_and(|pid| pid != i64::from(struck.as_raw_nonzero().get()))
        });
        assert!(!is_gone(child), "{worktree}");
    }
    world.signal(running.pid(), Signal::TERM);
    running.wait(PATIENCE).exits(143);
    assert!(is_gone(child));
    is_free(&world, &["a", "b"]);
}

#[test]
fn a_killed_run_over_two_leaves_neither_lock_nor_child() {
    let world = world();
    let (running, child) = long_run(&world, "--contain reap");
    world.signal(running.pid(), Signal::KILL);
    eventually("the child is gone", PATIENCE, || is_gone(child));
    for worktree in ["a", "b"] {
        eventually("the lock is free", PATIENCE, || state(&world, worktree)["state"] == "free");
    }
    drop(running);
    // With everybody killed at once, the leases run out.
    let world = self::world();
    let (running, child) = long_run(&world, "--contain reap --lease 2s");
    for process in [keeper(&world, "a"), keeper(&world, "b"), running.pid()] {
        world.signal(process, Signal::KILL);
    }
    eventually("the child is gone", PATIENCE, || is_gone(child));
    drop(running);
    world.ok("bob", "lock acquire -w a -w b --wait=20s");
}

#[test]
fn my_shell_over_two_worktrees_says_so_for_each() {
    let world = world();
    let shell = world.jvs("ann", "shell -w a -w b").env("SHELL", "/bin/true");
    let said = shell.run().ok();
    for line in
        ["Locked worktree a ", "Locked worktree b ", "Released worktree a", "Released worktree b"]
    {
        assert!(said.stderr().contains(line), "{said}");
    }
}

#[test]
fn i_cannot_release_two_if_one_of_them_is_not_mine_or_is_needed() {
    let world = world();
    world.ok("ann", "lock acquire -w a");
    world.jvs("ann", "lock release -w a -w b").run().exits(4);
    assert_eq!(state(&world, "a")["record"]["session_id"], "ann", "it is still hers");
    world.ok("ann", "lock acquire -w b");
    let (runs, go) = (world.outside("runs"), world.outside("go"));
    let wait = format!("until test -e {}; do sleep 0.05; done", go.display());
    let build = world.run("ann", "run -w b", &format!("touch {}; {wait}", runs.display())).start();
    eventually("it builds", PATIENCE, || runs.exists());
    world.jvs("ann", "lock release -w a -w b").run().exits(2);
    assert_eq!(state(&world, "a")["record"]["session_id"], "ann", "and still");
    fs_err::write(go, "").expect("written");
    build.wait(PATIENCE).ok();
    world.ok("ann", "lock release -w a -w b");
}

#[test]
fn several_worktrees_are_refused_where_only_one_can_be_meant() {
    let world = world();
    for words in [
        "lock status -w a -w b",
        "lock renew -w a -w a",
        "lock freeze -w a -w b --for 1m --reason x",
        "snapshot -w a -w b",
        "worktree list -w a -w b",
        "-w a lock acquire -w b",
        "run -w a -w b --snapshot x -- true",
    ] {
        let told = world.jvs("ann", words).run().exits(64);
        assert!(told.stderr().contains("error[E_USAGE]"), "{words}: {told}");
    }
    is_free(&world, &["a", "b"]);
    assert!(world.events("acquire").is_empty(), "nothing was touched");
}

/// `jvs run` is dead at each of its writes: to its keepers, to its guardian, to a log.
#[test]
fn a_run_that_is_killed_at_any_moment_keeps_nobody_out() {
    if !jvs_kit::live::calls::can_be_aimed_at() {
        return;
    }
    for worktrees in ["-w a", "-w a -w b"] {
        let world = world();
        let mut nth = 0;
        loop {
            nth += 1;
            let inject = format!("inject=write:signal=KILL:when={nth}");
            let strace = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=write", "-e", &inject];
            let options = format!("run --contain reap --lease 2s {worktrees}");
            let run = world.run("ann", &options, "sleep 0.2").under(strace).run();
            let words = format!("lock acquire --no-keeper --wait=20s {worktrees}");
            let next = world.jvs("bob", &words).run();
            assert_eq!(next.code(), 0, "killed at write {nth} of {worktrees}: {next}");
            world.ok("bob", &format!("lock release {worktrees}"));
            // What was lost with it is known, so that the next one begins afresh.
            world.ok("ann", &format!("lock acquire --no-keeper {worktrees}"));
            world.ok("ann", &format!("lock release {worktrees}"));
            if run.signal().is_none() && run.code() == 0 {
                break;
            }
        }
        assert!(nth > 2, "it was struck");
        world.audit_holds();
    }
}
