//! The removal of a whole tree by the mount itself: it goes through the metadata, many
//! names at a time, where a call each would be a round trip each.
//!
//! It is asked for by the inode of the directory and the name there, and follows no
//! symlink. Only names that no other process uses may be given to it: what stands under
//! the name when the mount begins is what goes.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use jvs_repo::proc;

use super::control::{RemoveRequest, ask};
use super::{find, open_control};
use crate::progress::Silent;
use crate::tree::{self, NodeKind};

/// As many as the client's own command uses.
const THREADS: u8 = 50;

/// Removes the directory `name` in `dir`, if that is on JuiceFS and its mount can do it. If
/// not, some of it may be gone: whoever asked removes the rest, and
/// learns then why it could not be.
pub(crate) fn was_removed_by_the_mount(dir: &OwnedFd, name: &[u8]) -> bool {
    if !tree::is_remote(dir) {
        return false;
    }
    let (Ok(parent), Ok(found)) = (tree::stat_open(dir), tree::stat(dir, name)) else {
        return false;
    };
    if found.kind != NodeKind::Directory || found.mount != parent.mount {
        return false;
    }
    let Ok(table) = proc::mountinfo() else { return false };
    let Some(point) = find(&table, parent.filesystem) else { return false };
    // What is mounted in it is nobody's to unmount.
    let path = tree::path_of_open(dir).map(|path| path.join(OsStr::from_bytes(name)));
    if path.is_err() || path.is_ok_and(|path| has_mounts_below(&table, &path)) {
        return false;
    }
    let Ok(control) = open_control(&point) else { return false };
    let request = RemoveRequest { parent: parent.inode, name, threads: THREADS };
    ask(&control, &request, &Silent).is_ok()
}

/// Is something mounted below this path?
fn has_mounts_below(table: &[u8], path: &Path) -> bool {
    table.split(|&byte| byte == b'\n').any(|line| {
        let point = line.split(|&byte| byte == b' ').nth(4).map(proc::mount_field);
        point.is_some_and(|point| point != path && point.starts_with(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_below_a_path_is_seen_by_whole_names() {
        let table = b"21 1 254:0 / / rw - ext4 /dev/vda rw\n\
            41 21 0:44 / /mnt/a\\040b rw - fuse.juicefs JuiceFS:v rw\n\
            42 41 0:45 / /mnt/a\\040b/c/d rw - tmpfs tmpfs rw\n";
        let below = |path: &str| has_mounts_below(table, Path::new(path));
        assert!(below("/mnt/a b") && below("/mnt/a b/c") && below("/"));
        assert!(!below("/mnt/a b/c/d"));
        assert!(!below("/mnt/a b/cc") && !below("/mnt/x"));
    }
}
