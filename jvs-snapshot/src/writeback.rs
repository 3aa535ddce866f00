//! JuiceFS mounts that acknowledge writes before they are uploaded
//! (`--writeback`): a snapshot committed there could be unreadable elsewhere, so
//! it waits until the mount has nothing left to upload, or is refused.
//!
//! The options of a mount are for root to read. A mount that keeps them from this
//! user may have that one, so its counter is asked in any case; an ordinary mount
//! counts nothing and is not waited for.

use std::path::Path;

use jvs_repo::clock::Clock;
use jvs_repo::probe::{Filesystem, JuiceFsMount};

use crate::error::SnapshotError;
use crate::mount_counters::{self, STAGING_BLOCKS};

/// How long a mount may take to hand everything in.
const PATIENCE_MS: u64 = 120_000;
/// Between two looks.
const PAUSE_MS: u64 = 100;

/// Waits until what was written below `path` can be read on other hosts.
pub(crate) fn wait_for_upload(
    path: &Path,
    clock: &dyn Clock,
    keep_going: &dyn Fn() -> bool,
) -> Result<(), SnapshotError> {
    let filesystem = Filesystem::at(path).map_err(SnapshotError::io("look at the mount"))?;
    let certain = match filesystem.juicefs {
        None | Some(JuiceFsMount::Mounted { writeback: false, .. }) => return Ok(()),
        Some(JuiceFsMount::Mounted { writeback: true, .. }) => true,
        Some(JuiceFsMount::Unreadable) => false,
    };
    let mut waited = 0;
    loop {
        let blocks = mount_counters::read(&filesystem.mount_point, STAGING_BLOCKS);
        if blocks == Some(0) {
            return Ok(());
        }
        if waited >= PATIENCE_MS || !keep_going() || blocks.is_none() {
            return Err(SnapshotError::Writeback { blocks, certain });
        }
        clock.sleep_ms(PAUSE_MS);
        waited += PAUSE_MS;
    }
}
