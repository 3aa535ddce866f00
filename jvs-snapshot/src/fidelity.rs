//! Whether a copy is like its original: what it takes to make it so, and what
//! could not be kept. Nothing is lost in silence.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use jvs_repo::sabotage;

use crate::descriptor::Loss;
use crate::manifest::{Entry, TreePath, Xattr};
use crate::mutation::capturing::CaptureRule;
use crate::tree::{self, NodeKind, NodeStat};

/// What a copy has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossKind {
    /// The FIFO, socket or device itself.
    Special,
    /// Its owner or group.
    Owner,
    /// Its permission bits.
    Mode,
    /// Its modification time.
    Mtime,
    /// Some of its extended attributes, ACLs among them.
    Xattr,
    /// That it is one file with several names: now they are several files.
    HardLink,
}

impl LossKind {
    /// In the order in which they are told.
    const ALL: [LossKind; 6] =
        [Self::Special, Self::Owner, Self::Mode, Self::Mtime, Self::Xattr, Self::HardLink];

    /// The word in a descriptor's `degraded`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Special => "special_file",
            Self::Owner => "owner",
            Self::Mode => "mode",
            Self::Mtime => "mtime",
            Self::Xattr => "xattr",
            Self::HardLink => "hard_link",
        }
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many paths a snapshot names that lost something: an unprivileged user may lose
/// the owner of a million files.
const EXAMPLES: usize = 20;

/// Counts, and names among the first, a path that lost something.
pub(crate) fn note(degraded: &mut Vec<Loss>, path: &TreePath, kind: LossKind) {
    let named: usize = degraded.iter().map(|loss| loss.examples.len()).sum();
    let at = degraded.iter().position(|loss| loss.what == kind.as_str()).unwrap_or_else(|| {
        degraded.push(Loss { what: kind.as_str().to_owned(), count: 0, examples: Vec::new() });
        degraded.len() - 1
    });
    degraded[at].count += 1;
    if named < EXAMPLES {
        degraded[at].examples.push(path.to_string());
    }
}

/// Files are copied by many at once: sorts what they noted, so that the same losses
/// are always told in the same way.
pub(crate) fn sort(degraded: &mut [Loss]) {
    let rank = |loss: &Loss| LossKind::ALL.iter().position(|kind| kind.as_str() == loss.what);
    degraded.sort_by_key(rank);
    for loss in degraded {
        loss.examples.sort();
    }
}

/// What differs between an original and its copy, as far as `statx` tells and a
/// copy can have it.
pub(crate) fn differences(original: &NodeStat, copy: &NodeStat) -> Vec<LossKind> {
    let mut lost = Vec::new();
    if (original.uid, original.gid) != (copy.uid, copy.gid) {
        lost.push(LossKind::Owner);
    }
    // A symlink's mode means nothing on Linux.
    if original.kind != NodeKind::Symlink && original.mode != copy.mode {
        lost.push(LossKind::Mode);
    }
    if original.mtime != copy.mtime {
        lost.push(LossKind::Mtime);
    }
    lost
}

/// Whether a copy is at least of the right type, size and device.
pub(crate) fn same_substance(original: &NodeStat, copy: &NodeStat) -> bool {
    original.kind == copy.kind
        && (original.kind != NodeKind::File || original.size == copy.size)
        && (!matches!(original.kind, NodeKind::CharDevice | NodeKind::BlockDevice)
            || original.device == copy.device)
}

/// What a copy looks like after it was given what its original has.
pub(crate) struct Dressed {
    pub(crate) stat: NodeStat,
    pub(crate) lost: Vec<LossKind>,
    /// Those that it has.
    pub(crate) xattrs: Vec<Xattr>,
}

/// Which copy: open, or by name. Sockets and symlinks cannot be opened.
pub(crate) trait CopyTarget {
    fn stat(&self) -> io::Result<NodeStat>;
    fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()>;
    fn set_mode(&self, mode: u32) -> io::Result<()>;
    fn set_mtime(&self, original: &NodeStat) -> io::Result<()>;
    fn set_xattr(&self, xattr: &Xattr) -> io::Result<()>;
}

pub(crate) struct Open<'f, F>(pub(crate) &'f F);

impl<F: AsFd> CopyTarget for Open<'_, F> {
    fn stat(&self) -> io::Result<NodeStat> {
        tree::stat_open(self.0)
    }
    fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        tree::set_owner_open(self.0, uid, gid)
    }
    fn set_mode(&self, mode: u32) -> io::Result<()> {
        tree::set_mode_open(self.0, mode)
    }
    fn set_mtime(&self, original: &NodeStat) -> io::Result<()> {
        tree::set_mtime_open(self.0, original.mtime)
    }
    fn set_xattr(&self, xattr: &Xattr) -> io::Result<()> {
        tree::set_xattr_open(self.0, xattr)
    }
}

pub(crate) struct ByName<'f, F>(pub(crate) &'f F, pub(crate) &'f [u8]);

impl<F: AsFd> CopyTarget for ByName<'_, F> {
    fn stat(&self) -> io::Result<NodeStat> {
        tree::stat(self.0, self.1)
    }
    fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        tree::set_owner(self.0, self.1, uid, gid)
    }
    fn set_mode(&self, mode: u32) -> io::Result<()> {
        tree::set_mode(self.0, self.1, mode)
    }
    fn set_mtime(&self, original: &NodeStat) -> io::Result<()> {
        tree::set_mtime(self.0, self.1, original.mtime)
    }
    fn set_xattr(&self, xattr: &Xattr) -> io::Result<()> {
        tree::set_xattr(self.0, self.1, xattr)
    }
}

