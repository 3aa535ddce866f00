//! What differs between two trees, path by path: a manifest against files, or
//! against another manifest. Both come in the bytewise order of paths, so one
//! pass over each is enough.
//!
//! Verifying, `diff`, `status` and restoring all ask here, so that they cannot
//! disagree about what "the same" means.

mod error;
mod files;
mod manifests;

use std::fmt;

use serde::Serialize;

use crate::manifest::{Entry, EntryKind, TreePath};

pub use error::CompareError;
pub use files::{Compared, ComparedFiles, SeenFiles, Trust, with_files};
pub(crate) use files::{InPlaceOf, in_place_of, with_seen_files};
pub use manifests::{with_chosen_manifest, with_manifest};

/// In what a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// Only the second has it.
    Added,
    /// Only the first has it.
    Removed,
    /// A file in one, something else in the other.
    Type,
    /// Its bytes, or where a symlink points to, or which device it is.
    Content,
    /// Its permission bits.
    Mode,
    /// Its owner or group.
    Owner,
    /// When it was modified.
    Mtime,
    /// Which other names it has.
    Links,
    /// Its extended attributes.
    Xattrs,
}

impl Aspect {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Aspect::Added => "added",
            Aspect::Removed => "removed",
            Aspect::Type => "type",
            Aspect::Content => "content",
            Aspect::Mode => "mode",
            Aspect::Owner => "owner",
            Aspect::Mtime => "mtime",
            Aspect::Links => "links",
            Aspect::Xattrs => "xattrs",
        }
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path that differs.
    pub path: TreePath,
    /// In what; never empty.
    pub aspects: Vec<Aspect>,
    /// Bytes in the first, if it is a file there.
    pub before: Option<u64>,
    /// Bytes in the second, if it is a file there.
    pub after: Option<u64>,
}

impl Difference {
    fn only(path: &TreePath, aspect: Aspect, size: Option<u64>) -> Self {
        let (before, after) = match aspect {
            Aspect::Removed => (size, None),
            _ => (None, size),
        };
        Difference { path: path.clone(), aspects: vec![aspect], before, after }
    }

    /// A path that only the second has.
    pub(crate) fn added(entry: &Entry) -> Self {
        Self::only(&entry.path, Aspect::Added, size_of(&entry.kind))
    }

    /// Does the second have something here that would be lost with it? When it
    /// was modified, or which other names it has, is not that.
    pub fn has_what_the_first_has_not(&self) -> bool {
        !self
            .aspects
            .iter()
            .all(|aspect| matches!(aspect, Aspect::Removed | Aspect::Mtime | Aspect::Links))
    }

    /// Does anything but its modification time differ?
    pub fn is_of_substance(&self) -> bool {
        self.aspects.iter().any(|aspect| *aspect != Aspect::Mtime)
    }
}

/// Where ids of users and groups are spelled.
pub(crate) type IdMap = Option<String>;

/// What differs between trees of which one was looked at where ids are spelled as in
/// `one` and the other as in `other`: between two spellings, owners say nothing.
pub(crate) fn comparable(
    differences: Vec<Difference>,
    one: &IdMap,
    other: &IdMap,
) -> Vec<Difference> {
    let each = differences.into_iter().map(|difference| without_owner(difference, one, other));
    each.flatten().collect()
}

/// The same of one difference; nothing if nothing of it is left.
pub(crate) fn without_owner(
    mut difference: Difference,
    one: &IdMap,
    other: &IdMap,
) -> Option<Difference> {
    if one != other {
        difference.aspects.retain(|aspect| *aspect != Aspect::Owner);
    }
    (!difference.aspects.is_empty()).then_some(difference)
}

fn size_of(kind: &EntryKind) -> Option<u64> {
    match kind {
        EntryKind::File { size, .. } => Some(*size),
        _ => None,
    }
}

/// In what two entries of one path differ, apart from which names they share.
fn aspects(a: &Entry, b: &Entry) -> Vec<Aspect> {
    let mut aspects = Vec::new();
    if std::mem::discriminant(&a.kind) != std::mem::discriminant(&b.kind) {
        aspects.push(Aspect::Type);
    } else if a.kind != b.kind {
        aspects.push(Aspect::Content);
    }
    // A symlink's mode means nothing on Linux.
    let symlinks =
        matches!((&a.kind, &b.kind), (EntryKind::Symlink { .. }, EntryKind::Symlink { .. }));
    if a.mode != b.mode && !symlinks {
        aspects.push(Aspect::Mode);
    }
    if (a.uid, a.gid) != (b.uid, b.gid) {
        aspects.push(Aspect::Owner);
    }
    if a.mtime != b.mtime {
        aspects.push(Aspect::Mtime);
    }
    if a.xattrs != b.xattrs {
        aspects.push(Aspect::Xattrs);
    }
    aspects
}
