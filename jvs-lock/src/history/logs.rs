//! All logs of a repository, read as they were at one time. One that cannot be read is
//! named, and the others are read anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::io;

use jvs_repo::audit::{self, Event, Flaw, LogEnd, LogName};
use jvs_repo::clock::WallMs;
use jvs_repo::id::OpNonce;
use jvs_repo::sabotage;
use jvs_repo::store::Store;
use serde::Serialize;

use super::anchor::leave_out_replaced;
use crate::mutation::Rule;

/// No more flaws of one log are kept: who wrote rubbish decides how much there is.
const FLAWS_MAX: usize = 1_000;

/// How often logs that are being closed or dropped are listed again.
const LISTED: usize = 8;

/// A line of an audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLine {
    /// Which log.
    #[serde(rename = "writer")]
    pub log: LogName,
    /// Which line, counted from 1.
    pub line: u64,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of log {}", self.line, self.log)
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
    pub unread: Vec<(LogName, io::Error)>,
    /// Logs that have another name too: nothing more is added to them.
    pub linked: Vec<LogName>,
    /// What there is to know of each log beside its events.
    pub ends: BTreeMap<LogName, LogEnd>,
    /// Anchors whose place others have taken. What they say is left out.
    pub replaced: BTreeSet<OpNonce>,
}

/// The events of all logs that are not known to be from before `since`: see
/// [`audit::read_since`]. Nothing is checked.
pub fn read_logs_since(store: &dyn Store, since: WallMs) -> io::Result<Logs> {
    while_they_stay(store, |logs, log| {
        let events = audit::read_since(store, log, since)?;
        logs.events.extend(events.into_iter().map(|(line, event)| {
            let place = LogLine { log, line };
            Logged { place, event }
        }));
        Ok(())
    })
}

/// Reads all logs. An error is of the directory of logs; a log that cannot be read is
/// in the answer.
pub fn read_logs(store: &dyn Store) -> io::Result<Logs> {
    let mut logs = while_they_stay(store, |logs, log| read_one(store, logs, log))?;
    leave_out_seen_twice(&mut logs);
    Ok(logs)
}

/// Reads each log, and lists them again: if one was closed or dropped meanwhile, what it had
/// may be where nobody looked yet, and all of it is read once more.
fn while_they_stay(
    store: &dyn Store,
    read: impl Fn(&mut Logs, LogName) -> io::Result<()>,
) -> io::Result<Logs> {
    let mut last = Logs::default();
    for _ in 0..LISTED {
        let (names, foreign) = audit::logs(store)?;
        let mut logs = Logs { foreign, ..Logs::default() };
        for log in &names {
            if let Err(error) = read(&mut logs, *log) {
                logs.unread.push((*log, error));
            }
        }
        leave_out_replaced(&mut logs);
        let stayed = stayed(store, &names)?;
        last = logs;
        if stayed {
            break;
        }
    }
    Ok(last)
}

/// Is everything that was listed still there, and nothing that was closed or took the place
/// of others since?
fn stayed(store: &dyn Store, before: &[LogName]) -> io::Result<bool> {
    sabotage!(Rule::LogsListedAgain => Ok(true));
    let after = audit::logs(store)?.0;
    let is_new = |log: &LogName| before.binary_search(log).is_err();
    let begun = |log: &LogName| matches!(log, LogName::Open(_));
    let all_there = before.iter().all(|log| after.binary_search(log).is_ok());
    Ok(all_there && after.iter().filter(|log| is_new(log)).all(begun))
}

fn read_one(store: &dyn Store, logs: &mut Logs, log: LogName) -> io::Result<()> {
    let mut kept = 0;
    let end = audit::read_log(store, log, |line| {
        let place = LogLine { log, line: line.number };
        if let Some(flaw) = line.flaw {
            kept += 1;
            if kept <= FLAWS_MAX {
                logs.flaws.push((place, flaw));
            } else {
                logs.more_flaws += 1;
            }
        }
        logs.events.extend(line.event.map(|event| Logged { place, event }));
    })?;
    if end.links > 1 {
        logs.linked.push(log);
    }
    logs.ends.insert(log, end);
    Ok(())
}

/// A mount that remembers a name for a moment opens the log that its writer closed, for the
/// one that it goes on in. Such a one was not read.
fn leave_out_seen_twice(logs: &mut Logs) {
    sabotage!(Rule::SeenTwiceIsUnread);
    let closed = |log: &LogName| log.is_closed();
    let twice: Vec<LogName> = logs
        .ends
        .iter()
        .filter(|(log, end)| {
            let same = |(other, seen): (&LogName, &LogEnd)| {
                closed(other) && other.writer() == log.writer() && seen.inode == end.inode
            };
            matches!(log, LogName::Open(_)) && logs.ends.iter().any(same)
        })
        .map(|(log, _)| *log)
        .collect();
    for log in twice {
        logs.events.retain(|logged| logged.place.log != log);
        logs.ends.remove(&log);
        let why = "its writer closed it a moment ago, and this mount does not show the next yet";
        logs.unread.push((log, io::Error::new(io::ErrorKind::WouldBlock, why)));
    }
}
