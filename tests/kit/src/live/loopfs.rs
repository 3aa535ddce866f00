//! Small filesystems of one's own: ext4, xfs and btrfs in an image file, a
//! tmpfs that is soon full, a directory seen read-only.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fs_err::File;
use tempfile::TempDir;

use super::capability::{Capability, granted};
use super::mount::MountPoint;
use super::process::run;

const DEADLINE: Duration = Duration::from_secs(60);
const MIB: u64 = 1 << 20;

/// A filesystem on a loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The common case.
    Ext4,
    /// Clones files.
    Xfs,
    /// Clones files, and shows an empty directory for a moment during a rename.
    Btrfs,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    fn maker(self) -> &'static str {
        match self {
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
            Self::Btrfs => "mkfs.btrfs",
        }
    }

    /// The image is sparse; xfs refuses anything below 300 MiB.
    fn image_size(self) -> u64 {
        match self {
            Self::Ext4 => 64 * MIB,
            Self::Xfs => 320 * MIB,
            Self::Btrfs => 128 * MIB,
        }
    }
}

/// A mounted filesystem that goes away on drop, image and all.
#[derive(Debug)]
pub struct SmallFs {
    point: MountPoint,
    _dir: TempDir,
}

impl SmallFs {
    /// A fresh filesystem of this kind, or a skipped test.
    #[track_caller]
    pub fn on_loop(kind: Kind) -> Option<Self> {
        Self::on_loop_of(kind, kind.image_size())
    }

    /// As [`SmallFs::on_loop`], with room for this many bytes.
    #[track_caller]
    pub fn on_loop_of(kind: Kind, bytes: u64) -> Option<Self> {
        let wanted = [Capability::Root, Capability::Loop, Capability::Program(kind.maker())];
        if !granted(&wanted) {
            return None;
        }
        let dir = directory();
        let image = dir.path().join("image");
        File::create(&image).and_then(|file| file.set_len(bytes)).expect("a sparse image file");
        let mut make = admin(kind.maker());
        make.arg("-q").arg(&image);
        run(make, DEADLINE).ok();
        Some(Self::mounted(dir, |point| {
            let mut mount = admin("mount");
            mount.args(["-o", "loop"]).arg(&image).arg(point);
            mount
        }))
    }

    /// A tmpfs that holds this many bytes, or a skipped test.
    #[track_caller]
    pub fn tmpfs(bytes: u64) -> Option<Self> {
        granted(&[Capability::Root]).then(|| {
            Self::mounted(directory(), |point| {
                let mut mount = admin("mount");
                mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(point);
                mount
            })
        })
    }

    /// The same files as in `source`, but nothing can be written, or a skipped
    /// test.
    #[track_caller]
    pub fn read_only_view(source: &Path) -> Option<Self> {
        granted(&[Capability::Root]).then(|| {
            Self::mounted(directory(), |point| {
                let mut mount = admin("mount");
                mount.args(["-o", "bind,ro"]).arg(source).arg(point);
                mount
            })
        })
    }

    /// What a power cut at this moment leaves: another filesystem made of the image
    /// as it is now, which is not unmounted first.
    #[track_caller]
    pub fn after_a_power_cut(&self) -> Self {
        let dir = directory();
        let image = dir.path().join("image");
        let mut copy = admin("cp");
        copy.arg("--sparse=always").arg(self._dir.path().join("image")).arg(&image);
        run(copy, DEADLINE).ok();
        Self::mounted(dir, |point| {
            let mut mount = admin("mount");
            mount.args(["-o", "loop"]).arg(&image).arg(point);
            mount
        })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.point.path()
    }

    /// A directory of a btrfs that may hold so many bytes, the administrator's
    /// files included. Said again of the same name it changes the limit.
    #[track_caller]
    pub fn limited(&self, name: &str, bytes: u64) -> PathBuf {
        let dir = self.path().join(name);
        let btrfs = |words: &[&str], at: &Path| {
            let mut command = admin("btrfs");
            command.args(words).arg(at);
            run(command, DEADLINE).ok();
        };
        if !dir.exists() {
            btrfs(&["quota", "enable"], self.path());
            btrfs(&["subvolume", "create"], &dir);
        }
        btrfs(&["qgroup", "limit", &bytes.to_string()], &dir);
        dir
    }

    #[track_caller]
    fn mounted(dir: TempDir, mount: impl FnOnce(&Path) -> Command) -> Self {
        let point = MountPoint::create(dir.path().join("mnt"));
        run(mount(point.path()), DEADLINE).ok();
        assert!(point.is_mounted(), "nothing is mounted on {}", point.path().display());
        Self { point, _dir: dir }
    }
}

fn directory() -> TempDir {
    tempfile::Builder::new().prefix("jvs-fs-").tempdir().expect("a directory")
}

/// A program of the administrator, found also where `PATH` has no `sbin`.
fn admin(program: &str) -> Command {
    let found = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
        .map(|dir| PathBuf::from(dir).join(program))
        .into_iter()
        .find(|path| path.is_file());
    Command::new(found.unwrap_or_else(|| program.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::mount::is_mounted;
    use std::io::ErrorKind;

    fn works_and_goes_away(fs: SmallFs) {
        let (path, dir) = (fs.path().to_owned(), fs._dir.path().to_owned());
        fs_err::write(path.join("note"), "x").expect("a file");
        assert_eq!(fs_err::read(path.join("note")).expect("the file"), b"x");
        drop(fs);
        assert!(!is_mounted(&path) && !dir.exists(), "{} is left", dir.display());
    }

    #[test]
    fn ext4_is_made_mounted_and_removed() {
        let Some(fs) = SmallFs::on_loop(Kind::Ext4) else { return };
        works_and_goes_away(fs);
    }

    #[test]
    fn xfs_is_made_mounted_and_removed() {
        let Some(fs) = SmallFs::on_loop(Kind::Xfs) else { return };
        works_and_goes_away(fs);
    }

    #[test]
    fn btrfs_is_made_mounted_and_removed() {
        let Some(fs) = SmallFs::on_loop(Kind::Btrfs) else { return };
        works_and_goes_away(fs);
    }

    #[test]
    fn a_limited_directory_is_full_until_the_limit_is_raised() {
        let Some(fs) = SmallFs::on_loop(Kind::Btrfs) else { return };
        let file = fs.limited("few", MIB).join("big");
        let full = fs_err::write(&file, vec![1; 2 << 20]).expect_err("2 MiB");
        assert_eq!(full.kind(), ErrorKind::QuotaExceeded);
        fs.limited("few", 8 * MIB);
        fs_err::write(&file, vec![1; 2 << 20]).expect("2 MiB of 8");
        works_and_goes_away(fs);
    }

    #[test]
    fn a_small_tmpfs_is_soon_full() {
        let Some(fs) = SmallFs::tmpfs(MIB) else { return };
        let full = fs_err::write(fs.path().join("big"), vec![1; 2 << 20]).expect_err("2 MiB");
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        fs_err::remove_file(fs.path().join("big")).expect("the partial file");
        works_and_goes_away(fs);
    }

    #[test]
    fn a_read_only_view_shows_the_files_and_refuses_to_change_them() {
        let source = tempfile::tempdir().expect("a directory");
        fs_err::write(source.path().join("note"), "x").expect("a file");
        let Some(view) = SmallFs::read_only_view(source.path()) else { return };
        assert_eq!(fs_err::read(view.path().join("note")).expect("the file"), b"x");
        let refused = fs_err::remove_file(view.path().join("note")).expect_err("read-only");
        assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
        drop(view);
        assert!(source.path().join("note").exists(), "the source outlives the view");
    }
}
