//! Each rule of what a capture may believe, switched off: real files on real
//! filesystems then show what the rule prevents.
//!
//! A switch is off on one thread, so these captures have one.
#![expect(clippy::disallowed_methods, reason = "makes and breaks the trees that are captured")]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jvs_kit::live::capability::{Capability, granted};
use jvs_repo::clock::SystemClock;
use jvs_snapshot::mutation::capturing::{Rule, without};
use jvs_snapshot::progress::Silent;
use jvs_snapshot::stage::{CaptureError, Captured, Options, capture};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};
use tempfile::TempDir;

/// A tree `source` and, beside it, captures of it.
struct World {
    root: PathBuf,
    _dir: Option<TempDir>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let world = World { root: dir.path().to_owned(), _dir: Some(dir) };
        std::fs::create_dir(world.source()).expect("the source");
        world
    }

    fn source(&self) -> PathBuf {
        self.root.join("source")
    }

    fn options() -> Options {
        Options { threads: Some(1), ..Options::default() }
    }

    fn capture(&self, name: &str) -> Result<Captured, CaptureError> {
        let staging = self.root.join(name);
        std::fs::create_dir(&staging).expect("a staging directory");
        capture(&self.source(), &staging, None, &Self::options(), &SystemClock, &Silent)
    }

    fn payload(&self, name: &str) -> PathBuf {
        self.root.join(name).join("payload")
    }
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
        let world = World::new();
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
        world.capture("1").expect("captured");
        let copy = world.payload("1").join("program").metadata().expect("a copy");
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
