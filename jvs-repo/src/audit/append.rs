//! Adding to a log: where it ends, and what to do with one that is not to be added to.
//!
//! Bounded whatever the file is: a log is somebody else's bytes by the time it is
//! opened again, and a process that locks must not have to read all of them.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::{Event, EventKind, EventPhase, LogName, WriterId, room};
use crate::code::Code;
use crate::layout;
use crate::mutation::Rule;
use crate::name::ShownName;
use crate::next::Next;
use crate::record::audit::{Continued, Details, LINE_MAX, Sum, body_of, put_together, take_apart};
use crate::sabotage;
use crate::store::{RepoPath, Store, StoredFile};

/// How much of a log's end is read first to find its last line: several of
/// those that are usual. Every command pays for it.
const TAIL: u64 = 2 * 1024;
/// How much of a log's end is read at most. A line that was cut short and a whole
/// one before it fit; what has no whole line here was not written by us.
const TAIL_MAX: u64 = 2 * LINE_MAX as u64;
/// How many logs a writer begins because those before are not to be added to.
const LOGS_MAX: usize = 8;
/// From this size on a log is full: some 250 events.
pub const FULL: u64 = 128 * 1024;

/// Lets the processes of one writer append one after the other.
pub trait AppendTurn: Send + Sync {
    /// Waits for the turn at `writer`'s log; it lasts until the answer is dropped.
    fn take(&self, writer: &WriterId) -> io::Result<Box<dyn Turn>>;

    /// The turn, if nobody has it now.
    fn take_now(&self, writer: &WriterId) -> io::Result<Option<Box<dyn Turn>>>;
}

/// A turn at a log, which lasts until it is dropped.
///
/// What a mount shows of a log may be less than what was written to it: its client was killed
/// before it had handed all of it in, or a write of a process that is dead is still under way.
/// So each process says before it writes how far that goes, where the mount is not asked, and
/// the next one begins behind that or in another file.
pub trait Turn {
    /// How far the writer's log was written to at most, if that is known.
    fn reached(&self) -> Option<Reach> {
        None
    }

    /// Says how far it is going to be written to.
    fn will_reach(&self, reach: Reach) {
        let _ = reach;
    }

    /// Is what is said kept for the next process?
    fn remembers(&self) -> bool {
        false
    }
}

/// A place in a file: how far a log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Which file.
    pub inode: u64,
    /// Where what is written into it ends.
    pub end: u64,
}

/// A turn that needs no waiting: there is one process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Turn for Alone {}

impl AppendTurn for Alone {
    fn take(&self, _: &WriterId) -> io::Result<Box<dyn Turn>> {
        Ok(Box::new(Alone))
    }

    fn take_now(&self, writer: &WriterId) -> io::Result<Option<Box<dyn Turn>>> {
        self.take(writer).map(Some)
    }
}

/// What lets the processes of a writer take turns cannot be used. It is not in the
/// repository, and nothing is wrong with the log.
#[derive(Debug, thiserror::Error)]
#[error("this session's own file {} cannot be used: {source}", ShownName::new(place))]
pub struct NoTurn {
    place: PathBuf,
    source: io::Error,
}

impl NoTurn {
    /// A call on `place` failed.
    pub fn at(place: PathBuf, source: io::Error) -> io::Error {
        io::Error::new(source.kind(), NoTurn { place, source })
    }

    pub(crate) fn of(error: &io::Error) -> Option<&NoTurn> {
        error.get_ref()?.downcast_ref()
    }

    /// Something is there that is not what it should be; else it is only that the system
    /// lacks something.
    pub(crate) fn code(&self) -> Code {
        match self.source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(
                Errno::LOOP
                | Errno::ISDIR
                | Errno::NXIO
                | Errno::NODEV
                | Errno::ACCESS
                | Errno::PERM,
            ) => Code::SessionInvalid,
            _ => Code::Io,
        }
    }

    /// What to do about it.
    pub(crate) fn next(&self) -> Next {
        match self.code() {
            Code::SessionInvalid => {
                let place = ShownName::new(&self.place).typed();
                format!("see who made it, then `rm -r {place}`; it is made again").into()
            }
            _ => "check the disk of this host, then run the same command again".into(),
        }
    }
}

