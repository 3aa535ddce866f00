//! One hold, many processes: what a person would say about it.

use std::process::Command;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::mount::Covered;
use jvs_kit::live::process::{Running, eventually};
use jvs_lock::{Hold, State};
use jvs_repo::clock::{BootMs, Clock as _, SystemClock};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use rustix::process::Signal;

use crate::world::{PATIENCE, World, is_gone};

/// Starts a run that goes on until the file it answers with is there, and waits until
/// it runs.
pub(crate) fn run_until_told(
    world: &World,
    session: &str,
    options: &str,
    name: &str,
) -> (Running, Told) {
    let (up, go) = (world.outside(&format!("{name}-up")), world.outside(&format!("{name}-go")));
    let script =
        format!("echo > {}; while [ ! -e {} ]; do sleep 0.02; done", up.display(), go.display());
    let running = world.run(session, options, &script).start();
    eventually("it runs", PATIENCE, || up.exists());
    (running, Told(go))
}

pub(crate) struct Told(std::path::PathBuf);

impl Told {
    pub(crate) fn go(&self) {
        fs_err::write(&self.0, "").expect("told to go on");
    }
}

pub(crate) fn holder(world: &World) -> (String, u64) {
    let status = world.status();
    let session = status["record"]["session_id"].as_str().unwrap_or("nobody").to_owned();
    (session, status["fencing_token"].as_u64().unwrap_or(0))
}

#[test]
fn my_second_run_still_has_the_lock_when_my_first_one_ends() {
    let world = World::new();
    let (first, go_first) = run_until_told(&world, "ann", "run", "first");
    let (second, go_second) = run_until_told(&world, "ann", "run --join", "second");
    go_first.go();
    first.wait(PATIENCE).ok();
    assert_eq!(holder(&world), ("ann".to_owned(), 1), "the second still runs");
    world.jvs("bob", "lock acquire --no-keeper").run().exits(2);
    go_second.go();
    let outcome = second.wait(PATIENCE).ok();
    assert_eq!(outcome.stderr(), "");
    world.eventually_free();
    world.audit_holds();
}

#[test]
fn two_builds_in_one_terminal_do_not_run_at_once_unless_i_say_so() {
    let world = World::new();
    let (first, go) = run_until_told(&world, "ann", "run", "first");
    let refused = world.run("ann", "run", "true").run().exits(2);
    let pid = first.pid().as_raw_nonzero().to_string();
    assert!(refused.stderr().contains("another command of this session"), "{refused}");
    assert!(refused.stderr().contains(&pid), "it says which: {refused}");
    assert!(refused.stderr().contains("jvs run -- sh -c"), "it says what: {refused}");
    assert!(refused.stderr().contains("jvs run --join"), "{refused}");
    world.run("ann", "run --join", "true").run().ok();
    // In line, it gets its turn.
    let waiting = world.run("ann", "run --wait=20s", "echo mine").start();
    go.go();
    first.wait(PATIENCE).ok();
    assert_eq!(waiting.wait(PATIENCE).ok().stdout(), "mine\n");
    world.eventually_free();
}

#[test]
fn a_snapshot_does_not_make_my_lease_longer_than_i_said() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 20s");
    world.ok("ann", "snapshot mine");
    assert_eq!(world.status()["record"]["lease_duration_ms"], 20_000);
    assert_eq!(holder(&world), ("ann".to_owned(), 1));
}

