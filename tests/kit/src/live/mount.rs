//! A mount point that is undone on drop.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};

/// A directory on which something is or will be mounted.
///
/// Detaching never waits: it neither asks the filesystem nor minds open files,
/// so that a dead or stopped FUSE client cannot hang the test.
#[derive(Debug)]
pub struct MountPoint {
    path: PathBuf,
}

impl MountPoint {
    /// Makes the directory.
    #[track_caller]
    pub fn create(path: PathBuf) -> Self {
        fs_err::create_dir(&path).expect("a new directory to mount on");
        Self { path: path.canonicalize().expect("a directory just made has a path") }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether something is mounted on it, without touching what is.
    pub fn is_mounted(&self) -> bool {
        is_mounted(&self.path)
    }

    /// Takes everything off this directory. Nothing mounted is fine.
    pub fn detach(&self) {
        while is_mounted(&self.path) && unmount(&self.path, UnmountFlags::DETACH).is_ok() {}
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        self.detach();
        // Only ever an empty directory: what a failed unmount leaves is not touched.
        let _ = fs_err::remove_dir(&self.path);
    }
}

/// A file or a directory in whose place another one is seen, until this is
/// dropped. Needs root.
#[derive(Debug)]
pub struct Covered {
    path: PathBuf,
}

impl Covered {
    /// Whoever looks at `path` sees `by`.
    #[track_caller]
    pub fn with(path: &Path, by: &Path) -> Self {
        mount_bind(by, path).unwrap_or_else(|e| panic!("cover {}: {e}", path.display()));
        Self { path: path.to_owned() }
    }

    /// As [`Covered::with`], and it cannot be written to.
    #[track_caller]
    pub fn read_only(path: &Path, by: &Path) -> Self {
        let covered = Self::with(path, by);
        mount_remount(path, MountFlags::BIND | MountFlags::RDONLY, "").expect("made read-only");
        covered
    }
}

impl Drop for Covered {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
    }
}

/// Whether something is mounted on `path`, by the kernel's own list: a look at
/// the path itself would wait for a filesystem that does not answer.
pub fn is_mounted(path: &Path) -> bool {
    mounts_below(path).iter().any(|mounted| mounted == path)
}

/// Every mount point at or below `path`.
pub fn mounts_below(path: &Path) -> Vec<PathBuf> {
    let list = fs_err::read("/proc/self/mountinfo").expect("the kernel lists the mounts");
    list.split(|&byte| byte == b'\n')
        .filter_map(|line| line.split(|&byte| byte == b' ').nth(4))
        .map(jvs_repo::proc::mount_field)
        .filter(|mounted| mounted.starts_with(path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_mounted_and_a_plain_directory_is_not() {
        let plain = tempfile::tempdir().expect("a directory");
        assert!(is_mounted(Path::new("/")));
        assert!(!is_mounted(plain.path()));
    }

    #[test]
    fn a_mount_point_on_which_nothing_was_mounted_goes_away() {
        let dir = tempfile::tempdir().expect("a directory");
        let point = MountPoint::create(dir.path().join("point"));
        let path = point.path().to_owned();
        assert!(!point.is_mounted());
        drop(point);
        assert!(!path.exists(), "an unused mount point is removed");
    }
}
