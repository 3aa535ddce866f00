//! What any operation on a register can fail with, whatever it wants of it.

use std::io;

use jvs_repo::code::{Code, Layer, Layered, code_of_io};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;

use crate::register::ReadError;

/// Why a register, or what is told of it, could not be read or moved. Says nothing of who
/// holds the lock.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The register could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The filesystem failed or refused; nothing was changed.
    #[error("{doing} of worktree '{worktree}': {source}")]
    Io {
        /// The worktree.
        worktree: WorktreeName,
        /// What was being done, as the beginning of a sentence.
        doing: &'static str,
        /// How it failed.
        source: io::Error,
    },
    /// A rename was neither confirmed nor refused.
    #[error("it is not known whether the lock of worktree '{worktree}' was changed: {source}")]
    OutcomeUnknown {
        /// The worktree.
        worktree: WorktreeName,
        /// The last answer.
        source: io::Error,
    },
    /// It was done, but may not survive a power cut.
    #[error("worktree '{worktree}' {done}, but that may not survive a power cut: {source}")]
    NotDurable {
        /// The worktree.
        worktree: WorktreeName,
        /// What was done to it: `was frozen`.
        done: &'static str,
        /// How making it durable failed.
        source: io::Error,
    },
    /// This mount shows an entry that the metadata engine does not have.
    #[error("this mount shows an outdated fence register of worktree '{worktree}'")]
    StaleMount {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// A fact that the code relies on was false.
    #[error("a fact that must hold does not: {what}")]
    Internal {
        /// The call.
        what: &'static str,
    },
}

impl RegisterError {
    pub(crate) const fn internal(what: &'static str) -> Self {
        RegisterError::Internal { what }
    }

    /// A grant that could not be made durable, so that nobody is told of it.
    pub(crate) fn not_durable(worktree: WorktreeName, given_back: bool, source: io::Error) -> Self {
        let done = if given_back { "was locked and released" } else { "was locked" };
        RegisterError::NotDurable { worktree, done, source }
    }
}

impl Layered for RegisterError {
    fn layer(&self) -> Layer<'_> {
        Layer::Own(match self {
            RegisterError::Read(error) => return Layer::Below(error),
            RegisterError::Io { source, .. } => code_of_io(source),
            RegisterError::OutcomeUnknown { .. } | RegisterError::NotDurable { .. } => {
                Code::OutcomeUnknown
            }
            RegisterError::StaleMount { .. } => Code::UnsafeFilesystem,
            RegisterError::Internal { .. } => Code::Internal,
        })
    }

    fn own_next(&self) -> Option<Next> {
        Some(match self {
            RegisterError::Read(_) => return None,
            RegisterError::Io { source, .. } => next_after_io(source),
            RegisterError::NotDurable { worktree, .. } => {
                Next::CheckDiskThenStatus(worktree.clone())
            }
            RegisterError::OutcomeUnknown { worktree, .. } => {
                Next::StatusOnceMounted(worktree.clone())
            }
            RegisterError::StaleMount { .. } => {
                "mount the volume without --readdir-cache, then try again".into()
            }
            RegisterError::Internal { .. } => Next::ReportBug,
        })
    }
}

pub(crate) fn next_after_io(source: &io::Error) -> Next {
    match (code_of_io(source), source.kind()) {
        (Code::AuditChainBroken, _) => Next::VerifyAudit,
        (Code::Usage, _) => "use fewer words".into(),
        (_, io::ErrorKind::ReadOnlyFilesystem) => {
            "make the repository writable for this user, then run the same command again".into()
        }
        (_, _) => match Next::after_io(source) {
            Next::CheckMount => {
                "nothing was changed; check the mount, then run the same command again".into()
            }
            next => next,
        },
    }
}

/// An error that may be one of the register, beneath what its operation answers.
pub trait OfRegister {
    /// The register's, if it is one.
    fn of_register(&self) -> Option<&RegisterError>;

    /// Is there no register at all?
    fn is_missing(&self) -> bool {
        matches!(self.of_register(), Some(RegisterError::Read(ReadError::Missing { .. })))
    }
}

impl OfRegister for RegisterError {
    fn of_register(&self) -> Option<&RegisterError> {
        Some(self)
    }
}
