//! The ledgers of what was collected.

use jvs_repo::digest::Digest;
use jvs_repo::record::ledger::{self, ENTRIES_MAX, SIZE_MAX};

/// What is read is written again as it was: a list has one spelling. It is in order, and
/// within its limits. So is the same body under a digest of its own, which gets past the
/// first thing that is checked.
pub(crate) fn ledger(data: &[u8]) {
    read(data);
    if let Some(body) = data.len().checked_sub(32).map(|end| &data[..end]) {
        let digest = Digest::of(body);
        read(&[body, &digest.0].concat());
    }
}

fn read(data: &[u8]) {
    let Ok(entries) = ledger::parse(data) else { return };
    assert!(data.len() <= SIZE_MAX && entries.len() <= ENTRIES_MAX);
    assert!(entries.is_sorted_by(|one, next| one.snapshot_id < next.snapshot_id), "in order");
    assert!(entries.iter().all(|entry| entry.commit_seq.0 > 0), "counted from 1");
    assert_eq!(ledger::to_bytes(&entries), data, "another spelling");
}
