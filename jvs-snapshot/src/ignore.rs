//! What is left out of a worktree's snapshots, by rules that people write: `.jvsignore` in
//! any directory, in the syntax of gitignore, and `snapshot.ignore` in the configuration.
//!
//! **Responsibility.** Which names of a directory that is being walked are ignored, and by
//! which rule; and that a file of rules is read safely. A walk asks for the names of a
//! directory and is given those that are not ignored: what is ignored is neither looked at
//! nor entered.
//!
//! **Must not know.** What is done about what is ignored.
//!
//! # Limitations
//! As in git, nothing in an ignored directory can be made an exception of: its rules are
//! never read.

mod file;
mod glob;
mod pattern;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jvs_repo::config::IgnorePatterns;
use jvs_repo::record::ignore_rules::{
    BYTES_MAX, FILE_NAME, FROM_MAX, IgnoreSource, OF_CONFIG, bytes_of, directory_of, size, spelled,
};

pub(crate) use file::RuleTrouble;
use pattern::Pattern;

use crate::compare::{CompareError, ComparedFiles};
use crate::manifest::TreePath;
use crate::tree::{self, Names, NodeKind, NodeStat};
use crate::walk::Tree;
use crate::workers;

/// Rules that came from one place, and the directory that they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    directory: TreePath,
    patterns: Vec<Pattern>,
    /// As its descriptor would have it.
    told: IgnoreSource,
}

impl Source {
    fn new(directory: TreePath, from: String, patterns: Vec<Pattern>) -> Self {
        let rules = patterns.iter().map(|pattern| spelled(&pattern.text)).collect();
        Source { directory, patterns, told: IgnoreSource { from, rules } }
    }

    /// The last rule that matches a path below its directory.
    fn verdict(&self, path: &[u8], is_directory: &mut dyn FnMut() -> bool) -> Option<&Pattern> {
        let above = self.directory.as_bytes().len();
        let path = if above == 0 { path } else { &path[above + 1..] };
        self.patterns.iter().rev().find(|pattern| pattern.matches(path, is_directory))
    }
}

/// Rules that were found, or that a snapshot was taken by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoreRules {
    of_config: Option<Arc<Source>>,
    /// By their directories.
    files: BTreeMap<TreePath, Arc<Source>>,
}

/// A rule that ignores something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoringRule {
    /// The file of rules, or `snapshot.ignore`, as a descriptor spells it.
    pub from: String,
    /// As it stands there.
    pub rule: String,
}

/// A name that is ignored, and not because something above it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredPath {
    /// Its path.
    pub path: TreePath,
    /// The rule that ignores it.
    pub by: IgnoringRule,
}

impl IgnoreRules {
    /// Those of the configuration.
    pub fn of_config(patterns: &IgnorePatterns) -> Self {
        let patterns: Vec<Pattern> =
            patterns.iter().filter_map(|line| Pattern::of_line(line.as_bytes())).collect();
        let source = Source::new(TreePath::root(), OF_CONFIG.to_owned(), patterns);
        let of_config = (!source.patterns.is_empty()).then(|| Arc::new(source));
        IgnoreRules { of_config, files: BTreeMap::new() }
    }

    /// Those that a descriptor has, which a strict reader has read.
    pub fn of_record(sources: &[IgnoreSource]) -> Self {
        let mut rules = IgnoreRules::default();
        for source in sources {
            let texts = source.rules.iter().filter_map(|rule| bytes_of(rule));
            let patterns = texts.filter_map(|text| Pattern::of_text(&text)).collect();
            let directory = directory_of(&source.from).flatten();
            let path = TreePath::new(directory.clone().unwrap_or_default()).unwrap_or_default();
            let found = Arc::new(Source::new(path.clone(), source.from.clone(), patterns));
            match directory {
                None => rules.of_config = Some(found),
                Some(_) => drop(rules.files.insert(path, found)),
            }
        }
        rules
    }

