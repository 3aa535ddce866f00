//! The time of the last event that any log tells of.

use std::io;

use super::{Event, LogName, logs};
use crate::clock::WallMs;
use crate::layout;
use crate::record::audit::{self, LINE_MAX};
use crate::store::Store;

/// The latest time in the last whole lines of all logs. Reads no more than their
/// ends.
pub fn newest(store: &dyn Store) -> io::Result<Option<WallMs>> {
    let mut newest = None;
    for log in logs(store)?.0 {
        let last = match last(store, log) {
            // Closed or dropped since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            last => last?,
        };
        newest = newest.max(last.and_then(|event| event.at_ms()));
    }
    Ok(newest)
}

fn last(store: &dyn Store, log: LogName) -> io::Result<Option<Event>> {
    let file = store.open(&layout::audit_log(log))?;
    let size = file.size()?;
    let want = size.min(2 * LINE_MAX as u64);
    let tail = file.read_range(size - want, usize::try_from(want).unwrap_or(usize::MAX))?;
    Ok(tail.split(|byte| *byte == b'\n').rev().find_map(|line| audit::parse(line).ok()))
}