/// An event that does not fit into a line. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("its event would take {length} bytes, and a line has at most {LINE_MAX}")]
pub struct EventTooLong {
    /// How long its line would be.
    pub length: usize,
}

/// None of a writer's logs is to be added to.
#[derive(Debug, thiserror::Error)]
#[error(
    "somebody wrote to {} and to the {} logs that took its place",
    layout::audit_log(writer),
    LOGS_MAX - 1
)]
pub struct Spoilt {
    /// Its first log.
    pub writer: WriterId,
}

/// The end of a log: where the next line goes and what it is chained to.
#[derive(Clone, Copy)]
pub(super) struct End {
    writer: WriterId,
    offset: u64,
    pub(super) sum: Sum,
    /// The last line was cut short by a crash; it is closed before the next.
    torn: bool,
}

/// One writer's log, open for appending.
pub struct Log<'s> {
    store: &'s dyn Store,
    turn: &'s dyn AppendTurn,
    writer: WriterId,
    pub(super) open: Option<(Box<dyn StoredFile>, End)>,
    full_at: u64,
    /// One was closed since somebody asked.
    closed_one: bool,
    /// The last event found no room.
    refused: bool,
}

impl<'s> Log<'s> {
    /// The log of `writer`. Touches nothing until the first event.
    pub fn new(store: &'s dyn Store, turn: &'s dyn AppendTurn, writer: WriterId) -> Self {
        let (full_at, closed_one, refused) = (FULL, false, false);
        Log { store, turn, writer, open: None, full_at, closed_one, refused }
    }

    /// The same, full from so many bytes on. All processes of a writer must say the same.
    #[must_use]
    pub fn full_at(self, bytes: u64) -> Self {
        Log { full_at: bytes, ..self }
    }

    /// Was a log closed since this was last asked?
    pub fn has_closed_one(&mut self) -> bool {
        std::mem::take(&mut self.closed_one)
    }

    /// Appends an event and makes it durable: what must be known of an
    /// operation even if its process dies in the middle of it.
    ///
    /// On a full volume it is written into the room that is kept for it.
    pub fn append_durably(&mut self, event: &Event) -> io::Result<()> {
        match self.append_and_sync(event) {
            Err(error) if room::is_full(&error) && room::give_up(self.store) => {
                self.append_and_sync(event)
            }
            answer => answer,
        }
    }

    fn append_and_sync(&mut self, event: &Event) -> io::Result<()> {
        let written = self.append(event).and_then(|()| match &self.open {
            Some((file, _)) => file.sync(),
            None => Ok(()),
        });
        self.refused = written.as_ref().is_err_and(room::is_full);
        if written.is_err() {
            // It may be on disk in part, or not at all: the end is found again.
            self.open = None;
        }
        written
    }

    /// Appends an event; a power cut may lose it.
    pub fn append(&mut self, event: &Event) -> io::Result<()> {
        let body = body_of(event)?;
        let turn = self.turn.take(&self.writer)?;
        self.add(turn.as_ref(), event, &body)
    }

    /// Appends an event unless another process of the writer is at it. Says whether
    /// it did.
    pub fn append_now(&mut self, event: &Event) -> io::Result<bool> {
        let body = body_of(event)?;
        let Some(turn) = self.turn.take_now(&self.writer)? else { return Ok(false) };
        self.add(turn.as_ref(), event, &body).map(|()| true)
    }

    fn add(&mut self, turn: &dyn Turn, event: &Event, body: &[u8]) -> io::Result<()> {
        let added = self.try_to_add(turn, event, body);
        self.refused = added.as_ref().is_err_and(room::is_full);
        added
    }

