//! `jvs undo` and `jvs redo`: an operation is taken back by another one, which keeps what
//! is there first.

pub(super) mod deed;
mod operations;

use jvs_lock::history::read_logs;
use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::OpNonce;
use jvs_repo::next::Next;
use jvs_repo::record::audit::Undoing;
use jvs_snapshot::Catalog;
use serde_json::{Value, json};

use self::deed::UndoDeed;
use self::operations::{PastOperation, Stacks, WhatWasDone, at_the_root, operations, stacks};
use super::audit::story::{ago, who};
use crate::answer::undo::{PastOperationTold, PastOperations, UndoTold};
use crate::args::{RedoArgs, UndoArgs};
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck, on_one_line};
use crate::hint::OwnNext;
use crate::interrupt;
use crate::render::{Done, table};

/// How much of an operation's id is shown.
const OP_SHOWN: usize = 8;

/// How many operations are offered to whoever types the id of one.
const OFFERED: usize = 40;

/// Why an operation is not taken back.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct UndoRefused {
    message: String,
    next: Next,
}

impl UndoRefused {
    pub(super) fn new(message: impl Into<String>, next: impl Into<Next>) -> Self {
        UndoRefused { message: message.into(), next: next.into() }
    }
}

impl Coded for UndoRefused {
    fn code(&self) -> Code {
        Code::UndoRefused
    }

    fn next(&self) -> Option<Next> {
        Some(self.next.clone())
    }
}

pub(crate) fn run(context: &Context<'_>, args: &UndoArgs) -> Result<Done, Failure> {
    interrupt::listen();
    let here = context.here()?;
    let past = Past::read(context, &here)?;
    if args.list {
        return past.list(context, &here);
    }
    let target = match &args.op {
        Some(op) => past.named(op)?,
        None => past.last(&here)?,
    };
    take_back(context, &here, &past, target, args.dry_run)
}

pub(crate) fn redo(context: &Context<'_>, args: &RedoArgs) -> Result<Done, Failure> {
    interrupt::listen();
    let here = context.here()?;
    let past = Past::read(context, &here)?;
    let none = || UndoRefused::new("nothing was taken back last", OwnNext::ListOperations);
    let op = past.stacks.undone.last().ok_or_else(none)?;
    let target = past.own(operations::of(&past.all, *op).ok_or_else(none)?)?;
    take_back(context, &here, &past, target, args.dry_run)
}

/// The newest operations, for whoever types an id of one: that and what was done. No session
/// is asked for, so that nothing is changed by it.
pub(super) fn offered(context: &Context<'_>) -> Result<Vec<(String, String)>, Failure> {
    let here = context.here()?;
    let (all, session) = (logged(&here)?, String::new());
    let stacks = stacks(&all, |_| false);
    let past = Past { all, stacks, session };
    let newest = past.all.iter().rev().take(OFFERED);
    Ok(newest.map(|one| (shown_op(one), past.told(one))).collect())
}

/// All operations that the log tells of, in their order.
fn logged(here: &Here) -> Result<Vec<PastOperation>, Failure> {
    let logs =
        read_logs(here.repo.store()).map_err(|error| Stuck::new("read the audit logs", error))?;
    let mut events = logs.events;
    events.sort_by_key(|logged| (logged.event.at_ms(), logged.place));
    Ok(operations(&events))
}

/// As much of an operation's id as is shown.
fn shown_op(one: &PastOperation) -> String {
    one.op.to_string().chars().take(OP_SHOWN).collect()
}

/// What was done, as far as somebody who works in one worktree may take it back.
struct Past {
    all: Vec<PastOperation>,
    stacks: Stacks,
    session: String,
}

impl Past {
    fn read(context: &Context<'_>, here: &Here) -> Result<Self, Failure> {
        let all = logged(here)?;
        let session = context.session(None)?.session.id().as_str().to_owned();
        let stacks = stacks(&all, |one| match one.what {
            WhatWasDone::Snapshot(_) | WhatWasDone::Restore(_) => {
                one.event.worktree.as_ref() == Some(&here.worktree)
            }
            // Of the repository, and nobody's in particular but its maker's.
            _ => one.event.session_id == session,
        });
        Ok(Past { all, stacks, session })
    }

    /// The last of this worktree.
    fn last(&self, here: &Here) -> Result<&PastOperation, Failure> {
        let catalog = Catalog::new(here.repo.store());
        for op in self.stacks.done.iter().rev() {
            let Some(one) = operations::of(&self.all, *op) else { continue };
            // Kept by a restore that was interrupted, and no step of its own.
            if let WhatWasDone::Snapshot(id) = one.what
                && catalog.describe(id)?.is_some_and(|(descriptor, _)| descriptor.is_aside())
            {
                continue;
            }
            return self.own(one);
        }
        let message = format!("nothing was done to {} that could be taken back", here.worktree);
        Err(UndoRefused::new(message, OwnNext::ListOperations).into())
    }

