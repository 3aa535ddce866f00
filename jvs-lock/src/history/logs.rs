//! All logs of a repository, read once. One that cannot be read is named, and the
//! others are read anyway.

use std::ffi::OsString;
use std::fmt;
use std::io;

use jvs_repo::audit::{self, Event, Flaw, WriterId};
use jvs_repo::clock::WallMs;
use jvs_repo::layout;
use jvs_repo::store::Store;
use serde::Serialize;

/// No more flaws of one log are kept: who wrote rubbish decides how much there is.
const FLAWS_MAX: usize = 1_000;

/// A line of an audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct LogLine {
    /// Whose log.
    pub writer: WriterId,
    /// Which line, counted from 1.
    pub line: u64,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of log {}", self.line, self.writer)
    }
}

/// An event and the line that holds it.
#[derive(Debug, Clone)]
pub struct Logged {
    /// The line that holds it.
    pub place: LogLine,
    /// The event itself.
    pub event: Event,
}

/// All logs, read once.
#[derive(Debug, Default)]
pub struct Logs {
    /// The events that can be read, log by log, in the order of each log.
    pub events: Vec<Logged>,
    /// The lines that are not as they were written.
    pub flaws: Vec<(LogLine, Flaw)>,
    /// How many more of them there are.
    pub more_flaws: u64,
    /// Files among the logs that are none.
    pub foreign: Vec<OsString>,
    /// Logs that the filesystem did not show, or not to their end, and why.
    pub unread: Vec<(WriterId, io::Error)>,
    /// Logs that have another name too: nothing more is added to them.
    pub linked: Vec<WriterId>,
}

/// The events of all logs that are not known to be from before `since`: see
/// [`audit::read_since`]. Nothing is checked.
pub fn read_logs_since(store: &dyn Store, since: WallMs) -> io::Result<Logs> {
    let (writers, foreign) = audit::writers(store)?;
    let mut logs = Logs { foreign, ..Logs::default() };
    for writer in writers {
        match audit::read_since(store, &writer, since) {
            Ok(events) => logs.events.extend(events.into_iter().map(|(line, event)| {
                let place = LogLine { writer, line };
                Logged { place, event }
            })),
            Err(error) => logs.unread.push((writer, error)),
        }
    }
    Ok(logs)
}

/// Reads all logs. An error is of the directory of logs; a log that cannot be read is
/// in the answer.
pub fn read_logs(store: &dyn Store) -> io::Result<Logs> {
    let (writers, foreign) = audit::writers(store)?;
    let mut logs = Logs { foreign, ..Logs::default() };
    for writer in writers {
        let mut kept = 0;
        let read = audit::read_log(store, &writer, |line| {
            let place = LogLine { writer, line: line.number };
            if let Some(flaw) = line.flaw {
                kept += 1;
                if kept <= FLAWS_MAX {
                    logs.flaws.push((place, flaw));
                } else {
                    logs.more_flaws += 1;
                }
            }
            logs.events.extend(line.event.map(|event| Logged { place, event }));
        });
        if let Err(error) = read {
            logs.unread.push((writer, error));
            continue;
        }
        let links = store.open(&layout::audit_log(&writer)).and_then(|file| file.links());
        if links.is_ok_and(|links| links > 1) {
            logs.linked.push(writer);
        }
    }
    Ok(logs)
}
