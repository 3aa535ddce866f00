//! A repository, made in any store.

use jvs_lock::{Locks, worktrees};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{RepoPath, Store};

/// Makes the control directories of a repository with nothing in it, durably.
pub fn skeleton(store: &dyn Store) {
    store.make_dir(&layout::control_dir()).expect("an empty root");
    for part in layout::skeleton() {
        store.make_dir(&part).expect("an empty control directory");
    }
    store.sync_dir(&layout::control_dir()).expect("synced");
    store.sync_dir(&RepoPath::root()).expect("synced");
}

/// Makes a repository whose worktree `main` is made by `maker`.
pub fn repository(maker: &Locks<'_>, isolation: Isolation) {
    skeleton(maker.seams().store);
    worktrees::create(maker, &main(), isolation).expect("main is made");
}

/// The worktree that every repository has.
pub fn main() -> WorktreeName {
    WorktreeName::main()
}

/// Names in a directory, sorted.
pub fn names(store: &dyn Store, dir: &RepoPath) -> Vec<String> {
    let entries = store.list(dir).expect("a directory");
    let mut names: Vec<String> =
        entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
