//! A manifest against another manifest.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::Read;

use super::{Aspect, Difference, aspects, size_of};
use crate::manifest::{Entry, ManifestError, ManifestReader, TreePath};

/// The first path of each link group: two trees have the same groups if each
/// name's group begins with the same path in both.
#[derive(Default)]
pub(super) struct Groups {
    first: HashMap<u64, TreePath>,
}

impl Groups {
    /// The first path of the entry's group, if it has one.
    pub(super) fn of(&mut self, entry: &Entry) -> Option<TreePath> {
        let group = entry.link_group?;
        Some(self.first.entry(group).or_insert_with(|| entry.path.clone()).clone())
    }
}

struct Side<R: Read> {
    reader: ManifestReader<R>,
    groups: Groups,
    next: Option<(Entry, Option<TreePath>)>,
}

impl<R: Read> Side<R> {
    fn open(reader: ManifestReader<R>) -> Result<Self, ManifestError> {
        let mut side = Side { reader, groups: Groups::default(), next: None };
        side.advance()?;
        Ok(side)
    }

    fn advance(&mut self) -> Result<Option<(Entry, Option<TreePath>)>, ManifestError> {
        let next = self.reader.read()?.map(|(entry, _)| {
            let group = self.groups.of(&entry);
            (entry, group)
        });
        Ok(std::mem::replace(&mut self.next, next))
    }
}

/// Tells `each` what differs between two manifests, in the order of paths.
pub fn with_manifest<A: Read, B: Read>(
    before: ManifestReader<A>,
    after: ManifestReader<B>,
    mut each: impl FnMut(Difference),
) -> Result<(), ManifestError> {
    let (mut a, mut b) = (Side::open(before)?, Side::open(after)?);
    loop {
        let order = match (&a.next, &b.next) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.path.cmp(&b.path),
        };
        let left = if order.is_le() { a.advance()? } else { None };
        let right = if order.is_ge() { b.advance()? } else { None };
        match (left, right) {
            (Some((a, a_group)), Some((b, b_group))) => {
                let mut aspects = aspects(&a, &b);
                if a_group != b_group {
                    aspects.push(Aspect::Links);
                }
                if !aspects.is_empty() {
                    let (before, after) = (size_of(&a.kind), size_of(&b.kind));
                    each(Difference { path: a.path, aspects, before, after });
                }
            }
            (Some((a, _)), None) => {
                each(Difference::only(&a.path, Aspect::Removed, size_of(&a.kind)));
            }
            (None, Some((b, _))) => {
                each(Difference::only(&b.path, Aspect::Added, size_of(&b.kind)));
            }
            (None, None) => return Ok(()),
        }
    }
}
