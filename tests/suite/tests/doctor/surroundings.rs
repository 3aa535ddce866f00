//! What the host and the mount are like: played, because no machine has all of
//! these faults.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use jvs_doctor::{Check, Depth, Patient, Surroundings, examine};
use jvs_lock::Seams;
use jvs_repo::clock::{BootId, Clock, Discipline, Reading, SystemClock};
use jvs_repo::duration::Period;
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::layout;
use jvs_repo::next::Next;
use jvs_repo::probe::{Filesystem, JuiceFsMount};
use jvs_repo::proc;
use jvs_repo::store::Space;

use crate::clinic::{Clinic, compare, readable, side};
use crate::reference::assert_shown;

/// The system's clock, with another opinion of itself.
struct Steered(Discipline);

impl Clock for Steered {
    fn now(&self) -> Reading {
        SystemClock.now()
    }

    fn boot_id(&self) -> BootId {
        SystemClock.boot_id()
    }

    fn discipline(&self) -> Discipline {
        self.0
    }

    fn sleep_ms(&self, ms: u64) {
        SystemClock.sleep_ms(ms);
    }
}

struct World {
    discipline: Discipline,
    filesystem: Filesystem,
    space: Space,
}

fn juicefs(version: &str, writeback: bool, readdir_cache: bool, cache_s: u32) -> Filesystem {
    let kept = Period::seconds(cache_s);
    Filesystem {
        kind: "fuse.juicefs".into(),
        mount_point: PathBuf::from("/mnt/jfs"),
        juicefs: Some(JuiceFsMount::Mounted {
            version: version.into(),
            writeback,
            readdir_cache,
            caches: [
                ("attr-cache", Period::seconds(1)),
                ("entry-cache", kept),
                ("dir-entry-cache", Period::seconds(1)),
                ("negative-entry-cache", Period::seconds(0)),
            ],
        }),
    }
}

impl World {
    /// A host and a mount with nothing to say about.
    fn good() -> Self {
        World {
            discipline: Discipline::Synchronised { max_error_ms: 5 },
            filesystem: juicefs("1.4.2+2025-01-01", false, false, 1),
            space: Space {
                read_only: false,
                bytes: 1 << 40,
                bytes_free: 1 << 39,
                inodes: 1000,
                inodes_free: 900,
            },
        }
    }
}

fn told(clinic: &Clinic, world: World) -> String {
    let store = clinic.store();
    let clock = Steered(world.discipline);
    let patient = Patient {
        seams: Seams { store: &store, clock: &clock, entropy: &SystemEntropy },
        payloads: &store,
        surroundings: Surroundings {
            filesystem: world.filesystem,
            space: Some(world.space),
            pid_namespace: proc::pid_namespace(),
            lookup: proc::process_stat,
        },
        chosen_head: None,
    };
    let mut text = String::new();
    for (command, depth) in [("jvs doctor", Depth::Quick), ("jvs doctor --strict", Depth::Full)] {
        let _ = writeln!(text, "$ {command}");
        for finding in examine(&patient, depth).findings {
            let (severity, check) = (finding.severity.as_str(), finding.check);
            let _ = writeln!(text, "{severity}[{check}] {}: {}", finding.path, finding.message);
            // How the rest is typed is the command's to say.
            let _ = match finding.advice {
                Some(Next::Words(words)) => writeln!(text, "  remedy: {words}"),
                Some(next) => writeln!(text, "  remedy: {next:?}"),
                None => writeln!(text, "  remedy: {:?}", finding.remedy),
            };
        }
    }
    readable(&text)
}

