//! A snapshot that is committed and whose publisher died before it was visible is a
//! snapshot like any other: it outlives the worktree that it is of, whoever removes or
//! renames that, and whoever has the name next.

use jvs_kit::live::calls::{self, Blow};
use jvs_kit::live::loopfs::Kind;
use jvs_repo::layout;

use crate::places::Place;
use crate::user::User;

/// Kills a snapshot of worktree `a` when it is committed and about to become visible.
fn commits_and_dies(user: &User) -> String {
    user.jvs("worktree create a").ok();
    let write = |text: &str| fs_err::write(user.root.join("worktrees/a/file"), text);
    let command = user.command("snapshot -w a");
    let mut shows = None;
    // The first run makes what later ones find.
    for text in ["one", "two"] {
        write(text).expect("written");
        let recorded = calls::record(&command);
        recorded.outcome.ok();
        let is_show = |call: &&calls::Call| call.renames() && call.arguments.contains("READY\"");
        shows = recorded.calls.iter().find(is_show).cloned();
    }
    let before = user.snapshot_dirs();
    write("precious").expect("written");
    let struck = calls::strike(&command, &shows.expect("it is shown"), Blow::DiesFirst);
    assert!(struck.signal().is_some(), "{struck}");
    // An operator need not wait for the dead one's lease to expire.
    user.jvs("lock freeze -w a --for 1m --force --reason test").ok();
    user.jvs("lock unfreeze -w a --reason test").ok();
    let mut new = user.snapshot_dirs();
    new.retain(|id| !before.contains(id));
    let [id] = &new[..] else { panic!("{new:?}") };
    assert!(!is_shown(user, id));
    id.clone()
}

fn is_shown(user: &User, id: &str) -> bool {
    let dir = layout::snapshot(id.parse().expect("an id"));
    user.root.join(layout::ready(&dir).as_str()).exists()
}

/// `words` are typed one after the other; the snapshot is there, and whole.
fn outlives(words: &[&str]) {
    let Some(place) = Place::on(Kind::Ext4).filter(|_| calls::can_be_aimed_at()) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    let id = commits_and_dies(&user);
    for words in words {
        user.jvs(words).ok();
    }
    assert!(is_shown(&user, &id), "{id} is lost: {:?}", user.snapshot_dirs());
    let verified = user.jvs("verify --all");
    assert_eq!(user.data("verify --all")["tamper_detected"], false, "{verified}");
    assert_eq!(user.read_in(&id, "file"), "precious");
    assert_eq!(user.data("doctor --strict")["healthy"], true);
}

#[test]
fn a_committed_snapshot_outlives_its_worktrees_name_and_a_collection() {
    outlives(&["worktree remove a --force", "worktree create a", "gc"]);
}

#[test]
fn a_committed_snapshot_outlives_its_worktrees_name_and_a_repair() {
    outlives(&["worktree remove a --force", "worktree create a", "doctor --strict --repair"]);
}

#[test]
fn a_committed_snapshot_outlives_that_its_worktree_gets_another_name() {
    let made = "worktree create a";
    outlives(&["worktree rename a b", made, "gc", "worktree remove b --force", "gc"]);
}

#[test]
fn a_committed_snapshot_of_a_removed_worktree_is_whole_after_a_repair() {
    outlives(&["worktree remove a --force", "doctor --strict --repair"]);
}
