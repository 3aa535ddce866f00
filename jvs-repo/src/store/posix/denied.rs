//! What stands behind a bare EACCES: which file or directory on the way, whose it
//! is, what its mode is, who asked, and what would let them in.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process;
use serde::Serialize;

use crate::name::ShownName;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Asked {
    /// To read a file or list a directory.
    Read,
    /// To write a file.
    Write,
    /// To make, rename or remove a name in its directory.
    Change,
    /// To change its permissions, which only its owner may.
    Own,
}

/// A refusal, explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error(
    "permission denied: you, user {you}, may not {verb} {}{}",
    ShownName::new(path),
    self.whose()
)]
pub struct Denied {
    /// What stands in the way.
    #[serde(serialize_with = "as_text")]
    path: PathBuf,
    /// Owner, group and permissions of it; unknown if even that is refused.
    owner: Option<u32>,
    group: Option<u32>,
    mode: Option<u32>,
    /// Who asked.
    you: u32,
    #[serde(skip)]
    your_groups: Vec<u32>,
    #[serde(skip)]
    root: PathBuf,
    #[serde(skip)]
    verb: &'static str,
    /// Its permissions say otherwise: something else refuses.
    #[serde(skip)]
    by_something_else: bool,
    /// It is of a snapshot: changing its permissions would change that.
    #[serde(skip)]
    published: bool,
}

/// JSON has no bytes beyond UTF-8; [`Denied::path`] has them all.
fn as_text<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => serializer.collect_str(&ShownName::new(path)),
    }
}

impl Denied {
    /// What stands in the way.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn whose(&self) -> String {
        match (self.owner, self.group, self.mode) {
            (Some(owner), Some(group), Some(mode)) => {
                format!(", which belongs to user {owner} and group {group} and has mode {mode:04o}")
            }
            _ => String::new(),
        }
    }

    /// The explanation in an error, if it has one.
    pub fn of(error: &io::Error) -> Option<&Denied> {
        error.get_ref()?.downcast_ref()
    }

    /// Do its permissions say so, rather than something else?
    pub(super) fn is_by_mode(&self) -> bool {
        !self.by_something_else
    }

    /// What would help, as a command to run. It leaves the files of snapshots as they
    /// are: their modes are part of what was published.
    pub fn help(&self) -> String {
        let path = ShownName::new(&self.path).typed();
        let control = ShownName::new(&self.root.join(crate::layout::CONTROL_DIR)).typed();
        let all_but_files = format!("find {control} -name payload -prune -o -exec");
        let Denied { you, owner, .. } = self;
        if self.by_something_else {
            return format!("see what else protects it: lsattr -d {path}; findmnt -T {path}");
        }
        match (owner, self.group) {
            (Some(owner), _) if self.published => {
                let who = match owner {
                    owner if owner == you || *owner == 0 => "root".to_owned(),
                    owner => format!("user {owner} or root"),
                };
                format!("have {who} run it: permissions are part of a snapshot, and stay")
            }
            (Some(owner), _) if owner == you => format!("chmod u+rwX {path}"),
            (Some(owner), Some(group)) if self.your_groups.contains(&group) => {
                format!(
                    "have user {owner} or root give your group access: {all_but_files} chmod g+rwX {{}} +"
                )
            }
            // What is refused first is not all that is closed: all of it, and what others
            // make there from now on.
            (Some(owner), _)
                if self.path.starts_with(self.root.join(crate::layout::CONTROL_DIR)) =>
            {
                format!(
                    "have user {owner} or root give you access: {all_but_files} setfacl -m \
                     u:{you}:rwX {{}} + ; find {control} -name payload -prune -o -type d -exec \
                     setfacl -d -m u:{you}:rwX {{}} +"
                )
            }
            (Some(owner), _) => {
                format!("have user {owner} or root give you access: setfacl -m u:{you}:rwX {path}")
            }
            (None, _) => format!("see who may: ls -ld {path}"),
        }
    }
}

