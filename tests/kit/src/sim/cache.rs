//! What each mount remembers of names that others may have changed since.
//!
//! Two memories: a *name* that was replaced or removed through another mount may
//! still lead to the old file, and an *absence* that was looked up may still be
//! answered after another mount made the name.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use jvs_repo::store::RepoPath;

use super::image::{Image, Ino, Name, ROOT};
use super::kernel::Caller;

/// How many mounts there are, and for how long each remembers what.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Caching {
    pub(crate) mounts: usize,
    pub(crate) names_ms: Option<u64>,
    pub(crate) absences_ms: Option<u64>,
}

/// What a mount thinks that a name leads to; nothing is an absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Cached {
    ino: Option<Ino>,
    until_ms: u64,
}

/// The memories of all mounts.
#[derive(Debug, Clone)]
pub(crate) struct Caches {
    caching: Caching,
    entries: BTreeMap<(usize, Ino, Name), Cached>,
}

impl Hash for Caches {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entries.hash(state);
    }
}

impl Caches {
    pub(crate) fn new(caching: Caching) -> Self {
        Caches { caching, entries: BTreeMap::new() }
    }

    /// The entry `name` of `dir` was changed through the caller's mount. `before`
    /// is the file that it named.
    pub(crate) fn changed(&mut self, caller: Caller, dir: Ino, name: &str, before: Option<Ino>) {
        // A mount knows what was done through itself.
        self.entries.remove(&(caller.mount, dir, name.into()));
        let (Some(for_ms), Some(ino)) = (self.caching.names_ms, before) else { return };
        let until_ms = caller.now_ms + for_ms;
        for mount in (0..self.caching.mounts).filter(|&m| m != caller.mount) {
            let entry = self.entries.entry((mount, dir, name.into()));
            // A mount that remembers an absence has not seen the file that came since.
            let cached = entry.or_insert(Cached { ino: Some(ino), until_ms });
            if cached.ino.is_some() || cached.until_ms <= caller.now_ms {
                *cached = Cached { ino: Some(ino), until_ms };
            }
        }
    }

    /// The old file that `path` may still lead to.
    pub(crate) fn names(&self, image: &Image, caller: Caller, path: &RepoPath) -> Option<Ino> {
        self.caching.names_ms?;
        let (dir, name) = image.resolve_parent(path).ok()?;
        let cached = self.entries.get(&(caller.mount, dir, name.into()))?;
        let current = image.look_up(dir, name).ok()?;
        let stale = cached.until_ms > caller.now_ms && current != cached.ino;
        cached.ino.filter(|_| stale)
    }

    /// Does the mount still count a name of this inode, which has none?
    pub(crate) fn count(&self, caller: Caller, ino: Ino) -> bool {
        self.entries.iter().any(|((mount, ..), cached)| {
            *mount == caller.mount && cached.ino == Some(ino) && cached.until_ms > caller.now_ms
        })
    }

    /// Is `path` there, and may it be answered that it is not?
    pub(crate) fn denies(&self, image: &Image, caller: Caller, path: &RepoPath) -> bool {
        if self.caching.absences_ms.is_none() || image.resolve(path).is_err() {
            return false;
        }
        let absent = |dir: Ino, name: &str| {
            let cached = self.entries.get(&(caller.mount, dir, name.into()));
            cached.is_some_and(|c| c.ino.is_none() && c.until_ms > caller.now_ms)
        };
        let mut dir = ROOT;
        path.as_str().split('/').filter(|name| !name.is_empty()).any(|name| {
            let denied = absent(dir, name);
            dir = image.look_up(dir, name).ok().flatten().unwrap_or(dir);
            denied
        })
    }

    /// `path` was looked up for the mount: what is absent is remembered so, what
    /// is there is not denied any more.
    pub(crate) fn look(&mut self, image: &Image, caller: Caller, path: &RepoPath) {
        let Some(for_ms) = self.caching.absences_ms else { return };
        let mut dir = ROOT;
        for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
            let key = (caller.mount, dir, name.into());
            match image.look_up(dir, name) {
                Ok(Some(ino)) => {
                    if self.entries.get(&key).is_some_and(|cached| cached.ino.is_none()) {
                        self.entries.remove(&key);
                    }
                    dir = ino;
                }
                Ok(None) => {
                    let until_ms = caller.now_ms + for_ms;
                    self.entries.insert(key, Cached { ino: None, until_ms });
                    return;
                }
                Err(_) => return,
            }
        }
    }

    /// The mount has seen what `path` leads to now. The old file that it forgets.
    pub(crate) fn refresh(
        &mut self,
        image: &Image,
        caller: Caller,
        path: &RepoPath,
    ) -> Option<Ino> {
        self.caching.names_ms?;
        let (dir, name) = image.resolve_parent(path).ok()?;
        let key = (caller.mount, dir, name.into());
        let old = self.entries.get(&key)?.ino?;
        self.entries.remove(&key);
        Some(old)
    }

    /// Does any mount remember this inode?
    pub(crate) fn remember(&self, ino: Ino) -> bool {
        self.entries.values().any(|cached| cached.ino == Some(ino))
    }

    /// Forgets what is over. The inodes that were remembered.
    pub(crate) fn expire(&mut self, now_ms: u64) -> Vec<Ino> {
        let mut over = Vec::new();
        self.entries.retain(|_, cached| {
            let keep = cached.until_ms > now_ms;
            if !keep {
                over.extend(cached.ino);
            }
            keep
        });
        over
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}
