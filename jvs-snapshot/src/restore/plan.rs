//! Which paths a restore in place has to touch: what differs, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jvs_repo::record::patch::Patch;
use jvs_repo::store::PosixStore;

use super::journal::JournalStep;
use crate::chosen::{ChosenPaths, Lies};
use crate::compare::{Aspect, Difference, Trust};
use crate::diff;
use crate::error::SnapshotError;
use crate::manifest::{Entry, EntryKind, TreePath};
use crate::progress::Progress;
use crate::ready::Ready;

/// What becomes of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It takes the place of what is there.
    Replace,
    /// It is put where nothing is.
    Put,
    /// It goes.
    Remove,
}

/// What has to be done to files so that they are those of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestorePlan {
    /// None of them is below another.
    deeds: BTreeMap<TreePath, Deed>,
    /// Directories that stay, as they are in the snapshot: those whose attributes differ,
    /// and those in which something is done.
    directories: Vec<Entry>,
}

impl RestorePlan {
    /// Only these, whatever becomes of the directories they are in.
    pub fn of(deeds: impl IntoIterator<Item = (TreePath, Deed)>) -> Self {
        RestorePlan { deeds: deeds.into_iter().collect(), directories: Vec::new() }
    }

    /// Are the files those of the snapshot?
    pub fn is_empty(&self) -> bool {
        self.deeds.is_empty() && self.directories.is_empty()
    }

    /// How many paths are touched.
    pub fn paths(&self) -> usize {
        self.deeds.len()
    }

    /// What is there now and will not be.
    pub fn replaced(&self) -> Option<ChosenPaths> {
        self.chosen(|deed| deed != Deed::Put)
    }

    /// What comes from the snapshot.
    pub(super) fn installed(&self) -> Option<ChosenPaths> {
        self.chosen(|deed| deed != Deed::Remove)
    }

    fn chosen(&self, which: impl Fn(Deed) -> bool) -> Option<ChosenPaths> {
        let deeds = self.deeds.iter().filter(|(_, deed)| which(**deed));
        ChosenPaths::new(deeds.map(|(path, _)| path.clone()))
    }

    /// Can all of it be written down, so that others can finish it?
    pub(super) fn fits_a_journal(&self) -> bool {
        let length = |path: &TreePath| path.as_bytes().len();
        let steps = self.deeds.keys().map(length);
        Patch::has_room(steps, self.directories.iter().map(|entry| length(&entry.path)))
    }

    pub(super) fn deeds(&self) -> impl Iterator<Item = (&TreePath, Deed)> {
        self.deeds.iter().map(|(path, deed)| (path, *deed))
    }

    pub(super) fn directories(&self) -> &[Entry] {
        &self.directories
    }
}

/// What has to be done to the files below `worktree` so that they are those of `source`,
/// as far as `trust` lets it be seen.
pub fn plan(
    store: &PosixStore,
    source: &Ready,
    worktree: &Path,
    trust: Trust,
    progress: &dyn Progress,
) -> Result<RestorePlan, SnapshotError> {
    let mut facts = ManifestFacts::default();
    let mut note = |entry: &Entry| facts.note(entry);
    let differences = diff::since_telling(store, source, worktree, trust, progress, &mut note)?;
    Ok(made_of(&differences, &facts))
}

/// What a snapshot's manifest says of its directories and of links.
#[derive(Default)]
struct ManifestFacts {
    directories: BTreeMap<TreePath, Entry>,
    /// Names that share a file, in groups.
    groups: BTreeMap<u64, Vec<TreePath>>,
}

impl ManifestFacts {
    fn note(&mut self, entry: &Entry) {
        if let Some(group) = entry.link_group {
            self.groups.entry(group).or_default().push(entry.path.clone());
        }
        if entry.kind == EntryKind::Directory {
            self.directories.insert(entry.path.clone(), entry.clone());
        }
    }
}

fn made_of(differences: &[Difference], facts: &ManifestFacts) -> RestorePlan {
    let mut deeds = BTreeMap::new();
    let mut dressed = BTreeSet::new();
    for Difference { path, aspects, .. } in differences {
        let has = |aspect| aspects.contains(&aspect);
        let deed = match () {
            () if has(Aspect::Added) => Deed::Remove,
            () if has(Aspect::Removed) => Deed::Put,
            // A directory in both: it stays, and is given what it lacks.
            () if !has(Aspect::Type) && facts.directories.contains_key(path) => {
                dressed.insert(path.clone());
                continue;
            }
            () => Deed::Replace,
        };
        deeds.insert(path.clone(), deed);
    }
    // Of one file with several names all are restored, or it would become two.
    let chosen = ChosenPaths::new(deeds.keys().cloned());
    let touched =
        |path: &TreePath| chosen.as_ref().is_some_and(|chosen| chosen.lies(path) == Lies::Inside);
    for names in facts.groups.values().filter(|names| names.iter().any(touched)) {
        for name in names.iter().filter(|name| !touched(name)) {
            deeds.insert(name.clone(), Deed::Replace);
        }
    }
    // What is below another goes along with it.
    if let Some(chosen) = ChosenPaths::new(deeds.keys().cloned()) {
        let tops: BTreeSet<&TreePath> = chosen.paths().collect();
        deeds.retain(|path, _| tops.contains(path));
    }
    dressed.extend(deeds.keys().filter_map(|path| path.split().map(|(above, _)| above)));
    let directories =
        dressed.iter().filter_map(|path| facts.directories.get(path)).cloned().collect();
    RestorePlan { deeds, directories }
}

