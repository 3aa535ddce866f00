//! Why a tree was not captured.

use std::io;

use jvs_repo::code::{Code, Coded, code_of_io};
use jvs_repo::next::Next;

use crate::engine::EngineName;
use crate::manifest::{TreePath, WriteError};
use crate::quiesce::Changes;
use crate::walk::WalkError;

/// Nothing was captured, and nothing of the attempt is left.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The source cannot be captured whole.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// Somebody wrote meanwhile, twice.
    #[error("files changed while being captured: {0}")]
    Changed(Changes),
    /// What programs wrote cannot be shown to be where a look sees it.
    #[error("cannot tell whether all that was written is captured: {0}")]
    NotWrittenOut(String),
    /// A call on one path failed.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// Below the payload's root.
        path: TreePath,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The engine that was asked for does not work here.
    #[error("the {engine} engine cannot be used here: {why}")]
    EngineUnavailable {
        /// The engine.
        engine: EngineName,
        /// Why not.
        why: String,
    },
    /// The engine made something else than a copy of the source, although nobody
    /// wrote.
    #[error("the {engine} engine failed: {why}")]
    EngineFailed {
        /// The engine.
        engine: EngineName,
        /// What is wrong.
        why: String,
    },
    /// Nobody understood that the tree was to be cloned.
    #[error(
        "this JuiceFS mount cannot be asked to clone: its control file: {control}; the juicefs \
         program: {program}"
    )]
    CloneRefused {
        /// What the mount's control file said.
        control: String,
        /// What became of the program.
        program: String,
    },
    /// The filesystem was asked to clone the tree and could not.
    #[error("cannot clone the worktree: {0}")]
    CloneFailed(#[source] io::Error),
    /// The manifest could not be written.
    #[error(transparent)]
    Manifest(#[from] WriteError),
    /// Progress asked for it.
    #[error("the capture was stopped")]
    Stopped,
}

impl CaptureError {
    pub(crate) fn io(path: TreePath, doing: &'static str, source: io::Error) -> Self {
        Self::Io { path, doing, source }
    }

    /// A failed call on the capture as a whole.
    pub(crate) fn whole(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { path: TreePath::root(), doing, source }
    }
}

impl Coded for CaptureError {
    fn code(&self) -> Code {
        match self {
            Self::Changed(_) | Self::NotWrittenOut(_) => Code::ConsistencyUnavailable,
            Self::Io { source, .. }
            | Self::CloneFailed(source)
            | Self::Manifest(WriteError::Io(source)) => code_of_io(source),
            Self::Walk(_)
            | Self::EngineUnavailable { .. }
            | Self::EngineFailed { .. }
            | Self::CloneRefused { .. }
            | Self::Manifest(_)
            | Self::Stopped => Code::PartialSnapshot,
        }
    }

    fn next(&self) -> Option<Next> {
        Some(match self {
            Self::Changed(_) => Next::StopWritersOrTakeTorn,
            Self::NotWrittenOut(_) => Next::CloseWritersOrTakeUnquiet,
            Self::Walk(error) => error.remedy().into(),
            Self::Io { source, .. } | Self::CloneFailed(source)
                if crate::fidelity::is_full(source) =>
            {
                Next::FreeSpace(None)
            }
            Self::EngineUnavailable { .. } => Next::ChooseEngine,
            Self::CloneRefused { .. } => Next::InstallClonerOrCopy,
            _ => return None,
        })
    }
}
