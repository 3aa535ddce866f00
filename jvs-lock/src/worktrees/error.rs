//! Why a worktree could not be made, renamed or removed.

use std::fmt;
use std::io;

use jvs_repo::code::{Code, Coded, code_of_io};
use jvs_repo::json::RecordError;
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_repo::store::RepoPath;

use super::unfinished::Doing;
use crate::error::{BirthError, LockError};
use crate::register::ReadError;

/// Why a worktree could not be made, renamed or removed.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorktreeError {
    /// Its lock stands in the way.
    Lock(LockError),
    /// Its register could not be made.
    Birth(BirthError),
    /// Its record could not be read or written.
    Record(RecordError),
    /// Something of that name is there.
    Exists {
        /// The name.
        name: WorktreeName,
        /// What is there.
        what: String,
    },
    /// There is no such worktree.
    NotFound {
        /// The name.
        name: WorktreeName,
    },
    /// It has files, which would be lost.
    NotEmpty {
        /// The name.
        name: WorktreeName,
    },
    /// The first worktree can be neither renamed nor removed.
    IsMain,
    /// Somebody brought it back while it was being removed.
    BroughtBack {
        /// The name.
        name: WorktreeName,
        /// Where its files are, if they could not be put back.
        files: Option<RepoPath>,
    },
    /// It is being renamed or removed, or that was interrupted.
    Underway {
        /// The name.
        name: WorktreeName,
        /// What is being done with it.
        doing: Doing,
    },
    /// Somebody copies the files of a snapshot into it, or was interrupted at that.
    BeingRestored {
        /// The name.
        name: WorktreeName,
    },
    /// The filesystem neither confirmed nor refused a step.
    OutcomeUnknown {
        /// The name.
        name: WorktreeName,
        /// The last answer.
        source: io::Error,
    },
    /// The filesystem failed or refused.
    Io {
        /// Where.
        path: RepoPath,
        /// How.
        source: io::Error,
    },
}

impl fmt::Display for WorktreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorktreeError::Lock(error) => error.fmt(f),
            WorktreeError::Birth(error) => error.fmt(f),
            WorktreeError::Record(error) => error.fmt(f),
            WorktreeError::Exists { name, what } => {
                write!(f, "worktree '{name}' cannot be made: {what}")
            }
            WorktreeError::NotFound { name } => write!(f, "there is no worktree '{name}'"),
            WorktreeError::NotEmpty { name } => {
                write!(f, "worktree '{name}' has files, which would be deleted")
            }
            WorktreeError::IsMain => {
                write!(f, "worktree 'main' is the repository's own and stays where it is")
            }
            WorktreeError::BroughtBack { name, files } => {
                write!(f, "worktree '{name}' was brought back while it was being removed")?;
                match files {
                    Some(files) => write!(f, "; its files are in {files}"),
                    None => Ok(()),
                }
            }
            WorktreeError::Underway { name, doing: Doing::Renaming { to } } => {
                write!(f, "worktree '{name}' is being renamed to '{to}'")
            }
            WorktreeError::Underway { name, doing } => {
                let doing = match doing {
                    Doing::Changing => "committed to all the time",
                    Doing::Making => "being made",
                    _ => "being removed",
                };
                write!(f, "worktree '{name}' is {doing}")
            }
            WorktreeError::BeingRestored { name } => {
                write!(f, "worktree '{name}' is being made from a snapshot")
            }
            WorktreeError::OutcomeUnknown { name, source } => {
                write!(f, "what became of worktree '{name}' cannot be told: {source}")
            }
            WorktreeError::Io { path, source } => write!(f, "{path}: {source}"),
        }
    }
}

impl std::error::Error for WorktreeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WorktreeError::Lock(error) => Some(error),
            WorktreeError::Birth(error) => Some(error),
            WorktreeError::Record(error) => Some(error),
            WorktreeError::Io { source, .. } | WorktreeError::OutcomeUnknown { source, .. } => {
                Some(source)
            }
            _ => None,
        }
    }
}

