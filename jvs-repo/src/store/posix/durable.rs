//! Where a change of names is durable once its call has answered, so that there is nothing
//! for an fsync of a directory to do.
//!
//! A JuiceFS mount answers a call that makes, moves or removes a name when its metadata
//! engine has committed it, and knows no fsync of a directory: the kernel answers that with
//! success by itself. What the engine makes of a commit is the engine's. But to get a
//! descriptor for the fsync that nobody does costs two requests a directory. Other
//! filesystems are not known to be like that, and are asked.

use std::os::fd::BorrowedFd;

use rustix::fs::{self, StatxFlags};

use super::ASK_NOBODY;
use crate::proc;

/// The kinds of filesystem of which it is known.
const DURABLE: &[&str] = &["fuse.juicefs"];

/// Is a change of names durable once its call has answered, on the filesystem of `root`?
pub(super) fn names_are_durable(root: BorrowedFd<'_>) -> bool {
    let Ok(stat) = fs::statx(root, "", ASK_NOBODY, StatxFlags::empty()) else { return false };
    // What has a device of its own is local: not looked up in a list that may be long.
    if stat.stx_dev_major != 0 {
        return false;
    }
    let device = format!("{}:{}", stat.stx_dev_major, stat.stx_dev_minor);
    let mounts = proc::mountinfo().unwrap_or_default();
    kind_of(&String::from_utf8_lossy(&mounts), &device).is_some_and(|kind| DURABLE.contains(&kind))
}

/// The kind of the filesystem that is `device`, by the kernel's list of mounts.
fn kind_of<'m>(mountinfo: &'m str, device: &str) -> Option<&'m str> {
    let of_device = |line: &&str| line.split(' ').nth(2) == Some(device);
    let line = mountinfo.lines().find(of_device)?;
    line.split_once(" - ")?.1.split(' ').next()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_filesystem_is_told_by_its_device() {
        let mounts = "21 28 0:20 / /sys rw - sysfs sysfs rw\n\
                      90 28 0:43 / /mnt/a\\040b rw shared:1 - fuse.juicefs JuiceFS:volume rw\n\
                      91 28 0:44 / /mnt/c rw - fuse.sshfs host:/ rw\n";
        assert_eq!(kind_of(mounts, "0:43"), Some("fuse.juicefs"));
        assert_eq!(kind_of(mounts, "0:44"), Some("fuse.sshfs"));
        assert_eq!(kind_of(mounts, "0:4"), None);
        assert_eq!(kind_of("", "0:43"), None);
    }

    #[test]
    fn what_is_not_known_to_need_no_fsync_is_given_one() {
        let dir = tempfile::tempdir().expect("tempdir");
        let fd = fs::open(dir.path(), fs::OFlags::PATH, fs::Mode::empty()).expect("opened");
        assert!(!names_are_durable(fd.as_fd()));
    }
}
