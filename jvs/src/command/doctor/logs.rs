//! How much the audit logs take up: they grow with every event, and nobody looks there.

use jvs_repo::audit;
use jvs_repo::layout;
use jvs_repo::store::Store;

use super::super::snapshots::{counted, size};
use crate::answer::doctor::LogsSize;

/// People are told from this size on.
const WORTH_TELLING: u64 = 1024 * 1024;

/// All logs of a repository; `None` if they cannot be listed, which is a finding of its own.
pub(super) fn size_of(store: &dyn Store) -> Option<LogsSize> {
    let (logs, _) = audit::logs(store).ok()?;
    let sizes = logs.iter().filter_map(|it| store.stat(&layout::audit_log(it)).ok());
    let mut all = LogsSize { files: 0, bytes: 0 };
    for log in sizes {
        all.files += 1;
        all.bytes += log.size;
    }
    Some(all)
}

/// A line for people, if it is worth one.
pub(super) fn line(LogsSize { files, bytes }: LogsSize) -> Option<String> {
    let told = format!("audit logs: {} in {}\n", size(bytes), counted(files, "file"));
    (bytes >= WORTH_TELLING).then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_audit_logs_is_told_once_it_is_worth_a_line() {
        assert_eq!(line(LogsSize { files: 3, bytes: 1000 }), None);
        let told = line(LogsSize { files: 1, bytes: 3 << 20 });
        assert_eq!(told.as_deref(), Some("audit logs: 3.0 MiB in 1 file\n"));
    }
}
