//! Why no repository was made. Whatever the reason, the directory is as it was,
//! except where the error says otherwise.

use std::io;
use std::path::{Path, PathBuf};

use crate::code::{Code, Coded, Layer, Layered, code_of_io};
use crate::discover::DiscoverError;
use crate::name::ShownName;
use crate::next::Next;
use crate::probe::{ProbeError, UnsafeFilesystem};
use crate::repo::OpenError;

/// Why no repository was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// There is one already.
    #[error("{} is already a repository", root.display())]
    AlreadyARepository {
        /// The directory.
        root: PathBuf,
    },
    /// It would be inside another one.
    #[error(
        "{} is inside the repository {}; one repository cannot be inside another",
        root.display(),
        outer.display()
    )]
    Inside {
        /// The one that was to be made.
        root: PathBuf,
        /// The other.
        outer: PathBuf,
    },
    /// Another one would be inside it.
    #[error(
        "{} contains the repository {}; one repository cannot be inside another",
        root.display(),
        inner.display()
    )]
    Contains {
        /// The one that was to be made.
        root: PathBuf,
        /// The other.
        inner: PathBuf,
    },
    /// There are files, and nobody said to adopt them.
    #[error("{} is not empty{}", root.display(), if *git { ", and git has its history in it" } else { "" })]
    NotEmpty {
        /// The directory.
        root: PathBuf,
        /// Is one of them git's own?
        git: bool,
    },
    /// Something that is no directory is there.
    #[error("{} exists and is not a directory", root.display())]
    NotADirectory {
        /// The directory.
        root: PathBuf,
    },
    /// An earlier attempt was interrupted.
    #[error("an earlier `jvs init` in {} was interrupted", root.display())]
    Unfinished {
        /// The directory.
        root: PathBuf,
    },
    /// Another process is making one here right now.
    #[error("another `jvs init` is running in {}", root.display())]
    UnderWay {
        /// The directory.
        root: PathBuf,
    },
    /// The root directory of the system cannot be adopted.
    #[error("the root directory of the system cannot be adopted")]
    IsTheWholeSystem,
    /// A control directory that is a symlink, or a directory above that cannot
    /// be looked at.
    #[error(transparent)]
    Surroundings(#[from] DiscoverError),
    /// The filesystem does not keep its promises.
    #[error(transparent)]
    Unsafe(#[from] UnsafeFilesystem),
    /// Whether it keeps them could not be found out.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The filesystem failed or refused.
    #[error("{}: cannot {doing}: {source}", root.display())]
    Io {
        /// The directory.
        root: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// It failed, and then so did putting things back.
    #[error(
        "{}: cannot put the repository into place: {cause}; and then what was moved could not be \
         moved back: {obstacle}; nothing is lost",
        root.display()
    )]
    Stranded {
        /// The directory.
        root: PathBuf,
        /// What failed first.
        #[source]
        cause: io::Error,
        /// What kept us from putting things back.
        obstacle: io::Error,
    },
    /// It was made, but then could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl InitError {
    pub(super) fn io(root: &Path, doing: &'static str, source: io::Error) -> Self {
        InitError::Io { root: root.to_owned(), doing, source }
    }
}

impl Layered for InitError {
    fn layer(&self) -> Layer<'_> {
        Layer::Own(match self {
            InitError::AlreadyARepository { .. }
            | InitError::Inside { .. }
            | InitError::Contains { .. }
            | InitError::NotEmpty { .. }
            | InitError::NotADirectory { .. }
            | InitError::Unfinished { .. }
            | InitError::UnderWay { .. }
            | InitError::IsTheWholeSystem => Code::Exists,
            // Nothing to be found above is no error for init; not being able
            // to look is.
            InitError::Surroundings(DiscoverError::Io { source, .. }) => code_of_io(source),
            InitError::Surroundings(error) => return Layer::Below(error),
            InitError::Unsafe(error) => return Layer::Below(error),
            InitError::Probe(error) => return Layer::Below(error),
            InitError::Open(error) => return Layer::Below(error),
            InitError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Code::Exists
            }
            InitError::Io { source, .. } => code_of_io(source),
            InitError::Stranded { .. } => Code::Io,
        })
    }

    fn own_next(&self) -> Option<Next> {
        Some(match self {
            InitError::AlreadyARepository { root } => Next::SeeRepository(root.clone()),
            InitError::Inside { outer, .. } => Next::CreateWorktreeOf(outer.clone()),
            InitError::Contains { .. } => Next::InitElsewhere("directory"),
            InitError::NotEmpty { root, git: false } => Next::Adopt(root.clone()),
            InitError::NotEmpty { root, git: true } => Next::AdoptWithGit(root.clone()),
            InitError::NotADirectory { .. } | InitError::IsTheWholeSystem => {
                Next::InitElsewhere("path")
            }
            InitError::Unfinished { root } | InitError::Stranded { root, .. } => {
                Next::FinishInit(root.clone())
            }
            InitError::UnderWay { root } => Next::AwaitInit(root.clone()),
            InitError::Surroundings(error) => return error.next(),
            InitError::Unsafe(_) | InitError::Probe(_) | InitError::Open(_) => return None,
            // Where there is a directory to make it in, that is no place for one.
            InitError::Io { doing, source, .. }
                if source.kind() == io::ErrorKind::NotFound && *doing != FIND_PARENT =>
            {
                Next::InitElsewhere("path")
            }
            InitError::Io { root, source, .. } => next_after_io(root, source),
        })
    }
}

/// What is done first, to the directory that a repository is to be in.
pub(super) const FIND_PARENT: &str = "find the directory that it is to be in";

fn next_after_io(root: &Path, source: &io::Error) -> Next {
    let typed = ShownName::new(root).typed();
    let words = match source.kind() {
        io::ErrorKind::NotFound => {
            let parent = root.parent().filter(|parent| *parent != Path::new(""));
            format!(
                "make the directory that it is to be in: mkdir -p {}",
                ShownName::new(parent.unwrap_or(root)).typed()
            )
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            return Next::FreeSpace(Some(root.to_owned()));
        }
        io::ErrorKind::AlreadyExists => {
            format!("somebody else made it meanwhile: ls -la {typed}")
        }
        io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices => {
            format!("what is mounted inside cannot be adopted; see: findmnt -R {typed}")
        }
        _ => format!("see who may write there: ls -ld {typed}"),
    };
    words.into()
}
