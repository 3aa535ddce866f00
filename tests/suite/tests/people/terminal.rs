//! With somebody at a terminal.

use std::process::Command;

use jvs_kit::live::capability::{Capability, granted, skip};
use jvs_kit::live::process::eventually;
use jvs_kit::live::terminal::{CTRL_C, CTRL_D, CTRL_Z, Terminal};

use crate::world::{PATIENCE, World, is_gone};

/// A shell in the worktree, on a terminal of its own.
pub(crate) fn shell(world: &World, session: Option<&str>) -> Terminal {
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

/// The ways of containing a command, of which none may change what a terminal does.
const CONTAINED: [&str; 3] = ["auto", "reap", "pidns"];

/// Where a PID namespace cannot be made, that is said and the others are tried.
fn contained(world: &World) -> Vec<&'static str> {
    let possible = |contain: &&str| {
        let outcome = world.run("ann", &format!("run --contain {contain}"), "true").run();
        if !outcome.status.success() {
            skip(&format!("--contain {contain}: {}", outcome.stderr().trim()));
        }
        outcome.status.success()
    };
    CONTAINED.into_iter().filter(possible).collect()
}

#[test]
fn ctrl_z_stops_the_job_the_lock_stays_and_fg_goes_on() {
    for contain in contained(&World::new()) {
        ctrl_z(contain);
    }
}

fn ctrl_z(contain: &str) {
    let world = World::new();
    let mut terminal = shell(&world, Some("ann"));
    terminal.types(&format!("jvs run --contain {contain} --lease 900ms -- cat\n"));
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
    for contain in contained(&World::new()) {
        ctrl_c(contain);
    }
}

fn ctrl_c(contain: &str) {
    let world = World::new();
    let mut terminal = shell(&world, Some("ann"));
    terminal.types(&format!("alias run='jvs run --contain {contain}'\n"));
    terminal.types(
        "run -- sh -c 'trap \"echo interrupted; exit 9\" INT; echo up; while :; do sleep 0.02; done'\n",
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
    terminal.types("stty cols 200; jvs lock acquire --wait\n");
    terminal.sees("next in line; held by ", PATIENCE);
    terminal.sees("(session bob), for ", PATIENCE);
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
        fs_err::create_dir(&dir).expect("a directory");
        for n in 0..600 {
            fs_err::write(dir.join(n.to_string()), "text").expect("a file");
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
    terminal.types("jvs lock acquire --lease 3s\n");
    terminal.sees("Locked worktree", PATIENCE);
    let keeper = world.keeper();
    assert_eq!(world.status()["state"], "held");
    terminal.hang_up();
    world.eventually_free();
    eventually("its keeper has ended", PATIENCE, || is_gone(keeper));
}

#[test]
fn a_shell_says_what_it_holds_and_marks_its_prompt() {
    for program in ["/bin/sh", "/bin/bash"] {
        if !granted(&[Capability::Program(program.trim_start_matches("/bin/"))]) {
            continue;
        }
        let world = World::new();
        // Its own settings come after whatever it was given.
        fs_err::write(world.home.home_dir().join(".bashrc"), "PS1='own> '\n").expect("written");
        let mut terminal = shell(&world, Some("ann"));
        terminal.types(&format!("SHELL={program} jvs shell\n"));
        terminal.sees("Locked worktree main (fencing token 1) until this shell ends", PATIENCE);
        terminal.sees("[jvs main] ", PATIENCE);
        if program == "/bin/bash" {
            terminal.sees("own> ", PATIENCE);
        }
        terminal.types("echo $((40+2))\n");
        terminal.sees("42\r\n", PATIENCE);
        terminal.sees("[jvs main] ", PATIENCE);
        terminal.types("exit\n");
        terminal.sees("Released worktree main (fencing token 1)", PATIENCE);
        assert_eq!(world.status()["state"], "free");
    }
}

#[test]
fn a_shell_in_a_lock_that_i_asked_for_says_until_when_it_stays_locked() {
    let world = World::new();
    let mut terminal = shell(&world, Some("ann"));
    terminal.types("stty cols 200; jvs lock acquire --for 10m\n");
    terminal.sees("Locked worktree", PATIENCE);
    terminal.types("SHELL=/bin/sh jvs shell\n");
    terminal.sees("[jvs main] ", PATIENCE);
    terminal.types("exit\n");
    let stays = "Worktree main (fencing token 1) stays locked by this session: at most 9 min ";
    terminal.sees(stays, PATIENCE);
    assert_eq!(world.status()["state"], "held");
    world.ok("ann", "lock release");
}
