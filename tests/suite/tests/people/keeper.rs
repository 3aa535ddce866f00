//! The life of a keeper.

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::{Running, eventually};
use rustix::process::Signal;

use crate::world::{PATIENCE, World, is_gone};

#[test]
fn a_kept_lease_outlives_many_times_its_length_and_every_command() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 300ms");
    let first = world.status()["record"]["lease_expires_at"].clone();
    eventually("ten renewals", PATIENCE, || world.events("renew").len() >= 10);
    let status = world.status();
    assert_eq!((&status["state"], &status["fencing_token"]), (&"held".into(), &1.into()));
    assert_ne!(status["record"]["lease_expires_at"], first);
    assert_eq!(status["keeper"]["alive"], true);
    let keeper = world.keeper();
    world.ok("ann", "lock release");
    assert!(is_gone(keeper), "told before the release was issued");
    world.audit_holds();
}

#[test]
fn a_keeper_whose_repository_was_removed_ends_with_its_next_renewal() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 1h");
    let keeper = world.keeper();
    fs_err::remove_dir_all(world.root()).expect("removed");
    eventually("it has ended", PATIENCE, || is_gone(keeper));
}

#[test]
fn a_keeper_holds_none_of_its_starter_s_streams() {
    let world = World::new();
    // With `$(…)` the shell waits until nobody holds the pipe any more.
    let shell = world.jvs("ann", "lock acquire").under([
        "sh",
        "-c",
        "out=$(\"$0\" \"$@\" 2>&1); echo \"$out\"",
    ]);
    let outcome = shell.run().ok();
    assert!(outcome.stdout().contains("Locked worktree main"), "{outcome}");
    assert_eq!(world.status()["keeper"]["alive"], true);
}

#[test]
fn sigterm_to_the_keeper_gives_the_lock_back() {
    let world = World::new();
    world.ok("ann", "lock acquire");
    let keeper = world.keeper();
    world.signal(keeper, Signal::TERM);
    world.eventually_free();
    eventually("it has ended", PATIENCE, || is_gone(keeper));
    world.audit_holds();
}

#[test]
fn what_somebody_did_after_my_keeper_was_told_to_end_is_not_overwritten_without_my_word() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 1h");
    // By the machine that shuts down, an admin, a run that it was started in: not by ann.
    world.signal(world.keeper(), Signal::TERM);
    world.eventually_free();
    world.run("bob", "run --snapshot bob's", "echo bob > f").run().ok();
    let refused = world.jvs("ann", "snapshot mine").run().exits(5);
    assert!(refused.stderr().contains("E_FENCING_MISMATCH"), "{refused}");
    assert!(refused.stderr().contains("its keeper was asked to end"), "told why: {refused}");
    world.ok("ann", "lock acquire --no-keeper");
    world.ok("ann", "snapshot mine");
    world.audit_holds();
}

#[test]
fn sigkill_of_the_keeper_means_expiry_and_nothing_worse() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 1s");
    let keeper = world.keeper();
    world.signal(keeper, Signal::KILL);
    eventually("it is seen to be gone", PATIENCE, || world.status()["keeper"]["alive"] == false);
    world.ok("bob", "lock acquire --no-keeper --wait=20s");
    let status = world.status();
    assert_eq!(
        (&status["record"]["session_id"], &status["fencing_token"]),
        (&"bob".into(), &2.into())
    );
    world.audit_holds();
}

#[test]
fn a_keeper_ends_when_its_time_is_over_and_gives_the_lock_back() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 400ms");
    let keeper = world.keeper();
    world.eventually_free();
    eventually("it has ended", PATIENCE, || is_gone(keeper));
}

#[test]
fn acquiring_again_replaces_the_keeper_and_its_time() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 1h");
    let first = world.keeper();
    world.ok("ann", "lock acquire --for 500ms");
    assert!(is_gone(first), "one keeper per lock");
    world.eventually_free();
    world.ok("ann", "lock acquire --for 1h");
    let second = world.keeper();
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    assert!(is_gone(second));
    assert!(world.status()["keeper"].is_null());
}

