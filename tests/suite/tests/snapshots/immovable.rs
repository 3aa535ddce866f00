//! What cannot be exchanged with another path by itself is known before a restore has
//! begun: no restore is committed that nobody can finish.

use std::path::Path;
use std::process::Command;

use jvs_kit::live::capability::{Capability, granted, skip};
use jvs_kit::live::loopfs::Kind;
use jvs_kit::live::mount::MountPoint;
use jvs_kit::live::process::Outcome;
use jvs_repo::layout;
use rustix::mount::{MountFlags, mount};

use crate::places::Place;
use crate::user::User;

#[track_caller]
fn runs(program: &str, arguments: &[&str], path: &Path) {
    let ran = Command::new(program).args(arguments).arg(path).output().expect("run");
    assert!(ran.status.success(), "{program} {arguments:?}");
}

const RESTORE: &str = "restore old --in-place --reason test --json";

/// Restored as one, because not everything can be by itself.
#[track_caller]
fn restored_as_one(user: &User) {
    let told = user.jvs(RESTORE).ok().json();
    let warned = told["warnings"].to_string();
    assert!(warned.contains("all files are replaced in one step"), "{told}");
    user.jvs("run -- true").ok();
}

#[track_caller]
fn nothing_was_done(user: &User, refused: &Outcome, of: &[(&str, &str)]) {
    let told = refused.stderr();
    assert!(!told.contains("has begun") && !told.contains("were swapped"), "{told}");
    for (file, text) in of {
        assert_eq!(user.read(file), *text, "{told}");
    }
    user.jvs("run -- true").ok();
    assert_eq!(user.names(&layout::staging()), [""; 0]);
}

#[test]
fn a_file_that_nobody_may_change_does_not_leave_a_restore_half_done() {
    if !granted(&[Capability::Root, Capability::Program("chattr")]) {
        return;
    }
    let Some(place) = Place::on(Kind::Ext4) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    let write = |text: &str| ["a", "d/b", "z"].iter().for_each(|file| user.write(file, text));
    write("old");
    user.snapshot();
    user.data("tag @ old");
    for (fixed, attribute) in [("d/b", "i"), ("d", "i"), ("d/b", "a"), ("d", "a")] {
        write("new");
        let path = user.main().join(fixed);
        runs("chattr", &[&format!("+{attribute}")], &path);
        let refused = user.jvs("restore old --in-place --reason test a d/b z");
        nothing_was_done(&user, &refused.exits(1), &[("a", "new"), ("d/b", "new"), ("z", "new")]);
        restored_as_one(&user);
        for file in ["a", "d/b", "z"] {
            assert_eq!(user.read(file), "old", "{attribute} on {fixed}");
        }
        // What was replaced went with what it is in, and could not be removed.
        let staging = user.root.join(layout::staging().as_str());
        runs("chattr", &["-R", &format!("-{attribute}")], &staging);
        user.jvs("gc").ok();
        assert_eq!(user.names(&layout::staging()), [""; 0], "{attribute} on {fixed}");
    }
}

#[test]
fn a_subvolume_in_the_worktree_does_not_leave_a_restore_half_done() {
    if !granted(&[Capability::Root, Capability::Program("btrfs")]) {
        return;
    }
    let Some(place) = Place::on(Kind::Btrfs) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    runs("btrfs", &["subvolume", "create"], &user.main().join("sub"));
    let write = |text: &str| ["a", "sub/b"].iter().for_each(|file| user.write(file, text));
    write("old");
    user.snapshot();
    user.data("tag @ old");
    write("new");
    let refused = user.jvs("restore old --in-place --reason test a sub/b");
    nothing_was_done(&user, &refused.exits(1), &[("a", "new"), ("sub/b", "new")]);
    restored_as_one(&user);
    assert_eq!(user.names(&layout::staging()), [""; 0]);
    assert_eq!((user.read("a"), user.read("sub/b")), ("old".into(), "old".into()));
}

#[test]
fn directories_below_an_overlay_do_not_leave_a_restore_half_done() {
    if !granted(&[Capability::Root]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| dir.path().join(name));
    for dir in [&lower, &upper, &work] {
        fs_err::create_dir(dir).expect("made");
    }
    let user = User::with_new_repository(&lower.join("r"));
    user.write("a", "old");
    user.write("d/b", "old");
    user.snapshot();
    user.data("tag @ old");
    user.write("a", "new");
    user.write("more/c", "new");
    let point = MountPoint::create(dir.path().join("over"));
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    let options = std::ffi::CString::new(options).expect("no NUL");
    if mount("overlay", point.path(), "overlay", MountFlags::empty(), options.as_c_str()).is_err() {
        return skip("no overlay can be mounted here");
    }
    let user = user.at(&point.path().join("r"));
    // Neither `more` nor the worktree's directory can be moved here.
    let refused = user.jvs(RESTORE.trim_end_matches(" --json"));
    let refused = refused.exits(1);
    nothing_was_done(&user, &refused, &[("a", "new"), ("more/c", "new")]);
    assert!(refused.stderr().contains("what was there before was kept as snapshot"), "{refused}");
    // What is not a directory can, and a directory that was made here.
    fs_err::remove_dir_all(user.main().join("more")).expect("removed");
    user.write("made/here", "new");
    let told = user.jvs(RESTORE).ok().json();
    assert_eq!(told["warnings"], serde_json::Value::Null, "{told}");
    assert_eq!((user.read("a"), user.find("made/here")), ("old".into(), None));
}