impl Coded for WorktreeError {
    fn code(&self) -> Code {
        match self {
            WorktreeError::Lock(error) => error.code(),
            WorktreeError::Birth(error) => error.code(),
            WorktreeError::Record(error) => error.code(),
            WorktreeError::Exists { .. } | WorktreeError::NotEmpty { .. } => Code::Exists,
            WorktreeError::BeingRestored { .. } => Code::Exists,
            WorktreeError::Underway { doing: Doing::Changing, .. } => Code::LockConflict,
            WorktreeError::Underway { doing: Doing::Making, .. } => Code::Exists,
            WorktreeError::NotFound { .. } | WorktreeError::Underway { .. } => Code::NotFound,
            WorktreeError::OutcomeUnknown { .. } => Code::OutcomeUnknown,
            WorktreeError::BroughtBack { .. } => Code::FencingMismatch,
            WorktreeError::IsMain => Code::Usage,
            WorktreeError::Io { source, .. } => code_of_io(source),
        }
    }

    fn next(&self) -> Option<Next> {
        Some(match self {
            WorktreeError::Lock(error) => return error.next(),
            WorktreeError::Birth(error) => return error.next(),
            WorktreeError::Record(error) => return error.next(),
            WorktreeError::Exists { .. } => Next::ChooseUnusedName,
            WorktreeError::NotFound { .. } => Next::ListWorktrees,
            WorktreeError::BroughtBack { .. } => Next::SeeWhetherToRemove,
            WorktreeError::NotEmpty { name } => Next::RemoveWithFiles(name.clone()),
            WorktreeError::Underway { name, doing: Doing::Renaming { to } } => {
                Next::FinishRename(name.clone(), to.clone())
            }
            WorktreeError::Underway { doing: Doing::Changing, .. } => {
                "let its writers come to an end, then run the same command again".into()
            }
            WorktreeError::Underway { .. } | WorktreeError::BeingRestored { .. } => {
                Next::RepairInterrupted
            }
            WorktreeError::OutcomeUnknown { .. } => Next::RepairOnceMounted,
            WorktreeError::IsMain => Next::CreateWorktree,
            WorktreeError::Io { source, .. } => Next::after_io(source),
        })
    }

    fn details(&self) -> Option<serde_json::Value> {
        match self {
            WorktreeError::Lock(error) => error.details(),
            _ => None,
        }
    }
}

macro_rules! from_inner {
    ($($variant:ident $inner:ty;)*) => {
        $(impl From<$inner> for WorktreeError {
            fn from(error: $inner) -> Self {
                WorktreeError::$variant(error)
            }
        })*
    };
}
from_inner! {
    Lock LockError;
    Birth BirthError;
    Record RecordError;
}

impl From<ReadError> for WorktreeError {
    fn from(error: ReadError) -> Self {
        WorktreeError::Lock(error.into())
    }
}

pub(super) fn io_at(path: &RepoPath) -> impl FnOnce(io::Error) -> WorktreeError + use<> {
    let path = path.clone();
    move |source| WorktreeError::Io { path, source }
}

/// What is told if the world could not be put back as it was.
pub(super) fn unknown(name: &WorktreeName) -> impl FnOnce(WorktreeError) -> WorktreeError + use<> {
    let name = name.clone();
    |error| match error {
        error @ WorktreeError::OutcomeUnknown { .. } => error,
        WorktreeError::Io { source, .. } => WorktreeError::OutcomeUnknown { name, source },
        error => {
            let source = io::Error::other(error.to_string());
            WorktreeError::OutcomeUnknown { name, source }
        }
    }
}

pub(super) fn exists(name: &WorktreeName, what: &str) -> WorktreeError {
    WorktreeError::Exists { name: name.clone(), what: what.to_owned() }
}
