//! One JuiceFS volume, two mounts: what one publishes the other sees, verifies
//! and restores.

use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::process::{DEADLINE, eventually};
use jvs_repo::layout;

use crate::user::User;

fn a_snapshot_taken_on_one_host_is_whole_on_the_other(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 2) else { return };
    let here = User::with_new_repository(&volume.host(0).join("r"));
    let there = User::of(&volume.host(1).join("r"));
    for n in 0..20 {
        here.write(&format!("dir/{n}"), &format!("text {n}"));
    }
    let taken = here.data("snapshot one --tag v1");
    assert_eq!(taken["engine"], "juicefs", "{taken}");
    let one = taken["snapshot_id"].as_str().expect("an id").to_owned();
    assert_eq!(there.history(), std::slice::from_ref(&one));
    assert_eq!(there.data("verify --all")["tamper_detected"], false);
    assert_eq!(there.data("status")["clean"], true);

    there.write("dir/3", "changed on the other host");
    let two = there.snapshot();
    assert_eq!(here.history(), [two.clone(), one.clone()]);
    let diff = here.data("diff v1 @");
    assert_eq!(diff["differences"][0]["path"], "dir/3", "{diff}");
    assert_eq!(diff["changed"], 1, "{diff}");

    // In place, by one exchange of two directories, seen by the other host.
    here.data("restore v1 --in-place --reason test");
    assert_eq!(here.read("dir/3"), "text 3");
    // The other kernel may remember the old directory for as long as its entry
    // cache says, a second by default.
    eventually("the other host sees the new directory", DEADLINE, || {
        fs_err::read_to_string(there.main().join("dir/3")).is_ok_and(|text| text == "text 3")
    });
    assert_eq!(there.data("diff v1")["differences"].as_array().map(Vec::len), Some(0));
    here.data("restore v1 --into copy");
    assert!(volume.host(1).join("r/worktrees/copy/dir/7").exists());

    there.data("tag --delete v1");
    let freed = there.data("gc --keep-last 1 --keep-within 0s");
    // The first is still the head of the worktree that was made from it.
    assert_eq!(freed["removed"].as_array().map(Vec::len), Some(0), "{freed}");
    here.jvs("worktree remove copy --force").ok();
    let freed = there.data("gc --keep-last 1 --keep-within 0s");
    assert_eq!(freed["removed"][0], one.as_str(), "{freed}");
    assert_eq!(here.history(), [two]);
    assert_eq!(here.data("verify --all")["tamper_detected"], false);
    assert_eq!(here.names(&layout::staging()), [""; 0]);
}

#[test]
fn a_snapshot_taken_on_one_host_is_whole_on_the_other_on_sqlite() {
    a_snapshot_taken_on_one_host_is_whole_on_the_other(Engine::Sqlite);
}

#[test]
fn a_snapshot_taken_on_one_host_is_whole_on_the_other_on_redis() {
    a_snapshot_taken_on_one_host_is_whole_on_the_other(Engine::Redis);
}

#[test]
fn a_mount_that_uploads_later_is_waited_for_before_the_commit() {
    let Some(mut volume) = Volume::format(Engine::Sqlite) else { return };
    let later = volume.mount(&["--writeback"]);
    let other = volume.mount(&[]);
    let here = User::with_new_repository(&later.join("r"));
    here.write("a", &"x".repeat(200_000));
    let id = here.snapshot();
    // Readable elsewhere the moment it is visible.
    let there = User::of(&other.join("r"));
    assert_eq!(there.history(), [id]);
    assert_eq!(there.data("verify --all")["tamper_detected"], false);
}

/// The lock and its audit log are on the same mount, and what the command itself
/// has not flushed would look like somebody's work.
#[test]
fn the_command_itself_writes_nothing_that_would_need_a_second_look() {
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let user = User::with_new_repository(&volume.host(0).join("r"));
    user.write("file", "text");
    // The mount may be busy for a moment with something of its own.
    let looked_twice = |n: u32| {
        user.write("file", &n.to_string());
        let taken = user.data("snapshot");
        assert_eq!(taken["quiescence"]["proven"], true, "{taken}");
        taken["phases_ms"].get("prove").is_some()
    };
    assert!((0..5).any(|n| !looked_twice(n)), "every snapshot looked twice");
}
