//! Commands of a session that others of it cannot see: in another namespace, or behind a
//! private directory that is gone.

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::eventually;
use rustix::process::Signal;

use crate::holds::{holder, run_until_told};
use crate::private::{hold, place};
use crate::world::{PATIENCE, World};

#[test]
fn my_build_is_not_taken_for_dead_where_the_machine_seems_to_have_booted_at_another_time() {
    if !granted(&[Capability::Root, Capability::Program("unshare")]) {
        return;
    }
    let world = World::new();
    let (build, go) = run_until_told(&world, "ann", "run", "build");
    let shifted = ["unshare", "--time", "--boottime", "1000", "--fork"];
    let second = world.run("ann", "run", "echo SECOND").under(shifted).run().exits(2);
    assert_eq!(second.stdout(), "", "{second}");
    assert!(second.stderr().contains("another command of this session"), "{second}");
    assert_eq!(holder(&world), ("ann".to_owned(), 1), "it still runs");
    go.go();
    build.wait(PATIENCE).ok();
    world.eventually_free();
}

#[test]
fn the_time_i_locked_it_for_ends_also_where_my_private_directory_is_gone() {
    let world = World::new();
    world.ok("ann", "config set lock.renew_interval_ms 500");
    world.ok("ann", "config set lock.lease_duration_ms 3000");
    world.ok("ann", "lock acquire --for 2s");
    fs_err::remove_dir_all(place(&world)).expect("removed");
    eventually("it has run out", PATIENCE, || {
        matches!(world.status()["state"].as_str(), Some("free" | "expired" | "stealable"))
    });
}

/// A new PID namespace, whose processes all end with the program that made it.
const ELSEWHERE: [&str; 6] =
    ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--mount"];

#[test]
fn what_died_with_its_container_keeps_my_lock_for_nobody() {
    if !granted(&[Capability::Root]) {
        return;
    }
    let world = World::new();
    world.ok("ann", "lock acquire --for 4s");
    let up = world.outside("up");
    let up = up.display();
    let script = format!(
        "jvs run -- sh -c 'echo > {up}; sleep 100' & \
         while [ ! -e {up} ]; do sleep 0.02; done; kill -9 $!"
    );
    world.run("ann", "run --contain pidns", &script).run().ok();
    world.eventually_free();
    world.run("ann", "run", "true").run().ok();
    world.eventually_free();
}

#[test]
fn my_build_in_a_container_is_alive_until_the_container_ends() {
    if !granted(&[Capability::Root, Capability::Program("unshare")]) {
        return;
    }
    let world = World::new();
    let up = world.outside("up");
    let script = format!("echo > {}; sleep 1000", up.display());
    let build = world.run("ann", "run", &script).under(ELSEWHERE).start();
    eventually("it runs", PATIENCE, || up.exists());
    world.run("ann", "run", "true").run().exits(2);
    let refused = world.jvs("ann", "lock release --force").run().exits(2);
    assert!(refused.stderr().contains("could not be ended from here"), "{refused}");
    assert!(!refused.stderr().contains("--force"), "not what was just tried: {refused}");
    assert_eq!(holder(&world), ("ann".to_owned(), 1));
    build.signal(Signal::KILL);
    build.wait(PATIENCE);
    eventually("the container has ended", PATIENCE, || {
        world.run("ann", "run", "true").run().code() == 0
    });
    world.eventually_free();
}

/// A PID namespace whose `/proc` still shows the one that it was made in: what has my
/// number there is somebody else.
const BLIND: [&str; 4] = ["unshare", "--pid", "--fork", "--kill-child"];

#[test]
fn where_proc_shows_other_processes_than_mine_nobody_is_taken_for_dead() {
    if !granted(&[Capability::Root, Capability::Program("unshare")]) {
        return;
    }
    let world = World::new();
    // One command there is alive, and another one there looks at it.
    let script = "jvs lock acquire --no-keeper --lease 10m -w main >/dev/null || exit 90; \
                  jvs run -w main -- true; test $? = 1 || exit 91; \
                  mount -t proc proc /proc || exit 92; \
                  jvs run -w main -- true || exit 93; jvs lock release -w main";
    let under = BLIND.into_iter().chain(["--mount", "sh", "-c", script]);
    world.run("ann", "", "").under(under).run().ok();
    world.eventually_free();
}

#[test]
fn i_can_give_up_what_nobody_can_tell_the_life_of() {
    let needed = [Capability::Root, Capability::Program("unshare"), Capability::Program("strace")];
    if !granted(&needed) {
        return;
    }
    let world = World::new();
    let up = world.outside("up");
    let script = format!("echo > {}; sleep 1000", up.display());
    let build = world.run("ann", "run", &script).under(ELSEWHERE).start();
    eventually("it runs", PATIENCE, || up.exists());
    // As where the filesystem cannot tell whether a file is claimed.
    let cannot_tell = ["strace", "-f", "-o", "/dev/null", "-e", "inject=flock:error=EOPNOTSUPP"];
    let mut cannot_tell: Vec<String> = cannot_tell.map(str::to_owned).into();
    for stake in hold(&world).join("stakes").read_dir().expect("listed").flatten() {
        cannot_tell.extend(["-P".to_owned(), stake.path().display().to_string()]);
    }
    let cannot_tell: Vec<&str> = cannot_tell.iter().map(String::as_str).collect();
    let released = world.jvs("ann", "lock release --force").under(cannot_tell).run().ok();
    assert!(released.stderr().contains("cannot be seen from here"), "{released}");
    world.eventually_free();
    build.signal(Signal::KILL);
    build.wait(PATIENCE);
}
