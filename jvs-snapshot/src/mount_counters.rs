//! What a JuiceFS mount counts about itself, in a file at its root that everybody
//! may read.

use std::path::Path;

use jvs_repo::store::{PosixStore, RepoPath, Store};

/// Where a mount counts; the second if it keeps out of the way of the user's names.
const FILES: [&str; 2] = [".stats", ".jfs.stats"];
/// Where a mount is talked to, named in the same two ways.
pub(crate) const CONTROL_FILES: [&str; 2] = [".control", ".jfs.control"];
/// Largest statistics that are read.
const BYTES_MAX: usize = 1 << 20;

/// Blocks written and not yet uploaded.
pub(crate) const STAGING_BLOCKS: &str = "juicefs_staging_blocks";
/// Files and directories that anybody has open here, each counted once.
pub(crate) const OPEN_FILES: &str = "juicefs_fuse_open_handlers";

/// What a mount counted at one moment.
pub(crate) struct Counters(String);

impl Counters {
    /// As they are now; `None` if the mount does not say.
    pub(crate) fn read(mount_point: &Path) -> Option<Self> {
        let root = PosixStore::open(mount_point).ok()?;
        let stats = FILES.iter().find_map(|name| {
            let path = RepoPath::root().child(name).ok()?;
            root.read(&path, BYTES_MAX).ok()
        })?;
        Some(Counters(String::from_utf8_lossy(&stats).into_owned()))
    }

    /// As [`Counters::read`], with the mount's control file open meanwhile.
    pub(crate) fn read_with_control_open(mount_point: &Path) -> Option<Self> {
        let root = PosixStore::open(mount_point).ok()?;
        let _open = CONTROL_FILES.iter().find_map(|name| {
            let path = RepoPath::root().child(name).ok()?;
            root.open_writable(&path).ok()
        })?;
        Counters::read(mount_point)
    }

    /// One of them; `None` if the mount does not count it.
    pub(crate) fn get(&self, counter: &str) -> Option<u64> {
        sum(&self.0, counter)
    }
}

/// One counter now; `None` if the mount does not say.
pub(crate) fn read(mount_point: &Path, counter: &str) -> Option<u64> {
    Counters::read(mount_point)?.get(counter)
}

/// The sum of a counter over all its labels; `None` if it is not there.
pub(crate) fn sum(stats: &str, counter: &str) -> Option<u64> {
    let numbers = stats.lines().filter_map(|line| {
        let rest = line.strip_prefix(counter)?;
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
        let count = |stats| sum(stats, STAGING_BLOCKS);
        let stats = "juicefs_uptime 4\njuicefs_staging_blocks 0\njuicefs_staging_block_bytes 7\n";
        assert_eq!(count(stats), Some(0));
        let labelled = "juicefs_staging_blocks{mp=\"/a\"} 2\njuicefs_staging_blocks{mp=\"/b\"} 1\n";
        assert_eq!(count(labelled), Some(3));
        assert_eq!(count("juicefs_uptime 4\n"), None, "unknown is not none");
        assert_eq!(count("juicefs_staging_blocks many\n"), None);
    }
}
