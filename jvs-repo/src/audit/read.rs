//! Reading a log from its start, a bounded piece at a time.

use std::io;

use serde::Serialize;

use super::{Event, LogName};
use crate::clock::WallMs;
use crate::layout;
use crate::mutation::Rule;
use crate::record::audit::{LINE_MAX, Sum, at_of, event_in, parse, take_apart};
use crate::sabotage;
use crate::store::{Store, StoredFile};

/// How much of a log one read takes in.
const CHUNK: usize = 256 * 1024;
/// How much of what is no line is passed over. More than the end of a log may have
/// without a line before it is left alone.
const SKIP_MAX: usize = 4 * LINE_MAX;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// The file ends in the middle of a line: a crash, or an append under way.
    TornEnd,
    /// A torn line that a later append closed, or one with a hole in it: a crash, or no room.
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
    log: impl Into<LogName>,
    mut each: impl FnMut(Line),
) -> io::Result<LogEnd> {
    let log = log.into();
    let file = store.open(&layout::audit_log(log))?;
    let mut check = Checker::of(log);
    lines_from(file.as_ref(), 0, &mut |piece| {
        each(match piece {
            Piece::Line(line) => check.line(line),
            Piece::Rest(rest) if rest.len() <= longest(rest) => check.flawed(Flaw::TornEnd),
            Piece::Rest(_) => check.flawed(Flaw::TooLong),
        });
    })?;
    Ok(LogEnd { last: check.sum, bytes: file.size()?, inode: file.inode()?, links: file.links()? })
}

/// What there is to know of a log that was read to its end.
#[derive(Debug, Clone, Copy)]
pub struct LogEnd {
    /// The sum of its last line.
    pub last: Sum,
    /// How large it is.
    pub bytes: u64,
    /// Which file it is.
    pub inode: u64,
    /// How many names that file has.
    pub links: u64,
}

