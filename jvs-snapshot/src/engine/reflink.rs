//! Clones file by file where the filesystem can share content (xfs, btrfs,
//! bcachefs): the copy costs a little metadata and no data.

use std::io;
use std::os::fd::OwnedFd;

use jvs_repo::layout;

use super::build::{self, FileCopier, OnBytes};
use super::{Built, Engine, EngineName, Work};
use crate::capture_error::CaptureError;
use crate::hash::{self, Digest};
use crate::plan::TreeFacts;
use crate::tree;

pub(super) struct Reflink;

/// Tries it in the staging directory. That the source is on the same filesystem
/// is told by its number; `FICLONE` between two answers `EXDEV`. Fails as a whole if what
/// was tried stays there: it would be published with the rest.
pub(super) fn probe(staging: &OwnedFd, source: &OwnedFd) -> Result<io::Result<()>, CaptureError> {
    let [from_name, to_name] = layout::REFLINK_PROBE.map(str::as_bytes);
    let (here, there) = match (tree::stat_open(staging), tree::stat_open(source)) {
        (Ok(here), Ok(there)) => (here, there),
        (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
    };
    // Subvolumes of one btrfs have numbers of their own, but one mount.
    if here.filesystem != there.filesystem && here.mount != there.mount {
        return Ok(Err(rustix::io::Errno::XDEV.into()));
    }
    let attempt = || {
        let from = tree::create_file(staging, from_name)?;
        // A whole block: btrfs keeps less inside its tree and answers differently.
        tree::write_at(&from, &[1; 4096], 0)?;
        let to = tree::create_file(staging, to_name)?;
        tree::clone_content(&from, &to)
    };
    let answer = attempt();
    for name in [from_name, to_name] {
        match tree::unlink(staging, name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(CaptureError::whole("remove what was tried in")(error));
            }
            _ => {}
        }
    }
    Ok(answer)
}

impl Engine for Reflink {
    fn name(&self) -> EngineName {
        EngineName::Reflink
    }

    fn build(&self, work: &Work<'_>, known: TreeFacts) -> Result<Built, CaptureError> {
        build::build(work, self, known)
    }
}

impl FileCopier for Reflink {
    fn shares_with_parent(&self) -> bool {
        false
    }

    fn fill(
        &self,
        from: &OwnedFd,
        to: &OwnedFd,
        size: u64,
        known: Option<Digest>,
        threads: usize,
        _told: OnBytes<'_>,
    ) -> io::Result<Digest> {
        tree::clone_content(from, to)?;
        match known {
            Some(digest) => Ok(digest),
            // Of the original, whose pages are likely in memory; the clone's are
            // not. If somebody writes meanwhile, the proof of quiet says so, and
            // then the clone itself is read.
            None => hash::of_file(from, size, threads),
        }
    }
}