/// Explains why `path`, below the root that is held open, could not be used.
pub(super) fn explain(
    root: &OwnedFd,
    root_path: &Path,
    path: &Path,
    asked: Asked,
    errno: Errno,
) -> io::Error {
    if errno != Errno::ACCESS && errno != Errno::PERM {
        return errno.into();
    }
    io::Error::new(ErrorKind::PermissionDenied, denied(root, root_path, path, asked))
}

/// The same of an absolute `path` that may be in no repository, which was looked at by name.
pub(crate) fn explain_outside(path: &Path, error: io::Error) -> io::Error {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let (ErrorKind::PermissionDenied, Ok(below), Ok(top)) =
        (error.kind(), path.strip_prefix("/"), fs::open("/", flags, Mode::empty()))
    else {
        return error;
    };
    let denied = denied(&top, Path::new("/"), below, Asked::Read);
    // Of no repository whose files its group could be let in to.
    io::Error::new(ErrorKind::PermissionDenied, Denied { your_groups: Vec::new(), ..denied })
}

/// The same of `path` in the tree of a snapshot, which could not be read.
pub(super) fn explain_published(
    root: &OwnedFd,
    root_path: &Path,
    tree: &Path,
    path: &Path,
) -> io::Error {
    // Joined with nothing it would end in a slash.
    let whole = if path.as_os_str().is_empty() { tree.to_owned() } else { tree.join(path) };
    let denied = denied(root, root_path, &whole, Asked::Read);
    let published = denied.path.starts_with(denied.root.join(tree));
    io::Error::new(ErrorKind::PermissionDenied, Denied { published, ..denied })
}

fn denied(root: &OwnedFd, root_path: &Path, path: &Path, asked: Asked) -> Denied {
    let dot =
        |path: &Path| if path.as_os_str().is_empty() { Path::new(".") } else { path }.to_owned();
    let parent = path.parent().unwrap_or(Path::new(""));
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    let last = above.len().saturating_sub(1).max(1);
    let mut steps: Vec<(PathBuf, Access, &str)> =
        above[..last].iter().map(|dir| (dot(dir), Access::EXEC_OK, "go through")).collect();
    steps.push(match asked {
        Asked::Read => (dot(path), Access::READ_OK, "read"),
        Asked::Write => (dot(path), Access::READ_OK | Access::WRITE_OK, "write"),
        Asked::Own => (dot(path), Access::EXISTS, "change the permissions of"),
        Asked::Change => {
            (dot(parent), Access::WRITE_OK | Access::EXEC_OK, "make or rename files in")
        }
    });
    let refused = steps.iter().find(|(at, access, _)| {
        fs::accessat(root, at.as_path(), *access, AtFlags::EACCESS) == Err(Errno::ACCESS)
    });
    let (at, _, verb) = refused.or(steps.last()).expect("there is a last step");
    let stat = fs::statat(root, at.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok();
    let you = process::geteuid().as_raw();
    let is_another_s = asked == Asked::Own && stat.as_ref().is_some_and(|stat| stat.st_uid != you);
    let mut your_groups: Vec<u32> =
        process::getgroups().unwrap_or_default().iter().map(|gid| gid.as_raw()).collect();
    your_groups.push(process::getegid().as_raw());
    let shown = if at == Path::new(".") { root_path.to_owned() } else { root_path.join(at) };
    Denied {
        path: std::path::absolute(&shown).unwrap_or(shown),
        owner: stat.as_ref().map(|stat| stat.st_uid),
        group: stat.as_ref().map(|stat| stat.st_gid),
        mode: stat.as_ref().map(|stat| stat.st_mode & 0o7777),
        you,
        your_groups,
        root: std::path::absolute(root_path).unwrap_or_else(|_| root_path.to_owned()),
        verb,
        by_something_else: refused.is_none() && !is_another_s,
        published: false,
    }
}
