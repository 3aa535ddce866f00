//! Each rule of what a capture may believe, switched off: real files on real
//! filesystems then show what the rule prevents.
//!
//! A switch is off on one thread, so these captures have one.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_kit::live::writer::{Way, Writer};
use jvs_repo::clock::{BootId, Clock, Discipline, Reading, SystemClock};
use jvs_repo::code::{Code, Coded as _};
use jvs_snapshot::chosen::ChosenPaths;
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::mutation::capturing::{CaptureRule, without};
use jvs_snapshot::progress::{CapturePhase, Progress, Silent};
use jvs_snapshot::restore::RestoreRequest;
use jvs_snapshot::stage::{CaptureError, Captured, Options, Parent, Source, capture};
use jvs_snapshot::trees::Trees as _;
use jvs_world::live;
use jvs_world::repository::main;
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

const FILE: &str = "file";
const SIZE: usize = 8192;
/// Longer than a capture that waits for nothing takes until it clones; one that is slower
/// does not fail for it.
const HELD_BACK: Duration = Duration::from_secs(1);

/// The host's clocks in some boot of it.
struct Boot(&'static str);

impl Clock for Boot {
    fn now(&self) -> Reading {
        SystemClock.now()
    }
    fn boot_id(&self) -> BootId {
        BootId(self.0.to_owned())
    }
    fn discipline(&self) -> Discipline {
        SystemClock.discipline()
    }
    fn sleep_ms(&self, ms: u64) {
        SystemClock.sleep_ms(ms);
    }
}

/// Does something when a phase begins, once.
struct Once<F: FnOnce()>(CapturePhase, Mutex<Option<F>>);

impl<F: FnOnce() + Send> Once<F> {
    fn at(phase: CapturePhase, meddle: F) -> Self {
        Once(phase, Mutex::new(Some(meddle)))
    }
}

impl<F: FnOnce() + Send> Progress for Once<F> {
    fn phase(&self, phase: CapturePhase) {
        let meddle = self.1.lock().expect("not poisoned").take_if(|_| phase == self.0);
        if let Some(meddle) = meddle {
            meddle();
        }
    }
}

/// A tree `source` and, beside it, captures of it.
struct World {
    root: PathBuf,
    boot: &'static str,
}

impl World {
    fn at(root: &Path) -> Self {
        let world = World { root: root.to_owned(), boot: "one" };
        fs_err::create_dir(world.source()).expect("the source");
        world
    }

    fn source(&self) -> PathBuf {
        self.root.join("source")
    }

    fn options() -> Options {
        Options { threads: Some(1), ..Options::default() }
    }

    fn capture(&self, name: &str, parent: Option<(&str, &Captured)>) -> Captured {
        self.try_capture(name, parent, &Self::options(), &Silent).expect("captured")
    }

    fn try_capture(
        &self,
        name: &str,
        parent: Option<(&str, &Captured)>,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Captured, CaptureError> {
        let staging = self.root.join(name);
        fs_err::create_dir(&staging).expect("a staging directory");
        let parent = parent.map(|(name, captured)| Parent {
            directory: self.root.join(name),
            manifest_hash: captured.content.manifest_hash,
            boot_id: captured.content.boot_id.clone(),
        });
        let clock = Boot(self.boot);
        let source = Source::open(&self.source()).expect("a source");
        capture(&source, &staging, parent.as_ref(), options, &clock, progress)
    }

    /// The last byte of the file of a capture.
    fn kept(&self, name: &str) -> char {
        let path = self.root.join(name).join("payload").join(FILE);
        fs_err::read(path).expect("a copy")[SIZE - 1].into()
    }

    fn write(&self, byte: u8) -> PathBuf {
        let path = self.source().join(FILE);
        fs_err::write(&path, [byte; SIZE]).expect("the file");
        path
    }
}

/// With the rule the second capture has what the file has, without it what the file
/// had. `captures` answers with both.
#[track_caller]
fn needed(rule: CaptureRule, captures: impl Fn() -> Option<(char, char)>) {
    let Some((now, kept)) = captures() else { return };
    assert_eq!(now, kept, "with {rule:?}");
    let Some((now, kept)) = without(rule, captures) else { return };
    assert_ne!(now, kept, "{rule:?} is not needed");
}

/// A store after the file was copied, into a page that was stored into before.
#[test]
fn stores_into_mapped_files_are_written_out_first() {
    needed(CaptureRule::WrittenOutFirst, || {
        let small = SmallFs::on_loop(Kind::Ext4)?;
        let world = World::at(small.path());
        let mut writer = Writer::open(&world.write(b'0'), Way::Mapped)?;
        writer.overwrite(b'A');
        let late = Once::at(CapturePhase::Prove, move || writer.overwrite(b'B'));
        let first = world.try_capture("1", None, &World::options(), &late).expect("captured");
        world.capture("2", Some(("1", &first)));
        Some(('B', world.kept("2")))
    });
}

/// A program wrote a moment ago and has its file open.
fn written_and_not_handed_in() -> Option<(char, char)> {
    let volume = Volume::mounted(Metadata::Redis, 1)?;
    let world = World::at(volume.host(0));
    let path = world.write(b'O');
    let first = world.capture("1", None);
    let mut writer = Writer::open(&path, Way::Written)?;
    writer.overwrite(b'N');
    world.capture("2", Some(("1", &first)));
    Some(('N', world.kept("2")))
}

#[test]
fn what_a_mount_holds_is_handed_in_first() {
    needed(CaptureRule::HandedInFirst, written_and_not_handed_in);
}

#[test]
fn a_mount_is_spared_only_if_nobody_else_has_a_file_open() {
    needed(CaptureRule::NobodyElse, written_and_not_handed_in);
}

/// A page is on its way to the mount until the capture has had time to do without it.
/// It is not the page that is read to make the mount hand in what it has.
#[test]
fn pages_that_were_sent_have_arrived_before_a_mount_is_asked_for_them() {
    needed(CaptureRule::ArrivedFirst, || {
        let volume = Volume::mounted(Metadata::Redis, 1)?;
        let world = World::at(volume.host(0));
        let path = world.write(b'O');
        let mut writer = Writer::open(&path, Way::MappedEnd)?;
        writer.overwrite(b'P');
        world.capture("1", None);
        let held = volume.hold_back(0, &path);
        writer.overwrite(b'N');
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(HELD_BACK);
                drop(held);
            });
            world.capture("2", None);
        });
        Some(('N', world.kept("2")))
    });
}

