//! Making and placing names when an answer cannot be believed.
//!
//! A network filesystem may lose the reply to a call that it applied, and make the
//! call again: a create is then answered with EEXIST, a rename with ENOENT, either of
//! them with EIO. So an error of a call that makes a name says nothing yet; what is
//! there does. Under a name that carries a nonce of one's own whatever is there is
//! one's own. A name that others may make, too, is taken only if it is seen.

use std::io;

use super::{DirEntryKind, DraftFile, RepoPath, Store, StoredFile};
use crate::mutation::Rule;
use crate::sabotage;

/// How often a rename or a removal is made of which it is not known whether it was
/// applied.
const TRIES: u32 = 3;

/// Does this answer mean that the call was not applied, and never will be? Every
/// other one leaves that open.
fn is_refusal(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(
            Errno::ROFS
                | Errno::ACCESS
                | Errno::PERM
                | Errno::NAMETOOLONG
                | Errno::XDEV
                | Errno::NOSPC
                | Errno::DQUOT
                | Errno::NOENT
                | Errno::NOTDIR
                | Errno::LOOP
        )
    )
}

/// [`is_refusal`] for a call that makes a name of one's own. After any other answer
/// what is under that name is looked for.
fn is_refused_create(error: &io::Error) -> bool {
    sabotage!(Rule::OwnNamesAreLookedFor => true);
    is_refusal(error)
}

/// [`is_refusal`] for a rename. Of any other answer, ENOENT included, what is there is
/// looked at: its source may be gone because it was applied.
fn is_refused_rename(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::ROFS | Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG | Errno::XDEV)
    )
}

/// [`is_refused_rename`] for a name that others may make, too. After any other answer
/// it is seen who has it.
fn is_refused_placing(error: &io::Error) -> bool {
    sabotage!(Rule::TakenNamesAreSeen => true);
    is_refused_rename(error)
}

/// Is anything at `path`? Asked of its directory if the look-up denies it.
pub(super) fn is_there<S: Store + ?Sized>(store: &S, path: &RepoPath) -> io::Result<bool> {
    match store.stat(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) => is_listed(store, path),
    }
}

