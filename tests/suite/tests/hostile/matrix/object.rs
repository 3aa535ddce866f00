//! What is put in the place of a file or directory.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fs_err::os::unix::fs::{lchown, symlink};
use jvs_kit::live::process::run;

use super::mould::Victim;

pub(super) struct Object {
    pub(super) name: &'static str,
    /// Is it only that somebody may not read or write it?
    pub(super) is_a_refusal: bool,
    how: How,
}

/// Makes it at a path, where nothing is, or changes what is there.
enum How {
    Instead(fn(&Path, &Victim)),
    Changed(fn(&Path, u32)),
    Protected(&'static str),
}

const fn instead(name: &'static str, make: fn(&Path, &Victim)) -> Object {
    Object { name, is_a_refusal: false, how: How::Instead(make) }
}

const fn changed(name: &'static str, is_a_refusal: bool, change: fn(&Path, u32)) -> Object {
    Object { name, is_a_refusal, how: How::Changed(change) }
}

/// How many entries a huge directory has; a hundred thousand are elsewhere.
const MANY: usize = 3_000;

pub(super) const OBJECTS: &[Object] = &[
    instead("nothing", |_, _| ()),
    instead("directory", |at, _| fs_err::create_dir(at).expect("made")),
    instead("directory with a file", |at, _| {
        fs_err::create_dir(at).expect("made");
        fs_err::write(at.join("x"), "x").expect("written");
    }),
    instead("huge directory", |at, _| {
        fs_err::create_dir(at).expect("made");
        for n in 0..MANY {
            drop(fs_err::File::create(at.join(format!("junk-{n}"))).expect("made"));
        }
    }),
    instead("FIFO", |at, _| program("mkfifo", &["-m", "666"], at, &[""; 0])),
    instead("socket", |at, _| {
        // Bound nearer to the root: an address may not be as long as a path.
        let here = tempfile::tempdir().expect("a directory");
        let socket = here.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&socket).expect("bound"));
        fs_err::rename(socket, at).expect("moved");
    }),
    instead("device of zeroes", |at, _| program("mknod", &["-m", "666"], at, &["c", "1", "5"])),
    instead("device that is full", |at, _| program("mknod", &["-m", "666"], at, &["c", "1", "7"])),
    instead("symlink to a file", |at, victim| symlink(&victim.file, at).expect("made")),
    instead("symlink to a directory", |at, victim| symlink(&victim.dir, at).expect("made")),
    instead("symlink to nothing", |at, victim| {
        symlink(victim.dir.join("absent"), at).expect("made");
    }),
    instead("symlink to itself", |at, _| symlink(at, at).expect("made")),
    instead("symlink to the system", |at, _| symlink("/etc/passwd", at).expect("made")),
    instead("hard link", |at, victim| fs_err::hard_link(&victim.file, at).expect("made")),
    instead("empty file", |at, _| fs_err::write(at, "").expect("written")),
    instead("50 GB of nothing", |at, _| {
        fs_err::File::create(at).expect("made").set_len(50 << 30).expect("sparse");
    }),
    instead("random bytes", |at, _| {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        fs_err::write(at, bytes.take(4096).collect::<Vec<u8>>()).expect("written");
    }),
    instead("NUL bytes", |at, _| fs_err::write(at, [0; 4096]).expect("written")),
    instead("deep JSON", |at, _| fs_err::write(at, "[".repeat(200_000)).expect("written")),
    instead("deep objects", |at, _| fs_err::write(at, "{\"a\":".repeat(800)).expect("written")),
    changed("half of it", false, |at, _| {
        let half = at.metadata().map_or(0, |it| it.len() / 2);
        if at.is_file() {
            let file = fs_err::OpenOptions::new().write(true).open(at).expect("opened");
            file.set_len(half).expect("cut");
        }
    }),
    changed("mode 000", true, |at, _| chmod(at, 0)),
    changed("mode 4777", false, |at, _| chmod(at, 0o4777)),
    changed("another's", true, |at, owner| {
        lchown(at, Some(owner), Some(owner)).expect("given");
        chmod(at, 0o700);
    }),
    Object { name: "immutable", is_a_refusal: true, how: How::Protected("+i") },
    Object { name: "append-only", is_a_refusal: true, how: How::Protected("+a") },
];

fn chmod(path: &Path, mode: u32) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
}

fn program(name: &str, options: &[&str], at: &Path, words: &[impl AsRef<std::ffi::OsStr>]) {
    let mut command = Command::new(name);
    command.args(options).arg(at).args(words);
    run(command, Duration::from_secs(60)).ok();
}

impl Object {
    /// Puts it there; false if that cannot be.
    pub(super) fn put(&self, at: &Path, victim: &Victim, attacker: u32) -> bool {
        match self.how {
            How::Instead(make) => {
                if let Ok(there) = at.symlink_metadata() {
                    match there.is_dir() {
                        true => fs_err::remove_dir_all(at).expect("removed"),
                        false => fs_err::remove_file(at).expect("removed"),
                    }
                }
                make(at, victim);
                // Anybody may read and write it.
                let made = at.symlink_metadata().ok();
                if let Some(made) = made.filter(|it| !it.is_symlink() && self.name != "hard link") {
                    chmod(at, if made.is_dir() { 0o2777 } else { 0o666 });
                    lchown(at, Some(attacker), None).expect("given");
                }
            }
            How::Changed(change) => {
                if at.symlink_metadata().is_err() {
                    return false;
                }
                change(at, attacker);
            }
            How::Protected(how) => {
                if at.symlink_metadata().is_err() {
                    return false;
                }
                program("chattr", &[how], at, &[""; 0]);
            }
        }
        true
    }

    /// Does it lead to a directory that whoever runs the commands may write?
    pub(super) fn is_a_directory_elsewhere(&self) -> bool {
        self.name == "symlink to a directory"
    }

    /// Takes away what keeps even root from removing it.
    pub(super) fn take_away(&self, at: &Path) {
        if let How::Protected(_) = self.how {
            program("chattr", &["-R", "-ia"], at, &[""; 0]);
        }
    }
}
