//! The audit log on disk: one file a writer, one JSON line an event, each line
//! chained to the one before.
//!
//! One file a writer, because appends from two mounts of one JuiceFS volume
//! overwrite each other. A writer is one session on one mount; processes of
//! that session on one host take turns ([`Turn`]).
//!
//! What the events of a register must add up to is the lock's business, not
//! this module's: here a log is only whole or not.

use std::any::Any;
use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::clock::WallMs;
use crate::id::{NotAnId, OpNonce, hex, strict_hex, text_serde};
use crate::layout;
use crate::name::WorktreeName;
use crate::store::{Store, StoredFile};

/// Longest line that is written or believed.
pub const LINE_MAX: usize = 16 * 1024;
/// How much of a log's end is read first to find its last line: several of
/// those that are usual. Every command pays for it.
const TAIL: u64 = 2 * 1024;
/// How much of a log one read takes in.
const CHUNK: usize = 256 * 1024;

/// Who writes a log: a session on a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriterId(pub [u8; 12]);

impl WriterId {
    /// The writer for `session` (any bytes that name it) on the mount `device`.
    pub fn derive(session: &[u8], device: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("jvs audit writer v1");
        hasher.update(&device.to_be_bytes());
        hasher.update(session);
        let mut id = [0; 12];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..12]);
        WriterId(id)
    }
}

impl fmt::Display for WriterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for WriterId {
    type Err = NotAnId;
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        strict_hex(text).map(WriterId).ok_or(NotAnId::expected("24 hexadecimal digits"))
    }
}
text_serde!(WriterId);

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    Create,
    Acquire,
    Renew,
    Steal,
    Reclaim,
    Transfer,
    Release,
    Freeze,
    Unfreeze,
    Publish,
    /// A CAS that only moved the register on, to make an outcome certain.
    Advance,
    Retire,
    Rebuild,
    Restore,
    Gc,
    Repair,
    Migrate,
    Tag,
    Untag,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Where in an operation the event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// About to be tried: on disk before the CAS is issued.
    Intent,
    /// Applied.
    Done,
    /// Certainly not applied, and never will be.
    NotApplied,
    /// Neither could be established.
    Unknown,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// Where in the operation.
    pub phase: Phase,
    /// When, on the writer's wall clock (RFC 3339).
    pub at: String,
    /// The operation: the same over all its attempts.
    pub op: OpNonce,
    /// The worktree, if it concerns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeName>,
    /// Whose doing it was.
    pub session_id: String,
    /// `host:user:pid:start_time` of the process.
    pub holder_id: String,
    /// Register name before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Register name after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why, in the words of whoever did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Anything else worth keeping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}

impl Event {
    /// The time of the event, if it can be read.
    pub fn at_ms(&self) -> Option<WallMs> {
        WallMs::parse_rfc3339(&self.at)
    }
}

/// Lets the processes of one writer append one after the other.
pub trait Turn: Send + Sync {
    /// Waits for the turn; it lasts until the answer is dropped.
    fn take(&self) -> io::Result<Box<dyn Any>>;
}

/// A turn that needs no waiting: there is one process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Turn for Alone {
    fn take(&self) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(()))
    }
}

/// The chain value of a line: commits to the line and all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sum([u8; 16]);

impl Sum {
    fn start(writer: &WriterId) -> Self {
        Sum::over(&[0; 16], writer.to_string().as_bytes())
    }

    fn over(previous: &[u8; 16], body: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("jvs audit line v1");
        hasher.update(previous);
        hasher.update(body);
        let mut sum = [0; 16];
        sum.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Sum(sum)
    }

    fn then(self, body: &[u8]) -> Self {
        Sum::over(&self.0, body)
    }
}

const PREFIX: &[u8] = b"{\"sum\":\"";
const AFTER_SUM: &[u8] = b"\",";

/// Splits a line into its stated sum and the body the sum was taken over.
fn take_apart(line: &[u8]) -> Option<(Sum, &[u8])> {
    let rest = line.strip_prefix(PREFIX)?;
    let (sum, rest) = rest.split_at_checked(32)?;
    let body = rest.strip_prefix(AFTER_SUM)?;
    Some((Sum(strict_hex(std::str::from_utf8(sum).ok()?)?), body))
}

