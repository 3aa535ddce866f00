//! Collections that would lose something stop, say why, and lose nothing.

use jvs_kit::live::calls;
use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::loopfs::Kind;
use jvs_kit::live::process::Outcome;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use crate::places::Place;
use crate::user::User;

/// A repository with so many snapshots, oldest first.
fn with_snapshots(dir: &std::path::Path, count: usize) -> (User, Vec<String>) {
    let user = User::with_new_repository(&dir.join("r"));
    let ids = (0..count).map(|n| {
        user.write("file", &n.to_string());
        user.snapshot()
    });
    let ids = ids.collect();
    (user, ids)
}

#[track_caller]
fn refused(outcome: Outcome, code: &str, exit: i32, names: &str) -> String {
    let outcome = outcome.exits(exit);
    let error = &outcome.json()["error"];
    assert_eq!(error["code"], code, "{outcome}");
    let message = error["message"].as_str().expect("a sentence");
    assert!(message.contains(names), "{outcome}");
    error["hint"].as_str().expect("what to do").to_owned()
}

#[test]
fn a_worktree_whose_register_is_lost_keeps_its_snapshots() {
    let dir = tempfile::tempdir().expect("a directory");
    let (user, ids) = with_snapshots(dir.path(), 3);
    user.jvs("worktree create feat").ok();
    for lost in ["main", "feat"] {
        let name: WorktreeName = lost.parse().expect("a name");
        let register = user.root.join(layout::register(&name).as_str());
        let elsewhere = dir.path().join("elsewhere");
        fs_err::rename(&register, &elsewhere).expect("moved");
        for words in ["gc --keep-last 0 --keep-within 0s --json", "gc --dry-run --json"] {
            let hint = refused(user.jvs(words), "E_FENCE_CORRUPT", 10, lost);
            assert!(hint.contains("jvs doctor --strict --repair"), "{hint}");
        }
        assert_eq!(user.snapshot_dirs().len(), 3, "{lost}: {ids:?}");
        fs_err::rename(&elsewhere, &register).expect("moved back");
    }
    let removed = user.data("gc --keep-last 0 --keep-within 0s");
    assert_eq!(removed["removed"].as_array().map(Vec::len), Some(2), "all but the head");
    assert_eq!(user.history(), [ids[2].clone()]);
}

#[test]
fn a_register_that_was_lost_comes_back_with_its_head_though_it_was_buried() {
    let dir = tempfile::tempdir().expect("a directory");
    let (user, ids) = with_snapshots(dir.path(), 2);
    let main = WorktreeName::main();
    let grave = layout::buried_register(&main, user.state().epoch);
    let at = |path: &jvs_repo::store::RepoPath| user.root.join(path.as_str());
    fs_err::rename(at(&layout::register(&main)), at(&grave)).expect("buried");
    user.jvs("doctor --strict --repair").ok();
    assert_eq!(user.history(), [ids[1].clone(), ids[0].clone()]);
}

#[test]
fn a_tombstone_whose_making_was_denied_breaks_no_history() {
    if !granted(&[Capability::Program("strace")]) || !calls::can_be_aimed_at() {
        return;
    }
    let collect = |user: &User| user.command("gc --keep-last 2 --keep-within 0s");
    // Which of its calls makes the tombstone: the same in every run.
    let dir = tempfile::tempdir().expect("a directory");
    let (user, _) = with_snapshots(dir.path(), 3);
    let log = dir.path().join("calls");
    let log = log.to_str().expect("plain");
    collect(&user).under(["strace", "-f", "-o", log, "-e", "trace=openat2"]).run().ok();
    let text = fs_err::read_to_string(log).expect("a record");
    let opened = text.lines().filter(|line| line.contains("openat2("));
    let number = opened.take_while(|line| !line.contains(".gone-tmp-")).count() + 1;
    for errno in ["EEXIST", "EIO", "EINTR"] {
        let dir = tempfile::tempdir().expect("a directory");
        let (user, ids) = with_snapshots(dir.path(), 3);
        let inject = format!("inject=openat2:error={errno}:when={number}");
        let outcome = collect(&user)
            .under(["strace", "-f", "-o", "/dev/null", "-e", "trace=openat2", "-e", &inject])
            .run();
        assert_ne!(outcome.code(), 0, "{errno}: it was not collected: {outcome}");
        assert_eq!(user.history(), [ids[2].clone(), ids[1].clone(), ids[0].clone()], "{errno}");
        collect(&user).run().ok();
        assert_eq!(user.history(), [ids[2].clone(), ids[1].clone()], "{errno}");
        user.jvs("doctor --strict").ok();
    }
}

