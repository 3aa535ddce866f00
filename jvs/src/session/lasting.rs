//! Where the processes of a session agree on their holds: a private directory that
//! outlives the boot, for what a session remembers does; and on a filesystem of this
//! host, where a rename that was answered has happened and one that failed has not.

use std::io;
use std::path::{Path, PathBuf};

use jvs_repo::probe::Filesystem;
use jvs_repo::store::PosixStore;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::Unusable;
use super::home::{self, is_mine, nearest};
use super::secret::{self, DIR, Keeps};
use crate::context::Env;
use crate::fail::Failure;

const HOLDS: &str = "holds";
/// Beside the place of secrets: a process that comes as another user with the same home has
/// secrets there.
const STATE: &str = "jvs-holds";

/// Filesystems that several hosts use at once, as `statfs` tells them.
const REMOTE: &[(u64, &str)] = &[
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb2"),
    (0x00C3_6400, "ceph"),
    (0x0BD0_0BD0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x5346_414F, "afs"),
    // That of the kernel itself.
    (0x6B41_4653, "afs"),
];
const FUSE: u64 = 0x6573_5546;
/// What is behind these is another directory of this host.
const LOCAL_FUSE: &[&str] = &["fuse", "fuseblk", "fuse.fuse-overlayfs", "fuse.gocryptfs"];

/// The directory as a filesystem of its own, and which one it is. What is in it only
/// this user can see.
pub(super) fn store(env: Env<'_>) -> Result<(PosixStore, String), Failure> {
    let place = place(env)?;
    if let Some(kind) = remote(&place) {
        return Err(Unusable::new(
            format!(
                "the processes of a session cannot agree on a lock in {}: other hosts use that \
                 filesystem ({kind}), too",
                place.display()
            ),
            "set XDG_STATE_HOME or XDG_RUNTIME_DIR to a directory on a disk of this host",
        )
        .into());
    }
    if secret::open_private_dir(&place, Keeps::Memory)?.is_none() {
        secret::make_private_dir(place.parent().unwrap_or(&place), &place, Keeps::Memory)?;
    }
    let holds = place.join(HOLDS);
    if secret::open_private_dir(&holds, Keeps::Memory)?.is_none() {
        match rustix::fs::mkdir(&holds, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(Keeps::Memory.not_usable(&holds, error.into())),
        }
    }
    let store =
        PosixStore::open(&place).map_err(|error| Keeps::Memory.not_usable(&place, error))?;
    let which = which(&place).map_err(|error| Keeps::Memory.not_usable(&place, error))?;
    Ok((store, which))
}

/// Which directory it is, if there is one yet: the processes of a session that look for
/// their holds in two do not know of each other, and must not pass for one holder.
pub(super) fn identity(env: Env<'_>) -> Option<String> {
    which(&place(env).ok()?).ok()
}

fn which(place: &Path) -> io::Result<String> {
    let stat = rustix::fs::stat(place)?;
    Ok(format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// The directory, if there is one that can be trusted. Makes nothing.
pub(super) fn peek(env: Env<'_>) -> Option<PosixStore> {
    let place = place(env).ok()?;
    secret::open_private_dir(&place, Keeps::Memory).ok()??;
    PosixStore::open(&place).ok()
}

/// The user's state if it can be kept there, else where the secret is. Judged by what
/// does not change from one command to the next: all must look in one place.
fn place(env: Env<'_>) -> Result<PathBuf, Failure> {
    let state = home::state(env).map(|state| state.join(STATE));
    match state.filter(|it| is_mine(it) && remote(it).is_none()) {
        Some(place) => Ok(place),
        None => Ok(secret::base(env)?.join(DIR)),
    }
}

/// The kind of filesystem that `path` is or would be on, if other hosts use it, too.
fn remote(path: &Path) -> Option<String> {
    let (path, _) = nearest(path)?;
    let magic = u64::from_ne_bytes(rustix::fs::statfs(path).ok()?.f_type.to_ne_bytes());
    if magic == FUSE {
        let kind = Filesystem::at(path).ok()?.kind;
        return Some(kind).filter(|kind| !LOCAL_FUSE.contains(&kind.as_str()));
    }
    remote_kind(magic).map(str::to_owned)
}

fn remote_kind(magic: u64) -> Option<&'static str> {
    REMOTE.iter().find(|(known, _)| *known == magic).map(|(_, kind)| *kind)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make the user's directories")]
mod tests {
    use super::*;

    /// As the kernel's `magic.h`, or the filesystem's own sources, spell them.
    #[test]
    fn filesystems_of_many_hosts_are_told_from_those_of_one() {
        let of_many: [(&[u8; 4], &str); 5] = [
            (b"\xFFSMB", "cifs"),
            (b"\xFESMB", "smb2"),
            (b"GPFS", "gpfs"),
            (b"SFAO", "afs"),
            (b"kAFS", "afs"),
        ];
        for (magic, kind) in of_many {
            assert_eq!(remote_kind(u32::from_be_bytes(*magic).into()), Some(kind));
        }
        for (magic, kind) in
            [(0x6969, "nfs"), (0x517B, "smb"), (12_805_120, "ceph"), (198_183_888, "lustre")]
        {
            assert_eq!(remote_kind(magic), Some(kind));
        }
        let ext4_xfs_btrfs_tmpfs_overlay_zfs =
            [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630, 0x2FC1_2FC1];
        for magic in ext4_xfs_btrfs_tmpfs_overlay_zfs {
            assert_eq!(remote_kind(magic), None, "{magic:#x} is of one host");
        }
        assert_eq!(remote_kind(FUSE), None, "that is told by what is mounted");
        let kinds = REMOTE.iter().map(|(magic, _)| magic);
        assert_eq!(kinds.collect::<std::collections::BTreeSet<_>>().len(), REMOTE.len());
    }

    #[test]
    fn memory_lies_where_it_lasts() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (home, run) = (dir.path().join("home"), dir.path().join("run"));
        for path in [&home, &run] {
            std::fs::create_dir(path).expect("made");
        }
        let place = |variables: &[(&str, &Path)]| {
            let get = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| value.as_os_str().to_owned())
            };
            super::place(Env::new(&get)).ok()
        };
        let (in_home, in_run) = (("HOME", home.as_path()), ("XDG_RUNTIME_DIR", run.as_path()));
        assert_eq!(place(&[in_home, in_run]), Some(home.join(".local/state/jvs-holds")));
        assert_eq!(place(&[in_run]), Some(run.join("jvs")), "there is no home");
        let file = dir.path().join("file");
        std::fs::write(&file, "").expect("written");
        assert_eq!(place(&[("HOME", &file), in_run]), Some(run.join("jvs")), "no directory");
        assert_eq!(place(&[]), None);
        if rustix::process::geteuid().is_root() {
            let mine = home.join(".local/state/jvs-holds");
            std::fs::create_dir_all(&mine).expect("made");
            std::os::unix::fs::chown(&mine, Some(1), None).expect("root may give away");
            assert_eq!(place(&[in_home, in_run]), Some(run.join("jvs")), "somebody else's");
        }
    }
}
