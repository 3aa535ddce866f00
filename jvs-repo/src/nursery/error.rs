//! Why no repository was made. Whatever the reason, the directory is as it was,
//! except where the error says otherwise.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::code::{Code, Coded, code_of_io};
use crate::discover::DiscoverError;
use crate::next::Next;
use crate::probe::{ProbeError, UnsafeFilesystem};
use crate::repo::OpenError;

/// Why no repository was made.
#[derive(Debug)]
#[non_exhaustive]
pub enum InitError {
    /// There is one already.
    AlreadyARepository {
        /// Where.
        root: PathBuf,
    },
    /// It would be inside another one.
    Inside {
        /// The one that was to be made.
        root: PathBuf,
        /// The other.
        outer: PathBuf,
    },
    /// Another one would be inside it.
    Contains {
        /// The one that was to be made.
        root: PathBuf,
        /// The other.
        inner: PathBuf,
    },
    /// There are files, and nobody said to adopt them.
    NotEmpty {
        /// Where.
        root: PathBuf,
    },
    /// Something that is no directory is there.
    NotADirectory {
        /// Where.
        root: PathBuf,
    },
    /// An earlier attempt was interrupted.
    Unfinished {
        /// Where.
        root: PathBuf,
    },
    /// Another process is making one here right now.
    UnderWay {
        /// Where.
        root: PathBuf,
    },
    /// The root directory of the system cannot be adopted.
    IsTheWholeSystem,
    /// A control directory that is a symlink, or a directory above that cannot
    /// be looked at.
    Surroundings(DiscoverError),
    /// The filesystem does not keep its promises.
    Unsafe(UnsafeFilesystem),
    /// Whether it keeps them could not be found out.
    Probe(ProbeError),
    /// The filesystem failed or refused.
    Io {
        /// Where.
        root: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// How.
        source: io::Error,
    },
    /// It failed, and then so did putting things back.
    Stranded {
        /// Where.
        root: PathBuf,
        /// What failed first.
        cause: io::Error,
        /// What kept us from putting things back.
        obstacle: io::Error,
    },
    /// It was made, but then could not be opened.
    Open(OpenError),
}

impl InitError {
    pub(super) fn io(root: &Path, doing: &'static str, source: io::Error) -> Self {
        InitError::Io { root: root.to_owned(), doing, source }
    }
}

macro_rules! from_inner {
    ($($variant:ident $inner:ty;)*) => {
        $(impl From<$inner> for InitError {
            fn from(error: $inner) -> Self {
                InitError::$variant(error)
            }
        })*
    };
}
from_inner! {
    Surroundings DiscoverError;
    Unsafe UnsafeFilesystem;
    Probe ProbeError;
    Open OpenError;
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitError::AlreadyARepository { root } => {
                write!(f, "{} is a repository already", root.display())
            }
            InitError::Inside { root, outer } => write!(
                f,
                "{} is inside the repository {}; one repository cannot be inside another",
                root.display(),
                outer.display()
            ),
            InitError::Contains { root, inner } => write!(
                f,
                "{} contains the repository {}; one repository cannot be inside another",
                root.display(),
                inner.display()
            ),
            InitError::NotEmpty { root } => write!(f, "{} is not empty", root.display()),
            InitError::NotADirectory { root } => {
                write!(f, "{} is there and is not a directory", root.display())
            }
            InitError::Unfinished { root } => {
                write!(f, "an earlier `jvs init` in {} was interrupted", root.display())
            }
            InitError::UnderWay { root } => {
                write!(f, "another `jvs init` is at work in {}", root.display())
            }
            InitError::IsTheWholeSystem => {
                write!(f, "the root directory of the system cannot be adopted")
            }
            InitError::Surroundings(error) => error.fmt(f),
            InitError::Unsafe(error) => error.fmt(f),
            InitError::Probe(error) => error.fmt(f),
            InitError::Io { root, doing, source } => {
                write!(f, "{}: cannot {doing}: {source}", root.display())
            }
            InitError::Stranded { root, cause, obstacle } => write!(
                f,
                "{}: cannot put the repository into place: {cause}; and then what was moved could \
                 not be moved back: {obstacle}; nothing is lost",
                root.display()
            ),
            InitError::Open(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            InitError::Io { source, .. } => Some(source),
            InitError::Stranded { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

impl Coded for InitError {
    fn code(&self) -> Code {
        match self {
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
            InitError::Surroundings(DiscoverError::Io { .. }) => Code::Io,
            InitError::Surroundings(error) => error.code(),
            InitError::Unsafe(error) => error.code(),
            InitError::Probe(error) => error.code(),
            InitError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Code::Exists
            }
            InitError::Io { source, .. } => code_of_io(source),
            InitError::Stranded { .. } => Code::Io,
            InitError::Open(error) => error.code(),
        }
    }

    fn next(&self) -> Option<Next> {
        Some(match self {
            InitError::AlreadyARepository { root } => Next::SeeRepository(root.clone()),
            InitError::Inside { outer, .. } => Next::CreateWorktreeOf(outer.clone()),
            InitError::Contains { .. } => Next::InitElsewhere("directory"),
            InitError::NotEmpty { root } => Next::Adopt(root.clone()),
            InitError::NotADirectory { .. } | InitError::IsTheWholeSystem => {
                Next::InitElsewhere("path")
            }
            InitError::Unfinished { root } | InitError::Stranded { root, .. } => {
                Next::FinishInit(root.clone())
            }
            InitError::UnderWay { root } => Next::AwaitInit(root.clone()),
            InitError::Surroundings(error) => return error.next(),
            InitError::Unsafe(error) => return error.next(),
            InitError::Probe(error) => return error.next(),
            InitError::Io { root, source, .. } => next_after_io(root, source).into(),
            InitError::Open(error) => return error.next(),
        })
    }

    fn details(&self) -> Option<serde_json::Value> {
        match self {
            InitError::Unsafe(error) => error.details(),
            InitError::Open(error) => error.details(),
            _ => None,
        }
    }
}

fn next_after_io(root: &Path, source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::NotFound => {
            let parent = root.parent().filter(|parent| *parent != Path::new(""));
            format!(
                "make the directory that it is to be in: mkdir -p {}",
                parent.unwrap_or(root).display()
            )
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("free some space: df -h {}", root.display())
        }
        io::ErrorKind::AlreadyExists => {
            format!("somebody else made it meanwhile: ls -la {}", root.display())
        }
        io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices => {
            format!("what is mounted inside cannot be adopted; see: findmnt -R {}", root.display())
        }
        _ => format!("see who may write there: ls -ld {}", root.display()),
    }
}
