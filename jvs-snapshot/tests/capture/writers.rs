//! Programs that write without closing: into mapped files, or into what a mount has
//! not handed in. What a reader sees is captured, or the capture is refused.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_kit::live::writer::{Way, Writer};
use jvs_repo::code::{Code, Coded as _};
use jvs_repo::config::Consistency;
use jvs_snapshot::progress::{CapturePhase, Silent};

use super::quiet::meddler;
use super::support::World;

const SIZE: usize = 8192;
/// Captures beside writers; a hundred of them with `JVS_LONG`.
const ROUNDS: usize = 4;
/// Longer than a capture that waits for nothing takes until it clones; one that is slower
/// does not fail for it.
const HELD_BACK: Duration = Duration::from_secs(1);
const PHASES: [CapturePhase; 5] = [
    CapturePhase::Plan,
    CapturePhase::Clone,
    CapturePhase::Prove,
    CapturePhase::Manifest,
    CapturePhase::Sync,
];

/// The one byte that a file is full of.
#[track_caller]
fn byte(path: &Path) -> u8 {
    let content = fs_err::read(path).expect("a file");
    assert!(content.iter().all(|byte| *byte == content[0]), "{}: torn", path.display());
    content[0]
}

/// A program stores while a snapshot is taken, whenever that is, and is then idle:
/// what is captured was there at one moment, and the next snapshot has the rest.
fn what_is_stored_is_captured_now_or_next_time(world: &mut World, way: Way) {
    world.write("array", [b'0'; SIZE]);
    world.write("other", "12345");
    let Some(mut writer) = Writer::open(&world.path("array"), way) else { return };
    let mut parent = ("0".to_owned(), world.capture("0", None));
    for (at, phase) in PHASES.into_iter().enumerate() {
        let (before, after) = (b'a' + 2 * at as u8, b'b' + 2 * at as u8);
        writer.overwrite(before);
        let writes = Mutex::new(&mut writer);
        let stores = meddler(phase, 1, |_| {
            writes.lock().expect("not poisoned").overwrite(after);
        });
        let (during, next) = (format!("{at}-during"), format!("{at}-next"));
        let captured = world
            .try_capture(&during, Some((parent.0.as_str(), &parent.1)), &stores)
            .expect("stored once: a second attempt is quiet");
        world.check_manifest(&during, &captured);
        let got = byte(&world.payload(&during).join("array"));
        assert!(got == before || got == after, "{phase:?}: {}", got as char);
        let second = world.capture(&next, Some((during.as_str(), &captured)));
        assert_eq!(byte(&world.payload(&next).join("array")), after, "{phase:?}");
        parent = (next, second);
    }
}

/// A program that stores while files are copied, each time: nothing is quiet.
fn a_program_that_stores_all_the_time_is_named(world: &mut World, way: Way) {
    world.write("array-too", [b'0'; SIZE]);
    let Some(mut writer) = Writer::open(&world.path("array-too"), way) else { return };
    let first = world.capture("quiet", None);
    writer.overwrite(b'1');
    let writes = Mutex::new((2_u8, &mut writer));
    let always = meddler(CapturePhase::Clone, 9, |_| {
        let mut writes = writes.lock().expect("not poisoned");
        let byte = b'0' + writes.0 % 10;
        writes.0 += 1;
        writes.1.overwrite(byte);
    });
    let error =
        world.try_capture("never", Some(("quiet", &first)), &always).expect_err("not quiet");
    assert_eq!(error.code(), Code::ConsistencyUnavailable, "{error}");
    assert!(error.to_string().contains("array-too changed"), "{error}");
    world.options.consistency = Consistency::BestEffort;
    let labelled = world.try_capture("labelled", Some(("quiet", &first)), &always);
    let labelled = labelled.expect("what is there");
    world.check_manifest("labelled", &labelled);
    assert!(labelled.content.risk.is_some());
    world.options.consistency = Consistency::Quiesced;
}

/// Two files that are written one after the other, all the time, with many between
/// them: a capture that succeeds has both as they were at one moment.
fn two_files_are_of_one_moment(world: &mut World, way: Way) {
    const MANY: usize = 100;
    world.make_dir("two");
    for n in 0..MANY {
        world.write(format!("two/m-{n}"), [b'x'; 4096]);
    }
    let [first, last] = ["two/a", "two/z"].map(|name| {
        world.write(name, [b'a'; SIZE]);
        world.path(name)
    });
    let (Some(mut first), Some(mut last)) = (Writer::open(&first, way), Writer::open(&last, way))
    else {
        return;
    };
    world.options.full = true;
    let over = AtomicBool::new(false);
    let stays = std::thread::scope(|scope| {
        let writers = scope.spawn(|| {
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                n = (n + 1) % 26;
                first.overwrite(b'a' + n);
                last.overwrite(b'a' + n);
                // Now and then nobody writes for as long as a capture takes.
                std::thread::sleep(Duration::from_millis(if n % 5 == 0 { 150 } else { 0 }));
            }
            n
        });
        let rounds = if std::env::var_os("JVS_LONG").is_some() { 100 } else { ROUNDS };
        for round in 0..rounds {
            let name = format!("two-{round}");
            match world.try_capture(&name, None, &Silent) {
                Ok(captured) => {
                    world.check_manifest(&name, &captured);
                    let [a, z] = ["two/a", "two/z"].map(|f| byte(&world.payload(&name).join(f)));
                    let ahead = (26 + a - z) % 26;
                    assert!(ahead <= 1, "{way:?}: {} beside {}", a as char, z as char);
                }
                Err(error) => assert_eq!(error.code(), Code::ConsistencyUnavailable, "{error}"),
            }
        }
        over.store(true, Ordering::Relaxed);
        writers.join().expect("the writers")
    });
    world.try_capture("two-last", None, &Silent).expect("nobody writes any more");
    for name in ["two/a", "two/z"] {
        assert_eq!(byte(&world.payload("two-last").join(name)), b'a' + stays, "{way:?}");
    }
    world.options.full = false;
}