fn put_together(sum: Sum, body: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(body.len() + 48);
    line.extend_from_slice(PREFIX);
    line.extend_from_slice(hex(&sum.0).as_bytes());
    line.extend_from_slice(AFTER_SUM);
    line.extend_from_slice(body);
    line.push(b'\n');
    line
}

/// The end of a log: where the next line goes and what it is chained to.
#[derive(Clone, Copy)]
struct End {
    offset: u64,
    sum: Sum,
    /// The last line was cut short by a crash; it is closed before the next.
    torn: bool,
}

/// One writer's log, open for appending.
pub struct Log<'s> {
    store: &'s dyn Store,
    turn: &'s dyn Turn,
    writer: WriterId,
    open: Option<(Box<dyn StoredFile>, End)>,
}

impl<'s> Log<'s> {
    /// The log of `writer`. Touches nothing until the first event.
    pub fn new(store: &'s dyn Store, turn: &'s dyn Turn, writer: WriterId) -> Self {
        Log { store, turn, writer, open: None }
    }

    /// Appends an event and makes it durable: what must be known of an
    /// operation even if its process dies in the middle of it.
    pub fn append_durably(&mut self, event: &Event) -> io::Result<()> {
        self.append(event)?;
        match &self.open {
            Some((file, _)) => file.sync(),
            None => Ok(()),
        }
    }

    /// Appends an event; a power cut may lose it.
    pub fn append(&mut self, event: &Event) -> io::Result<()> {
        let _turn = self.turn.take()?;
        let (file, end) = match self.open.take() {
            Some((file, end)) if file.size()? == end.offset => (file, end),
            Some((file, _)) => {
                let end = find_end(file.as_ref(), &self.writer)?;
                (file, end)
            }
            None => self.open_log()?,
        };
        let mut body = serde_json::to_vec(event)?;
        body.remove(0); // the opening brace: the sum comes first
        if body.len() + 48 > LINE_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "audit event is too long"));
        }
        let sum = end.sum.then(&body);
        let mut bytes = if end.torn { b"\n".to_vec() } else { Vec::new() };
        bytes.extend(put_together(sum, &body));
        file.write_at(end.offset, &bytes)?;
        let end = End { offset: end.offset + bytes.len() as u64, sum, torn: false };
        self.open = Some((file, end));
        Ok(())
    }

    /// Closes the file until the next event: a filesystem that hands written data
    /// in later does so now, and keeps nothing in memory for us.
    pub fn rest(&mut self) {
        self.open = None;
    }

    fn open_log(&self) -> io::Result<(Box<dyn StoredFile>, End)> {
        let path = layout::audit_log(&self.writer);
        match self.store.open_writable(&path) {
            Ok(file) => {
                let end = find_end(file.as_ref(), &self.writer)?;
                Ok((file, end))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = self.store.create_new(&path)?;
                self.store.sync_dir(&layout::audit())?;
                Ok((file, End { offset: 0, sum: Sum::start(&self.writer), torn: false }))
            }
            Err(error) => Err(error),
        }
    }
}

/// Finds the last whole line by reading backwards as far as needed.
fn find_end(file: &dyn StoredFile, writer: &WriterId) -> io::Result<End> {
    let size = file.size()?;
    let mut want = TAIL.min(size);
    loop {
        let tail = file.read_range(size - want, usize::try_from(want).unwrap_or(usize::MAX))?;
        let torn = !tail.is_empty() && tail.last() != Some(&b'\n');
        let whole = tail.split(|b| *b == b'\n').rev().skip(1);
        // The first piece of the tail may be the second half of a line.
        let pieces: Vec<&[u8]> = whole.collect();
        let usable = if want == size { pieces.len() } else { pieces.len().saturating_sub(1) };
        if let Some((sum, _)) = pieces[..usable].iter().find_map(|line| take_apart(line)) {
            return Ok(End { offset: size, sum, torn });
        }
        if want == size {
            return Ok(End { offset: size, sum: Sum::start(writer), torn });
        }
        want = (want * 4).min(size);
    }
}

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
pub fn read_log(
    store: &dyn Store,
    writer: &WriterId,
    mut each: impl FnMut(Line),
) -> io::Result<()> {
    let file = store.open(&layout::audit_log(writer))?;
    let mut check = Checker { sum: Sum::start(writer), number: 0 };
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
        pending = rest.to_vec();
        if pending.len() > LINE_MAX {
            check.number += 1;
            each(Line { number: check.number, event: None, flaw: Some(Flaw::TooLong) });
            return Ok(());
        }
        if at_end {
            break;
        }
    }
    if !pending.is_empty() {
        check.number += 1;
        each(Line { number: check.number, event: None, flaw: Some(Flaw::TornEnd) });
    }
    Ok(())
}

