//! `jvs audit`: what was done to the locks, and whether it adds up.

pub(super) mod follow;
mod html;
pub(super) mod story;
mod timeline;
mod tla;
mod verify;

use jvs_lock::history::{Logged, read_logs, read_logs_since};
use jvs_lock::state::State;
use jvs_repo::audit::Event;
use jvs_repo::clock::{WallMs, shown_as_written};
use jvs_repo::duration::Period;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use serde_json::json;

use crate::answer::audit::{Events, LoggedEvent};
use crate::args::AuditArgs;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::{Done, table};

pub(crate) fn run(context: &Context<'_>, args: &AuditArgs) -> Result<Done, Failure> {
    let filter = Filter::new(context, args.since)?;
    let repo = context.repo()?;
    if args.verify {
        return verify::run(context, &repo);
    }
    if let Some(dir) = &args.tla {
        return tla::run(context, &repo, dir);
    }
    if args.follow {
        return follow::run(context, &repo, &filter);
    }
    let logs = match filter.since {
        Some(since) => read_logs_since(repo.store(), since),
        None => read_logs(repo.store()),
    };
    let logs = logs.map_err(|error| Stuck::new("read the audit logs", error))?;
    let unread = logs.unread.iter().map(|(log, error)| {
        format!("{} cannot be read: {error}; its events are not shown", layout::audit_log(log))
    });
    let mut events = logs.events;
    events.retain(|logged| filter.wants(logged));
    in_order(&mut events);
    if let Some(file) = &args.html {
        let done = html::write(context, repo.store().root_path(), file, &events)?;
        return Ok(unread.fold(done, Done::with_warning));
    }
    let text = match args.all {
        true => {
            let rows: Vec<[String; 5]> = events.iter().map(columns).collect();
            table(context.paint(), ["TIME", "EVENT", "WORKTREE", "SESSION", "WHAT"], &rows)
        }
        false => operations(context, &events),
    };
    let done =
        Done::new(&Events { events: events.iter().map(told).collect() }).with_text(text).paged();
    Ok(unread.fold(done, Done::with_warning))
}

/// One line for each.
fn operations(context: &Context<'_>, events: &[Logged]) -> String {
    let now = context.clock().now().wall;
    let rows: Vec<[String; 4]> = story::operations(events)
        .iter()
        .map(|operation| {
            let event = operation.last;
            let worktree = event.worktree.as_ref().map(WorktreeName::to_string);
            [
                operation.at.map_or_else(|| event.at.clone(), |at| story::ago(at, now)),
                story::who(event),
                worktree.unwrap_or_default(),
                operation.what(),
            ]
        })
        .collect();
    table(context.paint(), ["WHEN", "WHO", "WORKTREE", "WHAT"], &rows)
}

/// Which events are wanted.
struct Filter {
    since: Option<WallMs>,
    worktree: Option<WorktreeName>,
    session: Option<String>,
}

impl Filter {
    fn new(context: &Context<'_>, since: Option<Period>) -> Result<Self, Failure> {
        let now = context.clock().now().wall;
        Ok(Filter {
            since: since.map(|span| WallMs(now.0.saturating_sub(span.as_ms()))),
            worktree: context.given_worktree()?,
            session: context.given_session().map(str::to_owned),
        })
    }

    fn wants(&self, logged: &Logged) -> bool {
        let event = &logged.event;
        // What has no readable time is shown rather than hidden.
        self.since.is_none_or(|since| event.at_ms().is_none_or(|at| at >= since))
            && (self.worktree.is_none() || self.worktree == event.worktree)
            && self.session.as_ref().is_none_or(|session| *session == event.session_id)
    }
}

/// By time; events of one log stay in its order. Clocks of several hosts may
/// disagree: the order that counts is the register's, which `--verify` walks.
fn in_order(events: &mut [Logged]) {
    events.sort_by_key(|logged| (logged.event.at_ms(), logged.place));
}

fn told(logged: &Logged) -> LoggedEvent {
    let Logged { event, place } = logged.clone();
    LoggedEvent { event, writer: place.log, line: place.line }
}

fn columns(logged: &Logged) -> [String; 5] {
    let event = &logged.event;
    let state = |name: &Option<String>| name.as_ref().and_then(|name| name.parse::<State>().ok());
    let tokens = match (state(&event.from), state(&event.to)) {
        (Some(from), Some(to)) if from.token != to.token => {
            format!("token {} to {}", from.token, to.token)
        }
        (Some(State { head: before, .. }), Some(State { token, head: Some(head), .. }))
            if before != Some(head) =>
        {
            format!("token {token}, head {head}")
        }
        (_, Some(to)) => format!("token {}", to.token),
        _ => String::new(),
    };
    let tokens = match overruled(event) {
        Some(whom) => format!("{tokens}, {whom}"),
        None => tokens,
    };
    let what = match &event.reason {
        Some(reason) if tokens.is_empty() => reason.clone(),
        Some(reason) => format!("{tokens}: {reason}"),
        None => tokens,
    };
    [
        shown_as_written(&event.at),
        format!("{} {}", event.kind, json!(event.phase).as_str().unwrap_or_default()),
        event.worktree.as_ref().map(WorktreeName::to_string).unwrap_or_default(),
        event.session_id.clone(),
        what,
    ]
}

/// Who was overruled, and by which rule.
fn overruled(event: &Event) -> Option<String> {
    let details = event.details.as_ref()?;
    let rule = details["reason"].as_str().filter(|_| details["priority"].is_string())?;
    let whom = details["old_holder"].as_str().unwrap_or("a holder who left no record");
    Some(format!("over {whom} by {rule}"))
}