macro_rules! worlds {
    ($(#[test] fn $test:ident shows $check:ident: $world:expr;)*) => {
        /// The checks that are shown here.
        pub(crate) const SHOWN: &[(Check, &str)] = &[$((Check::$check, stringify!($test)),)*];

        $(#[test]
        fn $test() {
            let text = told(&Clinic::new(), $world);
            assert_shown(Check::$check, &text);
            compare(stringify!($test), &text);
        })*
    };
}

worlds! {
    #[test]
    fn clock_unsynchronised shows ClockUnsynchronised:
        World { discipline: Discipline::Unsynchronised, ..World::good() };
    #[test]
    fn clock_inexact shows ClockInexact:
        World { discipline: Discipline::Synchronised { max_error_ms: 1500 }, ..World::good() };
    #[test]
    fn filesystem_untried shows FsUntried:
        World { filesystem: Filesystem::unknown(), ..World::good() };
    #[test]
    fn filesystem_volatile shows FsVolatile: World {
        filesystem: Filesystem { kind: "tmpfs".into(), ..World::good().filesystem },
        ..World::good()
    };
    #[test]
    fn filesystem_options_unknown shows FsOptionsUnknown: World {
        filesystem: Filesystem {
            juicefs: Some(JuiceFsMount::Unreadable),
            ..juicefs("1.4.2", false, false, 1)
        },
        ..World::good()
    };
    #[test]
    fn filesystem_readdir_cache shows FsReaddirCache:
        World { filesystem: juicefs("1.4.2", false, true, 1), ..World::good() };
    #[test]
    fn filesystem_writeback shows FsWriteback:
        World { filesystem: juicefs("1.4.2", true, false, 1), ..World::good() };
    #[test]
    fn filesystem_cache shows FsCache:
        World { filesystem: juicefs("1.4.2", false, false, 60), ..World::good() };
    #[test]
    fn filesystem_version shows FsVersion:
        World { filesystem: juicefs("1.3.0", false, false, 1), ..World::good() };
    #[test]
    fn filesystem_read_only shows FsReadOnly:
        World { space: Space { read_only: true, ..World::good().space }, ..World::good() };
    #[test]
    fn filesystem_full shows FsFull:
        World { space: Space { bytes_free: 1 << 20, ..World::good().space }, ..World::good() };
}

#[test]
fn filesystem_trash() {
    let clinic = Clinic::new();
    fs_err::write(clinic.root.join("main/three"), "three").expect("a file");
    clinic.jvs(&["snapshot", "three"]).ok();
    clinic.jvs(&["tag", "--delete", "v1"]).ok();
    clinic.jvs(&["gc", "--keep-last", "1", "--keep-within", "0s"]).ok();
    let text = told(&clinic, World::good());
    assert_shown(Check::FsTrash, &text);
    compare("filesystem_trash", &text);
}

#[test]
fn nothing_is_said_of_a_good_host_and_a_good_mount() {
    let text = told(&Clinic::new(), World::good());
    assert!(!text.contains('['), "{text}");
}

#[test]
fn owner() {
    // Only root can give a directory away.
    if !jvs_kit::live::capability::granted(&[jvs_kit::live::capability::Capability::Root]) {
        return;
    }
    let clinic = Clinic::new();
    let tags = clinic.at(&layout::tags());
    let uid = rustix::fs::Uid::from_raw(1234);
    rustix::fs::chown(&tags, Some(uid), None).expect("chown");
    let text = told(&clinic, World::good());
    assert_shown(Check::Owner, &text);
    compare("owner", &text);
}

#[test]
fn what_root_mends_belongs_to_whom_the_repository_does() {
    use std::os::unix::fs::MetadataExt as _;
    if !jvs_kit::live::capability::granted(&[jvs_kit::live::capability::Capability::Root]) {
        return;
    }
    let clinic = Clinic::new();
    let given = std::process::Command::new("chown").args(["-R", "1234"]).arg(&clinic.root).status();
    assert!(given.expect("chown runs").success());
    clinic.remove(&layout::staging());
    clinic.assert_a_repair_does_what_its_dry_run_said();
    clinic.jvs(&["doctor", "--repair"]).ok();
    let made = fs_err::metadata(clinic.at(&layout::staging())).expect("made");
    assert_eq!(made.uid(), 1234);
}

/// A log that is not a file, a queue that another user may not list, and manifests that
/// they may not read.
#[test]
fn unreadable() {
    use jvs_kit::live::capability::{Capability, granted};
    if !granted(&[Capability::Root, Capability::Program("setpriv")]) {
        return;
    }
    let clinic = Clinic::new();
    let log = clinic.logs().remove(0);
    clinic.remove(&log);
    clinic.make_dir(&log);
    let mode = |path: &Path, mode| {
        fs_err::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
    };
    mode(clinic.root.parent().expect("a parent"), 0o755);
    clinic.make_dir(&layout::queue(&side()));
    mode(&clinic.at(&layout::queue(&side())), 0o700);
    for id in clinic.snapshots() {
        mode(&clinic.at(&layout::manifest(&layout::snapshot(id))), 0o600);
    }
    let mut text = String::new();
    for args in [&["doctor"][..], &["doctor", "--strict"]] {
        let as_stranger = ["setpriv", "--reuid", "4711", "--regid", "4711", "--clear-groups"];
        let run = clinic.home.jvs(args).cwd(clinic.root.join("main")).under(as_stranger);
        let _ = writeln!(text, "$ jvs {}", args.join(" "));
        text += &clinic.readable(run.run().stdout());
    }
    assert_shown(Check::Unreadable, &text);
    compare("unreadable", &text);
}
