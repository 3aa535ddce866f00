//! How many directories may be kept open for what is below them. A tree may be deeper
//! than a process may have files open: beyond this, a directory is found again by its
//! path when its turn comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};

/// At most this many, however many files may be open.
const MOST: u64 = 256;
/// One part in so many of the files that this process may have open.
const SHARE: u64 = 8;

#[derive(Debug, Clone)]
pub(crate) struct OpenDirs {
    most: usize,
    open: Arc<AtomicUsize>,
}

/// One of them; dropped with its descriptors.
#[derive(Debug)]
pub(crate) struct KeptOpen(Arc<AtomicUsize>);

impl OpenDirs {
    /// Where a directory needs `each` descriptors.
    pub(crate) fn of(each: u64) -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::at_most(usize::try_from((limit / (SHARE * each)).clamp(1, MOST)).unwrap_or(1))
    }

    pub(crate) fn at_most(most: usize) -> Self {
        OpenDirs { most, open: Arc::default() }
    }

    pub(crate) fn keep(&self) -> KeptOpen {
        self.open.fetch_add(1, Ordering::Relaxed);
        KeptOpen(self.open.clone())
    }

    pub(crate) fn has_room(&self) -> bool {
        self.open() < self.most
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for KeptOpen {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
