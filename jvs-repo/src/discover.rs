//! Where am I: from a directory to the repository and worktree it is in.
//!
//! One `lstat` a directory on the way up and nothing else: every command pays
//! for this before it does anything. From the current directory the way up is `..`, so
//! that no filesystem is asked again for the names that lead there.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;

use crate::code::{Code, Coded};
use crate::layout;
use crate::name::{ShownName, WorktreeName};
use crate::next::Next;
use crate::store::explain_outside;

/// A place in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The repository's root, without symlinks.
    pub root: PathBuf,
    /// The same by the way on which it was found: perhaps from the current directory.
    pub reach: PathBuf,
    /// The worktree whose payload the place is in, if it is in one.
    pub worktree: Option<WorktreeName>,
    /// Its control directory.
    pub control_dir: ControlDir,
}

/// Whose a control directory is, and who may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlDir {
    /// The user that it belongs to.
    pub owner: u32,
    /// Its permissions.
    pub mode: u32,
}

/// Why no repository was found.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// None here or above.
    #[error("no repository in {} or any directory above it", from.display())]
    NotARepository {
        /// Where the search began.
        from: PathBuf,
    },
    /// A control directory that is a symlink.
    #[error("{} is a symlink, which is not followed", control_dir.display())]
    Escape {
        /// The symlink.
        control_dir: PathBuf,
    },
    /// The current directory was removed or replaced: a restore in place does so.
    #[error("the current directory is gone: it was removed, or replaced by another")]
    Gone,
    /// The search could not go on.
    #[error("{}: {source}", path.display())]
    Io {
        /// What could not be looked at.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Coded for DiscoverError {
    fn code(&self) -> Code {
        match self {
            DiscoverError::NotARepository { .. } | DiscoverError::Gone => Code::NotARepository,
            DiscoverError::Escape { .. } => Code::PathEscape,
            DiscoverError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Code::NotARepository
            }
            DiscoverError::Io { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                Code::Permission
            }
            DiscoverError::Io { .. } => Code::Io,
        }
    }

    fn next(&self) -> Option<Next> {
        Some(match self {
            DiscoverError::Escape { control_dir } => format!(
                "remove it with `rm {}` or work in another directory",
                ShownName::new(control_dir).typed()
            )
            .into(),
            DiscoverError::Gone => "go to where it is now: cd \"$PWD\"".into(),
            _ => Next::InitOrName,
        })
    }
}

/// The repository that `from` is in. Symlinks on the way to `from` are the
/// user's own word and are resolved first.
pub fn discover(from: &Path) -> Result<Located, DiscoverError> {
    let physical = from.canonicalize().map_err(|source| unseen(from.to_owned(), source))?;
    walk_up(&physical, Way::FromRoot)
}

/// The repository that the current directory is in. The kernel knows that path
/// without symlinks already, so nothing needs resolving.
pub fn discover_here() -> Result<Located, DiscoverError> {
    let here = std::env::current_dir().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => DiscoverError::Gone,
        _ => unseen(PathBuf::from("."), source),
    })?;
    // One that is not below this process's root is no absolute path.
    walk_up(&here, if here.is_absolute() { Way::FromHere } else { Way::FromRoot })
}

/// How directories are reached on the way up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By their whole path.
    FromRoot,
    /// From the current directory, which is the first of them.
    FromHere,
}

fn walk_up(from: &Path, way: Way) -> Result<Located, DiscoverError> {
    let mut up = PathBuf::from(".");
    for root in from.ancestors() {
        let reach: &Path = if way == Way::FromHere { &up } else { root };
        if let Some(control_dir) = control_dir_in(root, reach)? {
            let worktree = worktree_at(from.strip_prefix(root).unwrap_or(Path::new("")));
            let (root, reach) = (root.to_owned(), reach.to_owned());
            return Ok(Located { root, reach, worktree, control_dir });
        }
        up.push("..");
    }
    Err(DiscoverError::NotARepository { from: from.to_owned() })
}

/// Is `dir` the root of a repository?
pub(crate) fn has_control_dir(dir: &Path) -> Result<bool, DiscoverError> {
    control_dir_in(dir, dir).map(|found| found.is_some())
}

