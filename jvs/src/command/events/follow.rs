//! `jvs events --follow`: looks again and again, woken by changes of this host.
//!
//! Nobody waits for this process: it holds nothing and writes nothing into the repository. One
//! whose reader does not read stands still, and finds what it missed in the logs.

use jvs_lock::history::{ToldStates, read_logs};
use jvs_repo::clock::WallMs;
use jvs_repo::repo::Repo;

use super::begun_at;
use super::exec::Program;
use super::look::RegisterWatcher;
use super::watches::Watches;
use crate::answer::events::LockChange;
use crate::command::audit::follow::Positions;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::{AnswerStream, Done, line_of};

pub(super) fn run(
    context: &Context<'_>,
    repo: &Repo,
    mut watcher: RegisterWatcher<'_>,
    since: Option<WallMs>,
    program: Option<&Program>,
) -> Result<Done, Failure> {
    let stream = context.output().stream("events");
    let mut logs = ToldStates::default();
    let mut positions = Positions::default();
    let mut watches = Watches::new(repo.store());
    match since {
        None => watcher.begin()?,
        Some(_) => {
            watcher.look()?;
            let unread = |error| Stuck::new("read the audit logs", error);
            let past = read_logs(repo.store()).map_err(unread)?;
            past.events.iter().for_each(|logged| logs.add(logged));
        }
    }
    let past = watcher.tell(&mut logs, true);
    if !tell(stream, program, &begun_at(past, since))? {
        return Ok(Done::reader_gone());
    }
    loop {
        let began = context.clock().now().boot;
        // Watched before it is looked: what changes after that wakes.
        watches.watch(watcher.worktrees());
        if watcher.look()? {
            let added = positions.added(repo.store());
            let added = added.map_err(|error| Stuck::new("read the audit logs", error))?;
            added.iter().for_each(|logged| logs.add(logged));
            let changes = watcher.tell(&mut logs, false);
            if !tell(stream, program, &begun_at(changes, None))? {
                return Ok(Done::reader_gone());
            }
        }
        let took = context.clock().now().boot.since(began);
        if !stream.wait_or(watches.fd(), watches.pause_ms(took)) {
            return Ok(Done::reader_gone());
        }
        watches.take();
    }
}

/// Says what changed; false if nobody reads any more.
fn tell(
    stream: AnswerStream,
    program: Option<&Program>,
    changes: &[LockChange],
) -> Result<bool, Failure> {
    for change in changes {
        let line = line_of(change);
        if !stream.item(&Done::new(change).with_text(line.clone()))? {
            return Ok(false);
        }
        if let Some(program) = program {
            program.run(change, &line, stream);
        }
    }
    Ok(true)
}
