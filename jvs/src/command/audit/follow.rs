//! `jvs audit --follow`: what is there, then what is added, until interrupted.

use std::collections::BTreeMap;
use std::io;

use jvs_lock::history::{LogLine, Logged};
use jvs_repo::audit::{self, LogName};
use jvs_repo::layout;
use jvs_repo::repo::Repo;
use jvs_repo::store::Store;

use super::{Filter, columns, in_order, told};
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::Done;

const LOOK_AGAIN_MS: u32 = 300;

pub(super) fn run(context: &Context<'_>, repo: &Repo, filter: &Filter) -> Result<Done, Failure> {
    let stream = context.output().stream("audit");
    let mut seen = Positions::default();
    loop {
        let mut added =
            seen.added(repo.store()).map_err(|error| Stuck::new("read the audit logs", error))?;
        added.retain(|logged| filter.wants(logged));
        in_order(&mut added);
        for logged in &added {
            let line = columns(logged).join("  ");
            let item = Done::new(&told(logged)).with_text(format!("{}\n", line.trim_end()));
            if !stream.item(&item)? {
                return Ok(Done::reader_gone());
            }
        }
        if !stream.wait(LOOK_AGAIN_MS) {
            return Ok(Done::reader_gone());
        }
    }
}

/// How far each log has been read.
#[derive(Default)]
pub(in crate::command) struct Positions {
    logs: BTreeMap<LogName, (u64, u64)>,
}

impl Positions {
    /// What was added since it was asked last.
    pub(in crate::command) fn added(&mut self, store: &dyn Store) -> io::Result<Vec<Logged>> {
        let mut added = Vec::new();
        // Closed ones first: what is read of a log goes along with it.
        for log in audit::logs(store)?.0 {
            if log.anchor().is_some() {
                // It says again what was told.
                continue;
            }
            // One that cannot be read is told by the other forms of the command.
            let Ok(stat) = store.stat(&layout::audit_log(log)) else { continue };
            let size = stat.size;
            let (known_size, lines) = self.position(log, size);
            if size == *known_size {
                continue;
            }
            let already = *lines;
            let read = audit::read_log(store, log, |line| {
                // A line that is being written is told once it is whole.
                let Some(event) = line.event else { return };
                if line.number > already {
                    *lines = line.number;
                    added.push(Logged { place: LogLine { log, line: line.number }, event });
                }
            });
            if read.is_ok() {
                *known_size = size;
            }
        }
        Ok(added)
    }

    /// How far a log of that size was read. One that was closed since was read under the
    /// name of the one that its writer adds to.
    fn position(&mut self, log: LogName, size: u64) -> &mut (u64, u64) {
        let open = log.writer().map(LogName::Open).filter(|_| log.is_closed());
        if !self.logs.contains_key(&log)
            && let Some(open) = open
            && self.logs.get(&open).is_some_and(|(known, _)| *known <= size)
            && let Some(position) = self.logs.remove(&open)
        {
            self.logs.insert(log, position);
        }
        self.logs.entry(log).or_default()
    }
}

#[cfg(test)]
mod tests {
    use jvs_repo::audit::WriterId;

    use super::*;

    #[test]
    fn what_was_told_of_a_log_is_not_told_again_once_it_is_closed() {
        let (open, closed) =
            (LogName::Open(WriterId([1; 12])), LogName::Closed(WriterId([1; 12]), [2; 8]));
        let mut seen = Positions::default();
        *seen.position(open, 100) = (100, 3);
        assert_eq!(*seen.position(closed, 140), (100, 3));
        assert_eq!(*seen.position(open, 20), (0, 0), "another one by now");
        assert_eq!(*seen.position(LogName::Closed(WriterId([1; 12]), [3; 8]), 9), (0, 0));
    }
}
