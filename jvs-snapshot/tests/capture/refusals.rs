//! What cannot be captured whole is not captured, and named.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::support::{World, unprivileged, zoo};
use jvs_kit::live::loopfs::SmallFs;
use jvs_repo::code::{Code, Coded as _};
use jvs_repo::config::Engine;
use jvs_repo::next::Next;
use jvs_snapshot::progress::Silent;

#[test]
fn a_mount_point_inside_is_refused() {
    let world = World::new();
    world.make_dir("mounted");
    let Some(small) = SmallFs::tmpfs(1 << 20) else { return };
    let bind = |args: &[&str]| {
        let mut mount = Command::new(args[0]);
        mount.args(&args[1..]).arg(world.path("mounted")).status().expect("mount").success()
    };
    assert!(bind(&["mount", "--bind", small.path().to_str().expect("UTF-8")]));
    let answer = world.try_capture("1", None, &Silent);
    assert!(bind(&["umount"]));
    let error = answer.expect_err("a mount point");
    assert_eq!(error.code(), Code::PartialSnapshot);
    assert!(error.to_string().contains("mounted is a mount point"), "{error}");
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let Some(small) = SmallFs::tmpfs(1 << 20) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let world = World::at(dir.path(), small.path());
    zoo(&world);
    world.write("too-large", vec![1; 3 << 20]);
    let error = world.try_capture("1", None, &Silent).expect_err("no space");
    assert_eq!(error.code(), Code::Io);
    assert!(error.to_string().contains("No space"), "{error}");
    assert_eq!(error.next(), Some(Next::FreeSpace(None)));
    assert!(!world.payload("1").exists());
}

#[test]
fn an_engine_that_does_not_work_here_is_refused_if_it_was_asked_for() {
    for engine in [Engine::Juicefs, Engine::Reflink] {
        let Some(small) = SmallFs::tmpfs(1 << 20) else { return };
        let mut there = World::at(small.path(), small.path());
        there.options.engine = engine;
        let error = there.try_capture("1", None, &Silent).expect_err("not on tmpfs");
        assert_eq!(error.code(), Code::PartialSnapshot);
        assert!(error.to_string().contains(engine.as_str()), "{error}");
    }
}

#[test]
fn what_an_ordinary_user_cannot_read_or_keep_is_named() {
    let test = "refusals::what_an_ordinary_user_cannot_read_or_keep_is_named";
    unprivileged(test, |_| {}, as_an_ordinary_user);
}

fn as_an_ordinary_user(place: &std::path::Path) {
    let world = World::at(place, place);
    world.write("fine", "x");
    world.write("secret", "x");
    world.make_dir("closed");
    let nothing = std::fs::Permissions::from_mode(0o000);
    for name in ["secret", "closed"] {
        fs_err::set_permissions(world.path(name), nothing.clone()).expect("a mode");
    }
    let error = world.try_capture("1", None, &Silent).expect_err("a closed directory");
    assert_eq!(error.code(), Code::PartialSnapshot);
    assert!(error.to_string().contains("closed (Permission denied"), "{error}");
    let readable = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(world.path("closed"), readable.clone()).expect("a mode");
    let error = world.try_capture("2", None, &Silent).expect_err("a secret file");
    assert!(error.to_string().contains("secret (Permission denied"), "{error}");
    fs_err::set_permissions(world.path("secret"), readable).expect("a mode");
    // A directory that its owner may not write to is filled and then closed.
    world.write("closed/inside", "x");
    let closed = std::fs::Permissions::from_mode(0o555);
    fs_err::set_permissions(world.path("closed"), closed).expect("a mode");
    let first = world.capture("3", None);
    world.capture("4", Some(("3", &first)));
    for name in ["source", "snapshots/3/payload", "snapshots/4/payload"] {
        let open = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(place.join(name).join("closed"), open).expect("a mode");
    }
}
