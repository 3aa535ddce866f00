//! What files stand on, as far as it matters for what may be believed of them.
//!
//! A snapshot remembers of every file its inode and change time, so that the next
//! one, `diff` and `status` need not read what did not change. That is a hint and no
//! proof: a change time tells of every change only where somebody keeps it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use jvs_repo::clock::BootId;
use jvs_repo::sabotage;

use crate::engine::juicefs_mount;
use crate::mutation::capturing::CaptureRule;
use crate::tree;

/// Where the files of a tree are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ground {
    /// On a disk of this host. A database that writes in place syncs its data and
    /// not its times, so a power cut may take the time of a change and leave the
    /// change.
    Disk,
    /// Nowhere else than in memory. Nothing is ever written back there, so the
    /// kernel has no reason to notice who stores into a file that is mapped.
    Memory,
    /// On JuiceFS: content and change time are one transaction of its metadata.
    /// Where its root is mounted, if that is to be seen.
    JuiceFs(Option<PathBuf>),
    /// On another host, in other ways.
    Remote,
}

impl Ground {
    pub(crate) fn of(root: &OwnedFd) -> Self {
        if let Some(point) = juicefs_mount(root) {
            return Ground::JuiceFs(point);
        }
        match tree::is_remote(root) {
            true => Ground::Remote,
            false if tree::is_in_memory(root) => Ground::Memory,
            false => Ground::Disk,
        }
    }

    /// Whether the files are somewhere else, so that waiting for answers costs more
    /// than working.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Ground::JuiceFs(_) | Ground::Remote)
    }

    /// Whether a store into a mapped file ever shows in its change time.
    pub(crate) fn notes_stores(&self) -> bool {
        sabotage!(CaptureRule::NeverInMemory => true);
        *self != Ground::Memory
    }

    /// Whether change times that were remembered in the boot `then` still tell of
    /// every change in the boot `now`.
    pub(crate) fn believes(&self, then: Option<&BootId>, now: &BootId) -> bool {
        match self {
            Ground::JuiceFs(_) => true,
            _ => self.notes_stores() && is_same_boot(then, now),
        }
    }
}

/// Is it certain that both are one boot? What is not known is never the same.
fn is_same_boot(then: Option<&BootId>, now: &BootId) -> bool {
    sabotage!(CaptureRule::WithinTheBoot => true);
    then.is_some_and(|then| then == now && !now.0.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_remembered_counts_within_its_boot_and_where_times_are_kept() {
        let (a, b) = (BootId("a".into()), BootId("b".into()));
        let nothing = BootId(String::new());
        for ground in [Ground::Disk, Ground::Remote] {
            assert!(ground.believes(Some(&a), &a));
            assert!(!ground.believes(Some(&a), &b), "another boot");
            assert!(!ground.believes(None, &a), "nobody knows which boot");
            assert!(!ground.believes(Some(&nothing), &nothing), "two that are unknown");
        }
        assert!(!Ground::Memory.believes(Some(&a), &a));
        assert!(Ground::JuiceFs(None).believes(None, &a), "kept with the content");
    }
}
