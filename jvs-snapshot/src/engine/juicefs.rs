//! Clones the whole tree inside JuiceFS's metadata engine: no data moves, and
//! the time goes with the number of files only.
//!
//! The clone is asked for through the mount's control file, which costs one
//! system call and no process; the `juicefs` program is the way round when that
//! is refused. What a clone is known to lose (hard links become files of their
//! own; Redis volumes drop FIFOs, sockets and devices; what a writer has not
//! flushed is not there) is found by looking at the result and made by hand.
//!
//! A clone also shows whether the tree was quiet: see [`inspect`]. What a program
//! on this host has written and not flushed is in no metadata, so neither a clone
//! nor a look at the original tells of it. So the mount is made to hand it in after
//! the walk and before the clone (`written_out`), and a clone is believed only if
//! that worked.

pub(crate) mod control;
mod inspect;
mod program;
mod removal;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use jvs_repo::layout::PAYLOAD;
use jvs_repo::proc;
use rustix::io::Errno;

pub(crate) use removal::was_removed_by_the_mount;

use super::{Built, Engine, EngineName, Work};
use crate::capture_error::CaptureError;
use crate::chosen::{ChosenPaths, Lies};
use crate::manifest::TreePath;
use crate::mount_counters::CONTROL_FILES;
use crate::plan::TreeFacts;
use crate::progress::CapturePhase;
use crate::tree::{self, NodeKind};

/// Clones in a row before one that is interrupted each time is given up.
const ATTEMPTS: usize = 5;

/// A JuiceFS mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    point: PathBuf,
}

impl Mount {
    /// The mount that holds both directories, or why there is none.
    pub fn of(source: &OwnedFd, staging: &OwnedFd) -> Result<Self, String> {
        let stat = |fd: &OwnedFd| tree::stat_open(fd).map_err(|error| error.to_string());
        let (source, staging) = (stat(source)?, stat(staging)?);
        if source.filesystem != staging.filesystem {
            return Err("worktree and repository are on two filesystems".to_owned());
        }
        let table = proc::mountinfo().map_err(|error| error.to_string())?;
        find(&table, source.filesystem)
            .map(|point| Mount { point })
            .ok_or_else(|| "this is not a JuiceFS mount".to_owned())
    }
}

/// Whether an open directory is on JuiceFS; if so, where the root of its volume is
/// mounted, unless that is hidden from this process.
pub(crate) fn mount_of(root: &OwnedFd) -> Option<Option<PathBuf>> {
    if !tree::is_remote(root) {
        return None;
    }
    let filesystem = tree::stat_open(root).ok()?.filesystem;
    let table = proc::mountinfo().ok()?;
    is_juicefs(&table, filesystem).then(|| find(&table, filesystem))
}

fn device(line: &[u8]) -> Option<&[u8]> {
    line.split(|&byte| byte == b' ').nth(2)
}

fn number(filesystem: u64) -> String {
    format!("{}:{}", filesystem >> 32, filesystem & 0xffff_ffff)
}

/// Whether the filesystem with this number is JuiceFS, whatever part of it is
/// mounted.
fn is_juicefs(table: &[u8], filesystem: u64) -> bool {
    let number = number(filesystem);
    table.split(|&byte| byte == b'\n').any(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        device(line) == Some(number.as_bytes())
            && fields.any(|field| field == b"-")
            && fields.next() == Some(b"fuse.juicefs")
    })
}

/// The point where the root of the JuiceFS volume with this number is mounted. A
/// bind mount of some directory below it has no control file.
fn find(table: &[u8], filesystem: u64) -> Option<PathBuf> {
    let number = number(filesystem);
    table.split(|&byte| byte == b'\n').find_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let device = fields.nth(2)?;
        let (root, point) = (fields.next()?, fields.next()?);
        let kind = fields.skip_while(|&field| field != b"-").nth(1)?;
        let found = device == number.as_bytes() && root == b"/" && kind == b"fuse.juicefs";
        found.then(|| proc::mount_field(point))
    })
}

pub(super) struct JuiceFsEngine {
    pub(super) mount: Mount,
    pub(super) program: PathBuf,
}

impl Engine for JuiceFsEngine {
    fn name(&self) -> EngineName {
        EngineName::JuiceFs
    }

