//! The removal of a tree of any depth, with one directory open at a time.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use rustix::fs::{self, AtFlags};
use rustix::io::Errno;

use super::{Names, list, open_directory, reach, set_mode, set_mode_open, stat_open};

/// A directory on the way down.
struct Level {
    name: Vec<u8>,
    identity: (u64, u64),
    names: Names,
    next: usize,
}

impl Level {
    fn of(dir: &OwnedFd, name: &[u8]) -> io::Result<Self> {
        let identity = stat_open(dir)?.identity();
        Ok(Level { name: name.to_vec(), identity, names: list(dir)?, next: 0 })
    }
}

/// Removes `name` in `dir` and, if it is a directory, everything in it.
/// Directories that forbid it are opened up first.
pub fn remove(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    if unlinked(&dir, name)? {
        return Ok(());
    }
    let mut here = enter(&dir, name)?;
    let mut levels = vec![Level::of(&here, name)?];
    while let Some(level) = levels.last_mut() {
        if level.next < level.names.len() {
            let name = level.names.get(level.next);
            level.next += 1;
            if !permitted(&here, || unlinked(&here, name))? {
                let inside = enter(&here, name)?;
                let below = Level::of(&inside, name)?;
                levels.push(below);
                here = inside;
            }
            continue;
        }
        let Some(Level { name, .. }) = levels.pop() else { break };
        let Some(above) = levels.last() else {
            return Ok(fs::unlinkat(&dir, &name, AtFlags::REMOVEDIR)?);
        };
        // Only to reach what else is in it: it has been read.
        let up = permitted(&here, || reach(&here, b".."))?;
        if stat_open(&up)?.identity() != above.identity {
            return Err(io::Error::other("a directory was moved while it was removed"));
        }
        here = up;
        permitted(&here, || Ok(fs::unlinkat(&here, &name, AtFlags::REMOVEDIR)?))?;
    }
    Ok(())
}

/// False if it is a directory.
fn unlinked(dir: impl AsFd, name: &[u8]) -> io::Result<bool> {
    match fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        // Linux says EISDIR; POSIX allows EPERM.
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn enter(dir: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    match open_directory(&dir, name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            set_mode(&dir, name, 0o700)?;
            open_directory(&dir, name)
        }
        answer => answer,
    }
}

/// Does something in a directory, once more if its mode forbids it.
fn permitted<T>(dir: &OwnedFd, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match act() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(dir)?;
            act()
        }
        answer => answer,
    }
}

/// Lets its owner do anything in a directory, also in one that is only reached.
fn open_up(dir: &OwnedFd) -> io::Result<()> {
    match set_mode_open(dir, 0o700) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::BADF) => {
            let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
            set_mode(fs::CWD, link.as_bytes(), 0o700)
        }
        answer => answer,
    }
}
