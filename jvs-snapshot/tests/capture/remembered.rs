//! What a snapshot remembers of files counts within a boot, and where change times
//! are kept.

use std::os::unix::fs::MetadataExt as _;

use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_kit::live::writer::{Way, Writer};
use jvs_repo::clock::SystemClock;
use jvs_snapshot::stage::Captured;

use super::support::{Rebooted, World, attributes, zoo};

fn read(captured: &Captured) -> u64 {
    captured.content.files - captured.reused
}

#[test]
fn after_a_boot_everything_is_read_once_and_nothing_is_kept_twice() {
    let mut world = World::new();
    zoo(&world);
    attributes(&world);
    let first = world.capture("1", None);
    world.clock = Box::new(Rebooted("the next boot"));
    let second = world.capture("2", Some(("1", &first)));
    assert_eq!(second.reused, 0, "change times of another boot");
    let inode = |name: &str, path: &str| {
        world.payload(name).join(path).symlink_metadata().expect("a file").ino()
    };
    for path in ["plain", "a/deep/file", "setuid"] {
        assert_eq!(inode("1", path), inode("2", path), "{path}: read, not copied");
    }
    let third = world.capture("3", Some(("2", &second)));
    assert_eq!(read(&third), 0, "within the boot that read everything");
}

#[test]
fn a_snapshot_that_does_not_say_in_which_boot_it_was_taken_is_read_again() {
    let world = World::new();
    zoo(&world);
    let mut first = world.capture("1", None);
    first.content.boot_id = None;
    assert_eq!(world.capture("2", Some(("1", &first))).reused, 0);
}

/// A database that writes in place syncs its data and not its times.
#[test]
fn a_change_whose_time_a_power_cut_took_is_seen_after_the_boot() {
    let Some(small) = SmallFs::on_loop(Kind::Ext4) else { return };
    let world = World::at(small.path(), small.path());
    world.write("database", [b'O'; 8192]);
    let first = world.capture("1", None);
    let Some(mut writer) = Writer::open(&world.path("database"), Way::Synced) else { return };
    // A journal that is committed in this very moment keeps the time as well.
    let mut lost = None;
    for byte in b"NMLK" {
        let before = world.path("database").metadata().expect("the file").ctime_nsec();
        writer.overwrite(*byte);
        let cut = small.after_a_power_cut();
        let found = World::found(cut.path(), cut.path());
        let there = found.path("database").metadata().expect("the file");
        let content = fs_err::read(found.path("database")).expect("the file");
        assert_eq!(content, [*byte; 8192], "synced");
        if there.ctime_nsec() == before {
            lost = Some((found, cut, *byte));
            break;
        }
    }
    let Some((mut found, _cut, byte)) = lost else { panic!("no time was lost in four cuts") };
    found.clock = Box::new(Rebooted("after the cut"));
    found.capture("2", Some(("1", &first)));
    let copy = fs_err::read(found.payload("2").join("database")).expect("a copy");
    assert_eq!(copy, [byte; 8192]);
    found.clock = Box::new(SystemClock);
}

#[test]
fn nothing_is_remembered_of_files_in_memory() {
    let Some(small) = SmallFs::tmpfs(16 << 20) else { return };
    let world = World::at(small.path(), small.path());
    world.write("array", [b'0'; 8192]);
    let Some(mut writer) = Writer::open(&world.path("array"), Way::Mapped) else { return };
    writer.overwrite(b'A');
    let first = world.capture("1", None);
    writer.overwrite(b'B');
    let second = world.capture("2", Some(("1", &first)));
    assert_eq!(second.reused, 0);
    let copy = fs_err::read(world.payload("2").join("array")).expect("a copy");
    assert_eq!(copy, [b'B'; 8192]);
}