/// A step of the journal for each path; `inode_of` tells which file is to be there.
pub(super) fn steps<E>(
    plan: &RestorePlan,
    inode_of: impl Fn(&TreePath) -> Result<u64, E>,
) -> Result<Vec<JournalStep>, E> {
    let step = |(path, deed): (&TreePath, Deed)| {
        let inode = match deed {
            Deed::Remove => None,
            Deed::Put | Deed::Replace => Some(inode_of(path)?),
        };
        Ok(JournalStep { path: path.clone(), inode, replaces: deed != Deed::Put })
    };
    plan.deeds().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Timestamp;

    fn path(text: &str) -> TreePath {
        TreePath::new(text.as_bytes().to_vec()).expect("plain")
    }

    fn differs(text: &str, aspects: &[Aspect]) -> Difference {
        Difference { path: path(text), aspects: aspects.to_vec(), before: None, after: None }
    }

    fn entry(text: &str) -> Entry {
        Entry {
            path: path(text),
            kind: EntryKind::Directory,
            mode: 0o755,
            uid: 0,
            gid: 0,
            mtime: Timestamp::default(),
            link_group: None,
            xattrs: Vec::new(),
        }
    }

    fn facts(directories: &[&str], groups: &[&[&str]]) -> ManifestFacts {
        let directories = directories.iter().map(|text| (path(text), entry(text)));
        let groups = (0..).zip(groups.iter().map(|names| names.iter().map(|n| path(n)).collect()));
        ManifestFacts { directories: directories.collect(), groups: groups.collect() }
    }

    fn told(plan: &RestorePlan) -> (Vec<(String, Deed)>, Vec<String>) {
        let deeds = plan.deeds().map(|(path, deed)| (path.to_string(), deed));
        (deeds.collect(), plan.directories().iter().map(|dir| dir.path.to_string()).collect())
    }

    #[test]
    fn only_what_differs_is_touched_and_what_is_below_goes_along() {
        let differences = [
            differs("", &[Aspect::Mode]),
            differs("d", &[Aspect::Mtime]),
            differs("d/changed", &[Aspect::Content]),
            differs("d/gone", &[Aspect::Added]),
            differs("d/gone/too", &[Aspect::Added]),
            differs("e", &[Aspect::Removed]),
            differs("e/f", &[Aspect::Removed]),
            differs("g", &[Aspect::Type]),
            differs("g/h", &[Aspect::Added]),
        ];
        let plan = made_of(&differences, &facts(&["", "d", "e"], &[]));
        let (deeds, directories) = told(&plan);
        let expected = [
            ("d/changed", Deed::Replace),
            ("d/gone", Deed::Remove),
            ("e", Deed::Put),
            ("g", Deed::Replace),
        ];
        assert_eq!(deeds, expected.map(|(path, deed)| (path.to_owned(), deed)));
        assert_eq!(directories, [".", "d"]);
        let paths = |chosen: Option<ChosenPaths>| {
            chosen.map_or(Vec::new(), |some| some.paths().map(ToString::to_string).collect())
        };
        assert_eq!(paths(plan.replaced()), ["d/changed", "d/gone", "g"]);
        assert_eq!(paths(plan.installed()), ["d/changed", "e", "g"]);
    }

    #[test]
    fn all_names_of_a_file_are_restored_or_none() {
        let differences = [
            differs("a/one", &[Aspect::Content, Aspect::Links]),
            differs("new", &[Aspect::Removed]),
        ];
        let groups: &[&[&str]] = &[&["a/one", "b/two", "c/three"], &["x", "y"], &["new/x", "z"]];
        let plan = made_of(&differences, &facts(&["", "a", "b", "c"], groups));
        let (deeds, directories) = told(&plan);
        let names: Vec<String> = deeds.into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, ["a/one", "b/two", "c/three", "new", "z"]);
        assert_eq!(directories, [".", "a", "b", "c"]);
    }
}
