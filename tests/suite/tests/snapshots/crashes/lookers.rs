//! Commands that only look: whatever they were doing when they died, the repository is
//! byte for byte as it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jvs_kit::live::calls::{self, Blow};
use jvs_kit::live::loopfs::Kind;
use jvs_kit::live::process::{DEADLINE, eventually};

use super::scene::Scene;
use crate::places::Place;
use crate::strikes::long;

/// Each with what is typed; one that never ends by itself has `…`.
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("worktree list", "worktree list"),
    ("worktree path", "worktree path main"),
    ("lock status", "lock status"),
    ("lock list", "lock list"),
    ("lock why", "lock why"),
    ("lock watch", "lock watch …"),
    ("session show", "session show"),
    ("session list", "session list"),
    ("status", "status --full"),
    ("history", "history"),
    ("info", "info @"),
    ("show", "show --patch @"),
    ("ls", "ls @"),
    ("cat", "cat @ a"),
    ("path", "path @ a"),
    ("diff", "diff --patch"),
    ("verify", "verify --all"),
    ("audit", "audit --verify"),
    ("events", "events --renewals"),
    ("config list", "config list"),
    ("config get", "config get lock.lease_duration_ms"),
];

/// Every file below `dir` with its content, and every directory.
fn all_of(dir: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in fs_err::read_dir(dir).expect("listed") {
        let entry = entry.expect("listed");
        let path = entry.path();
        if entry.file_type().expect("looked").is_dir() {
            all_of(&path, found);
            found.insert(path, None);
        } else {
            let content = fs_err::read(&path).expect("read");
            found.insert(path, Some(content));
        }
    }
}

fn tree(scene: &Scene) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    all_of(&scene.user.root, &mut found);
    found
}

#[test]
fn commands_that_look_change_nothing_wherever_they_die() {
    let Some(place) = Place::on(Kind::Ext4).filter(|_| calls::can_be_aimed_at()) else { return };
    let scene = Scene::at(&place.dir);
    scene.user.write("a", "changed");
    scene.user.snapshot();
    scene.user.write("a", "changed again");
    scene.user.jvs("lock acquire --no-keeper --lease 1h").ok();
    let before = tree(&scene);
    let is_unchanged = |what: &str| assert!(tree(&scene) == before, "{what} changed something");
    let mut died = 0;
    for (_, words) in WORDS {
        if let Some(words) = words.strip_suffix(" …") {
            let running = scene.user.command(words).start();
            eventually("it says something", DEADLINE, || !running.said().is_empty());
            drop(running);
            is_unchanged(words);
            continue;
        }
        let command = scene.user.command(words);
        command.run().ok();
        let recorded = calls::record(&command);
        recorded.outcome.ok();
        is_unchanged(words);
        // Of the home, if of anything.
        let step = if long() { 1 } else { (recorded.calls.len() / 2) | 1 };
        for call in recorded.calls.iter().step_by(step) {
            let outcome = calls::strike(&command, call, Blow::ThenDies);
            died += usize::from(outcome.signal().is_some());
            is_unchanged(&format!("{words}, dead at {call},"));
        }
    }
    eprintln!("{} commands that look, {died} deaths", WORDS.len());
}
