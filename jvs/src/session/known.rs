//! The sessions that have private files on this machine, and how one is forgotten.

use std::io;
use std::path::PathBuf;

use jvs_lock::session::SessionId;
use jvs_repo::entropy::Entropy;
use jvs_repo::id::{HolderNonce, OpNonce};
use jvs_repo::layout;
use jvs_repo::store::{PosixStore, RepoPath, Store, remove_tree};

use super::secret;

/// The end of the name of the file that says which session the others are of.
pub(super) const ID: &str = "-id";
/// The directory of notes.
const NOTES: &str = "notes";
/// Longest id, and a little more to notice that there is more.
const ID_READ_MAX: usize = 256;
/// Longest note that is shown.
const NOTE_READ_MAX: usize = 4096;
/// The private directories of this user.
pub(crate) struct Files {
    /// Secrets, notes, who keeps what, signs of life.
    pub(crate) own: PosixStore,
    /// Where they are.
    pub(crate) place: PathBuf,
    /// What outlives the boot: holds, and who was which session; `None` if there is
    /// nothing of it yet.
    pub(crate) holds: Option<PosixStore>,
}

/// A session with files in the private directory.
pub(crate) struct KnownSession {
    /// What the names of its files begin with.
    pub(crate) file: String,
    /// Its id, if that was written down.
    pub(crate) id: Option<SessionId>,
}

fn path(name: &str) -> io::Result<RepoPath> {
    RepoPath::root().child(name)
}

fn names(private: &PosixStore, dir: &RepoPath) -> io::Result<Vec<String>> {
    let entries = match private.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names: Vec<String> =
        entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// All of them.
pub(crate) fn all(private: &PosixStore) -> io::Result<Vec<KnownSession>> {
    let is_secret = |name: &&String| name.parse::<HolderNonce>().is_ok();
    let names = names(private, &RepoPath::root())?;
    let read = |file: &String| KnownSession { file: file.clone(), id: id_of(private, file) };
    Ok(names.iter().filter(is_secret).map(read).collect())
}

/// The id that was written down for the secret in `file`, if it is that one's.
fn id_of(private: &PosixStore, file: &str) -> Option<SessionId> {
    let bytes = private.read(&path(&format!("{file}{ID}")).ok()?, ID_READ_MAX).ok()?;
    let id: SessionId = std::str::from_utf8(&bytes).ok()?.parse().ok()?;
    (secret::file_name(&id) == file).then_some(id)
}

/// The names of the holds below a holder: which repository, which worktree.
pub(crate) fn holds(holds: &PosixStore, holder: HolderNonce) -> io::Result<Vec<String>> {
    names(holds, &layout::holds_of(holder))
}

/// All who were the session `family` on this machine, on this boot or before.
pub(crate) fn holders(holds: &PosixStore, family: &str) -> io::Result<Vec<HolderNonce>> {
    let names = names(holds, &layout::holders(family))?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

/// When something of the session was last changed, in milliseconds after 1970.
pub(crate) fn changed_ms(files: &Files, file: &str, holder: Option<HolderNonce>) -> u64 {
    let changed = |store: &PosixStore, path: RepoPath| Some(store.stat(&path).ok()?.mtime_ns);
    let own = ["", super::life::SUFFIX].map(|end| path(&format!("{file}{end}")).ok());
    let own = own.into_iter().flatten().filter_map(|path| changed(&files.own, path));
    let below = |(store, holder): (&PosixStore, HolderNonce)| {
        let dir = layout::holds_of(holder);
        let names = holds(store, holder).unwrap_or_default();
        let paths = names.iter().filter_map(|name| Some(layout::hold_name(&dir.child(name).ok()?)));
        paths.filter_map(|path| changed(store, path)).max()
    };
    let holds = files.holds.as_ref().zip(holder).and_then(below);
    u64::try_from(own.chain(holds).max().unwrap_or(0) / 1_000_000).unwrap_or(0)
}

/// What waits to be told to the session: in which repository, and the text.
pub(crate) fn notes(private: &PosixStore, file: &str) -> io::Result<Vec<(String, String)>> {
    let dir = path(NOTES)?;
    let mut notes = Vec::new();
    for name in names(private, &dir)? {
        let Some(repo) = name.strip_prefix(file).and_then(|rest| rest.strip_prefix('.')) else {
            continue;
        };
        let bytes = private.read(&dir.child(&name)?, NOTE_READ_MAX).unwrap_or_default();
        notes.push((repo.to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    Ok(notes)
}

/// A session whose secret was put out of the way: a process that comes now under its id is
/// another holder, and does not touch what is being removed.
pub(crate) struct Aside<'s> {
    private: &'s PosixStore,
    file: &'s str,
    secret: RepoPath,
    moved: RepoPath,
}

/// Puts the secret in `file` out of the way.
pub(crate) fn set_aside<'s>(
    private: &'s PosixStore,
    file: &'s str,
    entropy: &dyn Entropy,
) -> io::Result<Aside<'s>> {
    // As the candidates for a secret are called, so that nobody takes it for one.
    let moved = path(&format!("{file}.{}", OpNonce::random(entropy)))?;
    let secret = path(file)?;
    private.rename(&secret, &moved)?;
    Ok(Aside { private, file, secret, moved })
}

impl Aside<'_> {
    /// Somebody who had read it came in between: it is the session's again, unless
    /// another has been made since.
    pub(crate) fn put_back(self) -> io::Result<()> {
        match self.private.rename_new(&self.moved, &self.secret) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.private.unlink(&self.moved)
            }
            other => other,
        }
    }

    /// Removes all that there is of it, what it remembers of before this boot included,
    /// and its secret last.
    pub(crate) fn remove(
        self,
        holds: Option<&PosixStore>,
        family: &str,
        holder: Option<HolderNonce>,
    ) -> io::Result<()> {
        let Aside { private, file, .. } = self;
        if let Some(holds) = holds {
            for holder in holders(holds, family)?.into_iter().chain(holder) {
                remove_tree(holds, &layout::holds_of(holder))?;
            }
            remove_tree(holds, &layout::holders(family))?;
        }
        let notes = path(NOTES)?;
        for name in names(private, &notes)? {
            if name.strip_prefix(file).is_some_and(|rest| rest.starts_with('.')) {
                private.remove(&notes.child(&name)?)?;
            }
        }
        // Gone with its last note.
        let _ = private.remove_dir(&notes);
        for name in names(private, &RepoPath::root())? {
            if name.strip_prefix(file).is_some_and(|rest| rest.starts_with('-')) {
                private.remove(&path(&name)?)?;
            }
        }
        private.remove(&self.moved)
    }
}
