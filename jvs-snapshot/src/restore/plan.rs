//! Which paths a restore in place has to touch: what differs, and nothing else.
//!
//! What is ignored is nobody's to replace or to remove: no snapshot has it. It is ignored if
//! the rules say so that stand in the worktree now, or those by which the snapshot was taken
//! that is restored: that snapshot says nothing about it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use jvs_repo::record::patch::Patch;
use jvs_repo::sabotage;
use jvs_repo::store::PosixStore;

use super::journal::JournalStep;
use crate::chosen::{ChosenPaths, Lies};
use crate::compare::{
    self, Aspect, Compared, ComparedFiles, Difference, InPlaceOf, SeenFiles, Trust,
};
use crate::diff;
use crate::error::SnapshotError;
use crate::ignore::IgnoreRules;
use crate::manifest::{Entry, EntryKind, TreePath};
use crate::mutation::capturing::CaptureRule;
use crate::progress::Progress;
use crate::ready::Ready;
use crate::tree;

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
    /// What is not as it is in the snapshot, and stays: it is ignored, or holds what is.
    stays: Vec<TreePath>,
}

impl RestorePlan {
    /// Only these, whatever becomes of the directories they are in.
    pub fn of(deeds: impl IntoIterator<Item = (TreePath, Deed)>) -> Self {
        RestorePlan { deeds: deeds.into_iter().collect(), ..RestorePlan::default() }
    }

    /// This, and what another one says of other paths.
    pub(super) fn and(mut self, other: RestorePlan) -> Self {
        self.deeds.extend(other.deeds);
        self.directories.extend(other.directories);
        self.directories.sort_by(|one, next| one.path.cmp(&next.path));
        self.stays.extend(other.stays);
        self.stays.sort();
        self
    }

    /// Paths that the snapshot has otherwise, and that stay as they are: they are ignored, or
    /// hold what is.
    pub fn stays(&self) -> &[TreePath] {
        &self.stays
    }

    /// Are the files those of the snapshot?
    pub fn is_empty(&self) -> bool {
        self.deeds.is_empty() && self.directories.is_empty()
    }

    /// How many paths are touched.
    pub fn paths(&self) -> usize {
        self.deeds.len()
    }

