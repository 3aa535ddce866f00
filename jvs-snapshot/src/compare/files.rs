//! A manifest against the files below a directory, without what is ignored there.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::error::CompareError;
use super::manifests::GroupStarts;
use super::{Aspect, Difference, size_of};
use crate::chosen::{ChosenCursor, ChosenPaths, Lies};
use crate::hash;
use crate::ignore::{IgnoreRules, Ignored, IgnoredPath, Ignoring};
use crate::manifest::{Device, Entry, EntryKind, Hints, ManifestReader, TreePath};
use crate::progress::Progress;
use crate::tree::{self, NodeKind, NodeStat};
use crate::walk::{Scope, Tree, vanished};
use crate::workers;

/// Entries whose content is looked at together: bounds the memory, not the work.
const BATCH: usize = 8 * 1024;
/// Files of one directory that are read by one thread, one after the other.
const TOGETHER: usize = 16;

/// When is a file believed to be unchanged without reading it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Never: every file is read.
    Nothing,
    /// If it is the very inode that was captured and the kernel has not noted a
    /// change of it since.
    Hints,
}

/// A path that both have, to be looked at more closely.
struct Pair {
    entry: Entry,
    stat: NodeStat,
    aspects: Vec<Aspect>,
    /// The kernel has noted no change of it, so only what it does not note can
    /// differ.
    untouched: bool,
}

impl Pair {
    fn into_difference(self) -> Difference {
        let after = (self.stat.kind == NodeKind::File).then_some(self.stat.size);
        let before = size_of(&self.entry.kind);
        let Pair { entry: Entry { path, .. }, mut aspects, .. } = self;
        aspects.sort_unstable();
        Difference { path, aspects, before, after }
    }
}

/// The files that a manifest is compared with.
#[derive(Debug, Clone, Copy)]
pub struct ComparedFiles<'f> {
    /// The directory that they are in.
    pub root: &'f Path,
    /// Only those paths: no other file is looked at. Which names a file shares is not
    /// compared, because some may not be chosen.
    pub chosen: Option<&'f ChosenPaths>,
    /// Not what files of rules there, and these rules of the configuration, ignore.
    pub ignore: Option<&'f IgnoreRules>,
    /// Nor what these rules ignore.
    pub ignore_too: Option<&'f IgnoreRules>,
    /// Only whether each differs is asked, and not in what: where the time of a file differs
    /// already, say, it is not read.
    pub whether_only: bool,
}

impl<'f> ComparedFiles<'f> {
    /// Those of `root` that a snapshot would have that is taken now; all, if it was not for
    /// rules.
    pub fn of(root: &'f Path, ignore: &'f IgnoreRules) -> Self {
        ComparedFiles { ignore: Some(ignore), ..root.into() }
    }

    /// Only those paths of it.
    pub fn only(self, chosen: Option<&'f ChosenPaths>) -> Self {
        ComparedFiles { chosen, ..self }
    }

    pub(crate) fn scope(&self) -> Scope<'f> {
        let ignoring = self.ignore.map(|rules| {
            Ignoring::reading(rules).and_by(self.ignore_too.cloned().unwrap_or_default())
        });
        Scope { chosen: self.chosen, ignoring }
    }
}

/// All files below a directory.
impl<'f, P: AsRef<Path> + ?Sized> From<&'f P> for ComparedFiles<'f> {
    fn from(root: &'f P) -> Self {
        let (root, chosen, ignore, ignore_too) = (root.as_ref(), None, None, None);
        ComparedFiles { root, chosen, ignore, ignore_too, whether_only: false }
    }
}

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Compared {
    /// In the order of paths: what is *added* is in the files and not in the manifest.
    pub differences: Vec<Difference>,
    /// What is ignored, and was not compared. Sorted by path; none is below another.
    pub ignored: Vec<IgnoredPath>,
    /// What the manifest has and is ignored now, or in what is: it is *removed*, although it
    /// may well be there.
    pub(crate) hidden: Vec<Entry>,
}

impl Compared {
    /// Is this path one of the manifest's, and ignored now?
    pub fn is_hidden(&self, path: &TreePath) -> bool {
        self.hidden.binary_search_by(|entry| entry.path.cmp(path)).is_ok()
    }
}

/// Tells what differs between a manifest and files. `each` is told every entry of the
/// manifest on the way.
pub fn with_files<'f, R: Read>(
    manifest: ManifestReader<R>,
    files: impl Into<ComparedFiles<'f>>,
    trust: Trust,
    progress: &dyn Progress,
    each: &mut dyn FnMut(&Entry),
) -> Result<Compared, CompareError> {
    let files = files.into();
    with_seen_files(manifest, &files, &SeenFiles::look(&files)?, trust, progress, each)
}

