//! How much the audit logs take up: they grow with every event, and nobody looks there.

use jvs_repo::audit;
use jvs_repo::layout;
use jvs_repo::store::Store;
use serde::Serialize;

use super::super::snapshots::{counted, size};

/// People are told from this size on.
const WORTH_TELLING: u64 = 1024 * 1024;

/// All logs of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct LogsSize {
    files: u64,
    bytes: u64,
}

impl LogsSize {
    /// `None` if they cannot be listed, which is a finding of its own.
    pub(super) fn of(store: &dyn Store) -> Option<Self> {
        let (logs, _) = audit::logs(store).ok()?;
        let sizes = logs.iter().filter_map(|it| store.stat(&layout::audit_log(it)).ok());
        let mut all = LogsSize { files: 0, bytes: 0 };
        for log in sizes {
            all.files += 1;
            all.bytes += log.size;
        }
        Some(all)
    }

    pub(super) fn bytes(self) -> u64 {
        self.bytes
    }

    /// A line for people, if it is worth one.
    pub(super) fn line(self) -> Option<String> {
        let LogsSize { files, bytes } = self;
        let told = format!("audit logs: {} in {}\n", size(bytes), counted(files, "file"));
        (bytes >= WORTH_TELLING).then_some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_audit_logs_is_told_once_it_is_worth_a_line() {
        assert_eq!(LogsSize { files: 3, bytes: 1000 }.line(), None);
        let told = LogsSize { files: 1, bytes: 3 << 20 }.line();
        assert_eq!(told.as_deref(), Some("audit logs: 3.0 MiB in 1 file\n"));
    }
}
