//! What is typed, what it needs, and how one sees that it was done.

use jvs_kit::live::process::{DEADLINE, eventually};
use jvs_lock::Hold;
use jvs_repo::layout;
use serde_json::Value;

use super::scene::Scene;

/// A command that is struck.
pub(crate) struct Row {
    /// Its name, as its JSON has it.
    pub(crate) command: &'static str,
    /// What is typed; `{n}` is another number each time.
    pub(crate) words: &'static str,
    /// What the one who types it says before it is struck.
    pub(crate) prepare: fn(&Scene),
    /// Is it done, and seen to be?
    pub(crate) done: fn(&Scene) -> bool,
    /// What somebody who types it again may be told.
    pub(crate) refusals: &'static [&'static str],
    /// Is what it prints printed once it is done?
    pub(crate) says_when_done: bool,
}

impl Row {
    const fn new(command: &'static str, words: &'static str, done: fn(&Scene) -> bool) -> Self {
        Row { command, words, prepare: |_| {}, done, refusals: &[], says_when_done: true }
    }
}

fn is_held_by(scene: &Scene, session: &str) -> bool {
    let status = scene.stranger.data("lock status");
    status["state"] == "held" && status["record"]["session_id"] == session
}

fn is_free(scene: &Scene) -> bool {
    scene.hold() == Hold::Free
}

fn has(scene: &Scene, worktree: &str, file: &str) -> bool {
    scene.user.root.join("worktrees").join(worktree).join(file).exists()
}

fn is_listed(scene: &Scene, worktree: &str) -> bool {
    let list = scene.user.data("worktree list");
    list["worktrees"].as_array().is_some_and(|all| all.iter().any(|it| it["name"] == worktree))
}

fn with_old(scene: &Scene) {
    scene.user.jvs("worktree create old").ok();
    let file = scene.user.root.join("worktrees/old/kept");
    fs_err::write(file, "precious").expect("written");
}

fn with_new_files(scene: &Scene) {
    scene.user.write("a", "new");
    scene.user.write("d/b", "new");
    scene.user.write("d/c", "new");
    scene.user.snapshot();
}

fn files_are_old(scene: &Scene) -> bool {
    ["a", "d/b"].iter().all(|name| scene.user.find(name).as_deref() == Some("old"))
}

fn is_tagged(scene: &Scene, name: &str) -> bool {
    let tags = scene.user.data("tag --list");
    tags["tags"].as_array().is_some_and(|all| all.iter().any(|tag| tag["tag"] == *name))
}

fn holding(scene: &Scene) {
    scene.user.jvs("lock acquire --no-keeper").ok();
}

fn note_of_head(scene: &Scene) -> Value {
    scene.user.data("info @")["note"].clone()
}

