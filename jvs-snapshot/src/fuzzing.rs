//! Parsers that the fuzz targets call and nobody else may. Built for them alone.

use crate::engine::juicefs::control::{ControlMessage, Reply};

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
