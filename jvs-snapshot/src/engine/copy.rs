//! Copies: works everywhere. What did not change since the parent snapshot
//! becomes a second name of the parent's file.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::build::{self, FileCopier, OnBytes};
use super::{Built, Engine, EngineName, Work};
use crate::capture_error::CaptureError;
use crate::hash::{self, Digest};
use crate::plan::TreeFacts;
use crate::tree;

/// Up to this size a file is read, written and hashed in one go, holes and all.
const SMALL: u64 = 1 << 20;

/// How much a file server copies before somebody is told, or may stop it.
const PART: u64 = 64 << 20;

pub(super) struct Copy;

impl Engine for Copy {
    fn name(&self) -> EngineName {
        EngineName::Copy
    }

    fn build(&self, work: &Work<'_>, known: TreeFacts) -> Result<Built, CaptureError> {
        build::build(work, self, known)
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
            _ if tree::is_remote(to) => copy_by_server(from, to, size, threads, told),
            _ => copy_in_one_pass(from, to, size, threads, told),
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

/// Every byte is read once, and hashed while it is in the processor's cache. Holes
/// stay holes.
fn copy_in_one_pass(
    from: &OwnedFd,
    to: &OwnedFd,
    size: u64,
    threads: usize,
    told: OnBytes<'_>,
) -> io::Result<Digest> {
    tree::set_size(to, size)?;
    hash::of_parts(size, threads, |part, offset| {
        copy_part(from, to, part, offset)?;
        told(part.len() as u64)
    })
}

/// Copies what lies at `offset`, and leaves it in `part`.
fn copy_part(from: &OwnedFd, to: &OwnedFd, part: &mut [u8], offset: u64) -> io::Result<()> {
    let within = |at: u64| usize::try_from(at - offset).unwrap_or(usize::MAX);
    let end = offset + part.len() as u64;
    let mut at = offset;
    while let Some((start, stop)) = tree::next_data(from, at, end)? {
        part[within(at)..within(start)].fill(0);
        let data = &mut part[within(start)..within(stop)];
        hash::read_exactly(from, data, start)?;
        tree::write_at(to, data, start)?;
        at = stop;
    }
    part[within(at)..].fill(0);
    Ok(())
}

/// A file server copies without moving the bytes to this machine and back, and
/// mostly without moving them at all; only their hash has to be made here.
fn copy_by_server(
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;

    /// Data at the edges of parts, across them and within one, holes between.
    const DATA: [(u64, usize); 4] =
        [(0, 10), ((256 << 10) - 5, 10), ((2 << 20) + 77, 300 << 10), ((9 << 20) - 4096, 4096)];
    const SIZE: u64 = (9 << 20) + 12_345;

    fn file() -> OwnedFd {
        tempfile::tempfile().expect("a file").into()
    }

    fn bytes_of(file: &OwnedFd) -> Vec<u8> {
        let mut bytes = vec![0; SIZE as usize + 1];
        let got = tree::read_at(file, &mut bytes, 0).expect("read");
        bytes.truncate(got);
        bytes
    }

    fn blocks_of(file: &OwnedFd) -> u64 {
        let file = file.as_fd().try_clone_to_owned().expect("a second descriptor");
        std::fs::File::from(file).metadata().expect("stat").blocks()
    }

    #[test]
    fn a_large_file_is_copied_and_hashed_with_its_holes_however_that_is_done() {
        let from = file();
        tree::set_size(&from, SIZE).expect("grown");
        for (offset, length) in DATA {
            let data: Vec<u8> = (0..length).map(|n| (n % 251) as u8 + 1).collect();
            tree::write_at(&from, &data, offset).expect("written");
        }
        tree::sync(&from).expect("its blocks are chosen");
        let expected = bytes_of(&from);
        for copy in [copy_in_one_pass, copy_by_server] {
            for threads in [1, 3] {
                let (to, counted) = (file(), std::sync::atomic::AtomicU64::new(0));
                let told = |bytes| {
                    counted.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
                    Ok(())
                };
                let digest = copy(&from, &to, SIZE, threads, &told).expect("copied");
                assert!(bytes_of(&to) == expected, "every byte, and no more of them");
                assert_eq!(digest, Digest::of(&expected));
                assert!(counted.into_inner() <= SIZE);
                tree::sync(&to).expect("its blocks are chosen");
                assert!(blocks_of(&to) <= blocks_of(&from), "holes stay holes");
            }
        }
    }

    #[test]
    fn a_large_copy_ends_when_it_is_told_to() {
        let (from, to) = (file(), file());
        tree::write_at(&from, &vec![1; SIZE as usize], 0).expect("written");
        let stop = |_| Err(io::ErrorKind::Interrupted.into());
        let error = copy_in_one_pass(&from, &to, SIZE, 2, &stop).expect_err("stopped");
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
