//! `jvs audit --follow`: what is there, then what is added, until interrupted.

use std::collections::BTreeMap;
use std::io;

use jvs_lock::history::{LogLine, Logged};
use jvs_repo::audit::{self, WriterId};
use jvs_repo::layout;
use jvs_repo::repo::Repo;
use jvs_repo::store::Store;

use super::{Filter, columns, data, in_order};
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
            let item = Done::new(data(logged)).with_text(format!("{}\n", line.trim_end()));
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
struct Positions {
    logs: BTreeMap<WriterId, (u64, u64)>,
}

impl Positions {
    fn added(&mut self, store: &dyn Store) -> io::Result<Vec<Logged>> {
        let mut added = Vec::new();
        for writer in audit::writers(store)?.0 {
            // One that cannot be read is told by the other forms of the command.
            let Ok(stat) = store.stat(&layout::audit_log(&writer)) else { continue };
            let size = stat.size;
            let (known_size, lines) = self.logs.entry(writer).or_default();
            if size == *known_size {
                continue;
            }
            let already = *lines;
            let read = audit::read_log(store, &writer, |line| {
                // A line that is being written is told once it is whole.
                let Some(event) = line.event else { return };
                if line.number > already {
                    *lines = line.number;
                    added.push(Logged { place: LogLine { writer, line: line.number }, event });
                }
            });
            if read.is_ok() {
                *known_size = size;
            }
        }
        Ok(added)
    }
}
