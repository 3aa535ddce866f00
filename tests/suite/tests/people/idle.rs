//! A lock whose agent has crashed: it does not outlive it by a day, and until then it
//! says who can end it, how, and at what price.

use jvs_kit::live::home::Jvs;
use jvs_kit::live::process::{eventually, run};
use rustix::process::Signal;
use serde_json::Value;

use crate::world::{PATIENCE, World, is_gone};

/// An agent: a name, no terminal, and nothing that its locks end with.
fn agent(world: &World, words: &str) -> Jvs {
    world.jvs("agent", words).env_remove("JVS_KEEP_WHILE").under(["setsid", "-w"])
}

fn idle_after(ms: u64) -> World {
    let world = World::new();
    world.ok("admin", &format!("config set lock.idle_release_ms {ms}"));
    world
}

#[test]
fn a_crashed_agent_s_lock_does_not_outlive_it_by_a_day() {
    let world = idle_after(400);
    let answer = agent(&world, "lock acquire --lease 600ms").run().ok();
    let told = "or until no command of this session has run for 400 ms";
    assert!(answer.stdout().contains(told), "{answer}");
    let keeper = world.keeper();
    world.eventually_free();
    eventually("its keeper has ended", PATIENCE, || is_gone(keeper));
    let late = agent(&world, "lock status").run().ok();
    let told = "worktree 'main' was released: no command of this session has run for 400 ms";
    assert!(late.stderr().contains(told), "{late}");
    assert_eq!(agent(&world, "lock status").run().ok().stderr(), "", "once");
    world.audit_holds();
}

#[test]
fn what_others_did_while_my_agent_was_silent_is_not_overwritten_without_its_word() {
    let world = idle_after(300);
    agent(&world, "lock acquire --lease 600ms").run().ok();
    world.eventually_free();
    world.ok("bob", "snapshot theirs");
    let refused = agent(&world, "snapshot mine").run().exits(5);
    assert!(refused.stderr().contains("E_FENCING_MISMATCH"), "{refused}");
    agent(&world, "lock acquire --for 1h").run().ok();
    agent(&world, "snapshot mine").run().ok();
    agent(&world, "lock release").run().ok();
}

#[test]
fn an_agent_that_goes_on_working_keeps_its_lock() {
    let world = idle_after(4_000);
    agent(&world, "lock acquire --lease 900ms").run().ok();
    // Whatever it asks is a sign of life: by far longer than it may be silent.
    let renewals = world.events("renew").len();
    while world.events("renew").len() < renewals + 30 {
        agent(&world, "lock status").run().ok();
    }
    let status = world.status();
    assert_eq!((&status["state"], &status["fencing_token"]), (&"held".into(), &1.into()));
    agent(&world, "lock release").run().ok();
}

#[test]
fn a_time_that_my_agent_asked_for_is_not_cut_short() {
    let world = idle_after(200);
    agent(&world, "lock acquire --for 1h --lease 600ms").run().ok();
    let renewals = world.events("renew").len();
    eventually("renewed for long", PATIENCE, || world.events("renew").len() >= renewals + 10);
    let status = world.status();
    assert_eq!((&status["state"], &status["idle_release_ms"]), (&"held".into(), &Value::Null));
    agent(&world, "lock release").run().ok();
}

#[test]
fn a_lock_that_ends_with_a_process_does_not_end_with_silence() {
    let world = idle_after(200);
    world.ok("ann", "lock acquire --lease 600ms");
    let renewals = world.events("renew").len();
    eventually("renewed for long", PATIENCE, || world.events("renew").len() >= renewals + 10);
    assert_eq!(world.status()["state"], "held");
}

#[test]
fn nobody_is_let_go_where_the_rule_is_off() {
    let world = idle_after(0);
    let answer = agent(&world, "lock acquire --lease 600ms").run().ok();
    assert!(!answer.stdout().contains("no command"), "{answer}");
    let renewals = world.events("renew").len();
    eventually("renewed for long", PATIENCE, || world.events("renew").len() >= renewals + 10);
    assert_eq!(world.status()["state"], "held");
    agent(&world, "lock release").run().ok();
}