#[test]
fn i_asked_for_the_lock_so_my_runs_may_share_it_and_it_stays_mine() {
    let world = World::new();
    world.ok("ann", "lock acquire");
    let (first, go) = run_until_told(&world, "ann", "run", "first");
    world.run("ann", "run", "true").run().ok();
    go.go();
    first.wait(PATIENCE).ok();
    assert_eq!(holder(&world), ("ann".to_owned(), 1));
    world.ok("ann", "lock release");
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn the_lock_i_took_while_my_build_ran_is_still_mine_when_the_build_ends() {
    let world = World::new();
    let (build, go) = run_until_told(&world, "ann", "run", "build");
    world.ok("ann", "lock acquire");
    go.go();
    build.wait(PATIENCE).ok();
    assert_eq!(holder(&world), ("ann".to_owned(), 1));
    eventually("it is kept", PATIENCE, || world.status()["keeper"]["alive"] == true);
    world.ok("ann", "lock release");
}

#[test]
fn the_lock_i_took_right_after_my_build_was_killed_stays_mine() {
    let world = World::new();
    for round in 0..3 {
        let (build, _) = run_until_told(&world, "ann", "run", &format!("build{round}"));
        world.signal(build.pid(), Signal::KILL);
        let taken = world.ok("ann", "lock acquire --no-keeper --lease 10m --json").json();
        let token = taken["data"]["fencing_token"].as_u64();
        // Until well after the keeper of the killed one has ended what that left.
        let renewals = world.events("renew").len();
        world.run("ann", "run", "sleep 1").run().ok();
        assert!(world.events("renew").len() > renewals);
        assert_eq!(holder(&world), ("ann".to_owned(), token.unwrap_or(0)), "round {round}");
        drop(build);
        world.ok("ann", "lock release");
    }
}

#[test]
fn i_cannot_release_the_lock_under_my_own_build_unless_i_end_it() {
    let world = World::new();
    let (build, _go) = run_until_told(&world, "ann", "run", "build");
    let refused = world.jvs("ann", "lock release --json").run().exits(2).json();
    let by = &refused["error"]["details"]["relied_on_by"][0];
    assert_eq!(by["kind"], "run", "{refused}");
    assert_eq!(by["pid"], i64::from(build.pid().as_raw_nonzero().get()));
    assert_eq!(holder(&world), ("ann".to_owned(), 1), "nothing was changed");
    world.ok("ann", "lock release --force");
    eventually("it was ended", PATIENCE, || is_gone(build.pid()));
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn the_time_i_locked_it_for_does_not_end_my_build() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 300ms --lease 600ms");
    let (build, go) = run_until_told(&world, "ann", "run --lease 600ms", "build");
    let renewals = world.events("renew").len();
    eventually("renewed long after the time", PATIENCE, || {
        world.events("renew").len() > renewals + 4
    });
    assert_eq!(holder(&world), ("ann".to_owned(), 1));
    go.go();
    build.wait(PATIENCE).ok();
    world.eventually_free();
}

#[test]
fn my_build_goes_on_when_what_keeps_its_lock_is_stopped() {
    let world = World::new();
    let (build, go) = run_until_told(&world, "ann", "run --lease 3s", "build");
    let keeper = world.keeper();
    world.signal(keeper, Signal::STOP);
    eventually("another one keeps it", PATIENCE, || {
        let status = world.status();
        status["keeper"]["alive"] == true
            && status["keeper"]["pid"] != keeper.as_raw_nonzero().get()
    });
    eventually("the stopped one is ended", PATIENCE, || is_gone(keeper));
    let renewals = world.events("renew").len();
    eventually("renewed again and again", PATIENCE, || world.events("renew").len() > renewals + 2);
    assert_eq!(holder(&world), ("ann".to_owned(), 1), "it was never given up");
    go.go();
    build.wait(PATIENCE).ok();
    world.eventually_free();
}

#[test]
fn my_lock_is_kept_again_when_i_come_back_after_its_keeper_was_killed() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 5s");
    // The terminal that the lock is kept for is another one than that of the last command.
    let other = std::process::Command::new("sleep").arg("60").spawn().expect("started");
    for command in
        ["snapshot mine", "lock renew", "lock acquire --no-keeper --lease 5s", "run -- true"]
    {
        let keeper = world.keeper();
        world.signal(keeper, Signal::KILL);
        eventually("it is gone", PATIENCE, || is_gone(keeper));
        world.jvs("ann", command).env("JVS_KEEP_WHILE", other.id().to_string()).run().ok();
        assert_eq!(world.status()["keeper"]["alive"], true, "{command}");
        assert_eq!(holder(&world), ("ann".to_owned(), 1), "{command}");
    }
    world.ok("ann", "lock release");
    let mut other = other;
    let _ = other.kill();
    let _ = other.wait();
}

/// What the register says, without a command that would take its time.
fn register(world: &World) -> State {
    let dir = world.root().join(layout::register(&WorktreeName::main()).as_str());
    let read = || {
        let entry = dir.read_dir().ok()?.flatten().next()?;
        entry.file_name().to_str()?.parse().ok()
    };
    let mut state = None;
    eventually("the register says something", PATIENCE, || {
        state = read();
        state.is_some()
    });
    state.expect("it does")
}

