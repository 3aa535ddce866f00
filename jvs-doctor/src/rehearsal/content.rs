//! Files of a rehearsal: what is on disk, and what was written over it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jvs_repo::store::StoredFile;

/// A file's bytes: those on disk, and what was written over them.
pub(super) struct RehearsedBytes {
    pub(super) real: Option<Box<dyn StoredFile>>,
    pub(super) inode: u64,
    pub(super) links: u64,
    pub(super) writes: Vec<(u64, Vec<u8>)>,
}

impl RehearsedBytes {
    pub(super) fn size(&self) -> io::Result<u64> {
        let real = self.real.as_ref().map_or(Ok(0), |real| real.size())?;
        let ends = self.writes.iter().map(|(offset, bytes)| offset + bytes.len() as u64);
        Ok(ends.fold(real, u64::max))
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = match &self.real {
            Some(real) => real.read_range(offset, length)?,
            None => Vec::new(),
        };
        let whole = usize::try_from(self.size()?.saturating_sub(offset)).unwrap_or(usize::MAX);
        bytes.resize(length.min(whole), 0);
        let end = offset + bytes.len() as u64;
        for (at, written) in &self.writes {
            let (from, to) = (offset.max(*at), end.min(at + written.len() as u64));
            if from < to {
                let index = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
                bytes[index(from - offset)..index(to - offset)]
                    .copy_from_slice(&written[index(from - at)..index(to - at)]);
            }
        }
        Ok(bytes)
    }
}

/// A file that was written to, held open.
pub(super) struct Opened(pub(super) Arc<Mutex<RehearsedBytes>>);

impl Opened {
    fn content(&self) -> MutexGuard<'_, RehearsedBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoredFile for Opened {
    fn inode(&self) -> io::Result<u64> {
        Ok(self.content().inode)
    }

    fn read_up_to(&self, limit: usize) -> io::Result<Vec<u8>> {
        self.content().read(0, limit.saturating_add(1))
    }

    fn read_range(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.content().read(offset, length)
    }

    fn size(&self) -> io::Result<u64> {
        self.content().size()
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.content().links)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.content().writes.push((offset, bytes.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