#[test]
fn a_keeper_ends_with_the_process_that_it_was_told_to_follow() {
    let world = World::new();
    let mut sleep = std::process::Command::new("sleep");
    sleep.arg("1000");
    let followed = Running::start(sleep);
    world.ok("ann", &format!("lock acquire --while {}", followed.pid().as_raw_nonzero()));
    assert_eq!(world.status()["state"], "held");
    drop(followed);
    world.eventually_free();
}

#[test]
fn nobody_without_a_name_and_a_terminal_is_promised_a_lock() {
    let world = World::new();
    let nameless = |words: &str| {
        let jvs = world.jvs("", words).env_remove("JVS_SESSION_ID").env_remove("JVS_KEEP_WHILE");
        jvs.under(["setsid", "-w"])
    };
    let refused = nameless("lock acquire").run().exits(1);
    assert!(refused.stderr().contains("E_SESSION_INVALID"), "{refused}");
    assert!(refused.stderr().contains("export JVS_SESSION_ID=NAME"), "{refused}");
    assert_eq!(world.status()["state"], "free");
    assert!(world.events("acquire").is_empty(), "it was not even tried");
    // What is over with the command needs no name.
    nameless("run -- true").run().ok();
    nameless("snapshot").run().ok();
    // The steps of a CI job are one session.
    let step = |words: &str| nameless(words).env("CI_SYSTEM", "drone").env("CI_RUN_ID", "7");
    step("lock acquire").run().ok();
    let seen = world.status();
    assert_eq!(seen["record"]["session_id"], "ci:7:drone");
    step("lock release").run().ok();
}

#[test]
fn a_lost_lock_is_told_in_the_repository_where_it_was_lost() {
    let (world, other) = (World::new(), World::new());
    world.ok("ann", "config set reclaim.emergency_override true");
    world.ok("ann", "lock acquire --lease 600ms");
    let keeper = world.keeper();
    world.ok("admin", "lock reclaim --emergency --reason maintenance --no-keeper");
    eventually("the keeper has noticed", PATIENCE, || is_gone(keeper));
    let elsewhere = world.jvs("ann", "lock status").cwd(other.root().join("main")).run().ok();
    assert_eq!(elsewhere.stderr(), "", "another repository");
    let told = world.ok("ann", "lock status");
    assert!(told.stderr().contains("warning: worktree 'main' is no longer yours"), "{told}");
}

#[test]
fn one_home_directory_on_two_hosts_is_two_holders() {
    let world = World::new();
    let other_boot = world.outside("boot_id");
    fs_err::write(&other_boot, "01234567-89ab-4cde-8f01-23456789abcd\n").expect("written");
    let mount = format!(
        "mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"",
        other_boot.display()
    );
    if !granted(&[Capability::Root]) {
        return;
    }
    let there =
        |words: &str| world.jvs("ann", words).under(["unshare", "--mount", "sh", "-c", &mount]);
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    let nonce = world.status()["record"]["holder_nonce"].clone();
    // The same id elsewhere takes over under a new token, and the old hold is fenced.
    let taken = there("lock acquire --no-keeper --lease 1h --json").run().ok().json();
    assert_eq!(taken["data"]["how"], "reclaimed", "{taken}");
    assert_eq!(taken["data"]["fencing_token"], 2);
    assert_ne!(taken["data"]["record"]["holder_nonce"], nonce);
    world.jvs("ann", "lock renew").run().exits(4);
    world.jvs("ann", "lock release").run().exits(4);
    there("lock release").run().ok();
}

#[test]
fn a_lost_lock_is_told_to_the_session_s_next_command_once() {
    let world = World::new();
    world.ok("ann", "config set reclaim.emergency_override true");
    world.ok("ann", "lock acquire --lease 600ms");
    let keeper = world.keeper();
    world.ok("admin", "lock reclaim --emergency --reason maintenance --no-keeper");
    eventually("the keeper has noticed", PATIENCE, || is_gone(keeper));
    let told = world.ok("ann", "lock status");
    assert!(told.stderr().contains("warning: worktree 'main' is no longer yours"), "{told}");
    assert_eq!(world.ok("ann", "lock status").stderr(), "", "once");
    assert_eq!(world.ok("admin", "lock status").stderr(), "", "and nobody else");
}