/// As [`with_files`], of files that were looked at before.
pub(crate) fn with_seen_files<R: Read>(
    manifest: ManifestReader<R>,
    meant: &ComparedFiles<'_>,
    seen: &SeenFiles,
    trust: Trust,
    progress: &dyn Progress,
    each: &mut dyn FnMut(&Entry),
) -> Result<Compared, CompareError> {
    let mut found = compare(Entries { manifest, each }, meant, seen, trust, progress)?;
    if meant.chosen.is_some() {
        found.differences.retain_mut(|difference| {
            difference.aspects.retain(|aspect| *aspect != Aspect::Links);
            !difference.aspects.is_empty()
        });
    }
    Ok(found)
}

/// Files as a walk saw them, which may be compared with more than one manifest.
#[derive(Debug)]
pub struct SeenFiles {
    root: OwnedFd,
    tree: Tree,
}

impl SeenFiles {
    /// Walks through what is meant.
    pub(crate) fn look(meant: &ComparedFiles<'_>) -> Result<Self, CompareError> {
        let at_root = |source| CompareError::Io { path: TreePath::root(), source };
        let root = tree::open_root(meant.root).map_err(at_root)?;
        let threads = workers::for_files_on(&root);
        let tree = Tree::read_some(threads, &root, meant.scope()).map_err(CompareError::Walk)?;
        Ok(SeenFiles { root, tree })
    }

    /// Would the same have been seen without these rules, by which more was ignored?
    pub(crate) fn is_the_same_without(&self, also: &IgnoreRules) -> bool {
        also.is_empty() || also.to_record() == self.tree.ignored.rules.to_record()
    }
}

/// What stands in the place of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InPlaceOf {
    /// No file of any kind.
    Nothing,
    /// The same, read to the end. Of directories, only that it is one.
    Same,
    /// Something else.
    Other,
}

/// Looks behind the rules: what stands below `root` in the place of an entry?
pub(crate) fn in_place_of(root: &OwnedFd, entry: &Entry) -> Result<InPlaceOf, CompareError> {
    let failed = |source| CompareError::Io { path: entry.path.clone(), source };
    let Some((above, name)) = entry.path.split() else { return Ok(InPlaceOf::Same) };
    let stat = tree::reach_below(root, above.components())
        .and_then(|directory| tree::stat_afresh(&directory, name));
    let stat = match stat {
        Ok(stat) => stat,
        Err(error) if vanished(&error) => return Ok(InPlaceOf::Nothing),
        Err(error) => return Err(failed(error)),
    };
    if stat.kind == NodeKind::Directory && entry.kind == EntryKind::Directory {
        return Ok(InPlaceOf::Same);
    }
    let aspects = look(entry, &stat);
    let mut pair = Pair { entry: entry.clone(), stat, aspects, untouched: false };
    Parent::of(root, Some(&pair)).read(&mut pair).map_err(failed)?;
    Ok(if pair.aspects.is_empty() { InPlaceOf::Same } else { InPlaceOf::Other })
}

/// A manifest that is read, and who is told what it says.
struct Entries<'e, R: Read> {
    manifest: ManifestReader<R>,
    each: &'e mut dyn FnMut(&Entry),
}

impl<R: Read> Entries<'_, R> {
    fn read(&mut self) -> Result<Option<(Entry, Option<Hints>)>, CompareError> {
        let next = self.manifest.read().map_err(CompareError::Manifest)?;
        if let Some((entry, _)) = &next {
            (self.each)(entry);
        }
        Ok(next)
    }
}

fn compare<R: Read>(
    mut entries: Entries<'_, R>,
    meant: &ComparedFiles<'_>,
    seen: &SeenFiles,
    trust: Trust,
    progress: &dyn Progress,
) -> Result<Compared, CompareError> {
    let at_root = |source| CompareError::Io { path: TreePath::root(), source };
    let SeenFiles { root, tree: files } = seen;
    let threads = workers::for_files_on(root);
    let timeless_xattrs = tree::has_timeless_xattrs(root).map_err(at_root)?;
    let mut pass = Pass {
        root,
        chosen: meant.chosen.map(ChosenPaths::cursor),
        threads,
        trust,
        timeless_xattrs,
        whether_only: meant.whether_only,
        progress,
        expected_groups: GroupStarts::default(),
        found_groups: FoundGroups::of_all(files),
        differences: Vec::new(),
        pairs: Vec::new(),
        ignored: &files.ignored,
        hidden: Vec::new(),
    };
    progress.total(files.nodes as u64, 0);

    let mut next = entries.read()?;
    if let Some((entry, hints)) = next.take() {
        pass.both(entry, hints, files.root);
        next = entries.read()?;
    }
    for item in files.in_order() {
        let (path, stat) = (item.path(), item.stat());
        while let Some((entry, _)) = next.take_if(|(entry, _)| entry.path < path) {
            pass.gone(entry);
            next = entries.read()?;
        }
        match next.take_if(|(entry, _)| entry.path == path) {
            Some((entry, hints)) => {
                pass.both(entry, hints, stat);
                next = entries.read()?;
            }
            None => {
                pass.found_groups.of(&path, &stat);
                let size = (stat.kind == NodeKind::File).then_some(stat.size);
                pass.only(&path, Aspect::Added, size);
            }
        }
        if pass.pairs.len() >= BATCH {
            pass.look_closely()?;
        }
    }
    while let Some((entry, _)) = next.take() {
        pass.gone(entry);
        next = entries.read()?;
    }
    pass.look_closely()?;
    let Pass { mut differences, hidden, .. } = pass;
    differences.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Compared { differences, ignored: files.ignored.paths.clone(), hidden })
}

