//! When the leases of a command end, for its guardian to read. A file in memory, not a
//! pipe: a guardian that is stopped never blocks the writer, and a late reader reads the
//! latest value.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use jvs_repo::clock::BootMs;
use rustix::fs::{MemfdFlags, Mode, OFlags};

const SLOT: usize = size_of::<u64>();
/// The slots of leases start here; the guardian's own is before it.
const LEASES: u64 = 8;
const NOBODY_LEFT: u64 = 0;

pub(crate) struct LeaseEnds {
    file: OwnedFd,
}

impl LeaseEnds {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(LeaseEnds { file: rustix::fs::memfd_create("jvs-ends", MemfdFlags::CLOEXEC)? })
    }

    /// The path by which a keeper that this process starts opens it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    pub(crate) fn open(path: &str) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        Ok(LeaseEnds { file: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// Lease number `lease` lasts until then. A keeper that was stopped may write an older
    /// value than is there; that changes nothing.
    pub(crate) fn extend(&self, lease: usize, until: BootMs) {
        if self.of(lease).is_none_or(|known| known < until) {
            // If this fails, the guardian acts early, never late.
            let _ = rustix::io::pwrite(&self.file, &until.0.to_ne_bytes(), offset(lease));
        }
    }

    /// The guardian has seen every process end. A guardian that was killed never says so.
    pub(crate) fn nobody_is_left(&self) {
        let _ = rustix::io::pwrite(&self.file, &[1], NOBODY_LEFT);
    }

    /// Has the guardian said so?
    pub(crate) fn is_nobody_left(&self) -> bool {
        let mut byte = [0];
        matches!(rustix::io::pread(&self.file, &mut byte, NOBODY_LEFT), Ok(1)) && byte == [1]
    }

    /// When the first lease ends; `None` until the ends of all leases are known.
    pub(crate) fn first(&self) -> Option<BootMs> {
        (0..).map_while(|lease| self.of(lease)).min()
    }

    fn of(&self, lease: usize) -> Option<BootMs> {
        let mut bytes = [0; SLOT];
        let read = rustix::io::pread(&self.file, &mut bytes, offset(lease)).ok()?;
        let until = (read == SLOT).then(|| u64::from_ne_bytes(bytes))?;
        // A hole in the file: the keeper of a later lease was faster.
        (until > 0).then_some(BootMs(until))
    }
}

impl AsFd for LeaseEnds {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn offset(lease: usize) -> u64 {
    LEASES + (lease * SLOT) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_end_counts_and_the_last_word_on_each() {
        let ends = LeaseEnds::new().expect("memory");
        assert_eq!(ends.first(), None);
        ends.extend(1, BootMs(40));
        assert_eq!(ends.first(), None, "nothing is known of the one before it");
        ends.extend(0, BootMs(50));
        assert_eq!(ends.first(), Some(BootMs(40)));
        let seen_by_a_keeper = LeaseEnds::open(&ends.path()).expect("its starter lives");
        seen_by_a_keeper.extend(1, BootMs(70));
        assert_eq!(ends.first(), Some(BootMs(50)));
        seen_by_a_keeper.extend(0, BootMs(90));
        ends.extend(0, BootMs(60));
        assert_eq!(ends.first(), Some(BootMs(70)), "and an old word changes nothing");
        assert!(!seen_by_a_keeper.is_nobody_left(), "nobody said so");
        ends.nobody_is_left();
        assert!(seen_by_a_keeper.is_nobody_left());
        assert_eq!(ends.first(), Some(BootMs(70)));
    }
}
