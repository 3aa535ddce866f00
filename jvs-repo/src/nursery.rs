//! How a repository is born: whole, or not at all.
//!
//! Everything is built in a private directory inside the future root, with the
//! ordinary library code and the ordinary layout. Then the payload and, as the
//! one step that makes it a repository, the control directory are renamed into
//! place. Content that is adopted is renamed too, never copied.
//!
//! Whatever kills us, what the root and the private directory hold tells how
//! far we came, and the way back is always open:
//!
//! | control dir | payload in private dir | came to | way back |
//! |---|---|---|---|
//! | incomplete | there, empty | building | remove what was built |
//! | complete | there | adopting | move its entries back, remove the rest |
//! | complete | gone | payload in place | move it back into the private dir |
//! | in the root | gone | born | none needed |
//!
//! The format file is what makes the control directory complete. It is written
//! after the payload directory is made and removed before that is, so that a
//! `main` of the user's own is never taken for ours.
//!
//! **Limitations.** A directory's access control lists and extended attributes
//! are not carried over to the payload that adopts its entries; its owner and
//! mode are. Relative symlinks that pointed out of the adopted directory point
//! one level short afterwards.

mod error;
mod staging;

use std::path::{Path, PathBuf};

pub use error::InitError;
use staging::PrivateStaging;

use crate::audit;
use crate::config::Config;
use crate::discover::has_control_dir;
use crate::entropy::SystemEntropy;
use crate::id::OpNonce;
use crate::layout;
use crate::name::WorktreeName;
use crate::probe::{self, Filesystem, ProbeReport};
use crate::record::format::FormatRecord;
use crate::repo::Repo;
use crate::sharing::Sharing;
use crate::store::{PosixStore, RepoPath, Store};

/// What to do with what is already in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopt {
    /// Nothing may be there.
    No,
    /// It becomes the content of worktree `main`; an earlier attempt that was
    /// interrupted is undone first.
    Yes,
}

/// A repository that is complete but for its place. Dropping it leaves the
/// directory as it was found.
#[derive(Debug)]
#[must_use = "nothing becomes a repository until it is finished"]
pub struct Unborn {
    staging: PrivateStaging,
    store: PosixStore,
    adopt: Adopt,
    sharing: Sharing,
    root_was_made: bool,
    filesystem: Filesystem,
    report: Option<ProbeReport>,
}

impl Unborn {
    /// Builds a repository for `root` without touching what is in it. Makes
    /// `root` itself if need be, but nothing above it.
    pub fn prepare(root: &Path, adopt: Adopt) -> Result<Unborn, InitError> {
        Self::prepare_shared(root, adopt, Sharing::Umask)
    }

    /// As [`Self::prepare`], for others to work in, too. The umask of the process must
    /// be [`Sharing::umask`] until it is finished.
    pub fn prepare_shared(
        root: &Path,
        adopt: Adopt,
        sharing: Sharing,
    ) -> Result<Unborn, InitError> {
        let mut unborn = Self::begin(root, adopt)?;
        unborn.sharing = sharing;
        unborn.report = Some(unborn.probe_filesystem()?);
        unborn.build()?;
        Ok(unborn)
    }

    /// The repository under construction, laid out like any other: here the
    /// caller makes worktree `main`.
    pub fn store(&self) -> &PosixStore {
        &self.store
    }

    /// What the probe found, of which nothing forbids a repository.
    pub fn report(&self) -> Option<&ProbeReport> {
        self.report.as_ref()
    }

    /// Adopts what is to be adopted and puts the repository into place. If that
    /// fails, everything is put back.
    pub fn finish(mut self) -> Result<Repo, InitError> {
        let root = self.staging.root_path().to_owned();
        if let Err(cause) = self.share_root().and_then(|()| self.staging.place(self.adopt)) {
            let undone = self.take_back();
            return Err(match undone {
                Ok(()) => InitError::io(&root, "put the repository into place", cause),
                Err(obstacle) => InitError::Stranded { root, cause, obstacle },
            });
        }
        self.root_was_made = false;
        self.staging.sync_root().map_err(|e| InitError::io(&root, "flush it to disk", e))?;
        self.staging.sweep_up();
        Ok(Repo::open(&root)?)
    }

    /// Lets those it is shared with make worktrees.
    fn share_root(&self) -> std::io::Result<()> {
        self.sharing.open(self.staging.root(), &RepoPath::root()).map(drop)
    }

    /// Gives up and leaves the directory as it was found.
    pub fn abandon(mut self) -> Result<(), InitError> {
        let root = self.staging.root_path().to_owned();
        self.take_back().map_err(|e| InitError::io(&root, "remove what was made", e))
    }

    /// All checks that need no writing, then the private directory.
    fn begin(root: &Path, adopt: Adopt) -> Result<Unborn, InitError> {
        let (root, root_was_made) = make_root(root)?;
        let made = || -> Result<(PrivateStaging, PosixStore, Filesystem), InitError> {
            let io = |doing| {
                let root = root.clone();
                move |error| InitError::io(&root, doing, error)
            };
            let root_store = PosixStore::open(&root).map_err(io("open it"))?;
            let filesystem = Filesystem::at(&root).map_err(io("find out its filesystem"))?;
            let not_the_user_s = filesystem.own_names(&root);
            look_around(&root_store, adopt, not_the_user_s)?;
            let op = OpNonce::random(&SystemEntropy);
            let staging = PrivateStaging::make(root_store, op, not_the_user_s)
                .map_err(io("make a private directory in it"))?;
            // From here on there is something to take back.
            match staging.open() {
                Ok(store) => Ok((staging, store, filesystem)),
                Err(error) => {
                    let _ = staging.undo();
                    Err(io("open the private directory in it")(error))
                }
            }
        };
        match made() {
            Ok((staging, store, filesystem)) => {
                let report = None;
                let sharing = Sharing::Umask;
                Ok(Unborn { staging, store, adopt, sharing, root_was_made, filesystem, report })
            }
            Err(error) => {
                if root_was_made {
                    let _ = PosixStore::remove_root(&root);
                }
                Err(error)
            }
        }
    }

