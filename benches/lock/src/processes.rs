//! As scripts use it: one process an operation, against the start of a program
//! that does nothing and against what one would use instead.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::race::{Lane, race};
use jvs_kit::live::binary;
use jvs_kit::live::home::Home;

/// What is aimed at on a local filesystem: (status, acquire + release).
pub(crate) const LOCAL: (f64, f64) = (1.3, 4.0);

/// Races in a repository made in `dir`, which is `what`.
pub(crate) fn on(dir: &Path, what: &str, rounds: usize, targets: Option<(f64, f64)>) {
    let home = Home::new();
    let root = dir.join("repository");
    home.jvs(["init"]).arg(&root).run().ok();
    let place = root.join("main");
    let jvs = |words: &[&str]| home.jvs(words).cwd(&place).command();
    let other = |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).current_dir(&place).env_clear();
        command
    };

    for name in ["held", "acquired", "released", "kept"] {
        home.jvs(["worktree", "create", name]).cwd(&place).run().ok();
    }
    for name in ["held", "released"] {
        home.jvs(["lock", "acquire", "-w", name, "--no-keeper"]).cwd(&place).run().ok();
    }
    let hello = other(&binary::jvs().with_file_name("bench-hello"), &[]);
    let flock = other(Path::new("flock"), &["lockfile", "true"]);
    let mkdir = other(Path::new("mkdir"), &["lockdir"]);
    let rmdir = other(Path::new("rmdir"), &["lockdir"]);
    let acquire = |worktree| jvs(&["lock", "acquire", "-w", worktree, "--no-keeper"]);
    let release = |worktree| jvs(&["lock", "release", "-w", worktree]);
    let lane = |name, run: Box<dyn FnMut()>, target: Option<f64>| {
        let lane = Lane::new(name, run);
        if let Some(target) = target { lane.at_most(target) } else { lane }
    };
    let (status_target, pair_target) = targets.unzip();
    let pair = both(jvs(&["lock", "acquire", "--no-keeper"]), jvs(&["lock", "release"]));
    let kept =
        both(jvs(&["lock", "acquire", "-w", "kept"]), jvs(&["lock", "release", "-w", "kept"]));
    let status = one(jvs(&["lock", "status"]));
    let held_status = one(jvs(&["lock", "status", "-w", "held"]));
    race(
        &format!("one process an operation, {what}"),
        rounds,
        vec![
            lane("hello, world", one(hello), None),
            lane("jvs lock status, free", status, status_target),
            lane("jvs lock status, held", held_status, status_target),
            lane("jvs lock acquire + release", pair, pair_target),
            lane("jvs lock acquire", one(acquire("acquired")), None)
                .undone_by(one(release("acquired"))),
            lane("jvs lock release", one(release("released")), None)
                .undone_by(one(acquire("released"))),
            lane("the pair with a keeper", kept, None),
            lane("flock FILE true", one(flock), None),
            lane("mkdir + rmdir", both(mkdir, rmdir), None),
        ],
    );
}

fn one(mut command: Command) -> Box<dyn FnMut()> {
    Box::new(move || done(&mut command))
}

fn both(mut first: Command, mut second: Command) -> Box<dyn FnMut()> {
    Box::new(move || {
        done(&mut first);
        done(&mut second);
    })
}

pub(crate) fn done(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("started").success(), "{command:?} failed");
}
