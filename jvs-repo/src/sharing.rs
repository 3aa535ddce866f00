//! Who besides its owner may work in a repository.
//!
//! The mode of the control directory says it, because every process sees that for free
//! and an administrator's `chmod` changes it: whatever is made in a repository later is as
//! open as its control directory, whatever the umask of the user who makes it. New
//! directories inherit the group by their set-group-ID bit. `repo.shared` in the
//! configuration is what was asked for.

use std::io;

use crate::layout;
use crate::metadata::words;
use crate::store::{DirEntryKind, PosixStore, RepoPath, Store};

/// Permissions of others than the owner.
const OTHERS: u32 = 0o077;
const SET_GROUP_ID: u32 = 0o2000;

words! {
    /// With whom a repository is shared: with whomever the umask of its maker lets in;
    /// with its group, which may write; or beside that with everybody else, to read.
    Sharing { Umask "umask" Group "group" All "all" }
}

impl Sharing {
    /// The permissions that it adds, as those of a directory.
    pub const fn bits(self) -> u32 {
        match self {
            Sharing::Umask => 0,
            Sharing::Group => 0o070,
            Sharing::All => 0o075,
        }
    }

    /// The umask with which a shared repository is made.
    pub const fn umask(self, umask: u32) -> u32 {
        less(umask, self.bits())
    }

    /// The mode that something of a shared repository gets.
    const fn mode(self, kind: DirEntryKind, mode: u32) -> u32 {
        match (self, kind) {
            (Sharing::Umask, _) => mode,
            (_, DirEntryKind::Directory) => mode | self.bits() | SET_GROUP_ID,
            _ => mode | self.bits() & 0o666,
        }
    }

    /// Opens what the repository in `store` consists of, but for the files of worktrees
    /// and snapshots, whose modes are their content. What is open already is not
    /// touched, so that it may belong to others.
    pub fn apply(self, store: &PosixStore) -> io::Result<()> {
        if self == Sharing::Umask {
            return Ok(());
        }
        self.open(store, &RepoPath::root())?;
        // Its content is the worktrees'.
        match self.open(store, &layout::worktrees()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            answer => answer.map(drop)?,
        }
        self.open_tree(store, &layout::control_dir())
    }

    fn open_tree(self, store: &PosixStore, path: &RepoPath) -> io::Result<()> {
        let is_directory = self.open(store, path)? == DirEntryKind::Directory;
        // Work in progress is its maker's.
        if !is_directory || *path == layout::staging() {
            return Ok(());
        }
        for entry in store.list(path)? {
            let Some(inside) = entry.name.to_str().and_then(|name| path.child(name).ok()) else {
                continue;
            };
            match path.parent() == layout::snapshots() {
                true => self.open_file(store, &inside)?,
                false => self.open_tree(store, &inside)?,
            }
        }
        Ok(())
    }

    /// Opens the descriptor of a snapshot and its other control files, not its payload.
    fn open_file(self, store: &PosixStore, path: &RepoPath) -> io::Result<()> {
        match store.stat(path)?.kind {
            DirEntryKind::File => self.open(store, path).map(drop),
            _ => Ok(()),
        }
    }

    /// Opens one file or directory, and says what it is.
    pub(crate) fn open(self, store: &PosixStore, path: &RepoPath) -> io::Result<DirEntryKind> {
        let stat = store.stat(path)?;
        let mode = self.mode(stat.kind, stat.mode);
        if matches!(stat.kind, DirEntryKind::File | DirEntryKind::Directory) && mode != stat.mode {
            store.set_mode(path, mode)?;
        }
        Ok(stat.kind)
    }
}

/// The umask for work in a repository whose control directory has this mode: what is
/// made there is as open as that.
pub const fn umask_in(control_dir_mode: u32, umask: u32) -> u32 {
    less(umask, control_dir_mode & OTHERS)
}

const fn less(umask: u32, bits: u32) -> u32 {
    umask & !bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_as_open_as_the_control_directory() {
        // (control directory, umask) → (file, directory)
        for (control, umask, file, directory) in [
            (0o2775, 0o022, 0o664, 0o775),
            (0o2775, 0o077, 0o664, 0o775),
            (0o2770, 0o027, 0o660, 0o770),
            (0o755, 0o022, 0o644, 0o755),
            (0o755, 0o077, 0o644, 0o755),
            (0o700, 0o077, 0o600, 0o700),
            (0o700, 0o022, 0o644, 0o755),
        ] {
            let umask = umask_in(control, umask);
            assert_eq!((0o666 & !umask, 0o777 & !umask), (file, directory), "{control:o}");
        }
    }

    #[test]
    fn a_shared_repository_is_made_open_to_those_it_is_shared_with() {
        assert_eq!(Sharing::Umask.umask(0o077), 0o077);
        assert_eq!(Sharing::Group.umask(0o077), 0o007);
        assert_eq!(Sharing::All.umask(0o077), 0o002);
        assert_eq!(Sharing::Group.mode(DirEntryKind::Directory, 0o700), 0o2770);
        assert_eq!(Sharing::All.mode(DirEntryKind::Directory, 0o755), 0o2775);
        assert_eq!(Sharing::All.mode(DirEntryKind::File, 0o600), 0o664);
        assert_eq!(Sharing::Umask.mode(DirEntryKind::File, 0o600), 0o600);
    }
}
