//! Why two trees could not be compared.

use std::io;

use crate::manifest::{ManifestError, TreePath};
use crate::walk::WalkError;

/// Why two trees could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The manifest is not one.
    #[error(transparent)]
    Manifest(ManifestError),
    /// The files could not be walked through.
    #[error(transparent)]
    Walk(WalkError),
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file that could not be read.
        path: TreePath,
        /// The system's answer.
        source: io::Error,
    },
}

impl CompareError {
    /// Of several files that could not be read, the first.
    pub(crate) fn of_one(self) -> Self {
        let CompareError::Walk(error) = self else { return self };
        match error.into_unread() {
            Ok((path, source)) => CompareError::Io { path, source },
            Err(error) => CompareError::Walk(error),
        }
    }
}