/// What a log consists of.
enum Piece<'l> {
    /// A line, without its end.
    Line(&'l [u8]),
    /// What has no end of a line.
    Rest(&'l [u8]),
}

/// Reads `file` from `offset` on, where a line begins.
fn lines_from(
    file: &dyn StoredFile,
    mut offset: u64,
    each: &mut dyn FnMut(Piece<'_>),
) -> io::Result<()> {
    let mut pending: Vec<u8> = Vec::new();
    loop {
        let chunk = file.read_range(offset, CHUNK)?;
        offset += chunk.len() as u64;
        let at_end = chunk.len() < CHUNK;
        pending.extend_from_slice(&chunk);
        let mut rest = pending.as_slice();
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            each(Piece::Line(&rest[..end]));
            rest = &rest[end + 1..];
        }
        if rest.len() > SKIP_MAX || at_end {
            if !rest.is_empty() {
                each(Piece::Rest(rest));
            }
            return Ok(());
        }
        pending = rest.to_vec();
    }
}

/// How much of a log is looked at at once from its end backwards: more than a line takes.
const CHUNK_BACK: u64 = 2 * LINE_MAX as u64;

/// The events of a log that are not known to be from before `since`, each with the number
/// of its line, in the order of the log.
///
/// Looks from the end backwards, and no further than to a piece in which every event is
/// from before: of a log that was quiet since then, only its end is read. A clock that was
/// set back for longer than such a piece took to be written may hide what is before it.
/// What is no event is passed over, and nothing is checked.
pub fn read_since(
    store: &dyn Store,
    log: impl Into<LogName>,
    since: WallMs,
) -> io::Result<Vec<(u64, Event)>> {
    let file = store.open(&layout::audit_log(log))?;
    let is_wanted = |event: &Event| event.at_ms().is_none_or(|at| at >= since);
    let size = file.size()?;
    let (mut begin, mut no_events, mut any) = (size, 0, false);
    while begin > 0 {
        let length = begin.min(CHUNK_BACK);
        begin -= length;
        let piece = file.read_range(begin, usize::try_from(length).unwrap_or(usize::MAX))?;
        let lines = piece.split(|byte| *byte == b'\n');
        let mut wanted = lines.filter_map(|line| match is_before(line, since) {
            true => Some(false),
            false => parse(line).ok().map(|event| is_wanted(&event)),
        });
        let (first, more) = (wanted.next(), &mut wanted);
        no_events = if first.is_some() { 0 } else { no_events + piece.len() };
        match first == Some(true) || more.any(|wanted| wanted) {
            true => any = true,
            false if no_events == 0 || no_events > SKIP_MAX => break,
            false => {}
        }
    }
    if !any {
        return Ok(Vec::new());
    }
    let mut number = 0;
    // What begins in the middle of a line is no event, and has been counted before it.
    let mut events = Vec::new();
    lines_before(file.as_ref(), begin, &mut number)?;
    lines_from(file.as_ref(), begin, &mut |piece| {
        number += 1;
        let (Piece::Line(line) | Piece::Rest(line)) = piece;
        if is_before(line, since) {
            return;
        }
        events.extend(parse(line).ok().filter(is_wanted).map(|event| (number, event)));
    })?;
    Ok(events)
}

/// Is that told by how a line begins?
fn is_before(line: &[u8], since: WallMs) -> bool {
    at_of(line).is_some_and(|at| at < since)
}

/// Counts the lines that end before `end`.
fn lines_before(file: &dyn StoredFile, end: u64, number: &mut u64) -> io::Result<()> {
    let mut offset = 0;
    while offset < end {
        let want = usize::try_from(end - offset).unwrap_or(CHUNK).min(CHUNK);
        let chunk = file.read_range(offset, want)?;
        if chunk.is_empty() {
            break;
        }
        offset += chunk.len() as u64;
        *number += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
    }
    Ok(())
}

/// How much may be there without the end of a line: as much as a line has, and where there is a
/// hole as much as is passed over.
fn longest(rest: &[u8]) -> usize {
    if has_a_hole(rest) { SKIP_MAX } else { LINE_MAX }
}

/// Can a crash have left this of a line? One that stops early was cut. An empty one was never
/// begun; any other that ends as lines do is foreign.
fn is_torn(line: &[u8]) -> bool {
    line.last().is_some_and(|last| *last != b'}') || has_a_hole(line)
}

/// Is there a zero byte in it? No line has one, but a file that became longer although the
/// content never arrived reads so: a JuiceFS mount drops what it finds no room for, and keeps
/// what was written behind it.
fn has_a_hole(line: &[u8]) -> bool {
    sabotage!(Rule::HolesAreTorn => false);
    line.contains(&0)
}

pub(crate) struct Checker {
    sum: Sum,
    /// The line before has a hole: what the next one follows from may have been in it.
    behind_a_hole: bool,
    number: u64,
}

impl Checker {
    pub(crate) fn of(log: LogName) -> Self {
        Checker { sum: Sum::start(log), behind_a_hole: false, number: 0 }
    }

    fn flawed(&mut self, flaw: Flaw) -> Line {
        self.number += 1;
        Line { number: self.number, event: None, flaw: Some(flaw) }
    }

    pub(crate) fn line(&mut self, line: &[u8]) -> Line {
        if line.len() > LINE_MAX && !has_a_hole(line) {
            return self.flawed(Flaw::TooLong);
        }
        let Some((stated, body)) = take_apart(line) else {
            self.behind_a_hole |= has_a_hole(line);
            return self.flawed(if is_torn(line) { Flaw::TornInside } else { Flaw::Unreadable });
        };
        let event = event_in(body).ok();
        let follows = stated == self.sum.then(body);
        if !follows && !std::mem::take(&mut self.behind_a_hole) {
            if event.is_none() && is_torn(line) {
                return self.flawed(Flaw::TornInside);
            }
            // Go on from what the line states, so that one bad link is one finding.
            self.sum = stated;
            return Line { event, ..self.flawed(Flaw::BrokenLink) };
        }
        (self.sum, self.behind_a_hole) = (stated, false);
        self.number += 1;
        let flaw = if event.is_some() { None } else { Some(Flaw::Unreadable) };
        Line { number: self.number, event, flaw }
    }
}
