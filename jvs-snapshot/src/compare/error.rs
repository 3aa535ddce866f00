//! Why two trees could not be compared.

use std::fmt;
use std::io;

use crate::manifest::{ManifestError, TreePath};
use crate::walk::WalkError;

/// Why two trees could not be compared.
#[derive(Debug)]
pub enum CompareError {
    /// The manifest is not one.
    Manifest(ManifestError),
    /// The files could not be walked through.
    Walk(WalkError),
    /// A file could not be read.
    Io {
        /// The file that could not be read.
        path: TreePath,
        /// The system's answer.
        source: io::Error,
    },
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompareError::Manifest(error) => error.fmt(f),
            CompareError::Walk(error) => error.fmt(f),
            CompareError::Io { path, source } => write!(f, "cannot read {path}: {source}"),
        }
    }
}

impl std::error::Error for CompareError {}
