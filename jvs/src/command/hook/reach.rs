//! Where a tool may write: the worktrees that its words and paths lead to.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use jvs_repo::discover::{DiscoverError, Located, discover};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use super::who::Asker;
use crate::context::Context;
use crate::fail::Failure;
use crate::harness::{Known, Role, ShellUse, Word, words_of};
use crate::trust;

/// Most directories that a command is taken to go to.
const BASES_MAX: usize = 8;
/// As many symlinks as a kernel follows.
const LINKS_MAX: usize = 40;

/// Programs that change all that is below the directory that they are given.
const SWEEPING: &[&str] = &["rm", "mv", "chmod", "chown", "chgrp", "find", "rsync", "shred"];

/// How much of what a directory has below it is meant by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Nothing but what it is in.
    Itself,
    /// All worktrees.
    Worktrees,
    /// All, the files of jvs as well.
    Below,
}

/// What may be written.
pub(super) struct GuardedFiles<'r, 'c> {
    context: &'r Context<'c>,
    asker: &'r Asker,
    /// Worktrees, by repository and name.
    pub(super) wanted: BTreeSet<(PathBuf, WorktreeName)>,
    /// The files of jvs itself.
    pub(super) own_files: bool,
}

/// A directory that relative names begin in.
struct Base {
    dir: PathBuf,
    in_worktree: bool,
}

impl<'r, 'c> GuardedFiles<'r, 'c> {
    pub(super) fn of(context: &'r Context<'c>, asker: &'r Asker) -> Self {
        GuardedFiles { context, asker, wanted: BTreeSet::new(), own_files: false }
    }

    /// A command of a shell: where it runs, and where its words lead. True if it writes
    /// after it has given a lock back.
    pub(super) fn shell(&mut self, command: &str, dir: &Path) -> Result<bool, Failure> {
        let uses = ShellUse::of(command, self.asker.id.as_str());
        if uses == ShellUse::Reads {
            return Ok(false);
        }
        let here = found(self.context, dir)?;
        let mut roots: Vec<PathBuf> = here.iter().map(|here| here.root.clone()).collect();
        let in_worktree = here.as_ref().is_some_and(|here| here.worktree.is_some());
        if let Some((root, worktree)) = here.and_then(|here| Some((here.root, here.worktree?)))
            && uses != ShellUse::Acquires
        {
            self.wanted.insert((root, worktree));
        }
        let home = self.context.home().and_then(|home| home.into_os_string().into_string().ok());
        let known =
            Known { home: home.as_deref().unwrap_or("~"), dir: dir.to_str().unwrap_or(".") };
        let words = words_of(command, known);
        let mut bases = vec![Base { dir: dir.to_owned(), in_worktree }];
        for word in &words {
            match word.role {
                Role::Into | Role::Within => self.enter(&mut bases, &word.text)?,
                Role::Asked => roots.extend(self.root_at(&dir.join(&word.text))?),
                _ => {}
            }
        }
        let sweeps = words.iter().any(|word| SWEEPING.contains(&word.text.as_str()));
        for word in &words {
            match word.role {
                Role::Ends => self.ends(&roots, dir, &word.text)?,
                Role::Asked => self.named(&roots, &word.text)?,
                _ => {}
            }
            for base in &bases {
                self.word(base, word)?;
            }
            // A slash alone is more often part of a text than the root of all.
            if sweeps && word.role == Role::Named && word.text.contains(|c| c != '/') {
                self.above(&roots, &dir.join(&word.text))?;
            }
        }
        Ok(uses == ShellUse::WritesUnlocked)
    }

    /// The directories that `name` may be are begun in as well.
    fn enter(&mut self, bases: &mut Vec<Base>, name: &str) -> Result<(), Failure> {
        let dirs: Vec<PathBuf> = bases.iter().map(|base| base.dir.join(name)).collect();
        for dir in dirs {
            if bases.len() < BASES_MAX && bases.iter().all(|base| base.dir != dir) {
                let located = found(self.context, &dir)?;
                let in_worktree = located.is_some_and(|it| it.worktree.is_some());
                bases.push(Base { dir, in_worktree });
            }
        }
        Ok(())
    }