struct Pass<'p> {
    root: &'p OwnedFd,
    chosen: Option<ChosenCursor<'p>>,
    threads: usize,
    trust: Trust,
    timeless_xattrs: bool,
    whether_only: bool,
    progress: &'p dyn Progress,
    expected_groups: GroupStarts,
    found_groups: FoundGroups,
    differences: Vec<Difference>,
    pairs: Vec<Pair>,
    ignored: &'p Ignored,
    hidden: Vec<Entry>,
}

impl Pass<'_> {
    /// Asked in the order of paths.
    fn is_meant(&mut self, path: &TreePath) -> bool {
        self.chosen.as_mut().is_none_or(|chosen| chosen.lies(path) == Lies::Inside)
    }

    fn only(&mut self, path: &TreePath, aspect: Aspect, size: Option<u64>) {
        if !self.is_meant(path) {
            return;
        }
        self.differences.push(Difference::only(path, aspect, size));
    }

    /// The files have nothing of this entry, or nothing that is meant.
    fn gone(&mut self, entry: Entry) {
        self.expected_groups.of(&entry);
        if !self.is_meant(&entry.path) {
            return;
        }
        self.differences.push(Difference::only(&entry.path, Aspect::Removed, size_of(&entry.kind)));
        if self.ignored.covers(&entry.path) {
            self.hidden.push(entry);
        }
    }

    fn both(&mut self, entry: Entry, hints: Option<Hints>, stat: NodeStat) {
        if !self.is_meant(&entry.path) {
            return;
        }
        let expected = self.expected_groups.of(&entry);
        let found = self.found_groups.of(&entry.path, &stat);
        let untouched = hints
            .is_some_and(|hints| hints.inode == stat.inode && hints.ctime == stat.ctime)
            && self.trust == Trust::Hints
            && kind_of(&entry.kind) == stat.kind;
        // A second name makes the kernel note a change, so groups are covered.
        if untouched && !self.timeless_xattrs {
            self.progress.advance(1, 0);
            return;
        }
        let mut aspects = Vec::new();
        if !untouched {
            aspects = look(&entry, &stat);
            if expected != found {
                aspects.push(Aspect::Links);
            }
        }
        self.pairs.push(Pair { entry, stat, aspects, untouched });
    }

    /// Reads what must be read of the pairs collected so far.
    fn look_closely(&mut self) -> Result<(), CompareError> {
        let pairs = std::mem::take(&mut self.pairs);
        let found: Mutex<Vec<Difference>> = Mutex::default();
        let (root, progress, whether_only) = (self.root, self.progress, self.whether_only);
        workers::try_each(self.threads, of_one_directory(pairs), |pairs, _| {
            let dir = Parent::of(root, pairs.first());
            for mut pair in pairs {
                if !progress.keep_going() {
                    // What was not looked at is not known to be the same.
                    let source = io::ErrorKind::Interrupted.into();
                    return Err(CompareError::Io { path: pair.entry.path, source });
                }
                let read = match whether_only && differs_for_certain(&pair.aspects) {
                    true => Ok(()),
                    false => dir.read(&mut pair),
                };
                match read {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        pair.aspects = vec![Aspect::Removed];
                    }
                    Err(source) => return Err(CompareError::Io { path: pair.entry.path, source }),
                }
                progress.advance(1, pair.stat.size);
                if !pair.aspects.is_empty() {
                    let difference = pair.into_difference();
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(difference);
                }
            }
            Ok(())
        })?;
        self.differences.extend(found.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

/// Whatever else there is to be found? Between two spellings of ids, owners say nothing.
fn differs_for_certain(aspects: &[Aspect]) -> bool {
    aspects.iter().any(|aspect| *aspect != Aspect::Owner)
}

fn kind_of(kind: &EntryKind) -> NodeKind {
    match kind {
        EntryKind::Directory => NodeKind::Directory,
        EntryKind::File { .. } => NodeKind::File,
        EntryKind::Symlink { .. } => NodeKind::Symlink,
        EntryKind::Fifo => NodeKind::Fifo,
        EntryKind::Socket => NodeKind::Socket,
        EntryKind::CharDevice(_) => NodeKind::CharDevice,
        EntryKind::BlockDevice(_) => NodeKind::BlockDevice,
    }
}

/// What `statx` alone tells.
fn look(entry: &Entry, stat: &NodeStat) -> Vec<Aspect> {
    let mut aspects = Vec::new();
    if kind_of(&entry.kind) != stat.kind {
        aspects.push(Aspect::Type);
    } else {
        let device = |expected: &Device| *expected != stat.device;
        let differs = match &entry.kind {
            EntryKind::File { size, .. } => *size != stat.size,
            EntryKind::CharDevice(expected) | EntryKind::BlockDevice(expected) => device(expected),
            _ => false,
        };
        if differs {
            aspects.push(Aspect::Content);
        }
    }
    if stat.kind != NodeKind::Symlink && entry.mode != stat.mode {
        aspects.push(Aspect::Mode);
    }
    if (entry.uid, entry.gid) != (stat.uid, stat.gid) {
        aspects.push(Aspect::Owner);
    }
    if entry.mtime != stat.mtime {
        aspects.push(Aspect::Mtime);
    }
    aspects
}

/// Pairs that follow each other in one directory, a few at a time.
fn of_one_directory(pairs: Vec<Pair>) -> Vec<Vec<Pair>> {
    let mut parts: Vec<Vec<Pair>> = Vec::new();
    for pair in pairs {
        let fits = parts.last().filter(|part| part.len() < TOGETHER);
        let before = fits.and_then(|part| part.last()?.entry.path.parent());
        let same = before.is_some_and(|dir| Some(dir) == pair.entry.path.parent());
        match parts.last_mut().filter(|_| same) {
            Some(part) => part.push(pair),
            None => parts.push(vec![pair]),
        }
    }
    parts
}

/// The directory that some pairs are in.
struct Parent<'r> {
    root: &'r OwnedFd,
    /// Nothing if they are the root.
    dir: Option<io::Result<OwnedFd>>,
}

