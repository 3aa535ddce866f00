//! A mount in user space to which the kernel sends nothing that it sends in the
//! background: pages of mapped files, and word that a file was closed. All else is served
//! as ever, so that what is on the way can be told from what has arrived, for as long
//! as a test wants.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::mount::MountPoint;

/// Held back until this is dropped.
#[derive(Debug)]
pub struct HeldBack {
    /// How many requests the kernel sends in the background at once.
    limit: PathBuf,
    usual: String,
    /// A file at the mount.
    any_file: PathBuf,
    _control: MountPoint,
}

impl HeldBack {
    /// Of the mount that `any_file` is at. `control` is a directory to be made. Needs
    /// root.
    #[track_caller]
    pub fn at(any_file: &Path, control: PathBuf) -> Self {
        let control = MountPoint::create(control);
        mount("fusectl", control.path(), "fusectl", MountFlags::empty(), None)
            .expect("the kernel's view of its mounts in user space");
        let device = fs_err::metadata(any_file).expect("a file at the mount").dev();
        let connection = rustix::fs::minor(device).to_string();
        let limit = control.path().join(connection).join("max_background");
        let usual = fs_err::read_to_string(&limit).expect("the usual number");
        fs_err::write(&limit, "0").expect("none from now on");
        HeldBack { limit, usual, any_file: any_file.to_owned(), _control: control }
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        let _ = fs_err::write(&self.limit, &self.usual);
        // The kernel looks at what is waiting when there is more to send: the word that
        // this file was closed.
        drop(fs_err::File::open(&self.any_file));
    }
}