/// An attempt ends because a file that was to be cloned is gone, before it handed in
/// what was written to another one meanwhile.
#[test]
fn what_is_written_once_does_not_fail_two_attempts() {
    let answer = || {
        let volume = Volume::mounted(Metadata::Redis, 1)?;
        let world = World::at(volume.host(0));
        let replaced = world.source().join("a");
        fs_err::write(&replaced, "old").expect("a file");
        let mut writer = Writer::open(&world.write(b'O'), Way::Written)?;
        let once = Once::at(CapturePhase::Clone, || {
            fs_err::remove_file(&replaced).expect("removed");
            fs_err::write(&replaced, "new").expect("another file");
            writer.overwrite(b'N');
        });
        let chosen = ["a", FILE].map(|name| TreePath::new(name.into()).expect("a path"));
        let options = Options { only: ChosenPaths::new(chosen), ..World::options() };
        let captured = world.try_capture("1", None, &options, &once);
        Some(captured.map(|captured| (captured.content.quiescence.attempts, world.kept("1"))))
    };
    let Some(captured) = answer() else { return };
    assert_eq!(captured.expect("a second attempt is quiet"), (2, 'N'));
    let rule = CaptureRule::HandedInBetween;
    let refused = without(rule, answer).expect("as before").expect_err("rule is not needed");
    assert_eq!(refused.code(), Code::ConsistencyUnavailable, "{refused}");
}

#[test]
fn change_times_are_believed_within_their_boot() {
    needed(CaptureRule::WithinTheBoot, || {
        let small = SmallFs::on_loop(Kind::Ext4)?;
        let world = World::at(small.path());
        let path = world.write(b'O');
        let first = world.capture("1", None);
        let mut writer = Writer::open(&path, Way::Synced)?;
        // Not in the moment in which the journal is committed, as it may be once.
        for byte in b"NMLK" {
            let time = path.metadata().expect("the file").ctime_nsec();
            writer.overwrite(*byte);
            let cut = small.after_a_power_cut();
            let after = World { root: cut.path().to_owned(), boot: "two" };
            if after.source().join(FILE).metadata().expect("the file").ctime_nsec() == time {
                after.capture("2", Some(("1", &first)));
                return Some((char::from(*byte), after.kept("2")));
            }
        }
        panic!("no time was lost in four power cuts");
    });
}

#[test]
fn change_times_of_files_in_memory_are_never_believed() {
    needed(CaptureRule::NeverInMemory, || {
        let small = SmallFs::tmpfs(16 << 20)?;
        let world = World::at(small.path());
        let mut writer = Writer::open(&world.write(b'0'), Way::Mapped)?;
        writer.overwrite(b'A');
        let first = world.capture("1", None);
        writer.overwrite(b'B');
        world.capture("2", Some(("1", &first)));
        Some(('B', world.kept("2")))
    });
}

