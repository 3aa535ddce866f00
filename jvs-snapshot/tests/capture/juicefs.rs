//! On JuiceFS the clone is the second look: it must see what the look at the
//! original would have seen, also what another host did, and be the only one if
//! nobody did anything.

use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fs_err::os::unix::fs::symlink;
use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_repo::code::{Code, Coded as _};
use jvs_repo::config::Engine;
use jvs_snapshot::progress::{CapturePhase, Progress, Silent};

use super::support::{World, look, zoo};

/// Acts when the `n`-th phase of its kind begins, and remembers all that began.
struct Watcher<F: Fn(CapturePhase, usize) + Sync> {
    begun: Mutex<Vec<CapturePhase>>,
    act: F,
}

impl<F: Fn(CapturePhase, usize) + Sync> Watcher<F> {
    fn new(act: F) -> Self {
        Watcher { begun: Mutex::default(), act }
    }

    fn count(&self, phase: CapturePhase) -> usize {
        self.begun.lock().expect("not poisoned").iter().filter(|&&begun| begun == phase).count()
    }
}

impl<F: Fn(CapturePhase, usize) + Sync> Progress for Watcher<F> {
    fn phase(&self, phase: CapturePhase) {
        let before = self.count(phase);
        self.begun.lock().expect("not poisoned").push(phase);
        (self.act)(phase, before);
    }
}

fn name(n: u32) -> String {
    format!("a-rather-long-name-for-a-file-{n:04}")
}

/// More than one batch of names: later batches may come without attributes.
const FILES: u32 = 240;

/// A tree of some hundred files and a few others, on the first of two hosts.
fn two_hosts(metadata: Metadata) -> Option<(World, Volume)> {
    let volume = Volume::mounted(metadata, 2)?;
    let world = World::at(volume.host(0), volume.host(0));
    for n in 0..FILES {
        world.write(name(n), "12345");
    }
    world.make_dir("dir");
    world.write("dir/file", "12345");
    symlink("dir/file", world.path("link")).expect("a symlink");
    Some((world, volume))
}

fn a_quiet_tree_needs_no_second_look(metadata: Metadata) {
    let Some(volume) = Volume::mounted(metadata, 1) else { return };
    let world = World::at(volume.host(0), volume.host(0));
    zoo(&world);
    if metadata == Metadata::Redis {
        // What its clone drops is made by hand, from an original that must be
        // looked at again.
        let silent = Watcher::new(|_, _| {});
        world.try_capture("with-specials", None, &silent).expect("captured");
        assert_eq!(silent.count(CapturePhase::Prove), 1);
        for special in ["fifo", "a/socket", "null"] {
            fs_err::remove_file(world.path(special)).expect("removed");
        }
    }
    let watcher = Watcher::new(|_, _| {});
    let first = world.try_capture("1", None, &watcher).expect("captured");
    world.check_manifest("1", &first);
    world.write("a/deep/file", "changed");
    let second = world.try_capture("2", Some(("1", &first)), &watcher).expect("captured");
    world.check_manifest("2", &second);
    assert_eq!(look(&world.source), look(&world.payload("2")), "hard links are links again");
    assert_eq!((watcher.count(CapturePhase::Walk), watcher.count(CapturePhase::Prove)), (2, 0));
    assert_eq!((first.content.quiescence.attempts, second.content.quiescence.attempts), (1, 1));
}

#[test]
fn a_quiet_tree_needs_no_second_look_on_sqlite() {
    a_quiet_tree_needs_no_second_look(Metadata::Sqlite);
}

#[test]
fn a_quiet_tree_needs_no_second_look_on_redis() {
    a_quiet_tree_needs_no_second_look(Metadata::Redis);
}

type Meddle = fn(&Path, usize);

