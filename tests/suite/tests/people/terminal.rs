//! With somebody at a terminal.

use std::process::Command;

use jvs_kit::live::process::eventually;
use jvs_kit::live::terminal::{CTRL_C, CTRL_D, CTRL_Z, Terminal};

use crate::world::{PATIENCE, World, is_gone};

/// A shell in the worktree, on a terminal of its own.
fn shell(world: &World, session: Option<&str>) -> Terminal {
    let jvs = world.jvs(session.unwrap_or("none"), "lock status").command();
    let mut shell = Command::new("/bin/sh");
    shell.arg("-i").current_dir(world.root().join("main"));
    for (key, value) in jvs.get_envs() {
        let hidden = session.is_none() && (key == "JVS_SESSION_ID" || key == "JVS_KEEP_WHILE");
        if let Some(value) = value.filter(|_| !hidden) {
            shell.env(key, value);
        }
    }
    let program = jvs_kit::live::binary::jvs();
    let bin = program.parent().expect("a program lies in a directory").display().to_string();
    shell.env("PATH", format!("{bin}:/usr/bin:/bin")).env("PS1", "ready> ").env("TERM", "xterm");
    let mut terminal = Terminal::start(&shell);
    terminal.sees("ready> ", PATIENCE);
    terminal
}

#[test]
fn ctrl_z_stops_the_job_the_lock_stays_and_fg_goes_on() {
    let world = World::new();
    let mut terminal = shell(&world, Some("ann"));
    terminal.types("jvs run --lease 600ms -- cat\n");
    eventually("it runs", PATIENCE, || world.status()["state"] == "held");
    terminal.types("one\n");
    terminal.sees("one\r\none\r\n", PATIENCE);
    terminal.types(CTRL_Z);
    terminal.sees("Stopped", PATIENCE);
    terminal.sees("ready> ", PATIENCE);
    let renewed = world.events("renew").len();
    eventually("it is renewed while stopped", PATIENCE, || {
        world.events("renew").len() > renewed + 2
    });
    assert_eq!(world.status()["record"]["session_id"], "ann");
    terminal.types("fg\n");
    terminal.sees("jvs run", PATIENCE);
    terminal.types("two\n");
    terminal.sees("two\r\ntwo\r\n", PATIENCE);
    terminal.types(CTRL_D);
    terminal.sees("ready> ", PATIENCE);
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn ctrl_c_reaches_the_child_and_not_the_keeper() {
    let world = World::new();
    let mut terminal = shell(&world, Some("ann"));
    terminal.types(
        "jvs run -- sh -c 'trap \"echo interrupted; exit 9\" INT; echo up; while :; do sleep 0.02; done'\n",
    );
    terminal.sees("up\r\n", PATIENCE);
    terminal.types(CTRL_C);
    terminal.sees("interrupted", PATIENCE);
    terminal.sees("ready> ", PATIENCE);
    terminal.types("echo status $?\n");
    terminal.sees("status 9", PATIENCE);
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn a_shell_under_the_lock_is_a_shell() {
    let world = World::new();
    let mut terminal = shell(&world, Some("ann"));
    terminal.types("SHELL=/bin/sh PS1='loc''ked> ' jvs shell\n");
    terminal.sees("locked> ", PATIENCE);
    terminal.types("sh -c 'echo asl''eep; exec sleep 1000'\n");
    terminal.sees("asleep", PATIENCE);
    terminal.types(CTRL_C);
    terminal.sees("locked> ", PATIENCE);
    terminal.types("echo token $JVS_FENCING_TOKEN\n");
    terminal.sees("token 1", PATIENCE);
    terminal.types("exit 6\n");
    terminal.sees("ready> ", PATIENCE);
    terminal.types("echo status $?\n");
    terminal.sees("status 6", PATIENCE);
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn a_waiter_sees_its_place_and_ctrl_c_leaves_the_line() {
    let world = World::new();
    world.ok("bob", "lock acquire --no-keeper --lease 1h");
    let mut terminal = shell(&world, Some("ann"));
    terminal.types("jvs lock acquire --wait\n");
    terminal.sees("next in line; held by bob", PATIENCE);
    assert_eq!(world.tickets(), 1);
    terminal.types(CTRL_C);
    terminal.sees("ready> ", PATIENCE);
    assert_eq!(world.tickets(), 0);
}

#[test]
fn a_snapshot_shows_how_far_it_is_and_ctrl_c_leaves_nothing_of_it() {
    let world = World::new();
    for dir in 0..10 {
        let dir = world.root().join("main").join(format!("d{dir}"));
        std::fs::create_dir(&dir).expect("a directory");
        for n in 0..600 {
            std::fs::write(dir.join(n.to_string()), "text").expect("a file");
        }
    }
    let mut terminal = shell(&world, Some("ann"));
    terminal.types("jvs snapshot\n");
    terminal.sees("copying ", PATIENCE);
    terminal.sees(" % ", PATIENCE);
    terminal.types(CTRL_C);
    terminal.sees("stopped", PATIENCE);
    terminal.sees("ready> ", PATIENCE);
    terminal.types("echo status $?\n");
    terminal.sees("status 130", PATIENCE);
    assert_eq!(world.status()["state"], "free");
    let staging = world.root().join(jvs_repo::layout::staging().as_str());
    assert_eq!(staging.read_dir().expect("listed").count(), 0);
}

#[test]
fn closing_the_terminal_gives_its_lock_back() {
    let world = World::new();
    let mut terminal = shell(&world, None);
    terminal.types("jvs lock acquire --lease 600ms\n");
    terminal.sees("Locked worktree", PATIENCE);
    let keeper = world.keeper();
    assert_eq!(world.status()["state"], "held");
    terminal.hang_up();
    world.eventually_free();
    eventually("its keeper has ended", PATIENCE, || is_gone(keeper));
}
