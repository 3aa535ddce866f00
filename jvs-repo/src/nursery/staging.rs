//! The private directory in which a repository is built, the way from there
//! into place, and the way back from wherever that was interrupted.
//!
//! Every call that changes something is a step, so that tests can fail or die
//! at each of them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use super::Adopt;
use crate::id::OpNonce;
use crate::layout;
use crate::name::WorktreeName;
use crate::store::{PosixStore, RepoPath, Store};

/// How often the root is looked through for entries to adopt, in case somebody
/// goes on writing there.
const PASSES_MAX: usize = 8;

/// What the user has in `root`.
pub(super) fn user_entries(
    root: &PosixStore,
    not_the_user_s: &[&str],
) -> io::Result<Vec<OsString>> {
    let entries = root.list(&RepoPath::root())?.into_iter().map(|entry| entry.name);
    Ok(entries
        .filter(|name| layout::init_staging_named(name).is_none())
        .filter(|name| !not_the_user_s.iter().any(|other| name == other))
        .collect())
}

/// The private directory `dir` in the future repository's root.
#[derive(Debug)]
pub(super) struct PrivateStaging {
    root: PosixStore,
    dir: RepoPath,
    /// Names in the root that are the filesystem's, not the user's.
    not_the_user_s: &'static [&'static str],
    #[cfg(test)]
    pub(super) fate: fate::Fate,
}

