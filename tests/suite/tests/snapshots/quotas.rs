//! A snapshot for which there is no room is refused with a word about what to
//! do, leaves nothing, and works once there is room.

use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_kit::live::process::Outcome;
use jvs_repo::layout;

use crate::user::User;

const MIB: usize = 1 << 20;

/// Refused for want of room, after it had begun, and without a trace.
#[track_caller]
fn no_room(user: &User, outcome: Outcome) {
    let outcome = outcome.exits(1);
    let error = &outcome.json()["error"];
    assert_eq!(error["code"], "E_IO", "{outcome}");
    let message = error["message"].as_str().expect("a sentence");
    assert!(message.to_lowercase().contains("quota exceeded"), "{outcome}");
    let hint = error["hint"].as_str().expect("what to do");
    assert!(hint.contains("jvs gc") && hint.contains("quota"), "{outcome}");
    assert_eq!(user.names(&layout::staging()), [""; 0], "nothing is left");
    assert_eq!(user.snapshot_dirs(), [""; 0], "nothing is published");
    assert_eq!(user.data("lock status")["state"], "free");
}

/// There is room now.
#[track_caller]
fn room(user: &User, files: u64) {
    let taken = user.data("snapshot");
    assert_eq!(taken["files"], files, "{taken}");
    assert_eq!(user.data("verify --all")["tamper_detected"], false);
    assert_eq!(user.data("audit --verify")["verified"], true);
    user.jvs("doctor --strict").ok();
}

#[test]
fn a_quota_that_is_met_while_files_are_copied_publishes_nothing_until_it_is_raised() {
    let Some(fs) = SmallFs::on_loop(Kind::Btrfs) else { return };
    let dir = fs.limited("few", 6 * MIB as u64);
    let user = User::with_new_repository(&dir.join("r"));
    // Clones take no room.
    user.jvs("config set snapshot.engine copy").ok();
    for n in 0..4 {
        user.write(&format!("f{n}"), &n.to_string().repeat(MIB));
    }
    no_room(&user, user.jvs("snapshot --json"));
    fs.limited("few", 60 * MIB as u64);
    room(&user, 4);
}

fn a_quota_of_files_on_juicefs(engine: Engine) {
    let Some(mut volume) = Volume::format(engine) else { return };
    volume.limit_files("few", 90);
    let user = User::with_new_repository(&volume.mount(&[]).join("few/r"));
    for n in 0..50 {
        user.write(&format!("d/{n}"), "text");
    }
    no_room(&user, user.jvs("snapshot --json"));
    volume.limit_files("few", 900);
    // A mount learns of another limit within a minute; a new one knows it.
    let user = user.at(&volume.mount(&[]).join("few/r"));
    room(&user, 50);
}

#[test]
fn a_quota_that_is_met_during_a_clone_on_juicefs_with_sqlite_publishes_nothing_until_it_is_raised()
{
    a_quota_of_files_on_juicefs(Engine::Sqlite);
}

#[test]
fn a_quota_that_is_met_during_a_clone_on_juicefs_with_redis_publishes_nothing_until_it_is_raised() {
    a_quota_of_files_on_juicefs(Engine::Redis);
}
