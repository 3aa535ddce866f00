//! `READY`: there, and the snapshot is visible. What it says ties it to the
//! descriptor, so that neither can be exchanged without the other.
//!
//! Invariants: written as `READY.staged` and renamed, never edited; a descriptor
//! allows exactly one spelling of it, so that readers compare bytes.

use serde::{Deserialize, Serialize};

use super::version;
use crate::digest::Digest;
use crate::id::SnapshotId;
use crate::json;

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyMark {
    #[serde(with = "version")]
    version: u64,
    /// Which snapshot.
    pub snapshot_id: SnapshotId,
    /// The checksum of its descriptor.
    pub descriptor_checksum: Digest,
}

/// The only bytes that the READY of a snapshot with this descriptor may have.
pub fn bytes(snapshot_id: SnapshotId, descriptor_checksum: Digest) -> Vec<u8> {
    json::canonical(&ReadyMark { version: version::ONE, snapshot_id, descriptor_checksum })
}

/// Reads what [`bytes`] made, in that spelling only. The error says what is wrong.
pub fn parse(read: &[u8]) -> Result<ReadyMark, String> {
    let mark: ReadyMark = json::parse(read)?;
    if json::canonical(&mark) != read {
        return Err("it is not spelled as it was written".to_owned());
    }
    Ok(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("golden/READY.json");

    #[test]
    fn the_bytes_of_a_mark_are_these() {
        let mark = parse(GOLDEN.as_bytes()).expect("a mark");
        let written = bytes(mark.snapshot_id, mark.descriptor_checksum);
        assert_eq!(String::from_utf8_lossy(&written), GOLDEN);
    }

    #[test]
    fn a_mark_has_one_spelling_and_torn_or_hostile_ones_are_refused() {
        let whole = GOLDEN.as_bytes();
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_err(), "the first {end} bytes");
        }
        let more = GOLDEN.replace("{\n", "{\n  \"later\": 1,\n");
        let other = GOLDEN.replace("\"version\": 1", "\"version\": 2");
        let spaced = format!("{GOLDEN} ");
        for text in [more, other, spaced, "[".repeat(60_000)] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
