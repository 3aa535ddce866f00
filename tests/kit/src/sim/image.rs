//! A filesystem in memory: what running processes see, and with it what would
//! survive a power cut now.
//!
//! Content becomes durable by `sync` of the file, entries by `sync_dir` of the
//! directory. What was not synced survives or not: of each directory any
//! prefix of its changes, of content all or nothing. Directories that a rename
//! connects share one order of changes, because no filesystem loses half a
//! rename.
//!
//! Cloning is cheap (nodes are shared) and the fingerprint is kept up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jvs_repo::store::{DirEntryKind, RepoPath};
use rustix::io::Errno;

use super::fingerprint::fingerprint;

/// An inode's number.
pub(crate) type Ino = u64;
pub(crate) const ROOT: Ino = 1;
/// A name in a directory.
pub(crate) type Name = Arc<str>;
type Entries = BTreeMap<Name, Ino>;

/// `durable` is what a power cut leaves; `None`: the same as what is seen.
#[derive(Debug, Clone, Hash)]
enum Body {
    File { bytes: Arc<[u8]>, durable: Option<Arc<[u8]>> },
    Directory { entries: Arc<Entries>, durable: Option<Arc<Entries>> },
}

#[derive(Debug)]
struct Node {
    body: Body,
    mark: u128,
    /// Its content does not tell two images apart.
    forgotten: bool,
}

/// Entries that change in one step: (directory, name, what it names now).
type Edit = Vec<(Ino, Name, Option<Ino>)>;

/// A filesystem in memory.
#[derive(Debug, Clone)]
pub struct Image {
    nodes: BTreeMap<Ino, Arc<Node>>,
    /// Sum of the marks of all nodes: the fingerprint without a walk.
    sum: u128,
    /// Changes of entries that no `sync_dir` has made durable, in order.
    journal: Vec<Arc<Edit>>,
    /// Whether anyone will ask what survives: if not, everything does.
    tracking: bool,
}

impl Hash for Image {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sum.hash(state);
        self.journal.hash(state);
    }
}

impl Image {
    pub(crate) fn empty(tracking: bool) -> Self {
        let mut image =
            Image { nodes: BTreeMap::new(), sum: 0, journal: Vec::new(), tracking: false };
        image.put(ROOT, Body::Directory { entries: Arc::default(), durable: None });
        image.tracking = tracking;
        image
    }

    /// From now on (or no longer) tell apart what is durable; what is seen now is.
    pub(crate) fn track(&mut self, tracking: bool) {
        self.journal.clear();
        let all: Vec<Ino> = self.nodes.keys().copied().collect();
        for ino in all {
            let body = match &self.nodes[&ino].body {
                Body::File { bytes, .. } => Body::File { bytes: bytes.clone(), durable: None },
                Body::Directory { entries, .. } => {
                    Body::Directory { entries: entries.clone(), durable: None }
                }
            };
            self.put(ino, body);
        }
        self.tracking = tracking;
    }

    /// A number that tells this image from others.
    pub(crate) fn digest(&self) -> u64 {
        self.sum as u64
    }

    pub(crate) fn is_tracking(&self) -> bool {
        self.tracking
    }

    fn put(&mut self, ino: Ino, body: Body) {
        let forgotten = self.nodes.get(&ino).is_some_and(|node| node.forgotten);
        self.put_new(ino, body, forgotten);
    }

    fn put_new(&mut self, ino: Ino, body: Body, forgotten: bool) {
        let mark = if forgotten { fingerprint(&ino) } else { fingerprint(&(ino, &body)) };
        let old = self.nodes.insert(ino, Arc::new(Node { body, mark, forgotten }));
        let old = old.map_or(0, |node| node.mark);
        self.sum = self.sum.wrapping_sub(old).wrapping_add(mark);
    }

    fn take(&mut self, ino: Ino) {
        if let Some(node) = self.nodes.remove(&ino) {
            self.sum = self.sum.wrapping_sub(node.mark);
        }
    }

    fn body(&self, ino: Ino) -> &Body {
        &self.nodes.get(&ino).expect("an inode that something names is there").body
    }