    fn try_to_add(&mut self, turn: &dyn Turn, event: &Event, body: &[u8]) -> io::Result<()> {
        let known = Known(turn.reached());
        let (file, end) = match self.open.take() {
            // Whoever else writes to it is of this writer, and so on this mount.
            Some((file, end)) => match file.size_known_here()? {
                size if self.may_be_closed(size) => self.open_log(known)?,
                _ if !known.is_of(file.as_ref())? => self.open_log(known)?,
                size if size == end.offset && known.is_within(size) => (file, end),
                _ => match end_of(file.as_ref(), end.writer)? {
                    Some(end) if known.is_within(end.offset) => (file, end),
                    _ => self.open_log(known)?,
                },
            },
            None => self.open_log(known)?,
        };
        let mut bytes = Vec::new();
        let (file, end) = match self.is_full(end.offset) {
            true => self.go_on_in_another(file, end, event, &mut bytes)?,
            false => (file, end),
        };
        if end.torn {
            bytes.push(b'\n');
        }
        let sum = end.sum.then(body);
        bytes.extend(put_together(sum, body));
        let offset = end.offset + bytes.len() as u64;
        self.write(turn, file.as_ref(), &end, &bytes)?;
        self.open = Some((file, End { offset, sum, torn: false, ..end }));
        Ok(())
    }

    fn is_full(&self, size: u64) -> bool {
        size >= self.full_at
    }

    /// May another process of the writer have closed a log of that size, which this one has
    /// open? Its name then tells where the writer goes on.
    fn may_be_closed(&self, size: u64) -> bool {
        sabotage!(Rule::FullIsOpenedAgain => false);
        self.is_full(size)
    }

    /// Closes a log that is full and makes the next one. `first` gets its first line, which
    /// says what it goes on after.
    ///
    /// A log that cannot be closed is added to, and keeps nobody from locking.
    fn go_on_in_another(
        &mut self,
        file: Box<dyn StoredFile>,
        end: End,
        event: &Event,
        first: &mut Vec<u8>,
    ) -> io::Result<(Box<dyn StoredFile>, End)> {
        let closed = LogName::Closed(end.writer, end.sum.short());
        let (from, to) = (layout::audit_log(end.writer), layout::audit_log(closed));
        let moved = is_durable(file.as_ref()).and_then(|()| self.store.rename_new(&from, &to));
        if moved.is_err() && self.store.is_there(&from)? {
            return Ok((file, end));
        }
        drop(file);
        let file = self.create(&from)?;
        let after = Continued { after: closed, last: end.sum };
        let line = Event {
            kind: EventKind::Continue,
            phase: EventPhase::Done,
            worktree: None,
            from: None,
            to: None,
            reason: None,
            details: Some(Details::from(after).into()),
            ..event.clone()
        };
        let body = body_of(&line)?;
        let sum = Sum::start(end.writer.into()).then(&body);
        first.extend(put_together(sum, &body));
        self.closed_one = true;
        Ok((file, End { offset: 0, sum, torn: false, ..end }))
    }

    fn create(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        // Nobody else makes it, so what is found after an answer that was lost is this
        // writer's: made now, or before and denied.
        let file = self.store.create_own(path)?;
        self.store.sync_dir(&layout::audit())?;
        Ok(file)
    }

    /// Closes the file until the next event: a filesystem that hands written data
    /// in later does so now, and keeps nothing in memory for us.
    pub fn rest(&mut self) {
        self.open = None;
    }

