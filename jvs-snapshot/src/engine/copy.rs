//! Copies: works everywhere. What did not change since the parent snapshot
//! becomes a second name of the parent's file.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::build::{self, FileCopier, OnBytes};
use super::{Built, Engine, EngineName, Work};
use crate::capture_error::CaptureError;
use crate::hash::{self, Digest};
use crate::tree;

/// Below this a file is read, hashed and written in one pass: its bytes are
/// touched once. Above, the kernel (or the file server) copies, holes stay holes,
/// and the copy is hashed afterwards by as many threads as there are.
const SMALL: u64 = 1 << 20;

/// So much of a large file is copied before somebody is told, or may stop it.
const PART: u64 = 64 << 20;

pub(super) struct Copy;

impl Engine for Copy {
    fn name(&self) -> EngineName {
        EngineName::Copy
    }

    fn build(&self, work: &Work<'_>) -> Result<Built, CaptureError> {
        build::build(work, self)
    }
}

impl FileCopier for Copy {
    fn shares_with_parent(&self) -> bool {
        true
    }

    fn fill(
        &self,
        from: &OwnedFd,
        to: &OwnedFd,
        size: u64,
        _known: Option<Digest>,
        threads: usize,
        told: OnBytes<'_>,
    ) -> io::Result<Digest> {
        match size {
            0..=SMALL => copy_small(from, to, size),
            _ => copy_large(from, to, size, threads, told),
        }
    }
}

fn copy_small(from: &OwnedFd, to: &OwnedFd, size: u64) -> io::Result<Digest> {
    let mut buffer = vec![0; usize::try_from(size).unwrap_or(0)];
    let got = tree::read_at(from, &mut buffer, 0)?;
    if (got as u64) < size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    tree::write_at(to, &buffer, 0)?;
    Ok(Digest::of(&buffer))
}

fn copy_large(
    from: &OwnedFd,
    to: &OwnedFd,
    size: u64,
    threads: usize,
    told: OnBytes<'_>,
) -> io::Result<Digest> {
    tree::set_size(to, size)?;
    let mut by_kernel = true;
    let mut at = 0;
    while let Some((start, end)) = tree::next_data(from, at, size)? {
        at = start;
        while at < end {
            let part = (end - at).min(PART);
            let done = if by_kernel { tree::copy_part(from, to, at, part) } else { Ok(0) };
            let before = at;
            match done {
                // Nothing copied although there should be data: some filesystems
                // say so instead of refusing.
                Ok(0) => {
                    by_kernel = false;
                    at += copy_by_hand(from, to, at, end - at)?;
                }
                Ok(copied) => at += copied,
                Err(error) if refuses(&error) => by_kernel = false,
                Err(error) => return Err(error),
            }
            told(at - before)?;
        }
    }
    hash::of_file(to, size, threads)
}

fn refuses(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM)
    )
}

fn copy_by_hand(from: &OwnedFd, to: &OwnedFd, at: u64, length: u64) -> io::Result<u64> {
    let mut buffer = vec![0; usize::try_from(length.min(SMALL)).unwrap_or(0)];
    let got = tree::read_at(from, &mut buffer, at)?;
    if got == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    tree::write_at(to, &buffer[..got], at)?;
    Ok(got as u64)
}
