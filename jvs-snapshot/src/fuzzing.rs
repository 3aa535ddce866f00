//! Parsers that the fuzz targets call and nobody else may. Built for them alone.

use jvs_repo::record::ignore_rules::IgnoreSource;

use crate::engine::juicefs::control::{ControlMessage, Reply};
use crate::ignore::IgnoreRules;
use crate::manifest::TreePath;

/// A file of rules as a descriptor has it, and whether it ignores a path.
pub fn rules(file: &[u8], path: &TreePath, is_directory: bool) -> (Vec<IgnoreSource>, bool) {
    let rules = IgnoreRules::of_file_at_root(file);
    (rules.to_record(), rules.ignores(path, is_directory))
}

/// Whether rules of a descriptor, which a strict reader has read, ignore a path.
pub fn recorded_rules(sources: &[IgnoreSource], path: &TreePath, is_directory: bool) -> bool {
    IgnoreRules::of_record(sources).ignores(path, is_directory)
}

/// A counter of a JuiceFS mount.
pub fn counter(stats: &str, counter: &str) -> Option<u64> {
    crate::mount_counters::sum(stats, counter)
}

/// What the answer to a clone says: files that were done, and the error number at its end.
pub fn clone_answer(bytes: &[u8]) -> (u64, Option<u8>) {
    let mut reply = Reply::default();
    let mut done = 0;
    for byte in bytes {
        match reply.take(*byte) {
            Some(ControlMessage::Progress { fresh }) => done += fresh,
            Some(ControlMessage::End(errno)) => return (done, Some(errno)),
            None => {}
        }
    }
    (done, None)
}