/// The control directory in `dir`, which is looked at through `reach`.
fn control_dir_in(dir: &Path, reach: &Path) -> Result<Option<ControlDir>, DiscoverError> {
    let control_dir = dir.join(layout::CONTROL_DIR);
    match rustix::fs::statat(CWD, reach.join(layout::CONTROL_DIR), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                Ok(Some(ControlDir { owner: stat.st_uid, mode: stat.st_mode & 0o7777 }))
            }
            FileType::Symlink => Err(DiscoverError::Escape { control_dir }),
            // Some file that happens to be called so.
            _ => Ok(None),
        },
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(unseen(control_dir, error.into())),
    }
}

/// What could not be looked at; who may is told if it is a matter of permissions.
fn unseen(path: PathBuf, source: io::Error) -> DiscoverError {
    let source = match std::path::absolute(&path) {
        Ok(absolute) => explain_outside(&absolute, source),
        Err(_) => source,
    };
    DiscoverError::Io { path, source }
}

/// The worktree whose payload holds this path, relative to the root.
fn worktree_at(relative: &Path) -> Option<WorktreeName> {
    let mut components = relative.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let first = components.next()?;
    if first == OsStr::new(layout::MAIN_DIR) {
        return Some(WorktreeName::main());
    }
    if first != OsStr::new(layout::WORKTREES_DIR) {
        return None;
    }
    let name: WorktreeName = components.next()?.to_str()?.parse().ok()?;
    // The payload of `main` is elsewhere; a directory of that name here is none.
    (!name.is_main()).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn make_dirs(path: &Path) {
        std::fs::DirBuilder::new().recursive(true).create(path).expect("mkdir -p");
    }

    fn repository() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("tempdir");
        let root = dir.path().canonicalize().expect("canonical").join("r");
        let trees = ["main/deep/er", "worktrees/w1/x", "worktrees/main", "worktrees/not a name"];
        for below in trees {
            make_dirs(&root.join(below));
        }
        make_dirs(&root.join(layout::CONTROL_DIR).join("locks"));
        (dir, root)
    }

    fn worktree_of(place: &Path) -> Option<String> {
        discover(place).expect("found").worktree.map(|name| name.to_string())
    }

    #[test]
    fn each_place_knows_its_repository_and_worktree() {
        let (_dir, root) = repository();
        let control = format!("{}/locks", layout::CONTROL_DIR);
        for (below, worktree) in [
            ("", None),
            ("main", Some("main")),
            ("main/deep/er", Some("main")),
            ("worktrees", None),
            ("worktrees/w1", Some("w1")),
            ("worktrees/w1/x", Some("w1")),
            ("worktrees/main", None),
            ("worktrees/not a name", None),
            (control.as_str(), None),
            ("main/../worktrees/w1/./x", Some("w1")),
        ] {
            let located = discover(&root.join(below)).expect(below);
            assert_eq!(located.root, root, "{below}");
            assert_eq!(located.worktree.as_ref().map(WorktreeName::as_str), worktree, "{below}");
        }
    }

    #[test]
    fn a_symlink_into_a_worktree_leads_there_and_one_out_of_it_leads_away() {
        let (dir, root) = repository();
        symlink(root.join("main/deep"), dir.path().join("shortcut")).expect("symlink");
        assert_eq!(worktree_of(&dir.path().join("shortcut/er")), Some("main".into()));

        let outside = tempfile::tempdir().expect("tempdir");
        symlink(outside.path(), root.join("worktrees/w2")).expect("symlink");
        let error = discover(&root.join("worktrees/w2")).expect_err("not in the repository");
        assert_eq!(error.code(), Code::NotARepository);
    }

    #[test]
    fn nothing_found_says_how_to_make_one() {
        let dir = tempfile::tempdir().expect("tempdir");
        std::os::unix::net::UnixListener::bind(dir.path().join(layout::CONTROL_DIR)).expect("bind");
        for place in [dir.path().to_owned(), dir.path().join("absent")] {
            let error = discover(&place).expect_err("none");
            assert_eq!(error.code(), Code::NotARepository);
            assert_eq!(error.next(), Some(Next::InitOrName));
        }
    }

    #[test]
    fn a_symlinked_control_directory_is_refused_not_followed() {
        let (_other, real) = repository();
        let dir = tempfile::tempdir().expect("tempdir");
        symlink(real.join(layout::CONTROL_DIR), dir.path().join(layout::CONTROL_DIR))
            .expect("symlink");
        let error = discover(dir.path()).expect_err("symlink");
        assert_eq!(error.code(), Code::PathEscape);
        assert!(error.to_string().contains(layout::CONTROL_DIR), "{error}");
    }
}