    fn word(&mut self, base: &Base, word: &Word) -> Result<(), Failure> {
        let text = &word.text;
        // In a worktree a plain name is a name in it.
        let plain = !text.starts_with('/') && !text.split('/').any(|step| step == "..");
        if base.in_worktree && plain {
            return Ok(());
        }
        match word.role {
            Role::Ends | Role::Asked => Ok(()),
            Role::Into => self.path(&base.dir.join(text), Extent::Itself),
            Role::Within => self.path(&base.dir.join(text), Extent::Worktrees),
            Role::Named => self.path(&base.dir.join(text), Extent::Below),
            Role::Begins => {
                let (dir, begin) = text.rsplit_once('/').map_or(("", text.as_str()), |it| it);
                let dir = if text.starts_with('/') { format!("{dir}/") } else { dir.to_owned() };
                self.begins(&base.dir.join(dir), begin)
            }
        }
    }

    /// What is at `path`, by whatever way.
    pub(super) fn path(&mut self, path: &Path, extent: Extent) -> Result<(), Failure> {
        for place in places(self.context, path) {
            let Some(located) = self.settle(&place)? else { continue };
            if extent != Extent::Itself {
                self.below(&located.root, &place, "")?;
                self.own_files |= extent == Extent::Below && place == located.root;
            }
        }
        Ok(())
    }

    /// What is in `dir` and has a name that begins with `begin`.
    fn begins(&mut self, dir: &Path, begin: &str) -> Result<(), Failure> {
        for place in places(self.context, dir) {
            let Some(located) = self.settle(&place)? else { continue };
            self.below(&located.root, &place, begin)?;
            let own = !begin.is_empty() && layout::CONTROL_DIR.starts_with(begin);
            self.own_files |= own && place == located.root;
        }
        Ok(())
    }

    /// The worktree that `place` is in, or the files of jvs; its repository if it is in neither.
    fn settle(&mut self, place: &Path) -> Result<Option<Located>, Failure> {
        let Some(located) = located(self.context, place)? else { return Ok(None) };
        if let Some(worktree) = located.worktree {
            self.wanted.insert((located.root, worktree));
            return Ok(None);
        }
        if place.starts_with(located.root.join(layout::CONTROL_DIR)) {
            self.own_files = true;
            return Ok(None);
        }
        Ok(Some(located))
    }

    /// The worktrees below `place` whose way begins with `begin`.
    fn below(&mut self, root: &Path, place: &Path, begin: &str) -> Result<(), Failure> {
        let main = place == root && layout::MAIN_DIR.starts_with(begin);
        let all = place == root && layout::WORKTREES_DIR.starts_with(begin);
        let some = place == root.join(layout::WORKTREES_DIR);
        if main {
            self.wanted.insert((root.to_owned(), WorktreeName::main()));
        }
        if all || some {
            let there = self.asker.at(self.context, root, Some(&WorktreeName::main()));
            for (name, _) in there.here()?.repo.worktrees()?.worktrees {
                if !name.is_main() && (all || name.as_str().starts_with(begin)) {
                    self.wanted.insert((root.to_owned(), name));
                }
            }
        }
        Ok(())
    }

    /// A repository that is known, if `path` is a directory above it.
    fn above(&mut self, roots: &[PathBuf], path: &Path) -> Result<(), Failure> {
        for place in places(self.context, path) {
            for root in roots.iter().filter(|root| **root != place && root.starts_with(&place)) {
                self.below(root, root, "")?;
                self.own_files = true;
            }
        }
        Ok(())
    }

    /// The end of a name whose beginning nobody knows: from where it would lead to a worktree.
    fn ends(&mut self, roots: &[PathBuf], dir: &Path, text: &str) -> Result<(), Failure> {
        let end = text.trim_start_matches('/');
        for root in roots {
            let bases = [Some(root.as_path()), root.parent()];
            for base in bases.into_iter().flatten() {
                self.path(&base.join(end), Extent::Itself)?;
            }
        }
        if roots.is_empty() { self.path(&dir.join(end), Extent::Itself) } else { Ok(()) }
    }