    fn entries(&self, dir: Ino) -> Result<&Entries, Errno> {
        match self.body(dir) {
            Body::Directory { entries, .. } => Ok(entries),
            Body::File { .. } => Err(Errno::NOTDIR),
        }
    }

    pub(crate) fn kind(&self, ino: Ino) -> DirEntryKind {
        match self.body(ino) {
            Body::File { .. } => DirEntryKind::File,
            Body::Directory { .. } => DirEntryKind::Directory,
        }
    }

    pub(crate) fn bytes(&self, ino: Ino) -> Result<&Arc<[u8]>, Errno> {
        match self.body(ino) {
            Body::File { bytes, .. } => Ok(bytes),
            Body::Directory { .. } => Err(Errno::ISDIR),
        }
    }

    pub(crate) fn holds(&self, ino: Ino) -> bool {
        self.nodes.contains_key(&ino)
    }

    pub(crate) fn look_up(&self, dir: Ino, name: &str) -> Result<Option<Ino>, Errno> {
        Ok(self.entries(dir)?.get(name).copied())
    }

    pub(crate) fn resolve(&self, path: &RepoPath) -> Result<Ino, Errno> {
        let mut at = ROOT;
        for name in path.as_str().split('/').filter(|n| !n.is_empty()) {
            at = self.look_up(at, name)?.ok_or(Errno::NOENT)?;
        }
        Ok(at)
    }

