//! Each rule of what a capture may believe, switched off: real files on real
//! filesystems then show what the rule prevents.
//!
//! A switch is off on one thread, so these captures have one.
#![expect(clippy::disallowed_methods, reason = "makes and breaks the trees that are captured")]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_kit::live::writer::{Way, Writer};
use jvs_repo::clock::{BootId, Clock, Discipline, Reading, SystemClock};
use jvs_snapshot::mutation::capturing::{Rule, without};
use jvs_snapshot::progress::{Phase, Progress, Silent};
use jvs_snapshot::stage::{Captured, Options, Parent, capture};
use jvs_snapshot::trees::Trees as _;
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

#[path = "../../../jvs-snapshot/tests/whole/world.rs"]
#[allow(dead_code, reason = "one test needs a repository")]
mod whole;

const FILE: &str = "file";

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

/// Overwrites the file with B when the proof begins, once.
struct Late(Mutex<Option<Writer>>);

impl Progress for Late {
    fn phase(&self, phase: Phase) {
        let mut writer = self.0.lock().expect("not poisoned");
        if let Some(mut writer) = writer.take_if(|_| phase == Phase::Prove) {
            writer.overwrite(b'B');
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
        std::fs::create_dir(world.source()).expect("the source");
        world
    }

    fn source(&self) -> PathBuf {
        self.root.join("source")
    }

    fn options() -> Options {
        Options { threads: Some(1), ..Options::default() }
    }

    fn capture(&self, name: &str, parent: Option<(&str, &Captured)>) -> Captured {
        self.capture_while(name, parent, &Silent)
    }

    fn capture_while(
        &self,
        name: &str,
        parent: Option<(&str, &Captured)>,
        progress: &dyn Progress,
    ) -> Captured {
        let staging = self.root.join(name);
        std::fs::create_dir(&staging).expect("a staging directory");
        let parent = parent.map(|(name, captured)| Parent {
            directory: self.root.join(name),
            manifest_hash: captured.manifest_hash,
            boot_id: Some(captured.boot_id.clone()),
        });
        let (options, clock) = (Self::options(), Boot(self.boot));
        capture(&self.source(), &staging, parent.as_ref(), &options, &clock, progress)
            .expect("captured")
    }

    /// The first byte of the file of a capture.
    fn kept(&self, name: &str) -> char {
        let path = self.root.join(name).join("payload").join(FILE);
        std::fs::read(path).expect("a copy")[0].into()
    }

    fn write(&self, byte: u8) -> PathBuf {
        let path = self.source().join(FILE);
        std::fs::write(&path, [byte; 8192]).expect("the file");
        path
    }
}

/// With the rule the second capture has what the file has, without it what the file
/// had. `captures` answers with both.
#[track_caller]
fn needed(rule: Rule, captures: impl Fn() -> Option<(char, char)>) {
    let Some((now, kept)) = captures() else { return };
    assert_eq!(now, kept, "with {rule:?}");
    let Some((now, kept)) = without(rule, captures) else { return };
    assert_ne!(now, kept, "{rule:?} is not needed");
}

/// A store after the file was copied, into a page that was stored into before.
#[test]
fn stores_into_mapped_files_are_written_out_first() {
    needed(Rule::WrittenOutFirst, || {
        let small = SmallFs::on_loop(Kind::Ext4)?;
        let world = World::at(small.path());
        let mut writer = Writer::open(&world.write(b'0'), Way::Mapped)?;
        writer.overwrite(b'A');
        let first = world.capture_while("1", None, &Late(Mutex::new(Some(writer))));
        world.capture("2", Some(("1", &first)));
        Some(('B', world.kept("2")))
    });
}

#[test]
fn what_a_mount_holds_is_handed_in_first() {
    needed(Rule::HandedInFirst, || {
        let volume = Volume::mounted(Metadata::Redis, 1)?;
        let world = World::at(volume.host(0));
        let path = world.write(b'O');
        let first = world.capture("1", None);
        let mut writer = Writer::open(&path, Way::Written)?;
        writer.overwrite(b'N');
        world.capture("2", Some(("1", &first)));
        Some(('N', world.kept("2")))
    });
}

#[test]
fn change_times_are_believed_within_their_boot() {
    needed(Rule::WithinTheBoot, || {
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
    needed(Rule::NeverInMemory, || {
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
        let world = whole::World::below(small.path());
        world.write("file", &"0".repeat(8192));
        let mut writer = Writer::open(&world.file("file"), Way::Mapped)?;
        writer.overwrite(b'A');
        let ready = world.snapshot(&mut world.lease());
        writer.overwrite(b'B');
        let tree = jvs_repo::layout::payload(&whole::main());
        let strays = world.store.strays(&tree, None, &[ready]).expect("compared");
        Some(strays.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let Some(strays) = lost() else { return };
    assert_eq!(strays, ["file"], "only there");
    let rule = Rule::RemovedByContent;
    assert_eq!(without(rule, lost), Some(Vec::new()), "{rule:?} is not needed");
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
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
        std::fs::write(&program, "of root's").expect("a file");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755))
            .expect("a mode");
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
    let on_a_thread = |off: Option<Rule>| {
        std::thread::scope(|scope| {
            let work = || off.map_or_else(acts_as, |rule| without(rule, acts_as));
            scope.spawn(work).join().expect("the thread")
        })
    };
    assert_eq!(on_a_thread(None), None);
    let rule = Rule::SetIdForItsOwner;
    assert_eq!(on_a_thread(Some(rule)), Some(SOMEBODY), "{rule:?} is not needed");
}

/// Every rule that can be switched off is switched off by a test above.
#[test]
fn no_rule_of_capturing_is_left_out() {
    let tests = include_str!("capturing.rs");
    for rule in Rule::ALL {
        assert!(tests.contains(&format!("Rule::{rule:?}")), "{rule:?} is never switched off");
    }
}
