//! A path below a payload's root, in whatever bytes its names have.

use std::borrow::Borrow;
use std::ffi::OsStr;
use std::fmt;

use jvs_repo::name::ShownName;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// How many directories deep a payload may be: many times what a path that is given to
/// a system call can say. There is a limit because a process that works on a tree has the
/// paths of its directories in memory, each of them as long as its depth.
pub const MAX_DEPTH: usize = 10_000;
/// Longest name of one file (`NAME_MAX`).
const MAX_NAME_BYTES: usize = 255;
/// Longest path. The journal of a restore spells it in hexadecimal, in a string of at most
/// a million bytes.
pub const MAX_PATH_BYTES: usize = 500_000;

/// A path relative to a payload's root; empty for the root itself. Every
/// component is a plain name: not empty, not `.` or `..`, no NUL, at most 255
/// bytes. So joining it to a directory cannot leave that directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TreePath(Vec<u8>);

/// Bytes that are not a [`TreePath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A component is empty, `.`, `..`, too long or contains NUL.
    #[error("not a plain path below the payload's root")]
    Component,
    /// More than [`MAX_DEPTH`] components, or [`MAX_PATH_BYTES`].
    #[error("more than {MAX_DEPTH} levels or {MAX_PATH_BYTES} bytes deep")]
    TooDeep,
}

impl TreePath {
    /// The payload's root.
    pub const fn root() -> Self {
        TreePath(Vec::new())
    }

    /// Checks `bytes`.
    pub fn new(bytes: Vec<u8>) -> Result<Self, PathError> {
        Self::beginning_like(bytes, 0)
    }

    /// Checks `bytes`, of which the first `checked` are those of another path: what is
    /// deep is not checked from its root for each name.
    pub(super) fn beginning_like(bytes: Vec<u8>, checked: usize) -> Result<Self, PathError> {
        if bytes.is_empty() {
            return Ok(TreePath(bytes));
        }
        let known = bytes[..checked].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        if !bytes[known..].split(|&byte| byte == b'/').all(is_plain) {
            return Err(PathError::Component);
        }
        // Fewer bytes are fewer levels.
        let levels = || bytes.iter().filter(|&&byte| byte == b'/').count() + 1;
        if bytes.len() > MAX_PATH_BYTES || bytes.len() >= MAX_DEPTH && levels() > MAX_DEPTH {
            return Err(PathError::TooDeep);
        }
        Ok(TreePath(bytes))
    }

    /// This path with one more component.
    pub fn child(&self, name: &[u8]) -> Result<Self, PathError> {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        let checked = bytes.len();
        bytes.extend_from_slice(name);
        if !is_plain(name) {
            return Err(PathError::Component);
        }
        Self::beginning_like(bytes, checked)
    }

    /// The raw bytes, components separated by `/`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a path relative to the root; empty for the root itself.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Is this the root itself?
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The components, outermost first; none for the root.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/').filter(|component| !component.is_empty())
    }

    /// The bytes of the directory that holds this path; nothing for the root.
    pub(crate) fn parent(&self) -> Option<&[u8]> {
        let slash = self.0.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        (!self.is_root()).then(|| &self.0[..slash])
    }

    /// The directory that holds this path, and its name; nothing for the root.
    pub fn split(&self) -> Option<(TreePath, &[u8])> {
        if self.is_root() {
            return None;
        }
        Some(match self.0.iter().rposition(|&byte| byte == b'/') {
            Some(at) => (TreePath(self.0[..at].to_vec()), &self.0[at + 1..]),
            None => (TreePath::root(), &self.0),
        })
    }
}

/// As its bytes, in whose order paths are.
impl Borrow<[u8]> for TreePath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

fn is_plain(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && name.len() <= MAX_NAME_BYTES
        && !name.iter().any(|&byte| byte == 0 || byte == b'/')
}

/// Bytes that are not printable are escaped, and so is the backslash: a name with a
/// newline stays on its line, and no two names look the same. The root is `.`.
impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        ShownName::bytes(&self.0).fmt(f)
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
