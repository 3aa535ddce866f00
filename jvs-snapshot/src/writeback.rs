//! JuiceFS mounts that acknowledge writes before they are uploaded
//! (`--writeback`): a snapshot committed there could be unreadable elsewhere, so
//! it waits until the mount has nothing left to upload, or is refused.

use std::path::Path;

use jvs_repo::clock::Clock;
use jvs_repo::probe::{Filesystem, JuiceFs};
use jvs_repo::store::{PosixStore, RepoPath, Store};

use crate::error::SnapshotError;

/// How long a mount may take to hand everything in.
const PATIENCE_MS: u64 = 120_000;
/// Between two looks.
const PAUSE_MS: u64 = 100;
/// Where a mount counts, at its root.
const STATS: [&str; 2] = [".stats", ".jfs.stats"];
/// Blocks written and not yet uploaded.
const COUNTER: &str = "juicefs_staging_blocks";
/// Largest statistics that are read.
const STATS_MAX: usize = 1 << 20;

/// Waits until what was written below `path` can be read on other hosts. A mount
/// whose options this user may not read is believed to be an ordinary one.
pub(crate) fn wait_for_upload(
    path: &Path,
    clock: &dyn Clock,
    keep_going: &dyn Fn() -> bool,
) -> Result<(), SnapshotError> {
    let filesystem = Filesystem::at(path).map_err(SnapshotError::io("look at the mount"))?;
    let Some(JuiceFs::Mounted { writeback: true, .. }) = filesystem.juicefs else {
        return Ok(());
    };
    let mut waited = 0;
    loop {
        let blocks = staging_blocks(&filesystem.mount_point);
        if blocks == Some(0) {
            return Ok(());
        }
        if waited >= PATIENCE_MS || !keep_going() || blocks.is_none() {
            return Err(SnapshotError::Writeback { blocks });
        }
        clock.sleep_ms(PAUSE_MS);
        waited += PAUSE_MS;
    }
}

fn staging_blocks(mount_point: &Path) -> Option<u64> {
    let root = PosixStore::open(mount_point).ok()?;
    let stats = STATS.iter().find_map(|name| {
        let path = RepoPath::root().child(name).ok()?;
        root.read(&path, STATS_MAX).ok()
    })?;
    count(&String::from_utf8_lossy(&stats))
}

/// The sum of the counter over all its labels; `None` if it is not there.
fn count(stats: &str) -> Option<u64> {
    let numbers = stats.lines().filter_map(|line| {
        let rest = line.strip_prefix(COUNTER)?;
        let value = match rest.strip_prefix('{') {
            Some(labelled) => labelled.split_once("} ")?.1,
            None => rest.strip_prefix(' ')?,
        };
        value.trim().parse::<f64>().ok()
    });
    let numbers: Vec<f64> = numbers.collect();
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>().ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_not_uploaded_are_counted_whatever_labels_they_have() {
        let stats = "juicefs_uptime 4\njuicefs_staging_blocks 0\njuicefs_staging_block_bytes 7\n";
        assert_eq!(count(stats), Some(0));
        let labelled = "juicefs_staging_blocks{mp=\"/a\"} 2\njuicefs_staging_blocks{mp=\"/b\"} 1\n";
        assert_eq!(count(labelled), Some(3));
        assert_eq!(count("juicefs_uptime 4\n"), None, "unknown is not none");
        assert_eq!(count("juicefs_staging_blocks many\n"), None);
    }
}