#[test]
fn a_keeper_that_slept_through_its_lease_gives_up_when_it_wakes() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 400ms");
    let keeper = world.keeper();
    world.signal(keeper, Signal::STOP);
    world.ok("bob", "lock acquire --no-keeper --wait=20s");
    world.signal(keeper, Signal::CONT);
    eventually("it has ended", PATIENCE, || is_gone(keeper));
    let told = world.ok("ann", "lock status");
    assert!(told.stderr().contains("no longer yours"), "{told}");
    assert_eq!(world.status()["record"]["session_id"], "bob");
    world.audit_holds();
}

#[test]
fn an_agent_works_with_one_name_over_many_shells() {
    let world = World::new();
    let shell = |script: &str| {
        let program = jvs_kit::live::binary::jvs();
        world
            .jvs("agent-7", "lock status")
            .env("JVS", program)
            .under(["setsid", "-w", "sh", "-c", script])
            .run()
    };
    shell("\"$JVS\" lock acquire --lease 500ms").ok();
    eventually("renewals", PATIENCE, || world.events("renew").len() >= 4);
    shell("\"$JVS\" lock renew").ok();
    shell("JVS_SESSION_ID=agent-8 \"$JVS\" lock acquire").exits(2);
    shell("\"$JVS\" lock release").ok();
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn the_keeper_is_small() {
    let world = World::new();
    world.ok("ann", "lock acquire");
    let pid = world.keeper().as_raw_nonzero();
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).expect("a field");
        line.split_whitespace().nth(1).expect("a value").parse().expect("a number")
    };
    assert!(field("Threads:") <= 2, "{status}");
    // What it has for itself; its program's pages are shared and in the cache.
    assert!(field("RssAnon:") < 1_500, "{} kB of its own", field("RssAnon:"));
}

/// A script's own lock, and a pipe that somebody reads to its end, above the
/// standard streams.
/// The keeper is held up at its first step, the lease runs out meanwhile and another
/// session takes the lock: that is a lost lock, not trouble with a disk.
#[test]
fn a_lock_lost_before_its_keeper_begins_is_told_as_lost() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let world = World::new();
    let trace = world.outside("trace");
    let slow = world.jvs("ann", "lock acquire --lease 500ms --json").under([
        "strace",
        "-f",
        "-qq",
        "-o",
        trace.to_str().expect("a plain path"),
        "-e",
        "trace=setsid",
        "-e",
        "inject=setsid:delay_enter=4000000",
    ]);
    let slow = slow.start();
    eventually("it is taken", PATIENCE, || world.status()["state"] != "free");
    world.ok("bob", "lock acquire --no-keeper --lease 1m --wait=20s");
    let told = slow.wait(PATIENCE);
    assert!([5, 6].contains(&told.code()), "{told}");
    let code = told.json()["error"]["code"].clone();
    assert!(code == "E_FENCING_MISMATCH" || code == "E_LOCK_EXPIRED", "{told}");
}

#[test]
fn a_doctor_in_the_holders_session_leaves_it_holding() {
    let world = World::new();
    fs_err::write(world.root().join("main/file"), "one").expect("written");
    world.ok("ann", "lock acquire");
    let head = world.json("ann", "snapshot one")["data"]["snapshot_id"].clone();
    // As if its publisher had died between the commit and the end.
    let id = head.as_str().expect("an id").parse().expect("an id");
    let dir = jvs_repo::layout::snapshot(id);
    let at = |path: jvs_repo::store::RepoPath| world.root().join(path.as_str());
    let (ready, staged) = (jvs_repo::layout::ready(&dir), jvs_repo::layout::ready_staged(&dir));
    fs_err::rename(at(ready.clone()), at(staged)).expect("renamed");
    let keeper = world.keeper();
    world.ok("ann", "doctor --strict --repair");
    assert!(at(ready).exists(), "it was made visible");
    let status = world.status();
    assert_eq!((&status["state"], &status["fencing_token"]), (&"held".into(), &1.into()));
    assert!(!is_gone(keeper), "and it is still kept");
    world.jvs("bob", "lock acquire").run().exits(2);
}
