//! Signals to the keeper of a build, to `jvs run`, to the command, and to two of them at
//! once: whoever is stopped, killed or hung up on, in the end nothing of the build is left
//! and the lock is free.

use jvs_kit::live::process::eventually;
use rustix::process::{Pid, Signal};

use crate::world::{PATIENCE, World, is_gone};

/// Who may be signalled.
const WHO: [&str; 3] = ["keeper", "run", "command"];

fn pid_in(file: &std::path::Path) -> Pid {
    let read = || fs_err::read_to_string(file).ok()?.trim().parse::<i32>().ok();
    eventually("it says who it is", PATIENCE, || read().is_some());
    read().and_then(Pid::from_raw).expect("a pid")
}

fn ends_in_the_end(whom: &[&str], signal: Signal) {
    let what = format!("{signal:?} to {whom:?}");
    let world = World::new();
    let file = world.outside("command");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", file.display());
    let running = world.run("ann", "run --lease 6s", &script).start();
    let (command, keeper) = (pid_in(&file), world.keeper());
    let of = |who: &str| match who {
        "keeper" => keeper,
        "run" => running.pid(),
        _ => command,
    };
    // The end of the first may be the end of the second.
    for who in whom {
        world.signal_if_there(of(who), signal);
    }
    if signal == Signal::STOP {
        let renewals = world.events("renew").len();
        if whom.contains(&"run") && whom.contains(&"keeper") {
            // Nobody is left to renew: it runs out.
            world.ok("rival", "lock acquire --no-keeper --wait=25s");
            world.ok("rival", "lock release");
        } else {
            // On a machine that is too slow to start another keeper in time it is ended.
            eventually(&format!("{what}: renewed"), PATIENCE, || {
                world.events("renew").len() > renewals + 1 || is_gone(running.pid())
            });
        }
        for who in whom {
            if !is_gone(of(who)) {
                world.signal(of(who), Signal::CONT);
            }
        }
    }
    if !is_gone(running.pid()) && !is_gone(command) {
        // Nothing that ends it was done yet.
        let _ = rustix::process::kill_process(running.pid(), Signal::TERM);
    }
    eventually(&format!("{what}: the command is gone"), PATIENCE, || is_gone(command));
    eventually(&format!("{what}: its run is gone"), PATIENCE, || is_gone(running.pid()));
    drop(running);
    eventually(&format!("{what}: free"), PATIENCE, || world.status()["state"] != "held");
    eventually(&format!("{what}: its keeper is gone"), PATIENCE, || is_gone(keeper));
    // "I know", for what was lost may be remembered.
    world.ok("ann", "lock acquire --no-keeper --wait=20s");
    world.ok("ann", "lock release");
    world.audit_holds();
}

fn each_and_each_pair(signal: Signal) {
    for (at, first) in WHO.into_iter().enumerate() {
        ends_in_the_end(&[first], signal);
        for second in &WHO[at + 1..] {
            ends_in_the_end(&[first, second], signal);
        }
    }
}

#[test]
fn whoever_is_stopped_the_lock_is_free_in_the_end() {
    each_and_each_pair(Signal::STOP);
}

#[test]
fn whoever_is_killed_the_lock_is_free_in_the_end() {
    each_and_each_pair(Signal::KILL);
}

#[test]
fn whoever_is_hung_up_on_the_lock_is_free_in_the_end() {
    each_and_each_pair(Signal::HUP);
}

#[test]
fn a_command_that_blocks_term_is_ended_when_the_lock_is_released_with_force() {
    let world = World::new();
    let file = world.outside("command");
    let script = format!(
        "trap '' TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 1; done",
        file.display()
    );
    let running = world.run("ann", "run", &script).start();
    let command = pid_in(&file);
    world.jvs("ann", "lock release").run().exits(2);
    assert!(!is_gone(command), "nothing was changed");
    world.ok("ann", "lock release --force");
    assert!(is_gone(command), "it is gone before the lock is free");
    assert_eq!(world.status()["state"], "free");
    drop(running);
}
