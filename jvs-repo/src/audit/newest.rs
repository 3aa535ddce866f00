//! The time of the last event that any log tells of.

use std::io;

use super::{Event, WriterId, writers};
use crate::clock::WallMs;
use crate::layout;
use crate::record::audit::{self, LINE_MAX};
use crate::store::Store;

/// The latest time in the last whole lines of all logs. Reads no more than their
/// ends.
pub fn newest(store: &dyn Store) -> io::Result<Option<WallMs>> {
    let (writers, _) = writers(store)?;
    let mut newest = None;
    for writer in writers {
        newest = newest.max(last(store, &writer)?.and_then(|event| event.at_ms()));
    }
    Ok(newest)
}

fn last(store: &dyn Store, writer: &WriterId) -> io::Result<Option<Event>> {
    let file = store.open(&layout::audit_log(writer))?;
    let size = file.size()?;
    let want = size.min(2 * LINE_MAX as u64);
    let tail = file.read_range(size - want, usize::try_from(want).unwrap_or(usize::MAX))?;
    Ok(tail.split(|byte| *byte == b'\n').rev().find_map(|line| audit::parse(line).ok()))
}
