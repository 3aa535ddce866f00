//! What a copy cannot have is counted and named, and the manifest is of the copy
//! as it is.

use std::path::Path;

use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_repo::config::Engine;
use jvs_snapshot::descriptor::Loss;
use jvs_snapshot::progress::Silent;
use jvs_snapshot::stage::Captured;
use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};

use super::support::{SOMEBODY, World, is_root, unprivileged};

/// Paths by what they lost.
fn lost(captured: &Captured) -> Vec<(&str, Vec<String>)> {
    let degraded = captured.content.degraded.iter();
    degraded
        .map(|Loss { what, count, examples }| {
            assert_eq!(*count, examples.len() as u64, "as few as these are all named");
            (what.as_str(), examples.clone())
        })
        .collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Files of root's, readable by everybody, in a directory of somebody's.
fn prepare(place: &Path) {
    use fs_err::os::unix::fs::{chown, symlink};
    use std::os::unix::fs::PermissionsExt as _;
    let given = place.join("given");
    fs_err::create_dir_all(given.join("dir")).expect("directories");
    for name in ["foreign", "setuid", "mine"] {
        fs_err::write(given.join(name), name).expect("a file");
    }
    let setuid = std::fs::Permissions::from_mode(0o4755);
    fs_err::set_permissions(given.join("setuid"), setuid).expect("a mode");
    fs_err::hard_link(given.join("foreign"), given.join("dir/foreign-too")).expect("a link");
    symlink("nowhere", given.join("link")).expect("a symlink");
    let mode = Mode::from_raw_mode(0o666);
    let null = makedev(1, 3);
    mknodat(CWD, given.join("null"), FileType::CharacterDevice, mode, null).expect("a device");
    mknodat(CWD, given.join("fifo"), FileType::Fifo, mode, 0).expect("a FIFO");
    for name in ["", "mine"] {
        chown(given.join(name), Some(SOMEBODY), Some(SOMEBODY)).expect("given away");
    }
}

#[test]
fn owners_and_devices_that_an_ordinary_user_cannot_make_are_named() {
    let test = "degraded::owners_and_devices_that_an_ordinary_user_cannot_make_are_named";
    unprivileged(test, prepare, |place| {
        let given = place.join("given");
        if !given.exists() {
            // Nobody could prepare anything: everything is ours.
            return;
        }
        for engine in [Engine::Copy, Engine::Auto] {
            let at = place.join(engine.as_str());
            fs_err::create_dir(&at).expect("a directory");
            let mut world = World::at(&at, &at);
            world.source = given.clone();
            world.options.engine = engine;
            let first = world.try_capture("1", None, &Silent).expect("captured");
            world.check_manifest("1", &first);
            // Of a file with two names the first is named.
            let owners = names(&["dir", "dir/foreign-too", "fifo", "link", "setuid"]);
            let special = names(&["null"]);
            let expected =
                [("special_file", special), ("owner", owners), ("mode", names(&["setuid"]))];
            assert_eq!(lost(&first), expected);
            // What was lost once is lost again, not forgotten.
            let second = world.try_capture("2", Some(("1", &first)), &Silent).expect("captured");
            world.check_manifest("2", &second);
            assert_eq!(second.content.degraded, first.content.degraded);
        }
    });
}

/// An access control list with one more user than the mode has.
const ACL: [u8; 44] = {
    let mut acl = [0; 44];
    let entries: [[u8; 8]; 5] = [
        [1, 0, 6, 0, 255, 255, 255, 255],
        [2, 0, 4, 0, 210, 4, 0, 0],
        [4, 0, 4, 0, 255, 255, 255, 255],
        [16, 0, 4, 0, 255, 255, 255, 255],
        [32, 0, 0, 0, 255, 255, 255, 255],
    ];
    acl[0] = 2;
    let mut at = 0;
    while at < 40 {
        acl[4 + at] = entries[at / 8][at % 8];
        at += 1;
    }
    acl
};

#[test]
fn attributes_and_access_lists_that_the_repository_s_filesystem_does_not_keep_are_named() {
    let Some(volume) = Volume::mounted(Metadata::Redis, 1) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let world = World::at(dir.path(), volume.host(0));
    assert!(is_root(), "or there would be no volume");
    for name in ["noted", "listed", "plain"] {
        world.write(name, name);
    }
    world.make_dir("dir");
    let set = |name: &str, key: &str, value: &[u8]| {
        setxattr(world.path(name), key, value, XattrFlags::empty()).expect("an attribute");
    };
    set("noted", "user.note", b"x");
    set("noted", "user.other", b"y");
    set("dir", "user.note", b"z");
    set("listed", "system.posix_acl_access", &ACL);
    let expected = [("xattr", names(&["dir", "listed", "noted"]))];
    let first = world.try_capture("1", None, &Silent).expect("captured");
    world.check_manifest("1", &first);
    assert_eq!(lost(&first), expected);
    let second = world.try_capture("2", Some(("1", &first)), &Silent).expect("captured");
    world.check_manifest("2", &second);
    assert_eq!(lost(&second), expected, "also where the parent's files are used");
}