/// What another host may do, and a part of what must be said about it. Each keeps
/// what it can of size and times.
const MEDDLING: [(&str, &str, Meddle); 8] = [
    ("rewrite the first", "-0000 changed", |root, n| {
        fs_err::write(root.join(name(0)), format!("{n:05}")).expect("as long as before");
    }),
    ("rewrite one of a later batch and set its time back", "-0150 changed", |root, n| {
        let file = fs_err::File::options().write(true).open(root.join(name(150))).expect("open");
        let time = file.metadata().and_then(|m| m.modified()).expect("a time");
        file.file().write_all_at(format!("{n:05}").as_bytes(), 0).expect("as long as before");
        file.sync_all().expect("flushed");
        file.set_modified(time).expect("the time of before");
    }),
    ("create", "appeared", |root, n| {
        fs_err::write(root.join(format!("dir/new-{n}")), "x").expect("made");
    }),
    ("delete", "vanished", |root, n| {
        fs_err::remove_file(root.join(name(100 + n as u32))).expect("removed");
    }),
    ("rename over", "-0200 changed", |root, n| {
        let (new, old) = (root.join(name(210 + n as u32)), root.join(name(200)));
        fs_err::rename(new, old).expect("renamed");
    }),
    ("change a mode", "-0239 changed", |root, n| {
        let mode = std::fs::Permissions::from_mode(0o600 + n as u32);
        fs_err::set_permissions(root.join(name(239)), mode).expect("a mode");
    }),
    ("replace a symlink", "link changed", |root, n| {
        fs_err::remove_file(root.join("link")).expect("removed");
        symlink(format!("dir/fil{n}"), root.join("link")).expect("a symlink as long as before");
    }),
    ("close the root", "changed", |root, n| {
        let mode = std::fs::Permissions::from_mode(0o700 + n as u32);
        fs_err::set_permissions(root, mode).expect("a mode");
    }),
];

/// With a parent nothing is read, so that the kernel still remembers everything
/// of the first look when it comes to the second.
fn what_another_host_does_before_the_clone_is_seen(metadata: Metadata) {
    let Some((world, volume)) = two_hosts(metadata) else { return };
    let there = volume.host(1).join("source");
    let first = world.capture("first", None);
    let parent = Some(("first", &first));
    for (at, (what, said, meddle)) in MEDDLING.iter().enumerate() {
        let once = Watcher::new(|phase, n| {
            if (phase, n) == (CapturePhase::Clone, 0) {
                meddle(&there, 0);
            }
        });
        let captured = world.try_capture(&format!("{at}-once"), parent, &once).expect(what);
        assert_eq!(captured.content.quiescence.attempts, 2, "{what}");
        world.check_manifest(&format!("{at}-once"), &captured);
        let always = Watcher::new(|phase, n| {
            if phase == CapturePhase::Clone {
                meddle(&there, n + 1);
            }
        });
        let error = world.try_capture(&format!("{at}-always"), parent, &always).expect_err(what);
        assert_eq!(error.code(), Code::ConsistencyUnavailable, "{what}: {error}");
        assert!(error.to_string().contains(said), "{what}: {error}");
        assert_eq!(always.count(CapturePhase::Clone), 2, "one retry");
    }
}

#[test]
fn what_another_host_does_before_the_clone_is_seen_on_sqlite() {
    what_another_host_does_before_the_clone_is_seen(Metadata::Sqlite);
}

#[test]
fn what_another_host_does_before_the_clone_is_seen_on_redis() {
    what_another_host_does_before_the_clone_is_seen(Metadata::Redis);
}

/// Writes from the beginning of the clone on, until the capture is over.
fn a_writer_during_the_clone_is_found_and_named(metadata: Metadata) {
    let Some((world, volume)) = two_hosts(metadata) else { return };
    let there = volume.host(1).join("source").join(name(133));
    let file = fs_err::File::options().write(true).open(there).expect("open elsewhere");
    let write = |n: u32| {
        file.file().write_all_at(format!("{:05}", n % 100_000).as_bytes(), 0).expect("written");
        file.sync_all().expect("flushed");
    };
    let over = AtomicBool::new(false);
    let begun = AtomicBool::new(false);
    let watcher = Watcher::new(|phase, _| {
        // At least one write between the look and the clone, the others during it.
        if phase == CapturePhase::Clone {
            write(0);
            begun.store(true, Ordering::Relaxed);
        }
    });
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                if begun.load(Ordering::Relaxed) {
                    n += 1;
                    write(n);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let answer = world.try_capture("1", None, &watcher);
        over.store(true, Ordering::Relaxed);
        answer.expect_err("somebody writes all the time")
    });
    assert_eq!(error.code(), Code::ConsistencyUnavailable, "{error}");
    assert!(error.to_string().contains("-0133 changed"), "{error}");
}