struct Checker {
    sum: Sum,
    number: u64,
}

impl Checker {
    fn line(&mut self, line: &[u8]) -> Line {
        self.number += 1;
        let number = self.number;
        let flawed = |flaw| Line { number, event: None, flaw: Some(flaw) };
        if line.len() > LINE_MAX {
            return flawed(Flaw::TooLong);
        }
        let Some((stated, body)) = take_apart(line) else {
            // A line that stops early was cut by a crash; any other is foreign.
            let torn = line.last() != Some(&b'}');
            return flawed(if torn { Flaw::TornInside } else { Flaw::Unreadable });
        };
        let mut object = Vec::with_capacity(body.len() + 1);
        object.push(b'{');
        object.extend_from_slice(body);
        let event = serde_json::from_slice::<Event>(&object).ok();
        if stated != self.sum.then(body) {
            if event.is_none() && line.last() != Some(&b'}') {
                return flawed(Flaw::TornInside);
            }
            // Go on from what the line states, so that one bad link is one finding.
            self.sum = stated;
            return Line { number, event, flaw: Some(Flaw::BrokenLink) };
        }
        self.sum = stated;
        let flaw = if event.is_some() { None } else { Some(Flaw::Unreadable) };
        Line { number, event, flaw }
    }
}

/// The writers that have a log here, and the names of files that are none.
pub fn writers(store: &dyn Store) -> io::Result<(Vec<WriterId>, Vec<std::ffi::OsString>)> {
    let mut known = Vec::new();
    let mut foreign = Vec::new();
    for entry in store.list(&layout::audit())? {
        let name = entry.name.to_str().and_then(|n| n.strip_suffix(".jsonl"));
        match name.and_then(|n| n.parse().ok()) {
            Some(writer) => known.push(writer),
            None => foreign.push(entry.name),
        }
    }
    known.sort_unstable();
    foreign.sort_unstable();
    Ok((known, foreign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::PosixStore;

    fn event(n: u8) -> Event {
        Event {
            kind: Kind::Acquire,
            phase: Phase::Intent,
            at: WallMs(u64::from(n)).rfc3339(),
            op: OpNonce([n; 8]),
            worktree: Some(WorktreeName::main()),
            session_id: "s".into(),
            holder_id: "h:u:1:2".into(),
            from: None,
            to: None,
            reason: None,
            details: None,
        }
    }

    struct Fixture {
        dir: tempfile::TempDir,
        store: PosixStore,
        writer: WriterId,
    }

    impl Fixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("tempdir");
            let store = PosixStore::open(dir.path()).expect("open");
            store.make_dir(&layout::control_dir()).expect("mkdir");
            store.make_dir(&layout::audit()).expect("mkdir");
            Fixture { dir, store, writer: WriterId::derive(b"session", 7) }
        }

        fn append(&self, events: std::ops::Range<u8>) {
            let mut log = Log::new(&self.store, &Alone, self.writer);
            for n in events {
                log.append(&event(n)).expect("append");
            }
        }

        fn lines(&self) -> Vec<Line> {
            let mut lines = Vec::new();
            read_log(&self.store, &self.writer, |line| lines.push(line)).expect("read");
            lines
        }

        fn flaws(&self) -> Vec<(u64, Flaw)> {
            self.lines().iter().filter_map(|l| Some((l.number, l.flaw?))).collect()
        }

        #[allow(clippy::disallowed_methods, reason = "the test plays the vandal")]
        fn edit(&self, change: impl FnOnce(&mut Vec<u8>)) {
            let path = self.dir.path().join(layout::audit_log(&self.writer).as_str());
            let mut bytes = std::fs::read(&path).expect("read");
            change(&mut bytes);
            std::fs::write(&path, bytes).expect("write");
        }
    }

    #[test]
    fn events_come_back_in_order_over_several_processes() {
        let fixture = Fixture::new();
        fixture.append(0..3);
        fixture.append(3..5);
        assert_eq!(fixture.flaws(), []);
        let back: Vec<_> = fixture.lines().into_iter().filter_map(|l| l.event).collect();
        assert_eq!(back, (0..5).map(event).collect::<Vec<_>>());
    }

    #[test]
    fn two_processes_of_one_writer_may_alternate() {
        let fixture = Fixture::new();
        let mut a = Log::new(&fixture.store, &Alone, fixture.writer);
        let mut b = Log::new(&fixture.store, &Alone, fixture.writer);
        for n in 0..6 {
            let log = if n % 2 == 0 { &mut a } else { &mut b };
            log.append(&event(n)).expect("append");
        }
        assert_eq!(fixture.flaws(), []);
        assert_eq!(fixture.lines().len(), 6);
    }

    #[test]
    fn a_log_that_rested_goes_on_where_it_was() {
        let fixture = Fixture::new();
        let mut log = Log::new(&fixture.store, &Alone, fixture.writer);
        for n in 0..3 {
            log.append(&event(n)).expect("append");
            log.rest();
        }
        assert_eq!(fixture.lines().len(), 3);
        assert_eq!(fixture.flaws(), []);
    }

    #[test]
    fn a_torn_last_line_is_told_and_then_closed_by_the_next_append() {
        let fixture = Fixture::new();
        fixture.append(0..3);
        fixture.edit(|bytes| bytes.truncate(bytes.len() - 9));
        assert_eq!(fixture.flaws(), [(3, Flaw::TornEnd)]);
        fixture.append(3..5);
        assert_eq!(fixture.flaws(), [(3, Flaw::TornInside)]);
    }

    #[test]
    fn a_changed_removed_or_swapped_line_breaks_the_chain_where_it_was() {
        for (what, change) in [
            (
                "changed",
                (|lines: &mut Vec<String>| lines[1] = lines[1].replace("h:u:1", "h:u:9"))
                    as fn(&mut Vec<String>),
            ),
            ("removed", |lines| drop(lines.remove(1))),
            ("swapped", |lines| lines.swap(1, 2)),
            ("repeated", |lines| lines.insert(1, lines[0].clone())),
        ] {
            let fixture = Fixture::new();
            fixture.append(0..4);
            fixture.edit(|bytes| {
                let text = String::from_utf8(bytes.clone()).expect("text");
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                change(&mut lines);
                *bytes = (lines.join("\n") + "\n").into_bytes();
            });
            let flaws = fixture.flaws();
            assert_eq!(flaws.first(), Some(&(2, Flaw::BrokenLink)), "{what}");
        }
    }

    #[test]
    fn a_log_larger_than_a_chunk_is_read_whole() {
        let fixture = Fixture::new();
        let mut log = Log::new(&fixture.store, &Alone, fixture.writer);
        for n in 0..2000u32 {
            let mut event = event(u8::try_from(n % 251).expect("small"));
            event.reason = Some("x".repeat(200));
            log.append(&event).expect("append");
        }
        assert_eq!(fixture.lines().len(), 2000);
        assert_eq!(fixture.flaws(), []);
    }

    #[test]
    fn an_event_that_is_too_long_is_refused_and_nothing_is_written() {
        let fixture = Fixture::new();
        fixture.append(0..1);
        let mut log = Log::new(&fixture.store, &Alone, fixture.writer);
        let mut long = event(1);
        long.reason = Some("x".repeat(LINE_MAX));
        assert!(log.append(&long).is_err());
        assert_eq!(fixture.lines().len(), 1);
    }
}
