//! Which of the directories that the environment names are this user's own. Under `sudo`
//! they may be somebody else's, in which nothing of ours may be made: it would belong to
//! another user than all around it, or follow a symlink that was put there for us.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, FileType, Stat};

use crate::context::Env;

/// Where the user's state is kept.
pub(super) fn state(env: Env<'_>) -> Option<PathBuf> {
    let named = env.path("XDG_STATE_HOME");
    // A home is the system's to make: a process that has none there has none.
    let home = env.path("HOME").filter(|home| rustix::fs::stat(home).is_ok());
    let usual = home.map(|home| home.join(".local/state"));
    [named, usual].into_iter().flatten().find(|path| is_mine(path))
}

/// Is it this user's, or can it become so?
pub(super) fn is_mine(place: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let Some((path, stat)) = nearest(place) else { return false };
    // What is there in its own place and is none is refused, not passed over.
    let is_dir = path == place || FileType::from_raw_mode(stat.st_mode).is_dir();
    is_dir && stat.st_uid == me && rustix::fs::access(path, Access::WRITE_OK).is_ok()
}

/// The first of `path` and what is above it that is there.
pub(super) fn nearest(path: &Path) -> Option<(&Path, Stat)> {
    path.ancestors().find_map(|path| Some((path, rustix::fs::stat(path).ok()?)))
}