    /// The directory of `path` and the last component.
    pub(crate) fn resolve_parent<'p>(&self, path: &'p RepoPath) -> Result<(Ino, &'p str), Errno> {
        let (_, name) = path.split();
        if name.is_empty() {
            return Err(Errno::BUSY);
        }
        let dir = self.resolve(&path.parent())?;
        self.entries(dir)?;
        Ok((dir, name))
    }

    pub(crate) fn names(&self, dir: Ino) -> Result<impl Iterator<Item = &str>, Errno> {
        Ok(self.entries(dir)?.keys().map(AsRef::as_ref))
    }

    pub(crate) fn is_empty_dir(&self, ino: Ino) -> bool {
        self.entries(ino).is_ok_and(BTreeMap::is_empty)
    }

    /// Is `inner` the directory `outer` or below it?
    pub(crate) fn is_within(&self, inner: Ino, outer: Ino) -> bool {
        inner == outer
            || self.entries(outer).is_ok_and(|e| e.values().any(|&ino| self.is_within(inner, ino)))
    }

    pub(crate) fn add_file(&mut self, ino: Ino, dir: Ino, name: &str, forgotten: bool) {
        self.put_new(ino, Body::File { bytes: Arc::default(), durable: None }, forgotten);
        self.edit(vec![(dir, name.into(), Some(ino))]);
    }

    pub(crate) fn add_dir(&mut self, ino: Ino, dir: Ino, name: &str) {
        self.put(ino, Body::Directory { entries: Arc::default(), durable: None });
        self.edit(vec![(dir, name.into(), Some(ino))]);
    }

    /// Changes entries in one step.
    pub(crate) fn edit(&mut self, edit: Edit) {
        for (dir, name, ino) in &edit {
            let Body::Directory { mut entries, mut durable } = self.body(*dir).clone() else {
                unreachable!("only directories have entries")
            };
            if self.tracking && durable.is_none() {
                durable = Some(entries.clone());
            }
            set(Arc::make_mut(&mut entries), name, *ino);
            self.put(*dir, Body::Directory { entries, durable });
        }
        if self.tracking {
            self.journal.push(Arc::new(edit));
        }
    }

    pub(crate) fn write(&mut self, ino: Ino, offset: u64, data: &[u8]) {
        let Body::File { bytes, mut durable } = self.body(ino).clone() else {
            unreachable!("only files are written to")
        };
        if self.tracking && durable.is_none() {
            durable = Some(bytes.clone());
        }
        let start = usize::try_from(offset).expect("a simulated file fits into memory");
        let mut content = bytes.to_vec();
        content.resize(content.len().max(start + data.len()), 0);
        content[start..start + data.len()].copy_from_slice(data);
        self.put(ino, Body::File { bytes: content.into(), durable });
    }

    pub(crate) fn sync(&mut self, ino: Ino) {
        if let Body::File { bytes, durable: Some(_) } = self.body(ino).clone() {
            self.put(ino, Body::File { bytes, durable: None });
        }
    }

    /// Makes the changes of `dir` durable, and those that must not be left
    /// behind because a rename between directories came after them.
    pub(crate) fn sync_dir(&mut self, dir: Ino) {
        let mut dirs = BTreeSet::from([dir]);
        let mut now_durable = vec![false; self.journal.len()];
        for (n, edit) in self.journal.iter().enumerate().rev() {
            if edit.iter().any(|(d, ..)| dirs.contains(d)) {
                now_durable[n] = true;
                dirs.extend(edit.iter().map(|(d, ..)| *d));
            }
        }
        let journal = std::mem::take(&mut self.journal);
        for (edit, durable) in journal.into_iter().zip(now_durable) {
            if durable {
                self.make_durable(&edit);
            } else {
                self.journal.push(edit);
            }
        }
        for d in dirs {
            if !self.journal.iter().any(|edit| edit.iter().any(|(of, ..)| *of == d))
                && let Body::Directory { entries, durable: Some(_) } = self.body(d).clone()
            {
                self.put(d, Body::Directory { entries, durable: None });
            }
        }
    }

    fn make_durable(&mut self, edit: &Edit) {
        for (dir, name, ino) in edit {
            if let Body::Directory { entries, durable: Some(mut durable) } = self.body(*dir).clone()
            {
                set(Arc::make_mut(&mut durable), name, *ino);
                self.put(*dir, Body::Directory { entries, durable: Some(durable) });
            }
        }
    }

    /// Does any directory, as it is seen now, name this inode?
    pub(crate) fn is_named(&self, ino: Ino) -> bool {
        self.names_of(ino) > 0
    }

    /// How many names an inode has, as they are seen now.
    pub(crate) fn names_of(&self, ino: Ino) -> u64 {
        let in_one = |node: &Arc<Node>| match &node.body {
            Body::Directory { entries, .. } => entries.values().filter(|of| **of == ino).count(),
            Body::File { .. } => 0,
        };
        self.nodes.values().map(in_one).sum::<usize>() as u64
    }

    /// How many bytes are in files, as they are seen now.
    pub(crate) fn size(&self) -> u64 {
        let bytes = |node: &Arc<Node>| match &node.body {
            Body::File { bytes, .. } => bytes.len() as u64,
            Body::Directory { .. } => 0,
        };
        self.nodes.values().map(bytes).sum()
    }

    /// Forgets a file that nothing names. The caller knows that no descriptor
    /// means it.
    pub(crate) fn forget_if_unnamed(&mut self, ino: Ino) {
        // While something may come back from the durable side nothing is forgotten.
        let named = self.tracking || self.is_named(ino);
        if !named && ino != ROOT {
            self.take(ino);
        }
    }

    /// The journal's changes by group of connected directories, each in order.
    fn groups(&self) -> Vec<Vec<&Edit>> {
        let mut groups: Vec<(BTreeSet<Ino>, Vec<usize>)> = Vec::new();
        for (n, edit) in self.journal.iter().enumerate() {
            let mut dirs: BTreeSet<Ino> = edit.iter().map(|(d, ..)| *d).collect();
            let mut edits = vec![n];
            groups.retain_mut(|(of, earlier)| {
                let apart = of.is_disjoint(&dirs);
                if !apart {
                    dirs.append(of);
                    edits.append(earlier);
                }
                apart
            });
            edits.sort_unstable();
            groups.push((dirs, edits));
        }
        groups.sort_by_key(|(_, edits)| edits[0]);
        let edits_of = |numbers: Vec<usize>| numbers.iter().map(|&n| &*self.journal[n]).collect();
        groups.into_iter().map(|(_, numbers)| edits_of(numbers)).collect()
    }

    fn has_unsynced_content(&self) -> bool {
        self.nodes.values().any(|n| matches!(n.body, Body::File { durable: Some(_), .. }))
    }

    /// How many ways there are in which a power cut now can end.
    pub fn power_cut_outcomes(&self) -> usize {
        let content = if self.has_unsynced_content() { 2 } else { 1 };
        self.groups().iter().fold(content, |n, group| n * (group.len() + 1))
    }

    /// What a power cut leaves: 0 is only what was synced, the last of
    /// [`Image::power_cut_outcomes`] is everything.
    pub fn after_power_cut(&self, outcome: usize) -> Image {
        let mut rest = outcome;
        let mut digit = |base: usize| {
            let digit = rest % base;
            rest /= base;
            digit
        };
        let content_kept = self.has_unsynced_content() && digit(2) == 1;
        let mut survivors: Vec<&Edit> = Vec::new();
        for group in self.groups() {
            survivors.extend(&group[..digit(group.len() + 1)]);
        }
        let mut entries: BTreeMap<Ino, Entries> = BTreeMap::new();
        for (ino, node) in &self.nodes {
            if let Body::Directory { entries: seen, durable } = &node.body {
                entries.insert(*ino, durable.as_ref().unwrap_or(seen).as_ref().clone());
            }
        }
        for (dir, name, ino) in survivors.into_iter().flatten() {
            set(entries.entry(*dir).or_default(), name, *ino);
        }
        let mut left =
            Image { nodes: BTreeMap::new(), sum: 0, journal: Vec::new(), tracking: self.tracking };
        let mut to_visit = vec![ROOT];
        while let Some(ino) = to_visit.pop() {
            let body = match self.body(ino) {
                Body::File { bytes, durable: Some(durable) } => {
                    let bytes = if content_kept { bytes } else { durable };
                    Body::File { bytes: bytes.clone(), durable: None }
                }
                Body::File { bytes, durable: None } => {
                    Body::File { bytes: bytes.clone(), durable: None }
                }
                Body::Directory { .. } => {
                    let entries = entries.remove(&ino).unwrap_or_default();
                    to_visit.extend(entries.values());
                    Body::Directory { entries: Arc::new(entries), durable: None }
                }
            };
            left.put_new(ino, body, self.nodes[&ino].forgotten);
        }
        left
    }

    // What scenarios and tests look at, by path.

    /// The names in a directory, sorted; none if it is not one.
    pub fn list(&self, dir: &RepoPath) -> Vec<String> {
        let names = self.resolve(dir).and_then(|ino| Ok(self.names(ino)?.map(str::to_owned)));
        names.map(Iterator::collect).unwrap_or_default()
    }

    /// The content of a file, if `path` is one.
    pub fn read(&self, path: &RepoPath) -> Option<&[u8]> {
        let ino = self.resolve(path).ok()?;
        self.bytes(ino).ok().map(AsRef::as_ref)
    }

    /// The inode at `path`.
    pub fn inode(&self, path: &RepoPath) -> Option<u64> {
        self.resolve(path).ok()
    }

    /// Is anything at `path`?
    pub fn exists(&self, path: &RepoPath) -> bool {
        self.inode(path).is_some()
    }

    /// Every path below the root, directories with a `/` at the end, sorted.
    pub fn tree(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.walk(ROOT, "", &mut paths);
        paths.sort();
        paths
    }

    fn walk(&self, dir: Ino, prefix: &str, paths: &mut Vec<String>) {
        for (name, &ino) in self.entries(dir).into_iter().flatten() {
            match self.body(ino) {
                Body::File { .. } => paths.push(format!("{prefix}{name}")),
                Body::Directory { .. } => {
                    paths.push(format!("{prefix}{name}/"));
                    self.walk(ino, &format!("{prefix}{name}/"), paths);
                }
            }
        }
    }
}

fn set(entries: &mut Entries, name: &Name, ino: Option<Ino>) {
    match ino {
        Some(ino) => entries.insert(name.clone(), ino),
        None => entries.remove(name),
    };
}
