//! The seam to whole payload trees: names of any bytes, any depth. The control
//! plane's calls cannot name what is in them.

use std::io;

use jvs_repo::store::{PosixStore, RepoPath};

/// Payload trees below a repository's root.
pub trait Trees: Send + Sync {
    /// Removes a tree and everything in it. Follows nothing; may be interrupted
    /// and run again.
    fn remove(&self, tree: &RepoPath) -> io::Result<()>;
}

impl Trees for PosixStore {
    fn remove(&self, tree: &RepoPath) -> io::Result<()> {
        self.remove_payload_tree(tree)
    }
}