    /// A worktree by its name.
    fn named(&mut self, roots: &[PathBuf], name: &str) -> Result<(), Failure> {
        let Ok(name) = name.parse::<WorktreeName>() else { return Ok(()) };
        for root in roots {
            let there = self.asker.at(self.context, root, Some(&WorktreeName::main()));
            if there.here()?.repo.worktree(&name)?.is_some() {
                self.wanted.insert((root.clone(), name.clone()));
            }
        }
        Ok(())
    }

    /// The repository of which `path` is the root.
    fn root_at(&self, path: &Path) -> Result<Option<PathBuf>, Failure> {
        let located = found(self.context, path)?;
        Ok(located.map(|it| it.root).filter(|root| *root == real(path)))
    }
}

/// The repository that `path` is in, or would be.
pub(super) fn found(context: &Context<'_>, path: &Path) -> Result<Option<Located>, Failure> {
    // Of a process whose directory nobody told, this one's.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    located(context, &real(&path))
}

/// The same of a path without symlinks.
fn located(context: &Context<'_>, path: &Path) -> Result<Option<Located>, Failure> {
    for place in path.ancestors() {
        let located = match discover(place) {
            Ok(located) => located,
            Err(DiscoverError::NotARepository { .. }) => return Ok(None),
            Err(DiscoverError::Io { source, .. }) if is_nowhere(&source) => continue,
            Err(error) => return Err(error.into()),
        };
        trust::check(&located, context.env())?;
        return Ok(Some(located));
    }
    Ok(None)
}

/// All that `path` may be: to the kernel, to who removes `..` before, and with a tilde for
/// the home directory.
fn places(context: &Context<'_>, path: &Path) -> BTreeSet<PathBuf> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut steps = path.components();
    let tilde = steps.by_ref().any(|step| step.as_os_str() == "~");
    let at_home = context.home().filter(|_| tilde).map(|home| home.join(steps.as_path()));
    let named = at_home.into_iter().chain([path]);
    named.flat_map(|path| [real(&path), real(&without_dots(&path))]).collect()
}

/// `path` with each `..` taken as the name before it being gone, symlink or not.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for step in path.components() {
        match step {
            Component::ParentDir => drop(plain.pop()),
            step => plain.push(step),
        }
    }
    plain
}

/// `path` without symlinks, whether or not anything is there: who writes to a symlink makes
/// what it names.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let steps = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|step| step.as_os_str().to_owned()).collect()
    };
    let mut todo = steps(path);
    let mut done = PathBuf::new();
    let mut links = 0;
    while let Some(step) = todo.pop() {
        if step == ".." {
            done.pop();
            continue;
        }
        // A step that is a root begins anew.
        let next = done.join(&step);
        match next.read_link() {
            Ok(target) if links < LINKS_MAX => {
                links += 1;
                todo.extend(steps(&target));
            }
            _ => done = next,
        }
    }
    done
}

/// Is nothing there, and perhaps something above it?
fn is_nowhere(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_real_although_nothing_is_there() {
        let dir = tempfile::tempdir().expect("tempdir");
        let top = dir.path().canonicalize().expect("canonical");
        symlink("b/new", top.join("dangling")).expect("symlink");
        symlink(top.join("c"), top.join("gone")).expect("symlink");
        symlink("loop", top.join("loop")).expect("symlink");
        for (path, meant) in [
            ("dangling", "b/new"),
            ("dangling/x", "b/new/x"),
            ("gone/../y", "y"),
            ("nope/../r/f", "r/f"),
            ("loop/x", "loop/x"),
        ] {
            assert_eq!(real(&top.join(path)), top.join(meant), "{path}");
        }
        assert_eq!(without_dots(Path::new("/a/link/../b/./c")), Path::new("/a/b/c"));
    }
}