/// Run as its owner or its group, these make a program act for
/// them: `chmod u+s` and `g+s`.
const SET_ID: u32 = 0o6000;
/// On a directory: what is made in it gets its group. Nothing runs by that.
const SET_GROUP_ID: u32 = 0o2000;

/// The mode that a copy may get. Anyone who makes a copy of somebody else's set-user
/// program, and cannot give it away, must not make one of their own of it: the
/// other, who wrote it, could then act as them.
fn permitted(original: &NodeStat, copy: &NodeStat) -> u32 {
    sabotage!(CaptureRule::SetIdForItsOwner => original.mode);
    match (original.uid, original.gid) == (copy.uid, copy.gid) {
        true => original.mode,
        false if original.kind == NodeKind::Directory && original.gid == copy.gid => {
            original.mode & !(SET_ID & !SET_GROUP_ID)
        }
        false => original.mode & !SET_ID,
    }
}

/// A clone that came with its mode: until its owner is known it has none.
fn clear_set_id(copy: &impl CopyTarget, owned: &NodeStat) -> io::Result<()> {
    sabotage!(CaptureRule::SetIdForItsOwner => Ok(()));
    match owned.kind != NodeKind::Symlink && owned.mode & SET_ID != 0 {
        true => fatal_only(copy.set_mode(owned.mode & !SET_ID)),
        false => Ok(()),
    }
}

/// Gives a copy the original's owner, attributes, mode and time, as far as it
/// takes them, and looks whether it has them. A refusal is not an error but a
/// loss; that the copy cannot be looked at is.
///
/// The order matters. The owner is first and the mode last, so that there is no
/// moment in which a mode counts for somebody it was not meant for; a change of
/// owner also clears set-user bits and capabilities, and an ACL changes the mode.
pub(crate) fn dress(
    copy: &impl CopyTarget,
    original: &NodeStat,
    xattrs: Vec<Xattr>,
) -> io::Result<Dressed> {
    let mut owned = copy.stat()?;
    clear_set_id(copy, &owned)?;
    if (owned.uid, owned.gid) != (original.uid, original.gid) {
        fatal_only(copy.set_owner(original.uid, original.gid))?;
        // Read back, whatever the answer was: some filesystems map owners.
        owned = copy.stat()?;
    }
    let mut lost = Vec::new();
    let mut kept = Vec::with_capacity(xattrs.len());
    for xattr in xattrs {
        match copy.set_xattr(&xattr) {
            Ok(()) => kept.push(xattr),
            Err(error) if is_full(&error) => return Err(error),
            Err(_) => {
                if !lost.contains(&LossKind::Xattr) {
                    lost.push(LossKind::Xattr);
                }
            }
        }
    }
    if original.kind != NodeKind::Symlink {
        fatal_only(copy.set_mode(permitted(original, &owned)))?;
    }
    fatal_only(copy.set_mtime(original))?;
    let stat = copy.stat()?;
    lost.extend(differences(original, &stat));
    Ok(Dressed { stat, lost, xattrs: kept })
}

/// Gives the directory `name` in `above`, which is nobody's copy but somebody's own, what
/// `like` has. What it did not take.
pub(crate) fn dress_directory(
    above: &OwnedFd,
    name: &[u8],
    like: &Entry,
) -> io::Result<Vec<LossKind>> {
    let (mode, uid, gid, mtime) = (like.mode, like.uid, like.gid, like.mtime);
    let is_as_wanted = |now: &NodeStat| now.mode == mode && (now.uid, now.gid) == (uid, gid);
    let now = tree::stat(above, name)?;
    if now.kind == NodeKind::Directory
        && is_as_wanted(&now)
        && tree::xattrs(above, name)? == like.xattrs
    {
        // Mostly that is all, and a server of the files need not open it.
        fatal_only(tree::set_mtime(above, name, mtime))?;
        return Ok(Vec::new());
    }
    let dir = &tree::open_directory(above, name)?;
    let now = tree::stat_open(dir)?;
    let wanted = NodeStat { mode, uid, gid, mtime, ..now };
    let has = tree::xattrs_open(dir)?;
    let mut lost = Vec::new();
    for xattr in has.iter().filter(|it| !like.xattrs.iter().any(|want| want.name == it.name)) {
        if fatal_only(tree::remove_xattr_open(dir, &xattr.name)).is_err() {
            lost.push(LossKind::Xattr);
        }
    }
    let missing: Vec<Xattr> =
        like.xattrs.iter().filter(|want| !has.contains(want)).cloned().collect();
    if is_as_wanted(&now) && missing.is_empty() {
        fatal_only(tree::set_mtime_open(dir, mtime))?;
        return Ok(lost);
    }
    lost.extend(dress(&Open(dir), &wanted, missing)?.lost);
    Ok(lost)
}

/// A full disk is no property of a filesystem that a snapshot could note.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn fatal_only(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if is_full(&error) => Err(error),
        // Refused: the look afterwards says what that means.
        Ok(()) | Err(_) => Ok(()),
    }
}