fn mapped_on(small: Option<SmallFs>, on_a_disk: bool) {
    let Some(small) = small else { return };
    let mut world = World::at(small.path(), small.path());
    what_is_stored_is_captured_now_or_next_time(&mut world, Way::Mapped);
    two_files_are_of_one_moment(&mut world, Way::Mapped);
    if on_a_disk {
        a_program_that_stores_all_the_time_is_named(&mut world, Way::Mapped);
    }
}

#[test]
fn what_is_stored_into_a_mapped_file_is_captured_on_ext4() {
    mapped_on(SmallFs::on_loop(Kind::Ext4), true);
}

#[test]
fn what_is_stored_into_a_mapped_file_is_captured_on_xfs() {
    mapped_on(SmallFs::on_loop(Kind::Xfs), true);
}

#[test]
fn what_is_stored_into_a_mapped_file_is_captured_on_btrfs() {
    mapped_on(SmallFs::on_loop(Kind::Btrfs), true);
}

#[test]
fn what_is_stored_into_a_mapped_file_is_captured_on_tmpfs() {
    mapped_on(SmallFs::tmpfs(64 << 20), false);
}

/// Of a program that wrote a moment ago and keeps its file open.
fn unflushed_on(metadata: Metadata) {
    let Some(volume) = Volume::mounted(metadata, 1) else { return };
    for (number, busy) in [false, true].into_iter().enumerate() {
        if busy {
            // From now on the mount's counter is never zero for long.
            fs_err::write(volume.host(0).join("large"), vec![7; 48 << 20]).expect("a large file");
        }
        for way in [Way::Written, Way::Mapped] {
            let place = volume.host(0).join(format!("{number}-{way:?}"));
            fs_err::create_dir(&place).expect("a directory");
            let mut world = World::at(&place, &place);
            world.write("data", [b'O'; SIZE]);
            let base = world.capture("base", None);
            let Some(mut writer) = Writer::open(&world.path("data"), way) else { return };
            writer.overwrite(b'N');
            let after = world.try_capture("after", Some(("base", &base)), &Silent);
            let after = after.expect("an idle program is quiet");
            world.check_manifest("after", &after);
            let got = byte(&world.payload("after").join("data"));
            assert_eq!(got, b'N', "{metadata:?} {way:?} {busy}");
            drop(writer);
            what_is_stored_is_captured_now_or_next_time(&mut world, way);
            if busy {
                two_files_are_of_one_moment(&mut world, way);
            }
        }
    }
}

/// A program stored into a mapped file, and what it stored is on its way to the mount
/// until the capture has had time to do without it.
fn held_back_on(metadata: Metadata) {
    let Some(volume) = Volume::mounted(metadata, 1) else { return };
    for way in [Way::Mapped, Way::MappedEnd] {
        let place = volume.host(0).join(format!("{way:?}"));
        fs_err::create_dir(&place).expect("a directory");
        let world = World::at(&place, &place);
        world.write("data", [b'O'; SIZE]);
        let Some(mut writer) = Writer::open(&world.path("data"), way) else { return };
        writer.overwrite(b'P');
        world.capture("before", None);
        let held = volume.hold_back(0, &world.path("data"));
        writer.overwrite(b'N');
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(HELD_BACK);
                drop(held);
            });
            world.try_capture("after", None, &Silent).expect("an idle program is quiet");
        });
        let copy = fs_err::read(world.payload("after").join("data")).expect("a copy");
        assert_eq!(copy[SIZE - 1], b'N', "{metadata:?} {way:?}");
    }
}

#[test]
fn what_is_on_its_way_to_a_mount_is_captured_with_sqlite() {
    held_back_on(Metadata::Sqlite);
}

#[test]
fn what_is_on_its_way_to_a_mount_is_captured_with_redis() {
    held_back_on(Metadata::Redis);
}

#[test]
fn what_is_not_flushed_is_captured_on_juicefs_with_sqlite() {
    unflushed_on(Metadata::Sqlite);
}

#[test]
fn what_is_not_flushed_is_captured_on_juicefs_with_redis() {
    unflushed_on(Metadata::Redis);
}
