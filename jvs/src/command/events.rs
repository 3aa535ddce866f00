//! `jvs events`: what becomes of the locks, one line of JSON for each change.

mod exec;
mod follow;
mod look;
mod watches;

use jvs_lock::history::{ToldStates, read_logs};
use jvs_lock::worktrees::WorktreeError;
use jvs_repo::clock::WallMs;
use jvs_repo::layout;
use jvs_repo::store::Store as _;

use self::exec::Program;
use self::look::RegisterWatcher;
use crate::answer::events::{LockChange, LockChanges};
use crate::args::EventsArgs;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::{Done, line_of};

pub(crate) fn run(context: &Context<'_>, args: &EventsArgs) -> Result<Done, Failure> {
    let program = match args.exec {
        true => Some(Program::of_user(context)?),
        false => None,
    };
    let only = context.given_worktree()?;
    let repo = context.repo()?;
    let now = context.clock().now().wall;
    let since = args.since.map(|span| WallMs(now.0.saturating_sub(span.as_ms())));
    if let Some(worktree) = &only {
        // One that never was there is a mistake, and not a lock that never changes.
        let there = repo.store().is_there(&layout::register(worktree));
        let there = there.map_err(|error| Stuck::new("look for the lock", error))?;
        if !there {
            return Err(WorktreeError::NotFound { name: worktree.clone() }.into());
        }
    }
    let mut watcher = RegisterWatcher::new(repo.store(), context.clock(), only, args.renewals);
    if args.follow {
        return follow::run(context, &repo, watcher, since, program.as_ref());
    }
    watcher.look()?;
    let logs = read_logs(repo.store()).map_err(|error| Stuck::new("read the audit logs", error))?;
    let mut told = ToldStates::default();
    logs.events.iter().for_each(|logged| told.add(logged));
    let changes = watcher.tell(&mut told, true);
    let changes: Vec<LockChange> = begun_at(changes, since);
    let text: String = changes.iter().map(line_of).collect();
    let done = Done::new(&LockChanges { changes }).with_text(text).paged();
    let unread = logs.unread.iter().map(|(log, error)| {
        let path = layout::audit_log(*log);
        format!("{path} cannot be read: {error}; what only it tells is a gap")
    });
    Ok(unread.fold(done, Done::with_warning))
}

/// Those of a time and all that came after them.
fn begun_at(changes: Vec<(Option<WallMs>, LockChange)>, since: Option<WallMs>) -> Vec<LockChange> {
    let late = |at: Option<WallMs>| since.is_none_or(|since| at.is_some_and(|at| at >= since));
    changes.into_iter().filter(|(at, _)| late(*at)).map(|(_, change)| change).collect()
}