    /// As a descriptor has them.
    pub fn to_record(&self) -> Vec<IgnoreSource> {
        let all = self.of_config.iter().chain(self.files.values());
        all.map(|source| source.told.clone()).collect()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.of_config.is_none() && self.files.is_empty()
    }

    #[cfg(feature = "fuzzing")]
    pub(crate) fn of_file_at_root(bytes: &[u8]) -> Self {
        let patterns = pattern::of_file(bytes);
        let root = TreePath::root();
        let source = Source::new(root.clone(), FILE_NAME.to_owned(), patterns);
        let files = (!source.patterns.is_empty()).then(|| (root, Arc::new(source)));
        IgnoreRules { of_config: None, files: files.into_iter().collect() }
    }

    #[cfg(feature = "fuzzing")]
    pub(crate) fn ignores(&self, path: &TreePath, is_directory: bool) -> bool {
        let Some((above, _)) = path.split() else { return false };
        let by = verdict(&self.about(&above), path.as_bytes(), &mut || is_directory);
        by.is_some()
    }

    /// The rules about what is in `directory`, the nearest first.
    fn about(&self, directory: &TreePath) -> Vec<Arc<Source>> {
        let mut sources = Vec::new();
        if !self.files.is_empty() {
            let bytes = directory.as_bytes();
            let ends = (0..bytes.len()).filter(|&at| bytes[at] == b'/');
            let own = (!bytes.is_empty()).then_some(bytes);
            let above = [&[][..]].into_iter().chain(ends.map(|end| &bytes[..end])).chain(own);
            sources.extend(above.filter_map(|path| self.files.get(path).cloned()));
            sources.reverse();
        }
        sources.extend(self.of_config.clone());
        sources
    }
}

/// The first verdict of sources, the nearest first.
fn verdict(
    sources: &[Arc<Source>],
    path: &[u8],
    is_directory: &mut dyn FnMut() -> bool,
) -> Option<IgnoringRule> {
    let (source, pattern) =
        sources.iter().find_map(|source| Some((source, source.verdict(path, is_directory)?)))?;
    let rule = || spelled(&pattern.text);
    (!pattern.is_exception).then(|| IgnoringRule { from: source.told.from.clone(), rule: rule() })
}

/// What is ignored of `files`, sorted by path.
pub fn list(files: &ComparedFiles<'_>) -> Result<Vec<IgnoredPath>, CompareError> {
    let at_root = |source| CompareError::Io { path: TreePath::root(), source };
    let root = tree::open_root(files.root).map_err(at_root)?;
    let threads = workers::for_files_on(&root);
    let found = Tree::read_some(threads, &root, files.scope()).map_err(CompareError::Walk)?;
    Ok(found.ignored.paths)
}

/// What a walk has found of rules, and left out because of them.
#[derive(Debug, Default)]
struct Seen {
    rules: IgnoreRules,
    files: Vec<(TreePath, NodeStat)>,
    ignored: Vec<IgnoredPath>,
}

/// Leaves out of a walk what is ignored.
#[derive(Debug)]
pub(crate) struct Ignoring {
    /// Are files of rules read on the way? Else all rules are known.
    reads: bool,
    /// Rules of a snapshot, by which more is ignored.
    also: IgnoreRules,
    seen: Mutex<Seen>,
}

/// What a walk left out, and why.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ignored {
    /// The rules that were in force.
    pub(crate) rules: IgnoreRules,
    /// The files that had them, as they looked before they were read.
    pub(crate) files: Vec<(TreePath, NodeStat)>,
    /// Sorted by path. None is below another.
    pub(crate) paths: Vec<IgnoredPath>,
}

impl Ignored {
    /// Is this path ignored, or something above it?
    pub(crate) fn covers(&self, path: &TreePath) -> bool {
        let bytes = path.as_bytes();
        let ends = (0..bytes.len()).filter(|&at| bytes[at] == b'/').chain([bytes.len()]);
        !self.paths.is_empty() && ends.into_iter().any(|end| self.position(&bytes[..end]).is_ok())
    }