#[test]
fn a_writer_during_the_clone_is_found_and_named_on_sqlite() {
    a_writer_during_the_clone_is_found_and_named(Metadata::Sqlite);
}

#[test]
fn a_writer_during_the_clone_is_found_and_named_on_redis() {
    a_writer_during_the_clone_is_found_and_named(Metadata::Redis);
}

/// The kernel remembers attributes for a second; a retry must not be misled by
/// what it remembers of the attempt before.
#[test]
fn a_retry_begins_without_memories() {
    let Some((world, volume)) = two_hosts(Metadata::Redis) else { return };
    let there = volume.host(1).join("source");
    let first = world.capture("first", None);
    let watcher = Watcher::new(|phase, n| match (phase, n) {
        (CapturePhase::Clone, 0) => {
            fs_err::write(there.join(name(238)), "54321").expect("elsewhere")
        }
        (CapturePhase::Walk, 1) => {
            fs_err::write(there.join(name(239)), "54321").expect("elsewhere")
        }
        _ => {}
    });
    let captured = world.try_capture("1", Some(("first", &first)), &watcher).expect("quiet now");
    assert_eq!(captured.content.quiescence.attempts, 2);
    for n in [238, 239] {
        let copy = fs_err::read_to_string(world.payload("1").join(name(n))).expect("a copy");
        assert_eq!(copy, "54321");
    }
}

/// Came after the look at the original, and was gone when it was looked at again.
#[test]
fn what_only_the_clone_has_is_a_change_and_named() {
    let Some((world, volume)) = two_hosts(Metadata::Redis) else { return };
    let there = volume.host(1).join("source");
    let watcher = Watcher::new(|phase, _| match phase {
        CapturePhase::Clone => fs_err::write(there.join("dir/passing"), "x").expect("made"),
        CapturePhase::Fidelity => fs_err::remove_file(there.join("dir/passing")).expect("removed"),
        _ => {}
    });
    let error = world.try_capture("1", None, &watcher).expect_err("twice");
    assert_eq!(error.code(), Code::ConsistencyUnavailable, "{error}");
    assert!(error.to_string().contains("dir"), "{error}");
}

/// What was written and not flushed is in no metadata: a clone that looks like the
/// original does not show that nobody writes.
#[test]
fn a_mount_with_unflushed_writes_is_looked_at_again() {
    for metadata in Metadata::ALL {
        let Some(volume) = Volume::mounted(metadata, 1) else { return };
        let world = World::at(volume.host(0), volume.host(0));
        world.write("open", "12345");
        world.write("other", "12345");
        let file = fs_err::File::options().write(true).open(world.path("open")).expect("open");
        let watcher = Watcher::new(|phase, n| {
            if (phase, n) == (CapturePhase::Walk, 0) {
                file.file().write_all_at(b"54321", 0).expect("written, not flushed");
            }
        });
        let captured = world.try_capture("1", None, &watcher).expect("captured");
        assert!(watcher.count(CapturePhase::Prove) > 0, "{metadata:?}");
        world.check_manifest("1", &captured);
        file.sync_all().expect("flushed");
        let quiet = Watcher::new(|_, _| {});
        world.try_capture("2", Some(("1", &captured)), &quiet).expect("captured");
        assert_eq!(quiet.count(CapturePhase::Prove), 0, "nothing is in the way any more");
    }
}

/// How many files were opened at a mount so far.
fn opened(volume: &Volume) -> u64 {
    let stats = fs_err::read_to_string(volume.host(0).join(".stats")).expect("counters");
    let count = |line: &str| line.strip_prefix("juicefs_fuse_ops_total_open ")?.parse().ok();
    stats.lines().find_map(count).expect("opens are counted")
}

