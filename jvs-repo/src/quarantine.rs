//! What is taken out of the way and kept: renamed into a directory of its own
//! below `quarantine/`, and never deleted by JVS.

use std::io;

use crate::id::OpNonce;
use crate::layout;
use crate::store::{RepoPath, Store};

/// Makes the empty directory in which the operation `op` sets things aside.
pub fn make(store: &dyn Store, op: OpNonce) -> io::Result<RepoPath> {
    let dir = layout::quarantined(op);
    for part in [layout::quarantine(), dir.clone()] {
        store.ensure_dir(&part)?;
        store.sync_dir(&part.parent())?;
    }
    Ok(dir)
}

/// Sets something aside under its own name, and says where it is now. What
/// another process put in its place meanwhile is not what was meant, and is put
/// back.
pub fn set_aside(store: &dyn Store, op: OpNonce, path: &RepoPath) -> io::Result<RepoPath> {
    let before = store.stat(path)?;
    let to = make(store, op)?.child(path.split().1)?;
    if let Err(error) = store.rename_new(path, &to) {
        if error.kind() == io::ErrorKind::PermissionDenied {
            // Best effort: empty, and under a name that nobody uses again.
            let _ = store.remove_dir(&to.parent());
        }
        return Err(error);
    }
    let moved = store.stat(&to)?;
    if (moved.inode, moved.kind) != (before.inode, before.kind) {
        store.rename_new(&to, path)?;
        return Err(io::Error::other("somebody else is repairing it"));
    }
    store.sync_dir(&to.parent())?;
    store.sync_dir(&path.parent())?;
    Ok(to)
}