/// Old files are removed if a snapshot has them: whether it has is read.
#[test]
fn what_is_removed_is_compared_by_its_content() {
    let lost = || {
        let small = SmallFs::tmpfs(64 << 20)?;
        let world = live::World::below(small.path());
        world.write("file", &"0".repeat(8192));
        let mut writer = Writer::open(&world.file("file"), Way::Mapped)?;
        writer.overwrite(b'A');
        let ready = world.snapshot(&mut world.lease());
        writer.overwrite(b'B');
        let tree = jvs_repo::layout::payload(&main());
        let strays = world.store.strays(&tree, None, &[ready]).expect("compared");
        Some(strays.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let Some(strays) = lost() else { return };
    assert_eq!(strays, ["file"], "only there");
    let rule = CaptureRule::RemovedByContent;
    assert_eq!(without(rule, lost), Some(Vec::new()), "{rule:?} is not needed");
}

/// Somebody has changed a file of a snapshot, and set its time back.
#[test]
fn a_clone_is_believed_only_if_it_has_the_change_time_of_its_original() {
    let passes_for_the_same = || {
        let volume = Volume::mounted(Metadata::Redis, 1)?;
        let world = World::at(volume.host(0));
        world.write(b'A');
        let first = world.capture("1", None);
        let path = world.root.join("1/payload").join(FILE);
        let time = fs_err::metadata(&path).and_then(|it| it.modified()).expect("a time");
        fs_err::write(&path, [b'B'; SIZE]).expect("as long as before");
        let file = fs_err::File::options().write(true).open(&path).expect("open");
        file.set_modified(time).expect("the time of before");
        drop(file);
        let manifest_hash = first.content.manifest_hash;
        let of = Parent { directory: world.root.join("1"), manifest_hash, boot_id: None };
        let options = Options { published: true, of: Some(of), ..World::options() };
        let again = world.root.join("again");
        fs_err::create_dir(&again).expect("a staging directory");
        let source = Source::open(&world.root.join("1/payload")).expect("a source");
        let again = capture(&source, &again, None, &options, &SystemClock, &Silent);
        let again = again.expect("captured").content.payload_root_hash;
        Some(again == first.content.payload_root_hash)
    };
    let Some(passes) = passes_for_the_same() else { return };
    assert!(!passes, "a change that was not seen");
    let rule = CaptureRule::ClonesHaveTheirTimes;
    assert_eq!(without(rule, passes_for_the_same), Some(true), "{rule:?} is not needed");
}

/// A directory that the snapshot has not, and in which something is ignored.
#[test]
fn what_is_ignored_stays_in_a_directory_that_a_restore_removes() {
    let restored = || {
        let world = live::World::new();
        world.write(".jvsignore", "target\n");
        let first = world.snapshot(&mut world.lease());
        world.write("new/file", "x");
        world.write("new/target/built", "x");
        let (restore, mut lease) = (world.restore(), world.lease());
        let second = world.snapshot(&mut lease);
        let plan = restore.plan(&first, &main(), &world.file(""), &Silent).expect("compared");
        let (kept, reason) = (Some(&second), Some("a test"));
        let wish = RestoreRequest { source: &first, kept, chosen: None, reason };
        let (locks, (plan, _)) = (world.locks("s"), plan.expect("path by path"));
        restore.in_parts(&locks, &mut lease, &wish, &plan, &Silent).expect("restored");
        ["new/file", "new/target/built"].map(|path| world.file(path).exists())
    };
    assert_eq!(restored(), [false, true], "what is not ignored is gone");
    let rule = CaptureRule::IgnoredStays;
    assert_eq!(without(rule, restored), [false, false], "{rule:?} is not needed");
}

fn open_to_all(path: &Path) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
}

/// Somebody copies a set-user program of root's. Only a thread is somebody: the
/// switch is a thread's too.
#[test]
fn set_user_bits_are_kept_for_their_owner_only() {
    const SOMEBODY: u32 = 12_345;
    if !granted(&[Capability::Root]) {
        return;
    }
    let acts_as = || {
        let dir = tempfile::tempdir().expect("a directory");
        let world = World::at(dir.path());
        let program = world.source().join("program");
        fs_err::write(&program, "of root's").expect("a file");
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("a mode");
        for path in [world.root.clone(), world.source()] {
            open_to_all(&path);
        }
        let (uid, gid) = (rustix::fs::Uid::from_raw(SOMEBODY), rustix::fs::Gid::from_raw(SOMEBODY));
        set_thread_res_gid(gid, gid, gid).expect("somebody's group");
        set_thread_res_uid(uid, uid, uid).expect("somebody");
        world.capture("1", None);
        let copy = world.root.join("1/payload/program").metadata().expect("a copy");
        (copy.mode() & 0o6000 != 0).then_some(copy.uid())
    };
    let on_a_thread = |off: Option<CaptureRule>| {
        std::thread::scope(|scope| {
            let work = || off.map_or_else(acts_as, |rule| without(rule, acts_as));
            scope.spawn(work).join().expect("the thread")
        })
    };
    assert_eq!(on_a_thread(None), None);
    let rule = CaptureRule::SetIdForItsOwner;
    assert_eq!(on_a_thread(Some(rule)), Some(SOMEBODY), "{rule:?} is not needed");
}

/// Every rule that can be switched off is switched off by a test above.
#[test]
fn no_rule_of_capturing_is_left_out() {
    let tests = include_str!("capturing.rs");
    for rule in CaptureRule::ALL {
        assert!(tests.contains(&format!("Rule::{rule:?}")), "{rule:?} is never switched off");
    }
}