#[test]
fn my_agent_s_build_is_a_sign_of_life_here_and_in_the_other_worktree() {
    for worktree in ["main", "other"] {
        let world = idle_after(3_000);
        world.ok("admin", "worktree create other");
        agent(&world, "lock acquire --lease 900ms").run().ok();
        let build = world.run("agent", &format!("run --lease 900ms -w {worktree}"), "sleep 1000");
        let build = build.env_remove("JVS_KEEP_WHILE").start();
        let renewals = world.events("renew").len();
        eventually("it has run for long", PATIENCE, || {
            world.events("renew").len() >= renewals + 40
        });
        assert_eq!(world.status()["state"], "held", "{worktree}");
        world.signal(build.pid(), Signal::TERM);
        build.wait(PATIENCE);
        world.eventually_free();
    }
}

/// What `lock why` says to somebody else: the command, by whom, what it costs.
fn ways(world: &World) -> Vec<Value> {
    let why = world.json("bob", "lock why");
    let ways = why["data"]["ways"].as_array().expect("ways").clone();
    assert!(ways.iter().all(|way| way["by"].is_string() && way["cost"].is_string()), "{why}");
    ways
}

#[test]
fn i_am_told_how_to_end_a_crashed_agent_s_lock_and_each_way_works() {
    for (way, taken) in [
        ("jvs lock release", false),
        ("kill ", false),
        ("jvs config set reclaim.same_user true; jvs lock reclaim", true),
        ("jvs config set reclaim.emergency_override true; jvs lock freeze --force", true),
    ] {
        let world = World::new();
        agent(&world, "lock acquire --note crashed").run().ok();
        let keeper = world.keeper();
        let ways = ways(&world);
        let known = |command: &Value| command.as_str().is_some_and(|text| text.starts_with(way));
        let found = ways.iter().find(|it| known(&it["command"]));
        let command = found.unwrap_or_else(|| panic!("{way}: {ways:?}"))["command"].clone();
        let command = command.as_str().expect("text").replace("TEXT", "'it has crashed'");
        let jvs = world.jvs("bob", "x").command();
        let mut sh = std::process::Command::new("sh");
        sh.arg("-c").arg(&command).current_dir(world.root().join("main")).env_clear();
        sh.envs(jvs.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let program = jvs_kit::live::binary::jvs();
        let bin = program.parent().expect("it lies in a directory").display().to_string();
        run(
            {
                sh.env("PATH", format!("{bin}:/usr/bin:/bin"));
                sh
            },
            PATIENCE,
        )
        .ok();
        match taken {
            true => assert_eq!(world.status()["fencing_token"], 2, "{command}"),
            false => world.eventually_free(),
        }
        world.signal_if_there(keeper, Signal::TERM);
        eventually("its keeper has ended", PATIENCE, || is_gone(keeper));
        world.audit_holds();
    }
}

#[test]
fn the_way_to_end_a_build_ends_the_build() {
    let world = World::new();
    let build = world.run("agent", "run", "sleep 1000").start();
    eventually("it runs", PATIENCE, || world.status()["keeper"]["alive"] == true);
    let command = ways(&world)[1]["command"].as_str().expect("text").to_owned();
    assert_eq!(command, "jvs lock release --force -w main --session agent");
    world.ok("bob", command.strip_prefix("jvs ").expect("jvs"));
    eventually("it was ended", PATIENCE, || is_gone(build.pid()));
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn how_long_an_agent_may_be_silent_is_checked() {
    let world = World::new();
    assert_eq!(world.ok("ann", "config get lock.idle_release_ms").stdout(), "1800000\n");
    for bad in ["-1", "soon", "31536000001", ""] {
        let set = world.jvs("ann", "config set lock.idle_release_ms").arg("--").arg(bad);
        let refused = set.run();
        assert_ne!(refused.code(), 0, "{bad}");
    }
    assert_eq!(world.ok("ann", "config get lock.idle_release_ms").stdout(), "1800000\n");
}
