//! The operations that people may take back, pieced together from the audit log. Pure:
//! events in, operations out.
//!
//! An operation is taken back by a process of its own, which says so before it does
//! anything: what it does after that is its deed, and no operation by itself.

use std::collections::{BTreeMap, BTreeSet};

use jvs_lock::State;
use jvs_lock::history::Logged;
use jvs_repo::audit::{Event, EventKind, EventPhase};
use jvs_repo::clock::WallMs;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::name::WorktreeName;
use jvs_repo::record::audit::{Collected, Restored, Undoing};
use jvs_repo::record::tag::LoggedTag;

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PastOperation {
    pub(super) op: OpNonce,
    /// The event that says who it was, and when.
    pub(super) event: Event,
    pub(super) at: Option<WallMs>,
    pub(super) what: WhatWasDone,
    /// Is it known that it was done?
    pub(super) done: bool,
    /// What it did, if it takes another back.
    pub(super) deeds: Vec<PastOperation>,
}

/// What an operation is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WhatWasDone {
    Snapshot(SnapshotId),
    Restore(Box<Restored>),
    Tag(LoggedTag),
    Untag(LoggedTag),
    Create { base: Option<SnapshotId> },
    Remove { head: Option<SnapshotId> },
    Rename { to: WorktreeName },
    Collect(usize),
    Undo(Undoing),
}

impl WhatWasDone {
    fn of(event: &Event) -> Option<WhatWasDone> {
        let head = || event.to.as_ref()?.parse::<State>().ok()?.head;
        Some(match event.kind {
            EventKind::Publish => WhatWasDone::Snapshot(head()?),
            EventKind::Restore => WhatWasDone::Restore(event.details_as()?),
            EventKind::Tag => WhatWasDone::Tag(event.details_as()?),
            EventKind::Untag => WhatWasDone::Untag(event.details_as()?),
            EventKind::Create => WhatWasDone::Create { base: head() },
            EventKind::Retire => {
                let renamed = event.reason.as_ref().and_then(|why| why.strip_prefix("renamed to "));
                match renamed.and_then(|to| to.parse().ok()) {
                    Some(to) => WhatWasDone::Rename { to },
                    None => WhatWasDone::Remove { head: head() },
                }
            }
            EventKind::Gc => WhatWasDone::Collect(event.details_as::<Collected>()?.snapshots.len()),
            EventKind::Undo => WhatWasDone::Undo(event.details_as()?),
            _ => return None,
        })
    }

    /// Which of several that are one operation says what it was.
    fn weight(&self) -> u8 {
        match self {
            WhatWasDone::Undo(_) => 3,
            WhatWasDone::Rename { .. } => 2,
            WhatWasDone::Restore(_) => 1,
            _ => 0,
        }
    }

    /// Is `deed` what takes this back?
    fn is_taken_back_by(&self, deed: &WhatWasDone) -> bool {
        matches!(
            (self, deed),
            (WhatWasDone::Snapshot(_), WhatWasDone::Snapshot(_))
                | (WhatWasDone::Restore(_), WhatWasDone::Restore(_))
                | (WhatWasDone::Tag(_), WhatWasDone::Untag(_))
                | (WhatWasDone::Untag(_), WhatWasDone::Tag(_))
                | (WhatWasDone::Create { .. }, WhatWasDone::Remove { .. })
                | (WhatWasDone::Remove { .. }, WhatWasDone::Create { .. })
                | (WhatWasDone::Rename { .. }, WhatWasDone::Rename { .. })
        )
    }
}

/// What can be taken back, and done again, in this order: the last comes first.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    pub(super) done: Vec<OpNonce>,
    pub(super) undone: Vec<OpNonce>,
}

