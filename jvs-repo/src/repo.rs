//! An open repository: its format is known, its identity read, its files
//! reachable through the store.

use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::code::{Code, Coded, Layer, Layered, code_of_io};
use crate::config::{self, Config, ConfigError};
use crate::entropy::Entropy;
use crate::json::RecordError;
use crate::layout;
use crate::name::{ShownName, WorktreeName};
use crate::next::Next;
use crate::record::format::{FormatError, FormatRecord};
use crate::record::worktree::{self, WorktreeListing, WorktreeRecord};
use crate::store::{DirEntryKind, FileMemory, PosixStore, Store, WhenAsked};

/// A repository whose format this version understands.
#[derive(Debug)]
pub struct Repo {
    store: PosixStore,
    format: FormatRecord,
}

impl Repo {
    /// Opens the repository whose root is `root`.
    pub fn open(root: &Path) -> Result<Repo, OpenError> {
        Repo::reached(root, root)
    }

    /// The same by another way to the root, such as one from the current directory.
    pub fn reached(reach: &Path, root: &Path) -> Result<Repo, OpenError> {
        Repo::reached_with(reach, root, &|| None, WhenAsked::Now)
    }

    /// The same for a command of the lock. What `memory` knows of the repository's small files
    /// is believed as long as they are the same; it is asked for where each look at one is a
    /// request over a network.
    pub fn reached_with(
        reach: &Path,
        root: &Path,
        memory: &dyn Fn() -> Option<Box<dyn FileMemory>>,
        asked: WhenAsked,
    ) -> Result<Repo, OpenError> {
        let at = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                OpenError::NotARepository { root: root.to_owned() }
            }
            _ => OpenError::Io { path: root.to_owned(), source },
        };
        let store = PosixStore::reached(reach, root).map_err(at)?;
        store.remember_in(memory, asked);
        match FormatRecord::read(&store)? {
            Some(format) => Ok(Repo { store, format }),
            // Which of the two is missing makes all the difference to the user.
            None => match store.stat(&layout::control_dir()) {
                Ok(_) => {
                    Err(FormatError::from(RecordError::invalid(&layout::format(), "it is missing"))
                        .into())
                }
                Err(source) => Err(at(source)),
            },
        }
    }

    /// The filesystem below the root.
    pub fn store(&self) -> &PosixStore {
        &self.store
    }

    /// The root, as it was named when the repository was opened.
    pub fn root(&self) -> &Path {
        self.store.root_path()
    }

    /// Which repository this is, wherever it is mounted.
    pub fn id(&self) -> Uuid {
        self.format.repo_id()
    }

    /// The policy in force. No file, or one of comments only, is all defaults.
    pub fn config(&self) -> Result<Config, ConfigError> {
        Config::read(&self.store)
    }

    /// Sets one key of the configuration and returns what is then in force.
    /// Comments and all other keys stay; nothing is written unless the whole
    /// result is valid.
    pub fn set_config(
        &self,
        key: &str,
        value: &str,
        entropy: &dyn Entropy,
    ) -> Result<Config, ConfigError> {
        config::change(&self.store, key, value, entropy)
    }

    /// A worktree's record; `None` if there is no such worktree.
    pub fn worktree(&self, name: &WorktreeName) -> Result<Option<WorktreeRecord>, RecordError> {
        worktree::read(&self.store, name)
    }

    /// All worktrees.
    pub fn worktrees(&self) -> Result<WorktreeListing, RecordError> {
        worktree::list(&self.store)
    }

    /// Where a worktree's payload is: a directory and no symlink.
    pub fn payload(&self, name: &WorktreeName) -> Result<PathBuf, PayloadError> {
        let path = layout::payload(name);
        let absolute = self.store.absolute(&path);
        match self.store.stat(&path) {
            Ok(stat) if stat.kind == DirEntryKind::Directory => Ok(absolute),
            Ok(stat) => Err(PayloadError::NotADirectory {
                worktree: name.clone(),
                path: absolute,
                symlink: stat.kind == DirEntryKind::Symlink,
            }),
            Err(source) => Err(PayloadError::Io { worktree: name.clone(), path: absolute, source }),
        }
    }
}

