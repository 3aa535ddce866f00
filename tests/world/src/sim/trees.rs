//! Payload trees of the simulated world.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use jvs_doctor::Payloads;
use jvs_kit::sim::SimStore;
use jvs_repo::store::{DirEntryKind, RepoPath, Store, TreeListing};
use jvs_snapshot::chosen::ChosenPaths;
use jvs_snapshot::fidelity::LossKind;
use jvs_snapshot::hash::Digest;
use jvs_snapshot::manifest::{Entry, TreePath};
use jvs_snapshot::trees::{Spot, SpotStat, Spots, Trees};
use jvs_snapshot::{Ready, SnapshotError};

/// Payload trees in the simulated store, whose names are all plain.
pub struct SimTrees<'s>(pub &'s SimStore);

impl Trees for SimTrees<'_> {
    fn absolute(&self, tree: &RepoPath) -> PathBuf {
        PathBuf::from(format!("/{tree}"))
    }

    fn remove(&self, tree: &RepoPath) -> io::Result<()> {
        if self.0.stat(tree)?.kind != DirEntryKind::Directory {
            return self.0.unlink(tree);
        }
        // READY last: no order is promised, and in this one a half-removed
        // snapshot would be taken for a whole one.
        for entry in self.0.list(tree)?.into_iter().rev() {
            let name = entry.name.to_str().expect("a plain name");
            self.remove(&tree.child(name)?)?;
        }
        self.0.remove_dir(tree)
    }

    /// Nobody writes into a tree here that is out of the way.
    fn listing(&self, tree: &RepoPath) -> io::Result<TreeListing> {
        self.0.stat(tree).map(|_| TreeListing::default())
    }

    fn remove_listed(&self, tree: &RepoPath, _: &TreeListing) -> io::Result<()> {
        self.remove(tree)
    }

    /// Each file of a tree here has the text whose hash is its snapshot's.
    fn strays(
        &self,
        tree: &RepoPath,
        _: Option<&ChosenPaths>,
        snapshots: &[Ready],
    ) -> Result<Vec<TreePath>, SnapshotError> {
        let stuck = |source| SnapshotError::Io { doing: "compare".into(), source };
        let mut strays = Vec::new();
        for (path, text) in files(self.0, tree).map_err(stuck)? {
            let hash = Digest::of(text.as_bytes());
            let known = |ready: &Ready| ready.descriptor().content.payload_root_hash == hash;
            if !snapshots.iter().any(known) {
                strays.push(TreePath::new(path.into()).expect("plain"));
            }
        }
        Ok(strays)
    }
}

/// The files in a tree, by their paths in it, and their texts.
pub(super) fn files(store: &SimStore, tree: &RepoPath) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in store.list(tree)? {
        let name = entry.name.to_str().expect("a plain name");
        let path = tree.child(name)?;
        if store.stat(&path)?.kind == DirEntryKind::Directory {
            let below = files(store, &path)?.into_iter();
            found.extend(below.map(|(path, text)| (format!("{name}/{path}"), text)));
        } else {
            let text = String::from_utf8(store.read(&path, 1_000)?).expect("text");
            found.insert(name.to_owned(), text);
        }
    }
    Ok(found)
}

impl Spots for SimTrees<'_> {
    fn look(&self, at: Spot<'_>) -> io::Result<SpotStat> {
        let stat = self.0.stat(&joined(at))?;
        Ok(SpotStat {
            is_directory: stat.kind == DirEntryKind::Directory,
            is_symlink: stat.kind == DirEntryKind::Symlink,
            identity: (stat.device, stat.inode),
            mount: stat.device,
        })
    }

    fn exchange(&self, a: Spot<'_>, b: Spot<'_>) -> io::Result<()> {
        self.0.exchange(&joined(a), &joined(b))
    }

    fn rename_new(&self, from: Spot<'_>, to: Spot<'_>) -> io::Result<()> {
        self.0.rename_new(&joined(from), &joined(to))
    }

    fn sync_above(&self, of: Spot<'_>) -> io::Result<()> {
        self.0.sync_dir(&joined(of).parent())
    }

    fn make_directory(&self, at: Spot<'_>) -> io::Result<()> {
        self.0.make_dir(&joined(at))
    }

    /// Nothing here has attributes.
    fn dress(&self, at: Spot<'_>, _: &Entry) -> io::Result<Vec<LossKind>> {
        self.0.stat(&joined(at)).map(|_| Vec::new())
    }
}

/// The same place for the control plane's calls.
fn joined(at: Spot<'_>) -> RepoPath {
    at.path.components().fold(at.tree.clone(), |path, name| {
        path.child(std::str::from_utf8(name).expect("plain")).expect("plain")
    })
}

impl Payloads for SimTrees<'_> {
    fn find_directory(&self, _: &RepoPath, _: &str) -> io::Result<Option<PathBuf>> {
        Ok(None)
    }

    fn set_mode(&self, _: &RepoPath, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn copy_access(&self, _: &RepoPath, _: &RepoPath) -> io::Result<()> {
        Ok(())
    }

    fn spots(&self) -> Option<&dyn Spots> {
        Some(self)
    }
}
