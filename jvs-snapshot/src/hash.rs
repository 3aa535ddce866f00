//! The digest of a file's content, by as many threads as it is worth.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use blake3::hazmat::{self, ChainingValue, HasherExt as _, Mode};
pub use jvs_repo::digest::Digest;

use crate::{tree, workers};

/// What is hashed by one thread in one go: a power of two, as BLAKE3's tree wants
/// it, and small enough for a processor's own cache.
const LEAF: u64 = 256 << 10;
/// Below this, more threads cost more than they bring.
const WORTH_SHARING: u64 = 16 * LEAF;

/// The digest of the first `size` bytes of an open file; `UnexpectedEof` if it
/// has fewer. A large file is hashed by up to `threads` threads.
pub fn of_file(file: impl AsFd + Sync, size: u64, threads: usize) -> io::Result<Digest> {
    of_parts(size, threads, |part, offset| read_exactly(&file, part, offset))
}

/// The digest of `size` bytes that `fill` puts into the buffers it is given, each
/// with its offset: once for each part, in any order and by up to `threads` threads
/// at once. BLAKE3 is a tree, and its subtrees can be hashed in any order.
pub(crate) fn of_parts(
    size: u64,
    threads: usize,
    fill: impl Fn(&mut [u8], u64) -> io::Result<()> + Sync,
) -> io::Result<Digest> {
    if threads < 2 || size < WORTH_SHARING {
        return in_sequence(size, fill);
    }
    let leaves = usize::try_from(size.div_ceil(LEAF)).map_err(io::Error::other)?;
    let values: Mutex<Vec<ChainingValue>> = Mutex::new(vec![[0; 32]; leaves]);
    // One task per thread with one buffer each, which takes the next leaf as long as
    // there is one: a thread that has to wait delays no other.
    let next = AtomicUsize::new(0);
    workers::try_each(threads, vec![(); threads], |(), _| -> io::Result<()> {
        let mut buffer = vec![0; LEAF as usize];
        loop {
            let leaf = next.fetch_add(1, Ordering::Relaxed);
            if leaf >= leaves {
                return Ok(());
            }
            let offset = leaf as u64 * LEAF;
            let part = &mut buffer[..usize::try_from(LEAF.min(size - offset)).unwrap_or(0)];
            fill(part, offset)?;
            let mut hasher = blake3::Hasher::new();
            let value = hasher.set_input_offset(offset).update(part).finalize_non_root();
            values.lock().unwrap_or_else(PoisonError::into_inner)[leaf] = value;
        }
    })?;
    let values = values.into_inner().unwrap_or_else(PoisonError::into_inner);
    let left = hazmat::left_subtree_len(size);
    let (first, second) = values.split_at(usize::try_from(left / LEAF).unwrap_or(0));
    Ok(hazmat::merge_subtrees_root(&merged(first, left), &merged(second, size - left), Mode::Hash)
        .into())
}

/// The chaining value of a subtree of `size` bytes.
fn merged(leaves: &[ChainingValue], size: u64) -> ChainingValue {
    match leaves {
        [one] => *one,
        _ => {
            let left = hazmat::left_subtree_len(size);
            let (first, second) = leaves.split_at(usize::try_from(left / LEAF).unwrap_or(0));
            let (first, second) = (merged(first, left), merged(second, size - left));
            hazmat::merge_subtrees_non_root(&first, &second, Mode::Hash)
        }
    }
}

fn in_sequence(size: u64, fill: impl Fn(&mut [u8], u64) -> io::Result<()>) -> io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; usize::try_from(size.min(LEAF)).unwrap_or(0)];
    let mut offset = 0;
    while offset < size {
        let part = usize::try_from((size - offset).min(LEAF)).unwrap_or(0);
        fill(&mut buffer[..part], offset)?;
        hasher.update(&buffer[..part]);
        offset += part as u64;
    }
    Ok(hasher.finalize().into())
}

pub(crate) fn read_exactly(file: impl AsFd, into: &mut [u8], offset: u64) -> io::Result<()> {
    if tree::read_at(file, into, offset)? < into.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_hashes_the_same_by_one_thread_or_many() {
        let mut file = tempfile::tempfile().expect("a file");
        let bytes: Vec<u8> = (0..WORTH_SHARING + 3 * LEAF + 12_345).map(|n| n as u8).collect();
        file.write_all(&bytes).expect("written");
        for size in [0, 1, LEAF, WORTH_SHARING - 1, WORTH_SHARING, bytes.len() as u64] {
            let expected = Digest::of(&bytes[..size as usize]);
            for threads in [1, 2, 3, 16] {
                assert_eq!(of_file(&file, size, threads).expect("hashed"), expected, "{size}");
            }
        }
        for threads in [1, 2] {
            let error = of_file(&file, bytes.len() as u64 + 1, threads).expect_err("shorter");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