    fn position(&self, path: &[u8]) -> Result<usize, usize> {
        self.paths.binary_search_by(|it| it.path.as_bytes().cmp(path))
    }
}

impl Ignoring {
    /// By the rules that are found on the way, and those of the configuration.
    pub(crate) fn reading(config: &IgnoreRules) -> Self {
        let seen = Seen { rules: config.clone(), ..Seen::default() };
        Ignoring { reads: true, also: IgnoreRules::default(), seen: Mutex::new(seen) }
    }

    /// And by those of a snapshot.
    pub(crate) fn and_by(mut self, also: IgnoreRules) -> Self {
        self.also = also;
        self
    }

    /// By known rules alone.
    pub(crate) fn by(rules: &IgnoreRules) -> Self {
        Ignoring { reads: false, ..Self::reading(rules) }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was left out.
    pub(crate) fn into_ignored(self) -> Ignored {
        let Seen { rules, files, ignored: mut paths } =
            self.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        paths.sort_by(|one, other| one.path.cmp(&other.path));
        Ignored { rules, files, paths }
    }

    /// Those of `names`, which are in the open directory `path`, that are not ignored. They
    /// are all that is in it, or some.
    pub(crate) fn keep(
        &self,
        path: &TreePath,
        dir: impl AsFd,
        names: Names,
        are_all: bool,
    ) -> io::Result<Names> {
        if self.reads && (!are_all || names.position(FILE_NAME.as_bytes()).is_some()) {
            self.read_rules(path, &dir)?;
        }
        let mut sources = self.seen().rules.about(path);
        let also = self.also.about(path);
        if sources.is_empty() && also.is_empty() {
            return Ok(names);
        }
        let (mut kept, mut ignored) = (Vec::with_capacity(names.len()), Vec::new());
        let mut whole = path.as_bytes().to_vec();
        if !whole.is_empty() {
            whole.push(b'/');
        }
        let above = whole.len();
        sources.retain(|source| !source.patterns.is_empty());
        for name in names.iter() {
            whole.truncate(above);
            whole.extend_from_slice(name);
            let mut known = None;
            // What is gone by now is no directory.
            let mut is_directory = || {
                *known.get_or_insert_with(|| {
                    tree::stat(&dir, name).is_ok_and(|stat| stat.kind == NodeKind::Directory)
                })
            };
            let by = verdict(&sources, &whole, &mut is_directory)
                .or_else(|| verdict(&also, &whole, &mut is_directory));
            match by {
                None => kept.push(name),
                // What cannot be a path is in nobody's way.
                Some(by) => {
                    ignored.extend(path.child(name).ok().map(|path| IgnoredPath { path, by }))
                }
            }
        }
        if ignored.is_empty() {
            return Ok(names);
        }
        self.seen().ignored.append(&mut ignored);
        Names::of(&kept)
    }

    fn read_rules(&self, path: &TreePath, dir: impl AsFd) -> io::Result<()> {
        let Some(found) = file::read(dir)? else { return Ok(()) };
        let trouble = |why: String| io::Error::other(RuleTrouble::new(why));
        let from = match path.is_root() {
            true => FILE_NAME.to_owned(),
            false => format!("{}/{FILE_NAME}", spelled(path.as_bytes())),
        };
        if from.len() > FROM_MAX {
            return Err(trouble(format!("its path has more than {FROM_MAX} bytes")));
        }
        let source = Source::new(path.clone(), from, found.patterns);
        let mut seen = self.seen();
        if let Ok(at) = path.child(FILE_NAME.as_bytes()) {
            seen.files.push((at, found.stat));
        }
        if source.patterns.is_empty() {
            return Ok(());
        }
        seen.rules.files.insert(path.clone(), Arc::new(source));
        match size(&seen.rules.to_record()) > BYTES_MAX {
            true => Err(trouble(format!(
                "with it, the rules of this worktree have more than {} KiB",
                BYTES_MAX / 1024
            ))),
            false => Ok(()),
        }
    }
}