/// The lock is free within one grace of the end of the last that needed it, though the
/// next renewal is far away.
#[test]
fn my_lock_is_free_soon_after_the_last_that_needed_it_has_ended() {
    const LEASE_MS: u64 = 60_000;
    let grace_ms = 5_000.min(LEASE_MS / 3);
    let took = |what: &str, end: &dyn Fn(&World) -> BootMs| {
        let world = World::new();
        world.ok("ann", &format!("config set lock.lease_duration_ms {LEASE_MS}"));
        let ended = end(&world);
        eventually(what, PATIENCE, || register(&world).hold == Hold::Free);
        SystemClock.now().boot.since(ended)
    };
    // A machine that lets processes wait for seconds does so now and then; whoever waits for
    // the next renewal takes longer each time.
    let ends = |what: &str, end: &dyn Fn(&World) -> BootMs| {
        let tries: Vec<u64> =
            (0..3).map(|_| took(what, end)).take_while(|ms| *ms > grace_ms).collect();
        assert!(tries.len() < 3, "{what}: free so many ms after its last reason ended: {tries:?}");
    };
    let now = || SystemClock.now().boot;
    ends("a time", &|world| {
        world.ok("ann", "lock acquire --for 1s");
        now().plus(1_000)
    });
    ends("a process", &|world| {
        let mut process = Command::new("sleep").arg("1000").spawn().expect("started");
        world.ok("ann", &format!("lock acquire --while {}", process.id()));
        process.kill().expect("it is there");
        process.wait().expect("it has ended");
        now()
    });
    ends("a terminal", &|world| {
        let mut terminal = crate::terminal::shell(world, None);
        terminal.types("jvs lock acquire\n");
        terminal.sees("Locked worktree", PATIENCE);
        terminal.hang_up();
        let leader = terminal.leader();
        eventually("its shell has ended", PATIENCE, || is_gone(leader));
        now()
    });
    ends("a run", &|world| {
        let (build, go) = run_until_told(world, "ann", "run", "build");
        go.go();
        build.wait(PATIENCE).ok();
        now()
    });
    ends("a run that is killed, and what it left", &|world| {
        let (build, _) = run_until_told(world, "ann", "run", "build");
        world.signal(build.pid(), Signal::KILL);
        now()
    });
    ends("the later of two reasons", &|world| {
        world.ok("ann", "lock acquire --for 1s");
        let (build, go) = run_until_told(world, "ann", "run", "build");
        eventually("its time is over", PATIENCE, || {
            world.json("ann", "session show")["data"]["holds"][0]["stakes"]
                .as_array()
                .is_some_and(|stakes| stakes.iter().all(|stake| stake["kind"] != "acquire"))
        });
        go.go();
        build.wait(PATIENCE).ok();
        now()
    });
}

/// The process ends while the keeper is about to follow it: nothing is heard of that.
#[test]
fn my_lock_is_free_though_whom_it_was_kept_for_ended_before_it_was_followed() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let world = World::new();
    world.ok("ann", "config set lock.lease_duration_ms 600000");
    world.ok("ann", "config set lock.renew_interval_ms 200000");
    let mut process = Command::new("sleep").arg("1000").spawn().expect("started");
    let slowly = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pidfd_open", "-e"];
    let slowly = slowly.into_iter().chain(["inject=pidfd_open:delay_enter=500000"]);
    let words = format!("lock acquire --while {}", process.id());
    let acquired = world.jvs("ann", &words).under(slowly).start();
    eventually("it is locked", PATIENCE, || register(&world).hold != Hold::Free);
    process.kill().expect("it is there");
    process.wait().expect("it has ended");
    // With the keeper, long before the next renewal.
    acquired.wait(PATIENCE);
    assert_eq!(register(&world).hold, Hold::Free);
}

#[test]
fn i_am_told_that_my_time_is_over() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 200ms");
    let keeper = world.keeper();
    eventually("it has ended", PATIENCE, || is_gone(keeper));
    let told = world.ok("ann", "lock status");
    assert!(told.stderr().contains("the time that it was locked for is over"), "{told}");
}

#[test]
fn the_time_i_asked_for_begins_when_i_get_the_lock_and_not_while_i_wait() {
    let world = World::new();
    world.ok("bob", "lock acquire --no-keeper --lease 1h");
    let waiting = world.jvs("ann", "lock acquire --wait=1m --for 3s").start();
    eventually("it waits", PATIENCE, || world.tickets() == 1);
    // For longer than what it asks for lasts.
    std::thread::sleep(std::time::Duration::from_secs(4));
    world.ok("bob", "lock release");
    waiting.wait(PATIENCE).ok();
    assert_eq!(world.status()["state"], "held");
    world.ok("ann", "lock release");
}

#[test]
fn what_somebody_else_did_meanwhile_is_not_overwritten_without_my_word() {
    let world = World::new();
    world.ok("ann", "config set reclaim.emergency_override true");
    world.ok("ann", "lock acquire");
    world.ok("bob", "lock reclaim --emergency --reason stuck --no-keeper");
    world.ok("bob", "snapshot theirs");
    world.ok("bob", "lock release");
    for words in ["snapshot mine", "run -- true", "restore @ --in-place --reason x"] {
        let refused = world.jvs("ann", words).run().exits(5);
        assert!(refused.stderr().contains("E_FENCING_MISMATCH"), "{refused}");
        assert!(refused.stderr().contains("jvs lock acquire -w main"), "{refused}");
    }
    assert_eq!(world.status()["fencing_token"], 2, "nothing was changed");
    let history = world.json("ann", "history");
    assert_eq!(history["data"]["snapshots"].as_array().map(Vec::len), Some(1));
    // "I know."
    world.ok("ann", "lock acquire");
    world.ok("ann", "snapshot mine");
    world.ok("ann", "lock release");
    world.ok("ann", "snapshot again");
    world.audit_holds();
}