/// Does its directory list `path`? A mount may remember that a name was not there, and
/// a listing shows that it is.
fn is_listed<S: Store + ?Sized>(store: &S, path: &RepoPath) -> io::Result<bool> {
    sabotage!(Rule::AbsenceIsListed => Ok(false));
    let (dir, name) = path.split();
    match store.list(&dir) {
        Ok(entries) => Ok(entries.iter().any(|entry| entry.name == name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a file under a name that nobody else uses. Not tried again if it is not
/// there: a first attempt that is applied late would be found by nobody.
pub(super) fn create<S: Store + ?Sized>(
    store: &S,
    path: &RepoPath,
) -> io::Result<Box<dyn StoredFile>> {
    store.create_new(path).or_else(|error| {
        if is_refused_create(&error) {
            return Err(error);
        }
        // Not there, then: it is another error than that something is.
        store.open_writable(path).map_err(|_| unlike_taken(error))
    })
}

/// Makes a directory, or finds it made.
pub(super) fn ensure_dir<S: Store + ?Sized>(store: &S, path: &RepoPath) -> io::Result<()> {
    store.make_dir(path).or_else(|error| {
        if is_refused_create(&error) {
            return Err(error);
        }
        match store.stat(path) {
            Ok(stat) if stat.kind == DirEntryKind::Directory => Ok(()),
            Ok(_) => Err(error),
            Err(_) => Err(unlike_taken(error)),
        }
    })
}

/// What is at a name that somebody wanted to make.
enum Occupant {
    /// The file that was to be there.
    Mine,
    /// Something else.
    Other,
    /// There is no file.
    Nothing,
}

/// Is it `draft` that is at `to`? Told by its inode, which a move does not change.
fn seen<S: Store + ?Sized>(store: &S, draft: &DraftFile, to: &RepoPath) -> io::Result<Occupant> {
    match store.stat(to) {
        Ok(stat) if stat.inode == draft.inode => Ok(Occupant::Mine),
        Ok(_) => Ok(Occupant::Other),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        // Denied by a memory: what is listed there is the draft if that is gone.
        Err(_) if is_there(store, to)? => match is_there(store, &draft.path)? {
            true => Ok(Occupant::Other),
            false => Ok(Occupant::Mine),
        },
        Err(_) => Ok(Occupant::Nothing),
    }
}

/// Moves `draft` to `to` if nothing is there, or, with `over`, in the place of what
/// is. `AlreadyExists` only if `to` was seen and is not the draft. After an error
/// nothing is left of the draft that could still be moved, unless that could not be
/// established either.
pub(super) fn place<S: Store + ?Sized>(
    store: &S,
    draft: &DraftFile,
    to: &RepoPath,
    over: bool,
) -> io::Result<()> {
    let mut last = None;
    for _ in 0..TRIES {
        let answer = match over {
            true => store.rename(&draft.path, to),
            false => store.rename_new(&draft.path, to),
        };
        let Err(error) = answer else { return Ok(()) };
        if is_refused_placing(&error) {
            // Best effort: a draft that stays is doctor's to prove dead.
            let _ = store.unlink(&draft.path);
            return Err(error);
        }
        match seen(store, draft, to)? {
            Occupant::Mine => return Ok(()),
            Occupant::Other if !over => {
                let _ = store.unlink(&draft.path);
                return Err(io::Error::from(rustix::io::Errno::EXIST));
            }
            Occupant::Other | Occupant::Nothing => last = Some(error),
        }
    }
    // Its source is taken away, so that no rename can be applied later.
    let removed = store.unlink(&draft.path);
    let last = last.map_or_else(|| io::Error::other("it was never tried"), unlike_taken);
    match seen(store, draft, to)? {
        Occupant::Mine => Ok(()),
        _ => Err(removed.err().filter(|e| e.kind() != io::ErrorKind::NotFound).unwrap_or(last)),
    }
}

/// Nobody must take an EEXIST for true that was looked into and found to be none.
fn unlike_taken(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => io::Error::from(rustix::io::Errno::IO),
        _ => error,
    }
}

/// What was done, or may have been, although a call failed: it is reported as neither.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub(crate) struct InDoubt {
    what: &'static str,
    source: io::Error,
}

/// The answer of a call after which nobody knows whether all of it lasts. `what` says
/// what is known.
pub fn in_doubt(what: &'static str, source: io::Error) -> io::Error {
    io::Error::new(source.kind(), InDoubt { what, source })
}

/// Makes durable what was done to names in `dir`.
pub(super) fn settle<S: Store + ?Sized>(store: &S, dir: &RepoPath) -> io::Result<()> {
    let done = "it was done, but that may not survive a power cut";
    store.sync_dir(dir).map_err(|error| in_doubt(done, error))
}

/// Removes a file; done if it is gone, no matter who did it.
pub(super) fn remove<S: Store + ?Sized>(store: &S, path: &RepoPath) -> io::Result<()> {
    let mut tries = 1;
    loop {
        match store.unlink(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if is_refusal(&error) || tries == TRIES => return Err(error),
            Err(_) => tries += 1,
            Ok(()) => return Ok(()),
        }
    }
}

/// What became of a file that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is gone, by this call.
    Removed,
    /// It was gone already.
    Gone,
    /// Something else is there by now, and stays.
    Another,
}

/// Removes what is at `path` if it is what is meant. A name cannot be removed for what
/// it stands for, and a process that is paused between a look and the removal would remove
/// what others put there since. So it is moved to `aside`, a name with a nonce of the
/// caller's own, looked at there, and put back if it is another's.
pub(super) fn remove_meant<S: Store + ?Sized>(
    store: &S,
    path: &RepoPath,
    aside: &RepoPath,
    limit: usize,
    is_meant: &dyn Fn(&[u8]) -> bool,
) -> io::Result<Removal> {
    remove_looked_at(store, path, aside, || store.read(aside, limit).map(|seen| is_meant(&seen)))
}

/// As [`Store::read`] says.
pub(super) fn read<S: Store + ?Sized>(
    store: &S,
    path: &RepoPath,
    limit: usize,
) -> io::Result<Vec<u8>> {
    let bytes = store.open(path)?.read_up_to(limit)?;
    if bytes.len() > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{path} is larger than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

/// As [`remove_meant`], of the very file `inode`, whatever is in it.
pub(super) fn remove_inode<S: Store + ?Sized>(
    store: &S,
    path: &RepoPath,
    aside: &RepoPath,
    inode: u64,
) -> io::Result<Removal> {
    remove_looked_at(store, path, aside, || store.inode(aside).map(|seen| seen == inode))
}

fn remove_looked_at<S: Store + ?Sized>(
    store: &S,
    path: &RepoPath,
    aside: &RepoPath,
    look: impl FnOnce() -> io::Result<bool>,
) -> io::Result<Removal> {
    if let Err(error) = store.rename_new(path, aside) {
        if is_refused_rename(&error) {
            return Err(error);
        }
        match is_there(store, aside)? {
            true => {}
            false if error.kind() == io::ErrorKind::NotFound => return Ok(Removal::Gone),
            // It may be applied later, by when nobody looks: this finds out, or gives up.
            false => move_late(store, path, aside, error)?,
        }
    }
    let is_meant = look();
    if matches!(is_meant, Ok(true)) {
        return remove(store, aside).map(|()| Removal::Removed);
    }
    match store.rename_new(aside, path) {
        Ok(()) => {}
        // Somebody wrote it again meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if is_there(store, aside)? => return Err(error),
        Err(_) => {}
    }
    is_meant.map(|_| Removal::Another)
}

fn move_late<S: Store + ?Sized>(
    store: &S,
    path: &RepoPath,
    aside: &RepoPath,
    mut last: io::Error,
) -> io::Result<()> {
    for _ in 1..TRIES {
        match store.rename_new(path, aside) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
        if is_there(store, aside)? {
            return Ok(());
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::PosixStore;

    #[test]
    fn only_the_file_that_is_meant_is_removed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        let path = |name: &str| RepoPath::root().child(name).expect("plain");
        let (at, aside) = (path("it"), path("it.tmp-1"));
        let own = store.create_new(&at).and_then(|file| file.inode()).expect("made");
        store.rename_new(&at, &path("kept")).expect("moved, so that its number is not used again");
        store.create_new(&at).expect("another");
        let removal = store.remove_inode(&at, &aside, own).expect("looked at");
        assert_eq!(removal, Removal::Another);
        assert!(store.stat(&at).is_ok() && store.stat(&aside).is_err(), "put back");
        assert_eq!(store.remove_inode(&path("kept"), &aside, own).expect("it"), Removal::Removed);
        assert_eq!(store.remove_inode(&path("kept"), &aside, own).expect("none"), Removal::Gone);
    }

    #[test]
    fn only_what_is_meant_is_removed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        let path = |name: &str| RepoPath::root().child(name).expect("plain");
        let (at, aside) = (path("it"), path("it.tmp-1"));
        let remove = |meant: &[u8]| {
            store.remove_meant(&at, &aside, 9, &|seen| seen == meant).expect("looked at")
        };
        assert_eq!(remove(b"mine"), Removal::Gone);
        store.write_tmp(&at, b"theirs").expect("written");
        assert_eq!(remove(b"mine"), Removal::Another);
        assert_eq!(store.read(&at, 9).expect("still there"), b"theirs");
        assert_eq!(remove(b"theirs"), Removal::Removed);
        assert!(store.list(&RepoPath::root()).expect("listed").is_empty());
    }

    #[test]
    fn what_cannot_be_looked_at_is_put_back() {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        let path = |name: &str| RepoPath::root().child(name).expect("plain");
        store.write_tmp(&path("it"), b"more than may be read").expect("written");
        assert!(store.remove_meant(&path("it"), &path("it.tmp-1"), 3, &|_| true).is_err());
        assert!(store.stat(&path("it")).is_ok());
    }
}
