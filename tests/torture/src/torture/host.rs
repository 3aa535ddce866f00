//! A host of its own on this machine: another name, another boot, its own users'
//! secrets, its own wall clock.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::process::{DEADLINE, run};

use super::ground::Ground;

/// The group that shares the repository.
pub(crate) const TEAM: u32 = 4700;
/// The member who is not root.
const MEMBER: u32 = 4711;
/// How the nemesis and the survey find the processes that belong to a torture.
pub(crate) const TAG: &str = "JVS_TORTURE";

/// Sees itself as another host, and then becomes what it is told.
const BE: &str = r#"
    echo "$1" >/proc/sys/kernel/hostname &&
    mount --bind "$2" /proc/sys/kernel/random/boot_id || exit 99
    umask 002; shift 2; exec "$@"
"#;

/// A host.
pub(crate) struct Host {
    number: usize,
    root: PathBuf,
    boot_id: PathBuf,
    /// What its wall clock says, as faketime reads it; also by processes that run.
    clock: PathBuf,
    tag: String,
    /// Root's home, and a member's.
    homes: [Home; 2],
}

impl Host {
    pub(crate) fn new(number: usize, ground: &Ground, dir: &Path) -> Self {
        open(dir);
        let boot_id = dir.join(format!("boot-{number}"));
        let text = format!("0b57ac1e-0000-4000-8000-{number:012}\n");
        fs_err::write(&boot_id, text).expect("a boot id");
        let clock = dir.join(format!("clock-{number}"));
        fs_err::write(&clock, "+0").expect("a clock");
        let homes = [Home::new(), Home::new()];
        let mut give = Command::new("chown");
        give.arg("-R").arg(format!("{MEMBER}:{MEMBER}"));
        give.arg(homes[1].home_dir().parent().expect("a home lies somewhere"));
        run(give, DEADLINE).ok();
        let root = ground.place(number).join("repository");
        let tag = dir.file_name().expect("a name").to_string_lossy().into_owned();
        Self { number, root, boot_id, clock, tag, homes }
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The repository, as this host sees it.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// What its processes have in their environment.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// `jvs` on this host, by root or by the other member of the team.
    pub(crate) fn jvs(&self, is_root: bool, session: &str, words: &[&str]) -> Jvs {
        let name = format!("host-{}", self.number);
        let home = &self.homes[usize::from(!is_root)];
        // Boot time is true: nobody can set it.
        let mut jvs = home
            .jvs(words)
            .session(session)
            .cwd("/")
            .env(TAG, &self.tag)
            .under(["unshare", "--mount", "--uts", "sh", "-c", BE, "sh", &name])
            .under([&self.boot_id]);
        if !is_root {
            let (uid, team) = (MEMBER.to_string(), TEAM.to_string());
            jvs = jvs.under(["setpriv", "--reuid", &uid, "--regid", &uid, "--groups", &team]);
        }
        if self.number > 0 {
            let file = format!("FAKETIME_TIMESTAMP_FILE={}", self.clock.display());
            let library = "LD_PRELOAD=/usr/$LIB/faketime/libfaketime.so.1";
            let rest = ["FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_CACHE_DURATION=1"];
            jvs = jvs.under(["env", library, &file]).under(rest);
        }
        jvs
    }

    /// Sets the wall clock so far ahead or back, also for what runs already.
    pub(crate) fn set_clock(&self, ms: i64) {
        let (sign, ms) = (if ms < 0 { '-' } else { '+' }, ms.unsigned_abs());
        let text = format!("{sign}{}.{:03}", ms / 1000, ms % 1000);
        // A reader never sees half of it.
        let fresh = self.clock.with_extension("new");
        fs_err::write(&fresh, text).expect("a clock");
        fs_err::rename(&fresh, &self.clock).expect("the clock is set");
    }
}

/// Others may walk through a directory.
fn open(dir: &Path) {
    fs_err::set_permissions(dir, Permissions::from_mode(0o711)).expect("opened");
}
