//! Reading a log from its start, a bounded piece at a time.

use std::io;

use serde::Serialize;

use super::{Event, WriterId};
use crate::layout;
use crate::record::audit::{LINE_MAX, Sum, event_in, take_apart};
use crate::store::Store;

/// How much of a log one read takes in.
const CHUNK: usize = 256 * 1024;
/// How much of what is no line is passed over. More than the end of a log may have
/// without a line before it is left alone.
const SKIP_MAX: usize = 4 * LINE_MAX;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// The file ends in the middle of a line: a crash, or an append under way.
    TornEnd,
    /// A torn line that a later append closed: a crash.
    TornInside,
    /// The line's sum does not follow from the line and those before it.
    BrokenLink,
    /// The line is not an event.
    Unreadable,
    /// The line is longer than any that is written.
    TooLong,
}

impl Flaw {
    /// Can a crash alone explain it?
    pub const fn is_crash(self) -> bool {
        matches!(self, Flaw::TornEnd | Flaw::TornInside)
    }
}

/// One line of a log as it was read.
#[derive(Debug, Clone)]
pub struct Line {
    /// Counted from 1.
    pub number: u64,
    /// The event, if it can be read.
    pub event: Option<Event>,
    /// What is wrong with the line, if anything.
    pub flaw: Option<Flaw>,
}

/// Reads a log from the start, a bounded piece at a time, and hands each line on.
///
/// Ends at what is no log: more than `SKIP_MAX` bytes without the end of a line.
/// Nothing is ever added to a log after that, so nothing is missed.
pub fn read_log(
    store: &dyn Store,
    writer: &WriterId,
    mut each: impl FnMut(Line),
) -> io::Result<()> {
    let file = store.open(&layout::audit_log(writer))?;
    let mut check = Checker::of(writer);
    let mut pending: Vec<u8> = Vec::new();
    let mut offset = 0;
    loop {
        let chunk = file.read_range(offset, CHUNK)?;
        offset += chunk.len() as u64;
        let at_end = chunk.len() < CHUNK;
        pending.extend_from_slice(&chunk);
        let mut rest = pending.as_slice();
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            each(check.line(&rest[..end]));
            rest = &rest[end + 1..];
        }
        if rest.len() > SKIP_MAX || at_end {
            if !rest.is_empty() {
                let cut = rest.len() <= LINE_MAX;
                each(check.flawed(if cut { Flaw::TornEnd } else { Flaw::TooLong }));
            }
            return Ok(());
        }
        pending = rest.to_vec();
    }
}

pub(crate) struct Checker {
    sum: Sum,
    number: u64,
}

impl Checker {
    pub(crate) fn of(writer: &WriterId) -> Self {
        Checker { sum: Sum::start(writer), number: 0 }
    }

    fn flawed(&mut self, flaw: Flaw) -> Line {
        self.number += 1;
        Line { number: self.number, event: None, flaw: Some(flaw) }
    }

    pub(crate) fn line(&mut self, line: &[u8]) -> Line {
        if line.len() > LINE_MAX {
            return self.flawed(Flaw::TooLong);
        }
        let Some((stated, body)) = take_apart(line) else {
            // A line that stops early was cut by a crash; any other is foreign. An
            // empty one was never begun.
            let torn = line.last().is_some_and(|last| *last != b'}');
            return self.flawed(if torn { Flaw::TornInside } else { Flaw::Unreadable });
        };
        let event = event_in(body).ok();
        if stated != self.sum.then(body) {
            if event.is_none() && line.last() != Some(&b'}') {
                return self.flawed(Flaw::TornInside);
            }
            // Go on from what the line states, so that one bad link is one finding.
            self.sum = stated;
            return Line { event, ..self.flawed(Flaw::BrokenLink) };
        }
        self.sum = stated;
        self.number += 1;
        let flaw = if event.is_some() { None } else { Some(Flaw::Unreadable) };
        Line { number: self.number, event, flaw }
    }
}