/// Why a repository could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none at this root.
    #[error("{} is not a repository", root.display())]
    NotARepository {
        /// Where it was looked for.
        root: PathBuf,
    },
    /// Its format is another version's or cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The root could not be opened.
    #[error("{}: {source}", path.display())]
    Io {
        /// What could not be opened.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Layered for OpenError {
    fn layer(&self) -> Layer<'_> {
        match self {
            OpenError::NotARepository { .. } => Layer::Own(Code::NotARepository),
            OpenError::Format(error) => Layer::Below(error),
            OpenError::Io { source, .. } => Layer::Own(code_of_io(source)),
        }
    }

    fn own_next(&self) -> Option<Next> {
        match self {
            OpenError::NotARepository { root } => Some(Next::Init(root.clone())),
            OpenError::Format(_) => None,
            OpenError::Io { path, .. } => Some(
                format!("`ls -ld {}` shows who may read it", ShownName::new(path).typed()).into(),
            ),
        }
    }
}

/// Why a worktree's payload cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// Something else is in its place.
    #[error(
        "{}, where worktree {worktree} should be, is {}",
        path.display(),
        if *symlink { "a symlink" } else { "not a directory" }
    )]
    NotADirectory {
        /// Whose payload it should be.
        worktree: WorktreeName,
        /// Where it should be.
        path: PathBuf,
        /// Is it a symlink?
        symlink: bool,
    },
    /// It cannot be looked at.
    #[error("{} of worktree {worktree}: {source}", path.display())]
    Io {
        /// Whose payload it is.
        worktree: WorktreeName,
        /// Where it should be.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Coded for PayloadError {
    fn code(&self) -> Code {
        match self {
            PayloadError::NotADirectory { symlink: true, .. } => Code::PathEscape,
            PayloadError::NotADirectory { .. } => Code::Io,
            PayloadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Code::NotFound
            }
            PayloadError::Io { source, .. } => code_of_io(source),
        }
    }

    fn next(&self) -> Option<Next> {
        Some(Next::AskDoctorWhatIsMissing)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::clock::WallMs;
    use crate::entropy::SystemEntropy;
    use crate::id::OpNonce;
    use crate::record::worktree::Isolation;
    use crate::store::RepoPath;

    const OP: OpNonce = OpNonce([1; 8]);

    /// Only what opening needs; how a repository is really born is elsewhere.
    fn repository() -> (tempfile::TempDir, PosixStore) {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        store.make_dir(&layout::control_dir()).expect("mkdir");
        store.make_dir(&layout::worktree_records()).expect("mkdir");
        store.make_dir(&layout::payload(&WorktreeName::main())).expect("mkdir");
        write(&store, &layout::format(), &FormatRecord::fresh(&SystemEntropy).to_bytes());
        (dir, store)
    }

    fn write(store: &PosixStore, path: &RepoPath, bytes: &[u8]) {
        let tmp = RepoPath::root().child("tmp").expect("plain");
        store.write_over(&tmp, path, bytes).expect("written");
    }

    fn refusal(root: &Path) -> OpenError {
        Repo::open(root).expect_err("refused")
    }

    #[test]
    fn a_repository_opens_and_lists_its_worktrees() {
        let (dir, store) = repository();
        let main = WorktreeName::main();
        let record = WorktreeRecord::new(Isolation::Exclusive, WallMs(7));
        worktree::create(&store, &main, &record, OP).expect("created");
        let repo = Repo::open(dir.path()).expect("opens");
        assert_eq!(repo.root(), dir.path());
        assert_eq!(repo.worktree(&main).expect("read"), Some(record));
        assert_eq!(repo.worktrees().expect("list").worktrees.len(), 1);
        assert_eq!(repo.payload(&main).expect("there"), dir.path().join(layout::MAIN_DIR));
        assert_eq!(repo.id(), Repo::open(dir.path()).expect("again").id());
    }

    #[test]
    fn what_is_no_repository_is_called_so() {
        let dir = tempfile::tempdir().expect("tempdir");
        for root in [dir.path().to_owned(), dir.path().join("absent")] {
            let error = refusal(&root);
            assert_eq!(error.code(), Code::NotARepository);
            assert_eq!(error.next(), Some(Next::Init(root)));
        }
        PosixStore::open(dir.path())
            .and_then(|store| store.make_dir(&layout::control_dir()))
            .expect("mkdir");
        let error = refusal(dir.path());
        assert_eq!(error.code(), Code::RecordInvalid, "a control directory without format");
        assert!(error.to_string().contains("missing"), "{error}");
    }

    #[test]
    fn a_newer_format_is_refused_before_anything_else_is_read() {
        let (dir, store) = repository();
        write(&store, &layout::format(), br#"{"format":99}"#);
        let error = refusal(dir.path());
        assert_eq!(error.code(), Code::FormatUnsupported);
        assert_eq!(error.next(), Some(Next::UseVersionFor(99)));
    }

    #[test]
    fn symlinks_in_the_control_plane_are_refused() {
        let (real, _store) = repository();
        let dir = tempfile::tempdir().expect("tempdir");
        symlink(real.path().join(layout::CONTROL_DIR), dir.path().join(layout::CONTROL_DIR))
            .expect("symlink");
        assert_eq!(refusal(dir.path()).code(), Code::PathEscape);

        let (dir, store) = repository();
        store.remove_dir(&layout::worktree_records()).expect("rmdir");
        symlink(real.path(), dir.path().join(layout::worktree_records().as_str()))
            .expect("symlink");
        let repo = Repo::open(dir.path()).expect("opens");
        assert_eq!(repo.worktrees().expect_err("refused").code(), Code::PathEscape);
        let main = WorktreeName::main();
        assert_eq!(repo.worktree(&main).expect_err("refused").code(), Code::PathEscape);

        symlink(real.path(), dir.path().join(layout::locks().as_str())).expect("symlink");
        let register = repo.store().first_batch(&layout::register(&main)).expect_err("refused");
        assert_eq!(code_of_io(&register), Code::PathEscape);
    }

    #[test]
    fn a_symlinked_or_missing_payload_is_refused() {
        let (dir, store) = repository();
        let main = WorktreeName::main();
        store.remove_dir(&layout::payload(&main)).expect("rmdir");
        let repo = Repo::open(dir.path()).expect("opens");
        assert_eq!(repo.payload(&main).expect_err("missing").code(), Code::NotFound);
        symlink("/", dir.path().join(layout::MAIN_DIR)).expect("symlink");
        assert_eq!(repo.payload(&main).expect_err("symlink").code(), Code::PathEscape);
    }

    #[test]
    fn setting_a_key_writes_a_valid_file_or_nothing() {
        let (dir, store) = repository();
        let repo = Repo::open(dir.path()).expect("opens");
        assert_eq!(repo.config().expect("absent"), Config::default());
        write(&store, &layout::config(), b"# ours\n");
        let config = repo.set_config("lock.steal_grace_ms", "5", &SystemEntropy).expect("set");
        assert_eq!(config.lock.steal_grace_ms, 5);
        assert_eq!(repo.config().expect("valid"), config);
        let before = store.read(&layout::config(), 1000).expect("read");
        assert!(before.starts_with(b"# ours\n"));
        repo.set_config("lock.renew_interval_ms", "30000", &SystemEntropy).expect_err("too long");
        assert_eq!(store.read(&layout::config(), 1000).expect("read"), before);
        assert_eq!(store.list(&layout::control_dir()).expect("list").len(), 3, "no tmp file left");
    }
}