pub(crate) const ROWS: &[Row] = &[
    Row {
        prepare: Scene::make_room,
        refusals: &["E_EXISTS"],
        ..Row::new("init", "init {root}-{n} --adopt", |scene| {
            let made = scene.made();
            let kept = fs_err::read_to_string(made.join("main/precious"));
            made.join(layout::format().as_str()).exists()
                && kept.is_ok_and(|text| text == "precious")
        })
    },
    Row {
        refusals: &["E_EXISTS"],
        ..Row::new("worktree create", "worktree create new", |scene| is_listed(scene, "new"))
    },
    Row {
        prepare: with_old,
        refusals: &["E_NOT_FOUND"],
        ..Row::new("worktree rename", "worktree rename old new", |scene| {
            has(scene, "new", "kept") && is_listed(scene, "new") && !is_listed(scene, "old")
        })
    },
    Row {
        prepare: with_old,
        refusals: &["E_NOT_FOUND"],
        ..Row::new("worktree remove", "worktree remove old --force", |scene| {
            !has(scene, "old", "kept") && !is_listed(scene, "old")
        })
    },
    Row::new("lock acquire", "lock acquire --no-keeper", |scene| is_held_by(scene, "test")),
    Row {
        prepare: holding,
        refusals: &["E_LOCK_NOT_HELD"],
        ..Row::new("lock renew", "lock renew", |scene| is_held_by(scene, "test"))
    },
    Row {
        prepare: holding,
        refusals: &["E_LOCK_NOT_HELD"],
        ..Row::new("lock release", "lock release", is_free)
    },
    Row {
        prepare: Scene::have_a_lease_run_out,
        refusals: &["E_LOCK_NOT_HELD"],
        ..Row::new("lock steal", "lock steal --reason test --no-keeper", |scene| {
            is_held_by(scene, "test")
        })
    },
    Row {
        prepare: |scene| {
            scene.rival.jvs("lock acquire --no-keeper").ok();
        },
        ..Row::new("lock reclaim", "lock reclaim --reason test --no-keeper", |scene| {
            is_held_by(scene, "test")
        })
    },
    Row {
        prepare: |scene| {
            holding(scene);
            scene.have_the_heir_wait();
        },
        refusals: &["E_LOCK_NOT_HELD", "E_NOT_FOUND"],
        ..Row::new("lock transfer", "lock transfer --to heir", |scene| {
            eventually("the heir goes on with it", DEADLINE, || is_held_by(scene, "heir"));
            true
        })
    },
    Row {
        ..Row::new("lock freeze", "lock freeze --for 1m --reason test", |scene| {
            matches!(scene.hold(), Hold::Frozen(_))
        })
    },
    Row {
        prepare: |scene| {
            scene.rival.jvs("lock freeze --for 1m --reason test").ok();
        },
        refusals: &["E_LOCK_NOT_HELD"],
        ..Row::new("lock unfreeze", "lock unfreeze", is_free)
    },
    Row {
        prepare: |scene| scene.user.write("a", "run"),
        ..Row::new("run", "run --snapshot=run-{n} -- true", |scene| {
            note_of_head(scene) == scene.numbered("run-{n}") && is_free(scene)
        })
    },
    Row { says_when_done: false, ..Row::new("shell", "shell", is_free) },
    Row {
        prepare: |scene| {
            let other = scene.numbered("other-{n}");
            scene.user.command("lock acquire --no-keeper").session(&other).run().ok();
            scene.user.command("lock release").session(&other).run().ok();
        },
        refusals: &["E_NOT_FOUND"],
        ..Row::new("session forget", "session forget other-{n}", |scene| {
            let list = scene.user.data("session list").to_string();
            !list.contains(&format!("\"{}\"", scene.numbered("other-{n}")))
        })
    },
    Row {
        prepare: |scene| scene.user.write("a", &scene.numbered("text {n}")),
        ..Row::new("snapshot", "snapshot taken-{n}", |scene| {
            note_of_head(scene) == scene.numbered("taken-{n}")
        })
    },
    Row {
        refusals: &["E_EXISTS"],
        ..Row::new("tag", "tag @ name-{n}", |scene| is_tagged(scene, &scene.numbered("name-{n}")))
    },
    Row {
        prepare: |scene| {
            scene.user.jvs(&scene.numbered("tag @ name-{n}")).ok();
        },
        refusals: &["E_NOT_FOUND"],
        ..Row::new("tag", "tag --delete name-{n}", |scene| {
            !is_tagged(scene, &scene.numbered("name-{n}"))
        })
    },
    Row {
        prepare: with_new_files,
        ..Row::new("restore", "restore old --in-place --reason test", files_are_old)
    },
    Row {
        prepare: with_new_files,
        ..Row::new("restore", "restore old --in-place --reason test --atomic", files_are_old)
    },
    Row {
        prepare: with_new_files,
        ..Row::new("restore", "restore old --in-place --reason test a d/b", files_are_old)
    },
    Row {
        refusals: &["E_EXISTS"],
        ..Row::new("restore", "restore old --into new", |scene| has(scene, "new", "a"))
    },
    Row {
        prepare: |scene| {
            for text in ["one", "two", "three"] {
                scene.user.write("a", &scene.numbered(&format!("{text} {{n}}")));
                scene.user.snapshot();
            }
        },
        ..Row::new("gc", "gc --keep-last 1 --keep-within 0s", |scene| {
            scene.user.history().len() <= 2
        })
    },
    Row {
        prepare: |scene| {
            scene.user.write("a", &scene.numbered("to be forgotten {n}"));
            scene.user.snapshot();
            scene.user.jvs(&scene.numbered("tag @ gone-{n}")).ok();
            scene.user.write("a", "after it");
            scene.user.snapshot();
        },
        refusals: &["E_NOT_FOUND"],
        ..Row::new("forget", "forget gone-{n} --force --reason test", |scene| {
            !is_tagged(scene, &scene.numbered("gone-{n}"))
        })
    },
    Row {
        prepare: |scene| {
            scene.leave_a_dead_draft();
            scene.have_a_lease_run_out();
        },
        ..Row::new("doctor", "doctor --strict --repair", |scene| {
            is_free(scene) && scene.user.names(&layout::staging()).is_empty()
        })
    },
    Row::new("config set", "config set retention.keep_hourly {n}", |scene| {
        let told = scene.user.data("config get retention.keep_hourly");
        told["value"] == scene.numbered("{n}")
    }),
];
