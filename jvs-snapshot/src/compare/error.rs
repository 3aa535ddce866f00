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
