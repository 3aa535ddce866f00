//! Why a register could not be made.

use std::io;

use jvs_repo::code::{Code, Layer, Layered, code_of_io};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;

use crate::register::ReadError;

/// Why a register could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BirthError {
    /// There is one.
    #[error("worktree '{worktree}' already has a fence register")]
    Exists {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// The filesystem failed; nothing is there.
    #[error("cannot create the fence register of worktree '{worktree}': {source}")]
    Io {
        /// The worktree.
        worktree: WorktreeName,
        /// The system's answer.
        source: io::Error,
    },
    /// The rename into place was neither confirmed nor refused.
    #[error(
        "it is not known whether the fence register of worktree '{worktree}' was created: {source}"
    )]
    OutcomeUnknown {
        /// The worktree.
        worktree: WorktreeName,
        /// The answer.
        source: io::Error,
    },
    /// What is there now cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Layered for BirthError {
    fn layer(&self) -> Layer<'_> {
        Layer::Own(match self {
            BirthError::Read(error) => return Layer::Below(error),
            BirthError::Exists { .. } => Code::Exists,
            BirthError::Io { source, .. } => code_of_io(source),
            BirthError::OutcomeUnknown { .. } => Code::OutcomeUnknown,
        })
    }

    fn own_next(&self) -> Option<Next> {
        Some(match self {
            BirthError::Exists { .. } => Next::ListWorktrees,
            BirthError::Io { source, .. } => Next::after_io(source),
            BirthError::OutcomeUnknown { .. } => {
                "once the mount answers again, run the same command again".into()
            }
            BirthError::Read(_) => return None,
        })
    }
}
