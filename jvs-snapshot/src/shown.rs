//! How a committed snapshot becomes visible. A process that READ that it is a head may do it,
//! once that is durable, and as often as anybody likes.

use std::io;

use jvs_lock::Seams;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;

use crate::catalog::Catalog;

/// How often a READY that could not be shown is tried.
const TRIES: u32 = 4;
/// Between two tries.
const PAUSE_MS: u64 = 20;

/// Makes a committed snapshot visible. The only way in which READY is made.
pub(crate) fn show(seams: Seams<'_>, committed: SnapshotId) -> io::Result<()> {
    let dir = layout::snapshot(committed);
    let (staged, ready) = (layout::ready_staged(&dir), layout::ready(&dir));
    let store = seams.store;
    for attempt in 1.. {
        let Err(error) = store.rename(&staged, &ready) else { break };
        // Somebody else did it, or the answer was lost.
        if store.is_there(&ready)? {
            break;
        }
        if attempt == TRIES || error.kind() == io::ErrorKind::NotFound {
            return Err(error);
        }
        seams.clock.sleep_ms(PAUSE_MS);
    }
    store.sync_dir(&dir)
}

/// Makes a head visible if its publisher did not come to it: for the process that ends the epoch
/// of the register that has it, which was READ and is durable.
///
/// A head that was collected since needs nothing. Nor does one that has lost its READY
/// without a draft of it being there: nobody takes that for a draft.
pub fn show_head(seams: Seams<'_>, head: SnapshotId) -> io::Result<()> {
    if Catalog::new(seams.store).is_ready(head)? {
        return Ok(());
    }
    match show(seams, head) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        shown => shown,
    }
}
