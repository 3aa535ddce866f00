//! Removes a small directory of control files with all that is in it.

use std::io;

use super::{DirEntryKind, RepoPath, Store};

/// How often a directory is emptied that others put something into meanwhile.
const TRIES: u32 = 20;

/// Removes a directory and what is in it. Nothing here is followed anywhere. Commands that
/// are just coming or going may take something away first, or put something there.
pub fn remove_tree(store: &dyn Store, dir: &RepoPath) -> io::Result<()> {
    let gone = |answer: io::Result<()>| match answer {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let mut tries = 0;
    loop {
        let entries = match store.list(dir) {
            Err(error) => return gone(Err(error)),
            Ok(entries) => entries,
        };
        // A name that is not UTF-8 is nobody's here: it stays, and with it the directory.
        for name in entries.iter().filter_map(|entry| entry.name.to_str()) {
            let entry = dir.child(name)?;
            match store.stat(&entry).map(|stat| stat.kind) {
                Ok(DirEntryKind::Directory) => remove_tree(store, &entry)?,
                Ok(DirEntryKind::File | DirEntryKind::Symlink | DirEntryKind::Other) => {
                    gone(store.unlink(&entry))?
                }
                Err(error) => gone(Err(error))?,
            }
        }
        tries += 1;
        match store.remove_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && tries < TRIES => {}
            other => return gone(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::PosixStore;

    #[test]
    fn a_directory_goes_with_all_that_is_in_it_and_no_symlink_is_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = PosixStore::open(dir.path()).expect("a store");
        let path = |text: &str| {
            text.split('/').fold(RepoPath::root(), |at, name| at.child(name).expect("plain"))
        };
        for name in ["other", "a", "a/b"] {
            store.make_dir(&path(name)).expect("made");
        }
        for name in ["other/kept", "a/one", "a/b/two"] {
            drop(store.create_new(&path(name)).expect("made"));
        }
        rustix::fs::symlink(dir.path().join("other"), dir.path().join("a/link")).expect("linked");
        remove_tree(&store, &path("a")).expect("removed");
        assert!(store.stat(&path("a")).is_err());
        assert!(store.stat(&path("other/kept")).is_ok());
        remove_tree(&store, &path("a")).expect("what is gone is removed");
    }
}