/// All operations, oldest first. `events` are in order.
pub(super) fn operations(events: &[Logged]) -> Vec<PastOperation> {
    let mut places: BTreeMap<OpNonce, usize> = BTreeMap::new();
    let mut found: Vec<PastOperation> = Vec::new();
    for Logged { event, .. } in events {
        let Some(what) = WhatWasDone::of(event) else { continue };
        let at = *places.entry(event.op).or_insert_with(|| {
            found.push(PastOperation::of(event, what.clone()));
            found.len() - 1
        });
        found[at].take(event, what);
    }
    gathered(found)
}

/// With the deeds of those that take others back, and without what a restore kept.
fn gathered(found: Vec<PastOperation>) -> Vec<PastOperation> {
    let restored: BTreeSet<String> = found
        .iter()
        .filter(|one| matches!(one.what, WhatWasDone::Restore(_)))
        .map(|one| one.event.holder_id.clone())
        .collect();
    let mut all: Vec<PastOperation> = Vec::new();
    let mut undoing: BTreeMap<String, usize> = BTreeMap::new();
    for one in found {
        let process = one.event.holder_id.clone();
        if let Some(at) = undoing.get(&process) {
            all[*at].deeds.push(one);
            continue;
        }
        if matches!(one.what, WhatWasDone::Snapshot(_)) && restored.contains(&process) {
            continue;
        }
        if matches!(one.what, WhatWasDone::Undo(_)) {
            undoing.insert(process, all.len());
        }
        all.push(one);
    }
    all
}

impl PastOperation {
    fn of(event: &Event, what: WhatWasDone) -> Self {
        let (op, event, at) = (event.op, event.clone(), None);
        PastOperation { op, event, at, what, done: false, deeds: Vec::new() }
    }

    fn take(&mut self, event: &Event, what: WhatWasDone) {
        self.done |= event.phase == EventPhase::Done;
        self.at = self.at.max(event.at_ms());
        let heavier = what.weight() > self.what.weight();
        // What was done is said last; a rename also makes a worktree.
        if heavier || (what.weight() == self.what.weight() && event.phase == EventPhase::Done) {
            let worktree = event.worktree.clone();
            (self.what, self.event.worktree) = (what, worktree);
        }
    }

    /// What took `target` back, of what this did.
    pub(super) fn deed(&self, target: &PastOperation) -> Option<&PastOperation> {
        let kind = match &target.what {
            // To do it again is to do the same kind of thing as the operation itself did.
            WhatWasDone::Undo(_) => &target.deeds.last()?.what,
            what => what,
        };
        self.deeds.iter().rev().find(|deed| deed.done && kind.is_taken_back_by(&deed.what))
    }
}

/// One of them by its id.
pub(super) fn of(all: &[PastOperation], op: OpNonce) -> Option<&PastOperation> {
    all.iter().find(|one| one.op == op)
}

/// The operation that `undo` takes back in the end, through others that were taken back.
pub(super) fn at_the_root<'o>(
    all: &'o [PastOperation],
    undo: &Undoing,
) -> Option<&'o PastOperation> {
    let mut target = of(all, undo.undoes)?;
    // Each is older than what takes it back.
    for _ in 0..all.len() {
        match &target.what {
            WhatWasDone::Undo(further) => target = of(all, further.undoes)?,
            _ => return Some(target),
        }
    }
    None
}

/// What is done and what is undone of those that are `wanted`.
pub(super) fn stacks(all: &[PastOperation], wanted: impl Fn(&PastOperation) -> bool) -> Stacks {
    let mut stacks = Stacks::default();
    for one in all {
        let WhatWasDone::Undo(undo) = &one.what else {
            if one.done && wanted(one) {
                stacks.done.push(one.op);
                // What is collected is not what was taken back, or it says so itself.
                if !matches!(one.what, WhatWasDone::Collect(_)) {
                    stacks.undone.clear();
                }
            }
            continue;
        };
        let (Some(target), Some(root)) = (of(all, undo.undoes), at_the_root(all, undo)) else {
            continue;
        };
        if !wanted(root) || !(one.done || one.deed(target).is_some()) {
            continue;
        }
        match target.what {
            WhatWasDone::Undo(_) => {
                stacks.undone.retain(|op| *op != target.op);
                stacks.done.push(root.op);
            }
            _ => {
                stacks.done.retain(|op| *op != target.op);
                stacks.undone.push(one.op);
            }
        }
    }
    stacks
}