    /// Where something is done.
    pub fn touched(&self) -> impl Iterator<Item = &TreePath> {
        self.deeds.keys()
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

    /// Itself, if it can be written down: what was named is not replaced otherwise.
    pub(super) fn that_fits(self) -> Result<Self, SnapshotError> {
        match self.fits_a_journal() {
            true => Ok(self),
            false => Err(SnapshotError::TooMuchAtOnce { paths: self.paths() }),
        }
    }

    pub(super) fn deeds(&self) -> impl Iterator<Item = (&TreePath, Deed)> {
        self.deeds.iter().map(|(path, deed)| (path, *deed))
    }

    pub(super) fn directories(&self) -> &[Entry] {
        &self.directories
    }
}

/// What has to be done to `files` so that they are those of `source`, as far as `trust` lets
/// it be seen. What `source` was taken by is ignored, too. Answers also with what was seen, if
/// that is all that the rules of the worktree leave.
pub fn plan(
    store: &PosixStore,
    source: &Ready,
    files: ComparedFiles<'_>,
    trust: Trust,
    progress: &dyn Progress,
) -> Result<(RestorePlan, Option<SeenFiles>), SnapshotError> {
    let of_source = IgnoreRules::of_record(&source.descriptor().content.ignore_rules);
    // A file with another time is put back, whatever is in it.
    let files = ComparedFiles { ignore_too: Some(&of_source), whether_only: true, ..files };
    let mut facts = ManifestFacts::default();
    let is_meant =
        |path: &TreePath| files.chosen.is_none_or(|chosen| chosen.lies(path) == Lies::Inside);
    let mut note = |entry: &Entry| {
        if is_meant(&entry.path) {
            facts.note(entry);
        }
    };
    let seen = diff::look(store, source, &files, trust, progress)?;
    let found = diff::since_telling(store, source, &files, &seen, trust, progress, &mut note)?;
    let Compared { differences, ignored, hidden } = found;
    let mut left = LeftAlone {
        ignored: ignored.into_iter().map(|ignored| ignored.path).collect(),
        hidden: BTreeMap::new(),
    };
    let root = tree::open_root(files.root).map_err(SnapshotError::io("open the worktree"))?;
    for entry in hidden {
        let there = compare::in_place_of(&root, &entry).map_err(SnapshotError::Unreadable)?;
        left.hidden.insert(entry.path, there);
    }
    let plan = made_of(&differences, &facts, &left);
    let is_all = files.chosen.is_none() && seen.is_the_same_without(&of_source);
    Ok((plan, is_all.then_some(seen)))
}

/// What is ignored.
#[derive(Default)]
struct LeftAlone {
    /// Each name that is, sorted.
    ignored: BTreeSet<TreePath>,
    /// What stands where the snapshot has something that is.
    hidden: BTreeMap<TreePath, InPlaceOf>,
}

impl LeftAlone {
    /// Is something below this directory ignored, so that it stays?
    fn keeps(&self, directory: &TreePath) -> bool {
        sabotage!(CaptureRule::IgnoredStays => false);
        let within = |path: &&TreePath| path.as_path().starts_with(directory.as_path());
        let after = (Bound::Excluded(directory), Bound::Unbounded);
        let mut below = self.ignored.range::<TreePath, _>(after);
        // Between a directory and what is in it are names that only begin like its own.
        let begins = |path: &&TreePath| path.as_bytes().starts_with(directory.as_bytes());
        below.by_ref().take_while(begins).any(|path| within(&path))
    }
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

fn made_of(differences: &[Difference], facts: &ManifestFacts, left: &LeftAlone) -> RestorePlan {
    let mut deeds = BTreeMap::new();
    let mut dressed = BTreeSet::new();
    let mut stays = BTreeSet::new();
    for Difference { path, aspects, .. } in differences {
        let has = |aspect| aspects.contains(&aspect);
        let deed = match left.hidden.get(path) {
            Some(InPlaceOf::Same) => continue,
            Some(InPlaceOf::Other) => None,
            // What else is in it goes by itself.
            None if has(Aspect::Added) && left.keeps(path) => continue,
            None if has(Aspect::Added) => Some(Deed::Remove),
            Some(InPlaceOf::Nothing) => Some(Deed::Put),
            None if has(Aspect::Removed) => Some(Deed::Put),
            // A directory in both: it stays, and is given what it lacks.
            None if !has(Aspect::Type) && facts.directories.contains_key(path) => {
                dressed.insert(path.clone());
                continue;
            }
            None if left.keeps(path) => None,
            None => Some(Deed::Replace),
        };
        match deed {
            Some(deed) => drop(deeds.insert(path.clone(), deed)),
            None => drop(stays.insert(path.clone())),
        }
    }
    if let Some(whole) = ChosenPaths::new(stays.iter().cloned()) {
        deeds.retain(|path, _| whole.lies(path) != Lies::Inside);
        stays.retain(|path| whole.paths().any(|top| top == path));
    }
    // Of one file with several names all are restored, or it would become two.
    let chosen = ChosenPaths::new(deeds.keys().cloned());
    let touched =
        |path: &TreePath| chosen.as_ref().is_some_and(|chosen| chosen.lies(path) == Lies::Inside);
    for names in facts.groups.values().filter(|names| names.iter().any(touched)) {
        let is_free = |name: &&TreePath| !touched(name) && !left.hidden.contains_key(*name);
        for name in names.iter().filter(is_free) {
            deeds.insert(name.clone(), Deed::Replace);
        }
    }
    // What is below another goes along with it.
    if let Some(chosen) = ChosenPaths::new(deeds.keys().cloned()) {
        let tops: BTreeSet<&TreePath> = chosen.paths().collect();
        deeds.retain(|path, _| tops.contains(path));
    }
    dressed.extend(deeds.keys().filter_map(|path| path.split().map(|(above, _)| above)));
    dressed.retain(|path| !left.hidden.contains_key(path));
    let directories =
        dressed.iter().filter_map(|path| facts.directories.get(path)).cloned().collect();
    RestorePlan { deeds, directories, stays: stays.into_iter().collect() }
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
    fn what_a_journal_has_no_room_for_is_refused_before_anything_is_done() {
        let deeds = |count: usize| {
            (0..count).map(|n| (path(&format!("{n:0200}")), Deed::Replace)).collect::<Vec<_>>()
        };
        assert!(RestorePlan::of(deeds(1_000)).that_fits().is_ok());
        match RestorePlan::of(deeds(70_000)).that_fits() {
            Err(error @ SnapshotError::TooMuchAtOnce { paths: 70_000 }) => {
                assert!(error.to_string().contains("70000 files and directories"), "{error}");
                assert!(error.to_string().contains("32 MiB"), "{error}");
            }
            other => panic!("{:?}", other.map(|plan| plan.paths())),
        }
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
        let plan = made_of(&differences, &facts(&["", "d", "e"], &[]), &LeftAlone::default());
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
        let plan =
            made_of(&differences, &facts(&["", "a", "b", "c"], groups), &LeftAlone::default());
        let (deeds, directories) = told(&plan);
        let names: Vec<String> = deeds.into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, ["a/one", "b/two", "c/three", "new", "z"]);
        assert_eq!(directories, [".", "a", "b", "c"]);
    }

    #[test]
    fn what_is_ignored_stays_and_so_does_what_it_is_in() {
        let differences = [
            differs("build", &[Aspect::Removed]),
            differs("build/new", &[Aspect::Removed]),
            differs("build/other", &[Aspect::Removed]),
            differs("build/same", &[Aspect::Removed]),
            differs("d", &[Aspect::Added]),
            differs("d/goes", &[Aspect::Added]),
            differs("d-", &[Aspect::Added]),
            differs("file", &[Aspect::Type]),
            differs("file/goes-along", &[Aspect::Added]),
            differs("kept", &[Aspect::Mtime]),
        ];
        let hidden = [
            ("build", InPlaceOf::Same),
            ("build/new", InPlaceOf::Nothing),
            ("build/other", InPlaceOf::Other),
            ("build/same", InPlaceOf::Same),
        ];
        let left = LeftAlone {
            ignored: ["build", "d/stays", "file/stays", "kept/x"].map(path).into(),
            hidden: hidden.map(|(text, there)| (path(text), there)).into(),
        };
        let plan = made_of(&differences, &facts(&["", "build", "kept"], &[]), &left);
        let (deeds, directories) = told(&plan);
        let expected = [("build/new", Deed::Put), ("d-", Deed::Remove), ("d/goes", Deed::Remove)];
        assert_eq!(deeds, expected.map(|(path, deed)| (path.to_owned(), deed)));
        assert_eq!(directories, [".", "kept"]);
        assert_eq!(plan.stays(), ["build/other", "file"].map(path));
    }
}