#[test]
fn what_somebody_did_after_my_time_was_over_is_not_overwritten_without_my_word() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 200ms");
    world.eventually_free();
    world.ok("bob", "snapshot theirs");
    let refused = world.jvs("ann", "snapshot mine").run().exits(5);
    assert!(refused.stderr().contains("E_FENCING_MISMATCH"), "{refused}");
    assert!(refused.stderr().contains("the time that it was locked for is over"), "{refused}");
    world.ok("ann", "lock acquire --no-keeper");
    world.ok("ann", "snapshot mine");
}

#[test]
fn a_lock_that_nobody_else_had_since_is_simply_mine_again() {
    let world = World::new();
    world.ok("ann", "lock acquire --for 200ms");
    world.eventually_free();
    world.ok("ann", "snapshot afterwards");
    world.ok("ann", "lock acquire --lease 400ms");
    let keeper = world.keeper();
    world.signal(keeper, Signal::KILL);
    eventually("its lease is over", PATIENCE, || world.status()["state"] != "held");
    world.ok("ann", "snapshot mine");
    world.run("ann", "run", "true").run().ok();
}

#[test]
fn a_run_that_was_handed_the_lock_gives_it_back() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 20s");
    let running = world.run("bob", "run --wait=20s --lease 2s", "true").start();
    eventually("it waits", PATIENCE, || world.tickets() == 1);
    world.ok("ann", "lock transfer --to bob");
    running.wait(PATIENCE).ok();
    world.eventually_free();
    world.ok("carl", "lock acquire --no-keeper");
}

#[test]
fn a_rename_or_removal_that_fails_leaves_me_the_lock_i_had() {
    if !granted(&[Capability::Root]) {
        return;
    }
    let world = World::new();
    world.ok("ann", "worktree create w");
    world.ok("ann", "lock acquire -w w");
    let status = || world.json("onlooker", "lock status -w w")["data"].clone();
    let mut token = 1;
    for words in ["worktree remove w", "worktree rename w x"] {
        let waiting = world.jvs("bob", "lock acquire -w w --wait=30s --no-keeper").start();
        let queue = world.root().join(layout::queue(&"w".parse().expect("a name")).as_str());
        let waits = || queue.read_dir().is_ok_and(|tickets| tickets.count() == 1);
        eventually("bob waits", PATIENCE, waits);
        let files = world.root().join("worktrees");
        let stuck = Covered::read_only(&files, &files);
        let failed = world.jvs("ann", words).run().exits(1);
        drop(stuck);
        let now = status();
        assert_eq!(now["record"]["session_id"], "ann", "{words}: {now}");
        assert_eq!(now["keeper"]["alive"], true, "{words}: {now}");
        let held = now["fencing_token"].as_u64().expect("a token");
        assert!(held > token, "{words}: a register that was retired does not go back");
        assert!(failed.stderr().contains(&format!("(fencing token {token}) ended")), "{failed}");
        let again = format!("taken again: fencing token {held}\n");
        assert!(failed.stderr().contains(&again), "{failed}");
        token = held;
        // She is not told that anybody took it: nobody did.
        assert_eq!(world.ok("ann", "snapshot mine -w w").stderr(), "", "{words}");
        waiting.signal(Signal::TERM);
        waiting.wait(PATIENCE);
    }
    world.ok("ann", "lock release -w w");
    world.audit_holds();
}

#[test]
fn i_cannot_remove_or_rename_a_worktree_under_my_own_build() {
    let world = World::new();
    world.ok("ann", "worktree create w");
    let (build, go) = run_until_told(&world, "ann", "run -w w", "build");
    for words in ["worktree remove w", "worktree remove --force w", "worktree rename w x"] {
        let refused = world.jvs("ann", words).run().exits(2);
        assert!(refused.stderr().contains("commands of this session still need"), "{refused}");
    }
    go.go();
    build.wait(PATIENCE).ok();
    world.ok("ann", "worktree rename w x");
}

#[test]
fn the_time_i_ask_for_inside_my_build_is_not_dropped_without_a_word() {
    let world = World::new();
    let told = world.run("ann", "run", "jvs lock acquire --for 1h").run().ok();
    assert!(told.stderr().contains("--for and --while have no effect here"), "{told}");
    let told = world.run("ann", "run", "jvs lock acquire").run().ok();
    assert!(!told.stderr().contains("change nothing"), "nothing was asked for: {told}");
    world.eventually_free();
}