/// A mount that holds something, though nobody writes, is asked once whether anybody has
/// a file open; only if somebody has, each file is asked for.
#[test]
fn a_mount_where_nobody_else_has_a_file_open_is_not_asked_about_each() {
    const FILES: u64 = 300;
    for metadata in Metadata::ALL {
        let Some(volume) = Volume::mounted(metadata, 1) else { return };
        let mut world = World::at(volume.host(0), volume.host(0));
        let bystanders = volume.host(0).join("bystanders");
        fs_err::create_dir(&bystanders).expect("a directory");
        // Kept open by somebody of ours, as a keeper keeps its log.
        let log = fs_err::File::create(bystanders.join("log")).expect("a file");
        world.options.bystanders = vec![bystanders];
        for n in 0..FILES {
            world.write(format!("file-{n}"), "12345");
        }
        let mut parent = ("0".to_owned(), world.capture("0", None));
        for (name, writer) in [("quiet", None), ("written to", Some("file-7"))] {
            let writer = writer.map(|name| {
                fs_err::File::options().write(true).open(world.path(name)).expect("open")
            });
            // The mount keeps some of its pages for later.
            fs_err::write(volume.host(0).join("large"), vec![7; 64 << 20]).expect("a large file");
            let before = opened(&volume);
            let captured = world.try_capture(name, Some((&parent.0, &parent.1)), &Silent);
            let captured = captured.expect("nobody writes");
            let each = opened(&volume) - before >= FILES;
            assert_eq!(each, writer.is_some(), "{metadata:?}, {name}");
            parent = (name.to_owned(), captured);
        }
        drop(log);
    }
}

/// The look at the original, where it is needed, is not made of memories either.
#[test]
fn a_writer_on_another_host_is_seen_when_files_are_copied() {
    let Some((mut world, volume)) = two_hosts(Metadata::Redis) else { return };
    world.options.engine = Engine::Copy;
    let first = world.capture("first", None);
    for n in [0, 150, 239] {
        let there = volume.host(1).join("source").join(name(n));
        let watcher = Watcher::new(|phase, before| {
            if (phase, before) == (CapturePhase::Prove, 0) {
                fs_err::write(&there, "54321").expect("as long as before, elsewhere");
            }
        });
        let parent = Some(("first", &first));
        let captured = world.try_capture(&n.to_string(), parent, &watcher).expect("captured");
        assert_eq!(
            captured.content.quiescence.attempts,
            2,
            "{} was rewritten during the first",
            name(n)
        );
    }
}

/// JuiceFS gives a file no new time when its attributes change: those of the
/// parent snapshot must not be taken for its own.
#[test]
fn an_attribute_that_changed_alone_is_seen() {
    for (metadata, engine) in [
        (Metadata::Sqlite, Engine::Juicefs),
        (Metadata::Redis, Engine::Juicefs),
        (Metadata::Redis, Engine::Copy),
    ] {
        let Some(mut volume) = Volume::format(metadata) else { return };
        let mount = volume.mount(&["--enable-xattr"]);
        let mut world = World::at(&mount, &mount);
        world.options.engine = engine;
        for name in ["changed", "new", "removed", "same", "dir/inside"] {
            fs_err::create_dir_all(world.path("dir")).expect("a directory");
            world.write(name, "x");
        }
        let set = |name: &str, value: &str| {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(world.path(name), "user.note", value.as_bytes(), flags)
                .expect("an attribute");
        };
        for name in ["changed", "removed", "same", "dir", "."] {
            set(name, "before");
        }
        let first = world.capture("1", None);
        let unchanged = world.capture("2", Some(("1", &first)));
        assert_eq!(unchanged.content.payload_root_hash, first.content.payload_root_hash);
        for name in ["changed", "new", "dir", ".", "dir/inside"] {
            set(name, "after");
        }
        rustix::fs::removexattr(world.path("removed"), "user.note").expect("removed");
        let second = world.capture("3", Some(("2", &unchanged)));
        assert_eq!(second.reused, second.content.files, "{engine:?}: contents are as they were");
        assert_ne!(second.content.payload_root_hash, first.content.payload_root_hash);
    }
}
