//! What a snapshot could not keep is said when it is taken and whenever it is
//! looked at.

use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_kit::live::mount::Covered;
use serde_json::{Value, json};

use crate::user::User;

#[test]
fn what_a_snapshot_could_not_keep_is_shown_by_every_command_that_shows_it() {
    // The repository's filesystem keeps no attributes, that of the files does.
    let Some(volume) = Volume::mounted(Engine::Sqlite, 1) else { return };
    let Some(disk) = SmallFs::on_loop(Kind::Ext4) else { return };
    let user = User::with_new_repository(&volume.host(0).join("r"));
    let _covered = Covered::with(&user.main(), disk.path());
    fs_err::remove_dir(user.main().join("lost+found")).expect("an empty directory");
    user.write("plain", "kept");
    user.write("noted", "kept, its note is not");
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(user.main().join("noted"), "user.note", b"x", flags).expect("a note");

    let degraded = json!([{"what": "xattr", "count": 1, "examples": ["noted"]}]);
    let taken = user.jvs("snapshot first").ok();
    assert!(taken.stdout().contains("degraded: xattr of 1 path\n"), "{taken}");
    let second = user.data("snapshot second");
    assert_eq!(second["degraded"], degraded, "again, although nothing changed: {second}");

    let info = user.jvs("info @").ok();
    assert!(
        info.stdout().lines().any(|line| {
            line.starts_with("degraded") && line.ends_with("xattr of 1 path: noted")
        }),
        "{info}"
    );
    assert_eq!(user.data("info @")["degraded"], degraded);
    let history = user.jvs("history").ok();
    let labelled = |line: &&str| line.contains("!degraded");
    assert_eq!(history.stdout().lines().filter(labelled).count(), 2, "{history}");
    let listed = user.data("history");
    let all: Vec<Value> = listed["snapshots"].as_array().expect("a list").clone();
    assert!(all.iter().all(|snapshot| snapshot["degraded"] == degraded), "{listed}");
    assert_eq!(user.data("verify --all")["tamper_detected"], false, "it is what it says it is");
}

/// JuiceFS notes no change of a file whose attributes change. Whoever looks for
/// changes must look at them, or a restore would take them without a copy.
#[test]
fn an_attribute_that_changed_alone_is_a_change_and_saved_before_a_restore() {
    let Some(mut volume) = Volume::format(Engine::Sqlite) else { return };
    let mount = volume.mount(&["--enable-xattr"]);
    let user = User::with_new_repository(&mount.join("r"));
    user.write("file", "text");
    user.write("other", "text");
    user.note("file", "before");
    let first = user.snapshot();
    assert_eq!(user.data("status")["differences"], json!([]));

    user.note("file", "after");
    let status = user.data("status");
    assert_eq!(status["changed"], 1, "{status}");
    assert_eq!(status["differences"][0]["path"], "file", "{status}");
    user.data(&format!("restore {first} --in-place --reason test"));
    let kept = user.committed()[0].clone();
    assert_ne!(kept, first, "what was there is a snapshot now");
    let difference = user.data(&format!("diff {first} {kept}"));
    assert_eq!(difference["differences"][0]["path"], "file", "{difference}");
}