impl PrivateStaging {
    /// Makes a private directory in `root`.
    pub(super) fn make(
        root: PosixStore,
        op: OpNonce,
        not_the_user_s: &'static [&'static str],
    ) -> io::Result<Self> {
        let staging =
            PrivateStaging { not_the_user_s, ..PrivateStaging::at(root, layout::init_staging(op)) };
        staging.root.ensure_dir(&staging.dir)?;
        Ok(staging)
    }

    fn at(root: PosixStore, dir: RepoPath) -> Self {
        PrivateStaging {
            root,
            dir,
            not_the_user_s: &[],
            #[cfg(test)]
            fate: fate::Fate::default(),
        }
    }

    /// The private directories that earlier attempts left in `root`, and those
    /// of attempts that are under way.
    pub(super) fn leftovers(root: &PosixStore) -> io::Result<Vec<PrivateStaging>> {
        let mut found = Vec::new();
        for entry in root.list(&RepoPath::root())? {
            if let Some(dir) = layout::init_staging_named(&entry.name) {
                found.push(PrivateStaging::at(PosixStore::open(root.root_path())?, dir));
            }
        }
        Ok(found)
    }

    /// The private directory as a repository of its own, claimed for as long as
    /// the store is open.
    pub(super) fn open(&self) -> io::Result<PosixStore> {
        let store = PosixStore::open(&self.root.absolute(&self.dir))?;
        if !store.claim_root()? {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        Ok(store)
    }

    /// Is nobody at work in it? Only a courtesy to a maker on the same mount:
    /// what must not happen twice is a rename that replaces nothing.
    pub(super) fn is_abandoned(&self) -> io::Result<bool> {
        match PosixStore::open(&self.root.absolute(&self.dir)) {
            Ok(store) => store.claim_root(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    pub(super) fn root(&self) -> &PosixStore {
        &self.root
    }

    pub(super) fn root_path(&self) -> &Path {
        self.root.root_path()
    }

    /// Where something of the repository is while it is being built.
    fn inside(&self, path: &RepoPath) -> RepoPath {
        path.as_str().split('/').fold(self.dir.clone(), |at, part| at.plain_child(part))
    }

    fn payload(&self) -> RepoPath {
        self.inside(&layout::payload(&WorktreeName::main()))
    }

    /// One change to the disk.
    fn step<T>(&self, change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        #[cfg(test)]
        self.fate.next()?;
        change()
    }

    /// Renames without replacing. If the answer is an error although it was
    /// applied (its reply was lost), it was applied.
    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.step(|| {
            self.root.rename_new(from, to).or_else(|error| {
                let applied = !self.there(from)? && self.there(to)?;
                if applied { Ok(()) } else { Err(error) }
            })
        })
    }

    fn there(&self, path: &RepoPath) -> io::Result<bool> {
        match self.root.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives the payload the owner and mode of the directory it takes over.
    pub(super) fn let_payload_be_used_like_root(&self) -> io::Result<()> {
        self.root.copy_access(&RepoPath::root(), &self.payload())
    }

    /// Puts the repository into place. The last rename makes it one.
    pub(super) fn place(&self, adopt: Adopt) -> io::Result<()> {
        if adopt == Adopt::Yes {
            self.adopt_entries()?;
        }
        self.rename(&self.payload(), &layout::payload(&WorktreeName::main()))?;
        self.rename(&self.inside(&layout::control_dir()), &layout::control_dir())
    }

    fn adopt_entries(&self) -> io::Result<()> {
        let payload = self.payload();
        for _ in 0..PASSES_MAX {
            let entries = user_entries(&self.root, self.not_the_user_s)?;
            if entries.is_empty() {
                break;
            }
            for name in entries {
                self.move_entry(&RepoPath::root(), &name, &payload)?;
            }
        }
        self.step(|| self.root.sync_dir(&payload))?;
        self.step(|| self.root.sync_dir(&RepoPath::root()))
    }

    fn move_entry(&self, from: &RepoPath, name: &OsStr, to: &RepoPath) -> io::Result<()> {
        match self.step(|| self.root.move_entry(from, name, to)) {
            // Its owner removed it first, or it was moved and the reply lost.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            answer => answer,
        }
    }

    /// Goes the whole way back, from wherever placing was interrupted, and
    /// removes the private directory. Nothing of the user's is ever removed:
    /// the payload directory goes only if it is empty.
    pub(super) fn undo(&self) -> io::Result<()> {
        if !self.there(&self.dir)? {
            return Ok(());
        }
        let (payload, placed) = (self.payload(), layout::payload(&WorktreeName::main()));
        let format = self.inside(&layout::format());
        let complete = self.there(&format)?;
        if complete && !self.there(&payload)? && self.there(&placed)? {
            self.rename(&placed, &payload)?;
        }
        if self.there(&payload)? {
            for entry in self.root.list(&payload)? {
                self.move_entry(&payload, &entry.name, &RepoPath::root())?;
            }
        }
        if complete {
            self.step(|| self.root.unlink(&format))?;
            self.step(|| self.root.sync_dir(&format.parent()))?;
        }
        if self.there(&payload)? {
            self.step(|| self.root.remove_dir(&payload))?;
        }
        self.step(|| self.root.remove_payload_tree(&self.dir))?;
        self.step(|| self.root.sync_dir(&RepoPath::root()))
    }

    /// Makes the birth survive a power cut.
    pub(super) fn sync_root(&self) -> io::Result<()> {
        self.step(|| self.root.sync_dir(&RepoPath::root()))
    }

    /// Removes the empty private directory of a repository that is born. If
    /// that fails it lies there empty and means nothing.
    pub(super) fn sweep_up(&self) {
        let _ = self.step(|| self.root.remove_dir(&self.dir));
    }

    /// Removes the root, which only we have used.
    pub(super) fn remove_root(&self) -> io::Result<()> {
        self.step(|| PosixStore::remove_root(self.root.root_path()))
    }
}

#[cfg(test)]
pub(super) mod fate {
    //! When a step is to fail, and when the process is to die.

    use std::cell::Cell;
    use std::io;

    /// Steps that are still granted; beyond them, one failure or death.
    #[derive(Debug, Default)]
    pub(in crate::nursery) struct Fate {
        /// Fails once, at this step from now.
        pub(in crate::nursery) fail_in: Cell<Option<usize>>,
        /// Does nothing any more, from this step on.
        pub(in crate::nursery) die_in: Cell<Option<usize>>,
    }

    impl Fate {
        pub(super) fn next(&self) -> io::Result<()> {
            match self.die_in.get() {
                Some(0) => return Err(io::Error::other("dead")),
                Some(steps) => self.die_in.set(Some(steps - 1)),
                None => {}
            }
            match self.fail_in.get() {
                Some(0) => {
                    self.fail_in.set(None);
                    return Err(io::Error::other("failed"));
                }
                Some(steps) => self.fail_in.set(Some(steps - 1)),
                None => {}
            }
            Ok(())
        }
    }
}
