//! A cgroup of one run: the kernel's own list of what a command has started, which
//! no process leaves by forking, and its own way to end all of them at once.

#![allow(
    clippy::disallowed_methods,
    reason = "not the control plane: the kernel's own files, which nobody else can plant"
)]

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::proc;
use rustix::fs::{Mode, OFlags};

/// Deeper than anybody nests runs.
const DEPTH_MAX: usize = 32;

/// How often it is tried to move everybody.
const ROUNDS: usize = 20;

/// A directory in the unified hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cgroup {
    dir: PathBuf,
}

impl Cgroup {
    /// Makes an empty one below this process's own.
    pub(crate) fn make() -> io::Result<Self> {
        let own = own_dir().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "no unified cgroup hierarchy is mounted here")
        })?;
        // Pids of two namespaces may be the same; not at the same moment, too.
        let now = SystemClock.now().boot.0;
        let dir = own.join(format!("jvs-run-{}-{now}", std::process::id()));
        fs::create_dir(&dir)?;
        let cgroup = Cgroup { dir };
        if !cgroup.dir.join("cgroup.kill").exists() {
            cgroup.remove();
            let why = "this kernel cannot end a whole cgroup (it can since 5.14)";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(cgroup)
    }

    /// One that another process has made.
    pub(crate) fn at(dir: &Path) -> Self {
        Cgroup { dir: dir.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// For a process to be born in it.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.dir, flags, Mode::empty())?)
    }

    /// Ends everything in it and below, no matter whose it is.
    pub(crate) fn kill(&self) {
        let _ = fs::write(self.dir.join("cgroup.kill"), "1");
    }

    /// The processes in it and below. A process of a PID namespace that cannot be seen
    /// from here has no number; it is zero then.
    pub(crate) fn members(&self) -> Vec<u32> {
        let mut members = Vec::new();
        for dir in below(&self.dir, DEPTH_MAX) {
            let procs = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
            members.extend(procs.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        members
    }

    /// Lets what is in it live on where this process is.
    pub(crate) fn set_free(&self) {
        let Some(above) = self.dir.parent() else { return };
        // A process that is born meanwhile is found the next time.
        for _ in 0..ROUNDS {
            let members = self.members();
            for pid in &members {
                let _ = fs::write(above.join("cgroup.procs"), pid.to_string());
            }
            if members.is_empty() {
                return;
            }
        }
    }

    /// Removes it, and what nested runs that were killed have left below it. One that
    /// still has processes stays.
    pub(crate) fn remove(&self) {
        for dir in below(&self.dir, DEPTH_MAX).iter().rev() {
            let _ = rustix::fs::rmdir(dir);
        }
    }
}

/// A directory and all below it, each before those below it.
fn below(dir: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    if let (Some(depth), Ok(entries)) = (depth.checked_sub(1), fs::read_dir(dir)) {
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend(below(&entry.path(), depth));
            }
        }
    }
    found
}

/// Where this process's own cgroup is mounted.
fn own_dir() -> Option<PathBuf> {
    dir_among(&String::from_utf8_lossy(&proc::mountinfo().ok()?), &proc::cgroup()?)
}

/// `36 32 0:31 ROOT POINT OPTIONS … - cgroup2 …`: what lies at ROOT in the hierarchy
/// is seen at POINT.
pub(crate) fn dir_among(mounts: &str, own: &str) -> Option<PathBuf> {
    mounts.lines().rev().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let unified = kind.split(' ').next() == Some("cgroup2");
        let root = proc::mount_field(root.as_bytes());
        let inside = Path::new(own).strip_prefix(&root).ok().filter(|_| unified)?;
        Some(proc::mount_field(point.as_bytes()).join(inside))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found_where_its_hierarchy_is_mounted() {
        let plain = "30 25 0:26 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw";
        let hybrid = "40 30 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let container = "50 40 0:26 /pod/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let found = |mounts, own| dir_among(mounts, own).map(|dir| dir.display().to_string());
        assert_eq!(found(plain, "/a/b").as_deref(), Some("/sys/fs/cgroup/a/b"));
        assert_eq!(found(hybrid, "/").as_deref(), Some("/sys/fs/cgroup/unified/"));
        assert_eq!(found(container, "/pod/c1/x").as_deref(), Some("/sys/fs/cgroup/x"));
        assert_eq!(found(container, "/pod/c2"), None, "not seen here");
        assert_eq!(found("40 30 0:30 / /c rw - cgroup cgroup rw,cpu", "/"), None);
    }
}