impl<'r> Parent<'r> {
    fn of(root: &'r OwnedFd, pair: Option<&Pair>) -> Self {
        let parent = pair.and_then(|pair| pair.entry.path.split()).map(|(parent, _)| parent);
        Parent { root, dir: parent.map(|path| tree::reach_below(root, path.components())) }
    }

    fn read(&self, pair: &mut Pair) -> io::Result<()> {
        let settled = pair.aspects.iter().any(|aspect| matches!(aspect, Aspect::Type));
        if settled {
            return Ok(());
        }
        match &self.dir {
            None => {
                if tree::xattrs_open(self.root)? != pair.entry.xattrs {
                    pair.aspects.push(Aspect::Xattrs);
                }
                Ok(())
            }
            Some(Ok(dir)) => read_pair(dir, pair),
            Some(Err(error)) => Err(match error.raw_os_error() {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => error.kind().into(),
            }),
        }
    }
}

/// What only reading tells: content, target, attributes.
fn read_pair(dir: &OwnedFd, pair: &mut Pair) -> io::Result<()> {
    let Some((_, name)) = pair.entry.path.split() else { return Ok(()) };
    let differs = match &pair.entry.kind {
        _ if pair.untouched => false,
        EntryKind::File { size, hash } if !pair.aspects.contains(&Aspect::Content) => {
            let file = tree::open_file(dir, name)?;
            match hash::of_file(&file, *size, 1) {
                Ok(found) => found != *hash,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
                Err(error) => return Err(error),
            }
        }
        EntryKind::Symlink { target } => tree::read_link(dir, name)? != *target,
        _ => false,
    };
    if differs {
        pair.aspects.push(Aspect::Content);
    }
    if tree::xattrs(dir, name)? != pair.entry.xattrs {
        pair.aspects.push(Aspect::Xattrs);
    }
    Ok(())
}

/// Files that have several names in this tree, and the first of them that was seen.
struct FoundGroups {
    firsts: HashMap<(u64, u64), Option<TreePath>>,
}

impl FoundGroups {
    fn of_all(files: &Tree) -> Self {
        let shared = files.shared_identities();
        FoundGroups { firsts: shared.into_iter().map(|identity| (identity, None)).collect() }
    }

    fn of(&mut self, path: &TreePath, stat: &NodeStat) -> Option<TreePath> {
        let first = self.firsts.get_mut(&stat.identity())?;
        Some(first.get_or_insert_with(|| path.clone()).clone())
    }
}
