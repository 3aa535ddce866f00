//! Which paths can be exchanged one by one, told before a restore is committed: from
//! then on each of them has to be, and until then nobody else can use the files.

use std::io;

use jvs_repo::layout;
use jvs_repo::store::{PosixStore, RepoPath};

use super::plan::Deed;
use crate::manifest::TreePath;
use crate::tree;
use crate::trees::{Spot, above};

/// The first of the paths that this process cannot exchange, and why.
pub(super) fn first_stuck<'p>(
    store: &PosixStore,
    payload: &RepoPath,
    from: &RepoPath,
    mut deeds: impl Iterator<Item = (&'p TreePath, Deed)>,
) -> Option<(TreePath, io::Error)> {
    deeds.find_map(|(path, deed)| {
        let stuck = try_move(store, payload, path)
            .and_then(|()| if deed == Deed::Remove { Ok(()) } else { try_copy(store, from, path) });
        stuck.err().map(|error| (path.clone(), error))
    })
}

fn try_move(store: &PosixStore, payload: &RepoPath, path: &TreePath) -> io::Result<()> {
    let (dir, name) = above(store, Spot { tree: payload, path })?;
    let (root, control) = (TreePath::root(), layout::control_dir());
    let (home, home_name) = above(store, Spot { tree: &control, path: &root })?;
    tree::movable(&dir, name, (&home, home_name))
}

fn try_copy(store: &PosixStore, from: &RepoPath, path: &TreePath) -> io::Result<()> {
    let (dir, name) = above(store, Spot { tree: from, path })?;
    tree::copy_is_movable(dir, name)
}
