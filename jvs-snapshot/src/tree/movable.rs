//! Whether a name can be exchanged with one in another directory, found out without
//! doing it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, Access, AtFlags, Statx, StatxAttributes};
use rustix::io::Errno;

use super::{NodeKind, NodeStat, stat_from, wanted};

/// What `statfs` says of an overlay: `OVERLAYFS_SUPER_MAGIC`.
const OVERLAY: u32 = 0x794c_7630;

/// What nobody may move, root included.
const FIXED: StatxAttributes = StatxAttributes::IMMUTABLE.union(StatxAttributes::APPEND);

/// Can what is called `name` in `dir`, if anything is, and something in the directory
/// `home`, which is not empty, be exchanged by this process? The error says why not.
pub fn movable(dir: &OwnedFd, name: &[u8], home: (&OwnedFd, &[u8])) -> io::Result<()> {
    let holds = look(dir, b"")?;
    let home_is = stat_from(look(home.0, home.1)?)?;
    let here = match look(dir, name) {
        Ok(here) => Some(here),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let fixed = |seen: &Statx| seen.stx_attributes.intersects(FIXED);
    if fixed(&holds) || here.as_ref().is_some_and(fixed) {
        return Err(Errno::PERM.into());
    }
    let holds = stat_from(holds)?;
    // Another filesystem, another subvolume, or another way to the same one.
    if (holds.filesystem, holds.mount) != (home_is.filesystem, home_is.mount) {
        return Err(Errno::XDEV.into());
    }
    may_change(dir, b".")?;
    let Some(here) = here.map(stat_from).transpose()? else { return Ok(()) };
    if here.mount != holds.mount {
        return Err(Errno::BUSY.into());
    }
    if is_kept_by_another(&holds, &here, rustix::process::geteuid().as_raw()) {
        return Err(Errno::PERM.into());
    }
    if here.kind != NodeKind::Directory {
        return Ok(());
    }
    // What it says of the directory above it changes.
    may_change(dir, name)?;
    if fs::fstatfs(dir)?.f_type as u32 == OVERLAY {
        return may_leave_overlay(dir, name, home);
    }
    Ok(())
}

/// Can what this process copies of the directory `name` in `dir` be moved by it?
pub fn copy_is_movable(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    let like = stat_from(look(dir, name)?)?;
    let closed = like.kind == NodeKind::Directory && like.mode & 0o300 != 0o300;
    match closed && !rustix::process::geteuid().is_root() {
        true => Err(Errno::ACCESS.into()),
        false => Ok(()),
    }
}

fn look(dir: impl AsFd, name: &[u8]) -> io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    Ok(fs::statx(dir, name, flags, wanted())?)
}

/// May this process make and remove names in the directory `name` in `dir`?
fn may_change(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    Ok(fs::accessat(dir, name, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// In a directory with the sticky bit, only the owner of a name, the directory's owner and
/// root may move it.
fn is_kept_by_another(holds: &NodeStat, here: &NodeStat, user: u32) -> bool {
    holds.mode & 0o1000 != 0 && ![0, holds.uid, here.uid].contains(&user)
}

/// A directory that comes from a lower layer of an overlay cannot be moved to another, and
/// nothing that can be looked at tells. The kernel says so before it says that no
/// directory takes the place of one that is not empty, which `home` never is.
fn may_leave_overlay(dir: &OwnedFd, name: &[u8], home: (&OwnedFd, &[u8])) -> io::Result<()> {
    match fs::renameat(dir, name, home.0, home.1) {
        Err(Errno::XDEV) => Err(Errno::XDEV.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mode: u32, uid: u32) -> NodeStat {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = super::super::open_root(dir.path()).expect("opened");
        NodeStat { mode, uid, ..stat_from(look(&dir, b"").expect("there")).expect("known") }
    }

    #[test]
    fn in_a_sticky_directory_only_owners_move_a_name() {
        let kept = |mode, user| is_kept_by_another(&of(mode, 1), &of(0o644, 2), user);
        assert!(kept(0o1777, 3));
        assert!(!kept(0o1777, 1) && !kept(0o1777, 2) && !kept(0o1777, 0), "owners and root");
        assert!(!kept(0o777, 3), "not without the bit");
    }
}