    /// It, unless it is another session's.
    fn own<'o>(&self, one: &'o PastOperation) -> Result<&'o PastOperation, Failure> {
        if one.event.session_id == self.session {
            return Ok(one);
        }
        let message = format!(
            "the last operation here is of another session, {}: {}",
            on_one_line(&who(&one.event)),
            self.told(one)
        );
        Err(UndoRefused::new(message, OwnNext::UndoThat(one.op)).into())
    }

    fn named(&self, name: &str) -> Result<&PastOperation, Failure> {
        let matching: Vec<&PastOperation> = self
            .all
            .iter()
            .filter(|one| !name.is_empty() && one.op.to_string().starts_with(name))
            .collect();
        let refused = |message: String| UndoRefused::new(message, OwnNext::ListOperations);
        match matching.as_slice() {
            [one] => Ok(one),
            [] => Err(refused(format!("there is no operation '{}'", on_one_line(name))).into()),
            _ => {
                let message = format!("'{}' can mean more than one operation", on_one_line(name));
                Err(refused(message).into())
            }
        }
    }

    /// In a few words.
    fn told(&self, one: &PastOperation) -> String {
        let worktree = one.event.worktree.as_ref().map(ToString::to_string).unwrap_or_default();
        match &one.what {
            WhatWasDone::Snapshot(id) => format!("took snapshot {id} of {worktree}"),
            WhatWasDone::Restore(it) if it.paths.is_empty() => {
                format!("restored all files of {worktree} from {}", it.snapshot_id)
            }
            WhatWasDone::Restore(it) => {
                let paths = on_one_line(&it.paths.join(" "));
                format!("restored {paths} of {worktree} from {}", it.snapshot_id)
            }
            WhatWasDone::Tag(tag) => format!("tagged {} as {}", tag.snapshot_id, tag.tag),
            WhatWasDone::Untag(tag) => {
                format!("deleted the tag {} of {}", tag.tag, tag.snapshot_id)
            }
            WhatWasDone::Create { .. } => format!("created worktree {worktree}"),
            WhatWasDone::Remove { .. } => format!("removed worktree {worktree}"),
            WhatWasDone::Rename { to } => format!("renamed worktree {worktree} to {to}"),
            WhatWasDone::Collect(1) => "removed 1 snapshot".to_owned(),
            WhatWasDone::Collect(count) => format!("removed {count} snapshots"),
            WhatWasDone::Undo(undo) => {
                let again = matches!(
                    operations::of(&self.all, undo.undoes).map(|one| &one.what),
                    Some(WhatWasDone::Undo(_))
                );
                let root = at_the_root(&self.all, undo)
                    .map_or_else(|| format!("operation {}", undo.undoes), |root| self.told(root));
                if again { format!("did again: {root}") } else { format!("took back: {root}") }
            }
        }
    }

    fn list(&self, context: &Context<'_>, here: &Here) -> Result<Done, Failure> {
        let now = context.clock().now().wall;
        let concerns = |one: &&PastOperation| match one.what {
            WhatWasDone::Snapshot(_) | WhatWasDone::Restore(_) => {
                one.event.worktree.as_ref() == Some(&here.worktree)
            }
            _ => true,
        };
        let shown: Vec<&PastOperation> = self.all.iter().rev().filter(concerns).collect();
        let rows: Vec<[String; 4]> = shown
            .iter()
            .map(|one| {
                let when = one.at.map_or_else(String::new, |at| ago(at, now));
                [shown_op(one), when, who(&one.event), self.told(one)]
            })
            .collect();
        let told = shown.iter().map(|one| PastOperationTold {
            op: one.op,
            at: one.event.at.clone(),
            session_id: one.event.session_id.clone(),
            worktree: one.event.worktree.clone(),
            kind: one.event.kind,
            what: self.told(one),
            done: self.stacks.done.contains(&one.op),
        });
        let operations = told.collect();
        let text = match rows.is_empty() {
            true => "No operations yet\n".to_owned(),
            false => table(context.paint(), ["OP", "TIME", "WHO", "WHAT"], &rows),
        };
        Ok(Done::new(&PastOperations { operations }).with_text(text).paged())
    }
}

/// Takes `target` back, under an operation that says so before anything is done.
fn take_back(
    context: &Context<'_>,
    here: &Here,
    past: &Past,
    target: &PastOperation,
    dry: bool,
) -> Result<Done, Failure> {
    let deed = UndoDeed::that_takes_back(context, here, past, target)?;
    let root = match &target.what {
        WhatWasDone::Undo(undo) => at_the_root(&past.all, undo).unwrap_or(target),
        _ => target,
    };
    let told = past.told(root);
    let answer = |by: Option<OpNonce>, result: Value| UndoTold {
        op: target.op,
        what: told.clone(),
        by,
        dry_run: dry,
        result,
    };
    if dry {
        let would = match target.what {
            WhatWasDone::Undo(_) => "do again",
            _ => "take back",
        };
        let text = format!("Would {would}: {told}\nWould {}\n", deed.told());
        return Ok(Done::new(&answer(None, Value::Null)).with_text(text));
    }
    let acting = context.session(None)?;
    let locks = context.locks(here.repo.store(), LockPolicy::default(), &acting)?;
    let op = OpNonce::random(locks.seams().entropy);
    let undoing = Undoing { undoes: target.op, isolation: deed.isolation() };
    let note = |phase| {
        let worktree = target.event.worktree.as_ref();
        locks.note(EventKind::Undo, phase, op, worktree, None, Some(undoing.clone().into()))
    };
    note(EventPhase::Intent).map_err(|error| Stuck::new("write the audit log", error))?;
    match deed.run(context, here, &format!("undo of {}", target.op)) {
        Ok(done) => {
            // Best effort: what was done tells it as well.
            let _ = note(EventPhase::Done);
            let did = match target.what {
                WhatWasDone::Undo(_) => "Redid",
                _ => "Undid",
            };
            let text = format!("{did}: {told}\n");
            Ok(done.wrapped(text, |result| json!(answer(Some(op), result))))
        }
        Err(error) => {
            if error.code() != Code::OutcomeUnknown {
                let _ = note(EventPhase::NotApplied);
            }
            Err(error)
        }
    }
}
