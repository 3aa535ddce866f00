//! Scenes in which the lock of a session with several processes once lied, each as the
//! person who was in it would tell it, on a local disk and on two mounts of a JuiceFS
//! volume, where the rival is on the other one.

use jvs_kit::live::process::eventually;
use rustix::process::Signal;

use crate::holds::{holder, run_until_told};
use crate::world::{PATIENCE, World};

/// Plays a scene on a local disk, and on two mounts of a volume.
#[track_caller]
fn everywhere(scene: fn(&World)) {
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

#[test]
fn my_build_was_killed_and_then_my_new_lock_went_away() {
    everywhere(|world| {
        let (build, _) = run_until_told(world, "ann", "run", "build");
        world.signal(build.pid(), Signal::KILL);
        world.ok("ann", "lock acquire --no-keeper --lease 10m");
        // Until well after the keeper of the killed one has ended what that left.
        world.run("ann", "run", "sleep 1").run().ok();
        assert_eq!(holder(world).0, "ann");
        the_rival_is_kept_out(world);
        world.ok("ann", "lock release");
        the_rival_gets_it(world);
    });
}

#[test]
fn my_build_was_killed_and_then_i_could_not_lock() {
    everywhere(|world| {
        let (build, _) = run_until_told(world, "ann", "run", "build");
        world.signal(build.pid(), Signal::KILL);
        world.ok("ann", "lock acquire");
        // Until well after the keeper of the killed one has ended what that left.
        world.run("ann", "run", "sleep 1").run().ok();
        eventually("another one keeps it", PATIENCE, || world.status()["keeper"]["alive"] == true);
        the_rival_is_kept_out(world);
        world.ok("ann", "lock release");
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
    everywhere(|world| {
        world.ok("ann", "lock acquire --no-keeper --lease 1s");
        the_rival_gets_it(world);
        the_rival_publishes(world);
        nothing_is_published_before_i_say_that_i_know(world);
    });
}

#[test]
fn what_my_build_had_started_wrote_on_without_the_lock() {
    everywhere(|world| {
        let (file, ready) = (world.root().join("main/written"), world.outside("ready"));
        let script = format!(
            "setsid sh -c 'while :; do echo x >> {0}; sleep 0.02; done' & \
         until [ -s {0} ]; do sleep 0.02; done; echo > {1}",
            file.display(),
            ready.display()
        );
        world.run("ann", "run", &script).run().ok();
        assert!(ready.exists());
        the_rival_gets_it(world);
        let written = file.metadata().expect("it was written").len();
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(file.metadata().expect("it is there").len(), written, "somebody writes on");
    });
}

#[test]
fn the_keeper_of_my_build_hung_and_it_wrote_beside_somebody_else() {
    everywhere(|world| {
        let (build, go) = run_until_told(world, "ann", "run --lease 4s", "build");
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
        world.ok("ann", "doctor --repair");
        assert_eq!(holder(world), ("ann".to_owned(), 1));
        the_rival_is_kept_out(world);
        go.go();
        build.wait(PATIENCE).ok();
        assert_eq!(holder(world), ("ann".to_owned(), 1), "it was asked for by itself, too");
        world.ok("ann", "lock release");
        the_rival_gets_it(world);
    });
}