#[cfg(test)]
mod tests {
    use jvs_lock::history::LogLine;
    use jvs_repo::audit::WriterId;
    use serde_json::{Value, json};

    use super::*;

    /// `process` did something, as the operation `op`.
    fn event(kind: &str, phase: &str, op: u8, process: u8, details: Value) -> Logged {
        let event = json!({
            "kind": kind, "phase": phase, "at": "2025-11-16T09:00:00.000Z",
            "op": format!("{op:016x}"), "worktree": "main", "session_id": "s",
            "holder_id": format!("h:ann:{process}:2"), "details": details,
        });
        let event = serde_json::from_value(event).expect("an event");
        Logged { place: LogLine { log: WriterId([0; 12]).into(), line: 1 }, event }
    }

    fn tag(kind: &str, op: u8, process: u8) -> Logged {
        let details = json!({
            "tag": "v1", "snapshot_id": "1763283600123-0000002a",
            "created_at": "2025-11-16T09:00:00.000Z", "session_id": "s",
        });
        event(kind, "done", op, process, details)
    }

    fn undo(op: u8, process: u8, undoes: u8) -> Logged {
        event("undo", "intent", op, process, json!({ "undoes": format!("{undoes:016x}") }))
    }

    fn numbers(ops: &[OpNonce]) -> Vec<u8> {
        ops.iter().map(|op| op.0[7]).collect()
    }

    fn stacked(events: &[Logged]) -> (Vec<u8>, Vec<u8>) {
        let all = operations(events);
        let stacks = stacks(&all, |_| true);
        (numbers(&stacks.done), numbers(&stacks.undone))
    }

    #[test]
    fn what_is_taken_back_can_be_done_again_until_something_else_is_done() {
        let mut events = vec![tag("tag", 1, 1), tag("untag", 2, 2)];
        assert_eq!(stacked(&events), (vec![1, 2], vec![]));
        // A process says that it takes the second back, and dies.
        events.push(undo(3, 3, 2));
        assert_eq!(stacked(&events), (vec![1, 2], vec![]));
        // Another does.
        events.extend([undo(4, 4, 2), tag("tag", 5, 4)]);
        assert_eq!(stacked(&events), (vec![1], vec![4]));
        events.extend([undo(6, 6, 1), tag("untag", 7, 6)]);
        assert_eq!(stacked(&events), (vec![], vec![4, 6]));
        // The last first.
        events.extend([undo(8, 8, 6), tag("tag", 9, 8)]);
        assert_eq!(stacked(&events), (vec![1], vec![4]));
        events.push(tag("tag", 10, 10));
        assert_eq!(stacked(&events), (vec![1, 10], vec![]));
    }

    #[test]
    fn what_a_restore_kept_is_part_of_it_and_what_nobody_takes_back_is_no_operation() {
        let restored = json!({
            "snapshot_id": "1763283600123-0000002a", "kept": null, "paths": ["a"],
        });
        let events = [
            event("acquire", "done", 1, 1, Value::Null),
            event("restore", "intent", 2, 1, restored.clone()),
            event("restore", "done", 2, 1, restored),
            event("renew", "done", 3, 1, Value::Null),
        ];
        let all = operations(&events);
        assert_eq!(all.len(), 1);
        assert!(
            all[0].done && matches!(&all[0].what, WhatWasDone::Restore(it) if it.paths == ["a"])
        );
    }

    #[test]
    fn an_operation_of_a_later_version_or_without_its_details_is_none() {
        let odd = event("undo", "done", 1, 1, json!({ "undoes": "nothing" }));
        let of_nothing = undo(2, 2, 9);
        assert_eq!(operations(&[odd]), []);
        assert_eq!(stacked(&[of_nothing]), (vec![], vec![]));
    }
}