    /// The first of the writer's logs that is to be added to. What stands in one
    /// that is not stays as it is: it is evidence, and a process that reads the logs is
    /// told of it. It keeps nobody from locking.
    fn open_log(&self, known: Known) -> io::Result<(Box<dyn StoredFile>, End)> {
        let mut writer = self.writer;
        for _ in 0..LOGS_MAX {
            let path = layout::audit_log(writer);
            let file = self.open_or_create(&path)?;
            if self.refused {
                // A JuiceFS mount goes on refusing a file that it found no room for, and
                // shows it as long as if there had been, until it has closed it for all
                // who had it open. A sync tells whether it still does, and adds nothing
                // to what must not be added to.
                file.sync()?;
            }
            if let Some(end) = end_of(file.as_ref(), writer)? {
                if known.is_whole(file.as_ref(), end.offset)? {
                    return Ok((file, end));
                }
                if let Some(end) = self.shown_whole(file.as_ref(), writer, known)? {
                    return Ok((file, end));
                }
                if self.leave(&path, known, writer)? {
                    let sum = Sum::start(writer.into());
                    return Ok((self.create(&path)?, End { writer, offset: 0, sum, torn: false }));
                }
            }
            writer = writer.after();
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, Spoilt { writer: self.writer }))
    }

    fn open_or_create(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        match self.store.open_writable(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create(path),
            answer => answer,
        }
    }

    /// The end of a log that did not show all that was written to it, if it does once that was
    /// handed in.
    fn shown_whole(
        &self,
        file: &dyn StoredFile,
        writer: WriterId,
        known: Known,
    ) -> io::Result<Option<End>> {
        // What could not be handed in is what is asked about: it says nothing about what
        // is to be written.
        let _ = file.sync();
        let end = end_of(file, writer)?;
        Ok(match end {
            Some(end) if known.is_whole(file, end.offset)? => Some(end),
            _ => None,
        })
    }

    /// Takes its name from a log that lacks what was written to it: that may have been lost,
    /// or may be there in a moment, in the place where the next line would go. Nothing is
    /// added to it any more, and nothing says how it ends. False if it has its name still.
    fn leave(&self, path: &RepoPath, known: Known, writer: WriterId) -> io::Result<bool> {
        let Known(Some(reach)) = known else { return Ok(false) };
        let which = format!("left {} {}", reach.inode, reach.end);
        let which = Sum::start(writer.into()).then(which.as_bytes());
        let left = layout::audit_log(LogName::Closed(writer, which.short()));
        let moved = self.store.rename_new(path, &left);
        Ok(moved.is_ok() || !self.store.is_there(path)?)
    }

    /// Writes at the end of a log. What is written is first said to be, where the next process
    /// looks; what was certainly not written is not said to be any more.
    fn write(
        &self,
        turn: &dyn Turn,
        file: &dyn StoredFile,
        end: &End,
        bytes: &[u8],
    ) -> io::Result<()> {
        if !turn.remembers() {
            return file.write_at(end.offset, bytes);
        }
        let inode = file.inode()?;
        turn.will_reach(Reach { inode, end: end.offset + bytes.len() as u64 });
        file.write_at(end.offset, bytes).inspect_err(|_| {
            if file.sync().is_ok()
                && let Ok(end) = file.size()
            {
                turn.will_reach(Reach { inode, end });
            }
        })
    }
}

/// How far a writer's log goes by what its processes said before they wrote.
#[derive(Clone, Copy)]
struct Known(Option<Reach>);

impl Known {
    /// Is all that was written to the file that has the log's name within its first `size`
    /// bytes? Of another file than the one that was last written to nothing is known.
    fn is_whole(self, file: &dyn StoredFile, size: u64) -> io::Result<bool> {
        Ok(self.is_within(size) || !self.is_of(file)?)
    }

    /// Is a file that was opened before still the one that is written to? Whoever left it had a
    /// reason.
    fn is_of(self, file: &dyn StoredFile) -> io::Result<bool> {
        sabotage!(Rule::GoesOnBehindAll => Ok(true));
        let Some(reach) = self.0 else { return Ok(true) };
        Ok(reach.inode == file.inode()?)
    }

    fn is_within(self, size: u64) -> bool {
        sabotage!(Rule::GoesOnBehindAll => true);
        self.0.is_none_or(|reach| reach.end <= size)
    }
}

/// A log is whole on disk before another says how it ends: a power cut must not make one of
/// the two wrong.
fn is_durable(file: &dyn StoredFile) -> io::Result<()> {
    sabotage!(Rule::ClosedIsDurable => Ok(()));
    file.sync()
}

/// Where to go on in a log. `None` if it is not to be added to: it has another
/// name, so that what is added would be added to another file too, or its end was
/// not written by us.
fn end_of(file: &dyn StoredFile, writer: WriterId) -> io::Result<Option<End>> {
    if file.links()? > 1 {
        return Ok(None);
    }
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
            return Ok(Some(End { writer, offset: size, sum, torn }));
        }
        if want == size {
            let sum = Sum::start(writer.into());
            return Ok(Some(End { writer, offset: size, sum, torn }));
        }
        if want >= TAIL_MAX {
            return Ok(None);
        }
        want = (want * 4).min(TAIL_MAX).min(size);
    }
}
