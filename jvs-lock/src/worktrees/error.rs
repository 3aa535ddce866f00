//! Why a worktree could not be made, renamed or removed.

use std::io;

use jvs_repo::code::{Code, Coded, Layer, Layered, code_of_io};
use jvs_repo::json::RecordError;
use jvs_repo::name::{NameError, WorktreeName};
use jvs_repo::next::Next;
use jvs_repo::store::RepoPath;

use super::unfinished::Doing;
use crate::error::{BirthError, OfRegister, RegisterError, TakeOverError};
use crate::register::ReadError;

/// Why a worktree could not be made, renamed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorktreeError {
    /// No new worktree may be called so.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Its lock stands in the way.
    #[error(transparent)]
    Lock(#[from] TakeOverError),
    /// Its register could not be made.
    #[error(transparent)]
    Birth(#[from] BirthError),
    /// Its record could not be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Something of that name is there.
    #[error("worktree '{name}' cannot be created: {what}")]
    Exists {
        /// The name.
        name: WorktreeName,
        /// What is there.
        what: String,
    },
    /// There is no such worktree.
    #[error("there is no worktree '{name}'")]
    NotFound {
        /// The name.
        name: WorktreeName,
    },
    /// It has files, which would be lost.
    #[error("worktree '{name}' has files, which would be deleted")]
    NotEmpty {
        /// The name.
        name: WorktreeName,
    },
    /// The first worktree can be neither renamed nor removed.
    #[error("worktree 'main' is the repository's own and stays where it is")]
    IsMain,
    /// Somebody brought it back while it was being removed.
    #[error("worktree '{name}' was brought back while it was being removed{}", files_in(files.as_ref()))]
    BroughtBack {
        /// The name.
        name: WorktreeName,
        /// Where its files are, if they could not be put back.
        files: Option<RepoPath>,
    },
    /// It is being renamed or removed, or that was interrupted.
    #[error("worktree '{name}' is {}", being(doing))]
    Underway {
        /// The name.
        name: WorktreeName,
        /// What is being done with it.
        doing: Doing,
    },
    /// Somebody copies the files of a snapshot into it, or was interrupted at that.
    #[error("worktree '{name}' is being created from a snapshot")]
    BeingRestored {
        /// The name.
        name: WorktreeName,
    },
    /// The filesystem neither confirmed nor refused a step.
    #[error("the state of worktree '{name}' is unknown: {source}")]
    OutcomeUnknown {
        /// The name.
        name: WorktreeName,
        /// The last answer.
        source: io::Error,
    },
    /// The filesystem failed or refused.
    #[error("{path}: {source}")]
    Io {
        /// The path concerned.
        path: RepoPath,
        /// The system's answer.
        source: io::Error,
    },
}

fn being(doing: &Doing) -> String {
    match doing {
        Doing::Renaming { to } => format!("being renamed to '{to}'"),
        Doing::Changing => "being committed to continuously".into(),
        Doing::Making => "being made".into(),
        Doing::Removing => "being removed".into(),
    }
}

fn files_in(files: Option<&RepoPath>) -> String {
    files.map(|files| format!("; its files are in {files}")).unwrap_or_default()
}

impl Layered for WorktreeError {
    fn layer(&self) -> Layer<'_> {
        Layer::Own(match self {
            WorktreeError::Name(error) => return Layer::Below(error),
            WorktreeError::Lock(error) => return Layer::Below(error),
            WorktreeError::Birth(error) => return Layer::Below(error),
            WorktreeError::Record(error) => return Layer::Below(error),
            WorktreeError::Exists { .. } | WorktreeError::NotEmpty { .. } => Code::Exists,
            WorktreeError::BeingRestored { .. } => Code::Exists,
            WorktreeError::Underway { doing: Doing::Changing, .. } => Code::LockConflict,
            WorktreeError::Underway { doing: Doing::Making, .. } => Code::Exists,
            WorktreeError::NotFound { .. } | WorktreeError::Underway { .. } => Code::NotFound,
            WorktreeError::OutcomeUnknown { .. } => Code::OutcomeUnknown,
            WorktreeError::BroughtBack { .. } => Code::FencingMismatch,
            WorktreeError::IsMain => Code::Usage,
            WorktreeError::Io { source, .. } => code_of_io(source),
        })
    }

    fn own_next(&self) -> Option<Next> {
        Some(match self {
            WorktreeError::Name(_)
            | WorktreeError::Lock(_)
            | WorktreeError::Birth(_)
            | WorktreeError::Record(_) => return None,
            WorktreeError::Exists { .. } => Next::ChooseUnusedName,
            WorktreeError::NotFound { name } => Next::FindWorktree(name.clone()),
            WorktreeError::BroughtBack { .. } => Next::SeeWhetherToRemove,
            WorktreeError::NotEmpty { name } => Next::RemoveWithFiles(name.clone()),
            WorktreeError::Underway { name, doing: Doing::Renaming { to } } => {
                Next::FinishRename(name.clone(), to.clone())
            }
            WorktreeError::Underway { doing: Doing::Changing, .. } => {
                "let its writers finish, then run the same command again".into()
            }
            WorktreeError::Underway { .. } | WorktreeError::BeingRestored { .. } => {
                Next::RepairInterrupted
            }
            WorktreeError::OutcomeUnknown { .. } => Next::RepairOnceMounted,
            WorktreeError::IsMain => Next::CreateWorktree,
            WorktreeError::Io { source, .. } => Next::after_io(source),
        })
    }
}

impl From<RegisterError> for WorktreeError {
    fn from(error: RegisterError) -> Self {
        WorktreeError::Lock(error.into())
    }
}

impl From<ReadError> for WorktreeError {
    fn from(error: ReadError) -> Self {
        WorktreeError::Lock(error.into())
    }
}

impl OfRegister for WorktreeError {
    fn of_register(&self) -> Option<&RegisterError> {
        match self {
            WorktreeError::Lock(error) => error.of_register(),
            _ => None,
        }
    }
}

/// Why a worktree could not be retired.
#[derive(Debug, thiserror::Error)]
pub(super) enum RetireError {
    /// Its lock stands in the way.
    #[error(transparent)]
    Lock(#[from] TakeOverError),
    /// More was committed or granted than what it is to go on with elsewhere.
    #[error("worktree '{name}' has moved on")]
    MovedOn {
        /// The name.
        name: WorktreeName,
    },
}

impl RetireError {
    /// May it have been retired, or be yet?
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, RetireError::Lock(error) if error.code() == Code::OutcomeUnknown)
    }
}

impl From<RegisterError> for RetireError {
    fn from(error: RegisterError) -> Self {
        RetireError::Lock(error.into())
    }
}

impl TryFrom<RetireError> for TakeOverError {
    type Error = RetireError;

    fn try_from(error: RetireError) -> Result<Self, RetireError> {
        match error {
            RetireError::Lock(error) => Ok(error),
            moved @ RetireError::MovedOn { .. } => Err(moved),
        }
    }
}

impl From<RetireError> for WorktreeError {
    fn from(error: RetireError) -> Self {
        match error {
            RetireError::Lock(error) => WorktreeError::Lock(error),
            RetireError::MovedOn { name } => {
                WorktreeError::Underway { name, doing: Doing::Changing }
            }
        }
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
            let source = io::Error::other(error);
            WorktreeError::OutcomeUnknown { name, source }
        }
    }
}

pub(super) fn exists(name: &WorktreeName, what: &str) -> WorktreeError {
    WorktreeError::Exists { name: name.clone(), what: what.to_owned() }
}