#[test]
fn a_clock_that_was_set_wrong_makes_nothing_old_unless_somebody_insists() {
    if !granted(&[Capability::Program("faketime")]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (user, ids) = with_snapshots(dir.path(), 4);
    user.jvs("config set retention.keep_last 1").ok();
    let at = |clock: &str, words: &str| user.command(words).under(["faketime", "-f", clock]).run();
    for clock in ["+400d", "+80y"] {
        let hint =
            refused(at(clock, "gc --json"), "E_CLOCK_SKEW_EXCEEDED", 7, "days ahead of the last");
        assert!(hint.contains("jvs gc --trust-clock"), "{hint}");
    }
    // Nor is a calendar believed on it, where nothing is let go because of its age.
    let by_day = "gc --keep-within 0s --keep-daily 1 --json";
    refused(at("+400d", by_day), "E_CLOCK_SKEW_EXCEEDED", 7, "days ahead of the last");
    // Nothing is old at a time before all of it.
    at("-50y", "gc").ok();
    // What the wrong clock does to the repository itself does not speak for it.
    at("+400d", "lock acquire --no-keeper --lease 1s").ok();
    at("+400d", "lock release").ok();
    let outcome = at("+400d", "gc --json");
    assert!([0, 7].contains(&outcome.code()), "{outcome}");
    assert_eq!(user.history().len(), ids.len());
    at("+400d", "gc --trust-clock").ok();
    assert_eq!(user.history(), [ids[3].clone()]);
}

/// What is freed is what `df` says, however many snapshots share a file.
#[test]
fn as_much_is_freed_as_was_said() {
    if !granted(&[Capability::Root]) {
        return;
    }
    let Some(place) = Place::on(Kind::Ext4) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    let free = || {
        rustix::fs::sync();
        let stat = rustix::fs::statvfs(&user.root).expect("a filesystem");
        stat.f_bfree * stat.f_frsize
    };
    // In all of them, in one of them, and in the worktree alone.
    user.write("shared", &"s".repeat(300_000));
    user.snapshot();
    user.write("once", &"o".repeat(200_000));
    user.snapshot();
    user.write("once", &"p".repeat(100_000));
    user.snapshot();
    let told = user.data("gc --keep-last 1 --keep-within 0s --dry-run");
    assert_eq!(told["would_free_exact"], true, "{told}");
    let before = free();
    let done = user.data("gc --keep-last 1 --keep-within 0s");
    assert_eq!(done["freed_bytes"], told["would_free_bytes"]);
    let said = done["freed_bytes"].as_u64().expect("a number");
    let freed = free().saturating_sub(before);
    // What the collection itself wrote, tombstones and log lines, is a few blocks.
    let written = 64 * 1024;
    assert!(said > 200_000 && said < 300_000, "the shared file is not in it: {said}");
    assert!(freed + written >= said && freed <= said + written, "said {said}, freed {freed}");
    let id = user.snapshot();
    user.snapshot();
    let done = user.data(&format!("forget {id}"));
    assert_eq!(done["freed_exact"], true, "{done}");
}

/// The worktree is gone, and what cannot be deleted is named and stops nothing else.
#[test]
fn a_file_that_cannot_be_deleted_stops_neither_a_removal_nor_a_collection() {
    if !granted(&[Capability::Root, Capability::Program("chattr")]) {
        return;
    }
    let Some(place) = Place::on(Kind::Ext4) else { return };
    let (user, _) = with_snapshots(&place.dir, 3);
    user.jvs("worktree create a").ok();
    fs_err::write(user.root.join("worktrees/a/f"), "kept").expect("written");
    let chattr = |how: &str, path: &std::path::Path| {
        let status = std::process::Command::new("chattr").args(["-R", how]).arg(path).status();
        assert!(status.expect("runs").success());
    };
    chattr("+i", &user.root.join("worktrees/a/f"));
    let removed = user.jvs("worktree remove a --force").ok();
    assert!(removed.stderr().contains("could not all be deleted"), "{removed}");
    user.jvs("worktree path a").exits(3);
    let collected = user.data("gc --keep-last 1 --keep-within 0s");
    assert_eq!(collected["removed"].as_array().map(Vec::len), Some(2), "{collected}");
    assert!(collected["left"][0]["path"].as_str().is_some_and(|path| path.contains("staging")));
    chattr("-i", &user.root.join(layout::staging().as_str()));
    let collected = user.data("gc");
    assert_eq!(collected["left"].as_array().map(Vec::len), Some(0), "{collected}");
    assert_eq!(user.names(&layout::staging()), [""; 0]);
    user.jvs("doctor --strict").ok();
}

/// What was tried before a capture is not published with it.
#[test]
fn a_probe_that_cannot_be_removed_is_not_published() {
    if !calls::can_be_aimed_at() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (user, _) = with_snapshots(dir.path(), 1);
    user.write("file", "next");
    let failing = ["-e", "trace=unlinkat", "-e", "inject=unlinkat:error=EIO:when=1"];
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null"].into_iter().chain(failing);
    let _ = user.command("snapshot").under(strace).run();
    assert_eq!(user.data("verify --all")["tamper_detected"], false);
    let _ = user.jvs("lock release --force");
    user.snapshot();
    assert_eq!(user.data("verify --all")["tamper_detected"], false);
}