    fn probe_filesystem(&self) -> Result<ProbeReport, InitError> {
        let filesystem = self.filesystem.clone();
        let report = probe::probe(&self.store, &RepoPath::root(), filesystem, &SystemEntropy)?;
        report.verdict()?;
        Ok(report)
    }

    fn build(&self) -> Result<(), InitError> {
        self.build_parts()
            .map_err(|error| InitError::io(self.staging.root_path(), "build the repository", error))
    }

    fn build_parts(&self) -> std::io::Result<()> {
        let op = OpNonce::random(&SystemEntropy);
        self.store.make_dir(&layout::payload(&WorktreeName::main()))?;
        if self.adopt == Adopt::Yes {
            self.staging.let_payload_be_used_like_root()?;
        }
        self.store.make_dir(&layout::control_dir())?;
        for directory in layout::skeleton() {
            self.store.make_dir(&directory)?;
        }
        let config = Config::initial(self.sharing);
        self.store.write_new(&layout::config_tmp(op), &layout::config(), config.as_bytes())?;
        let format = FormatRecord::fresh(&SystemEntropy).to_bytes();
        self.store.write_new(&layout::format_tmp(op), &layout::format(), &format)?;
        audit::room::keep(&self.store, op)?;
        self.sharing.open(&self.store, &layout::payload(&WorktreeName::main()))?;
        self.sharing.apply(&self.store)?;
        self.store.sync_dir(&RepoPath::root())
    }

    fn take_back(&mut self) -> std::io::Result<()> {
        self.staging.undo()?;
        if std::mem::take(&mut self.root_was_made) {
            self.staging.remove_root()?;
        }
        Ok(())
    }
}

impl Drop for Unborn {
    fn drop(&mut self) {
        // Best effort: what stays is found by the next attempt.
        let _ = self.take_back();
    }
}

/// The root without symlinks on the way, and whether it had to be made.
fn make_root(root: &Path) -> Result<(PathBuf, bool), InitError> {
    let io = |doing| move |error| InitError::io(root, doing, error);
    if let Ok(existing) = root.canonicalize() {
        if !existing.is_dir() {
            return Err(InitError::NotADirectory { root: existing });
        }
        refuse_nesting(&existing)?;
        return Ok((existing, false));
    }
    // Before anything is made, so that a refusal leaves nothing behind.
    let parent = match root.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let parent = parent.canonicalize().map_err(io(error::FIND_PARENT))?;
    refuse_nesting(&parent.join(root.file_name().unwrap_or_default()))?;
    match PosixStore::make_root(root) {
        Ok(()) => {}
        // A symlink that leads nowhere.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(InitError::NotADirectory { root: root.to_owned() });
        }
        Err(error) => return Err(io("make it")(error)),
    }
    let made = root.canonicalize().map_err(io("find it again"))?;
    Ok((made, true))
}

/// A repository in a repository would answer for files that are another's.
fn refuse_nesting(root: &Path) -> Result<(), InitError> {
    for above in root.ancestors() {
        if has_control_dir(above)? {
            let (root, outer) = (root.to_owned(), above.to_owned());
            return Err(if root == outer {
                InitError::AlreadyARepository { root }
            } else {
                InitError::Inside { root, outer }
            });
        }
    }
    Ok(())
}

/// Is what the root holds what `adopt` allows? Undoes an interrupted attempt.
fn look_around(root: &PosixStore, adopt: Adopt, not_the_user_s: &[&str]) -> Result<(), InitError> {
    let path = root.root_path();
    let io = |doing| move |error| InitError::io(path, doing, error);
    for leftover in PrivateStaging::leftovers(root).map_err(io("list it"))? {
        if !leftover.is_abandoned().map_err(io("look at an earlier attempt"))? {
            return Err(InitError::UnderWay { root: path.to_owned() });
        }
        if adopt == Adopt::No {
            return Err(InitError::Unfinished { root: path.to_owned() });
        }
        leftover.undo().map_err(io("undo an earlier attempt"))?;
    }
    let entries = staging::user_entries(root, not_the_user_s).map_err(io("list it"))?;
    if entries.is_empty() {
        return Ok(());
    }
    if adopt == Adopt::No {
        let git = entries.iter().any(|entry| entry.as_os_str() == ".git");
        return Err(InitError::NotEmpty { root: path.to_owned(), git });
    }
    if path.parent().is_none() {
        return Err(InitError::IsTheWholeSystem);
    }
    let inner = root.find_directory(&RepoPath::root(), layout::CONTROL_DIR);
    match inner.map_err(io("look for repositories in it"))? {
        Some(control) => Err(InitError::Contains {
            root: path.to_owned(),
            inner: path.join(control.parent().unwrap_or(&control)),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