    fn build(&self, work: &Work<'_>, known: TreeFacts) -> Result<Built, CaptureError> {
        let by_hand = HandMade::of(work)?;
        match by_hand.is_nothing() {
            true => self.clone_tree(work)?,
            false => self.clone_some(work, &by_hand)?,
        }
        work.phases.begin(CapturePhase::Fidelity);
        let mut built = inspect::inspect(work, known)?;
        // What is made by hand proves nothing.
        built.proves_quiet &= work.hides_nothing && by_hand.is_nothing();
        Ok(built)
    }
}

/// Directories of which not all is to be cloned: they are made by hand, and cloned name by
/// name. Ignored files do not make a directory one of them: each is a name in a clone, and is
/// removed from it, for far less than a request for each of the others. What is in an
/// ignored directory would have to be cloned and removed, however much it is.
#[derive(Debug)]
struct HandMade<'w> {
    chosen: Option<&'w ChosenPaths>,
    /// All directories above ignored ones.
    above_ignored: BTreeSet<TreePath>,
}

impl<'w> HandMade<'w> {
    fn of(work: &Work<'w>) -> Result<Self, CaptureError> {
        let mut above_ignored = BTreeSet::new();
        let mut at: Option<(TreePath, OwnedFd)> = None;
        for ignored in &work.tree.ignored.paths {
            let Some((above, name)) = ignored.path.split() else { continue };
            if above_ignored.contains(&above) {
                continue;
            }
            let directory = match at.take() {
                Some((path, directory)) if path == above => directory,
                _ => match tree::reach_below(work.source, above.components()) {
                    Ok(directory) => directory,
                    // Gone, and with it what is ignored there: a change, if it is one.
                    Err(_) => continue,
                },
            };
            if tree::stat(&directory, name).is_ok_and(|stat| stat.kind == NodeKind::Directory) {
                let mut path = Some(above.clone());
                while let Some(next) = path.filter(|path| !above_ignored.contains(path)) {
                    path = next.split().map(|(above, _)| above);
                    above_ignored.insert(next);
                }
            }
            at = Some((above, directory));
        }
        Ok(HandMade { chosen: work.tree.chosen.as_ref(), above_ignored })
    }

    fn is_nothing(&self) -> bool {
        self.chosen.is_none() && self.above_ignored.is_empty()
    }

    /// Is all of a directory cloned, with whatever is in it?
    fn clones(&self, directory: &TreePath) -> bool {
        self.chosen.is_none_or(|chosen| chosen.lies(directory) == Lies::Inside)
            && !self.above_ignored.contains(directory)
    }
}

/// What one request clones.
struct Job<'j> {
    source: u64,
    source_parent: u64,
    from: PathBuf,
    target: &'j OwnedFd,
    name: &'j [u8],
}

impl JuiceFsEngine {
    fn clone_tree(&self, work: &Work<'_>) -> Result<(), CaptureError> {
        let opened = CaptureError::whole("clone");
        let parent = tree::open_directory(work.source, b"..")
            .and_then(|parent| tree::stat_open(&parent))
            .map_err(&opened)?;
        // Across the mount's root only the program finds its way.
        let inside = parent.filesystem == work.tree.root.filesystem;
        let job = Job {
            source: work.tree.root.inode,
            source_parent: if inside { parent.inode } else { 0 },
            from: tree::path_of_open(work.source).map_err(&opened)?,
            target: work.staging,
            name: PAYLOAD.as_bytes(),
        };
        self.clone_one(work, &job, &mut Asking::of(&self.mount))
    }

