//! A manifest against another manifest.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::{Aspect, Difference, aspects, size_of};
use crate::chosen::{ChosenCursor, ChosenPaths, Lies};
use crate::manifest::{Entry, ManifestError, ManifestReader, TreePath};

/// The first path of each link group: two trees have the same groups if each
/// name's group begins with the same path in both.
#[derive(Default)]
pub(super) struct GroupStarts {
    first: HashMap<u64, TreePath>,
}

impl GroupStarts {
    /// The first path of the entry's group, if it has one.
    pub(super) fn of(&mut self, entry: &Entry) -> Option<TreePath> {
        let group = entry.link_group?;
        Some(self.first.entry(group).or_insert_with(|| entry.path.clone()).clone())
    }
}

struct Side<'c, R: Read> {
    reader: ManifestReader<R>,
    only: Option<Only<'c>>,
    groups: GroupStarts,
    next: Option<(Entry, Option<TreePath>)>,
}

impl<'c, R: Read> Side<'c, R> {
    fn open(reader: ManifestReader<R>, only: Option<Only<'c>>) -> Result<Self, ManifestError> {
        let mut side = Side { reader, only, groups: GroupStarts::default(), next: None };
        side.advance()?;
        Ok(side)
    }

    fn advance(&mut self) -> Result<Option<(Entry, Option<TreePath>)>, ManifestError> {
        let mut next = None;
        while let Some((mut entry, _)) = self.reader.read()? {
            if self.only.as_mut().is_none_or(|only| only.admits(&mut entry)) {
                let group = self.groups.of(&entry);
                next = Some((entry, group));
                break;
            }
        }
        Ok(std::mem::replace(&mut self.next, next))
    }
}

/// What a copy of some paths has of a manifest.
struct Only<'c> {
    chosen: ChosenCursor<'c>,
    /// Link groups with two chosen names or more: one name alone is no group.
    groups: HashSet<u64>,
}

impl<'c> Only<'c> {
    fn of<R: Read>(
        mut manifest: ManifestReader<R>,
        chosen: &'c ChosenPaths,
    ) -> Result<Self, ManifestError> {
        let (mut seen, mut groups) = (HashSet::new(), HashSet::new());
        let mut cursor = chosen.cursor();
        while let Some((entry, _)) = manifest.read()? {
            if let Some(group) = entry.link_group
                && cursor.lies(&entry.path) == Lies::Inside
                && !seen.insert(group)
            {
                groups.insert(group);
            }
        }
        Ok(Only { chosen: chosen.cursor(), groups })
    }

    fn admits(&mut self, entry: &mut Entry) -> bool {
        entry.link_group = entry.link_group.filter(|group| self.groups.contains(group));
        self.chosen.lies(&entry.path) != Lies::Outside
    }
}

/// Tells `each` what differs between two manifests, in the order of paths.
pub fn with_manifest<A: Read, B: Read>(
    before: ManifestReader<A>,
    after: ManifestReader<B>,
    each: impl FnMut(Difference),
) -> Result<(), ManifestError> {
    side_by_side(Side::open(before, None)?, Side::open(after, None)?, each)
}

/// As [`with_manifest`], where `after` is of a copy that has only what is chosen
/// and the directories above it. `again` reads the same manifest as `before`.
pub fn with_chosen_manifest<A: Read, B: Read>(
    before: ManifestReader<A>,
    again: ManifestReader<A>,
    after: ManifestReader<B>,
    chosen: &ChosenPaths,
    each: impl FnMut(Difference),
) -> Result<(), ManifestError> {
    let only = Only::of(again, chosen)?;
    side_by_side(Side::open(before, Some(only))?, Side::open(after, None)?, each)
}

fn side_by_side<A: Read, B: Read>(
    mut a: Side<'_, A>,
    mut b: Side<'_, B>,
    mut each: impl FnMut(Difference),
) -> Result<(), ManifestError> {
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
