//! What is done with whole trees on JuiceFS: inside its metadata, and not a call a file.

use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use fs_err::os::unix::fs::symlink;
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_repo::layout;

use crate::user::User;

const FILES: u64 = 300;

/// A snapshot of many files, and of a few that a clone does not keep as they are.
fn many_files(volume: &Volume) -> (User, String) {
    let user = User::with_new_repository(&volume.host(0).join("r"));
    for n in 0..FILES {
        user.write(&format!("{}/{n}", n / 100), &format!("content of {n}"));
    }
    let in_main = |name: &str| user.main().join(name);
    fs_err::hard_link(in_main("0/1"), in_main("2/linked")).expect("a second name");
    symlink("../0", in_main("1/symlink")).expect("a symlink");
    let id = user.snapshot();
    (user, id)
}

/// How often the mount was asked to do this.
#[track_caller]
fn asked(volume: &Volume, what: &str) -> u64 {
    let stats = fs_err::read_to_string(volume.host(0).join(".stats")).expect("counters");
    let name = format!("juicefs_fuse_ops_total_{what} ");
    let count = |line: &str| line.strip_prefix(&name)?.parse().ok();
    stats.lines().find_map(count).unwrap_or(0)
}

fn payload_of(user: &User, id: &str) -> std::path::PathBuf {
    let dir = layout::snapshot(id.parse().expect("an id"));
    user.root.join(layout::snapshot_payload(&dir).as_str())
}

fn restored_by_a_clone(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 1) else { return };
    let (user, id) = many_files(&volume);
    let before = asked(&volume, "open");
    user.jvs(&format!("restore {id} --into copy")).ok();
    let opened = asked(&volume, "open") - before;
    assert!(opened < FILES / 3, "{opened} opens: the clone was read");
    let copy = user.root.join("worktrees/copy");
    assert_eq!(fs_err::read_to_string(copy.join("2/299")).expect("a file"), "content of 299");
    assert_eq!(fs_err::read_link(copy.join("1/symlink")).expect("a symlink"), Path::new("../0"));
    let inode = |path: &str| fs_err::metadata(copy.join(path)).expect("a file").ino();
    assert_eq!(inode("0/1"), inode("2/linked"), "one file with two names");
    assert_ne!(
        inode("0/2"),
        fs_err::metadata(payload_of(&user, &id).join("0/2")).expect("a file").ino()
    );
    user.jvs("verify").ok();
    let status = user.command("status --json").cwd(&copy).run().ok().json();
    assert_eq!(status["data"]["clean"], true);
}

#[test]
fn a_restored_tree_is_cloned_and_not_read_with_sqlite() {
    restored_by_a_clone(Engine::Sqlite);
}

#[test]
fn a_restored_tree_is_cloned_and_not_read_with_redis() {
    restored_by_a_clone(Engine::Redis);
}

/// Commands of ours have files open while they hold the lock.
#[test]
fn whoever_compares_under_a_lock_does_not_ask_about_each_file() {
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let (user, old) = many_files(&volume);
    user.write("0/7", "changed");
    user.snapshot();
    let before = asked(&volume, "open");
    user.jvs(&format!("restore {old} --in-place --reason test")).ok();
    let opened = asked(&volume, "open") - before;
    assert!(opened < FILES / 2, "{opened} opens for one file that differs");
    assert_eq!(user.read("0/7"), "content of 7");
}

#[test]
fn what_was_tampered_with_is_not_cloned_into_a_new_worktree() {
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let (user, id) = many_files(&volume);
    let path = payload_of(&user, &id).join("1/150");
    let file = fs_err::File::options().write(true).open(path).expect("root may");
    let time = file.metadata().and_then(|it| it.modified()).expect("a time");
    file.file().write_all_at(b"CONTENT", 0).expect("as long as before");
    file.sync_all().expect("flushed");
    file.set_modified(time).expect("the time of before");
    drop(file);
    let refused = user.jvs(&format!("restore {id} --into copy --json")).json();
    let said = refused["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(said.contains("1/150 (content)"), "{refused}");
    assert!(!user.root.join("worktrees/copy").exists(), "and nothing is there");
}

fn collected_by_the_mount(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 1) else { return };
    let (user, first) = many_files(&volume);
    user.write("new", "1");
    let second = user.snapshot();
    user.write("new", "2");
    let third = user.snapshot();
    let outside = user.main().join("0/5");
    let before = (asked(&volume, "unlink"), asked(&volume, "rmdir"));
    user.jvs("gc --keep-last 1 --keep-within 0s").ok();
    let unlinked = asked(&volume, "unlink") - before.0;
    assert!(unlinked < FILES / 3, "{unlinked} unlinks: it was removed name by name");
    let left: Vec<String> = user.history();
    assert_eq!(left.first(), Some(&third));
    assert!(!payload_of(&user, &first).exists() || !payload_of(&user, &second).exists());
    assert_eq!(fs_err::read_to_string(outside).expect("what a symlink led to"), "content of 5");
    assert_eq!(user.names(&layout::staging()), [""; 0], "nothing is left of it");
    user.jvs("doctor --strict").ok();
}

#[test]
fn what_is_collected_is_removed_by_the_mount_with_sqlite() {
    collected_by_the_mount(Engine::Sqlite);
}

#[test]
fn what_is_collected_is_removed_by_the_mount_with_redis() {
    collected_by_the_mount(Engine::Redis);
}

/// What is mounted in a tree that goes is neither unmounted nor emptied.
#[test]
fn a_tree_that_something_is_mounted_in_is_not_given_to_the_mount() {
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let (user, first) = many_files(&volume);
    for n in ["1", "2"] {
        user.write("new", n);
        user.snapshot();
    }
    let Some(small) = jvs_kit::live::loopfs::SmallFs::tmpfs(1 << 20) else { return };
    fs_err::write(small.path().join("precious"), "kept").expect("a file");
    let point = payload_of(&user, &first).join("1");
    let bound = rustix::mount::mount_bind(small.path(), &point);
    bound.expect("root may bind");
    user.jvs("gc --keep-last 1 --keep-within 0s");
    let kept = fs_err::read_to_string(small.path().join("precious")).expect("still there");
    assert_eq!(kept, "kept");
    let table = fs_err::read_to_string("/proc/self/mountinfo").expect("a table");
    let mounted = table.lines().find(|line| line.contains("/payload/1 ")).expect("still mounted");
    let at = mounted.split(' ').nth(4).expect("a mount point");
    rustix::mount::unmount(at, rustix::mount::UnmountFlags::DETACH).expect("unmounted");
}