    /// Clones each name into directories that are made by hand. What is neither a file nor a
    /// directory is left to the look at the result.
    fn clone_some(&self, work: &Work<'_>, by_hand: &HandMade<'_>) -> Result<(), CaptureError> {
        let failed = |path: &TreePath| {
            let path = path.clone();
            move |error| CaptureError::io(path, "clone", error)
        };
        let root = TreePath::root();
        tree::make_bare_directory(work.staging, PAYLOAD.as_bytes()).map_err(failed(&root))?;
        let payload =
            tree::open_directory(work.staging, PAYLOAD.as_bytes()).map_err(failed(&root))?;
        let source = tree::path_of_open(work.source).map_err(failed(&root))?;
        let mut asking = Asking::of(&self.mount);
        // A walk numbers a directory before those in it.
        for branch in &work.tree.branches {
            if by_hand.clones(&branch.path) {
                continue;
            }
            let failed = failed(&branch.path);
            // Names are made in it, and none is read.
            let target = tree::reach_below(&payload, branch.path.components()).map_err(failed)?;
            for node in &branch.nodes {
                let (path, name) = (branch.child(node), branch.name(node));
                match branch.kind_of(node) {
                    NodeKind::Directory if !by_hand.clones(&path) => {
                        tree::make_directory(&target, name)
                            .map_err(|error| CaptureError::io(path, "make the directory", error))?
                    }
                    NodeKind::Directory | NodeKind::File => {
                        let (source_parent, from) =
                            (branch.stat.inode, source.join(path.as_path()));
                        let source = branch.stat_of(node).inode;
                        let job = Job { source, source_parent, from, target: &target, name };
                        self.clone_one(work, &job, &mut asking)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn clone_one(
        &self,
        work: &Work<'_>,
        job: &Job<'_>,
        asking: &mut Asking<'_>,
    ) -> Result<(), CaptureError> {
        let mut answer = asking.clone(work, job);
        for _ in 1..ATTEMPTS {
            // Seen with SQLite under load: EINTR, although nobody interrupted. A
            // clone shows itself only when it is complete; should this one have,
            // it is in the way of the next.
            let Err(control::ControlRefusal::Failed(Errno::INTR)) = answer else { break };
            tree::remove(job.target, job.name)
                .map_err(CaptureError::whole("remove the interrupted clone of"))?;
            answer = asking.clone(work, job);
        }
        match answer {
            Ok(()) => Ok(()),
            Err(control::ControlRefusal::Failed(error)) => {
                Err(CaptureError::CloneFailed(error.into()))
            }
            Err(control::ControlRefusal::Stopped) => Err(CaptureError::Stopped),
            Err(control::ControlRefusal::NotSpoken(control)) => {
                program::run(&self.program, job, work).map_err(|failure| match failure {
                    program::ProgramFailure::Stopped => CaptureError::Stopped,
                    program::ProgramFailure::Told(program) => {
                        CaptureError::CloneRefused { control, program }
                    }
                })
            }
        }
    }
}

/// The control file of a mount, open for as many requests as it answers.
struct Asking<'m> {
    mount: &'m Mount,
    file: Option<OwnedFd>,
}

impl<'m> Asking<'m> {
    fn of(mount: &'m Mount) -> Self {
        Asking { mount, file: None }
    }

    fn clone(&mut self, work: &Work<'_>, job: &Job<'_>) -> Result<(), control::ControlRefusal> {
        let not_spoken = |error: io::Error| control::ControlRefusal::NotSpoken(error.to_string());
        if job.source_parent == 0 {
            return Err(control::ControlRefusal::NotSpoken(
                "the worktree is the mount's root".to_owned(),
            ));
        }
        let request = control::Clone {
            source: job.source,
            source_parent: job.source_parent,
            target_parent: tree::stat_open(job.target).map_err(not_spoken)?.inode,
            name: job.name,
            threads: u8::try_from(work.threads).unwrap_or(u8::MAX),
        };
        let file = match self.file.take() {
            Some(file) => file,
            None => open_control(&self.mount.point).map_err(not_spoken)?,
        };
        control::ask(&file, &request, work.progress)?;
        // One that was not answered is closed, which gives up what was asked for.
        self.file = Some(file);
        Ok(())
    }
}

/// Opens the control file of the volume that is mounted there.
fn open_control(point: &Path) -> io::Result<OwnedFd> {
    let [usual, prefixed] = CONTROL_FILES;
    match tree::open_control(point, usual) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            tree::open_control(point, prefixed)
        }
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_by_its_number_and_only_at_its_root() {
        let table = b"21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            40 21 0:44 /sub /bind rw - fuse.juicefs JuiceFS:v rw\n\
            41 21 0:44 / /mnt/a\\040b rw,nosuid shared:7 master:3 - fuse.juicefs JuiceFS:v rw\n\
            torn line\n";
        assert_eq!(find(table, 44), Some(PathBuf::from("/mnt/a b")));
        assert_eq!(find(table, 254 << 32), None, "another filesystem");
        assert!(is_juicefs(table, 44) && !is_juicefs(table, 254 << 32));
        assert!(is_juicefs(b"40 21 0:44 /sub /bind rw - fuse.juicefs JuiceFS:v rw\n", 44));
        assert_eq!(find(b"40 21 0:44 /sub /bind rw - fuse.juicefs JuiceFS:v rw\n", 44), None);
    }
}
